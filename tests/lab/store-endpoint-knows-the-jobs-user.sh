#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's store answers the job's user on all nodes of the job, and no other user there: another user of another node
# neither reads nor replaces keys. A node that does not tell the owner, and one that cannot, are named.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 1
python=/usr/bin/python3 # of the nodes; every user may run it

# key.py ADDR PORT [VALUE]: sets the key, if there is a value, and prints what it is. A closed connection is "rejected".
# The connection comes from the address in FROM, if there is one.
cat >key.py <<'EOF2'
import os
import socket
import struct
import sys


def text(value):
    return struct.pack("<Q", len(value)) + value


key = text(b"/nccl_id")
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60, (os.environ.get("FROM", ""), 0))
try:
    s.sendall(b"\0\xce\xf7\x85\x3c")
    if sys.argv[3:]:
        s.sendall(b"\1" + key + text(sys.argv[3].encode()))
    s.sendall(b"\3" + key)
    length = s.recv(8)
    print(s.recv(100).decode() if length else "rejected")
except ConnectionError:
    print("rejected")
EOF2
user_on() { # NODE [VALUE]
    lab exec "$1" "$python" - "${where[@]}" "${@:2}" <key.py
}
other_on() { # NODE [VALUE]
    lab exec "$1" setpriv --reuid 65533 --regid 65533 --clear-groups "$python" - "${where[@]}" "${@:2}" <key.py
}
launch() { # OPTION...
    lab_start -w node001,node002,node003 --store-listen network --node-timeout 600s --label none "$@" \
        sh -c 'echo $MASTER_ADDR $MASTER_PORT; exec sleep 600'
    ok "${1:--o net.store_peers=user}: three ranks are up on three nodes" wait_for lines_are "$OUT" 3
    read -ra where < <(tail -n 1 "$OUT")
}
quit() {
    kill -INT "$PID"
    finish
}

second=$LAB_NET.9.2 # node002 has it, too, when it greets
lab exec node002 ip addr add "$second/16" dev eth0
local=$LAB_NET.9.1 # a greeting tells no address of lo
lab exec node001 ip addr add "$local/32" dev lo
for i in 1 2; do
    lab exec "node00$i" sh -c \
        "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip addr add fd77::$i/64 dev eth0 nodad"
done
launch
is 'the user sets a key on the node of the store' "$(user_on node001 'an id')" 'an id'
is 'and reads it on another node' "$(user_on node002)" 'an id'
is 'another user of the same node is rejected' "$(other_on node001 thief)" rejected
is 'a second address of that node is its own, too: the user' "$(FROM=$local user_on node001)" 'an id'
is 'and another one' "$(FROM=$local other_on node001)" rejected
is 'so is another user of another node' "$(other_on node002 thief)" rejected
is 'who has changed nothing' "$(user_on node003)" 'an id'
ok 'it is told, with uid and node' \
    wait_for grep -q 'rejected connection to the store from .*: the process belongs to uid 65533 of node002$' "$ERR"
is 'the user may still replace the key' "$(user_on node002 another)" another
four=${where[0]} where=(fd77::1 "${where[1]}")
is 'over IPv6: the user' "$(user_on node002)" another
is 'and another one' "$(other_on node002 thief)" rejected
where=("$four" "${where[1]}")

# An agent that does not run does not answer; its node keeps no other user out, and the job goes on.
lab exec node003 pkill -STOP -x 'agent-.*'
is 'a node that does not answer: the user is rejected, in the end' "$(user_on node003)" rejected
ok 'the node is named' wait_for grep -q 'rejected connection .*: node003 did not tell the owner in time$' "$ERR"
is 'another node gets in as before' "$(user_on node002)" another
lab exec node003 pkill -CONT -x 'agent-.*'
reads_again() { [[ $(user_on node003) == another ]]; }
ok 'and this one, too, when its agent runs again' wait_for reads_again

# A container with a network of its own, behind an address of the node.
box() { # CMD...
    lab exec node002 nsenter -n -t "$(lab exec node002 pgrep -f '^sleep 4711$')" "$@"
}
lab exec node002 ip addr del "$second/16" dev eth0
lab exec node002 sh -c 'unshare --net sleep 4711 >/dev/null 2>&1 &'
box_runs() { box true; }
wait_for box_runs
lab exec node002 sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/eth0/proxy_arp
    ip link add box0 type veth peer name box1; ip link set box0 up; ip route add $second dev box0
    echo 1 >/proc/sys/net/ipv4/conf/box0/proxy_arp; ip link set box1 netns \$(pgrep -f '^sleep 4711$')"
box ip addr add "$second/32" dev box1
box ip link set box1 up
box ip route add default dev box1
from_box() { box "$python" - "${where[@]}" <key.py; }
is 'sockets that the agent cannot see: rejected' "$(from_box)" rejected
ok 'the message has a number, node, address and option' \
    wait_for grep -q "^warning\[HN410\]: .*from $second:.*: node002 has no such socket.*-o net.store_peers=node" "$ERR"
is 'each address was told once' "$(grep -c 'rejected connection' "$ERR")" 6
quit
exits 'the job went on until Ctrl-C' 130

lab exec node002 ip addr add "$second/16" dev eth0
launch --store-peers node
lab exec node002 ip addr del "$second/16" dev eth0
lab exec node002 ip route replace "$second" dev box0
is 'the container gets in' "$(user_on node001 'an id') $(from_box)" 'an id an id'
is 'and every user' "$(other_on node002)" 'an id'
lacks 'nobody is rejected' "$ERR" 'rejected connection'
quit

rm -f "$TMP/died"
lab_start -w node001,node002,node003 --store-listen network --max-restarts 1 --label none sh -c \
    '[ $RANK$HN_RESTART != 20 ] || exit 1; [ $HN_RESTART = 0 ] || echo $MASTER_ADDR $MASTER_PORT; exec sleep 600'
ok 'a second attempt is up' wait_for lines_are "$OUT" 3
read -ra where < <(tail -n 1 "$OUT")
is 'after a restart: the user' "$(user_on node002 'an id')" 'an id'
is 'and another one' "$(other_on node002 thief)" rejected
quit

launch --tree 1
is 'through a tree: the user' "$(user_on node003 'an id')" 'an id'
is 'and another one of the last node' "$(other_on node003 thief)" rejected
is 'nothing was changed' "$(user_on node002)" 'an id'
quit
lab_nothing_left 'nothing is left'
done_testing
