#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The first Ctrl-C is orderly (TERM, --grace), the second one ends everything at once: 130.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

polite='trap "echo bye $RANK; exit 0" TERM; echo up; while :; do sleep 0.05; done'

deaf='trap "" TERM INT; echo up; while :; do sleep 0.05; done'

comes_up 'three ranks are up' 3 start --local 3 --label none sh -c "$polite"
exits 'Ctrl-C: 130' 130 finish_by INT
is 'all ranks could say goodbye' "$(grep bye "$OUT" | sort | tr '\n' ' ')" 'bye 0 bye 1 bye 2 '
ok 'the verdict says interrupted' grep -qE '^hnlaunch: stopped after [^ ]+: SIGINT  \(exit 130\)$' <(verdict)
nothing_left 'nothing is left after Ctrl-C'

# Two signals that come before hnlaunch runs again would be one.
interrupt_twice() {
    kill -INT "$PID"
    wait_for grep -q 'stopping all ranks: SIGINT' "$ERR"
    sleep 0.1 # within 50 ms both would be one
    kill -INT "$PID"
}

comes_up 'two deaf ranks are up' 2 start --local 2 --grace 600s --label none sh -c "$deaf"
begin=$SECONDS
interrupt_twice
exits 'Ctrl-C twice: 130' 130 finish
ok 'the first says how long ranks have, and what the second does' \
    grep -qx 'hnlaunch: stopping all ranks: SIGINT; they have 10m00s to end (--grace), Ctrl-C kills them at once' "$ERR"
verdict_has 'which the last line tells apart from one' 'stopped after' ' killed at once by another SIGINT  (exit 130)'
ok 'Ctrl-C twice does not wait for the grace time' test $((SECONDS - begin)) -lt "$(scaled 5)"
nothing_left 'nothing is left after the second Ctrl-C'

mkfifo stuck
exec 5<>stuck
env --default-signal "$HNLAUNCH" --local 2 --grace 600s yes >&5 2>"$ERR" &
PID=$!
is_full() { python3 -c 'import select, sys; sys.exit(bool(select.select([], [5], [], 0)[1]))'; }
ok 'the pipe is full, and nobody will ever read it' wait_for is_full
begin=$SECONDS
interrupt_twice
exits 'Ctrl-C twice with output that nobody reads: 130' 130 finish
ok 'it does not wait for the reader' test $((SECONDS - begin)) -lt "$(scaled 5)"
exec 5>&-
nothing_left 'nothing is left of the stuck run'

comes_up 'two deaf ranks are up again' 2 start --local 2 --grace 300ms --label none sh -c "$deaf"
exits 'deaf ranks are killed after the grace time: 130' 130 finish_by INT
verdict_has 'which the last line tells' ': SIGINT; 2 ranks had to be killed (SIGKILL)  (exit 130)'
nothing_left 'nothing is left after the grace time'
done_testing
