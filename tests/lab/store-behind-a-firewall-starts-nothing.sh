#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A firewall between two nodes is told before any rank starts: the pair, the interface, the reason, and
# the network that would do. Ctrl-C and lost nodes end the waiting as ever.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 1
first=$LAB_NET.0.2

swallow() { # NODE: what it sends to node001 gets lost
    lab exec "$1" ip neigh replace "$first" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

told() { has_rows "$1" -E "${@:2}"; } # NAME LINE...

lab exec node003 ip route add unreachable "$first"
exits 'a node without a route to the store: 69' 69 lab_hn -H "$TMP/hosts.txt" touch "$TMP/started"
told 'the pair and the reason' "error\[HN401\]: node003 cannot reach the store on node001" \
    "node003 cannot open $first:[0-9]+: no route" "note: 2 other nodes reached $first:[0-9]+ in"
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 69)'
lab exec node003 ip route del unreachable "$first"
lab exec node003 ip route add prohibit "$first"
swallow node004
exits 'two nodes, for different reasons: 69' 69 lab_hn -H "$TMP/hosts.txt" touch "$TMP/started"
told 'both with their reasons' '2 of 3 nodes cannot reach the store on node001' \
    "node003 cannot open $first:[0-9]+: forbidden" "node004 cannot open $first:[0-9]+: timed out \(over eth0\)"
lab exec node003 ip route del prohibit "$first"

for i in 1 2 3 4; do
    lab exec "node00$i" ip addr add "192.168.78.$i/24" dev eth0
done
lab exec node004 ip neigh replace 192.168.78.1 lladdr 02:00:00:00:00:99 dev eth0 nud permanent
lab_hn -H "$TMP/hosts.txt" --iface "$LAB_NET.0.0/16" touch "$TMP/started"
told 'another network that both nodes have is suggested' 'try --iface 192\.168\.78\.0/24' \
    "note: --iface $LAB_NET.0.0/16 leaves no other address"
exits 'with endpoints on loopback no node needs to reach another: 0' 0 lab_hn -H "$TMP/hosts.txt" --store-listen loopback true

# node004, whose packets get lost, tries; node002 has got through and told it.
tried() {
    lab exec node004 ss -Htn state syn-sent dst "$first" | grep .
}
dials_of_2() { lab exec node002 awk '/^Tcp: [0-9]/ { print $6 }' /proc/net/snmp; }
has_tried() {
    tried && (($(dials_of_2) > dials)) && ! lab exec node002 ss -Htn state established dst "$first" | grep .
}
try() {
    dials=$(dials_of_2)
    lab_start -H "$TMP/hosts.txt" --node-timeout 3s -v touch "$TMP/started"
    ok 'nodes try to reach the store' wait_for has_tried
    sleep 0.5
}

try
kill -INT "$PID"
begin=$SECONDS
exits 'Ctrl-C while nodes are tried: 130' 130 finish
ok 'at once' test $((SECONDS - begin)) -lt "$(scaled 8)"
lab_nothing_left 'no agent is left'

try
lab freeze node002
exits 'nodes that still cannot reach it: 69, whatever else hangs' 69 finish
lab thaw node002
lab_nothing_left 'no agent is left then'

try
lab exec node002 pkill -KILL -x 'agent-.*' || true
exits 'a node that is lost meanwhile: 68' 68 finish
told_once 'it is named, once' 'error[HN201]: node002 cannot be reached'
ok 'nothing was ever started' test ! -e "$TMP/started"
lab_nothing_left 'nothing is left'
done_testing
