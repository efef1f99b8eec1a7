# SPDX-License-Identifier: Apache-2.0
"""The TCPStore API of torch.distributed from all ranks at once; for every answer there is one right one.

usage: torch_store.py [--late-keys]

--late-keys  also sets keys whose wait has timed out. PyTorch 1.13's own server then loses its place
             in the stream.
"""
import sys
import threading
import time

import torch.distributed as dist

import torch_checks as checks
from torch_checks import RANK, VERSION, WORLD_SIZE, equal, meet, raises, seconds, true

RANKS = range(WORLD_SIZE)
LATE_KEYS = "--late-keys" in sys.argv
VALUES = ["", "x", "a\u0000b", "\u00e4\u20ac\U0001f642", "line\nline\r\n", "0", "-17", "y" * 100000]
TIMED_OUT = ("imeout", "imed out")


def values(store):
    """Values of every kind come back as they went in; everybody reads everybody's."""
    for i, value in enumerate(VALUES):
        store.set("value/%d/%d" % (RANK, i), value)
    for rank in RANKS:
        for i, value in enumerate(VALUES):
            equal("value %d of rank %d" % (i, rank), store.get("value/%d/%d" % (rank, i)),
                  value.encode())
    store.set("twice/%d" % RANK, "first")
    store.set("twice/%d" % RANK, "second")
    equal("a value set twice", store.get("twice/%d" % RANK), b"second")
    for key in ("", "/", "a b", "\u00e4", "k" * 4000):
        store.set("key/%d/%s" % (RANK, key), key)
        equal("key %.9r" % key, store.get("key/%d/%s" % (RANK, key)), key.encode())


def large(store):
    """One rank's 3 MiB arrive everywhere."""
    if RANK == WORLD_SIZE - 1:
        store.set("large", "0123456789abcdef" * (3 << 16))
    got = store.get("large")
    equal("3 MiB", (len(got), got == b"0123456789abcdef" * (3 << 16)), (3 << 20, True))


def counters(store):
    """No ticket is given out twice or left out."""
    mine = [store.add("tickets", 1) for _ in range(200)]
    true("my tickets grow", mine == sorted(set(mine)))
    store.set("tickets/%d" % RANK, " ".join(map(str, mine)))
    seen = [int(t) for rank in RANKS for t in store.get("tickets/%d" % rank).split()]
    equal("all tickets", sorted(seen), list(range(1, 200 * WORLD_SIZE + 1)))
    equal("the counter", store.add("tickets", 0), 200 * WORLD_SIZE)
    equal("a counter is text", store.get("tickets"), str(200 * WORLD_SIZE).encode())
    own = "own/%d" % RANK
    equal("add 0 to nothing", store.add(own, 0), 0)
    equal("which made the key", store.get(own), b"0")
    equal("down", store.add(own, -5), -5)
    equal("far up", store.add(own, 1 << 40), (1 << 40) - 5)
    store.set(own, "41")
    equal("add to a text", store.add(own, 1), 42)


def compare_and_set(store):
    own = "swap/%d" % RANK
    equal("absent, another expected", store.compare_set(own, "was", "new"), b"was")
    equal("absent, nothing expected", store.compare_set(own, "", "one"), b"one")
    equal("present, nothing expected", store.compare_set(own, "", "two"), b"one")
    equal("present, another expected", store.compare_set(own, "no", "two"), b"one")
    equal("as expected", store.compare_set(own, "one", "two"), b"two")
    equal("at last", store.get(own), b"two")
    # Everybody wants to be the first: all see the same winner.
    winner = store.compare_set("first", "", "rank %d" % RANK)
    store.set("winner/%d" % RANK, winner.decode())
    equal("one winner", {store.get("winner/%d" % rank) for rank in RANKS}, {winner})
    # A counter made of compare_set loses no step.
    store.compare_set("steps", "", "0")
    for _ in range(20):
        now = store.get("steps").decode()
        while True:
            new = "%d:%d" % (int(now.split(":")[0]) + 1, RANK)
            got = store.compare_set("steps", now, new).decode()
            if got == new:
                break
            now = got
    meet(store, "stepped")
    equal("steps", store.get("steps").split(b":")[0], str(20 * WORLD_SIZE).encode())


