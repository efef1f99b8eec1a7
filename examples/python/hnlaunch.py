# SPDX-License-Identifier: Apache-2.0
"""libhnlaunch for Python programs that hnlaunch starts: ranks, a store, groups, barriers, news.

    import hnlaunch as hn

    hn.init()
    hn.store.set("greeting", b"hello")
    hn.barrier()
    print(hn.rank(), hn.world_size(), hn.store.get("greeting"))
    hn.finalize()

One file, no build step: copy it beside your program. It needs libhnlaunch.so.0: where the loader finds
it, or what HNLAUNCH_LIBRARY names (hnlaunch -x HNLAUNCH_LIBRARY=PATH). Timeouts are seconds: None is the
default (300 s), math.inf waits for ever, 0 tries once (not init()). Failures raise Error or one of its kinds;
str() is a sentence, .ranks are the world ranks that were missing or have failed. Other Python threads run
while one waits. include/hnlaunch/hnlaunch.h is the manual.
"""

import ctypes
import math
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

KEY_MAX, VALUE_MAX = 1024, 16 * 1024 * 1024
_SINGLETON = 1


class Error(RuntimeError):
    """What the library answers when it cannot; .name is "HN_ERR_...", .status its number."""

    def __init__(self, status, name, text, ranks):
        super().__init__(text)
        self.status, self.name, self.ranks = status, name, ranks


class Timeout(Error):
    """Somebody did not come in time; .ranks knows who."""


class NotFound(Error):
    """There is no such key (timeout 0 only)."""


class PeerFailed(Error):
    """Another worker or a node has failed, or has left; .ranks knows which."""


class NotLaunched(Error):
    """Not started by hnlaunch, or init() was not called."""


_KINDS = {-4: NotLaunched, -5: Timeout, -6: NotFound, -8: PeerFailed}


class _InitOpts(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("timeout_ms", c_int64)]


class _Event(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("rank", c_int), ("node", c_int), ("text", ctypes.c_char * 192)]


_PROTOTYPES = {  # name: result, arguments
    "hn_init": (c_int, [POINTER(_InitOpts)]),
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
    "hn_node_of": (c_int, [c_int]),
    "hn_hostname_of": (c_char_p, [c_int]),
    "hn_group_create": (c_int, [c_char_p, POINTER(c_int), c_int, c_char_p, c_int64, POINTER(c_void_p)]),
    "hn_group_split": (c_int, [c_void_p, c_int, c_int, c_int64, POINTER(c_void_p)]),
    "hn_group_local": (c_int, [POINTER(c_void_p)]),
    "hn_group_leaders": (c_int, [POINTER(c_void_p)]),
    "hn_group_free": (None, [c_void_p]),
    "hn_get_name": (c_char_p, [c_void_p]),
    "hn_get_rank": (c_int, [c_void_p]),
    "hn_get_world_size": (c_int, [c_void_p]),
    "hn_get_backend": (c_char_p, [c_void_p]),
    "hn_get_group_ranks": (c_int, [c_void_p, POINTER(c_int), c_int]),
    "hn_store_default": (c_void_p, []),
    "hn_store_prefix": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "hn_store_close": (None, [c_void_p]),
    "hn_store_set": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "hn_store_get_alloc": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), c_int64]),
    "hn_store_add": (c_int, [c_void_p, c_char_p, c_int64, POINTER(c_int64)]),
    "hn_store_append": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "hn_store_compare_set": (
        c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_int)]),
    "hn_store_wait": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, c_int64]),
    "hn_store_check": (c_int, [c_void_p, POINTER(c_char_p), c_size_t, POINTER(c_int)]),
    "hn_store_delete": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "hn_store_num_keys": (c_int, [c_void_p, POINTER(c_size_t)]),
    "hn_free": (None, [c_void_p]),
    "hn_barrier": (c_int, [c_void_p, c_int64]),
    "hn_broadcast_bytes": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int64]),
    "hn_all_gather_bytes": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p, c_int64]),
    "hn_event_poll": (c_int, [POINTER(_Event), c_int64]),
    "hn_health": (c_int, [c_int64]),
    "hn_progress": (c_int, [c_int64, c_int64, c_char_p]),
    "hn_report_error": (c_int, [c_char_p, c_char_p]),  # these two have more arguments
    "hn_abort": (c_int, [c_int, c_char_p]),
}


