#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --pull brings files home from all nodes, directly and through a tree, from pushed folders, also after a failure; from
# a node that is lost nothing comes, and that is told.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

mkdir "$TMP/cache"
lab_up 4 1
for node in node001 node002 node003 node004; do
    lab exec "$node" mount -t tmpfs -o size=256m lab "$TMP/cache"
done

write='mkdir -p /dev/shm/out/sub; cd /dev/shm/out; echo "of $RANK" >sub/who; yes "$RANK" | head -c 20000000 >large; for i in $(seq 300); do echo "$i" >"f$i"; done; touch "only$RANK"'
for tree in '' '--tree 1' '--tree 3'; do
    rm -rf home
    # shellcheck disable=SC2086
    lab_hn -H "$TMP/hosts.txt" $tree --pull /dev/shm/out:home --pull /dev/shm/out/only2:one sh -c "$write"
    exits "${tree:-directly}: 0" 0
    for rank in 0 1 2 3; do
        at=home/node00$((rank + 1))/out
        ok "${tree:-directly}: rank $rank: all files are there" test "$(cat $at/sub/who) $(find $at -type f | wc -l)" = "of $rank 303"
        ok "${tree:-directly}: rank $rank: they are whole" cmp <(yes "$rank" | head -c 20000000) $at/large
    done
    is "${tree:-directly}: what one node has comes from that one" "$(find one -type f)" one/node003/only2
    rm -r one
done

mkdir data
echo input >data/in
lab_hn -H "$TMP/hosts.txt" --push data --pull data --pull result.txt sh -c 'cat data/in >result.txt; echo "$RANK" >>data/made; [ "$RANK" != 2 ] || exit 7'
exits 'pushed folders, and a failure' 7
is 'results beside pushed files come' "$(cat pulled/*/node003/result.txt pulled/*/node003/data/in pulled/*/node003/data/made | xargs)" 'input input 2'
ok 'that they stay on the nodes, too, is told' grep -q '^warning\[HN314\]: .*: files that ranks wrote .* are left in .*, those of --pull, too$' "$ERR"

rm -rf pulled
lab_start -H "$TMP/hosts.txt" --node-timeout 10s --pull /dev/shm/who sh -c "echo \$RANK >/dev/shm/who; touch $TMP/up\$RANK; exec sleep 600"
ok 'all ranks are up' wait_for test -e "$TMP/up0" -a -e "$TMP/up1" -a -e "$TMP/up2" -a -e "$TMP/up3"
lab crash node002
finish
has 'a node is lost' "$ERR" 'lost node002'
has 'its files are not there, which is told' "$ERR" 'node002: the node was lost'
is 'those of the others come' "$(cat pulled/*/*/who | xargs)" '0 2 3'
lab boot node002
lab exec node002 mount -t tmpfs -o size=64m lab "$TMP/cache"

# A node that is cut off while it sends: slow enough to be sure.
rm -rf pulled
lab run tc qdisc replace dev br0 root tbf rate 1gbit burst 1m latency 100ms
lab exec node003 sh -c 'head -c 100000000 /dev/zero >/dev/shm/large'
lab exec node003 tc qdisc replace dev eth0 root tbf rate 8mbit burst 64k latency 200ms
lab_start -H "$TMP/hosts.txt" --pull /dev/shm/large true
ok 'a large file is on its way' wait_for sh -c 'ls pulled/*/node003/.hnlaunch-pull'
lab exec node003 pkill -KILL -x 'agent-.*'
exits 'its agent is killed: 73' 73 finish
has 'which is told' "$ERR" 'node003: the node was lost'
is 'no half of a file is left' "$(find pulled -type f)" ''
nothing_left 'nothing is left'
done_testing
