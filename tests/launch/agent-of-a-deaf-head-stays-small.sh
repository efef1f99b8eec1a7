#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While the head does not read, the agent does not read its ranks, on either endpoint of the store: they wait, and the
# agent stays small. One agent and a head made of Python. Without sanitizers, because memory is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -x $PLAIN/hnlaunch-agent ]] || skip_all 'no plain build'
AGENT=$PLAIN/hnlaunch-agent
# Sends on ten connections of each kind until none takes more, 1 GiB at most.
cat >rank.py <<'END'
import os, selectors, socket, struct
from store_client import HELLO, text
MIB, MOST = 1 << 20, 1 << 30
look, sent = selectors.DefaultSelector(), 0
def add(one, data):
    one.setblocking(False)
    look.register(one, selectors.EVENT_WRITE, [data, data])
for _ in range(10):
    one = socket.create_connection(("127.0.0.1", int(os.environ["STORE_PORT"])))
    one.sendall(HELLO)
    add(one, b"\1" + text(b"key") + text(bytes(MIB)))
    one = socket.socket(socket.AF_UNIX)
    one.connect(os.environ["HN_STORE"])
    body = struct.pack("<IBII", 0, 2, 1, 3) + b"key" + struct.pack("<I", MIB) + bytes(MIB)
    add(one, struct.pack("<IB", len(body) + 1, 64) + body)
while sent < MOST:
    ready = look.select(3)
    if not ready:
        break
    for key, _ in ready:
        whole, rest = key.data
        n = key.fileobj.send(rest[:256 << 10])
        sent += n
        key.data[1] = rest[n:] or whole
with open("sent.new", "w", encoding="ascii") as f:
    f.write(str(sent))
os.rename("sent.new", "sent")
END
python_tests <<'PYTHON'
import os

from fake_head import *

tap = Tap()
agent = Agent()
agent.sleep()
port, why = agent.endpoint(LOOPBACK)


def memory():
    with open("/proc/%d/status" % agent.hello["pid"], encoding="ascii") as f:
        return int(f.read().split("VmHWM:")[1].split()[0]) >> 10


before = memory()
agent.launch(["python3", "rank.py"], env=["STORE_PORT=%d" % port], cwd=os.getcwd())
tap.ok("the rank has sent all that is taken", wait_for(lambda: os.path.exists("sent"), scaled(100)))
with open("sent", encoding="ascii") as f:
    sent = int(f.read()) >> 20
more = memory() - before
print("# sent: %d MiB, memory of the agent: %d MiB more" % (sent, more))
tap.ok("it waits after a while", 0 < sent < 300, sent)
tap.ok("the agent stays small", more < 300, more)
tap.ok("the head reads, and the attempt ends", agent.play().status == {0: 0})
tap.ok("the agent leaves", agent.leave() == 0)
tap.end()
PYTHON
