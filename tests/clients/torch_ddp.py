# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over gloo learns the digits, and all ranks end with the same parameters.

usage: torch_ddp.py [EPOCHS]
"""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_checks as checks
from torch_digits import digits, network, optimizer_of, parameters_of, train_epoch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())  # DDP has to carry rank 0's parameters to the others
model = DistributedDataParallel(network())
optimizer = optimizer_of(model)
data = digits()
curve = [train_epoch(model, optimizer, data, epoch) for epoch in range(EPOCHS)]
checks.true("the loss falls: %r" % curve, curve[-1] < 0.5 * curve[0])

mine = parameters_of(model)
all_of_them = [torch.empty_like(mine) for _ in range(checks.WORLD_SIZE)]
dist.all_gather(all_of_them, mine)
for rank, other in enumerate(all_of_them):
    checks.equal("the parameters of rank %d" % rank, other, mine)
checks.done("torch_ddp", "loss %.4f" % curve[-1])
dist.barrier()
dist.destroy_process_group()
