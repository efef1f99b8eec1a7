# SPDX-License-Identifier: Apache-2.0
"""libhnlaunch, loaded with ctypes by the first call that needs it, and its errors as exceptions.

The library is, in this order: the file that the variable HNLAUNCH_LIBRARY names, the file in the folder lib of this
package (a wheel has it), libhnlaunch.so.0 where the loader finds it.
"""

import ctypes
import math
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Iterable, List, Optional, Union

SONAME = "libhnlaunch.so.0"
Text = Union[str, bytes, bytearray, memoryview]  # a str becomes UTF-8


class Error(RuntimeError):
    """A call of the library has failed.

    str() is a sentence. .name is "HN_ERR_..." of hnlaunch/hnlaunch.h, .status its number, .ranks are the world ranks
    that were missing or have failed.
    """

    status: int
    name: str
    ranks: List[int]

    def __init__(self, status: int, name: str, text: str, ranks: Iterable[int]) -> None:
        super().__init__(text)
        self.status, self.name, self.ranks = status, name, list(ranks)


class Timeout(Error):
    """A wait has reached its time limit; .ranks are the ranks that did not arrive."""


class NotFound(Error):
    """There is no such key (timeout 0 only)."""


class PeerFailed(Error):
    """Another rank or a node has failed, or has left; .ranks names the ranks."""


class NotLaunched(Error):
    """The program was not started by hnlaunch, or init() was not called."""


_KINDS = {-4: NotLaunched, -5: Timeout, -6: NotFound, -8: PeerFailed}


class InitOpts(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("timeout_ms", c_int64)]


class EventRecord(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("rank", c_int), ("node", c_int), ("text", ctypes.c_char * 192)]


_OUT = POINTER(c_void_p)
PROTOTYPES: Any = {  # name: result, arguments
    "hn_init": (c_int, [POINTER(InitOpts)]),
    "hn_finalize": (c_int, []),
    "hn_is_initialized": (c_int, []),
    "hn_version": (c_int, []),
    "hn_status_name": (c_char_p, [c_int]),
    "hn_last_error": (c_char_p, []),
    "hn_last_error_ranks": (c_int, [POINTER(c_int), c_int]),
    "hn_rank": (c_int, []),
    "hn_world_size": (c_int, []),
    "hn_local_rank": (c_int, []),
    "hn_local_world_size": (c_int, []),
    "hn_node_rank": (c_int, []),
    "hn_num_nodes": (c_int, []),
    "hn_restart_count": (c_int, []),
    "hn_role": (c_char_p, []),
    "hn_role_index": (c_int, []),
    "hn_node_of": (c_int, [c_int]),
    "hn_hostname_of": (c_char_p, [c_int]),
    "hn_group_create": (c_int, [c_char_p, POINTER(c_int), c_int, c_char_p, c_int64, _OUT]),
    "hn_group_split": (c_int, [c_void_p, c_int, c_int, c_int64, _OUT]),
    "hn_group_local": (c_int, [_OUT]),
    "hn_group_leaders": (c_int, [_OUT]),
    "hn_role_group": (c_int, [c_char_p, c_int64, _OUT]),
    "hn_group_free": (None, [c_void_p]),
    "hn_get_name": (c_char_p, [c_void_p]),
    "hn_get_rank": (c_int, [c_void_p]),
    "hn_get_world_size": (c_int, [c_void_p]),
    "hn_get_backend": (c_char_p, [c_void_p]),
    "hn_get_global_rank": (c_int, [c_void_p, c_int]),
    "hn_get_group_rank": (c_int, [c_void_p, c_int]),
    "hn_get_group_ranks": (c_int, [c_void_p, POINTER(c_int), c_int]),
    "hn_store_default": (c_void_p, []),
    "hn_store_prefix": (c_int, [c_void_p, c_char_p, _OUT]),
    "hn_store_close": (None, [c_void_p]),
    "hn_store_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "hn_store_get_alloc": (c_int, [c_void_p, c_char_p, _OUT, POINTER(c_size_t), c_int64]),
    "hn_store_add": (c_int, [c_void_p, c_char_p, c_int64, POINTER(c_int64)]),
    "hn_store_append": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "hn_store_compare_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_int)]),
    "hn_store_wait": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, c_int64]),
    "hn_store_check": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, POINTER(c_int)]),
    "hn_store_delete": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "hn_store_num_keys": (c_int, [c_void_p, POINTER(c_size_t)]),
    "hn_free": (None, [c_void_p]),
    "hn_barrier": (c_int, [c_void_p, c_int64]),
    "hn_broadcast_bytes": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int64]),
    "hn_all_gather_bytes": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p, c_int64]),
    "hn_event_poll": (c_int, [POINTER(EventRecord), c_int64]),
    "hn_health": (c_int, [c_int64]),
    "hn_draining": (c_int, []),
    "hn_drained": (c_int, []),
    "hn_progress": (c_int, [c_int64, c_int64, c_char_p]),
    "hn_report_error": (c_int, [c_char_p, c_char_p]),  # these two have more arguments
    "hn_abort": (c_int, [c_int, c_char_p]),
    "hn_comm_create": (c_int, [c_void_p, c_char_p, c_int64, _OUT]),
    "hn_comm_free": (None, [c_void_p]),
    "hn_comm_rank": (c_int, [c_void_p]),
    "hn_comm_size": (c_int, [c_void_p]),
    "hn_all_reduce": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    "hn_reduce": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_int]),
    "hn_broadcast": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int]),
    "hn_all_gather": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int]),
    "hn_reduce_scatter": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    "hn_all_to_all": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int]),
    "hn_comm_barrier": (c_int, [c_void_p]),
    "hn_send": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int]),
    "hn_recv": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int]),
    "hn_send_recv": (c_int, [c_void_p, c_void_p, c_int, c_void_p, c_int, c_size_t, c_int]),
}


def library_path() -> str:
    """Returns what the loader is asked for: a path, or the name of the library."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", SONAME)
    return os.environ.get("HNLAUNCH_LIBRARY") or (inside if os.path.exists(inside) else SONAME)


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library_path())
    except OSError as reason:
        raise OSError(f"cannot load the library of hnlaunch: {reason}; install hnlaunch or its wheel, or name the file "
                      "in HNLAUNCH_LIBRARY (for ranks: hnlaunch -x HNLAUNCH_LIBRARY=FILE)") from None


class _Library:
    """The functions of the library as attributes. The first one that is used loads it; OSError: there is none."""

    _loaded: Optional[ctypes.CDLL] = None

    def __getattr__(self, name: str) -> Any:
        result, arguments = PROTOTYPES[name]
        if self._loaded is None:
            self._loaded = _load()
        function = getattr(self._loaded, name)
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)  # the next use does not come here
        return function


lib = _Library()


def check(status: int) -> int:
    """Returns a result that is no error; raises an Error otherwise."""
    if status >= 0:
        return status
    ranks = (c_int * 64)()
    n = min(lib.hn_last_error_ranks(ranks, len(ranks)), len(ranks))
    text = lib.hn_last_error().decode(errors="replace")
    raise _KINDS.get(status, Error)(status, lib.hn_status_name(status).decode(), text, ranks[:n])


def milliseconds(timeout: Optional[float]) -> int:
    """Converts seconds: None is the library's default, math.inf no limit."""
    if timeout is None:
        return -1
    return -2 if timeout == math.inf else max(0, min(int(timeout * 1000), 2**63 - 1))


def as_bytes(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
