#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --store-door: who listens at MASTER_ADDR and MASTER_PORT, what the ranks are told, and that they get in.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

unset GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME
# "in" or "out", then what a rank is told.
cat >visit <<'END'
#!/bin/bash
way=out
(exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null && way=in
echo "$way $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE ${GLOO_SOCKET_IFNAME-no} ${NCCL_SOCKET_IFNAME-no}"
END
# Who listens on MASTER_PORT, as /proc/net/tcp and tcp6 have it.
cat >listeners <<'END'
#!/bin/bash
port=$(printf %04X "$MASTER_PORT")
awk -v p=":$port\$" '$4 == "0A" && $2 ~ p { print $2 }' /proc/net/tcp /proc/net/tcp6 | cut -d: -f1 | sort | tr '\n' ' '
END
# What rank 0's own store does: listen there.
cat >serve.py <<'END'
import os, socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", int(os.environ["MASTER_PORT"])))
s.listen()
print("served")
END
chmod +x visit listeners

for door in network loopback; do
    hn --local 3 --label none --store-door "$door" ./visit
    exits "$door on one node gives 0" 0
    is "$door on one node: at 127.0.0.1, open for every rank" "$(sort -u "$OUT")" 'in 127.0.0.1 True lo no'
    hn --local 1 --store-door "$door" ./listeners
    is "$door on one node listens on loopback only" "$(sed 's/^0\{24\}01000000 //' "$OUT")" '0100007F '
done
hn --local 3 --label none ./visit
is 'network is the default' "$(sort -u "$OUT")" 'in 127.0.0.1 True lo no'
GLOO_SOCKET_IFNAME=eth7 NCCL_SOCKET_IFNAME=^docker hn --local 1 ./visit
is 'interfaces that the user names stay' "$(cat "$OUT")" 'in 127.0.0.1 True eth7 ^docker'
hn -v --local 1 true
ok '-v tells the address and the time' grep -Eq 'store at 127\.0\.0\.1.* \([0-9.]+ ms in all\)' "$ERR"

hn --local 3 --label none --store-door none ./visit
is 'none: nothing listens, and the ranks know' "$(sort -u "$OUT")" 'out 127.0.0.1 False no no'
hn --local 1 --store-door none python3 serve.py
is 'none: rank 0 can listen there itself' "$(cat "$OUT")" served
HNLAUNCH_NET_STORE_DOOR=none hn --local 1 ./visit
is 'net.store_door is the same' "$(cat "$OUT")" 'out 127.0.0.1 False no no'

# Three names of this machine are three nodes.
nodes='localhost:1,127.0.0.1:1,[::1]:1'
hn -v -w "$nodes" --label none ./visit
exits 'three nodes: 0' 0
is 'all get in' "$(cut -d' ' -f1,3 "$OUT" | sort | uniq -c | tr -s ' ')" ' 3 in True'
is 'at one address' "$(cut -d' ' -f2 "$OUT" | sort -u | wc -l)" 1
ok '-v tells who reached it, and in which time' \
    grep -Eq 'store at [^ ]+:[0-9]+, reached by 2 nodes in [0-9.]+-[0-9.]+ ms' "$ERR"
hn -w "$nodes" --label none --store-door loopback sh -c './visit; echo "$MASTER_PORT"'
is 'loopback: every rank gets in at 127.0.0.1' "$(grep -c '^in 127.0.0.1 True' "$OUT")" 3
is 'loopback: every node has a door of its own' "$(grep -c '^[0-9]*$' <(sort -u "$OUT"))" 3
hn -w "$nodes" --label none --store-door none ./visit
is 'none: the address of rank 0, and nobody there yet' "$(cut -d' ' -f1,3- "$OUT" | sort -u)" 'out False no no'

hn --local 1 --store-door tcp true
exits 'another word is wrong use: 64' 64
has 'the right words are named' "$ERR" 'network|loopback|none'
hn plan -w a:2,b:2 --ranks 3
has 'plan tells who serves the store' "$OUT" TORCHELASTIC_USE_AGENT_STORE=True
has 'plan tells of the interface what is known' "$OUT" "NCCL_SOCKET_IFNAME=(interface towards rank 0's node)"
hn plan -w a:2,b:2 --ranks 3 --store-door none
has 'plan of none' "$OUT" TORCHELASTIC_USE_AGENT_STORE=False
lacks 'plan of none names no interface' "$OUT" SOCKET_IFNAME
hn plan --local 2 --ranks 1
has 'plan of one node' "$OUT" GLOO_SOCKET_IFNAME=lo
done_testing
