#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# When the guard is killed the agent says so before it ends its ranks, also where sshd, whose child the
# guard was, has closed the way from the head in the same moment. When the agent is killed the guard says so
# after it has ended the ranks.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export TMP
python_tests <<'PYTHON'
import signal
import tempfile

from fake_head import *

LEAVING = 43
tap = Tap()


def last_words(kill, close):
    """What the agent says of its leaving, "" = nothing, and whether its rank was alive then, or if we
    come to look late, had been asked to end before."""
    agent, asked = Agent(), tempfile.mkdtemp(dir=os.environ["TMP"]) + "/asked"
    agent.launch(["sh", "-c", "trap ': >$0' TERM; echo up; while :; do sleep 1; done", asked])
    result = agent.play(OUTPUT)
    rank, inner = result.pids[0], int(agent.hello["pid"])
    os.kill(inner, signal.SIGSTOP)  # so that it learns of everything at once
    if kill:
        os.kill(agent.pid, signal.SIGKILL)
        agent.process.wait()
    if close:
        agent.to.close()
    os.kill(inner, signal.SIGCONT)
    said = (b"", None)
    try:
        while True:
            kind, body = agent.next()
            if kind == LEAVING:
                said = body.text(), alive(rank) or os.path.exists(asked)
    except Lost:
        pass
    assert wait_for(lambda: not alive(rank) and not alive(inner))
    return said


def guards_words():
    """What the guard says of an agent that was killed, and whether its rank was alive then."""
    agent = Agent()
    agent.launch(["sh", "-c", "echo up; exec sleep 60"])
    rank, inner = agent.play(OUTPUT).pids[0], int(agent.hello["pid"])
    os.kill(inner, signal.SIGKILL)
    try:
        while True:
            kind, body = agent.next()
            if kind == LEAVING:
                return body.text(), alive(rank)
    except Lost:
        return b"", alive(rank)


tap.equal("an agent is killed", guards_words(), (b"killed by signal 9, Killed", False))
tap.equal("a guard is killed", last_words(True, False), (b"its guard was killed", True))
tap.equal("and the way from the head is closed", last_words(True, True), (b"its guard was killed", True))
tap.equal("of a head that leaves nothing is said", last_words(False, True), (b"", None))
tap.end()
PYTHON
