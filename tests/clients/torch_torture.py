# SPDX-License-Identifier: Apache-2.0
"""Random operations on the store from all ranks at once, each answer checked against a dictionary.

A rank alone writes its own keys, so their values are known exactly; counters are everybody's, and add
up in the end.

usage: torch_torture.py [OPERATIONS [SEED]]
"""
import random
import sys

import torch_checks as checks
from torch_checks import RANK, VERSION, WORLD_SIZE, equal, meet, raises, seconds, true

OPERATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
COUNTERS = 5

chance = random.Random(SEED * 1000 + RANK)
clients = [checks.connect() for _ in range(3)]
own = {}  # what the store must hold under this rank's keys
queue = []  # what must be in this rank's queue
given = [0] * COUNTERS  # what this rank has added to each counter
seen = [0] * COUNTERS  # the highest total it has seen


def key():
    return "own/%d/%d" % (RANK, chance.randrange(30))


def some_value():
    size = chance.choice([1, 2, 7, 60, 600, 6000, 60000])
    return "".join(chance.choice("abcdef\u00e4\u0000\n") for _ in range(min(size, 50))) * (size // 50 + 1)


def set_one(store):
    k, value = key(), some_value()
    store.set(k, value)
    # A set has no answer: one on the same connection says that it was done.
    equal("what was just set", store.get(k), value.encode())
    own[k] = value.encode()


def get_one(store):
    k = chance.choice(list(own) or [None])
    if k:
        equal("get " + k, store.get(k), own[k])


def delete_one(store):
    k = key()
    equal("delete " + k, store.delete_key(k), own.pop(k, None) is not None)


def swap_one(store):
    k, value = key(), some_value()
    now = own.get(k)
    if chance.random() < 0.3:
        expected = "not this"
        want = expected.encode() if now is None else now
    else:
        expected = now.decode() if now is not None else ""
        want = own[k] = value.encode()
    equal("compare_set " + k, store.compare_set(k, expected, value), want)


def count_one(store):
    i, n = chance.randrange(COUNTERS), chance.randrange(1, 10)
    total = store.add("counter/%d" % i, n)
    true("counter %d grows: %d after %d" % (i, total, seen[i]), total >= seen[i] + n)
    given[i] += n
    seen[i] = total


def wait_one(store):
    if own:
        store.wait(chance.sample(list(own), min(len(own), 3)), seconds(60))


def wait_in_vain(store):
    raises("a wait", lambda: store.wait(list(own)[:2] + ["never"], seconds(0.02)), "imeout", "imed out")
    # The client of PyTorch 1.13 grants whatever follows no more time than its last wait had.
    store.wait(["hello/%d" % RANK], seconds(60))


def look_at_another(store):
    equal("the greeting", store.get("hello/%d" % chance.randrange(WORLD_SIZE)), b"hello")


def many_at_once(store):
    pairs = {key(): some_value() for _ in range(8)}
    store.multi_set(list(pairs), list(pairs.values()))
    equal("multi_get", store.multi_get(list(pairs)), [v.encode() for v in pairs.values()])
    own.update((k, v.encode()) for k, v in pairs.items())
    true("check", store.check(list(own)))


def append_one(store):
    k, value = key(), some_value()
    store.append(k, value)
    own[k] = own.get(k, b"") + value.encode()
    equal("append", store.get(k), own[k])


def push_one(store):
    value = some_value()
    store.queue_push("queue/%d" % RANK, value)
    queue.append(value.encode())
    equal("queue_len", store.queue_len("queue/%d" % RANK), len(queue))


def pop_one(store):
    if queue:
        equal("queue_pop", store.queue_pop("queue/%d" % RANK), queue.pop(0))


kinds = [set_one, get_one, get_one, delete_one, swap_one, count_one, count_one, wait_one,
         look_at_another]
if VERSION >= (2, 1):
    kinds += [many_at_once, append_one]
if hasattr(clients[0], "queue_push"):
    kinds += [push_one, pop_one]

clients[0].set("hello/%d" % RANK, "hello")
for i in range(OPERATIONS):
    # Waits in vain cost time, not work: few of them.
    operation = wait_in_vain if i % 200 == 100 else chance.choice(kinds)
    client = chance.randrange(len(clients))
    operation(clients[client])
    if chance.random() < 0.005:
        clients[client] = checks.connect()

store = clients[0]
for k, value in own.items():
    equal("at last " + k, store.get(k), value)
store.set("given/%d" % RANK, " ".join(map(str, given)))
shares = [list(map(int, store.get("given/%d" % rank).split())) for rank in range(WORLD_SIZE)]
for i in range(COUNTERS):
    equal("counter %d" % i, store.add("counter/%d" % i, 0), sum(share[i] for share in shares))
meet(store, "looked at")
checks.done("torch_torture")
checks.part(store)
