# SPDX-License-Identifier: Apache-2.0
"""A training as torchrun's elastic examples have it: it knows its place from the environment alone, loads the newest
snapshot and goes on with as many ranks as there are.

usage: torch_elastic.py SNAPSHOT HOLD EPOCHS

In the first attempt ranks sleep after epoch HOLD. The samples of an epoch are shared out among all ranks; the sum of
all samples that a rank has seen is compared with that of the whole set.
"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import torch_checks as checks

SAMPLES = 240


class Trainer:
    def __init__(self, snapshot):
        self.snapshot = snapshot
        self.epoch = 0
        torch.manual_seed(1)
        self.model = torch.nn.Linear(4, 1)
        if os.path.exists(snapshot):
            state = torch.load(snapshot)
            self.model.load_state_dict(state["MODEL_STATE"])
            self.epoch = state["EPOCHS_RUN"]
        self.model = DDP(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        inputs = torch.arange(SAMPLES * 4, dtype=torch.float32).reshape(SAMPLES, 4) / SAMPLES
        data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
        self.data = DataLoader(data, batch_size=10, sampler=DistributedSampler(data, shuffle=True))

    def run_epoch(self):
        seen = torch.zeros(1)
        self.data.sampler.set_epoch(self.epoch)
        for inputs, targets in self.data:
            seen += len(inputs)
            self.optimizer.zero_grad()
            torch.nn.functional.mse_loss(self.model(inputs), targets).backward()
            self.optimizer.step()
        dist.all_reduce(seen)
        checks.equal("samples of epoch %d" % self.epoch, int(seen), SAMPLES)
        self.epoch += 1

    def save(self):
        if dist.get_rank() == 0:
            torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": self.epoch}, self.snapshot + ".new")
            os.rename(self.snapshot + ".new", self.snapshot)
        dist.barrier()


dist.init_process_group("gloo", timeout=checks.seconds(600))
restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
trainer = Trainer(sys.argv[1])
checks.equal("the size of the group", dist.get_world_size(), int(os.environ["WORLD_SIZE"]))
checks.equal("the rank in the group", dist.get_rank(), int(os.environ["RANK"]))
while trainer.epoch < int(sys.argv[3]):
    trainer.run_epoch()
    trainer.save()
    print("attempt %d epoch %d rank %d of %d on %s" % (
        restart, trainer.epoch, dist.get_rank(), dist.get_world_size(), socket.gethostname()), flush=True)
    if restart == 0 and trainer.epoch == int(sys.argv[2]):
        time.sleep(3600)
checks.done("torch_elastic", "attempt %d" % restart)
dist.barrier()
dist.destroy_process_group()
