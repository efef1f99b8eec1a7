#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check --pairs` measures each node with several others over TCP, and tells a slow node from a slow link.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 8
# So slow that the processors of this machine are no limit, also beside other tests.
HEALTHY=100mbit SLOW=5mbit
check() { lab_hn check -H "$TMP/hosts.txt" "$@"; }
address() { lab run getent hosts "$1" | cut -d' ' -f1; }
shape() { # NODE RATE
    lab exec "$1" tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 100ms
}
shape node001 $HEALTHY 2>/dev/null || skip_all 'the kernel cannot limit the rate of an interface'
for i in 2 3 4 5 6 7 8; do shape "node00$i" $HEALTHY; done

check
ok 'without --pairs nothing is measured' grep -qE '^not run: net.bandwidth, net.latency: measured with --pairs only$' "$OUT"
exits 'equal nodes are fit' 0 check --pairs
has_row '... each is measured' 'net.bandwidth +pass +8 +[0-9.]+ Mbit/s( to [0-9.]+ Mbit/s)?'
has_row '... in both respects' 'net.latency +pass +8 +[0-9.]+ [mu]s( to [0-9.]+ [mu]s)?'
has_row '... and reached' 'net.peers +pass +8 +4 peers'

exits 'the results are saved' 0 check --pairs --save good.json
is '... for programs' "$(python3 -c '
import json
j = json.load(open("good.json"))
node = j["nodes"]["node005"]
print(j["v"], len(j["nodes"]), len(j["pairs"]), node["bandwidth_mbit"] > 10, node["latency_us"] > 0, node["facts"]["kernel"])')" \
    "1 8 12 True True $(uname -r)"
check --pairs --baseline good.json
has_row 'the same nodes are as before' 'baseline +pass +8 +as before'
sed -i "s/\"$(uname -r)\"/\"6.1.0\"/" good.json
exits 'a change is a warning' 0 check --baseline good.json
has_row '... with then and now' "baseline +warn +8 +node\[001-008\]: kernel $(uname -r), was 6.1.0"

shape node005 $SLOW
sed -i "s/\"6.1.0\"/\"$(uname -r)\"/" good.json
check --pairs --baseline good.json
has_row 'less bandwidth than before is a warning' 'baseline +warn +1 +node005: bandwidth [0-9.]+ Mbit/s, was [0-9.]+ Mbit/s'
has_row '... and not of the peers' ' +pass +7 +as before'
exits 'a slow node is a warning' 0
has_row '... and is named alone' 'net.bandwidth +warn +1 +node005: [0-9.]+ Mbit/s with each of [0-9]+ peers, 7 others have [0-9]+ Mbit/s'
has_row '... the others pass' ' +pass +7 +[0-9.]+ Mbit/s( to [0-9.]+ Mbit/s)?'
has '... with a next step' "$OUT" 'help: net.bandwidth: ethtool shows'
verdict_has '... and counts' '2 checks warn of 1 of 8 nodes'
exits '--strict makes it a failure' 69 check --pairs --strict --json
is '... with the sentence' "$(python3 -c '
import json, re, sys
for n in json.load(open(sys.argv[1]))["nodes"]:
    for c in n["checks"]:
        if c["result"] == "fail":
            print(n["host"], c["name"], re.sub("[0-9.]+ Mbit/s", "N Mbit/s", re.sub("[0-9]+ of [0-9]+", "N of N", c["cause"])), sep="|")' "$OUT")" \
    'node005|net.bandwidth|node005 is slow with each peer (N of N): N Mbit/s, 7 others have N Mbit/s'
shape node005 $HEALTHY

# A link is slow where one node sends to the other through a class of its own. The pairs of eight nodes are always the same.
link() { # NODE ADDRESS
    lab exec "$1" sh -c "tc qdisc replace dev eth0 root handle 1: htb default 1 &&
        tc class add dev eth0 parent 1: classid 1:1 htb rate $HEALTHY quantum 60000 &&
        tc class add dev eth0 parent 1: classid 1:2 htb rate $SLOW quantum 60000 &&
        tc filter add dev eth0 parent 1: protocol ip u32 match ip dst $2/32 flowid 1:2"
}
if link node003 "$(address node006)" && link node006 "$(address node003)"; then
    exits 'a slow link is a warning' 0 check --pairs
    has_row '... with both ends' 'net.bandwidth +warn +2 +node\[003,006\]: link node003 - node006 has [0-9.]+ Mbit/s, expected [0-9]+ Mbit/s'
    has_row '... the others pass' ' +pass +6 +[0-9.]+ Mbit/s( to [0-9.]+ Mbit/s)?'
else
    skip 'a slow link' 'the kernel cannot limit the rate of an address'
fi
lab_nothing_left 'nothing is left'
done_testing
