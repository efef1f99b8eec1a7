#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --ends-with rank0 the exit of rank 0 with 0 ends the ranks of all nodes, through a tree, too, and whatever becomes of
# them meanwhile.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2
# Rank 0 ends when a file is there, the others serve.
serve='echo up; [ $HN_RANK = 0 ] || exec sleep 600; until [ -e "$GO" ]; do sleep 0.05; done'

for way in '' '--tree 1'; do
    rm -f "$TMP/go"
    # shellcheck disable=SC2086
    lab_start $way -H "$TMP/hosts.txt" --per-node --ends-with rank0 --label none -x GO="$TMP/go" sh -c "$serve"
    ok "4 processes are up ($way)" wait_for lines_are "$OUT" 4
    begin=$SECONDS
    : >"$TMP/go"
    exits 'the job ends with that of the first node: 0' 0 finish
    ok 'at once' test $((SECONDS - begin)) -lt "$(scaled 10)"
    verdict_has 'the others were stopped' 'rank 0 exited 0 in' '3 ranks were stopped'
    lab_nothing_left 'nothing is left on the nodes'
done

# A node that is lost after the success is none of the job's failures.
rm -f "$TMP/go"
lab_start -H "$TMP/hosts.txt" --per-node --ends-with rank0 --grace 60s --node-timeout 1s --label none -x GO="$TMP/go" \
    sh -c 'trap "echo deaf" TERM; echo up; if [ $HN_RANK = 0 ]; then until [ -e "$GO" ]; do sleep 0.05; done; exit 0; fi
        while :; do sleep 0.05; done'
ok '4 processes are up again' wait_for lines_are "$OUT" 4
: >"$TMP/go"
ok 'all of them are told to end' wait_for lines_are "$OUT" 7
for node in node002 node003 node004; do
    lab exec $node pkill -KILL -x 'agent-.*' || true
done
exits 'nodes that are lost while they are stopped: 0' 0 finish
verdict_has 'the success stays' 'finished: rank 0 exited 0 in'
lab_nothing_left 'nothing is left then, too'

rm -f "$TMP/go"
lab_start -H "$TMP/hosts.txt" --per-node --ends-with rank0 --node-timeout 1s --label none -x GO="$TMP/go" sh -c "$serve"
ok '4 processes are up for a loss before it' wait_for lines_are "$OUT" 4
lab exec node003 pkill -KILL -x 'agent-.*' || true
exits 'a node that is lost before is a failure: 125' 125 finish
verdict_has 'and named' node003
done_testing
