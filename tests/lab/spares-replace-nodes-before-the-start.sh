#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node that fails before any rank ran is replaced by a spare host, or left out (--spares, --nodes MIN:MAX): each way to
# fail has one line, and the ranks of the others stay where they are. Without a spare host the error is that of today.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_PRIVATE='/dev/shm /run /var/tmp'
lab_up 6 2
hosts=$TMP/hosts.txt
first=$LAB_NET.0.2
say='echo rank $RANK of $WORLD_SIZE on $(hostname)'

on_hosts() { # the hosts by rank
    sort -t' ' -k2n "$OUT" | awk '{ print $6 }' | uniq | xargs
}
launch() { lab_hn --label none "$@" sh -c "$say"; }
replaced() { # NAME OLD NEW REASON HOSTS
    exits "$1: the job runs" 0
    has "$1: one line tells it" "$ERR" "hnlaunch: $3 takes the place of $2: $4"
    is "$1: the place of the ranks stays" "$(on_hosts)" "$5"
}

exits 'nothing fails: 0' 0 launch -H "$hosts" --spares 2
is 'the last two hosts have no ranks' "$(on_hosts)" 'node001 node002 node003 node004'
lacks 'nothing is told' "$ERR" 'takes the place'
lab_nothing_left 'the agents of spare hosts end, too'

lab sshd node002 stop
launch -H "$hosts" --spares 2
replaced 'no ssh' node002 node005 'connection refused on port 22' 'node001 node005 node003 node004'
has 'the phases count what came' "$ERR" 'hnlaunch: connect 5/6 in'
launch -H "$hosts" -n 4 --spares auto --json
is 'auto: one event' "$(grep -c '"ev":"node.replaced".*"host":"node002".*"text":"node003"' "$OUT")" 1
lacks 'auto: hosts that are not needed are not connected' "$OUT" '"host":"node004"'
lab sshd node003 stop
exits 'auto: the host in place of a node fails, too: the job runs' 0 launch -H "$hosts" -n 4 --spares auto
is 'auto: on the one after it' "$(on_hosts)" 'node001 node004'
is 'auto: a line for each' "$(grep -o 'node00[0-9] takes the place of node00[0-9]' "$ERR" | xargs)" \
    'node003 takes the place of node002 node004 takes the place of node003'
lab sshd node003 start
launch -H "$hosts" --nodes 3 --spares auto
replaced 'auto' node002 node004 'connection refused' 'node001 node004 node003'
has 'auto: in the end all are connected' "$ERR" 'hnlaunch: connect 3/3 in'
sed '$s/$/ spare/' "$hosts" >spare.txt
launch -H spare.txt --spares auto
replaced 'the word spare' node002 node006 'connection refused' 'node001 node006 node003 node004 node005'
exits 'without the option a spare host replaces no node: 68' 68 launch -H spare.txt
lab_start -H "$hosts" --max-restarts 1 --node-timeout 3s --nodes 1 --exclude node002 --spares auto --label none sh -c "$say; [ \$HN_RESTART = 1 ] || exec sleep 60"
ok 'two ranks are up' wait_for lines_are "$OUT" 2
lab crash node001
exits 'a host that stands by unconnected replaces a lost node, too' 0 finish
has 'on the next host' "$OUT" 'on node003'
lab boot node001

# Of the hosts that stand by the first one cannot be reached, either.
lab sshd node003 stop
lab_start -H "$hosts" --max-restarts 1 --node-timeout 3s --nodes 1 --exclude node002 --spares auto --label none sh -c "$say; [ \$HN_RESTART = 1 ] || exec sleep 60"
ok 'two ranks are up once more' wait_for lines_are "$OUT" 2
lab crash node001
exits 'the next host that stands by is tried' 0 finish
has 'on that one' "$OUT" 'on node004'
lab boot node001
lab sshd node003 start

lab sshd node001 stop
exits 'two fail, with one spare host: 68' 68 launch -H "$hosts" --spares 1
has 'the error of today' "$ERR" 'error[HN201]: 2 nodes cannot be reached'
has 'and the way out' "$ERR" "--exclude 'node[001-002]'"
lacks 'none is replaced in vain' "$ERR" 'takes the place'
exits 'two fail, and one stands by unconnected: 68' 68 launch -w node001,node002,node003 --nodes 2 --spares auto
has 'the way out names both' "$ERR" "leave out all that failed: --exclude 'node[001-002]'"
exits 'fewer nodes are enough' 0 launch -H "$hosts" --spares 1 --min-nodes 4
has 'one is replaced' "$ERR" 'node006 takes the place of node001'
has 'and one left out' "$ERR" 'starting without node002: connection refused'
is 'the ranks are dense' "$(on_hosts)" 'node006 node003 node004 node005'
is 'WORLD_SIZE tells how many there are' "$(grep -c 'of 8' "$OUT")" 8
launch -H "$hosts" --nodes 2:4
is 'MIN:MAX takes MAX hosts, if they come' "$(on_hosts)" 'node003 node004'
exits 'with fewer than MIN: 68' 68 launch -H "$hosts" --nodes 3:4
lab sshd node001 start
lab sshd node002 start

