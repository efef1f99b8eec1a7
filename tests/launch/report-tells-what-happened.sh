#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The agents' traces come home when a run fails or hangs, or with --trace; hnlaunch report tells from the records how
# the run started, which rank left the others first, and how it ended, as text, JSON and a page.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
python3 -c 'import json' || skip_all 'needs python3'
failing=$BUILD/tests/clients/failing
field() { python3 -c "import json, sys
r = json.load(open('$OUT'))
d = r['divergence']
print(eval(sys.argv[1]))" "$1"; }
newest() { find "$XDG_STATE_HOME/hnlaunch/runs" -mindepth 1 -maxdepth 1 -printf '%T@ %f\n' | sort -n | tail -n 1 | cut -d' ' -f2; }
run_id() { sed -n 's/^hnlaunch: run \([^:]*\):.*/\1/p' "$ERR" | head -n 1; }
folder() { echo "$XDG_STATE_HOME/hnlaunch/runs/$1"; }

# --- which rank, and when -------------------------------------------------------------------------

names() { # HOW EXIT TEXT: rank 2 is named, before the failure
    hn_exits "$1: the run fails as before" "$2" --label none --local 4 "$failing" "$1" 2 30 5
    id=$(run_id)
    hn_exits "$1: there is a report" 0 report --json "$id"
    is "$1: rank 2 has diverged first" "$(field "d['rank'], d['host'], d['us'] <= r['failed_us']")" "(2, 'localhost', True)"
    if [[ $(field "d['text']") == *"$3"* ]]; then pass "$1: in words"; else fail "$1: in words" "$(field "d['text']")"; fi
}
names crash 139 'rank 2 is ended by SIGSEGV'
names error 7 'rank 2 '
names exit 9 'rank 2 '
names sleep 9 'rank 2 '
crashed=$id
hn --local 2 sh -c 'sleep 1; [ $RANK = 0 ] && exec sleep 60; exit 3'
times=$(sed -nE 's/^error.* after ([0-9.]+m?s).*/\1/p; s/^hnlaunch: failed after ([0-9.]+m?s):.*/\1/p' "$ERR" | sort -u)
hn report
is 'the report tells its words once' "$(grep -c 'exited with code 3' "$OUT")" 1
hn report --json
is 'a failure has one time in message, last line and report' "$times" \
    "$(field "'%d.%ds' % (r['failed_us'] // 1000000, r['failed_us'] // 100000 % 10)")"
names stop 9 'rank 2 '
ok 'the rank that waited in vain is blamed only later' test "$(field "r['failed_us'] - d['us'] > 2000000")" = True

# --- the text ---------------------------------------------------------------------------------------

hn_exits 'a run can be named' 0 report "$crashed"
has 'the verdict stands above' "$OUT" 'failed after '
has 'the start is there' "$OUT" 'critical path: connect localhost '
has 'with its picture' "$OUT" 'localhost  C'
has 'the divergence' "$OUT" ' before the failure, on localhost: rank 2 '
has 'the failures' "$OUT" 'rank '
has 'and where they come from' "$OUT" 'traces: from the node'
ok 'no line is wider than 100 columns but the sentences' awk '/^localhost/ && length > 100 { exit 1 }' "$OUT"
hn_exits 'without a name the newest run is told' 0 report
is 'which is this one' "$(head -n 1 "$OUT" | cut -d: -f1)" "run $(newest)"

# --- JSON ---------------------------------------------------------------------------------------------

hn report --json "$crashed"
is 'the names of the report are a promise' "$(field 'sorted(r)')" \
    "['code', 'divergence', 'failed_us', 'nodes', 'phases', 'restarts', 'run', 'slow_node', 'slow_rank', 'starts', 'v', 'verdict', 'why']"
is 'and those of a node' "$(field 'sorted(r["nodes"][0])')" \
    "['clock_error_us', 'connected_us', 'ended_us', 'host', 'joined_us', 'lost', 'pushed_us', 'ranks', 'ready_us', 'started_us', 'trace', 'uploaded']"
is 'of a phase' "$(field 'sorted(r["phases"][-1])')" "['from_us', 'host', 'last_us', 'median_us', 'phase', 'rank', 'until_us']"
is 'of the divergence' "$(field 'sorted(d)')" "['host', 'rank', 'text', 'us']"
is 'the phases follow one another' "$(field '[p["phase"] for p in r["phases"]]')" "['connect', 'agent', 'start', 'join']"

# --- the page -----------------------------------------------------------------------------------------

hn_exits 'a page is written' 0 report --html page.html "$crashed"
has 'which is told' "$ERR" "the report of run $crashed is in page.html"
is 'for the user only' "$(stat -c %a page.html)" 600
chmod 644 page.html
hn report --html page.html "$crashed"
is 'also if it was there with another mode' "$(stat -c %a page.html)" 600
start --log-dir none --local 1 sh -c 'until [ -e seen ]; do sleep 0.05; done'
wait_for grep -q "run .....:" "$ERR"
"$HNLAUNCH" report >newest
: >seen
finish
ok 'a run without records is not the newest one of report' grep -q '^run ' newest
hn_exits '--html with a run in place of a file: 64' 64 report --html "$crashed"
has 'and how it is written' "$ERR" "hnlaunch report --html $crashed.html $crashed"
check_page() { python3 "$ROOT/tests/lib/report_page.py" "$1"; } # FILE
ok 'it is well-formed, without scripts, complete, and can be read' check_page page.html
has 'it has the divergence' page.html 'First divergence:'
has 'marked in the picture' page.html '<path class="divergence" d="M'
is 'and a lane for each rank' "$(grep -o '<span>\(<b>\)\?rank [0-9]<' page.html | grep -o '[0-9]' | sort -u | wc -l)" 4
hn report --html - "$crashed"
same 'it can go to standard output' "$OUT" page.html
hn_exits 'a page that cannot be written is an error' 73 report --html /dev/full "$crashed"
has 'with its reason' "$ERR" 'error[HN832]: cannot write /dev/full: No space left on device'
hn_exits 'also one in a folder that is not there' 73 report --html nowhere/page.html "$crashed"

hn_exits 'others fail without a rank that left' 9 --local 6 --on-failure continue --label none "$failing" exit 4 30 5
hn report --html page.html
ok 'the page has the verdict first' grep -q '<body><h1><span class="bad">✗</span> failed after ' page.html
ok 'failures that say the same are one row' grep -q '<td class="s">5 ranks: 0-3,5</td>' page.html
lacks 'a divergence that is the failure is not told again' page.html 'First divergence:'
ok 'the page is well-formed' check_page page.html
hn --local 1 sh -c 'exit 3'
hn report --html page.html
has 'the command can be given to a shell' page.html 'hnlaunch --local 1 sh -c &#39;exit 3&#39;<'
lacks 'a failure that is in the verdict has no table' page.html '<h2>Failures'
ok 'such a page is well-formed' check_page page.html

# What ranks and their hosts say stays text.
hn --local 1 sh -c 'echo "<script>alert(1)</script>&\"" >&2; printf "\033]0;owned\007\n" >&2; exit 3'
hn report --html page.html
ok 'words of ranks are no markup' check_page page.html
has 'they are shown' page.html '&lt;script&gt;alert(1)&lt;/script&gt;&amp;'
lacks 'control characters are not' page.html $'\033'
hn report
lacks 'nor on the terminal' "$OUT" $'\033'

# --- steps, and the rank that takes long ------------------------------------------------------------
cp -r "$ROOT/examples/python/hnlaunch/" .
cat >slow.py <<'END'
import time
import hnlaunch as hn

hn.init()
for step in range(40):
    time.sleep(0.06 if hn.rank() == 5 else 0.01)
    hn.barrier()
    hn.progress(step, 40)
hn.finalize()
END
LD_LIBRARY_PATH=$PLAIN hn --trace --local 8 python3 slow.py
exits 'a run with a slow rank' 0
hn report
ok 'it is named' grep -qE '^slow rank: the others wait for rank 5 on localhost for [0-9]+ % of each step \([0-9]+ steps\)$' "$OUT"
ok 'steps have a map' grep -qE '^steps 0 to 39, .* each by itself, the slowest rank first$' "$OUT"
is 'with that rank on top' "$(grep -A2 '^steps 0 to 39' "$OUT" | tail -n 1 | cut -c 1-19)" 'rank 5 on localhost'
is 'and a row for each of eight' "$(grep -cE '^rank [0-7] on localhost +[0-9.]+m?s  ' "$OUT")" 8
hn report --json
is 'as JSON, too' "$(field "r['slow_rank']['rank'], r['slow_rank']['host'], r['slow_rank']['percent'] > 50")" "(5, 'localhost', True)"
hn report --html page.html
has 'and on the page' page.html '<h2>Steps 0 to 39</h2>'
ok 'which is well-formed' check_page page.html

# --- when traces are kept ---------------------------------------------------------------------------

has_trace() { [[ -s $(folder "$1")/trace ]]; }
hn --local 2 true
id=$(run_id)
ok 'a run that does not fail keeps no trace' not has_trace "$id"
hn report "$id"
has 'which is told' "$OUT" 'traces: none: kept when a run fails or hangs, or with --trace, which tells whether a rank is slow'
hn report --html page.html "$id"
has 'also on the page' page.html 'none: kept when a run fails or hangs, or with --trace'
lacks 'which has no lanes where they would be empty' page.html '<h2>The ranks</h2>'
ok 'and is well-formed' check_page page.html
hn -w localhost:2 --main ask --role serve -n 1 sleep 600 : --role ask --on serve -n 1 true
hn_exits 'a run that ends a rank of another role than --main has finished' 0 report
has 'its traces are not missed' "$OUT" 'traces: none: kept when a run fails or hangs, or with --trace'
comes_up 'the ranks of a run with --trace are up' 2 start --trace --local 2 "$BUILD/tests/clients/hanging" sleep 1
id=$(run_id)
"$HNLAUNCH" report "$id" >early
has 'while it goes on its traces are still to come' early 'traces: none before the end of the run: kept when it fails or hangs, or with --trace'
"$HNLAUNCH" report --html early.html "$id" 2>/dev/null
has '... on the page, too' early.html 'none before the end of the run: kept when it fails or hangs, or with --trace'
"$HNLAUNCH" stop --grace 1s "$id" 2>/dev/null
finish
hn report "$id"
has 'at the end they are there' "$OUT" 'traces: from the node'
hn_exits '--trace: the run does not fail' 0 --trace --local 2 "$failing" end 0 5 1
id=$(run_id)
ok 'and its trace is kept' has_trace "$id"
is 'for the user only' "$(stat -c %a "$(folder "$id")/trace")" 600
hn report --json "$id"
is 'no rank has diverged, no node is slow' "$(field "d, r['slow_node'], r['failed_us']")" '(None, None, None)'
hn_exits '--log-dir: the run fails' 139 --log-dir logs --local 4 --label none "$failing" crash 1 5 1
id=$(run_id)
ok 'the trace is in that folder' test -s "logs/$id/trace"
hn report --json "$id"
is 'and the report knows it' "$(field "d['rank']")" 1
hn_exits 'a failed attempt before a good one' 0 --max-restarts 1 --local 2 sh -c '[ "$HN_RESTART" = 1 ] || exit 4'
id=$(run_id)
ok 'keeps its trace, too' has_trace "$id"
hn report --json "$id"
is 'the restart is counted' "$(field "r['restarts'], r['code']")" '(1, 0)'
hn report --html page.html "$id"
ok 'the page tells of it' grep -q '<td class="s">restart</td>' page.html
ok 'and is well-formed' check_page page.html

hn --max-restarts 1 --local 4 --label none sh -c '[ "$HN_RESTART" = 1 ] && exec "$1" crash 3 5 2; exec "$1" crash 1 40 2' sh "$failing"
exits 'two failed attempts' 139
id=$(run_id)
hn report --json "$id"
is 'the report is of the newest' "$(field "d['rank'], r['restarts']")" '(3, 1)'
hn report "$id"
is 'and names the rank of the restart once' "$(sed -n 's/^ *[0-9.]*m*s  restart  //p' "$OUT" | grep -o 'rank 1 on' | wc -l)" 1

# --- the start of each attempt ----------------------------------------------------------------------

hn --max-restarts 2 --local 2 --label none sh -c '[ "$HN_RESTART" = 2 ] || exit 4; exec "$1" end 0 5 1' sh "$failing"
exits 'two failed attempts before a good one' 0
id=$(run_id)
hn report --json "$id"
is 'each has its start' "$(field '[s["attempt"] for s in r["starts"]]')" '[1, 2, 3]'
is 'with these names' "$(field 'sorted(r["starts"][1])')" "['attempt', 'from_us', 'ordered_us', 'phases']"
is 'nodes stay connected' "$(field '[[p["phase"] for p in s["phases"]] for s in r["starts"]]')" \
    "[['connect', 'agent', 'start'], ['start'], ['start', 'join']]"
is 'the phases above are those of the first' "$(field 'r["phases"] == r["starts"][0]["phases"]')" True
is 'a start begins when the attempt before has ended' \
    "$(field 'all(a["phases"][-1]["until_us"] <= b["from_us"] <= b["ordered_us"] for a, b in zip(r["starts"], r["starts"][1:]))')" True
is 'the second restart comes a second later' "$(field '[(s["ordered_us"] - s["from_us"]) // 1000000 for s in r["starts"][1:]]')" '[0, 1]'
hn report "$id"
is 'the text has one picture, and a line for each later start' \
    "$(grep -cE '^critical path: |^later starts:|^  attempt [23]: after [0-9.]+m?s of waiting, ranks ran [0-9.]+m?s later: start rank [01] on localhost ' "$OUT")" 4
hn report --html page.html "$id"
is 'the page, too' "$(grep -cE '<p>Attempt [23]: after |Attempt 2: after [0-9.]+m?s of waiting, ranks ran ' page.html)" 2
ok 'which is well-formed' check_page page.html
sed -i 's/"ms":[0-9]*,//' "$(folder "$id")/events.ndjson"
hn report --json "$id"
is 'records of before, which do not tell the pause' "$(field '[(s["ordered_us"], len(s["phases"])) for s in r["starts"][1:]]')" '[(None, 0), (None, 1)]'

# Rank 1 loses its host, and c comes in its place.
cat >start-at <<'END'
#!/bin/sh
[ "$1" != "$NOT_AT" ] || exit 9
shift
exec "$@"
END
chmod +x start-at
printf 'a slots=1\nb slots=1\nc slots=1\n' >hosts
nodes=(-H hosts --oversubscribe --start-with "$PWD/start-at {host}" --spares auto --nodes 2 --bad-hosts none --grace 1s --label none)
hn "${nodes[@]}" --restart auto --max-restarts 1 sh -c '[ $HN_RESTART = 0 ] || exit 0; [ $RANK = 1 ] || exec sleep 60; sleep 0.2; kill -KILL $PPID'
exits 'a run that loses a host' 0
hn report --json
is 'its phases have the hosts of their attempt' \
    "$(field "{p['host'] for p in r['phases']} <= {'a', 'b'}, [p['host'] for p in r['starts'][1]['phases'][:2]]")" "(True, ['c', 'c'])"
hn report
ok 'the first start names the lost host' grep -qE '^b +C.* lost$' "$OUT"
is 'and not the one that came later' "$(grep -c '^c ' "$OUT")" 0
NOT_AT=b hn "${nodes[@]}" true
exits 'a host that fails before the start is replaced' 0
hn report
is 'both have a row' "$(sed -nE 's/^([abc]) +[A-Z. ]*(<- .*)?$/\1/p' "$OUT" | xargs)" 'a b c'
ok 'one was not reached' grep -qE '^b .* not reached$' "$OUT"
ok 'the other is well' grep -qE '^c +C' "$OUT"
hn report --json
is 'of which JSON has the one that came' "$(field "[(n['host'], n['lost']) for n in r['nodes']]")" "[('a', False), ('c', False)]"

start --local 4 --hang-after 1s --label none "$failing" sleep 2 5 5
hang_is_told() { grep -q 'HN811\|failed after' "$ERR"; }
ok 'a hang is told' wait_for hang_is_told
finish

start --local 4 --hang-after 1s "$BUILD/tests/clients/hanging" sleep 2
ok 'a hang is told that ends no run' wait_for hang_is_told
id=$(run_id)
ok 'its trace is kept while it goes on' wait_for has_trace "$id"
hn report --json "$id"
is 'the report of a run that goes on' "$(field "r['verdict'], r['code']")" "('', None)"
hn report --html page.html "$id"
ok 'and its page' grep -qE "<body><h1>no verdict yet: the run has gone on for [0-9.]+s, hangs for [0-9.]+s; next: hnlaunch top $id or hnlaunch why $id</h1>" page.html
ok 'which is well-formed, too' check_page page.html
"$HNLAUNCH" stop --grace 1s "$id" 2>/dev/null
finish
hn report --json "$id"
is 'after the order to stop: the rank that did not come' "$(field "d['rank']")" 2
is 'each of its records counts once' "$(python3 -c "import re, sys
print(len(set(re.findall(rb'^(\d+) 0 -?\d+ \d+ \d+$', open(sys.argv[1], 'rb').read(), re.M))))" "$(folder "$id")/trace")" 2

# --- records that are not whole ---------------------------------------------------------------------

hn --log-dir none --local 1 false
id=$(run_id)
hn_exits 'a run without records' 66 report "$id"
has 'is not there' "$ERR" 'error[HN801]'
hn --local 2 --label none "$failing" crash 1 5 1
id=$(run_id)
truncate -s -7 "$(folder "$id")/trace"
truncate -s -20 "$(folder "$id")/events.ndjson"
hn_exits 'records that are cut are read as far as they go' 0 report "$id"
sed -i.all 's/"world_size": 2/"world_size": 1/; s/^ *1$/0/' "$(folder "$id")/run.json"
hn_exits 'a rank that run.json does not have is left out' 0 report "$id"
has 'of the report' "$OUT" ': 1 node, 1 rank,'
hn_exits 'and of the logs' 0 logs "$id"
mv "$(folder "$id")/run.json.all" "$(folder "$id")/run.json"
rm "$(folder "$id")/trace"
hn_exits 'a missing trace is none' 0 report "$id"
has 'which is no matter of an option' "$OUT" 'traces: none: they could not be fetched or kept'
rm "$(folder "$id")/events.ndjson"
hn_exits 'without events there is no report' 66 report "$id"
has 'which is told' "$ERR" "error[HN831]: run $id has no report: cannot read "
echo '[' >"$(folder "$id")/events.ndjson"
head -c 100000 /dev/urandom >"$(folder "$id")/trace"
hn_exits 'what is no record is left out' 0 report "$id"

done_testing
