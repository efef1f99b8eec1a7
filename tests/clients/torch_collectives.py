# SPDX-License-Identifier: Apache-2.0
"""Every collective of torch.distributed that gloo has on CPUs, checked against a serial sum.

usage: torch_collectives.py
"""
import torch
import torch.distributed as dist

import torch_checks as checks
from torch_checks import RANK, WORLD_SIZE, equal, may_be_unsupported, seconds, true

RANKS = range(WORLD_SIZE)
KINDS = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8]


def piece(rank, n=5, kind=torch.float32):
    """What a rank brings: small whole numbers, so that every order of a sum is exact."""
    return ((torch.arange(n) + 3 * rank) % 7 + 1).to(kind)


def pieces(n=5, kind=torch.float32):
    return torch.stack([piece(rank, n, kind) for rank in RANKS])


def reduces():
    for kind in KINDS:
        mine = piece(RANK, kind=kind)
        dist.all_reduce(mine)
        equal("all_reduce %s" % kind, mine, pieces(kind=kind).sum(0).to(kind))
    for op, want in ((dist.ReduceOp.MIN, pieces().min(0)[0]), (dist.ReduceOp.MAX, pieces().max(0)[0]),
                     (dist.ReduceOp.PRODUCT, pieces().prod(0))):
        mine = piece(RANK)
        dist.all_reduce(mine, op)
        equal("all_reduce %s" % op, mine, want)
    big = piece(RANK, 300000)
    work = dist.all_reduce(big, async_op=True)
    work.wait()
    equal("all_reduce of 300000", big, pieces(300000).sum(0))
    for root in RANKS:
        mine = piece(RANK)
        dist.reduce(mine, root)
        if RANK == root:
            equal("reduce to %d" % root, mine, pieces().sum(0))


def broadcasts():
    for root in RANKS:
        mine = piece(RANK, 1000)
        dist.broadcast(mine, root)
        equal("broadcast of %d" % root, mine, piece(root, 1000))


def gathers():
    got = [torch.zeros(5) for _ in RANKS]
    dist.all_gather(got, piece(RANK))
    equal("all_gather", torch.stack(got), pieces())
    flat = torch.zeros(5 * WORLD_SIZE)
    into = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    may_be_unsupported("all_gather_into_tensor", lambda: (
        into(flat, piece(RANK)), equal("all_gather_into_tensor", flat, pieces().reshape(-1))))
    for root in RANKS:
        got = [torch.zeros(5) for _ in RANKS] if RANK == root else None
        dist.gather(piece(RANK), got, root)
        if RANK == root:
            equal("gather to %d" % root, torch.stack(got), pieces())


def scatters():
    for root in RANKS:
        mine = torch.zeros(5)
        dist.scatter(mine, [piece(rank + root) for rank in RANKS] if RANK == root else None, root)
        equal("scatter of %d" % root, mine, piece(RANK + root))
    may_be_unsupported("reduce_scatter", reduce_scatter)
    may_be_unsupported("reduce_scatter_tensor", reduce_scatter_tensor)


def reduce_scatter():
    mine = torch.zeros(5)
    dist.reduce_scatter(mine, [piece(RANK + 2 * rank) for rank in RANKS])
    equal("reduce_scatter", mine, sum(piece(rank + 2 * RANK) for rank in RANKS))


def reduce_scatter_tensor():
    mine = torch.zeros(5)
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    scatter(mine, torch.cat([piece(RANK + 2 * rank) for rank in RANKS]))
    equal("reduce_scatter_tensor", mine, sum(piece(rank + 2 * RANK) for rank in RANKS))


def word(source, target):
    return torch.tensor([100.0 * source + target, 1.0])


def all_to_all():
    got = [torch.zeros(2) for _ in RANKS]
    dist.all_to_all(got, [word(RANK, rank) for rank in RANKS])
    equal("all_to_all", torch.stack(got), torch.stack([word(rank, RANK) for rank in RANKS]))


def all_to_all_single():
    got = torch.zeros(2 * WORLD_SIZE)
    dist.all_to_all_single(got, torch.cat([word(RANK, rank) for rank in RANKS]))
    equal("all_to_all_single", got, torch.cat([word(rank, RANK) for rank in RANKS]))
    # Rank r sends r + 1 numbers to everybody.
    got = torch.zeros(sum(rank + 1 for rank in RANKS))
    dist.all_to_all_single(got, torch.full(((RANK + 1) * WORLD_SIZE,), float(RANK)),
                           [rank + 1 for rank in RANKS], [RANK + 1] * WORLD_SIZE)
    equal("all_to_all_single, uneven", got,
          torch.cat([torch.full((rank + 1,), float(rank)) for rank in RANKS]))


