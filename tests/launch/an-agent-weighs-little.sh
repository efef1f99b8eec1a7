#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a node pays for an agent: 2 MB to carry there, 2 MB of memory, and no wake-up beyond the
# head's pings. The build without sanitizers, since they change all three.
. "$(dirname "$0")/../lib/tap.sh"

AGENT=$PLAIN/hnlaunch-agent
[[ -x $AGENT ]] || skip_all "no $AGENT"
size=$(stat -c %s "$AGENT")
echo "# $size bytes"
if readelf -d "$AGENT" 2>/dev/null | grep -q NEEDED; then
    skip_all 'this agent is not the static one'
fi
SIZE=$size python_tests <<'PYTHON'
import os
import struct
import time

from fake_head import *

PINGS, PAUSE = 40, 0.05


def field(pid, name, file="status"):
    with open("/proc/%d/%s" % (pid, file), encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(name + ":"))


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def settle(pids):
    """Their switches, once all sleep and no more come. Who waits for a processor does not sleep."""
    before = None
    for _ in range(200):
        now = [field(p, "voluntary_ctxt_switches") for p in pids]
        if now == before and all(state(p) == "S" for p in pids):
            break
        before = now
        time.sleep(0.3)
    return now


tap = Tap()
tap.ok("the file is at most 1.9 MB", int(os.environ["SIZE"]) <= 1900000, os.environ["SIZE"])

# Without the signs of life between agent and guard, which come a few times in a minute.
guard = Agent(env={**os.environ, "HNLAUNCH_GUARD_LIMIT_MS": "36000000"})
guard.launch(["sleep", "60"])
guard.answer(STARTED)
agent = children(guard.pid)[0]
both = [guard.pid, agent]
settle(both)
for who, pid in zip(("guard", "agent"), both):
    kb = field(pid, "VmRSS")
    print("# %s: %d kB" % (who, kb))
    tap.ok("the %s's memory is at most 2 MB" % who, kb <= 2048, kb)
pss = sum(field(pid, "Pss", "smaps_rollup") for pid in both)
print("# together, shared pages counted once: %d kB" % pss)
tap.ok("both together take at most 2 MB", pss <= 2048, pss)

first = settle(both)
time.sleep(2)
now = [field(p, "voluntary_ctxt_switches") for p in both]
tap.equal("nobody wakes up while nothing comes", now, first)

for i in range(PINGS):
    guard.send(PING, struct.pack("<QQ", i, 0))
    guard.answer(PONG)
    time.sleep(PAUSE)
then = settle(both)
print("# %d pings, switches: guard %d, agent %d" % (PINGS, then[0] - now[0], then[1] - now[1]))
tap.equal("the guard sleeps on", then[0], now[0])
# A page that has to come back from disk is a switch, too; two for each ping would be twice as many.
tap.ok("a ping wakes the agent once", 0 < then[1] - now[1] <= PINGS * 3 / 2, then[1] - now[1])

guard.stop(0)
guard.play()
tap.equal("it leaves", guard.leave(), 0)
tap.end()
PYTHON
