#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --store-listen: who listens at MASTER_ADDR and MASTER_PORT, what the ranks are told, and that they get in.
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

for endpoint in network loopback; do
    hn_exits "$endpoint on one node gives 0" 0 --local 3 --label none --store-listen "$endpoint" ./visit
    is "$endpoint on one node: at 127.0.0.1, open for every rank" "$(sort -u "$OUT")" 'in 127.0.0.1 True lo no'
    hn --local 1 --store-listen "$endpoint" ./listeners
    is "$endpoint on one node listens on loopback only" "$(sed 's/^0\{24\}01000000 //' "$OUT")" '0100007F '
done
hn --local 3 --label none ./visit
is 'network is the default' "$(sort -u "$OUT")" 'in 127.0.0.1 True lo no'
GLOO_SOCKET_IFNAME=eth7 NCCL_SOCKET_IFNAME=^docker hn --local 1 ./visit
is 'interfaces that the user names stay' "$(cat "$OUT")" 'in 127.0.0.1 True eth7 ^docker'
hn -v --local 1 true
ok '-v tells the address and the time' grep -Eq 'store at 127\.0\.0\.1.* \([0-9.]+ ms in all\)' "$ERR"

hn --local 3 --label none --store-listen none ./visit
is 'none: nothing listens, and the ranks know' "$(sort -u "$OUT")" 'out 127.0.0.1 False no no'
hn --local 1 --store-listen none python3 serve.py
is 'none: rank 0 can listen there itself' "$(cat "$OUT")" served
HNLAUNCH_NET_STORE_LISTEN=none hn --local 1 ./visit
is 'net.store_listen is the same' "$(cat "$OUT")" 'out 127.0.0.1 False no no'

# Three names of this machine are three nodes.
nodes='localhost:1,127.0.0.1:1,[::1]:1'
hn_exits 'three nodes: 0' 0 -v -w "$nodes" --label none ./visit
is 'all get in' "$(cut -d' ' -f1,3 "$OUT" | sort | uniq -c | tr -s ' ')" ' 3 in True'
is 'at one address' "$(cut -d' ' -f2 "$OUT" | sort -u | wc -l)" 1
ok '-v tells who reached it, and in which time' \
    grep -Eq 'store at [^ ]+:[0-9]+, reached by 2 nodes in [0-9.]+-[0-9.]+ ms' "$ERR"
hn -w "$nodes" --label none --store-listen loopback sh -c './visit; echo "$MASTER_PORT"'
is 'loopback: every rank gets in at 127.0.0.1' "$(grep -c '^in 127.0.0.1 True' "$OUT")" 3
is 'loopback: every node has an endpoint of its own' "$(grep -c '^[0-9]*$' <(sort -u "$OUT"))" 3
hn -w "$nodes" --label none --store-listen none ./visit
is 'none: the address of rank 0, and nobody there yet' "$(cut -d' ' -f1,3- "$OUT" | sort -u)" 'out False no no'

hn_exits 'another word is wrong use: 64' 64 --local 1 --store-listen tcp true
has 'the right words are named' "$ERR" 'network|loopback|none'
# --- the name of earlier versions
hn --local 1 --label none --store-door none ./visit
is '--store-door is --store-listen' "$(cat "$OUT")" 'out 127.0.0.1 False no no'
HNLAUNCH_NET_STORE_DOOR=none hn --local 1 ./visit
is 'HNLAUNCH_NET_STORE_DOOR is HNLAUNCH_NET_STORE_LISTEN' "$(cat "$OUT")" 'out 127.0.0.1 False no no'
hn_exits 'a wrong value of the old name: 64' 64 --local 1 --store-door tcp true
has 'an error names the option as it was given' "$ERR" '--store-door must be one of network|loopback|none'
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[net]\nstore_door = tcp\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn_exits 'a wrong value of the old key: 78' 78 config
has 'an error names the key as it is spelled' "$ERR" 'net.store_door must be one of network|loopback|none'
printf '[net]\nstore_door = none\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn config --json
for key in net.store_listen net.store_door; do
    is "config --json has $key" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]]["value"])' $key <"$OUT")" none
done
rm "$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn help all
lacks 'help does not show the old name' "$OUT" store-door

hn plan -w a:2,b:2 --ranks 3
has 'plan tells who serves the store' "$OUT" TORCHELASTIC_USE_AGENT_STORE=True
has 'plan tells of the interface what is known' "$OUT" "NCCL_SOCKET_IFNAME=(interface towards rank 0's node)"
hn plan -w a:2,b:2 --ranks 3 --store-listen none
has 'plan of none' "$OUT" TORCHELASTIC_USE_AGENT_STORE=False
lacks 'plan of none names no interface' "$OUT" SOCKET_IFNAME
hn plan --local 2 --ranks 1
has 'plan of one node' "$OUT" GLOO_SOCKET_IFNAME=lo
done_testing
