# SPDX-License-Identifier: Apache-2.0
"""torch_hanging.py HOW RANK [FILE]: all ranks train some steps with Gloo; then this rank does what HOW says.

sleep, stop, fifo, order, skip (it leaves the loop and waits in a barrier); compute and all-train are no hangs.
"""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

how, victim, file = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""


def load_batch():
    if how == "sleep":
        time.sleep(1000)
    elif how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "fifo":
        with open(file, encoding="ascii") as f:
            f.read()
    elif how == "order":
        dist.all_gather([torch.ones(4) for _ in range(dist.get_world_size())], torch.ones(4))
    elif how == "skip":
        dist.barrier()
    elif how == "compute":
        while True:
            sum(range(1000))


def train():
    step = 0
    while how == "all-train" or step < 3:
        if step == 2:
            print("met", flush=True)
            if dist.get_rank() == victim:
                load_batch()
        dist.all_reduce(torch.ones(4))
        if how == "all-train":
            torch.rand(200, 200) @ torch.rand(200, 200)
        step += 1


torch.set_num_threads(1)
seconds = float(os.environ.get("COLLECTIVE_SECONDS", "600"))
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
train()
