# SPDX-License-Identifier: Apache-2.0
"""This rank and its job: life cycle, numbers, news from the launcher and to it."""

import ctypes
from ctypes import byref, c_char_p
from typing import NamedTuple, Optional

from hnlaunch._library import EventRecord, InitOpts, Text, as_bytes, check, lib, milliseconds
from hnlaunch._store import store

_SINGLETON = 1
RANK_FAILED, NODE_LOST, STOP_REQUESTED = 1, 2, 3  # Event.kind


class Event(NamedTuple):
    """News from the launcher. rank and node are -1 where they do not apply."""

    kind: int  # RANK_FAILED, NODE_LOST or STOP_REQUESTED
    rank: int
    node: int
    text: str


def init(timeout: Optional[float] = None, singleton: bool = False) -> None:
    """Joins the job. With singleton, a program that was started by hand becomes a world of one.

    A second call does nothing. NotLaunched: started by hand, without singleton. ValueError: a timeout of 0, for joining
    is more than one try. OSError: the library cannot be loaded.
    """
    ms = 0 if timeout is None else milliseconds(timeout)
    if timeout is not None and ms == 0:
        raise ValueError("init() needs a timeout of a millisecond or more, or None")
    opts = InitOpts(ctypes.sizeof(InitOpts), _SINGLETON if singleton else 0, ms)
    check(lib.hn_init(byref(opts)))
    store._handle = lib.hn_store_default()


def finalize() -> None:
    """Leaves the job. Does not wait for other ranks; no other thread may be in a call."""
    store._handle = None
    check(lib.hn_finalize())


def is_initialized() -> bool:
    """Tells whether this process is between init() and finalize()."""
    return bool(lib.hn_is_initialized())


def version() -> int:
    """Returns the version of the library: major * 10000 + minor * 100 + patch."""
    return int(lib.hn_version())


def rank() -> int:
    """Returns the number of this process in the job."""
    return check(lib.hn_rank())


def world_size() -> int:
    """Returns the number of ranks of the job."""
    return check(lib.hn_world_size())


def local_rank() -> int:
    """Returns the number of this process among the ranks of its node."""
    return check(lib.hn_local_rank())


def local_world_size() -> int:
    """Returns the number of ranks of this node."""
    return check(lib.hn_local_world_size())


def node_rank() -> int:
    """Returns the number of this node."""
    return check(lib.hn_node_rank())


def num_nodes() -> int:
    """Returns the number of nodes of the job."""
    return check(lib.hn_num_nodes())


def restart_count() -> int:
    """Returns the number of earlier attempts (hnlaunch --max-restarts)."""
    return check(lib.hn_restart_count())


def role() -> Optional[str]:
    """Returns the name of this program's role (hnlaunch --role). None before init(), and in a job without roles."""
    name = lib.hn_role()
    return None if name is None else str(name.decode())


def role_index() -> int:
    """Returns the number of this replica of the role (hnlaunch --replicas), from 0."""
    return check(lib.hn_role_index())


def node_of(world_rank: int) -> int:
    """Returns the node of any rank. The first call asks the launcher."""
    return check(lib.hn_node_of(world_rank))


def hostname_of(world_rank: int) -> str:
    """Returns the name of a rank's host as the hostfile has it."""
    name = lib.hn_hostname_of(world_rank)
    if name is None:
        check(-1)
    return str(name.decode())


def event(timeout: Optional[float] = 0) -> Optional[Event]:
    """Returns the oldest event not yet seen, or None. The library keeps the last 64."""
    e = EventRecord(ctypes.sizeof(EventRecord))
    status = lib.hn_event_poll(byref(e), milliseconds(timeout))
    if status == -5:
        return None
    check(status)
    return Event(e.kind, e.rank, e.node, e.text.decode(errors="replace"))


def health(timeout: Optional[float] = 0) -> None:
    """Raises PeerFailed as soon as a rank or node has failed; returns when none has within the timeout."""
    check(lib.hn_health(milliseconds(timeout)))


def progress(step: int, total: int = 0, note: Optional[Text] = None) -> None:
    """Reports the progress of this rank; Ctrl-\\ shows it. total 0 is unknown; the note is cut at 80 bytes."""
    check(lib.hn_progress(step, total, as_bytes(note) if note else None))


def draining() -> bool:
    """Tells whether a host of the job is to leave (hnlaunch drain): save, and exit with 0 or call drained().

    Ranks do not see it in the same moment: those that save together agree first, for example by broadcast().
    """
    return check(lib.hn_draining()) > 0


def drained() -> None:
    """Tells hnlaunch that this rank has saved. When all ranks have, hnlaunch ends them, and starts the job again."""
    check(lib.hn_drained())


def report_error(kind: Text, text: Text) -> None:
    """Sets what hnlaunch shows as the reason when this rank fails. kind: a short word ("cuda", "data")."""
    check(lib.hn_report_error(as_bytes(kind), b"%s", c_char_p(as_bytes(text))))


def abort(code: int, text: Text) -> None:
    """Ends the whole job with this exit code, 1 to 255, and shows the text. The caller then should exit."""
    check(lib.hn_abort(code, b"%s", c_char_p(as_bytes(text))))
