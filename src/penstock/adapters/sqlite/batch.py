"""Many appends in one open transaction: each is admitted or refused whole, under what the database says now.

Law: a refused append leaves no trace and breaks its execution for the rest of its epoch, so the log never has a gap.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from penstock.adapters.admission import Standing, refusal
from penstock.adapters.kept_rows import kept_of, kept_values
from penstock.adapters.log_queue import Append, Broken
from penstock.adapters.sqlite.database import SQL
from penstock.kernel.errors import Refused
from penstock.ports.checksums import checksum, seed
from penstock.ports.kept_state import Change, settled
from penstock.ports.log import Entry, Status

PLACE_BITS = 36
COLUMNS = len(Entry._fields) + 1
# One statement for many rows: SQLite lets go of the interpreter lock once per statement and may wait a switch interval
# (5 ms) to have it again when the event loop is busy; once per row would stall the writer behind the loop.
LARGE, SMALL = 512, 64

# What is the fault of the entries themselves and would fail again for ever: a lone surrogate, a number beyond 64 bits …
UNFIT = (
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    sqlite3.DataError,
    UnicodeError,
    OverflowError,
    TypeError,
    struct.error,
)


@dataclass(slots=True)
class Place(Standing):
    """Where an execution stands, and where its entries lie in the table."""

    key: int
    last_ts: float | None = None


def write_batch(connection: sqlite3.Connection, batch: Sequence[Append], broken: Broken) -> dict[int, Refused]:
    """All that may be appended, inside the caller's transaction. Returns the refusals by ticket and notes them in `broken`."""
    places: dict[str, Place | None] = {}
    refused: dict[int, Refused] = {}
    statuses: dict[int, tuple[Status, float | None]] = {}
    values: list[object] = []
    changes: list[tuple[Change, str, float]] = []
    for ticket, execution_id, epoch, entries, status, changed in batch:
        if execution_id not in places:
            places[execution_id] = find_place(connection, execution_id)
        place = places[execution_id]
        reason = (broken and broken.get((execution_id, epoch))) or refusal(execution_id, place, epoch, entries)
        if reason is not None or place is None:
            refused[ticket] = broken[execution_id, epoch] = reason or Refused(f"there is no execution `{execution_id}`")
            continue
        base, start = place.key << PLACE_BITS, seed(execution_id)
        for entry in entries:
            values.append(base + entry[0])
            values += entry[1:]
            values.append(checksum(start, entry))
        if entries:
            place.last_seq += len(entries)
            place.last_ts = entries[-1].ts
        if status is not None:
            statuses[place.key] = (status, _ended_at(connection, place, status))
        changes += [(change, execution_id, place.last_ts or 0.0) for change in changed]
    _insert(connection, values)
    for key, (status, ended_at) in statuses.items():
        connection.execute(SQL["change_status"], (status, ended_at, key))
    for change, execution_id, at in changes:
        _change(connection, change, execution_id, at)
    return refused


def _change(connection: sqlite3.Connection, change: Change, run: str, at: float) -> None:
    """What a document keeps; nobody else writes within this transaction."""
    values = {"document": change.document, "kind": change.kind, "key": change.key}
    row = connection.execute(SQL["kept_one"], values).fetchone()
    found = settled(None if row is None else kept_of(row), change, run, at)
    if found.value is None:
        connection.execute(SQL["drop_kept"], values)
    else:
        connection.execute(SQL["keep"], kept_values(found))


def write_each(connection: sqlite3.Connection, batch: Sequence[Append], broken: Broken) -> dict[int, Refused]:
    """As `write_batch`, when one of the appends holds what cannot be stored: that one is refused, the others are written."""
    refused: dict[int, Refused] = {}
    for append in batch:
        connection.execute("SAVEPOINT one")
        try:
            refused |= write_batch(connection, (append,), broken)
        except UNFIT as error:
            connection.execute("ROLLBACK TO one")
            what = f"entry {append.entries[0].seq} or one after it" if append.entries else f"status `{append.status}`"
            reason = Refused(f"{what} of `{append.execution_id}` cannot be stored: {error}")
            refused[append.ticket] = broken[append.execution_id, append.epoch] = reason
        connection.execute("RELEASE one")
    return refused


def find_place(connection: sqlite3.Connection, execution_id: str) -> Place | None:
    row = connection.execute(SQL["standing"], (execution_id,)).fetchone()
    if row is None:
        return None
    key, epoch, owner, last_seq = row
    return Place(epoch, owner, last_seq or 0, key)


def _insert(connection: sqlite3.Connection, values: list[object]) -> None:
    rows = len(values) // COLUMNS
    start = 0
    while start < rows:
        left = rows - start
        size = LARGE if left >= LARGE else min(left, SMALL)
        connection.execute(_insert_text(size), values[start * COLUMNS : (start + size) * COLUMNS])
        start += size


@cache
def _insert_text(rows: int) -> str:
    row = "(" + ", ".join("?" * COLUMNS) + ")"
    return SQL["insert_entries"] + " " + ", ".join([row] * rows)


def _ended_at(connection: sqlite3.Connection, place: Place, status: Status) -> float | None:
    """The time of the last entry, so that the log needs no clock of its own."""
    if status == "running":
        return None
    if place.last_ts is None:
        row = connection.execute(SQL["last_time"], (place.key,)).fetchone()
        place.last_ts = row[0] if row else None
    return place.last_ts
