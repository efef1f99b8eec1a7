#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --nodes MIN:MAX on nodes with sshd: a job that loses a node goes on with the others, from MIN on, and a training of PyTorch
# goes on from its snapshot in the smaller world. So it is behind a tree, where spare hosts come first.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

lab_up 6 1
sed -n 1,4p "$TMP/hosts.txt" >four.txt
bad=$PWD/bad
placed() { # ATTEMPT EPOCH
    grep "^attempt $1 epoch $2 " "$OUT" | cut -d' ' -f6,8,10 | sort -n | xargs
}
lines_of() { [[ $(grep -c "$1" "$OUT") == "$2" ]]; } # PATTERN N

torch_words torch_elastic.py "$PWD/snapshot.pt" 2 4
lab_start -H four.txt --nodes 2:4 --restart auto --bad-hosts "$bad" --node-timeout 10s --label none "${words[@]}"
ok 'two epochs on four nodes' wait_for lines_of 'attempt 0 epoch 2 ' 4
lab crash node002
exits 'a node without power: the training ends well' 0 finish
has 'one line tells it' "$ERR" 'hnlaunch: going on without node002, with 3 ranks on 3 nodes'
is 'it begins behind the snapshot' "$(grep -c 'attempt 1 epoch [12] ' "$OUT")" 0
is 'the others keep their order in a smaller world' "$(placed 1 3)" '0 3 node001 1 3 node003 2 3 node004'
has 'and all of them end content' "$OUT" 'ok on 3 ranks'
has 'the host is listed' "$bad" '"host":"node002"'
lab boot node002

lab_hn -H "$TMP/hosts.txt" --nodes 2:5 --bad-hosts "$bad" --label none sh -c 'echo "$RANK $(hostname)"'
has 'MIN:MAX leaves a bad host out, in one line' "$ERR" 'without node002, put out by earlier runs'
is 'and takes MAX of the others' "$(sort -n "$OUT" | xargs)" '0 node001 1 node003 2 node004 3 node005 4 node006'
rm "$bad"

say='echo "$HN_RESTART $RANK/$WORLD_SIZE $(hostname)"; [ $HN_RESTART = 1 ] || exec sleep 60'
say_placed() { sed -n 's/^1 //p' "$OUT" | sort -n | xargs; }
lab_start -H four.txt --nodes 3:4 --max-restarts 1 --node-timeout 3s --label none sh -c "$say"
ok '--max-restarts: four ranks are up' wait_for lines_are "$OUT" 4
lab crash node001
exits 'the node of rank 0 does not return: the job goes on without it' 0 finish
has 'after a wait' "$ERR" 'waiting 3s for the return of 1 lost node'
is 'on the others' "$(say_placed)" '0/3 node002 1/3 node003 2/3 node004'
lab boot node001

# node001 is the parent of node002 and node004, and node002 of node003. The last two hosts stand by.
lab_start --tree 2 -H "$TMP/hosts.txt" --spares 2 --nodes 3:4 --restart auto --bad-hosts "$bad" --node-timeout 3s --label none \
    sh -c 'echo "$HN_RESTART $RANK/$WORLD_SIZE $(hostname)"; [ $HN_RESTART = 3 ] || exec sleep 60'
tree_placed() { sed -n "s/^$1 //p" "$OUT" | sort -n | xargs; }
ok 'four ranks are up behind a tree' wait_for lines_of '^0 ' 4
lab crash node001
ok 'its root is lost: four ranks again' wait_for lines_of '^1 ' 4
is 'a spare host has the place of the root' "$(tree_placed 1)" '0/4 node005 1/4 node002 2/4 node003 3/4 node004'
lab crash node003
ok 'a leaf is lost: four ranks again' wait_for lines_of '^2 ' 4
is 'the other spare host has its place' "$(tree_placed 2)" '0/4 node005 1/4 node002 2/4 node006 3/4 node004'
lab crash node002
exits 'no spare host is left: the job ends well' 0 finish
is 'with one node less' "$(tree_placed 3)" '0/3 node005 1/3 node006 2/3 node004'
for i in 1 2 3; do lab boot "node00$i"; done
rm "$bad"

# The host that stands by does not answer.
there=$(lab hosts etc | awk '$2 == "node004" { print $1 }')
lab run ip neigh replace "$there" lladdr 02:00:00:00:00:99 dev br0 nud permanent
lab_start -H four.txt --nodes 3 --spares auto --restart auto --bad-hosts none --node-timeout 3s --connect-timeout 60s --label none sh -c "$say"
ok 'three ranks are up' wait_for lines_are "$OUT" 3
lab exec node001 pkill -KILL -x 'agent-.*' || true
ok 'a host that stands by is connected' wait_for grep -q 'node004 takes the place of node001' "$ERR"
kill -INT "$PID"
begin=$SECONDS
finish
ok 'Ctrl-C ends that' test $((SECONDS - begin)) -lt "$(scaled 20)"
exits 'the first cause stands' 125
lacks 'no spare host is missed' "$ERR" HN317
is 'there was no other attempt' "$(grep -c '^1 ' "$OUT")" 0
lab run ip neigh del "$there" dev br0

mkdir bin
cp /bin/sh bin/prog
lab exec node003 mount -t tmpfs lab "$PWD/bin"
lab_hn -H four.txt --nodes 3:4 --label none "$PWD/bin/prog" -c 'echo "$RANK/$WORLD_SIZE $(hostname)"'
exits 'the program is missing on one node: the job runs without it' 0
has 'which is told' "$ERR" 'attempt 2: left out: the program runs on the other nodes'
is 'on the others' "$(grep /3 "$OUT" | sort -n | xargs)" '0/3 node001 1/3 node002 2/3 node004'
exits 'if four are needed: 127' 127 lab_hn -H four.txt --nodes 4:4 --label none "$PWD/bin/prog" -c true
lab_nothing_left 'nothing is left'
done_testing
