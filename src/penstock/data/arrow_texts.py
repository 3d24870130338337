"""An Arrow C stream made of texts: columns of what somebody else has written of each value, for DuckDB to read as what they are.

Law: what a batch points to is kept until whoever took the batch releases it, and no longer.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import Any

from penstock.data.arrow_stream import Array, Fill, Release, Say, Stream, capsule_of

Texts = Sequence[Sequence[bytes | None]]
"""A batch, column by column; None for NULL."""
_FAILED = 5
_NULLABLE = 2


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_kept: dict[int, object] = {}
_keys = count(1)


def _releasing(structure: type[_Schema] | type[Array]) -> Any:
    def release(at: int) -> None:
        found = structure.from_address(at)
        children = (ctypes.c_void_p * found.n_children).from_address(found.children) if found.n_children else ()
        for child in children:
            # One that was taken by itself is released by itself.
            if structure.from_address(child).release:
                release(child)
        _kept.pop(found.private_data, None)
        found.release = None

    return Release(release)


# They live as long as the process: a batch may be released when nobody remembers its stream.
_release_schema, _release_array = _releasing(_Schema), _releasing(Array)


class TextStream:
    """A stream to be read once. `columns` are names, each with whether it is of bytes; `failure` is what `batches` raised."""

    def __init__(self, columns: Sequence[tuple[str, bool]], batches: Iterator[Texts]) -> None:
        self.failure: Exception | None = None
        self._columns = columns
        self._batches = batches
        self._stream = Stream(Fill(self._schema), Fill(self._next), Say(self._said), Release(self._release), None)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return capsule_of(ctypes.addressof(self._stream))

    def _schema(self, _: int, at: int) -> int:
        fields = [
            _Schema(b"z" if is_bytes else b"u", name.encode(), None, _NULLABLE) for name, is_bytes in self._columns
        ]
        _hand_over(_Schema(b"+s", b"", None, 0), fields, at, _release_schema, ())
        return 0

    def _next(self, _: int, at: int) -> int:
        try:
            batch = next(self._batches, None)
        except Exception as error:  # It cannot pass through the reader, who is told that there is one.
            self.failure = error
            return _FAILED
        if batch is None:
            Array.from_address(at).release = None
            return 0
        buffers = [_buffers(column) for column in batch]
        columns = [_array(len(column), given) for column, given in zip(batch, buffers, strict=True)]
        whole = _array(len(batch[0]), (None,))
        _hand_over(whole, columns, at, _release_array, (buffers, whole))
        return 0

    def _said(self, _: int) -> int:
        self._words = ctypes.create_string_buffer(str(self.failure).encode())
        return ctypes.addressof(self._words)

    def _release(self, at: int) -> None:
        Stream.from_address(at).release = Release()


def _hand_over(whole: Any, parts: Sequence[Any], at: int, release: Any, kept: object) -> None:
    """The structure with its children, written where the reader wants it."""
    of_release = ctypes.cast(release, ctypes.c_void_p).value
    children = (ctypes.c_void_p * len(parts))(*map(ctypes.addressof, parts))
    whole.n_children, whole.children = len(parts), ctypes.addressof(children)
    for one in (*parts, whole):
        one.release, one.private_data = of_release, next(_keys)
        _kept[one.private_data] = (one, kept)
    _kept[whole.private_data] = (whole, parts, children, kept)
    ctypes.memmove(at, ctypes.addressof(whole), ctypes.sizeof(whole))


def _array(length: int, buffers: Sequence[Any]) -> Array:
    nulls = 0 if buffers[0] is None else -1
    pointers = (ctypes.c_void_p * len(buffers))(*(None if each is None else _address(each) for each in buffers))
    made = Array(length=length, null_count=nulls, offset=0, n_buffers=len(buffers), buffers=ctypes.addressof(pointers))
    made.pointers = pointers
    return made


def _address(buffer: Any) -> int | None:
    if isinstance(buffer, array):
        return buffer.buffer_info()[0]
    return ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p).value


def _buffers(column: Sequence[bytes | None]) -> tuple[bytes | None, array[int], bytes]:
    """Which are there, where each begins, and all of them."""
    there, values = None, column
    if None in column:
        bits = "".join("0" if value is None else "1" for value in reversed(column))
        there = int(bits, 2).to_bytes((len(column) + 7) // 8, "little")
        values = [value or b"" for value in column]
    return there, array("i", [0, *accumulate(map(len, values))]), b"".join(values)  # type: ignore[arg-type]
