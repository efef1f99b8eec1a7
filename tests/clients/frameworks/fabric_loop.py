# SPDX-License-Identifier: Apache-2.0
"""Lightning's Fabric: one's own training loop, collectives, and a checkpoint.

usage: fabric_loop.py NODES PROCESSES FOLDER
"""
import os
import sys

try:
    import lightning as L
except ImportError:
    import lightning_fabric as L
import torch
from torch.utils.data import DataLoader, TensorDataset

NODES, PROCESSES, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def main():
    fabric = L.Fabric(accelerator="cpu", devices=PROCESSES, num_nodes=NODES, strategy="ddp")
    fabric.launch()
    ranks = NODES * PROCESSES
    assert fabric.world_size == ranks, fabric.world_size
    fabric.seed_everything(1)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    model = torch.nn.Linear(1, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    data = fabric.setup_dataloaders(DataLoader(TensorDataset(x, 2 * x), batch_size=4))
    seen = []
    for inputs, wanted in data:
        seen.extend(inputs.flatten().tolist())
        optimizer.zero_grad()
        fabric.backward(torch.nn.functional.mse_loss(model(inputs), wanted))
        optimizer.step()
    together = fabric.all_gather(torch.tensor(seen)).flatten().sort().values
    assert torch.equal(together, x.flatten()), together
    weights = fabric.all_gather(model.weight.detach()).flatten()
    assert bool((weights == weights[0]).all()), weights
    assert fabric.broadcast("rank %d" % fabric.global_rank) == "rank 0"
    total = fabric.all_reduce(torch.tensor(float(fabric.global_rank)), reduce_op="sum").item()
    assert total == ranks * (ranks - 1) / 2, total

    path = os.path.join(FOLDER, "fabric.ckpt")
    fabric.save(path, {"model": model, "steps": len(seen)})
    state = {"model": torch.nn.Linear(1, 1)}
    rest = fabric.load(path, state)
    assert rest["steps"] == len(seen) and torch.equal(state["model"].weight, model.module.weight), rest
    fabric.barrier()
    if fabric.is_global_zero:
        print("fabric_loop: ok on %d ranks" % ranks, flush=True)


main()
