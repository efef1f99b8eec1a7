# SPDX-License-Identifier: Apache-2.0
"""One rank dies in the middle of a training; the others are in a collective with it by then.

usage: torch_dies.py RANK HOW

HOW  exit     leaves with code 7
     raise    an exception that nobody catches
     kill     SIGKILL, as by the OOM killer
     crash    reads address 0
     hang     stops taking part, alive (the others wait for it)
     store    ends right after the store is there, before anybody else has come to the meeting
"""
import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_checks as checks
from torch_digits import digits, network, optimizer_of, train_epoch

VICTIM, HOW = int(sys.argv[1]), sys.argv[2]


def die(how):
    if how == "exit":
        os._exit(7)
    if how == "raise":
        raise ValueError("the loader of rank %d found nothing" % checks.RANK)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        ctypes.string_at(0)
    time.sleep(600)


if HOW == "store":
    if checks.RANK == VICTIM:
        checks.connect().set("seen", "yes")
        os._exit(9)
dist.init_process_group("gloo", timeout=checks.seconds(600))
torch.manual_seed(0)
model = DistributedDataParallel(network())
train_epoch(model, optimizer_of(model), digits(), 0,
            lambda step: step == 3 and checks.RANK == VICTIM and die(HOW))
