# SPDX-License-Identifier: Apache-2.0
"""Samples of an agent that fake_head.py has started, what they have of GPUs, and the helper that asks the driver."""

from fake_head import STARTED, message_numbers
from waiting import wait_for

SAMPLE, SAMPLED = message_numbers("SAMPLE SAMPLED")
UNKNOWN = 127  # the percentage that the driver does not tell


def number(r):
    """Takes an unsigned LEB128 number."""
    value = shift = 0
    while True:
        byte = r.take("B")
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def launch(agent, order=100):
    """Starts a rank that sleeps, and orders a sample every @order ms."""
    agent.launch(["sleep", "600"])
    while agent.next()[0] != STARTED:
        pass  # samples of the attempt before may come
    if order:
        agent.send(SAMPLE, order.to_bytes(4, "little"))


def sample(agent):
    """[(percent, MiB in use, GiB, degrees, watts)] of the next sample."""
    r = agent.answer(SAMPLED)
    for _ in range(6):
        number(r)
    for _ in range(r.take("I")):
        number(r), r.take("B"), number(r), number(r), number(r)
        if r.take("B"):
            number(r)
        r.take("B")
    gpus = [tuple(number(r) for _ in range(5)) for _ in range(r.take("I"))]
    assert not r.rest()
    return gpus


def comes(agent, want):
    """Whether a sample with these GPUs comes in time; the last one."""
    seen = []

    def look():
        seen[:] = sample(agent)
        return seen == want
    return wait_for(look), seen


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def agent_below(guard):
    """The process that obeys; the one which was started guards it."""
    return children(guard)[0]


def helpers(agent):
    found = []
    for pid in children(agent_below(agent.pid)):
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                if f.read() == "hnlaunch-nvml\n":
                    found.append(pid)
        except OSError:
            pass
    return found


def helper(agent):
    assert wait_for(lambda: helpers(agent))
    return helpers(agent)[0]
