#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-\ prints how every rank is, and the job goes on.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Rank 1 is busy, rank 2 stops itself, the others sleep.
# shellcheck disable=SC2016
mixed='echo up; [ $RANK != 1 ] || while :; do :; done; [ $RANK != 2 ] || kill -STOP $$; exec sleep 100'

row() { grep -E "^ *\| +$1 +localhost " "$ERR" | tail -n 1; }
row_has() { row "$1" | grep -qF -- "$2"; }

start --local 4 --label none sh -c "$mixed"
ok 'four ranks are up' await lines_are "$OUT" 4
is 'nothing is told unasked' "$(grep -c '^note' "$ERR")" 0
shown() {
    kill -QUIT "$PID"
    await row 3 && row_has 2 'stopped (T)' && row_has 3 'yes (S)'
}
ok 'a rank that is stopped is shown in state T, one that sleeps in S' await shown
has 'it says how many ranks there are' "$ERR" 'note: 4 ranks on 1 node, '
ok 'a busy rank runs' row_has 1 'yes (R)'
ok 'its share of a processor is shown' row_has 1 '% CPU'
ok 'the process number is right' row_has 3 " $(pgrep -P "$(pgrep -P "$PID" | head -n 1)" -x sleep | tail -n 1) "
lacks 'ranks that use no store are not asked for it' "$ERR" joined
ok 'the job goes on' kill -0 "$PID"
kill -INT "$PID"
finish
exits 'until Ctrl-C' 130

start --local 3 --label none "$BUILD/tests/clients/left_waiting" 1
ok 'three ranks are up' await lines_are "$OUT" 3
asked() {
    kill -QUIT "$PID"
    sleep 0.1
    row_has 0 'waits in barrier `' && row_has 1 'not joined'
}
ok 'who has joined the store is shown' await asked
kill -INT "$PID"
finish
nothing_left 'nothing is left'
done_testing
