#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# MASTER_ADDR is an address of rank 0's node that every other node has reached: the ssh address, the one
# that --iface names, or the next one when the first is cut off from a node.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2
first=$LAB_NET.0.2
unset GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME

cat >visit <<'END'
#!/bin/bash
way=out
(exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null && way=in
echo "$way $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE ${GLOO_SOCKET_IFNAME-no} ${NCCL_SOCKET_IFNAME-no}"
END
chmod +x visit

visit() { lab_hn -v -H "$TMP/hosts.txt" --label none "$@" "$PWD/visit"; }
seen() { sort "$OUT" | uniq -c | tr -s ' '; }

exits 'four nodes find the store: 0' 0 visit
is 'all eight ranks get in at the ssh address of node001' "$(seen)" " 8 in $first True eth0 =eth0"
ok '-v tells it with times' \
    grep -Eq "store at $first:[0-9]+, reached by 3 nodes in [0-9.]+-[0-9.]+ ms \([0-9.]+ ms in all\)" "$ERR"

visit --store-listen loopback
is 'loopback: every rank at 127.0.0.1, Gloo and NCCL on the network' "$(seen)" ' 8 in 127.0.0.1 True eth0 =eth0'
visit --store-listen none
is 'none: the address, and nobody there yet' "$(seen)" " 8 out $first False no no"

# Somebody who is no node of the job may not come in.
lab_start -w 'node[001-002]:1' --label none sh -c 'echo "$MASTER_PORT"; exec sleep 100'
ok 'two ranks are up' wait_for lines_are "$OUT" 2
port=$(head -n 1 "$OUT")
cat >dial.py <<'END'
import socket, sys
s = socket.socket()
s.settimeout(20)
try:
    # Refused is no answer; whoever is reset, then or later, has been turned away.
    s.connect((sys.argv[1], int(sys.argv[2])))
    s.sendall(b"\x03" + (1).to_bytes(8, "little") + b"x" * 8)
    print("let in" if s.recv(1) else "turned away")
except (ConnectionResetError, BrokenPipeError):
    print("turned away")
END
is 'a node that is not in the job is turned away' "$(lab exec node004 /usr/bin/python3 dial.py "$first" "$port")" 'turned away'
kill -TERM "$PID"
finish

# A second network, and the bridge of docker that has the same address everywhere.
for i in 1 2 3 4; do
    lab exec "node00$i" sh -c "ip link add ib0 link eth0 type macvlan mode bridge &&
        ip addr add 192.168.77.$i/24 dev ib0 && ip link set ib0 up &&
        ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up" ||
        skip_all 'this machine has no macvlan or bridge'
done
begin=$SECONDS # an address that does not answer is waited for 10 s if there is no other
visit
is 'the ssh address still comes first' "$(seen)" " 8 in $first True eth0 =eth0"
ok 'addresses that do not answer cost no time' test $((SECONDS - begin)) -lt "$(scaled 10)"
visit --iface ib0
is '--iface with a name' "$(seen)" ' 8 in 192.168.77.1 True ib0 =ib0'
visit --iface 192.168.0.0/16
is '--iface with a network' "$(seen)" ' 8 in 192.168.77.1 True ib0 =ib0'
sed 's/^node001 /&addr=192.168.77.1 /' "$TMP/hosts.txt" >addr.txt
lab_hn -H "$PWD/addr.txt" --label none "$PWD/visit"
is 'addr= of the hostfile' "$(seen)" ' 8 in 192.168.77.1 True ib0 =ib0'

lab exec node003 ip route add unreachable "$first"
visit
is 'an address that one node cannot reach is left for the next one' "$(seen)" ' 8 in 192.168.77.1 True ib0 =ib0'
lab exec node003 ip route del unreachable "$first"
# Packets that nobody ever answers.
lab exec node003 ip neigh replace "$first" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
begin=$SECONDS
visit
is 'the same for an address that swallows packets' "$(seen)" ' 8 in 192.168.77.1 True ib0 =ib0'
ok 'that does not wait for its time-out' test $((SECONDS - begin)) -lt "$(scaled 10)"
lab_nothing_left 'nothing is left'
done_testing
