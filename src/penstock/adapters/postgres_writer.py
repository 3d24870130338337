"""The one writer of a PostgreSQL log: all that waits is written in one transaction, so durability costs one commit for many.

Law: tickets are settled in order; a settled ticket is in the log or refused. A connection that breaks is made anew and the
batch tried again, until the patience is at an end; then nothing more is written, and no gap can arise.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from uuid import uuid4

import psycopg

from penstock.adapters.folders import SAFE
from penstock.adapters.postgres_batch import Append, Batch, Broken, plan, settle, unfit, write
from penstock.adapters.postgres_database import SQL, Connection, Database
from penstock.adapters.postgres_errors import words_of
from penstock.adapters.postgres_ownership import Claim
from penstock.adapters.waiters import Waiters
from penstock.kernel.errors import Bug, Refused, Unavailable
from penstock.ports.log import Entry, Status
from penstock.ports.undoing import unless_done

# Entries nobody waits for are gathered this long, or until there are this many, before the thread is woken for them.
GATHER_SECONDS = 0.005
GATHER_ENTRIES = 256
# The most of one transaction: what comes after waits for its commit.
BATCH_ENTRIES = 16_384
BATCH_BYTES = 32 * 1024 * 1024


class PostgresWriter:
    def __init__(self, database: Database, claims: Mapping[str, Claim], when_failed: Callable[[], None]) -> None:
        self._database = database
        self._claims = claims
        self._when_failed = when_failed
        self._id = uuid4()
        self._connection: Connection | None = None
        self._batches = 0
        self._queue: deque[Append] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._alarm: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        # Counted by who hands over and by the thread that settles: each counter has one writer, so none needs a lock.
        self._given = self._settled = 0
        self._handed = self._written = 0
        self._refused: dict[int, Refused] = {}
        self._broken: Broken = {}
        self._fault: Unavailable | None = None
        self._fault_is_told = False
        self._waiters = Waiters()

    @property
    def backlog(self) -> int:
        return self._handed - self._written

    @property
    def has_failed(self) -> bool:
        return self._fault is not None

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], status: Status | None) -> int:
        self._database.check_open()
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

    def begin_epoch(self, claim: Claim) -> None:
        """A new owner: what an earlier execution of this name was refused is not held against it."""
        self._broken.pop((claim.execution_id, claim.epoch), None)

    def check(self) -> None:
        """Raises the error after which nothing is written any more."""
        if self._fault:
            raise Unavailable(self._fault.message, self._fault.hint)

    def close(self) -> None:
        """End the thread, once it has written what it is at. Called on a thread that may wait."""
        self._closed = True
        if self._thread:
            self._bell.put(None)
            self._thread.join()
        if self._connection:
            if not self._fault:
                with suppress(psycopg.Error):
                    self._connection.execute(SQL["remove_writer"], {"writer": self._id})
            self._connection.close()

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def _settle(self, ticket: int) -> None:
        if ticket > self._given:
            raise Bug(f"ticket {ticket} was never given: the last one is {self._given}")
        # Others may append in this turn of the loop: one commit then serves them all.
        await asyncio.sleep(0)
        while ticket > self._settled:
            if self._fault:
                self._fault_is_told = True
                self.check()
            settled = self._waiters.join(ticket)
            if ticket > self._settled and not self._fault:
                if not self._rung:
                    self._ring()
                await settled

    # -- the writer's thread ------------------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """Wake the thread in a moment; the event loop keeps the time."""
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
                self._commit()
                if self._queue:
                    self._ring()
                self._wake()
        finally:
            if not self._closed:
                self._fail(Unavailable(f"the writer of {self._database.place} has stopped", SAFE))
                self._wake()

    def _wake(self) -> None:
        self._waiters.wake(None if self._fault else self._settled)

    def _commit(self) -> None:
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
        settle(batch)
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
        self._connection = self._connection or self._database.connect("penstock-log")
        return self._connection

    def _disconnect(self) -> None:
        if self._connection:
            self._database.give_up(self._connection)
            self._connection = None

    def _fail(self, fault: Unavailable) -> None:
        """From here on every ticket that is not settled has this error, and nothing more is written."""
        self._fault = self._fault or fault
        self._queue.clear()
        self._when_failed()
