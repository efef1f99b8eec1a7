#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The node of rank 1 is lost to the head: "session" kills its sshd, "network" takes the network away. The other ranks
# wait.
[ "$RANK" = 1 ] || exec sleep 600
above=$PPID
while [ "$1" = session ] && [ "$(cat "/proc/$above/comm")" != sshd ]; do
    above=$(sed -n 's/^PPid:\t*//p' "/proc/$above/status")
done
if [ "$1" = session ]; then
    kill -KILL "$above"
else
    ip link set "$(ip -o route get "$MASTER_ADDR" | sed 's/.* dev \([^ ]*\).*/\1/')" down
fi
exec sleep 600
