# SPDX-License-Identifier: Apache-2.0
"""The key-value store of the job."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Iterable, Optional, Union

from hnlaunch._library import Text, as_bytes, check, lib, milliseconds

KEY_MAX, VALUE_MAX = 1024, 16 * 1024 * 1024  # bytes of a key with its prefix, bytes of a value


class Store:
    """Keys are str, values bytes (a str becomes UTF-8). `store` is the job's own."""

    _handle: Optional[int]

    def __init__(self, handle: Optional[int] = None) -> None:
        self._handle = handle

    def prefix(self, name: str) -> "Store":
        """Returns the same store, seen through "name/"."""
        out = c_void_p()
        check(lib.hn_store_prefix(self._handle, as_bytes(name), byref(out)))
        return _Prefix(out.value)

    def set(self, key: str, value: Text) -> None:
        """Writes a key, over an earlier value, and wakes all waiting calls."""
        data = as_bytes(value)
        check(lib.hn_store_set(self._handle, as_bytes(key), data, len(data)))

    def get(self, key: str, timeout: Optional[float] = None) -> bytes:
        """Waits for the key and returns its value. NotFound: timeout 0, and there is none."""
        value, size = c_void_p(), c_size_t()
        check(lib.hn_store_get_alloc(self._handle, as_bytes(key), byref(value), byref(size), milliseconds(timeout)))
        try:
            return ctypes.string_at(value.value or 0, size.value) if size.value else b""
        finally:
            lib.hn_free(value)

    def add(self, key: str, delta: int = 1) -> int:
        """Adds to a counter, which is decimal text and begins at 0, and returns the sum."""
        now = c_int64()
        check(lib.hn_store_add(self._handle, as_bytes(key), delta, byref(now)))
        return now.value

    def append(self, key: str, value: Text) -> None:
        """Adds bytes to the end of a value; an absent value is empty."""
        data = as_bytes(value)
        check(lib.hn_store_append(self._handle, as_bytes(key), data, len(data)))

    def compare_set(self, key: str, expected: Text, desired: Text) -> bool:
        """Writes desired if the value is expected, and tells whether it was; an absent key equals b""."""
        old, new, swapped = as_bytes(expected), as_bytes(desired), c_int()
        check(lib.hn_store_compare_set(self._handle, as_bytes(key), old, len(old), new, len(new), byref(swapped)))
        return bool(swapped.value)

    def wait(self, keys: Union[str, Iterable[str]], timeout: Optional[float] = None) -> None:
        """Waits until all the keys exist."""
        names = _names(keys)
        check(lib.hn_store_wait(self._handle, names, len(names), milliseconds(timeout)))

    def check(self, keys: Union[str, Iterable[str]]) -> bool:
        """Tells whether all the keys exist now."""
        names, present = _names(keys), c_int()
        check(lib.hn_store_check(self._handle, names, len(names), byref(present)))
        return bool(present.value)

    def delete(self, key: str) -> bool:
        """Deletes a key, and tells whether there was one."""
        existed = c_int()
        check(lib.hn_store_delete(self._handle, as_bytes(key), byref(existed)))
        return bool(existed.value)

    def num_keys(self) -> int:
        """Counts the keys below the prefix."""
        n = c_size_t()
        check(lib.hn_store_num_keys(self._handle, byref(n)))
        return n.value


class _Prefix(Store):
    def __del__(self) -> None:
        lib.hn_store_close(self._handle)


def _names(keys: Union[str, Iterable[str]]) -> "ctypes.Array[c_char_p]":
    names = [as_bytes(key) for key in ([keys] if isinstance(keys, str) else keys)]
    return (c_char_p * len(names))(*names)


store = Store()
