"""An Arrow C stream that says how far it has been read.

The structures are those of the Arrow C data interface, which is an ABI: they do not change. A stream is only looked at; who reads
it and who fills it share the memory of its batches as if nobody stood between them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_NAME = b"arrow_array_stream"


class Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


Fill = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
Say = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", Fill),
        ("get_next", Fill),
        ("get_last_error", Say),
        ("release", Release),
        ("private_data", ctypes.c_void_p),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype = ctypes.py_object
_capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def capsule_of(stream: int) -> Any:
    """Of the stream at this address, for whoever knows only Python."""
    return _capsule_of(stream, _NAME, None)


class CountedStream:
    """A stream to be read once, while this object lives. `seen` is told how many rows have come, from whichever thread reads."""

    def __init__(self, stream: Any, seen: Callable[[int], None]) -> None:
        self._source = stream.__arrow_c_stream__()
        self._inner = Stream.from_address(_pointer_of(self._source, _NAME))
        self._at = ctypes.addressof(self._inner)
        self._seen = seen
        self._rows = 0
        self._outer = Stream(
            Fill(lambda _, schema: int(self._inner.get_schema(self._at, schema))),
            Fill(self._next),
            Say(lambda _: self._inner.get_last_error(self._at)),
            Release(self._release),
            None,
        )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return capsule_of(ctypes.addressof(self._outer))

    def _next(self, _: int, array: int) -> int:
        code = int(self._inner.get_next(self._at, array))
        found = Array.from_address(array)
        if code == 0 and found.release:
            self._rows += found.length
            self._seen(self._rows)
        return code

    def _release(self, outer: int) -> None:
        """Who releases a stream marks it so; the one within is released here, and not once more with its capsule."""
        Stream.from_address(outer).release = Release()
        if self._inner.release:
            self._inner.release(self._at)
