# SPDX-License-Identifier: Apache-2.0
"""What PyTorch 1.13 does not have: meshes, tensors spread over them, FSDP, checkpoints of all ranks.

usage: torch_new.py FOLDER    an empty or absent folder that all ranks see
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import torch_checks as checks
from torch_checks import RANK, WORLD_SIZE, equal, true
from torch_digits import BATCH, digits, network, optimizer_of, parameters_of, train_epoch

FOLDER = sys.argv[1]


def meshes():
    """Rows and columns of the ranks are groups of their own."""
    columns = 2 if WORLD_SIZE % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (WORLD_SIZE // columns, columns), mesh_dim_names=("data", "model"))
    row, column = divmod(RANK, columns)
    equal("my place", (mesh.get_local_rank("data"), mesh.get_local_rank("model")), (row, column))
    mine = torch.tensor([RANK + 1.0])
    dist.all_reduce(mine, group=mesh.get_group("model"))
    equal("the sum of my row", mine.item(), float(sum(row * columns + c + 1 for c in range(columns))))
    mine = torch.tensor([RANK + 1.0])
    dist.all_reduce(mine, group=mesh["data"].get_group())
    equal("the sum of my column", mine.item(), float(sum(range(column + 1, WORLD_SIZE + 1, columns))))


def spread_tensors():
    mesh = init_device_mesh("cpu", (WORLD_SIZE,))
    whole = torch.arange(6 * WORLD_SIZE * 4, dtype=torch.float32).reshape(6 * WORLD_SIZE, 4)
    spread = distribute_tensor(whole, mesh, [Shard(0)])
    equal("my part", spread.to_local(), whole[6 * RANK:6 * RANK + 6])
    equal("put together", spread.full_tensor(), whole)
    product = torch.mm(spread, distribute_tensor(whole[:4].t().contiguous(), mesh, [Replicate()]))
    equal("a product of parts", product.full_tensor(), whole @ whole[:4].t())
    equal("a sum over all", spread.sum().full_tensor(), whole.sum())


def serial_parameters(data):
    """What one process alone gets from the same batches."""
    torch.manual_seed(5)
    model = network()
    optimizer = optimizer_of(model)
    images, labels = data
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    for step in range(len(images) // BATCH):
        batch = order[step * BATCH:(step + 1) * BATCH]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    return parameters_of(model)


def fsdp_model():
    torch.manual_seed(5)
    model = network()
    mesh = init_device_mesh("cpu", (WORLD_SIZE,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def whole_parameters(model):
    return torch.cat([p.full_tensor().detach().reshape(-1) for p in model.parameters()])


def fsdp():
    """Sharded parameters learn as whole ones do, and come back from a checkpoint."""
    data = digits()
    model = fsdp_model()
    held = sum(p.to_local().numel() for p in model.parameters())
    true("a rank holds a part: %d" % held, held <= 64 * 32 + 32 + 320 + 10 and (WORLD_SIZE == 1 or held < 1700))
    train_epoch(model, optimizer_of(model), data, 0)
    learned = whole_parameters(model)
    off = (learned - serial_parameters(data)).abs().max().item()
    true("as one process alone: off by %g" % off, off < 1e-4)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=os.path.join(FOLDER, "checkpoint"))
    other = fsdp_model()
    state = {"model": other.state_dict()}
    checkpoint.load(state, checkpoint_id=os.path.join(FOLDER, "checkpoint"))
    other.load_state_dict(state["model"])
    equal("from the checkpoint", whole_parameters(other), learned)


dist.init_process_group("gloo", timeout=checks.seconds(60))
meshes()
spread_tensors()
fsdp()
checks.done("torch_new")
dist.barrier()
dist.destroy_process_group()
