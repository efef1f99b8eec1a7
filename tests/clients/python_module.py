# SPDX-License-Identifier: Apache-2.0
"""Every call of examples/python/hnlaunch.py, with any number of ranks. "ok" in rank 0.

python_module.py report: rank 1 reports an error and fails; python_module.py abort: it ends the job
"""
import math
import os
import re
import sys
import threading

import hnlaunch as hn


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


def every_call_is_there(header):
    """What the header has and this module has not, on purpose."""
    text = open(header).read()
    calls = set(re.findall(r"^HN_API [^;]*?\b(hn_\w+)\(", text, re.M))
    left_out = {"hn_strerror", "hn_set_error", "hn_world", "hn_get_global_rank", "hn_get_group_rank", "hn_store_get"}
    assert calls - left_out == set(hn._PROTOTYPES), calls - left_out ^ set(hn._PROTOTYPES)


def main():
    if sys.argv[1:2] == ["header"]:
        every_call_is_there(sys.argv[2])
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
    check_world()
    check_store()
    check_groups()
    check_threads()
    assert hn.event() is None
    hn.health()
    hn.progress(3, 10, "half an epoch")
    hn.barrier()
    if hn.rank() == 0:
        print("ok")
    hn.finalize()
    assert not hn.is_initialized()


main()
