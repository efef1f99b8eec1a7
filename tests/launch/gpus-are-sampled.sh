#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node's samples have what its GPUs do, as the driver's library tells; a library that hangs, crashes, lacks something
# or is missing costs the figures and nothing else, and its process ends with the ranks or the agent. The library and
# the driver's files are made here; tests/gpu/gpus-are-sampled-as-nvidia-smi-tells.sh asks a real driver.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
driver_of 3

nvml_library whole
nvml_library without_power -DWITHOUT_POWER
nvml_library without_count -DWITHOUT_COUNT
mkdir none
! ldconfig -p | grep -q libnvidia-ml.so.1 || export REAL_LIBRARY=yes
ulimit -c 0
python_tests <<'PYTHON'
import signal
import struct
import time

from fake_head import *
from gpu_samples import *

FOLDER = os.getcwd()
FIGURES = [(90 + i, 70000 + i, 80, 60 + i, 651 + i) for i in range(3)]
tap = Tap()


def tell(word):
    with open("word.new", "w", encoding="ascii") as f:
        f.write(word)
    os.rename("word.new", "word")


def start(library="whole", gpus="3", word="fine", **more):
    tell(word)
    return Agent(env={**os.environ, "LD_LIBRARY_PATH": os.path.join(FOLDER, library), "FAKE_NVML_GPUS": gpus,
                      "FAKE_NVML": os.path.join(FOLDER, "word"), **more})


def end(agent, name):
    """Ends ranks and agent."""
    mine = helpers(agent)
    agent.stop(0)
    while agent.next()[0] != GONE:
        pass
    if mine:
        tap.ok(name + ": its helper ends with the ranks", wait_for(lambda: not alive(mine[0]), 20), mine)
    tap.equal(name + ": the agent leaves", agent.leave(), 0)


# --- figures
agent = start()
launch(agent, order=0)
agent.sleep()
tap.equal("nobody asks for samples: no helper", helpers(agent), [])
agent.send(SAMPLE, struct.pack("<I", 100))
tap.ok("figures come in the order of the driver", *comes(agent, FIGURES))
tap.equal("from one helper", len(helpers(agent)), 1)
tell("lost")
tap.ok("of GPUs that are lost nothing is known", *comes(agent, 3 * [(UNKNOWN, 0, 0, 0, 0)]))
tell("print")
tap.ok("a library that prints harms no figures", *comes(agent, FIGURES))

took = []
for _ in range(3):
    mine = helper(agent)
    agent.signal(signal.SIGKILL)
    while agent.next()[0] != EXITED:
        pass
    begin = time.monotonic()
    while agent.next()[0] != GONE:
        pass
    took.append(time.monotonic() - begin)
    tap.ok("the helper ends with the ranks", wait_for(lambda: not alive(mine)))
    launch(agent)
    tap.ok("the next attempt has figures again", *comes(agent, FIGURES))
# A process that is left of the ranks would get half a second.
tap.ok("the helper does not hold up the end of the ranks", min(took) < 0.4, took)
end(agent, "a good library")

# --- trouble
agent = start()
launch(agent)
tap.ok("figures come", *comes(agent, FIGURES))
tell("hang")
tap.ok("a library that hangs: the figures go", *comes(agent, []))
tap.ok("but not the samples, nor the agent's answers", all(sample(agent) == [] for _ in range(3)))
agent.send(PING, struct.pack("<QQ", 77, 0))
while agent.next()[0] != PONG:
    pass
end(agent, "a library that hangs")

agent = start(word="hang")
launch(agent)
mine = helper(agent)
tap.ok("a library that hangs at once: samples come", all(sample(agent) == [] for _ in range(20)))
os.kill(agent_below(agent.pid), signal.SIGKILL)
tap.ok("its helper does not outlive an agent that is killed", wait_for(lambda: not alive(mine)))
agent.process.wait()

agent = start()
launch(agent)
tap.ok("figures come", *comes(agent, FIGURES))
mine = helper(agent)
os.kill(agent_below(agent.pid), signal.SIGKILL)
tap.ok("nor does one that works", wait_for(lambda: not alive(mine)))
agent.process.wait()

for name, library, word, want in (
        ("a library that crashes", "whole", "crash", "hnlaunch-nvml has ended"),
        ("a driver that is not loaded", "whole", "refuse", "libnvidia-ml.so.1 cannot use the driver"),
        ("a library without what is needed", "without_count", "fine", "no usable libnvidia-ml.so.1 is found"),
        ("no library", "none", "fine", "no usable libnvidia-ml.so.1 is found")):
    if library == "none" and "REAL_LIBRARY" in os.environ:
        continue
    agent = start(library=library, word=word)
    launch(agent)
    tap.ok(name + " is told", agent.log("no figures of GPUs: " + want), agent.logged)
    tap.ok(name + ": samples have no GPUs, and no helper follows at once",
           all(sample(agent) == [] and not helpers(agent) for _ in range(12)))
    end(agent, name)

agent = start()
launch(agent)
tap.ok("figures come", *comes(agent, FIGURES))
os.kill(helper(agent), signal.SIGKILL)
tap.ok("a helper that is killed: no figures", *comes(agent, []))
end(agent, "a helper that is killed")

agent = start(library="without_power")
launch(agent)
tap.ok("a library without power has the other figures", *comes(agent, [gpu[:4] + (0,) for gpu in FIGURES]))
end(agent, "a library without power")

agent = start(gpus="200")
launch(agent)
assert wait_for(lambda: sample(agent))
tap.equal("64 GPUs at most", len(sample(agent)), 64)
end(agent, "many GPUs")

# --- what it costs
agent = start(CUDA_VISIBLE_DEVICES="")
launch(agent)
tap.ok("a node without GPUs has no helper", all(sample(agent) == [] and not helpers(agent) for _ in range(12)))
end(agent, "no GPUs")

os.unlink("word.times")
agent = start(word="burn")
launch(agent, order=0)
tap.ok("the trace begins after a while, without an order", wait_for(lambda: helpers(agent)))


def times():
    with open("word.times", encoding="ascii") as f:
        return [int(line) for line in f]


tap.ok("figures are taken", wait_for(lambda: len(times()) > 2))
gaps = [b - a for a, b in zip(times(), times()[1:])]
# Twelve calls of 1 ms: at 0.4 % of a core there are 3 s between them.
tap.ok("a slow library is asked less often", min(gaps) >= 2900, gaps)
end(agent, "a slow library")
tap.end()
PYTHON
