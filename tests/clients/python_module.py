# SPDX-License-Identifier: Apache-2.0
"""Every call of packaging/python/hnlaunch, with any number of ranks. "ok" in rank 0.

report: rank 1 reports an error and fails; abort: it ends the job; arrays: collectives over Gloo;
names HEADER...: needs no job
"""
import array
import inspect
import math
import os
import re
import sys
import threading
import typing

import hnlaunch as hn
from hnlaunch import _library


def raises(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as e:
        return e
    raise AssertionError(f"{call.__name__} does not raise {kind.__name__}")


def check_world():
    n = int(os.environ.get("WORLD_SIZE", 1))
    assert hn.is_initialized() and hn.world_size() == n and hn.rank() == int(os.environ.get("RANK", 0))
    assert hn.local_rank() < hn.local_world_size() <= n
    assert hn.node_rank() < hn.num_nodes() and hn.restart_count() == 0
    assert hn.role() is None and hn.role_index() == 0
    assert raises(hn.Error, hn.role_group).name == "HN_ERR_UNSUPPORTED"
    assert hn.node_of(hn.rank()) == hn.node_rank() and hn.hostname_of(hn.rank())
    assert raises(hn.Error, hn.hostname_of, n).name == "HN_ERR_INVALID"


def check_store():
    me, n, s = hn.rank(), hn.world_size(), hn.store
    s.set(f"from/{me}", bytes(range(256)) + b"\0")
    s.wait([f"from/{r}" for r in range(n)])
    assert s.get(f"from/{(me + 1) % n}", timeout=30) == bytes(range(256)) + b"\0"
    s.set(f"empty/{me}", "")
    assert s.get(f"empty/{me}") == b"" and s.check(f"empty/{me}") and not s.check(["nowhere", f"empty/{me}"])
    s.add("sum", me + 1)
    hn.barrier()
    assert s.add("sum", 0) == n * (n + 1) // 2
    assert raises(hn.NotFound, s.get, "nowhere", timeout=0).status == -6
    assert isinstance(raises(hn.Timeout, s.wait, "nowhere", timeout=0.05), hn.Error)
    raises(hn.Error, s.set, "x" * (hn.KEY_MAX + 1), b"")
    mine = s.prefix(f"mine/{me}")
    mine.append("log", "a")
    mine.append("log", "b")
    assert s.get(f"mine/{me}/log") == b"ab" and mine.num_keys() == 1
    assert mine.compare_set("lock", "", "me") and not mine.compare_set("lock", "", "you")
    assert mine.delete("lock") and not mine.delete("lock")


def check_groups():
    me, n = hn.rank(), hn.world_size()
    back = hn.new_group("back", range(n - 1, -1, -1), backend="gloo")
    assert back.rank() == n - 1 - me and back.size() == n and back.ranks() == list(range(n - 1, -1, -1))
    assert back.global_rank(0) == n - 1 and back.group_rank(n - 1) == 0
    assert back.name == "back" and back.backend == "gloo"
    assert hn.all_gather(b"%4d" % me, back) == [b"%4d" % r for r in back.ranks()]
    half = hn.split(me % 2, key=-me)
    assert half.ranks() == sorted(range(me % 2, n, 2), reverse=True)
    assert hn.broadcast(f"of {me}", half.size() - 1, half) == b"of %d" % (me % 2)
    assert (hn.split(-1 if me == 0 else 0) is None) == (me == 0)
    assert hn.local_group().size() == hn.local_world_size()
    leaders = hn.leaders_group()
    assert (leaders is not None) == (hn.local_rank() == 0)
    hn.barrier(half, timeout=math.inf)


def check_threads():
    """A wait of one thread leaves the others alone."""
    got = []
    waiter = threading.Thread(target=lambda: got.append(hn.store.get(f"late/{hn.rank()}", timeout=2**64 / 1000)))
    waiter.start()
    assert hn.store.add(f"work/{hn.rank()}") == 1
    hn.store.set(f"late/{hn.rank()}", "now")
    waiter.join()
    assert got == [b"now"]


def fail(how):
    hn.barrier()  # all are up
    if hn.rank() == 1:
        if how == "report":
            hn.report_error("data", "100% of shard 12 is %s")
            sys.exit(5)
        hn.abort(9, "the loss is %d")
    e = raises(hn.PeerFailed if how == "report" else hn.Error, hn.barrier, timeout=60)
    print(f"rank {hn.rank()}: {e.name}: {e}: {e.ranks}", flush=True)


def check_arrays():
    me, n, comm = hn.rank(), hn.world_size(), hn.Comm(timeout=60)
    assert comm.rank() == me and comm.size() == n

    def ours(first, count=2):
        return array.array("d", [first + i for i in range(count)])

    total, each = ours(me), ours(0, 2 * n)
    comm.all_reduce(total)
    assert list(total) == [n * (n - 1) / 2, n * (n - 1) / 2 + n]
    top = array.array("q", [0, 0])
    comm.all_reduce(array.array("q", [me, -me]), top, op="max")
    assert list(top) == [n - 1, 0]
    comm.reduce(bytes([me + 1]), top_byte := bytearray(1), root=n - 1)
    assert top_byte[0] == (n * (n + 1) // 2 if me == n - 1 else 0)
    shared = ours(me * 100)
    comm.broadcast(shared, root=n - 1)
    assert list(shared) == list(ours((n - 1) * 100))
    comm.all_gather(ours(10 * me), each)
    assert list(each) == [x for r in range(n) for x in ours(10 * r)]
    block = ours(0)
    comm.reduce_scatter(each, block)
    assert list(block) == [n * x for x in ours(10 * me)]
    turned = ours(0, 2 * n)
    comm.all_to_all(array.array("d", [100 * me + r for r in range(n) for _ in range(2)]), turned)
    assert list(turned) == [100 * r + me for r in range(n) for _ in range(2)]
    if n > 1:
        comm.send_recv(ours(me), (me + 1) % n, block, (me - 1) % n)
        assert list(block) == list(ours((me - 1) % n))
        if me == 0:
            comm.send(ours(7), 1)
        elif me == 1:
            comm.recv(block, 0)
            assert list(block) == list(ours(7))
    comm.barrier()
    for wrong in (("no type", (array.array("h", [1]), )), ("read-only", (b"x", )),
                  ("length", (ours(0), ours(0, 3))), ("types", (ours(0), array.array("f", [0, 0]))),
                  ("stride", (memoryview(bytearray(4))[::2], ))):
        assert raises(ValueError, comm.all_reduce, *wrong[1]), wrong[0]
    raises(ValueError, comm.all_reduce, ours(0), op="median")
    comm.free()
    assert raises(hn.Error, comm.barrier).name == "HN_ERR_INVALID"


def every_name_is_described():
    for name in hn.__all__:
        thing = getattr(hn, name)
        members = [thing] if inspect.isfunction(thing) else [
            m for k, m in vars(thing).items() if inspect.isfunction(m) and not k.startswith("_")] if isinstance(
                thing, type) else []
        for call in members:
            hints = typing.get_type_hints(call)
            missing = set(inspect.signature(call).parameters) - {"self"} - set(hints)
            assert "return" in hints and not missing, f"{name}: {call.__name__} lacks types"
            assert call.__doc__ or call.__name__ in ("rank", "size"), f"{name}: {call.__name__} lacks words"
    assert os.path.exists(os.path.join(os.path.dirname(hn.__file__), "py.typed"))


def every_call_is_there(headers):
    """What the headers have and this module has not, on purpose."""
    text = "".join(open(header).read() for header in headers)
    calls = set(re.findall(r"^HN_API [^;]*?\b(hn_\w+)\(", text, re.M))
    left_out = {"hn_strerror", "hn_set_error", "hn_world", "hn_store_get", "hn_dtype_size"}
    assert calls - left_out == set(_library.PROTOTYPES), calls - left_out ^ set(_library.PROTOTYPES)


def main():
    if sys.argv[1:2] == ["names"]:
        every_name_is_described()
        every_call_is_there(sys.argv[2:])
        return print("ok")
    if sys.argv[1:] == ["alone"]:
        raises(hn.NotLaunched, hn.rank)
        assert "hnlaunch" in str(raises(hn.NotLaunched, hn.init))
    for nothing in (0, 0.0004, -1):
        raises(ValueError, hn.init, timeout=nothing, singleton=True)
    assert not hn.is_initialized()
    hn.init(singleton=sys.argv[1:] == ["alone"], timeout=30)
    if sys.argv[1:] in (["report"], ["abort"]):
        return fail(sys.argv[1])
    if sys.argv[1:] == ["arrays"]:
        check_arrays()
    check_world()
    check_store()
    check_groups()
    check_threads()
    assert hn.event() is None
    hn.health()
    hn.progress(3, 10, "half an epoch")
    assert not hn.draining()
    hn.drained()
    hn.barrier()
    if hn.rank() == 0:
        print("ok")
    hn.finalize()
    assert not hn.is_initialized()


main()
