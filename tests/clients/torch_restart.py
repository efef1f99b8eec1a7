# SPDX-License-Identifier: Apache-2.0
"""A training with a checkpoint: ranks that are started again go on where the others stopped.

usage: torch_restart.py CHECKPOINT [DEATHS]

Rank (attempt + 1) % WORLD_SIZE dies after epoch attempt + 1 in each of the first DEATHS attempts. A run that
was interrupted ends with the same parameters as one that was not: compare the last lines.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_checks as checks
from torch_digits import digits, network, optimizer_of, parameters_of, train_epoch

CHECKPOINT = sys.argv[1]
DEATHS = int(sys.argv[2]) if len(sys.argv) > 2 else 0
EPOCHS = 4
ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def load(model, optimizer):
    """Returns the first epoch to do."""
    if not os.path.exists(CHECKPOINT):
        return 0
    state = torch.load(CHECKPOINT)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def save(model, optimizer, epoch):
    if checks.RANK == 0:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                    "epoch": epoch}, CHECKPOINT + ".new")
        os.rename(CHECKPOINT + ".new", CHECKPOINT)
    dist.barrier()


def fresh():
    """No rank of an earlier attempt has left anything in the store of this group."""
    store = dist.distributed_c10d._get_default_store()
    come = store.add("attempt", 1)
    checks.true("rank %d of %d: a fresh store" % (come, checks.WORLD_SIZE), come <= checks.WORLD_SIZE)


dist.init_process_group("gloo", timeout=checks.seconds(600))
fresh()
torch.manual_seed(1)
model = DistributedDataParallel(network())
optimizer = optimizer_of(model)
data = digits()
first = load(model, optimizer)
checks.equal("the epoch this attempt begins with", first, ATTEMPT)
for epoch in range(first, EPOCHS):
    loss = train_epoch(model, optimizer, data, epoch)
    save(model, optimizer, epoch + 1)
    if ATTEMPT < DEATHS and checks.RANK == (ATTEMPT + 1) % checks.WORLD_SIZE:
        sys.stderr.write("rank %d dies in attempt %d\n" % (checks.RANK, ATTEMPT))
        os._exit(7)
checks.done("torch_restart", "attempt %d, loss %.4f, sum %.2f" % (
    ATTEMPT, loss, parameters_of(model).double().abs().sum()))
dist.barrier()
dist.destroy_process_group()
