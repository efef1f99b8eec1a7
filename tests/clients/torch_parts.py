# SPDX-License-Identifier: Apache-2.0
"""Parts of torch.distributed that a training may use beside its collectives; each as old as the version has it.

usage: torch_parts.py FOLDER    an empty or absent folder that all ranks see
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed import rpc
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import torch_checks as checks
from torch_checks import RANK, VERSION, WORLD_SIZE, equal, true
from torch_digits import network, parameters_of

FOLDER = sys.argv[1]


def objects():
    got = [None] * WORLD_SIZE
    dist.all_gather_object(got, {"rank": RANK})
    equal("all objects", got, [{"rank": r} for r in range(WORLD_SIZE)])
    words = ["rank %d" % RANK]
    dist.broadcast_object_list(words, src=WORLD_SIZE - 1)
    equal("a broadcast object", words, ["rank %d" % (WORLD_SIZE - 1)])
    mine = [None]
    dist.scatter_object_list(mine, [(r, r) for r in range(WORLD_SIZE)] if RANK == 0 else None, src=0)
    equal("a scattered object", mine, [(RANK, RANK)])
    got = [None] * WORLD_SIZE if RANK == 0 else None
    dist.gather_object("from %d" % RANK, got, dst=0)
    equal("gathered objects", got, ["from %d" % r for r in range(WORLD_SIZE)] if RANK == 0 else None)
    dist.monitored_barrier(timeout=checks.seconds(60))


def sum_of(group):
    mine = torch.tensor([RANK + 1.0])
    dist.all_reduce(mine, group=group)
    return mine.item()


def groups():
    halves = [list(range(WORLD_SIZE // 2)), list(range(WORLD_SIZE // 2, WORLD_SIZE))]
    mine = halves[RANK >= WORLD_SIZE // 2]
    for half in halves:
        group = dist.new_group(half) if half else None
        if half == mine:
            equal("the sum of my half", sum_of(group), float(sum(r + 1 for r in half)))
    if WORLD_SIZE % 2 == 0 and VERSION >= (2, 0):  # 1.13 wants GPUs for these
        group, _ = dist.new_subgroups(group_size=2)
        equal("the sum of my pair", sum_of(group), float(4 * (RANK // 2) + 3))
        crossed = [list(range(k, WORLD_SIZE, 2)) for k in range(2)]
        group, _ = dist.new_subgroups_by_enumeration(crossed)
        equal("the sum of every second rank", sum_of(group), float(sum(r + 1 for r in crossed[RANK % 2])))


def fsdp1():
    """The older FSDP: parameters are flat and spread."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    torch.manual_seed(3)
    alone = network()
    torch.manual_seed(3)
    model = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    data = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    for net in (alone, model):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(data).square().sum().backward()
        optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        off = (parameters_of(model) - parameters_of(alone)).abs().max().item()
    true("as one process alone: off by %g" % off, off < 1e-4)


def async_checkpoint():
    from torch.distributed import checkpoint
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (WORLD_SIZE,))
    whole = torch.arange(4.0 * WORLD_SIZE)
    path = os.path.join(FOLDER, "async")
    checkpoint.async_save({"row": distribute_tensor(whole, mesh, [Shard(0)])}, checkpoint_id=path).result()
    dist.barrier()
    state = {"row": distribute_tensor(torch.zeros_like(whole), mesh, [Shard(0)])}
    checkpoint.load(state, checkpoint_id=path)
    equal("a checkpoint written in the background", state["row"].full_tensor(), whole)


def loader(method):
    """Every row once, over ranks and the processes that read for them."""
    rows = TensorDataset(torch.arange(8 * WORLD_SIZE))
    data = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows), num_workers=2, multiprocessing_context=method)
    mine = torch.cat([batch for (batch,) in data])
    got = [torch.zeros_like(mine) for _ in range(WORLD_SIZE)]
    dist.all_gather(got, mine)
    equal("rows read by %s" % method, torch.cat(got).sort().values, rows.tensors[0])


def private_store():
    """A server of the program's own, on rank 0's node; its port travels by the group."""
    host = os.environ["MASTER_ADDR"]
    server = None
    if RANK == 0:
        server = dist.TCPStore(host, 0, WORLD_SIZE, True, checks.seconds(60), wait_for_workers=False)
    words = [server.port if server else None]
    dist.broadcast_object_list(words)
    store = server or dist.TCPStore(host, words[0], WORLD_SIZE, False, checks.seconds(60), wait_for_workers=False)
    store.add("come", 1)
    dist.barrier()
    equal("who came to a store of one's own", store.add("come", 0), WORLD_SIZE)
    dist.barrier()


def double(x):
    return 2 * x


def calls():
    """Calls to the other ranks, in a world of their own."""
    rpc.init_rpc("worker%d" % RANK, rank=RANK, world_size=WORLD_SIZE)
    other = "worker%d" % ((RANK + 1) % WORLD_SIZE)
    equal("a call", rpc.rpc_sync(other, double, args=(torch.tensor([RANK]),)), torch.tensor([2 * RANK]))
    equal("a later answer", rpc.rpc_async(other, double, args=(21,)).wait(), 42)
    equal("a remote reference", rpc.remote(other, double, args=(4,)).to_here(), 8)
    rpc.shutdown()


def variables():
    """Those of a worker of torchrun, but for the signals that its agent handles."""
    wanted = """RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_NAME ROLE_RANK
        ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT
        TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE OMP_NUM_THREADS"""
    equal("variables that are missing", [name for name in wanted.split() if name not in os.environ], [])


def main():
    dist.init_process_group("gloo", timeout=checks.seconds(120))
    variables()
    objects()
    groups()
    if VERSION >= (2, 6):
        fsdp1()
        async_checkpoint()
    for method in ("fork", "spawn"):
        loader(method)
    private_store()
    dist.barrier()
    dist.destroy_process_group()
    calls()
    checks.done("torch_parts")


if __name__ == "__main__":
    main()
