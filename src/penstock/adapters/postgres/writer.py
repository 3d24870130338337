"""The one writer of a PostgreSQL log: all that waits is written in one transaction, so durability costs one commit for many.

Law: tickets are settled in order; a settled ticket is in the log or refused. A connection that breaks is made anew and the
batch tried again, until the patience is at an end; then nothing more is written, and no gap can arise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import get_args
from uuid import UUID, uuid4

import psycopg

from penstock.adapters.files.folders import SAFE
from penstock.adapters.log_queue import Append, Broken, LogQueue, Standing, kept_of, kept_values, refusal
from penstock.adapters.postgres.database import SQL, WRITER, Connection, Database, words_of
from penstock.adapters.postgres.executions import Claim, not_owned
from penstock.adapters.postgres.rows import (
    COPY_END,
    COPY_HEAD,
    UNFIT,
    copy_rows,
    given,
    given_values,
    kept,
    stored_values,
)
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.kept_state import Change, settled
from penstock.ports.log import Status
from penstock.ports.undoing import unless_done

# ---- Many appends in one transaction: each execution's part is admitted or refused whole, by what the database says then.
# Law: a batch has a number, and is in the log once or not at all, however often it is tried: its number is written in its
# own transaction. What a try was told to admit is remembered before it commits, so a commit whose end was not told needs no
# guess.

STATUSES = frozenset(get_args(Status))


@dataclass(slots=True)
class Part:
    """What a batch has for one execution: its appends, joined."""

    claim: Claim
    last_seq: int
    """Where the execution must stand; the entries of this part follow."""
    first: Append
    count: int = 0
    rows: list[bytes] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    last_ts: float | None = None
    status: Status | None = None
    status_ts: float | None = None
    """When the last entry before the status was made; None when this part has none before it."""
    changes: list[Change] = field(default_factory=list)
    is_last: bool = False
    """The owner lets go of the execution."""


@dataclass(slots=True)
class Batch:
    number: int
    parts: dict[str, Part] = field(default_factory=dict)
    """By execution, as its name is stored."""
    strangers: list[Append] = field(default_factory=list)
    """Appends to what this process does not own: refused, once it is known why."""
    refused: dict[int, Refused] = field(default_factory=dict)
    broken: Broken = field(default_factory=dict)
    reasons: dict[str, Refused] = field(default_factory=dict)
    """The parts that the last try was about to leave out of its commit."""

    def refuse(self, append: Append, reason: Refused) -> None:
        self.refused[append.ticket] = self.broken[append.execution_id, append.epoch] = reason


def plan(number: int, appends: Sequence[Append], claims: Mapping[str, Claim], broken: Broken) -> Batch:
    """The appends by execution, checked against what this process knows, and made ready to send."""
    batch = Batch(number)
    for append in appends:
        key = (append.execution_id, append.epoch)
        claim = claims.get(append.execution_id)
        if reason := broken.get(key) or batch.broken.get(key):
            batch.refused[append.ticket] = reason
        elif claim is None or claim.epoch != append.epoch:
            batch.strangers.append(append)
        elif reason := _join(batch, claim, append):
            batch.refuse(append, reason)
    return batch


def _join(batch: Batch, claim: Claim, append: Append) -> Refused | None:
    """Add `append` to its part, or say why not."""
    if claim.lost:
        return not_owned(claim.execution_id)
    name = kept(claim.execution_id)
    part = batch.parts.get(name) or Part(claim, claim.last_seq, append)
    standing = Standing(claim.epoch, claim.owner, part.last_seq + part.count)
    if reason := refusal(claim.execution_id, standing, append.epoch, append.entries):
        return reason
    if append.status is not None and append.status not in STATUSES:
        return Refused(f"status `{append.status}` of `{claim.execution_id}` cannot be stored: there is no such status")
    try:
        rows = copy_rows(claim.execution_id, claim.born, append.entries)
    except UNFIT as error:
        return unfit(append, str(error))
    batch.parts[name] = part
    part.tickets.append(append.ticket)
    if append.entries:
        part.rows.append(rows)
        part.count += len(append.entries)
        part.last_ts = append.entries[-1].ts
    if append.status is not None:
        part.status, part.status_ts = append.status, part.last_ts
    part.changes += append.changes
    part.is_last = part.is_last or append.is_last
    return None


def unfit(append: Append, why: str) -> Refused:
    what = f"entry {append.entries[0].seq} or one after it" if append.entries else f"status `{append.status}`"
    return Refused(f"{what} of `{append.execution_id}` cannot be stored: {why}")


def write(connection: Connection, writer: UUID, batch: Batch) -> None:
    """One try. When it raises an error of psycopg's it is not known whether the batch is in the log: try again."""
    if batch.parts:
        with connection.transaction():
            is_first, admitted = _admit(connection, writer, batch)
            if is_first:
                batch.reasons = _reasons(connection, batch, admitted) if len(admitted) < len(batch.parts) else {}
                _copy(connection, batch, admitted)
                _keep(connection, [part for name, part in batch.parts.items() if name in admitted])
            # Otherwise an earlier try was committed after all, with the reasons it left.
    if batch.strangers:
        found = _standings(connection, [kept(append.execution_id) for append in batch.strangers])
        for append in batch.strangers:
            reason = batch.broken.get((append.execution_id, append.epoch)) or _reason(append, found)
            batch.refuse(append, reason)


