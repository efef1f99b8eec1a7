#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` has the nodes connect to each other: a firewall and a missing route are told with the node, or with both
# ends where a single connection fails. A port is open only while the check runs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4
check() { lab_hn check -H "$TMP/hosts.txt" "$@"; }
address() { lab run getent hosts "$1" | cut -d' ' -f1; }

exits 'nodes that reach each other are fit' 0 check
has_row '... each tries three peers' 'net.peers +pass +4 +3 peers'
lacks '... without a message' "$ERR" 'error\['
check --tree 2
has_row '... so in a tree' 'net.peers +pass +4 +3 peers'
check --include node002
ok 'a single node has no peer' grep -qE '^not run: (.*, )?net.peers(, .*)?: there is no other node to reach$' "$OUT"

# node003 drops what comes for other ports than that of sshd: the rule must stand before the table of its own addresses.
firewall() { # add|del
    lab exec node003 sh -c "ip rule $1 pref 5 iif eth0 ipproto tcp dport 1024-65534 blackhole"
}
if lab exec node003 sh -c 'ip rule add pref 10 lookup local && ip rule del pref 0' && firewall add; then
    began=$SECONDS
    exits 'a node behind a firewall fails' 69 check
    has_row '... and is named alone' "net.peers +fail +1 +node003: none of 3 peers reaches $(address node003): no answer, as behind a firewall"
    has_row '... the others pass' ' +pass +3 +3 peers'
    has '... with a next step' "$OUT" 'help: net.peers: open TCP between the nodes'
    has '... and a way to go on' "$ERR" "--exclude 'node003'"
    ok '... soon' test $((SECONDS - began)) -lt "$(scaled 20)"
    firewall del
else
    skip 'a firewall' 'the kernel has no rules of ports'
fi

lab exec node002 ip route add unreachable "$(address node004)"
exits 'a missing route fails' 69 check
has_row '... with both ends' 'net.peers +fail +2 +node\[002,004\]: node00[24] does not reach node00[24] at [0-9.]*: no (route|answer, as behind a firewall)'
lab exec node002 ip route del unreachable "$(address node004)"

exits 'a network that no node has fails' 69 check --iface nowhere0
ok '... and is told' grep -q 'net.peers .*no usable address' "$OUT"
exits 'all is well again' 0 check
lab_nothing_left 'nothing is left'
done_testing
