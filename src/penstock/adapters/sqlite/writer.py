"""The one writer of a SQLite log: all that waits is written in one transaction, so durability costs one fsync for many.

Law: tickets are settled in order; a settled ticket is on disk or refused. After a failed write nothing more is written.

Two threads may write, never at once: the holder of the write lock uses the connection. The writer's own thread collects appends
and commits them while the event loop goes on. A `durable` that finds the lock free commits on the calling thread instead, because
switching to another thread and back costs more than half an fsync of a fast disk. On a slow disk or a locked database the event
loop must not block: then the thread commits.
"""

from __future__ import annotations

import asyncio
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from penstock.adapters.files.folders import SAFE
from penstock.adapters.log_queue import Append, Broken, LogQueue, Standing, kept_of, kept_values, refusal
from penstock.adapters.sqlite.database import SQL, Database, is_busy, patiently, unavailable
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.checksums import checksum, seed
from penstock.ports.kept_state import Change, settled
from penstock.ports.log import Entry, Status
from penstock.ports.undoing import unless_done

T = TypeVar("T")


# ---- Many appends in one open transaction: each is admitted or refused whole, under what the database says now.
# Law: a refused append leaves no trace and breaks its execution for the rest of its epoch, so the log never has a gap.

SEQ_BITS = 36
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
class ExecutionRecord(Standing):
    """The row of an execution: its epoch, owner and last entry, and the key of its entries in the table."""

    key: int
    last_ts: float | None = None


def write_batch(connection: sqlite3.Connection, batch: Sequence[Append], broken: Broken) -> dict[int, Refused]:
    """All that may be appended, inside the caller's transaction. Returns the refusals by ticket and notes them in `broken`."""
    records: dict[str, ExecutionRecord | None] = {}
    refused: dict[int, Refused] = {}
    statuses: dict[int, tuple[Status, float | None]] = {}
    values: list[object] = []
    changes: list[tuple[Change, str, float]] = []
    for ticket, execution_id, epoch, entries, status, changed, _ in batch:
        if execution_id not in records:
            records[execution_id] = find_record(connection, execution_id)
        record = records[execution_id]
        reason = (broken and broken.get((execution_id, epoch))) or refusal(execution_id, record, epoch, entries)
        if reason is not None or record is None:
            refused[ticket] = broken[execution_id, epoch] = reason or Refused(f"there is no execution `{execution_id}`")
            continue
        base, start = record.key << SEQ_BITS, seed(execution_id)
        for entry in entries:
            values.append(base + entry[0])
            values += entry[1:]
            values.append(checksum(start, entry))
        if entries:
            record.last_seq += len(entries)
            record.last_ts = entries[-1].ts
        if status is not None:
            statuses[record.key] = (status, _ended_at(connection, record, status))
        changes += [(change, execution_id, record.last_ts or 0.0) for change in changed]
    _insert(connection, values)
    for key, (status, ended_at) in statuses.items():
        connection.execute(SQL["change_status"], (status, ended_at, key))
    for change, execution_id, at in changes:
        _change(connection, change, execution_id, at)
    return refused


def _change(connection: sqlite3.Connection, change: Change, run: str, at: float) -> None:
    """What a document keeps; no other writer is active within this transaction."""
    values = {"document": change.document, "kind": change.kind, "key": change.key}
    row = connection.execute(SQL["kept_one"], values).fetchone()
    found = settled(None if row is None else kept_of(row), change, run, at)
    if found.value is None:
        connection.execute(SQL["drop_kept"], values)
    else:
        connection.execute(SQL["keep"], kept_values(found))


def write_each(connection: sqlite3.Connection, batch: Sequence[Append], broken: Broken) -> dict[int, Refused]:
    """Like `write_batch`, if one of the appends cannot be stored: that one is refused, the others are written."""
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


def find_record(connection: sqlite3.Connection, execution_id: str) -> ExecutionRecord | None:
    row = connection.execute(SQL["standing"], (execution_id,)).fetchone()
    if row is None:
        return None
    key, epoch, owner, last_seq = row
    return ExecutionRecord(epoch, owner, last_seq or 0, key)


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


def _ended_at(connection: sqlite3.Connection, record: ExecutionRecord, status: Status) -> float | None:
    """The time of the last entry, so that the log needs no clock of its own."""
    if status == "running":
        return None
    if record.last_ts is None:
        row = connection.execute(SQL["last_time"], (record.key,)).fetchone()
        record.last_ts = row[0] if row else None
    return record.last_ts


Job = Callable[[sqlite3.Connection], T]

GATHER_SECONDS = 0.002
# The most entries of one transaction: the write-ahead log is cut back only between transactions.
BATCH_ENTRIES = 16_384
# The calling thread commits no more than this itself; larger batches go to the writer's thread.
INLINE_ENTRIES = 64
# Two commits in a row on the calling thread that took longer send the next ones to the writer's thread. One alone does
# not: now and then a commit also copies the write-ahead log into the database.
SLOW_SECONDS = 0.005
DETOUR_COMMITS = 64
# After so many turns of the loop without another append, only every n-th wait takes one.
ALONE_TURNS = 8


