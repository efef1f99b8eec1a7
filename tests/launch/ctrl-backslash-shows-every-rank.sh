#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-\ prints how every rank is, and the job goes on.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Rank 1 is busy, rank 2 stops itself, the others sleep.
mixed='echo up; [ $RANK != 1 ] || while :; do :; done; [ $RANK != 2 ] || kill -STOP $$; exec sleep 100'

row() { grep -E "^ *\| +$1 +localhost " answer; }
row_has() { row "$1" | grep -qF -- "$2"; }
is_whole() { # RANK, the last of the table
    tail -n "+$((told + 1))" "$ERR" >answer
    [[ -z $(tail -c 1 answer) ]] && row "$1"
}
# The next question comes after the whole answer to this one.
ask() { # RANK, the last of the table
    told=$(wc -l <"$ERR")
    kill -QUIT "$PID"
    wait_for is_whole "$1"
}
pid_of() { # RANK
    processes | while read -r p; do
        ! grep -qzx "HN_RANK=$1" "/proc/$p/environ" || echo "$p"
    done
}

comes_up 'four ranks are up' 4 start --local 4 --label none sh -c "$mixed"
is 'nothing is told unasked' "$(grep -c '^note' "$ERR")" 0
shown() { ask 3 && row_has 2 'stopped (T)' && row_has 3 'yes (S)'; }
ok 'a rank that is stopped is shown in state T, one that sleeps in S' wait_for shown
has 'it says how many ranks there are' answer 'note: 4 ranks on 1 node, '
ok 'a busy rank runs' row_has 1 'yes (R)'
ok 'its share of a processor is shown' row_has 1 '% CPU'
is 'the process number is right' "$(row 3 | awk '{ print $5 }')" "$(pid_of 3)"
lacks 'ranks that use no store are not asked for it' "$ERR" joined
ok 'the job goes on' kill -0 "$PID"
exits 'until Ctrl-C' 130 finish_by INT

comes_up 'a rank of a quiet run is up' 1 start -q --local 1 --label none sh -c 'echo up; exec sleep 100'
ok 'who asks a quiet run is answered, too' ask 0
finish_by INT

comes_up 'three ranks are up' 3 start --local 3 --label none "$BUILD/tests/clients/left_waiting" 1
asked() { ask 2 && row_has 0 'waits in barrier `' && row_has 1 'not joined'; }
ok 'who has joined the store is shown' wait_for asked
finish_by INT

comes_up 'two ranks have said how far they are' 2 start --local 2 --label none "$BUILD/tests/clients/stepping" 1840 stay
steps() { ask 1 && row_has 0 '1840/5000 warm-up' && row_has 1 '1840/5000 '; }
ok 'hn_progress() is shown' wait_for steps
finish_by INT
nothing_left 'nothing is left'
done_testing
