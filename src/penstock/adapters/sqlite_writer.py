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
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

from penstock.adapters.folders import SAFE
from penstock.adapters.sqlite_batch import UNFIT, Append, Broken, write_batch, write_each
from penstock.adapters.sqlite_database import Database, patiently
from penstock.adapters.sqlite_errors import is_busy, unavailable
from penstock.adapters.waiters import Waiters
from penstock.kernel.errors import Bug, Refused, Unavailable
from penstock.ports.log import Entry, Status
from penstock.ports.undoing import unless_done

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

# Entries nobody waits for are gathered this long, or until there are this many, before the thread is woken for them.
GATHER_SECONDS = 0.002
GATHER_ENTRIES = 256
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


class SqliteWriter:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection = database.writing()
        self._pen = threading.Lock()
        self._queue: deque[Append] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._alarm: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        # Counted by who hands over and by who settles: each counter has one writer at a time, so none needs a lock.
        self._given = self._settled = 0
        self._handed = self._written = 0
        self._refused: dict[int, Refused] = {}
        self._broken: Broken = {}
        self._fault: Unavailable | None = None
        self._fault_is_told = False
        self._waiters = Waiters()
        self._was_slow = False
        self._detour = 0
        self._alone = 0

    @property
    def backlog(self) -> int:
        return self._handed - self._written

    @property
    def has_failed(self) -> bool:
        return self._fault is not None

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], status: Status | None) -> int:
        self._check_open()
        self._given = ticket = self._given + 1
        self._handed += len(entries)
        if self._fault is None:
            self._queue.append(Append(ticket, execution_id, epoch, entries, status))
            if self._alarm is None or self._alarm.is_closed():
                self._set_alarm()
            elif self._handed - self._written > GATHER_ENTRIES and not self._rung:
                self._ring()
        return ticket

    async def durable(self, ticket: int) -> None:
        if ticket > self._settled:
            await self._settle(ticket)
        if self._refused and (refused := self._refused.get(ticket)):
            raise type(refused)(refused.message, refused.hint)

    async def flush(self) -> None:
        """Write what waits. Raises the error of a failed write, unless it has been told already."""
        if self._given > self._settled and not self._fault_is_told:
            await self._settle(self._given)

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

    def begin_epoch(self, execution_id: str, epoch: int) -> None:
        """A new owner: what an earlier execution of this name was refused is not held against it. Called by a job, which
        has the pen."""
        self._broken.pop((execution_id, epoch), None)

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self.flush()
        finally:
            self._closed = True
            if self._thread:
                self._bell.put(None)
                self._thread.join()
            with self._pen:
                self._connection.close()

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def _settle(self, ticket: int) -> None:
        if ticket > self._given:
            raise Bug(f"ticket {ticket} was never given: the last one is {self._given}")
        await self._let_others_append(ticket)
        while ticket > self._settled:
            if self._fault:
                self._fault_is_told = True
                raise Unavailable(self._fault.message, self._fault.hint)
            if not self._commit_here():
                await self._wait(ticket)

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

    async def _wait(self, ticket: int) -> None:
        """Until the writer's thread has settled `ticket`, or can settle nothing more."""
        settled = self._waiters.join(ticket)
        if ticket > self._settled and not self._fault:
            if not self._rung:
                self._ring()
            await settled

    def _wake_waiters(self) -> None:
        self._waiters.wake(None if self._fault else self._settled)

    # -- the writer's thread ------------------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """Wake the thread in a moment. The event loop keeps the time: when a `durable` comes first, as it does after every
        append of a strict run, the thread sleeps on and does not fight the loop for the interpreter."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._ring()
            return
        self._alarm = loop
        loop.call_later(GATHER_SECONDS, self._sound_alarm)

    def _sound_alarm(self) -> None:
        self._alarm = None
        if self._queue and not self._rung:
            self._ring()

    def _ring(self) -> None:
        self._rung = True
        self._bell.put(None)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock-log", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closed:
                self._bell.get()
                # Before the queue is looked at: what is appended from here on rings again.
                self._rung = False
                with self._pen:
                    self._commit(self._database.busy_seconds)
                if self._detour:
                    self._detour -= 1
                if self._queue:
                    self._ring()
                self._wake_waiters()
        finally:
            if not self._closed:
                self._fail(Unavailable(f"the writer of `{self._database.path}` has stopped", SAFE))
                self._wake_waiters()

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
            if self._fault:
                raise Unavailable(self._fault.message, self._fault.hint)
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
        """From here on every ticket that is not settled has this error, and nothing more is written: no gap can arise."""
        self._fault = self._fault or fault
        self._queue.clear()
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
