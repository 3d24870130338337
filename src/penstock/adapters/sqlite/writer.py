"""The one writer of a SQLite log: all that waits is written in one transaction, so durability costs one fsync for many.

Law: tickets are settled in order; a settled ticket is on disk or refused. After a failed write nothing more is written.

Two threads may write, never at once: who holds the pen uses the connection. The writer's own thread gathers what comes in
and commits it while the event loop goes on. A `durable` that finds the pen free commits on the calling thread instead,
because a hand-over to a thread and back costs more than half an fsync of a fast disk. On a slow disk or a locked database
the event loop must not stand still: then the thread does it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from penstock.adapters.files.folders import SAFE
from penstock.adapters.log_queue import Append, Broken, LogQueue
from penstock.adapters.sqlite.batch import UNFIT, write_batch, write_each
from penstock.adapters.sqlite.database import Database, patiently
from penstock.adapters.sqlite.errors import is_busy, unavailable
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

GATHER_SECONDS = 0.002
# The most entries of one transaction: the write-ahead log is cut back only between transactions.
BATCH_ENTRIES = 16_384
# The calling thread commits no more than this itself; what is more is better done beside it.
INLINE_ENTRIES = 64
# Two commits in a row on the calling thread that took longer send the next ones to the writer's thread. One alone does
# not: now and then a commit also copies the write-ahead log into the database.
SLOW_SECONDS = 0.005
DETOUR_COMMITS = 64
# After so many turns of the loop in which nobody else appended, only every so manieth wait takes one.
ALONE_TURNS = 8


class SqliteWriter(LogQueue):
    gather_s = GATHER_SECONDS

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._connection = database.writing()
        self._pen = threading.Lock()
        self._was_slow = False
        self._detour = 0
        self._alone = 0

    @property
    def _place(self) -> str:
        return f"`{self._database.path}`"

    async def transact(self, job: Job[T]) -> T:
        """`job` in a transaction of its own: here when that can be done at once, otherwise in a thread that can wait."""
        if not self._detour and self._pen.acquire(blocking=False):
            try:
                with self._database.guarding():
                    if self._begin(0.0):
                        return self._transact(job)
            finally:
                self._pen.release()
        return await asyncio.to_thread(self.transact_now, job)

    def transact_now(self, job: Job[T]) -> T:
        """`job` in a transaction of its own, from any thread; waits for its turn."""
        with self._pen, self._database.guarding():
            self._begin(self._database.busy_seconds)
            return self._transact(job)

    def shrink(self, pages: int) -> bool:
        """Give some empty pages back to the disk. Says whether there are more to give."""
        with self._pen, self._database.guarding():
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
            with self._pen:
                self._connection.close()

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def _let_others_append(self, ticket: int) -> None:
        """One commit then serves them all. A turn of the loop costs a tenth of an fsync: where nobody else ever came, as
        in a chain of strict tasks, only some of the waits pay for it."""
        if self._alone < ALONE_TURNS or ticket % ALONE_TURNS == 0:
            given = self._given
            await asyncio.sleep(0)
            self._alone = self._alone + 1 if self._given == given else 0

    def _commit_here(self) -> bool:
        """Commit on the calling thread, if that will not hold it up. Says whether it did."""
        if self._detour or self.backlog > INLINE_ENTRIES or not self._pen.acquire(blocking=False):
            return False
        try:
            began = time.perf_counter()
            done = self._commit(0.0)
            slow = time.perf_counter() - began > SLOW_SECONDS
            if slow and self._was_slow:
                self._detour = DETOUR_COMMITS
            self._was_slow = slow
        finally:
            self._pen.release()
        self._wake_waiters()
        return done

    def _commit_in_thread(self) -> None:
        with self._pen:
            self._commit(self._database.busy_seconds)
        if self._detour:
            self._detour -= 1

    # -- with the pen in hand -----------------------------------------------------------------------------------------

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
