#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-Z suspends hnlaunch and not the ranks, however long; a head that hangs for a moment blames
# nobody, one that hangs for longer has lost its job.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

state_is() { [[ $(awk '{ print $3 }' "/proc/$PID/stat") == "$1" ]]; }

comes_up 'two ranks are up' 2 start --local 2 --node-timeout 1s --label none sh -c 'echo up; sleep 4; echo done'
kill -TSTP "$PID"
ok 'Ctrl-Z suspends hnlaunch' wait_for state_is T
has 'and says so' "$ERR" suspended
sleep 2.5
exits 'it goes on and ends well' 0 finish_by CONT
is 'nothing of the output is lost' "$(grep -c 'done' "$OUT")" 2

comes_up 'two ranks are up again' 2 start --local 2 --node-timeout 3s --label none sh -c 'echo up; sleep 3'
kill -STOP "$PID"
sleep 1.5
exits 'a head that hangs for half the time goes on' 0 finish_by CONT

# On this machine patience is twenty times as long.
comes_up 'two ranks are up once more' 2 start --local 2 --node-timeout 100ms --label none sh -c 'echo up; exec sleep 100'
kill -STOP "$PID"
no_ranks() { ! pgrep -f -P "$(pgrep -d, -P "$(pgrep -d, -P "$PID")")" 'sleep 100'; }
ok 'ranks whose head hangs for good end' wait_for no_ranks
exits 'when it wakes up its node is lost' 125 finish_by CONT
nothing_left 'nothing is left'
done_testing
