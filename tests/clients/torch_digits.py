# SPDX-License-Identifier: Apache-2.0
"""The small network that the PyTorch test programs train on the digits of examples/data.

The global batch is the same for every number of ranks, so the loss is, too.
"""
import os

import torch
import torch.distributed as dist

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/data/digits.csv")
BATCH = 240  # of all ranks together: a multiple of 1, 2, 3, 4, 5, 6 and 8


def digits():
    """Images and labels."""
    with open(DATA) as f:
        rows = [[int(x) for x in line.split(",")] for line in f]
    table = torch.tensor(rows)
    return table[:, :64].float() / 16, table[:, 64]


def network():
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)


def parameters_of(model):
    """All parameters in one row."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def train_epoch(model, optimizer, data, epoch, after_step=lambda step: None):
    """The mean loss over all ranks; after_step(number of the step) runs on every rank."""
    images, labels = data
    share = BATCH // dist.get_world_size()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    total = torch.zeros(1)
    steps = len(images) // BATCH
    for step in range(steps):
        first = step * BATCH + dist.get_rank() * share
        mine = order[first:first + share]
        loss = torch.nn.functional.cross_entropy(model(images[mine]), labels[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        after_step(step)
    dist.all_reduce(total)
    return total.item() / steps / dist.get_world_size()