sed 's/node002/nosuchhost/' "$hosts" >changed.txt
launch -H changed.txt --spares 2
replaced 'no name' nosuchhost node005 '' 'node001 node005 node003 node004'
sed 's/node003/& user=nobodyhere/' "$hosts" >changed.txt
launch -H changed.txt --spares 2
replaced 'no login' node003 node005 '' 'node001 node002 node005 node004'
sed 's/node003/& gpus=0,1/' "$hosts" >changed.txt
launch -H changed.txt --spares 2
replaced 'no such GPU' node003 node005 '' 'node001 node002 node005 node004'
sed 's/$/ gpus=0,1/' "$hosts" >changed.txt
exits 'no node has such a GPU: 69' 69 launch -H changed.txt --spares 2
lacks 'then none is replaced' "$ERR" 'takes the place'

# The agent is killed as soon as it runs.
lab exec node004 sh -c "mkdir -p $TMP/fake && printf '#!/bin/sh\nkill -KILL \$\$\n' >$TMP/fake/sh && chmod +x $TMP/fake/sh && mount --bind $TMP/fake/sh /bin/sh"
launch -H "$hosts" --spares 2
replaced 'no agent' node004 node005 '' 'node001 node002 node003 node005'
lab exec node004 umount /bin/sh

head -c 3000000 /dev/urandom >file
for i in 1 2 3 4 5 6; do
    lab exec "node00$i" mount -t tmpfs -o size=64m lab "$TMP/cache"
done
lab exec node002 mkdir -p /run/user/0
for place in "$TMP/cache" /tmp/hnlaunch-stage-0 /var/tmp /dev/shm /run/user/0; do
    lab exec node002 sh -c "mkdir -p $place && mount -t tmpfs -o size=2m lab $place"
done
launch -H "$hosts" --spares 2 --push file
replaced 'no room for the files' node002 node005 'cannot store the pushed files' 'node001 node005 node003 node004'
launch -H "$hosts" --nodes 4 --spares auto --push file --json
is 'by a host that stands by, too, and the node that failed has the event' \
    "$RC $(grep -o '"ev":"node.failed","node":[0-9]*,"host":"[^"]*"' "$OUT" | cut -d'"' -f10 | xargs)" '0 node002'
exits 'no room: left out' 0 launch -w node001,node002 --min-nodes 1 --push file
is 'one node runs' "$(on_hosts)" node001
launch -H "$hosts" --exclude node003 --spares 4 --push file
is 'the only node is replaced, too' "$(on_hosts)" node001
exits 'no room, and no spare host: 69' 69 launch -w node001,node002 --min-nodes 2 --push file
has 'the error of today about files' "$ERR" 'error[HN235]'
has 'with the way out' "$ERR" "--exclude 'node002'"
for place in "$TMP/cache" /tmp/hnlaunch-stage-0 /var/tmp /dev/shm /run/user/0; do
    lab exec node002 umount "$place"
done

lab exec node003 ip route add unreachable "$first"
launch -H "$hosts" --spares 2
replaced 'no way to the store' node003 node005 'cannot reach the store on node001: no route' 'node001 node002 node005 node004'
for i in 2 4; do
    lab exec "node00$i" ip route add unreachable "$first"
done
launch -H "$hosts" --spares 2
replaced 'most have no way to the store' node001 node005 '3 of 3 nodes cannot reach the store' 'node005 node002 node003 node004'
for i in 2 3 4; do
    lab exec "node00$i" ip route del unreachable "$first"
done

mkdir bin
cp /bin/sh bin/prog
lab exec node003 mount -t tmpfs lab "$PWD/bin"
exits 'the program is missing on one node: the job runs' 0 lab_hn -H "$hosts" --label none --spares 2 "$PWD/bin/prog" -c "$say"
has 'the node is replaced' "$ERR" 'node005 takes the place of node003'
is 'on the other node' "$(grep -c node005 "$OUT")" 2
exits 'so it is by a host that stands by' 0 lab_hn -H "$hosts" --label none --nodes 4 --spares auto "$PWD/bin/prog" -c "$say"
has 'with its line' "$ERR" 'node005 takes the place of node003'
rm bin/prog
exits 'the program is missing on all nodes: 127' 127 lab_hn -H "$hosts" --label none --spares 2 "$PWD/bin/prog"
lacks 'none takes a place then' "$ERR" 'takes the place'
lab_nothing_left 'nothing is left'
done_testing