def times_out(store, what, ask):
    raises(what, ask, *TIMED_OUT)
    # The client of PyTorch 1.13 grants whatever follows no more time than its last wait had.
    store.wait(["flag/0"])


def waiting(store):
    """A wait ends when the last key is there, or after its time; the connection goes on."""
    if RANK == 0:
        for rank in RANKS:
            time.sleep(0.02)
            store.set("flag/%d" % rank, "up")
    store.wait(["flag/%d" % rank for rank in reversed(RANKS)])
    store.wait(["flag/0"], seconds(60))
    for i in range(2):
        begin = time.monotonic()
        times_out(store, "a wait for nothing", lambda: store.wait(["flag/0", "never"], seconds(0.3)))
        took = time.monotonic() - begin
        true("0.3 s are 0.3 s: %.3f" % took, 0.29 <= took < 20)
        equal("and the next one", store.add("after-timeout/%d" % RANK, 1), i + 1)
    store.set_timeout(seconds(0.3))
    raises("a get of nothing", lambda: store.get("never"), *TIMED_OUT)
    store.set_timeout(seconds(60))
    store.set("after-timeout/%d" % RANK, "good")
    equal("all is well", store.get("after-timeout/%d" % RANK), b"good")
    if LATE_KEYS:
        times_out(store, "late", lambda: store.wait(["late/%d" % RANK], seconds(0.1)))
        store.set("late/%d" % RANK, "here")
        for i in range(1, 6):
            equal("in step", store.add("in-step/%d" % RANK, 1), i)
        store.wait(["late/%d" % RANK], seconds(60))
        equal("late, but here", store.get("late/%d" % RANK), b"here")


def deleting(store):
    key = "gone/%d" % RANK
    store.set(key, "x")
    equal("delete", store.delete_key(key), True)
    equal("delete again", store.delete_key(key), False)
    times_out(store, "it is gone", lambda: store.wait([key], seconds(0.1)))
    equal("one deletes a key of all", store.add("gone/count", 0), 0)
    meet(store, "to-delete")
    if store.delete_key("gone/count"):
        store.add("gone/by", 1)
    meet(store, "deleted")
    equal("exactly one did", store.add("gone/by", 0), 1)


def counting_keys(store):
    """While the others wait, rank 0 sees the number of keys change by just its own."""
    store.add("counted", 0)
    meet(store, "count")
    if RANK == 0:
        before = store.num_keys()
        for i in range(3):
            store.set("three/%d" % i, "x")
        store.set("three/0", "again")
        equal("three more", store.num_keys(), before + 3)
        store.delete_key("three/1")
        equal("one less", store.num_keys(), before + 2)
    meet(store, "counted")


def prefixes(store):
    outer = dist.PrefixStore("outer", store)
    inner = dist.PrefixStore("inner/%d" % RANK, outer)
    inner.set("key", "deep")
    equal("a prefix is a path", store.get("outer/inner/%d/key" % RANK), b"deep")
    equal("an inner counter", inner.add("n", 4), 4)
    after = (RANK + 1) % WORLD_SIZE
    outer.wait(["inner/%d/key" % after], seconds(60))
    equal("the neighbour's", outer.get("inner/%d/key" % after), b"deep")
    meet(outer, "prefixes")


def many_connections(store):
    """Clients come and go, and several threads have one each."""
    for i in range(10):
        client = checks.connect()
        client.add("comings", 1)
        del client
    failed = []

    def work():
        try:
            client = checks.connect()
            for _ in range(50):
                client.add("threads", 1)
            client.wait(["threads/go"], seconds(60))
        except RuntimeError as e:
            failed.append(e)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    while store.add("threads", 0) < 200 * WORLD_SIZE:
        time.sleep(0.02)
    store.set("threads/go", "go")
    for t in threads:
        t.join()
    equal("threads", failed, [])
    meet(store, "many")
    equal("every coming counted", store.add("comings", 0), 10 * WORLD_SIZE)
    equal("every addition, too", store.add("threads", 0), 200 * WORLD_SIZE)


