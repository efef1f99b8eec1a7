# SPDX-License-Identifier: Apache-2.0
"""libhnlaunch for Python programs that hnlaunch starts: ranks, a store, groups, barriers, collectives, news.

    import hnlaunch as hn

    hn.init()
    hn.store.set("greeting", b"hello")
    hn.barrier()
    print(hn.rank(), hn.world_size(), hn.store.get("greeting"))
    hn.finalize()

Timeouts are seconds: None is the default (300 s), math.inf waits for ever, 0 tries once (not init()). Failures raise
Error or one of its kinds; str() is a sentence, .ranks are the world ranks that were missing or have failed. Other
Python threads run while one waits. include/hnlaunch/hnlaunch.h and comm.h are the manual.

The module needs nothing but Python 3.8 and libhnlaunch.so.0: the one in its wheel, or the one that the loader finds,
or what the variable HNLAUNCH_LIBRARY names (hnlaunch -x HNLAUNCH_LIBRARY=PATH). `python -m hnlaunch` is hnlaunch.
"""

from hnlaunch._comm import Comm
from hnlaunch._groups import Group, all_gather, barrier, broadcast, leaders_group, local_group, new_group, role_group, split
from hnlaunch._job import (
    NODE_LOST, RANK_FAILED, STOP_REQUESTED, Event, abort, drained, draining, event, finalize, health, hostname_of, init,
    is_initialized, local_rank, local_world_size, node_of, node_rank, num_nodes, progress, rank, report_error, restart_count, role, role_index,
    version, world_size)
from hnlaunch._library import Error, NotFound, NotLaunched, PeerFailed, Timeout
from hnlaunch._store import KEY_MAX, VALUE_MAX, Store, store

__all__ = [
    "KEY_MAX", "NODE_LOST", "RANK_FAILED", "STOP_REQUESTED", "VALUE_MAX",
    "Comm", "Error", "Event", "Group", "NotFound", "NotLaunched", "PeerFailed", "Store", "Timeout",
    "abort", "all_gather", "barrier", "broadcast", "drained", "draining", "event", "finalize", "health", "hostname_of", "init",
    "is_initialized", "leaders_group", "local_group", "local_rank", "local_world_size", "new_group", "node_of",
    "node_rank", "num_nodes", "progress", "rank", "report_error", "restart_count", "role", "role_group",
    "role_index", "split", "store", "version",
    "world_size",
]
