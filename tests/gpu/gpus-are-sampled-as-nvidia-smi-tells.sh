#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What an agent's samples have of the GPUs is what nvidia-smi tells of them, in the same order.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P nvidia-smi >/dev/null || skip_all 'no nvidia-smi here'
nvidia-smi -L >"$OUT" 2>&1 && [[ -s $OUT ]] || skip_all "no GPU: $(head -n 1 "$OUT")"
AGENT=$PLAIN/hnlaunch-agent
python_tests <<'PYTHON'
import subprocess
import time

from fake_head import *
from gpu_samples import *

FIELDS = "utilization.gpu,memory.used,memory.reserved,memory.total,temperature.gpu,power.draw"
# NVML counts what the driver reserves as memory in use. Others may use the GPUs meanwhile.
TOLERANCE = (30, 64, 0, 5, 40)


def figure(word):
    """0: "[N/A]" and the like"""
    try:
        return float(word)
    except ValueError:
        return 0


def told():
    """What nvidia-smi tells, as a sample has it."""
    lines = subprocess.run(["nvidia-smi", "--query-gpu=" + FIELDS, "--format=csv,noheader,nounits"],
                           stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout.splitlines()
    gpus = []
    for words in (line.split(",") for line in lines):
        use, used, reserved, total, celsius, watts = map(figure, words)
        gpus.append((use if words[0].strip().isdigit() else UNKNOWN, used + reserved, round(total / 1024), celsius, watts))
    return gpus


def agrees():
    seen[:] = [sample(agent), told()]
    return len(seen[0]) == len(seen[1]) and all(abs(a - b) <= most for got, want in zip(*seen)
                                                for a, b, most in zip(got, want, TOLERANCE))


tap, seen = Tap(), []
agent = Agent()
if not agent.hello["gpus"]:
    print("1..0 # SKIP the driver's files do not tell of GPUs here")
    raise SystemExit(0)
launch(agent, order=1000)
tap.ok("figures come", wait_for(lambda: sample(agent)), agent.logged)
tap.ok("they are nvidia-smi's", wait_for(agrees), *seen)

mine = helper(agent)
with open("/proc/%d/stat" % mine, encoding="ascii") as f:
    before, begin = f.read().rsplit(")", 1)[1].split(), time.monotonic()
for _ in range(30):
    sample(agent)
with open("/proc/%d/stat" % mine, encoding="ascii") as f:
    after, took = f.read().rsplit(")", 1)[1].split(), time.monotonic() - begin
ticks = sum(int(after[i]) - int(before[i]) for i in (11, 12))
share = ticks / os.sysconf("SC_CLK_TCK") / took
print("# the helper takes %.2f %% of a core" % (100 * share))
tap.ok("the helper takes 0.5 % of a core at most", share <= 0.005, share)

agent.stop(0)
while agent.next()[0] != GONE:
    pass
tap.ok("it ends with the ranks", wait_for(lambda: not alive(mine)))
tap.equal("the agent leaves", agent.leave(), 0)
tap.end()
PYTHON
