#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's store answers the nodes of its job; another machine of the same network is rejected.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 1

# Greets as PyTorch does (VALIDATE), then a PING.
cat >ask.py <<'EOF2'
import socket
import sys

s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
s.settimeout(10)
try:
    s.sendall(b"\0\xce\xf7\x85\x3c\x0d1234")
    print(s.recv(9))
except ConnectionError:
    print(b"")
EOF2
asked_from() { # NODE
    lab exec "$1" python3 "$PWD/ask.py" "${where[@]}"
}

lab_start -w node001,node002 --store-listen network --label none sh -c 'echo $MASTER_ADDR $MASTER_PORT; exec sleep 60'
ok 'two ranks are up on two nodes' wait_for lines_are "$OUT" 2
read -ra where <"$OUT"
is 'the node with the store is answered' "$(asked_from node001)" "b'1234'"
is 'so is the other node of the job' "$(asked_from node002)" "b'1234'"
is 'a node that is none of the job gets no answer' "$(asked_from node003)" "b''"
ok 'which is told, with its address' wait_for grep -q 'rejected connection to the store from .*: not a node of this job' "$ERR"
is 'and no other connection was rejected' "$(grep -c 'rejected connection' "$ERR")" 1
exits 'the job goes on until Ctrl-C' 130 finish_by INT
lab_nothing_left 'nothing is left'
done_testing
