"""The write queue of a log and its waiters: the part of a writer that is the same for every database.

Law: tickets are settled in order; a settled ticket is in the log or refused. After a failed write nothing more is written, so no
gap can arise.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple

from penstock.adapters.files.folders import SAFE
from penstock.kernel.errors import Bug, Refused, Unavailable
from penstock.ports.kept_state import Change, Kept
from penstock.ports.log import Entry, NotOwner, Status
from penstock.ports.results import decode, encode

# ---- Waiting on an event loop for a ticket that a thread settles.
# Law: a waiter joins before it looks whether its ticket is settled, and the thread looks at the waiters after it has
# settled: one of the two sees the other, so no waiter misses an event.


class Waiter(NamedTuple):
    ticket: int
    future: asyncio.Future[None]


class Waiters:
    def __init__(self) -> None:
        self._waiting: list[Waiter] = []
        self._lock = threading.Lock()

    def join(self, ticket: int) -> asyncio.Future[None]:
        """Must be called on the loop that will wait."""
        waiter = Waiter(ticket, asyncio.get_running_loop().create_future())
        with self._lock:
            self._waiting.append(waiter)
        return waiter.future

    def wake(self, settled: int | None) -> None:
        """Those whose ticket is settled, or all of them, with one call into each loop. From any thread."""
        if not self._waiting:
            return
        ready: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        still: list[Waiter] = []
        with self._lock:
            for waiter in self._waiting:
                if settled is None or waiter.ticket <= settled:
                    ready.setdefault(waiter.future.get_loop(), []).append(waiter.future)
                else:
                    still.append(waiter)
            self._waiting = still
        for loop, futures in ready.items():
            # A loop that was closed has no waiters left to notify.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, futures)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


# With so many entries without a waiter, the thread is woken at once.
GATHER_ENTRIES = 256

Broken = dict[tuple[str, int], Refused]
"""Executions, each under one epoch, that are refused every append since one was refused."""


class Append(NamedTuple):
    ticket: int
    execution_id: str
    epoch: int
    entries: Sequence[Entry]
    status: Status | None
    changes: Sequence[Change] = ()
    is_last: bool = False


class LogQueue(ABC):
    gather_s: ClassVar[float]
    """Entries without a waiter are gathered this long before the thread is woken for them."""

    def __init__(self) -> None:
        self._queue: deque[Append] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._is_woken = False
        self._alarm: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        # One is counted by the appender, the other by the writer: each counter has one writer at a time, so neither needs a lock.
        self._given = self._settled = 0
        self._handed = self._written = 0
        self._refused: dict[int, Refused] = {}
        self._broken: Broken = {}
        self._fault: Unavailable | None = None
        self._fault_is_told = False
        self._waiters = Waiters()

    # -- what a database does -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _place(self) -> str:
        """The log as messages name it."""

    @abstractmethod
    def _check_open(self) -> None: ...

    @abstractmethod
    def _commit_in_thread(self) -> None:
        """One transaction with what waits, however long it takes."""

    def _commit_here(self) -> bool:
        """Commits on the calling thread, if that will not block it. Returns whether it did."""
        return False

    async def _let_others_append(self, ticket: int) -> None:
        """One commit then serves all that append in this turn of the loop."""
        await asyncio.sleep(0)

    # -- handing over -------------------------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        return self._handed - self._written

    @property
    def has_failed(self) -> bool:
        return self._fault is not None

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        self._check_open()
        self._given = ticket = self._given + 1
        self._handed += len(entries)
        if self._fault is None:
            self._queue.append(Append(ticket, execution_id, epoch, entries, status, changes, is_last))
            if self._alarm is None or self._alarm.is_closed():
                self._set_alarm()
            elif self._handed - self._written > GATHER_ENTRIES and not self._is_woken:
                self._ring()
        return ticket

    async def durable(self, ticket: int) -> None:
        if ticket > self._settled:
            await self._settle(ticket)
        if self._refused and (refused := self._refused.get(ticket)):
            raise type(refused)(refused.message, refused.hint)

    async def flush(self) -> None:
        """Writes what waits. Raises the error of a failed write, unless it was raised before."""
        if self._given > self._settled and not self._fault_is_told:
            await self._settle(self._given)

    def begin_epoch(self, execution_id: str, epoch: int) -> None:
        """Clears the refusals of earlier owners of this execution."""
        self._broken.pop((execution_id, epoch), None)

    def check(self) -> None:
        """Raises the error after which nothing is written any more."""
        if self._fault:
            raise Unavailable(self._fault.message, self._fault.hint)

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def _settle(self, ticket: int) -> None:
        if ticket > self._given:
            raise Bug(f"ticket {ticket} was never given: the last one is {self._given}")
        await self._let_others_append(ticket)
        while ticket > self._settled:
            if self._fault:
                self._fault_is_told = True
                self.check()
            if not self._commit_here():
                await self._wait(ticket)

    async def _wait(self, ticket: int) -> None:
        """Until the writer's thread has settled `ticket`, or can settle nothing more."""
        settled = self._waiters.join(ticket)
        if ticket > self._settled and not self._fault:
            if not self._is_woken:
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
        loop.call_later(self.gather_s, self._sound_alarm)

    def _sound_alarm(self) -> None:
        self._alarm = None
        if self._queue and not self._is_woken:
            self._ring()

    def _ring(self) -> None:
        self._is_woken = True
        self._wake.put(None)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock-log", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closed:
                self._wake.get()
                # Before the queue is looked at: what is appended from here on rings again.
                self._is_woken = False
                self._commit_in_thread()
                if self._queue:
                    self._ring()
                self._wake_waiters()
        finally:
            if not self._closed:
                self._fail(Unavailable(f"the writer of {self._place} has stopped", SAFE))
                self._wake_waiters()

    def _end_thread(self) -> None:
        self._closed = True
        if self._thread:
            self._wake.put(None)
            self._thread.join()

    def _fail(self, fault: Unavailable) -> None:
        """From here on every ticket that is not settled has this error, and nothing more is written."""
        self._fault = self._fault or fault
        self._queue.clear()


