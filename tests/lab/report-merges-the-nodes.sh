#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The traces of nodes reached over ssh, directly and through a tree, come home and are put on one clock: the rank that
# others wait for is named across nodes, a slow node is found, and a lost node costs its own trace only.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
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
    lab_hn -H "$TMP/hosts.txt" $tree --label none "$failing" sleep 5 20 5
    exits "${tree:-directly}: a rank loses patience" 9
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

lab_hn -H "$TMP/hosts.txt" --ppn 1 --trace --label none "$failing" slow 3 60 20
exits 'a slow node harms no run' 0
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

nothing_left 'nothing is left'
done_testing
