#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# However an attempt ends, and whatever its processes do against it, they are gone afterwards.
. "$(dirname "$0")/../lib/tap.sh"

mkdir "$TMP/run"
export XDG_RUNTIME_DIR=$TMP/run
python_tests <<'PYTHON'
import signal
import time

from fake_head import *

tap = Tap()
RUN = os.environ["XDG_RUNTIME_DIR"]

# Every process writes its pid; each flees in another way.
FLEE = """
trap '' TERM
echo $$
(setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' &)
(setsid sh -c '(setsid sh -c "echo \\$\\$; exec sleep 300" & )' & )
sh -c 'echo $$; kill -STOP $$; sleep 300' &
env -u HN_RUN_ID -u HN_STORE setsid sh -c 'echo $$; exec sleep 300' &
echo ready
while :; do sleep 1; done
"""


def pids_of(agent, ranks):
    """Starts the fugitives; their pids."""
    agent.launch(["sh", "-c", FLEE], ranks=ranks)
    text = b""
    while text.count(b"\n") < 6 * ranks:
        text += b"".join(agent.play(OUTPUT).streams.values())
    pids = [int(word) for word in text.split() if word != b"ready"]
    assert len(pids) == 5 * ranks and all(alive(p) for p in pids), text
    return pids


def gone(pids):
    return wait_for(lambda: not [p for p in pids if alive(p)])


agent = Agent()
pids = pids_of(agent, 3)
begin = time.monotonic()
agent.stop(300)
result = agent.play()
tap.equal("after STOP all fugitives are dead before GONE", [p for p in pids if alive(p)], [])
tap.ok("not before their grace was over", time.monotonic() - begin > 0.29)
tap.equal("they are told to be stopped and killed", set(result.how.values()), {(1, 1)})
tap.equal("by KILL", set(result.status.values()), {signal.SIGKILL})

pids = pids_of(agent, 1)
agent.stop(0)
agent.play()
tap.equal("without grace, too", [p for p in pids if alive(p)], [])

agent.launch(["sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; kill -STOP $$; sleep 60 & wait"])
result = agent.play(OUTPUT)
wait_for(lambda: open("/proc/%d/stat" % result.pids[0]).read().split()[2] == "T")
agent.stop(20000)
result = agent.play()
tap.equal("a stopped rank can still obey TERM", (result.out(), result.status[0] >> 8, result.how[0]),
          (b"bye\n", 5, (1, 0)))

agent.launch(["sleep", "60"])
agent.play(STARTED)
agent.stop(60000)
result = agent.play()
tap.equal("who obeys is not killed", (result.status[0], result.how[0]), (signal.SIGTERM, (1, 0)))

agent.launch(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"])
agent.play(OUTPUT)
agent.stop(60000)
agent.stop(100)
result = agent.play()
tap.equal("a second STOP may shorten the grace", (result.status[0], result.how[0]),
          (signal.SIGKILL, (1, 1)))

# The reader of the pipe hears of the end of its only writer, the rank.
os.mkfifo("rank")
result = agent.run(["sh", "-c", "(trap '' TERM; read x <rank; echo late) & exec 3>rank; exit 0"])
tap.equal("a last word of a child is not lost", result.out(), b"late\n")
result = agent.run(["sh", "-c", "(trap '' TERM; setsid sleep 300 & echo $!; : >said; wait) & "
                    "until [ -e said ]; do sleep 0.05; done; exit 3"])
tap.ok("a child that stays is ended with the last rank", not alive(int(result.out())) and
       result.status[0] == 3 << 8, vars(result))
agent.launch(["sh", "-c", "[ $RANK = 0 ] && { setsid sleep 300 & echo $!; exit 0; }; "
              "until [ -e seen ]; do sleep 0.05; done; exit 0"], ranks=2)
result = agent.play(EXITED)
other = int(result.out() or agent.play(OUTPUT).out())
tap.ok("but not before", alive(other), other)
open("seen", "w").close()
agent.play()
tap.ok("with it", not alive(other))

agent.run(["sh", "-c", "echo {} >\"$TORCHELASTIC_ERROR_FILE\""], ranks=2)
tap.equal("an attempt leaves no files of its own in the job's folder",
          [f for d in os.listdir(RUN) if d.startswith("hnlaunch-")
           for f in os.listdir(os.path.join(RUN, d))], ["store"])
tap.equal("it leaves in peace", agent.leave(), 0)
tap.equal("and its folder is gone", os.listdir(RUN), [])

# --- the head goes away
agent = Agent()
pids = pids_of(agent, 2)
agent.to.close()
tap.ok("when the head closes, all fugitives go", gone(pids), pids)
tap.ok("the agent goes, too", wait_for(lambda: agent.process.poll() is not None))
tap.equal("its folder is gone", os.listdir(RUN), [])

agent = Agent()
agent.launch(["sh", "-c", "trap '' TERM; yes"])
agent.play(OUTPUT)
agent.to.close()
agent.process.stdout.close()
tap.ok("a rank in the middle of a word goes with it", wait_for(lambda: agent.process.poll() is not None))

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    agent = Agent()
    pids = pids_of(agent, 1)
    os.kill(agent.pid, number)
    tap.ok("%s ends everything" % number.name, gone(pids), pids)
    tap.equal("and the agent", agent.process.wait(60), 0)
tap.equal("no folder is left", os.listdir(RUN), [])

agent = Agent()
agent.launch(["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"], ranks=3)
pids = {}
while len(pids) < 3:
    pids.update(agent.play(STARTED).pids)
os.kill(agent.pid, signal.SIGKILL)
tap.ok("a killed agent takes its ranks along", gone(pids.values()), pids)
agent.process.wait()

# --- a program that is missing on one rank only cannot be told from here: the others must go
agent = Agent()
agent.launch(["sh", "-c", "exec sleep 300"], ranks=2)
pids = {}
while len(pids) < 2:
    pids.update(agent.play(STARTED).pids)
agent.send(BYE)
tap.ok("after BYE the ranks run on", agent.silent(0.3) and all(map(alive, pids.values())))
agent.stop(1000)
agent.play()
tap.equal("and the agent leaves after them", agent.process.wait(60), 0)
tap.end()
PYTHON
