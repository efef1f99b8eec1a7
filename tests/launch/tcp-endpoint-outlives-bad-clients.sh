#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One agent and a head made of Python: a client that breaks a rule of the TCP endpoint loses its own
# connection, and nobody else notices.
. "$(dirname "$0")/../lib/tap.sh"

python_tests <<'PYTHON'
import os
import resource
import socket
import struct
import threading
import time

from fake_head import *
from store_client import *

tap = Tap()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
agent = Agent()
agent.sleep()
port, why = agent.endpoint(LOOPBACK, value_max=1 << 20)
good = Client(port)
raw = lambda: socket.create_connection(("127.0.0.1", port), 20)
half = Client(port)
half.ping()
half.say(half.op("SET", text(b"key"))[:9])
slow, mute = raw(), Client(port, dialect="A")
slow.settimeout(120)
slow.sendall(HELLO[:3])
began = time.monotonic()
slow_end = []
slow_reader = threading.Thread(target=lambda: slow_end.extend((slow.recv(1), time.monotonic() - began)))
slow_reader.start()

# --- what is no client of a TCPStore
for name, data in (
        ("a browser", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("a TLS client", bytes.fromhex("160301020001000001fc0303")),
        ("an ssh client", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("a client with another magic", b"\0\xce\xf7\x85\x3d" + b"\x0d\0\0\0\0"),
        ("random bytes", bytes(range(255, 100, -1)) * 100)):
    stranger = raw()
    stranger.settimeout(20)
    try:
        stranger.sendall(data)
        rest = stranger.recv(100)
    except ConnectionError:
        rest = b""
    tap.equal("%s is turned away" % name, rest, b"")
tap.ok("with the reason", agent.log("not a TCPStore client"), agent.logged)

# --- limits
over = struct.pack("<Q", 1 << 40)
for name, data in (
        ("a key without end", lambda c: c.op("GET", over)),
        ("a value above the limit", lambda c: c.op("SET", text(b"k"), struct.pack("<Q", (1 << 20) + 1))),
        ("more keys than there are", lambda c: c.op("WAIT", over)),
        ("an unknown command", lambda c: b"\xc8")):
    client = Client(port)
    client.ping()
    client.say(data(client))
    tap.ok("%s ends the connection" % name, client.closed())
    tap.equal("and no other", good.ping(), 7)
tap.ok("the reason is told", agent.log("unknown TCPStore command 200"), agent.logged)

# --- who does not read
flood = Client(port)
flood.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
flood.socket.settimeout(1)
rss = lambda: int(open("/proc/%d/statm" % agent.hello["pid"]).read().split()[1]) * 4096
before, sent, pauses = rss(), 0, 0
pings = flood.op("PING", b"1234") * 20000
while sent < 256 << 20 and pauses < 2:
    try:
        sent += flood.socket.send(pings[sent % len(pings):])
        pauses = 0
    except socket.timeout:
        pauses += 1
        good.ping()  # it may have slept; now it has looked at us as well
tap.ok("a client that does not read is not read for ever", sent < 200 << 20, sent)
tap.ok("what waits for it is bounded", rss() - before < 100 << 20, rss() - before)
tap.equal("others are served", good.ping(), 7)
flood.socket.settimeout(20)
heard = min(8 << 20, sent // 5 * 4)
tap.equal("when it reads it gets everything", flood.hear(heard), b"1234" * (heard // 4))
flood.close()

# --- waits
client = Client(port)
client.start_wait(b"never")
client.cancel()
tap.equal("CANCEL_WAIT is answered once", client.hear(1), b"\1")
client.cancel()
tap.equal("also when nothing waits", client.hear(1), b"\1")
client.start_wait(b"never")
tap.equal("another command ends a wait without a word", client.ping(5), 5)
client.say(client.op("WAIT", texts([b"never"])) + client.op("CANCEL_WAIT") +
           client.op("PING", b"1234") + client.op("WAIT", texts([b"never"])) +
           client.op("WAIT", texts([b"never"])) + client.op("CANCEL_WAIT") + client.op("PING", b"abcd"))
tap.equal("answers keep their order", client.hear(10), b"\1" b"1234" b"\1" b"abcd")
tap.ok("and are all there are", client.silent())
watch = Client(port, dialect="A")
watch.say(b"\7")
time.sleep(0.1)
watch.say(text(b"key"))
tap.equal("WATCH_KEY is confirmed", watch.hear(1), b"\3")
tap.ok("and nothing is told", watch.silent())
for one in b"\x0d1234":
    client.say(bytes([one]))
    time.sleep(0.01)
tap.equal("a command may come byte by byte", client.hear(4), b"1234")

# --- many
crowd = [Client(port) for _ in range(1000)]
for one in crowd:
    one.say(one.op("PING", b"many"))
tap.equal("a thousand clients are served", {one.hear(4) for one in crowd}, {b"many"})
for one in crowd:
    one.start_wait(b"never")
    one.close()
tap.equal("and forgotten", good.ping(), 7)
for _ in range(300):
    one = raw()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
tap.equal("resets harm nobody", good.ping(), 7)
fds = lambda: len(os.listdir("/proc/%d/fd" % agent.hello["pid"]))
tap.ok("nothing is kept of those who left", wait_for(lambda: fds() < 30), fds())

# --- half a command
slow_reader.join()
tap.equal("half of a first command is given half a minute", slow_end[:1], [b""])
tap.ok("not less and hardly more", 29 < slow_end[1] < 45, slow_end)
tap.equal("unauthorized connections are told once per address", sum("rejected connection" in x for x in agent.logged), 1)
tap.ok("one that says nothing may stay", mute.silent(0.01))
tap.ok("half of a later one is given no more", half.closed(5))
tap.equal("the agent leaves in order", agent.leave(), 0)
tap.end()
PYTHON
