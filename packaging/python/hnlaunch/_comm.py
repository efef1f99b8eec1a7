# SPDX-License-Identifier: Apache-2.0
"""Collectives over arrays, on CPUs (Gloo) and on GPUs (NCCL): include/hnlaunch/comm.h for Python.

An array is contiguous and one of: an object with the buffer protocol (array.array, numpy), with
__cuda_array_interface__ (CuPy, Numba), or a tensor of PyTorch. Nothing is copied, and none of these packages is
imported. ValueError: an array is not contiguous, has an element type that the backends lack, or not the wanted length.
"""

import ctypes
from ctypes import byref, c_void_p
from typing import Any, NamedTuple, Optional

from hnlaunch._groups import Group, handle_of
from hnlaunch._library import as_bytes, check, lib, milliseconds

_OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4}
# Names of PyTorch's types; codes of the buffer protocol with bytes; codes of array interfaces.
_TYPES = {
    "float32": 0, "float64": 1, "int32": 2, "int64": 3, "uint8": 4, "float16": 5, "bfloat16": 6,
    "f4": 0, "d8": 1, "i4": 2, "l4": 2, "l8": 3, "q8": 3, "B1": 4, "e2": 5,
    "<f4": 0, "<f8": 1, "<i4": 2, "<i8": 3, "|u1": 4, "<f2": 5,
}


class _Array(NamedTuple):
    address: int
    n: int  # elements
    dtype: int  # enum hn_dtype
    keep: Any  # what holds the memory


def _dtype_of(name: str) -> int:
    if name not in _TYPES:
        raise ValueError(f"no collectives over elements of type {name}: float16, bfloat16, float32, float64, int32, "
                         "int64 and uint8 have them")
    return _TYPES[name]


def _product(shape: Any) -> int:
    n = 1
    for length in shape:
        n *= int(length)
    return n


def _array(array: Any, written: bool) -> _Array:
    """Finds memory, length and type. written: the call writes to it."""
    if hasattr(array, "data_ptr"):  # PyTorch
        if not array.is_contiguous():
            raise ValueError("the tensor is not contiguous")
        return _Array(array.data_ptr(), array.numel(), _dtype_of(str(array.dtype).split(".")[-1]), array)
    if hasattr(array, "__cuda_array_interface__"):
        cuda = array.__cuda_array_interface__
        if cuda.get("strides") is not None:
            raise ValueError("the array is not contiguous")
        return _Array(cuda["data"][0], _product(cuda["shape"]), _dtype_of(cuda["typestr"]), array)
    view = memoryview(array)
    if not view.c_contiguous:
        raise ValueError("the array is not contiguous")
    if view.readonly and written:
        raise ValueError("the array is read-only")
    dtype, n = _dtype_of(f"{view.format.lstrip('@=<')}{view.itemsize}"), view.nbytes // view.itemsize
    flat = view.cast("B") if n else memoryview(bytearray(1))
    memory: Any = (ctypes.c_char * flat.nbytes)
    memory = memory.from_buffer_copy(flat) if flat.readonly else memory.from_buffer(flat)
    return _Array(ctypes.addressof(memory), n, dtype, memory)


def _pair(source: Any, target: Any) -> Any:
    """The arrays of a call with input and output, of one type. An absent target is the source."""
    if target is None:
        both = _array(source, True)
        return both, both
    a, b = _array(source, False), _array(target, True)
    if a.dtype != b.dtype:
        raise ValueError("input and output have elements of different types")
    return a, b


def _want(have: int, want: int, what: str) -> None:
    if have != want:
        raise ValueError(f"the {what} has {have} elements, not {want}")


def _op(name: str) -> int:
    if name not in _OPS:
        raise ValueError(f"no operation {name!r}: sum, prod, min, max and avg are known")
    return _OPS[name]


