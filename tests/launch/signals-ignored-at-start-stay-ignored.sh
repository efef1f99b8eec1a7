#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nohup, and the background of a shell without job control: SIGHUP, SIGINT and SIGQUIT that were ignored
# at the start stay so, SIGTERM is obeyed, and ranks begin with all signals as usual.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

listener='trap "echo usr1 $RANK" USR1; echo "up $(grep SigIgn /proc/self/status)"
    until [ -e go ]; do sleep 0.05; done; exit 7'

# Starts COMMAND... with its output in $OUT and $ERR, as PID.
begin() { # COMMAND...
    rm -f go
    : >"$OUT"
    : >"$ERR"
    "$@" >"$OUT" 2>"$ERR" &
    PID=$!
}

# Signals are caught in their order: when ranks have heard this one, an earlier one was not heard.
pass_on() {
    kill -USR1 "$PID"
    wait_for count_is usr1 2
}

begin env --default-signal nohup "$HNLAUNCH" -v --local 2 --label none sh -c "$listener"
ok 'two ranks are up' wait_for count_is up 2
kill -HUP "$PID"
ok 'nohup: the job goes on after SIGHUP' pass_on
has 'it is told with -v' "$ERR" 'SIGHUP was ignored when hnlaunch started'
lacks 'of no other signal' "$ERR" 'SIGINT was ignored'
is 'ranks ignore no signal' "$(grep -c 'SigIgn:.0000000000000000' "$OUT")" 2
: >go
exits 'and ends with the code of a rank' 7 finish

begin env --default-signal nohup "$HNLAUNCH" --local 2 --label none sh -c "$listener"
ok 'two ranks are up' wait_for count_is up 2
exits 'nohup: Ctrl-C is obeyed' 130 finish_by INT
lacks 'without -v nothing is told' "$ERR" 'was ignored'

# This shell has no job control: what it starts in the background ignores SIGINT and SIGQUIT.
begin "$HNLAUNCH" -v --local 2 --label none sh -c "$listener"
ok 'two ranks are up' wait_for count_is up 2
kill -INT "$PID"
kill -QUIT "$PID"
ok 'in the background: the job goes on after SIGINT and SIGQUIT' pass_on
has 'SIGINT is told' "$ERR" 'SIGINT was ignored when hnlaunch started'
has 'so is SIGQUIT' "$ERR" 'SIGQUIT was ignored when hnlaunch started'
exits 'SIGTERM is obeyed' 143 finish_by TERM

begin env --ignore-signal=TERM "$HNLAUNCH" --local 2 --label none sh -c "$listener"
ok 'two ranks are up' wait_for count_is up 2
exits 'SIGTERM is obeyed even if it was ignored' 143 finish_by TERM

begin "$HNLAUNCH" --local 2 --label none sh -c "$listener"
ok 'two ranks are up' wait_for count_is up 2
exits 'in the background: SIGHUP is obeyed' 129 finish_by HUP
nothing_left 'nothing is left'
done_testing