def point_to_point():
    if WORLD_SIZE == 1:
        return
    after, before = (RANK + 1) % WORLD_SIZE, (RANK - 1) % WORLD_SIZE
    got = torch.zeros(5)
    if RANK % 2 == 0 and after != 0:
        dist.send(piece(RANK), after)
    elif RANK % 2 == 1:
        dist.recv(got, before)
        equal("recv", got, piece(before))
    sent, wanted = dist.isend(piece(RANK), after, tag=7), dist.irecv(got, before, tag=7)
    sent.wait()
    wanted.wait()
    equal("irecv", got, piece(before))
    got = torch.zeros(5)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, piece(RANK + 1), after),
                                        dist.P2POp(dist.irecv, got, before)]):
        work.wait()
    equal("batch_isend_irecv", got, piece(before + 1))
    # From anybody: rank 0 hears of all the others.
    if RANK == 0:
        heard = {dist.recv(torch.zeros(1)) for _ in range(WORLD_SIZE - 1)}
        equal("recv from anybody", heard, set(range(1, WORLD_SIZE)))
    else:
        dist.send(torch.ones(1), 0)


def note(rank):
    return {"rank": rank, "text": "\u00e4\u0000" * rank, "list": list(range(rank))}


def objects():
    got = [None] * WORLD_SIZE
    dist.all_gather_object(got, note(RANK))
    equal("all_gather_object", got, [note(rank) for rank in RANKS])
    root = WORLD_SIZE - 1
    got = [None] * WORLD_SIZE if RANK == root else None
    dist.gather_object(note(RANK), got, root)
    if RANK == root:
        equal("gather_object", got, [note(rank) for rank in RANKS])
    got = [note(3), "x"] if RANK == root else [None, None]
    dist.broadcast_object_list(got, root)
    equal("broadcast_object_list", got, [note(3), "x"])
    got = [None]
    dist.scatter_object_list(got, [note(rank) for rank in RANKS] if RANK == root else None, root)
    equal("scatter_object_list", got[0], note(RANK))


def barriers():
    dist.barrier()
    dist.monitored_barrier(timeout=seconds(60))


def meet_in(group, members):
    """Sums among some of the ranks."""
    if RANK not in members:
        return
    mine = piece(RANK)
    dist.all_reduce(mine, group=group)
    equal("all_reduce of %r" % members, mine, sum(piece(rank) for rank in members))
    equal("the size of %r" % members, dist.get_world_size(group), len(members))
    equal("my rank in %r" % members, dist.get_rank(group), members.index(RANK))
    dist.barrier(group)


def groups():
    """Halves, neighbours, one alone, all backwards; then groups are given back."""
    sets = [[r for r in RANKS if r % 2 == 0], list(RANKS)[-2:], [WORLD_SIZE // 2], list(RANKS)]
    made = [dist.new_group(members) for members in sets]
    for group, members in zip(made, sets):
        meet_in(group, members)
    for group, members in zip(made, sets):
        if RANK in members:
            dist.destroy_process_group(group)
    again = dist.new_group(list(RANKS), timeout=seconds(30))
    meet_in(again, list(RANKS))
    if checks.VERSION >= (2, 1) and WORLD_SIZE % 2 == 0:  # before, GPUs only
        mine, all_of_them = dist.new_subgroups(group_size=2)
        meet_in(mine, [RANK - RANK % 2, RANK - RANK % 2 + 1])
        equal("pairs", len(all_of_them), WORLD_SIZE // 2)


dist.init_process_group("gloo", timeout=seconds(60))
equal("rank", dist.get_rank(), RANK)
equal("world size", dist.get_world_size(), WORLD_SIZE)
reduces()
broadcasts()
gathers()
scatters()
may_be_unsupported("all_to_all", all_to_all)
may_be_unsupported("all_to_all_single", all_to_all_single)
point_to_point()
objects()
barriers()
groups()
true("initialized", dist.is_initialized())
dist.destroy_process_group()

# The same processes may begin anew in the launcher's store, under other keys.
if checks.served():
    dist.init_process_group("gloo", store=dist.PrefixStore("again", checks.connect()), rank=RANK,
                            world_size=WORLD_SIZE, timeout=seconds(60))
    reduces()
    dist.barrier()
    dist.destroy_process_group()
checks.done("torch_collectives")
