# SPDX-License-Identifier: Apache-2.0
"""Ray Train's TorchTrainer on the cluster that is there: workers on different nodes make one process group.

usage: ray_train.py WORKERS NODES FOLDER
"""
import socket
import sys

import ray
import torch
from ray import train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model

WORKERS, NODES, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def learn():
    import torch.distributed as dist
    torch.manual_seed(1)
    model = prepare_model(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 16).reshape(-1, 1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), 2 * x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, socket.gethostname())
    assert len(names) == WORKERS and len(set(names)) == NODES, names
    train.report({"loss": losses[-1]})


ray.init()
TorchTrainer(learn, scaling_config=ScalingConfig(num_workers=WORKERS, resources_per_worker={"CPU": 1}),
             run_config=RunConfig(storage_path=FOLDER)).fit()
print("ray_train: ok on %d ranks, %d nodes" % (WORKERS, NODES), flush=True)
