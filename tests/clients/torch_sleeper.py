# SPDX-License-Identifier: Apache-2.0
"""torch_sleeper.py RANK init|wait [MEET]: this rank sleeps, the others come for torch.distributed.

init: they call init_process_group and hang. wait: they wait for a key that the sleeper sets late; all
have come to the store before, so that they begin to wait in the same moment.
MEET: they come together, when all have imported it; files of this name and their rank show that.
"""
import datetime
import os
import sys
import time

sleeper, how = int(sys.argv[1]), sys.argv[2]
me = int(os.environ["RANK"])
print("up", flush=True)
if me == sleeper and how == "init":
    time.sleep(1000)

import torch.distributed as dist  # noqa: E402  (takes seconds, which the sleeper does not need)

if len(sys.argv) > 3:
    open(f"{sys.argv[3]}.{me}", "w").close()
    others = [r for r in range(int(os.environ["WORLD_SIZE"])) if r != sleeper]
    while not all(os.path.exists(f"{sys.argv[3]}.{r}") for r in others):
        time.sleep(0.02)
if how == "init":
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
    sys.exit("nobody could have come through")

store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, False,
                      datetime.timedelta(seconds=600))
store.add("here", 1)
while store.add("here", 0) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.05)
if me == sleeper:
    time.sleep(4)
    store.set("dawn", "1")
else:
    store.wait(["dawn"])
