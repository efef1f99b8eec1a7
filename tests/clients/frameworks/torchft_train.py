# SPDX-License-Identifier: Apache-2.0
"""torchft: each rank's manager meets the others by the store of the job; the lighthouse is at TORCHFT_LIGHTHOUSE.

usage: torchft_train.py    the ranks of this job are one replica group
"""
import os
from datetime import timedelta

import torch
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.manual_seed(1)
model = torch.nn.Linear(1, 1)
manager = Manager(pg=ProcessGroupGloo(timeout=timedelta(seconds=60)), min_replica_size=1,
                  load_state_dict=model.load_state_dict, state_dict=model.state_dict,
                  replica_id="group", timeout=timedelta(seconds=60))
model = DistributedDataParallel(manager, model)
optimizer = Optimizer(manager, torch.optim.SGD(model.parameters(), lr=0.1))
x = torch.linspace(-1, 1, 16).reshape(-1, 1)
losses = []
while manager.current_step() < 10:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), 2 * x)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert manager.num_participants() == 1, manager.num_participants()
assert losses[-1] < losses[0], losses
print("torchft_train: rank %d of %d: step %d" % (rank, ranks, manager.current_step()), flush=True)
manager.shutdown(wait=False)
