#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hang that hnlaunch why has found is told to the end: by ps, and when the ranks are stopped by the last line, report
# and an event; not if the ranks have gone on in between.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"

runtime_dir
python3 -c 'import json' || skip_all 'needs python3'
hanging=$BUILD/tests/clients/hanging

run_id() { field "a['run']"; }
hangs_listed() { "$HNLAUNCH" ps >listed 2>&1 && [[ $(grep -cE ' running, hangs for [0-9.]+(ms|s) ' listed) == "$1" ]]; }
# A look during which ranks join finds no hang that stands.
found() { why && [[ $(field "a['kind'], a['outliers']") == "('hang', [$1])" ]] && hangs_listed 1; }

start --local 4 --hang-after 0 --json=events.json --label none "$hanging" stop 2
ok 'rank 2 is found, and ps tells the hang' wait_for found 2
id=$(run_id)
found=$(field "a['text']")
is 'no event has told it yet' "$(hang_events events.json text)" ''
"$HNLAUNCH" stop "$id" 2>/dev/null
exits 'hnlaunch stop ends the run' 143 finish
verdict_has 'the last line has the rank, and the order' ': rank 2 on localhost is stopped by a signal (state T)' \
    '; 3 ranks wait in hn_barrier' '; hnlaunch stop (pid '
is 'an event tells it' "$(hang_events events.json text)" "(2, ${found@Q})"
hn report --json "$id"
is 'the report says what was found' "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["why"])' <"$OUT")" "$found"
hn report "$id"
is 'once' "$(grep -c 'ranks 0-1,3 wait in hn_barrier' "$OUT")" 1

# Asked on the terminal of the run, and stopped there.
comes_up 'the ranks of another run are up' 4 start --local 4 --hang-after 0 --label none "$hanging" stop 2
found_here() { jobs -rp | grep -qx "$PID" && kill -QUIT "$PID" && grep -q 'note: ranks 0-1,3 wait in .* it is stopped by a signal' "$ERR"; }
ok 'Ctrl-\ twice finds it, too' wait_for found_here
exits 'Ctrl-C ends the run' 130 finish_by INT
verdict_has 'the last line has the rank' ': rank 2 on localhost is stopped by a signal (state T)' '; SIGINT  (exit 130)'

# The ranks go on, and to the end.
goes_on() { # HOW: rank 1 is found, and goes on
    rm -f go end
    start_twice --hang-after 0
    ok "$1: rank 1 is found" wait_for found 1
    id=$(run_id)
    touch go
    ok "$1: the hang is over" wait_for hangs_listed 0
}
goes_on 'stopped later'
"$HNLAUNCH" stop "$id" 2>/dev/null
exits 'stopped later: the code of the order' 143 finish
verdict_has 'stopped later: the last line has the order only' 'stopped after' ': hnlaunch stop (pid '
lacks 'stopped later: ... no rank' "$ERR" 'rank 1 on localhost'
hn report "$id"
lacks 'stopped later: nor has the report' "$OUT" 'wait in'
goes_on 'to the end'
touch end
exits 'to the end: no failure' 0 finish
hn report "$id"
lacks 'to the end: the report has no hang' "$OUT" 'wait in'

nothing_left 'nothing is left'
done_testing
