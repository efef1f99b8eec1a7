#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rank 0 orders the end of its job: "stop" by hnlaunch stop, "INT" by one signal, "INTS" by signals until all ranks, which
# obey none, have ended.
[ "$1" != INTS ] || trap '' INT TERM
while [ "$RANK" != 0 ]; do sleep 0.1; done
launcher=$PPID
while [ "$(cat "/proc/$launcher/comm")" != hnlaunch ]; do
    launcher=$(sed -n 's/^PPid:\t*//p' "/proc/$launcher/status")
done
[ "$1" = stop ] || kill -INT "$launcher"
[ "$1" != stop ] || "/proc/$launcher/exe" stop "$HN_RUN_ID"
while sleep 1; do [ "$1" != INTS ] || kill -INT "$launcher"; done
