"""Entries as PostgreSQL keeps them: rows in the binary form of COPY, and text that may hold any character.

Law: what is read back is what was given, to the last character and type; what cannot be kept so is `UNFIT` before anything
is sent. PostgreSQL's text has no character 0, so that one is written as two others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import cast

from penstock.ports.checksums import checksum, seed
from penstock.ports.log import Entry

# What is the fault of the values themselves and would fail again for ever: a lone surrogate, a number beyond 64 bits …
UNFIT = (UnicodeError, OverflowError, TypeError, ValueError, AttributeError, struct.error)

MARK = "\x1a"
NUL = "\x00"
# A field may have a gigabyte; some of it is the server's own.
LARGEST_BYTES = 1_000_000_000

COPY_HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_END = b"\xff\xff"

_COLUMNS = struct.pack(">h", 3 + len(Entry._fields))
_DAY_ZERO = date(2000, 1, 1)
_length = struct.Struct(">i").pack
_numbers = struct.Struct(">iqid").pack
_number = struct.Struct(">iq").pack
_NULL = _length(-1)


def kept(text: str) -> str:
    """`text` as it is stored."""
    if NUL in text or MARK in text:
        return text.replace(MARK, MARK + "1").replace(NUL, MARK + "0")
    return text


def given(text: str) -> str:
    """What was stored, as it was."""
    return text.replace(MARK + "0", NUL).replace(MARK + "1", MARK) if MARK in text else text


def kept_or_none(text: str | None) -> str | None:
    return None if text is None else kept(text)


def given_values(row: Sequence[object]) -> list[object]:
    """A row with its texts as they were."""
    return [given(value) if isinstance(value, str) else value for value in row]


def stored_values(values: Mapping[str, object]) -> dict[str, object]:
    """Values with their texts as they are stored."""
    return {name: kept(value) if isinstance(value, str) else value for name, value in values.items()}


def copy_rows(execution_id: str, born: date, entries: Iterable[Entry]) -> bytes:
    """The entries of one execution as rows for COPY. Raises one of `UNFIT` when they cannot be kept."""
    name = kept(execution_id).encode()
    head = b"".join((_COLUMNS, _length(4), _length((born - _DAY_ZERO).days), _length(len(name)), name))
    parts: list[bytes] = []
    add = parts.append
    start = seed(execution_id)
    for entry in entries:
        seq, ts, *texts, payload = entry
        if ts != ts:
            raise ValueError("its time is not a number")
        kind, scope, _, clock, _, source, _ = texts
        if kind is None or scope is None or clock is None or source is None:
            raise TypeError("one of its fields is missing")
        add(head)
        add(_numbers(8, seq, 8, ts))
        for text in texts:
            if text is None:
                add(_NULL)
                continue
            data = (kept(text) if NUL in text or MARK in text else text).encode()
            add(_length(len(data)))
            add(data)
        if len(payload) > LARGEST_BYTES:
            raise ValueError(f"its payload has {len(payload)} bytes, and PostgreSQL takes a gigabyte")
        add(_length(len(payload)))
        add(payload)
        add(_number(8, checksum(start, entry)))
    return b"".join(parts)


def as_given(row: Sequence[object]) -> Sequence[object]:
    """A row of an entry with its texts as they were."""
    for value in row[2:9]:
        if value is not None and MARK in cast(str, value):
            return given_values(row)
    return row