def extended(store):
    """append, multi_set, multi_get, check: since 2.1."""
    true("the extended interface", store.has_extended_api())
    for i in range(50):
        store.append("log", "<%d.%d>" % (RANK, i))
    store.multi_set(["m/%d/%d" % (RANK, i) for i in range(300)], ["v%d" % i for i in range(300)])
    for rank in RANKS:
        keys = ["m/%d/%d" % (rank, i) for i in range(300)]
        equal("multi_get", store.multi_get(keys), [b"v%d" % i for i in range(300)])
        true("check of all", store.check(keys))
    equal("check of nothing", store.check(["m/0/0", "no such key"]), False)
    meet(store, "logged")
    log = store.get("log").decode()
    for rank in RANKS:
        own = [part for part in log.split("<") if part.startswith("%d." % rank)]
        equal("the lines of %d" % rank, own, ["%d.%d>" % (rank, i) for i in range(50)])
    equal("no other lines", log.count(">"), 50 * WORLD_SIZE)


def queues(store):
    """Since 2.8: what was pushed is popped once, in the order of each pusher."""
    equal("an empty queue", store.queue_len("jobs"), 0)
    raises("nothing to pop", lambda: store.queue_pop("jobs", False), "empty")
    meet(store, "queues")
    for i in range(40):
        store.queue_push("jobs", "%d.%d" % (RANK, i))
    got = [store.queue_pop("jobs").decode() for _ in range(40)]
    store.set("popped/%d" % RANK, " ".join(got))
    for rank in RANKS:
        own = [int(job.split(".")[1]) for job in got if job.startswith("%d." % rank)]
        equal("in order", own, sorted(own))
    seen = [job for rank in RANKS for job in store.get("popped/%d" % rank).decode().split()]
    equal("each job once", sorted(seen), sorted("%d.%d" % (r, i) for r in RANKS for i in range(40)))
    equal("empty again", store.queue_len("jobs"), 0)
    # A ring of blocked pops.
    after = "ring/%d" % ((RANK + 1) % WORLD_SIZE)
    if RANK == 0:
        store.queue_push(after, "token")
    equal("the token", store.queue_pop("ring/%d" % RANK), b"token")
    if RANK != 0:
        store.queue_push(after, "token")
    store.set_timeout(seconds(0.3))
    raises("a pop has a time limit", lambda: store.queue_pop("jobs"), *TIMED_OUT)
    store.set_timeout(seconds(60))


def listing(store):
    """Since 2.10."""
    store.set("listed/%d" % RANK, "x")
    meet(store, "listed")
    keys = set(store.list_keys())
    true("all ranks' keys are listed", {"listed/%d" % rank for rank in RANKS} <= keys)
    true("no key that was deleted", "gone/%d" % RANK not in keys)


def barriers(store):
    """Since 2.12."""
    for i in range(20):
        store.add("rounds", 1)
        store.barrier("barrier/%d" % i, WORLD_SIZE)
        true("round %d" % i, store.add("rounds", 0) >= (i + 1) * WORLD_SIZE)
    raises("alone", lambda: store.barrier("alone/%d" % RANK, 2, seconds(0.3)), *TIMED_OUT)
    equal("the next answer", store.add("alone-after/%d" % RANK, 1), 1)


def clones(store):
    other = store.clone()
    other.set("clone/%d" % RANK, "x")
    equal("a clone is another client of the same store", store.get("clone/%d" % RANK), b"x")


store = checks.connect()
equal("host and port", (store.host, store.port > 0), (checks.os.environ["MASTER_ADDR"], True))
parts = [values, large, counters, compare_and_set, waiting, deleting, counting_keys, prefixes,
         many_connections]
if VERSION >= (2, 1):
    parts.append(extended)
for name, part in (("queue_push", queues), ("list_keys", listing), ("barrier", barriers),
                   ("clone", clones)):
    if hasattr(store, name):
        parts.append(part)
for part in parts:
    part(store)
    meet(store, "after " + part.__name__)
checks.done("torch_store", "parts: " + " ".join(part.__name__ for part in parts))
checks.part(store)
