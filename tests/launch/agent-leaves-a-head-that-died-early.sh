#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A head that dies before the agent has said HELLO is noticed by the writing alone; the agent leaves.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkfifo orders answers
exec 5<>orders # stays open: no end of file tells the agent anything
true <answers & # the head's end, for a moment
exec 7>answers
wait $!
RC=0
timeout 60 "$BUILD/hnlaunch-agent" <&5 >&7 2>"$ERR" || RC=$?
is 'it leaves by itself' "$([[ $RC == 124 ]] && echo hangs || echo left)" left
exec 5>&- 7>&-
nothing_left 'nothing is left'
done_testing