def settle(batch: Batch, claims: dict[str, Claim]) -> None:
    """The batch is in the log: its claims have moved on, or have been let go, or their appends were refused."""
    for name, part in batch.parts.items():
        if reason := batch.reasons.get(name):
            batch.broken[part.claim.execution_id, part.claim.epoch] = reason
            batch.refused |= dict.fromkeys(part.tickets, reason)
        else:
            part.claim.last_seq = part.last_seq + part.count
            if part.is_last and claims.get(part.claim.execution_id) is part.claim:
                del claims[part.claim.execution_id]


def _admit(connection: Connection, writer: UUID, batch: Batch) -> tuple[bool, set[str]]:
    """Is the batch not in the log yet, and which of its parts may be?"""
    parts = batch.parts.values()
    values = {
        "writer": writer,
        "batch": batch.number,
        "names": list(batch.parts),
        "epochs": [part.claim.epoch for part in parts],
        "holders": [part.claim.holder for part in parts],
        "lasts": [part.last_seq for part in parts],
        "counts": [part.count for part in parts],
        "statuses": [part.status for part in parts],
        "times": [part.status_ts for part in parts],
        "are_last": [part.is_last for part in parts],
    }
    names = {name for (name,) in connection.execute(SQL["admit"], values)}
    return None in names, names - {None}


def _copy(connection: Connection, batch: Batch, admitted: set[str]) -> None:
    rows = [rows for name, part in batch.parts.items() if name in admitted for rows in part.rows]
    if rows:
        with connection.cursor().copy(SQL["copy_entries"]) as copy:
            copy.write(b"".join((COPY_HEAD, *rows, COPY_END)))


def _keep(connection: Connection, parts: list[Part]) -> None:
    """What documents keep between runs changes in the same transaction."""
    documents = sorted({kept(change.document) for part in parts for change in part.changes})
    if not documents:
        return
    connection.execute(SQL["lock_kept"], {"documents": documents})
    for part in parts:
        for change in part.changes:
            values = stored_values({"document": change.document, "kind": change.kind, "key": change.key})
            row = connection.execute(SQL["kept_one"], values).fetchone()
            there = None if row is None else kept_of(given_values(row))
            found = settled(there, change, part.claim.execution_id, part.last_ts or 0.0)
            if found.value is None:
                connection.execute(SQL["drop_kept"], values)
            else:
                connection.execute(SQL["keep"], stored_values(kept_values(found)))


