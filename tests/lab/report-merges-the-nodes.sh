#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The traces of nodes reached over ssh, directly and through a tree, come home and are put on one clock: the rank that
# others wait for is named across nodes, a slow node is found, and a lost node costs its own trace only.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

python3 -c 'import json' || skip_all 'needs python3'
lab_up 5 2
failing=$BUILD/tests/clients/failing
run_id() { sed -n 's/^hnlaunch: run \([^:]*\):.*/\1/p' "$ERR" | head -n 1; }
field() { python3 -c "import json, sys
r = json.load(open('$OUT'))
d = r['divergence']
print(eval(sys.argv[1]))" "$1"; }
report() { # of the last run
    id=$(run_id)
    run "$HNLAUNCH" report --json "$id"
}

for tree in '' '--tree 1' '--tree 2'; do
    # shellcheck disable=SC2086
    exits "${tree:-directly}: a rank loses patience" 9 lab_hn -H "$TMP/hosts.txt" $tree --label none "$failing" sleep 5 20 5
    report
    is "${tree:-directly}: all nodes have sent their trace" "$(field "[n['trace'] for n in r['nodes']]")" '[True, True, True, True, True]'
    is "${tree:-directly}: the rank that did not come is named" "$(field "d['rank'], d['host']")" "(5, 'node003')"
    is "${tree:-directly}: seconds before the failure" "$(field "r['failed_us'] - d['us'] > 2000000")" True
    # Below another node a clock may not have been compared yet: then it is known from the agent's first message.
    is "${tree:-directly}: what is known of the clocks is told" "$(field "all(0 <= (n['clock_error_us'] or 0) < 1000000 for n in r['nodes'])")" True
    is "${tree:-directly}: each node has a start" "$(field "all(n['connected_us'] < n['ready_us'] < n['started_us'] for n in r['nodes'])")" True
done
run "$HNLAUNCH" report "$id"
has 'the text names the nodes of the critical path' "$OUT" 'critical path: connect node00'
is 'and has a row for each' "$(grep -c '^node00[1-5]  *C' "$OUT")" 5
has 'and how exact the clocks are' "$OUT" 'traces: from all 5 nodes, clocks within '

exits 'a slow node harms no run' 0 lab_hn -H "$TMP/hosts.txt" --ppn 1 --trace --label none "$failing" slow 3 60 20
report
is 'but it is named' "$(field "r['slow_node']['host'], r['slow_node']['percent'] > 10, r['slow_node']['steps'] >= 60")" "('node004', True, True)"
lab_hn -H "$TMP/hosts.txt" --ppn 1 --trace --label none "$failing" end 3 60 20
report
is 'no node is slow where none is' "$(field "r['slow_node']")" None

lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none "$failing" end 0 100000 10
started() { [[ $(grep -c started "$OUT") = 10 ]]; }
ok 'all ranks take steps' wait_for started
lab crash node002
finish
report
is 'a lost node costs its own trace' "$(field "[n['trace'] for n in r['nodes']]")" '[True, False, True, True, True]'
is 'it is marked' "$(field "[n['host'] for n in r['nodes'] if n['lost']]")" "['node002']"
run "$HNLAUNCH" report "$id"
has 'also in the text' "$OUT" 'lost'

lab boot node002
lab_start -H "$TMP/hosts.txt" --nodes 4 --spares auto --restart auto --bad-hosts none --node-timeout 3s --label none --json \
    sh -c '[ $HN_RESTART = 0 ] || exit 0; exec sleep 600'
ranks_run() { [[ $(grep -c '"ev":"rank.started"' "$OUT") = 8 ]]; }
ok 'ranks run on four nodes' wait_for ranks_run
lab crash node003
exits 'they run again with a spare host' 0 finish
report
is 'the first start has the nodes of its time' \
    "$(field "[s['attempt'] for s in r['starts']], any(p['host'] == 'node005' for p in r['phases'])")" '([1, 2], False)'
is 'the second one connects the spare host' "$(field "[(p['phase'], p['host']) for p in r['starts'][1]['phases'][:2]]")" \
    "[('connect', 'node005'), ('agent', 'node005')]"
is 'and waits until ranks of the lost one must have ended' "$(field "r['starts'][1]['ordered_us'] - r['starts'][1]['from_us'] > 1000000")" True
run "$HNLAUNCH" report "$id"
ok 'the text has a line for it' grep -qE '^  attempt 2: after [0-9.]+s of waiting, ranks ran [0-9.]+m?s later: connect node005 ' "$OUT"
is 'and a row for each host of the first' "$(grep -oE '^node00[1-5]  *C' "$OUT" | cut -c 7 | xargs)" '1 2 3 4'

nothing_left 'nothing is left'
done_testing
