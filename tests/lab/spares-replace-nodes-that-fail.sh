#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that cannot be reached before the start are replaced by spare hosts (--spares), or left out (--min-nodes);
# ranks keep their order. With too few hosts the launch ends as without these options.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 5 2
hosts=$TMP/hosts.txt
ranks() { lab_hn "$@" --label none sh -c 'echo "$RANK/$WORLD_SIZE $NODE_RANK $(hostname)"'; }
# The ranks' lines, sorted by rank.
placed() { sort -n "$OUT" | tr '\n' ';'; }

exits 'a launch without a failure works' 0 ranks -H "$hosts" --spares 2
is 'the last two hosts have no ranks' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node002;3/6 1 node002;4/6 2 node003;5/6 2 node003;'
lacks 'no host takes a place' "$ERR" 'takes the place'

lab sshd node002 stop
exits 'a node without sshd is replaced' 0 ranks -H "$hosts" --spares 2
is 'the spare host has its ranks' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node004;3/6 1 node004;4/6 2 node003;5/6 2 node003;'
has 'one line says why' "$ERR" 'node004 takes the place of node002: connection refused on port 22'

exits 'a restart keeps the host that took a place' 0 lab_hn -H "$hosts" --spares 2 --max-restarts 1 --label none --grace 1s \
    sh -c '[ "$HN_RESTART" = 1 ] || exit 3; echo "$RANK/$WORLD_SIZE $NODE_RANK $(hostname)"'
is 'with the same ranks' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node004;3/6 1 node004;4/6 2 node003;5/6 2 node003;'

sed 's/^node001/node-nope/' "$hosts" >nope.txt
exits 'an unknown name is replaced, too' 0 ranks -H nope.txt --spares 2
is 'rank 0 moves to the first spare host' "$(placed)" \
    '0/6 0 node004;1/6 0 node004;2/6 1 node005;3/6 1 node005;4/6 2 node003;5/6 2 node003;'
is 'with a line for each' "$(grep -c 'takes the place of' "$ERR")" 2

sed 's/^node003.*/& user=stranger/; s/^\(node005.*\)/\1 spare/' "$hosts" >login.txt
exits 'a refused login is replaced, by a host marked spare' 0 ranks -H login.txt --spares 1 --nodes 3
is 'in the order of the list' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node004;3/6 1 node004;4/6 2 node005;5/6 2 node005;'

ranks -H login.txt --min-nodes 4
ok 'failures of two kinds: the code of a host' test "$RC" = 68 -o "$RC" = 77
has 'one next step leaves out both nodes' "$ERR" "leave out all that failed: --exclude 'node[002-003]'"

ranks -H "$hosts" --spares 2 --json
has 'the event names both' "$OUT" '"ev":"node.replaced","node":1,"host":"node002","text":"node004"'

sed 's/^node004/node-nope/' "$hosts" >spare.txt
exits 'the last host replaces a node' 0 ranks -H spare.txt --spares 1 --exclude node002
has 'an unknown name, again' "$ERR" 'node005 takes the place of node-nope'

ranks -H spare.txt --spares 1
ok 'too few spare hosts: the code of the failure' test "$RC" = 68
has 'the failures are told' "$ERR" node-nope
has 'and how many spare hosts there were' "$ERR" '2 of 4 nodes failed, and 1 spare host answered'
has 'the next step leaves them out' "$ERR" '--exclude'
lacks 'nothing was replaced' "$ERR" 'takes the place'
verdict_has 'the verdict says that nothing was started' 'nothing was started' "(exit $RC)"

exits 'three nodes are enough' 0 ranks -H spare.txt --spares 1 --min-nodes 3
is 'ranks have no gaps' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node005;3/6 1 node005;4/6 2 node003;5/6 2 node003;'
has 'the node that is left out is told' "$ERR" 'starting without node-nope: '

exits '--min-nodes works without spare hosts' 0 ranks -H spare.txt --min-nodes 3
is 'the others run' "$(placed)" \
    '0/6 0 node001;1/6 0 node001;2/6 1 node003;3/6 1 node003;4/6 2 node005;5/6 2 node005;'
ranks -H spare.txt --min-nodes 4
ok 'below the least number nothing starts' test "$RC" = 68

awk '/^node005/ { sub(/slots=2/, "slots=1") } { print }' "$hosts" >small.txt
ranks -H small.txt --spares 1
ok 'a spare host with fewer slots replaces no node' test "$RC" = 68
has 'and the note says so' "$ERR" 'as many slots'

sed 's/^node005/node-nope/' "$hosts" >dead.txt
exits 'a spare host that fails is left out' 0 ranks -H dead.txt --spares 1 --exclude node002
has 'which is told' "$ERR" 'starting without the spare host node-nope'

ranks -H "$hosts"
ok 'without the options the launch ends' test "$RC" = 68
lacks 'and no spare host takes its place' "$ERR" 'takes the place'

for args in '--spares 5' '--spares 2 --nodes 4' '--min-nodes 6' '--spares 2 --min-nodes 4'; do
    # shellcheck disable=SC2086
    ranks -H "$hosts" $args
    exits "too few hosts for $args: 64" 64
    has 'it is HN144' "$ERR" 'HN144'
done
lab_nothing_left 'nothing is left'
done_testing
