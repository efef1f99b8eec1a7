#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What is not a node of the job does not get in and keeps no node out: another secret, another protocol, a repeated
# call, and many silent connections. They are counted.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

PORT=$(free_port) PROXY=$(free_port)
export HNLAUNCH_DIAL_SECRET=0123456789abcdef

cat >others.py <<'END'
"""usage: others.py PORT silent N | foreign N | proxy LISTEN

silent N    N connections that say nothing, kept until the end of the input
flood N     2000 silent connections a second from two addresses, the newest 8000 of them kept; says when N are made
foreign N   N connections that speak another protocol; waits until each is closed
proxy L     passes one connection to port L on to PORT; when it ends, repeats what its node said first
"""
import collections
import resource
import select
import socket
import sys
import time

PORT = int(sys.argv[1])


def call(source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", PORT), source_address=(source, 0))


def drained(s):
    try:
        while s.recv(4096):
            pass
    except ConnectionError:
        pass


if sys.argv[2] == "silent":
    kept = [call() for _ in range(int(sys.argv[3]))]
    print("open", flush=True)
    sys.stdin.read()
elif sys.argv[2] == "flood":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kept, n = collections.deque(maxlen=min(8000, most - 100)), 0
    while True:
        for source in ("127.0.0.1", "127.0.0.2") * 10:
            kept.append(call(source))
            n += 1
        if n == int(sys.argv[3]):
            print("made", flush=True)
        time.sleep(0.01)
elif sys.argv[2] == "foreign":
    for _ in range(int(sys.argv[3])):
        with call() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: head\r\nAccept: */*\r\nUser-Agent: probe\r\n\r\n")
            drained(s)
else:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[3])))
    print("open", flush=True)
    node = listener.accept()[0]
    head = call()
    first, repeated, pairs = b"", False, {node: head, head: node}
    while pairs:
        for s in select.select(list(pairs), [], [])[0]:
            data = s.recv(65536)
            if s is node and not repeated:
                first += data
            if not data:
                pairs[s].shutdown(socket.SHUT_WR)
                del pairs[s]
                continue
            pairs[s].sendall(data)
            if len(first) > 100 and not repeated:
                with call() as again:  # the greeting and JOIN once more
                    again.sendall(first)
                    drained(again)
                    print("repeated", flush=True)
                repeated = True
END

mkfifo hold
start --dial-in "127.0.0.1:$PORT" --nodes 3 --node-rank 0 --oversubscribe --label none sh -c 'echo "rank $RANK"; while [ ! -e go ]; do sleep 0.1; done'
listens() { (: <>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }
ok 'node 0 listens' wait_for listens

ok 'another protocol is turned away' timeout 60 python3 others.py "$PORT" foreign 3
HNLAUNCH_DIAL_SECRET=fedcba9876543210 run "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 3 --node-rank 1 -o net.dial_timeout=1s true
cp "$ERR" other.err
has 'a node with another secret cannot join' other.err 'error[HN325]: node 1 cannot join node 0'
has 'and is told what may be wrong' other.err 'is its secret another?'

# More silent connections than node 0 looks at at once.
exec 9<>hold
python3 others.py "$PORT" silent 400 <hold >silent &
SILENT=$!
ok '400 silent connections are open' wait_for lines_are silent 1
python3 others.py "$PORT" proxy "$PROXY" >proxied &
ok 'a proxy is there' wait_for lines_are proxied 1
timeout 100 "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 3 --node-rank 2 --oversubscribe true >two.out 2>two.err &
TWO=$!
timeout 100 "$HNLAUNCH" --dial-in "127.0.0.1:$PROXY" --nodes 3 --node-rank 1 --oversubscribe true >one.out 2>one.err &
ONE=$!
ok 'the call of the node behind the proxy was repeated' wait_for lines_are proxied 2
ok 'the nodes come in all the same' wait_for lines_are "$OUT" 3
kill "$SILENT"
wait "$SILENT" 2>/dev/null
python3 others.py "$PORT" flood 5000 >flooded &
FLOOD=$!
ok 'a flood of silent connections goes on' wait_for lines_are flooded 1
timeout 60 "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 4 --node-rank 1 -o net.dial_timeout=30s true >four.out 2>four.err
has 'a node is heard meanwhile' four.err 'error[HN326]: node 0 refused node 1: it was told of 4 nodes'
ok 'and the flood still goes on' kill "$FLOOD"
wait "$FLOOD" 2>/dev/null
: >go
finish
exits 'the job ends well' 0
wait "$ONE"
is 'on the node behind the proxy' $? 0
wait "$TWO"
is 'and on the other one' $? 0
has 'node 0 warns of the others' "$ERR" 'warning[HN331]'
has 'of the wrong protocol and secret' "$ERR" 'with another secret or protocol'
has 'of the repeated call' "$ERR" '1 with a repeated greeting'
has 'of the silent ones' "$ERR" 'without a greeting'
done_testing
