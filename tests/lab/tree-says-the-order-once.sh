#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree K: what the orders to all nodes have in common leaves the head K times, larger than the window of a branch
# or not, and every rank has it byte for byte; another attempt gets it again.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 9 1
head -n 3 "$TMP/hosts.txt" >three.txt
head -n 4 "$TMP/hosts.txt" >four.txt

for i in 1 2 3 4 5 6 7 8; do
    export "BIG$i=$(head -c 60000 /dev/urandom | base64 -w 0)"
done
what='printf %s "$BIG1$BIG2$BIG3$BIG4$BIG5$BIG6$BIG7$BIG8" | md5sum | cut -c1-32'
sum=$(bash -c "$what")

launch() { # OPTION...: sets BYTES
    local begin
    begin=$(head_sent)
    lab_hn --label none "$@" bash -c "$what"
    BYTES=$(($(head_sent) - begin))
}

launch -H "$TMP/hosts.txt" # and uploads the agent
exits 'a large environment without a tree' 0
for nodes in three.txt "$TMP/hosts.txt"; do
    exits "a large environment through a tree of ${nodes##*/}" 0 launch --tree 2 -H "$nodes"
    is 'every rank has it' "$(sort "$OUT" | uniq -c | xargs)" "$(wc -l <"$nodes") $sum"
    few=${few-$BYTES}
done
echo "# bytes sent: $few to 3 nodes, $BYTES to 9"
ok 'it leaves the head as often as there are nodes that the head speaks to' test "$few" -gt 1280000
ok 'and no more often when there are three times as many nodes' test $((BYTES * 2)) -lt $((few * 3))

exits 'a large environment through a chain' 0 launch --tree 1 -H four.txt
is 'every rank has it' "$(sort "$OUT" | uniq -c | xargs)" "4 $sum"
ok 'it leaves the head once' test "$BYTES" -lt 1280000

# Who fails ends the others, so it waits until they have said theirs.
last='echo >said-$RANK.$HN_RESTART; until [ "$RANK" != 3 ] || { [ -s said-0.0 ] && [ -s said-1.0 ] && [ -s said-2.0 ]; }; do
    sleep 0.1
done; [ $RANK$HN_RESTART != 30 ]'
exits 'another attempt' 0 lab_hn --label none --tree 1 -H four.txt --max-restarts 1 bash -c "$what; $last"
is 'has it, too' "$(sort "$OUT" | uniq -c | xargs)" "8 $sum"

# Who has no ranks itself passes it on all the same: node003, which has too few slots, is the parent of node004.
printf 'node00%d slots=%d\n' 1 1 2 2 3 1 4 2 >odd.txt
lab_start --label none --tree 2 -H odd.txt -n 3 --max-restarts 1 bash -c "$what"'; [ $HN_RESTART = 1 ] || exec sleep 60'
ok 'three ranks are up' wait_for lines_are "$OUT" 3
lab exec node002 pkill -KILL -x 'agent-.*' || true
exits 'another attempt without one of the nodes' 0 finish
has 'another takes its place' "$ERR" 'node004 takes the place of node002'
is 'and has it from one without ranks' "$(sort "$OUT" | uniq -c | xargs)" "6 $sum"
lab_nothing_left 'nothing is left'
done_testing