# ---- May these entries be appended? The one rule of the log, the same for every adapter that decides it in Python.


@dataclass(slots=True)
class Standing:
    """Where an execution stands: the epoch of its owner, if it has one, and the number of its last entry."""

    epoch: int
    owner: str | None
    last_seq: int


def refusal(execution_id: str, standing: Standing | None, epoch: int, entries: Sequence[Entry]) -> Refused | None:
    """Why not, or None when they may."""
    if standing is None:
        return unknown(execution_id)
    if epoch != standing.epoch:
        who = "somebody who has let go of it since" if standing.owner is None else f"`{standing.owner}`"
        return NotOwner(
            f"`{execution_id}` has been taken over by {who} (epoch {standing.epoch}, this append has {epoch})",
            "another process resumed the run: leave it to that one",
        )
    if standing.owner is None:
        return NotOwner(f"`{execution_id}` has been released: its owner appends nothing more", "claim it again first")
    expected = standing.last_seq + 1
    for entry in entries:
        if entry[0] != expected:
            return Refused(
                f"`{execution_id}` expects entry {expected} next, and was given {entry[0]}",
                "the log has gone on without this owner: read it again before going on",
            )
        expected += 1
    return None


def unknown(execution_id: str) -> Refused:
    return Refused(f"there is no execution `{execution_id}`", "`penstock runs` lists them")


# ---- What documents keep between runs, between values and rows: the columns are the same in every database.


def kept_values(kept: Kept) -> dict[str, object]:
    return {
        "document": kept.document,
        "kind": kept.kind,
        "key": kept.key,
        "value": encode(kept.value).decode(),
        "run": kept.run,
        "changed_at": float(kept.changed_at),
        "lost_run": kept.lost_run,
        "lost_value": encode(kept.lost_value).decode(),
    }


def kept_of(row: Sequence[Any]) -> Kept:
    document, kind, key, value, run, changed_at, lost_run, lost_value = row
    return Kept(
        document,
        kind,
        key,
        decode(value.encode()),
        run=run,
        changed_at=changed_at,
        lost_run=lost_run,
        lost_value=decode(lost_value.encode()),
    )