def _reasons(connection: Connection, batch: Batch, admitted: set[str]) -> dict[str, Refused]:
    left_out = [name for name in batch.parts if name not in admitted]
    found = _standings(connection, left_out)
    return {name: _reason(batch.parts[name].first, found) for name in left_out}


def _standings(connection: Connection, names: list[str]) -> dict[str, Standing]:
    rows = connection.execute(SQL["standings"], {"names": names}).fetchall()
    return {
        name: Standing(epoch, None if owner is None else given(owner), last_seq)
        for name, epoch, owner, last_seq in rows
    }


def _reason(append: Append, found: Mapping[str, Standing]) -> Refused:
    standing = found.get(kept(append.execution_id))
    reason = refusal(append.execution_id, standing, append.epoch, append.entries)
    return reason or not_owned(append.execution_id)


GATHER_SECONDS = 0.005
# The most of one transaction: what comes after waits for its commit.
BATCH_ENTRIES = 16_384
BATCH_BYTES = 32 * 1024 * 1024


class PostgresWriter(LogQueue):
    gather_s = GATHER_SECONDS

    def __init__(self, database: Database, claims: dict[str, Claim], when_failed: Callable[[], None]) -> None:
        super().__init__()
        self._database = database
        self._claims = claims
        self._when_failed = when_failed
        self._id = uuid4()
        self._connection: Connection | None = None
        self._batches = 0

    @property
    def _place(self) -> str:
        return self._database.place

    def _check_open(self) -> None:
        self._database.check_open()

    def close(self) -> None:
        """End the thread, once it has written what it is at. Called on a thread that may wait."""
        self._end_thread()
        if self._connection:
            if not self._fault:
                with suppress(psycopg.Error):
                    self._connection.execute(SQL["remove_writer"], {"writer": self._id})
            self._connection.close()

    def _commit_in_thread(self) -> None:
        """One transaction with what waits."""
        appends, entries = self._take()
        if self._fault or not appends:
            return
        try:
            self._write(appends)
        except (Unavailable, Refused) as error:
            # Refused: the log was closed while it waited for the server.
            self._fail(error if isinstance(error, Unavailable) else Unavailable(error.message, SAFE))
            return
        self._written += entries
        self._settled = appends[-1].ticket

    def _take(self) -> tuple[list[Append], int]:
        appends: list[Append] = []
        entries = size = 0
        while self._queue and entries < BATCH_ENTRIES and size < BATCH_BYTES:
            appends.append(append := self._queue.popleft())
            entries += len(append.entries)
            size += sum([len(entry[-1]) for entry in append.entries if isinstance(entry[-1], bytes)])
        return appends, entries

    def _write(self, appends: Sequence[Append]) -> None:
        try:
            batch = self._try(appends)
        except psycopg.Error as error:
            # The values are at fault, in a way only the server knows: those of one append are no reason to refuse another.
            if len(appends) > 1:
                for append in appends:
                    self._write([append])
                return
            reason = unfit(appends[0], words_of(error))
            self._refused[appends[0].ticket] = self._broken[appends[0].execution_id, appends[0].epoch] = reason
            return
        settle(batch, self._claims)
        self._refused |= batch.refused
        self._broken |= batch.broken

    def _try(self, appends: Sequence[Append]) -> Batch:
        self._batches += 1
        batch = plan(self._batches, appends, self._claims, self._broken)

        def once() -> None:
            if not batch.parts and not batch.strangers:
                return
            with unless_done(self._disconnect):
                write(self._connected(), self._id, batch)

        self._database.patiently(once)
        return batch

    def _connected(self) -> Connection:
        self._connection = self._connection or self._database.connect(WRITER)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection:
            self._database.give_up(self._connection)
            self._connection = None

    def _fail(self, fault: Unavailable) -> None:
        super()._fail(fault)
        self._when_failed()
