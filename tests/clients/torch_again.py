# SPDX-License-Identifier: Apache-2.0
"""Groups of PyTorch that are made one after the other, on one store, as a session in a notebook does.

usage: torch_again.py ROUNDS [--whole]

Every rank makes and destroys its groups at its own pace. In a few rounds ranks keep a reference to a group that they
have destroyed, so that its connection to the store stays open; in a few only some ranks meet, unless --whole.
"""
import sys
import time

import torch
import torch.distributed as dist

import torch_checks as checks
from torch_checks import RANK, VERSION, WORLD_SIZE, equal, true

ROUNDS = int(sys.argv[1])
WHOLE = "--whole" in sys.argv
ALL = list(range(WORLD_SIZE))
kept = []


def meet(ranks, subgroup=False):
    """A group of these ranks, in which each hears of all others."""
    dist.init_process_group("gloo", rank=ranks.index(RANK), world_size=len(ranks), timeout=checks.seconds(60))
    mine = torch.tensor([RANK + 1.0])
    dist.all_reduce(mine)
    equal("the sum of all", mine.item(), float(sum(r + 1 for r in ranks)))
    if subgroup:
        pair = dist.new_group([0, 1])
        if RANK in (0, 1):
            mine = torch.tensor([RANK + 1.0])
            dist.all_reduce(mine, group=pair)
            equal("the sum of two", mine.item(), 3.0)


def leave(keep=False):
    if keep:
        kept.append(dist.distributed_c10d._get_default_group())
    dist.destroy_process_group()


def fewer(name):
    """All but the last rank meet; a key tells the last one when they have left."""
    if RANK in ALL[:-1]:
        meet(ALL[:-1])
        leave()
        STORE.add(name, 1)
    while STORE.add(name, 0) < WORLD_SIZE - 1:
        time.sleep(0.001)


def rounds():
    for i in range(ROUNDS):
        if i % 16 == 3 and RANK == i // 16 % WORLD_SIZE:
            time.sleep(0.02)  # the others are back long before
        meet(ALL, subgroup=i % 8 == 5 and WORLD_SIZE > 1)
        leave(keep=i % 8 == 1 and RANK == WORLD_SIZE - 1 or i % 32 == 7)  # one rank, or all
        if i % 16 == 11 and not WHOLE:
            fewer("fewer/%d" % i)


def after_a_failed_collective():
    """A collective that one rank does not join fails; all make a new group."""
    dist.init_process_group("gloo", timeout=checks.seconds(1))
    if RANK != 0:
        checks.raises("a collective without rank 0", lambda: dist.all_reduce(torch.ones(1)))
    leave(keep=True)
    STORE.add("failed", 1)
    while STORE.add("failed", 0) < WORLD_SIZE:
        time.sleep(0.001)
    meet(ALL)
    leave()


def names(store):
    """The keys of the group that is left, under the names that a program knows."""
    dist.init_process_group("gloo", timeout=checks.seconds(60))
    group = dist.distributed_c10d._get_default_store()
    group.set("of rank %d" % RANK, "x")
    checks.meet(group, "all have set")
    if VERSION >= (2, 10):
        keys = group.list_keys()
        equal("a user's keys in the group", sorted(k for k in keys if k.startswith("of ")),
              ["of rank %d" % r for r in ALL])
        true("addresses of %d ranks: %r" % (WORLD_SIZE, keys), len(keys) >= 2 * WORLD_SIZE)
        other = group.clone()
        equal("a clone's value", other.get("of rank 0"), b"x")
    true("old keys are deleted: %d are left" % store.num_keys(), store.num_keys() < 60 * WORLD_SIZE)
    checks.meet(store, "all have counted")
    dist.destroy_process_group()


STORE = checks.connect()
rounds()
if WORLD_SIZE > 1:
    after_a_failed_collective()
names(STORE)
checks.done("torch_again", "rounds: %d" % ROUNDS)
checks.part(STORE)
