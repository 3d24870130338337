"""The checksum of an entry: written with it and compared whenever it is read, so that a flipped bit is never taken for
history.

Law: whatever reads entries out of a store reads them through `verified`. Entries written by the first release have no
checksum; for those it is only checked that they can be decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast
from zlib import crc32

import msgspec

from penstock.kernel.errors import Damaged
from penstock.ports.log import Entry

_numbers = struct.Struct("<qd").pack
_decode = msgspec.json.Decoder().decode

# `Entry._make` without its check, and so in half the time: a row has the fields of Entry, and then the checksum.
_entry = cast("Callable[[Sequence[object]], Entry]", partial(tuple.__new__, Entry))


def seed(execution_id: str) -> int:
    """Initial value of the checksums of all entries of an execution, so that an entry of another execution is detected, too."""
    return crc32(execution_id.encode("utf-8", "surrogatepass"))


def checksum(start: int, entry: Sequence[Any]) -> int:
    """The checksum of an entry: 32 bits, unsigned."""
    seq, ts, kind, scope, task, clock, cause, source, worker, payload = entry
    texts = f"{kind}\0{scope}\0{task or ''}\0{clock}\0{cause or ''}\0{source}\0{worker or ''}"
    return crc32(payload, crc32(texts.encode(), crc32(_numbers(seq, ts), start)))


def verified(execution_id: str, rows: Iterable[Sequence[Any]], where: object) -> Iterator[Entry]:
    """Entries from rows whose last field is the checksum or None. `where` they were read, for people."""
    start = seed(execution_id)
    for row in rows:
        kept, entry = row[10], _entry(row[:10])
        try:
            if kept is None:
                _check_readable(execution_id, row, where)
            elif kept != checksum(start, entry):
                raise _not_as_written(execution_id, entry, where)
        except (TypeError, ValueError, struct.error) as error:  # A field has a value that no field can have.
            raise _not_as_written(execution_id, entry, where) from error
        yield entry


def _not_as_written(execution_id: str, entry: Entry, where: object) -> Damaged:
    return damaged(execution_id, entry.seq, "its checksum is not the one it was written with", where)


def _check_readable(execution_id: str, row: Sequence[Any], where: object) -> None:
    try:
        is_whole = isinstance(_decode(row[9]), dict) and isinstance(_decode(row[5]), list)
    except (TypeError, ValueError, msgspec.MsgspecError):
        is_whole = False
    if not is_whole:
        raise damaged(execution_id, row[0], "what it holds cannot be read", where)


def damaged(execution_id: str, seq: int, why: str, where: object) -> Damaged:
    return Damaged(
        f"the log is damaged: event {seq} of run `{execution_id}` in {where}: {why}",
        "put a backup in its place; `penstock doctor --log` lists all that is damaged, and runs that are not can be used",
    )