def _load():
    lib = ctypes.CDLL(os.environ.get("HNLAUNCH_LIBRARY") or "libhnlaunch.so.0")
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _load()


def _check(status):
    if status >= 0:
        return status
    ranks = (c_int * 64)()
    n = min(_lib.hn_last_error_ranks(ranks, len(ranks)), len(ranks))
    text = _lib.hn_last_error().decode(errors="replace")
    raise _KINDS.get(status, Error)(status, _lib.hn_status_name(status).decode(), text, list(ranks[:n]))


def _ms(timeout):
    if timeout is None:
        return -1
    return -2 if timeout == math.inf else max(0, min(int(timeout * 1000), 2**63 - 1))


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


# --- life cycle ------------------------------------------------------------------------------------------------


def init(timeout=None, singleton=False):
    """Joins the job. singleton: started by hand be a world of one instead of raising NotLaunched.

    ValueError: a timeout of 0, for joining is more than one try."""
    ms = 0 if timeout is None else _ms(timeout)
    if timeout is not None and ms == 0:
        raise ValueError("init() needs a timeout of a millisecond or more, or None")
    opts = _InitOpts(ctypes.sizeof(_InitOpts), _SINGLETON if singleton else 0, ms)
    _check(_lib.hn_init(byref(opts)))
    store._handle = _lib.hn_store_default()


def finalize():
    store._handle = None
    _check(_lib.hn_finalize())


def is_initialized():
    return bool(_lib.hn_is_initialized())


def rank():
    return _check(_lib.hn_rank())


def world_size():
    return _check(_lib.hn_world_size())


def local_rank():
    return _check(_lib.hn_local_rank())


def local_world_size():
    return _check(_lib.hn_local_world_size())


def node_rank():
    return _check(_lib.hn_node_rank())


def num_nodes():
    return _check(_lib.hn_num_nodes())


def restart_count():
    return _check(_lib.hn_restart_count())


def node_of(world_rank):
    return _check(_lib.hn_node_of(world_rank))


def hostname_of(world_rank):
    name = _lib.hn_hostname_of(world_rank)
    if name is None:
        _check(-1)
    return name.decode()


# --- store -----------------------------------------------------------------------------------------------------


class Store:
    """Keys are str, values bytes (a str becomes UTF-8). `store` is the job's own."""

    def __init__(self, handle=None):
        self._handle = handle

    def prefix(self, name):
        """The same store, seen through "name/"."""
        out = c_void_p()
        _check(_lib.hn_store_prefix(self._handle, _bytes(name), byref(out)))
        return _Prefix(out.value)

    def set(self, key, value):
        value = _bytes(value)
        _check(_lib.hn_store_set(self._handle, _bytes(key), value, len(value)))

    def get(self, key, timeout=None):
        """Waits for the key."""
        value, size = c_void_p(), c_size_t()
        _check(_lib.hn_store_get_alloc(self._handle, _bytes(key), byref(value), byref(size), _ms(timeout)))
        try:
            return ctypes.string_at(value.value, size.value) if size.value else b""
        finally:
            _lib.hn_free(value)

    def add(self, key, delta=1):
        now = c_int64()
        _check(_lib.hn_store_add(self._handle, _bytes(key), delta, byref(now)))
        return now.value

    def append(self, key, value):
        value = _bytes(value)
        _check(_lib.hn_store_append(self._handle, _bytes(key), value, len(value)))

    def compare_set(self, key, expected, desired):
        """True when it was swapped; an absent key equals b""."""
        expected, desired, swapped = _bytes(expected), _bytes(desired), c_int()
        _check(_lib.hn_store_compare_set(
            self._handle, _bytes(key), expected, len(expected), desired, len(desired), byref(swapped)))
        return bool(swapped.value)

    def wait(self, keys, timeout=None):
        names = [_bytes(k) for k in ([keys] if isinstance(keys, str) else keys)]
        _check(_lib.hn_store_wait(self._handle, (c_char_p * len(names))(*names), len(names), _ms(timeout)))

    def check(self, keys):
        """Whether all of them are there."""
        names, present = [_bytes(k) for k in ([keys] if isinstance(keys, str) else keys)], c_int()
        _check(_lib.hn_store_check(self._handle, (c_char_p * len(names))(*names), len(names), byref(present)))
        return bool(present.value)

    def delete(self, key):
        """Whether it was there."""
        existed = c_int()
        _check(_lib.hn_store_delete(self._handle, _bytes(key), byref(existed)))
        return bool(existed.value)

    def num_keys(self):
        n = c_size_t()
        _check(_lib.hn_store_num_keys(self._handle, byref(n)))
        return n.value