class SqliteWriter(LogQueue):
    gather_s = GATHER_SECONDS

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._connection = database.writing()
        self._write_lock = threading.Lock()
        self._was_slow = False
        self._detour = 0
        self._alone = 0

    @property
    def _place(self) -> str:
        return f"`{self._database.path}`"

    async def transact(self, job: Job[T]) -> T:
        """Runs `job` in a transaction of its own: here if that is possible at once, otherwise in a thread that can wait."""
        if not self._detour and self._write_lock.acquire(blocking=False):
            try:
                with self._database.guarding():
                    if self._begin(0.0):
                        return self._transact(job)
            finally:
                self._write_lock.release()
        return await asyncio.to_thread(self.transact_now, job)

    def transact_now(self, job: Job[T]) -> T:
        """`job` in a transaction of its own, from any thread; waits for its turn."""
        with self._write_lock, self._database.guarding():
            self._begin(self._database.busy_seconds)
            return self._transact(job)

    def shrink(self, pages: int) -> bool:
        """Returns some empty pages to the disk. Returns whether there are more."""
        with self._write_lock, self._database.guarding():
            self._check_open()
            before = self._empty_pages()
            # As a script: executed as a statement, it stops after the first page.
            script = f"PRAGMA incremental_vacuum({pages})"
            patiently(lambda: self._connection.executescript(script), self._database.busy_seconds)
            return 0 < self._empty_pages() < before

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self.flush()
        finally:
            self._end_thread()
            with self._write_lock:
                self._connection.close()

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def _let_others_append(self, ticket: int) -> None:
        """One commit then serves all of them. A turn of the loop costs a tenth of an fsync: if no other append ever comes, as in
        a chain of strict tasks, only some of the waits take one."""
        if self._alone < ALONE_TURNS or ticket % ALONE_TURNS == 0:
            given = self._given
            await asyncio.sleep(0)
            self._alone = self._alone + 1 if self._given == given else 0

    def _commit_here(self) -> bool:
        """Commits on the calling thread, if that will not block it. Returns whether it did."""
        if self._detour or self.backlog > INLINE_ENTRIES or not self._write_lock.acquire(blocking=False):
            return False
        try:
            began = time.perf_counter()
            done = self._commit(0.0)
            slow = time.perf_counter() - began > SLOW_SECONDS
            if slow and self._was_slow:
                self._detour = DETOUR_COMMITS
            self._was_slow = slow
        finally:
            self._write_lock.release()
        self._wake_waiters()
        return done

    def _commit_in_thread(self) -> None:
        with self._write_lock:
            self._commit(self._database.busy_seconds)
        if self._detour:
            self._detour -= 1

    # -- with the write lock held ---------------------------------------------------------------------------------------

    def _commit(self, patience: float) -> bool:
        """One transaction with what waits. False when it could not be begun without waiting."""
        if self._fault or not self._queue:
            return True
        with unless_done(self._fail_as_interrupted):
            try:
                if not self._begin(patience):
                    return False
                batch, entries = self._take()
                refused, broken = self._write(batch)
                self._connection.execute("COMMIT")
            except (sqlite3.Error, MemoryError) as error:
                self._fail(unavailable(error, self._database.path))
                return True
        self._refused |= refused
        self._broken = broken
        self._written += entries
        self._settled = batch[-1].ticket
        return True

    def _fail_as_interrupted(self) -> None:
        self._fail(Unavailable(f"writing to `{self._database.path}` was interrupted", SAFE))

    def _begin(self, patience: float) -> bool:
        """Open a transaction that may write. False when another process is writing and there is no time to wait."""
        self._check_open()
        try:
            patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"), patience)
        except sqlite3.OperationalError as error:
            if patience or not is_busy(error):
                raise
            return False
        return True

    def _take(self) -> tuple[list[Append], int]:
        batch: list[Append] = []
        entries = 0
        while self._queue and entries < BATCH_ENTRIES:
            batch.append(append := self._queue.popleft())
            entries += len(append.entries)
        return batch, entries

    def _write(self, batch: list[Append]) -> tuple[dict[int, Refused], Broken]:
        """The refusals by ticket, and the executions that are broken once this is committed."""
        broken = dict(self._broken)
        try:
            return write_batch(self._connection, batch, broken), broken
        except UNFIT:
            self._connection.execute("ROLLBACK")
            self._begin(self._database.busy_seconds)
            broken = dict(self._broken)
            return write_each(self._connection, batch, broken), broken

    def _transact(self, job: Job[T]) -> T:
        try:
            self.check()
            result = job(self._connection)
            self._connection.execute("COMMIT")
        except UNFIT as error:
            raise Refused(f"this cannot be stored: {error}") from error
        finally:
            self._roll_back()
        return result

    def _empty_pages(self) -> int:
        return int(self._connection.execute("PRAGMA freelist_count").fetchone()[0])

    def _fail(self, fault: Unavailable) -> None:
        super()._fail(fault)
        self._roll_back()

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The transaction is gone either way: what was not committed is not in the log.
            pass

    def _check_open(self) -> None:
        if self._closed:
            raise Refused("the log is closed", "open it again first")
