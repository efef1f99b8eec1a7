#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGTERM ends the job in order (143); SIGUSR1 and SIGUSR2 are passed on to every rank.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

listener='trap "echo usr1 $RANK" USR1; trap "echo usr2 $RANK" USR2; trap "echo term $RANK; exit 0" TERM
    echo up; while :; do sleep 0.05; done'

comes_up 'three ranks are up' 3 start --local 3 --label none sh -c "$listener"
kill -USR1 "$PID"
ok 'SIGUSR1 reaches all three' wait_for count_is usr1 3
kill -USR2 "$PID"
ok 'SIGUSR2 reaches all three' wait_for count_is usr2 3
exits 'SIGTERM: 143' 143 finish_by TERM
is 'SIGTERM reached all three' "$(grep -c term "$OUT")" 3
nothing_left 'nothing is left'

comes_up 'two ranks are up' 2 start --local 2 --label none sh -c "$listener"
exits 'a lost terminal ends the job: 129' 129 finish_by HUP
nothing_left 'nothing is left after SIGHUP'
done_testing