class _Prefix(Store):
    def __del__(self):
        _lib.hn_store_close(self._handle)


store = Store()


# --- groups ----------------------------------------------------------------------------------------------------


class Group:
    """Some ranks, in an order. None stands for the world wherever a group is wanted."""

    def __init__(self, handle):
        self._handle = handle

    def __del__(self):
        _lib.hn_group_free(self._handle)

    @property
    def name(self):
        return _lib.hn_get_name(self._handle).decode()

    @property
    def backend(self):
        return _lib.hn_get_backend(self._handle).decode()

    def rank(self):
        return _check(_lib.hn_get_rank(self._handle))

    def size(self):
        return _check(_lib.hn_get_world_size(self._handle))

    def ranks(self):
        """The world ranks, in order."""
        n = self.size()
        out = (c_int * n)()
        _check(_lib.hn_get_group_ranks(self._handle, out, n))
        return list(out)


def _group(call, *arguments):
    out = c_void_p()
    _check(call(*arguments, byref(out)))
    return Group(out.value) if out.value else None


def _handle(group):
    return group._handle if group is not None else None


def new_group(name, ranks, backend=None, timeout=None):
    """Called by the members only."""
    ranks = list(ranks)
    return _group(_lib.hn_group_create, _bytes(name), (c_int * len(ranks))(*ranks), len(ranks),
                  _bytes(backend) if backend else None, _ms(timeout))


def split(color, key=0, group=None, timeout=None):
    """Called by all members of the group; None when the color is negative."""
    return _group(_lib.hn_group_split, _handle(group), color, key, _ms(timeout))


def local_group():
    return _group(_lib.hn_group_local)


def leaders_group():
    """None in ranks that lead no node."""
    return _group(_lib.hn_group_leaders)


def barrier(group=None, timeout=None):
    _check(_lib.hn_barrier(_handle(group), _ms(timeout)))


def broadcast(value, root=0, group=None, timeout=None):
    """The root's bytes, in every rank; the others' value is ignored."""
    handle = _handle(group)
    mine = _bytes(value) if _check(_lib.hn_get_rank(handle)) == root else b""
    size = c_size_t(len(mine))
    _check(_lib.hn_broadcast_bytes(handle, byref(size), ctypes.sizeof(size), root, _ms(timeout)))
    buffer = ctypes.create_string_buffer(mine, max(size.value, 1))
    _check(_lib.hn_broadcast_bytes(handle, buffer, size.value, root, _ms(timeout)))
    return buffer.raw[:size.value]


def all_gather(value, group=None, timeout=None):
    """A list of everybody's bytes, in rank order; all of one length."""
    handle, value = _handle(group), _bytes(value)
    n = _check(_lib.hn_get_world_size(handle))
    out = ctypes.create_string_buffer(max(n * len(value), 1))
    _check(_lib.hn_all_gather_bytes(handle, value, len(value), out, _ms(timeout)))
    return [out.raw[i * len(value):(i + 1) * len(value)] for i in range(n)]


# --- news ------------------------------------------------------------------------------------------------------


def event(timeout=0):
    """The oldest news not yet seen: (kind, rank, node, text), or None. Kinds: 1 a rank has failed, 2 a node is
    lost, 3 the job is to stop."""
    e = _Event(ctypes.sizeof(_Event))
    status = _lib.hn_event_poll(byref(e), _ms(timeout))
    if status == -5:
        return None
    _check(status)
    return e.kind, e.rank, e.node, e.text.decode(errors="replace")


def health(timeout=0):
    """Raises PeerFailed as soon as a worker or node has failed."""
    _check(_lib.hn_health(_ms(timeout)))


def progress(step, total=0, note=None):
    _check(_lib.hn_progress(step, total, _bytes(note) if note else None))


def report_error(kind, text):
    """What hnlaunch shows as the reason when this rank fails."""
    _check(_lib.hn_report_error(_bytes(kind), b"%s", c_char_p(_bytes(text))))


def abort(code, text):
    """Ends the whole job with this exit code, 1 to 255."""
    _check(_lib.hn_abort(code, b"%s", c_char_p(_bytes(text))))
