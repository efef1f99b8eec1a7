#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The guard ends an agent whose loop does not turn any more, with its ranks; but not one that goes on within the
# limit, nor one that was stopped together with its guard, nor one in a debugger.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

mkdir -m 700 "$TMP/run"
export XDG_RUNTIME_DIR=$TMP/run

# The head that waits for its agent longer than the guard.
for level in tree pidns; do
    hn -o run.contain="$level" --local 1 true
    if [[ $RC != 0 ]]; then
        skip "$level" "this machine does not give it: $(verdict)"
        continue
    fi
    HNLAUNCH_GUARD_LIMIT_MS=2000 start -o run.contain="$level" --node-timeout 60s --local 2 sh -c 'echo up; exec sleep 300'
    ok "$level: two ranks are up" wait_for lines_are "$OUT" 2
    guard=$(pgrep -P "$PID" -x hnlaunch-guard)
    kill -STOP "$(pgrep -P "$guard")"
    exits "$level: a hanging agent is a lost node" 125 finish
    verdict_has "$level: the verdict says why" 'lost localhost' 'its guard: no response for 2 s'
    nothing_left "$level: agent and ranks are gone"
    is "$level: so is the job folder" "$(ls "$TMP/run")" ''
done

python_tests <<'PYTHON'
import ctypes
import signal
import sys
import time

from fake_head import *

tap = Tap()
tap.tests, tap.failures = map(int, sys.argv[1:])


def begin(limit_ms):
    agent = Agent(env={**os.environ, "HNLAUNCH_GUARD_LIMIT_MS": str(limit_ms)})
    agent.launch(["sleep", "300"])
    agent.inner, agent.rank = int(agent.hello["pid"]), agent.play(STARTED).pids[0]
    return agent


def lives_on(agent, name):
    """It answers, and its rank has not been touched."""
    agent.send(PING, struct.pack("<QQ", 1, 0))
    try:
        agent.answer(PONG)
        tap.ok(name, alive(agent.rank))
        agent.stop(0)
        agent.play()
        agent.leave()
    except Lost as why:
        tap.ok(name, False, why)


ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
ATTACH, DETACH = 16, 17

# All of them are stopped at the same time.
brief, idle, both, traced = begin(60000), begin(2000), begin(6000), begin(2000)
stopped = brief.inner, both.inner, both.pid
for pid in stopped:
    os.kill(pid, signal.SIGSTOP)
attached = ptrace(ATTACH, traced.inner, 0, 0) == 0
if attached:
    os.waitpid(traced.inner, 0x40000000)  # __WALL
time.sleep(1)
os.kill(brief.inner, signal.SIGCONT)
lives_on(brief, "an agent that goes on within the limit lives")
time.sleep(3)
lives_on(idle, "so does one that has nothing to do for longer")
if attached:
    ptrace(DETACH, traced.inner, 0, 0)
    lives_on(traced, "one in a debugger lives")
else:
    traced.leave()
    print("# no debugger here: " + os.strerror(ctypes.get_errno()))
# Each of the guard's ticks may have passed but for the last three: these are time enough to go on.
time.sleep(4)
for pid in both.inner, both.pid:
    os.kill(pid, signal.SIGCONT)
lives_on(both, "one that was stopped with its guard lives, however long it took")
tap.end()
PYTHON
