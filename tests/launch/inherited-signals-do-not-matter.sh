#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that was started with signals ignored or blocked hears of its ranks' end, and leaves.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

python_tests <<'PYTHON'
import signal

from fake_head import *

tap = Tap()
ways = {
    "SIGCHLD ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "all signals blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
}
for name, way in ways.items():
    agent = Agent(preexec_fn=way)
    try:
        agent.launch(["sh", "-c", "exit 3"])
        tap.equal(name + ": a rank's end is told", agent.play().status, {0: 3 << 8})
        tap.equal(name + ": the agent leaves", agent.leave(), 0)
    except (Lost, subprocess.TimeoutExpired) as e:
        tap.ok(name, False, e)
        agent.process.kill()
tap.end()
PYTHON