class Comm:
    """A communicator. All members of the group make it, and then the same calls in the same order, one at a time.

    backend: "gloo" (arrays in memory) or "nccl" (arrays on a GPU); None is the group's, "gloo" without one. timeout
    limits this call and then each call. Calls return when their work is done. After an Error of a call, when a member
    has died for instance, the communicator can only be freed.
    """

    def __init__(self, group: Optional[Group] = None, backend: Optional[str] = None,
                 timeout: Optional[float] = None) -> None:
        out = c_void_p()
        self._handle: Optional[int] = None
        check(lib.hn_comm_create(handle_of(group), as_bytes(backend) if backend else None, milliseconds(timeout),
                                 byref(out)))
        self._handle = out.value

    def free(self) -> None:
        """Frees it; it is freed with its last reference, too. Waits for no other rank."""
        handle, self._handle = self._handle, None
        if handle:
            lib.hn_comm_free(handle)

    def __del__(self) -> None:
        self.free()

    def rank(self) -> int:
        return check(lib.hn_comm_rank(self._handle))

    def size(self) -> int:
        return check(lib.hn_comm_size(self._handle))

    def all_reduce(self, array: Any, out: Any = None, op: str = "sum") -> None:
        """Reduces the arrays of all members into out of each, without out in place."""
        a, b = _pair(array, out)
        _want(b.n, a.n, "output")
        check(lib.hn_all_reduce(self._handle, a.address, b.address, a.n, a.dtype, _op(op)))

    def reduce(self, array: Any, out: Any = None, op: str = "sum", root: int = 0) -> None:
        """The same for one member; the others' out is ignored."""
        if self.rank() == root:
            a, b = _pair(array, out)
            _want(b.n, a.n, "output")
        else:
            a, b = _array(array, False), None
        check(lib.hn_reduce(self._handle, a.address, b and b.address, a.n, a.dtype, _op(op), root))

    def broadcast(self, array: Any, root: int = 0) -> None:
        """Copies the root's array to those of all members."""
        a = _array(array, True)
        check(lib.hn_broadcast(self._handle, a.address, a.n, a.dtype, root))

    def all_gather(self, array: Any, out: Any) -> None:
        """Copies the arrays of all members to out, in rank order."""
        a, b = _pair(array, out)
        _want(b.n, a.n * self.size(), "output")
        check(lib.hn_all_gather(self._handle, a.address, b.address, a.n, a.dtype))

    def reduce_scatter(self, array: Any, out: Any, op: str = "sum") -> None:
        """Reduces arrays of size() blocks; member r gets block r."""
        a, b = _pair(array, out)
        _want(a.n, b.n * self.size(), "input")
        check(lib.hn_reduce_scatter(self._handle, a.address, b.address, b.n, a.dtype, _op(op)))

    def all_to_all(self, array: Any, out: Any) -> None:
        """Sends block r of the array to member r; block r of out comes from member r. Two different arrays."""
        a, b = _pair(array, out)
        n = self.size()
        _want(b.n, a.n, "output")
        _want(a.n % n, 0, f"last of {n} equal blocks of the input")
        check(lib.hn_all_to_all(self._handle, a.address, b.address, a.n // n, a.dtype))

    def barrier(self) -> None:
        """Waits until all members have arrived."""
        check(lib.hn_comm_barrier(self._handle))

    def send(self, array: Any, to: int) -> None:
        """Sends to a member, which calls recv(); may wait for that."""
        a = _array(array, False)
        check(lib.hn_send(self._handle, a.address, a.n, a.dtype, to))

    def recv(self, out: Any, source: int) -> None:
        """Receives from a member."""
        b = _array(out, True)
        check(lib.hn_recv(self._handle, b.address, b.n, b.dtype, source))

    def send_recv(self, array: Any, to: int, out: Any, source: int) -> None:
        """Sends and receives at once: two members that send to each other, or a ring. Two different arrays."""
        a, b = _pair(array, out)
        _want(b.n, a.n, "output")
        check(lib.hn_send_recv(self._handle, a.address, to, b.address, source, a.n, a.dtype))
