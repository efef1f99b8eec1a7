# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks, and small collectives over the store: bytes, not tensors.

Every member of a group calls, one collective of a group at a time, in the same order. All of them are barriers: no
member returns before the last has arrived.
"""

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any, Iterable, List, Optional

from hnlaunch._library import Text, as_bytes, check, lib, milliseconds


class Group:
    """Some ranks, in an order. None stands for the world wherever a group is wanted."""

    _handle: Optional[int]

    def __init__(self, handle: Optional[int]) -> None:
        self._handle = handle

    def __del__(self) -> None:
        lib.hn_group_free(self._handle)

    @property
    def name(self) -> str:
        return str(lib.hn_get_name(self._handle).decode())

    @property
    def backend(self) -> str:
        """The backend that new_group() was given, "none" without one."""
        return str(lib.hn_get_backend(self._handle).decode())

    def rank(self) -> int:
        """Returns the number of this process in the group."""
        return check(lib.hn_get_rank(self._handle))

    def size(self) -> int:
        """Returns the number of members."""
        return check(lib.hn_get_world_size(self._handle))

    def ranks(self) -> List[int]:
        """Returns the world ranks, in order."""
        n = self.size()
        out = (c_int * n)()
        check(lib.hn_get_group_ranks(self._handle, out, n))
        return list(out)

    def global_rank(self, group_rank: int) -> int:
        """Returns the world rank of a member."""
        return check(lib.hn_get_global_rank(self._handle, group_rank))

    def group_rank(self, world_rank: int) -> int:
        """Returns the number of a world rank in the group. Error HN_ERR_NOT_MEMBER: it has none."""
        return check(lib.hn_get_group_rank(self._handle, world_rank))


def _group(call: Any, *arguments: Any) -> Optional[Group]:
    out = c_void_p()
    check(call(*arguments, byref(out)))
    return Group(out.value) if out.value else None


def handle_of(group: Optional[Group]) -> Optional[int]:
    return group._handle if group is not None else None


def new_group(name: str, ranks: Iterable[int], backend: Optional[str] = None, timeout: Optional[float] = None) -> Group:
    """Makes a group of some world ranks, in this order. Called by its members only."""
    members = list(ranks)
    group = _group(lib.hn_group_create, as_bytes(name), (c_int * len(members))(*members), len(members),
                   as_bytes(backend) if backend else None, milliseconds(timeout))
    assert group is not None
    return group


def split(color: int, key: int = 0, group: Optional[Group] = None, timeout: Optional[float] = None) -> Optional[Group]:
    """Makes groups of the ranks with one color, ordered by key. Called by all members of the group.

    None when the color is negative.
    """
    return _group(lib.hn_group_split, handle_of(group), color, key, milliseconds(timeout))


def local_group() -> Group:
    """Returns the ranks of this node. Called by all of them."""
    group = _group(lib.hn_group_local)
    assert group is not None
    return group


def leaders_group() -> Optional[Group]:
    """Returns the lowest rank of each node; None in other ranks, which need not call."""
    return _group(lib.hn_group_leaders)


def role_group(role: Optional[str] = None, timeout: Optional[float] = None) -> Optional[Group]:
    """Returns the ranks of a role of this world, by default of the own one. Called by all of them.

    None in ranks of other roles, which need not call. Errors HN_ERR_INVALID: this world has no such role;
    HN_ERR_UNSUPPORTED: the job has no roles.
    """
    return _group(lib.hn_role_group, None if role is None else as_bytes(role), milliseconds(timeout))


def barrier(group: Optional[Group] = None, timeout: Optional[float] = None) -> None:
    """Waits until all members have arrived."""
    check(lib.hn_barrier(handle_of(group), milliseconds(timeout)))


def broadcast(value: Text, root: int = 0, group: Optional[Group] = None, timeout: Optional[float] = None) -> bytes:
    """Returns the root's bytes in every rank; the others' value is ignored."""
    handle = handle_of(group)
    mine = as_bytes(value) if check(lib.hn_get_rank(handle)) == root else b""
    size = c_size_t(len(mine))
    check(lib.hn_broadcast_bytes(handle, byref(size), ctypes.sizeof(size), root, milliseconds(timeout)))
    buffer = ctypes.create_string_buffer(mine, max(size.value, 1))
    check(lib.hn_broadcast_bytes(handle, buffer, size.value, root, milliseconds(timeout)))
    return buffer.raw[:size.value]


def all_gather(value: Text, group: Optional[Group] = None, timeout: Optional[float] = None) -> List[bytes]:
    """Returns the bytes of all members, in rank order. All have one length."""
    handle, data = handle_of(group), as_bytes(value)
    n = check(lib.hn_get_world_size(handle))
    out = ctypes.create_string_buffer(max(n * len(data), 1))
    check(lib.hn_all_gather_bytes(handle, data, len(data), out, milliseconds(timeout)))
    return [out.raw[i * len(data):(i + 1) * len(data)] for i in range(n)]
