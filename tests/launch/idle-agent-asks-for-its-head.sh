#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent without an order, or with none any more, asks for its head after a while, and leaves when
# nobody answers: a head that lost its power closes no connection. With ranks it counts from the time at which the
# newest ping was sent.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

python_tests <<'PYTHON'
import time

from fake_head import *

tap = Tap()
# All of them wait at the same time.
asleep, done, answered = (Agent(answers=False) for _ in range(3))
asleep.send(PING, struct.pack("<QQ", 0, 0))
asleep.answer(PONG)
done.run(["true"])
began = time.monotonic()
fresh = Agent(answers=False)

# Two agents with ranks, which may live for 6 s after a ping: to one a ping comes 5 s late, the other's head has slept.
late, slept = (Agent(answers=False) for _ in range(2))
for agent in late, slept:
    agent.launch(["sleep", "100"], silence=6000)
ranks = [agent.play(STARTED).pids[0] for agent in (late, slept)]


def ping(agent, age):
    agent.send(PING, struct.pack("<QQ", time.monotonic_ns() - age * 10**9, 0))


for _ in range(10):
    ping(late, 0)
    ping(slept, 0)
    time.sleep(0.05)
ping(late, 5)
at = time.monotonic()
for _ in range(40):
    ping(slept, 5)
    time.sleep(0.05)
tap.ok("a ping that comes late is a shorter lease", wait_for(lambda: not alive(ranks[0])))
tap.ok("by its delay", time.monotonic() - at < 5, time.monotonic() - at)
time.sleep(max(0, at + 4.5 - time.monotonic()))
tap.ok("a head whose clock stood still is no late one", alive(ranks[1]))

tap.ok("it waits for a while before it asks", fresh.silent(max(1, began + 20 - time.monotonic())))
for name, agent in ("without an order", fresh), ("after its ranks' end", done), ("a third", answered):
    agent.answer(PING_REQUEST, 60)
    tap.ok("%s it asks once" % name, True)
answered.send(PING, struct.pack("<QQ", 1, 0))
tap.equal("the answer is heard", answered.answer(PONG).take("Q"), 1)
for name, agent in ("without an order", fresh), ("after its ranks' end", done):
    try:
        tap.ok("%s it asks no more" % name, False, agent.next(60))
    except Lost as lost:
        tap.ok("%s it leaves without an answer" % name, "closed its end" in str(lost), lost)
    tap.equal("%s: its exit code" % name, agent.process.wait(20), 0)
tap.ok("not before it has waited for one", time.monotonic() - began > 50)
tap.ok("who was told that the head sleeps asks nothing", asleep.silent(0))
for name, agent in ("who got an answer", answered), ("who waits for the head to wake", asleep):
    tap.equal("%s carries out an order" % name, agent.run(["sh", "-c", "exit 3"]).status, {0: 3 << 8})
    tap.equal("%s leaves when it may" % name, agent.leave(), 0)
tap.end()
PYTHON
