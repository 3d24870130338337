"""A log that tells when something new is in it, and measures itself while it does.

Law: listeners learn of an entry only once it is durable. Only what goes through this process is reported; entries of
other processes have to be polled for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from penstock.ports.kept_state import Change
from penstock.ports.log import Entry, EventLog, Header, Status
from penstock.ports.meters import Histogram

INPUTS = b'"inputs":'


class WatchedLog:
    def __init__(self, log: EventLog, *, is_shared: bool = False, adopts: bool = True) -> None:
        """`is_shared`: processes that are no servers work on runs of their own in it, which are not to be taken up here.
        `adopts`: runs that another process left unfinished are taken up; otherwise somebody has to resume them."""
        self.inner = log
        self._is_shared = is_shared
        self._adopts = adopts
        self._claimed: set[str] = set()
        self._created: set[str] = set()
        self.listeners: list[Callable[[str], None]] = []
        """Called with the id of an execution of which more is durable now; on the event loop."""
        self.appended = 0
        self.latency = Histogram()
        self._waiting: dict[str, deque[tuple[int, float]]] = {}
        self._owner_of: dict[int, str] = {}

    # ---- what is watched

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None = None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        ticket = self.inner.append(execution_id, epoch, entries, status, changes, is_last)
        self.appended += len(entries)
        self._owner_of[ticket] = execution_id
        self._waiting.setdefault(execution_id, deque()).append((ticket, time.perf_counter()))
        return ticket

    async def durable(self, ticket: int) -> None:
        try:
            await self.inner.durable(ticket)
        finally:
            execution_id = self._settled(ticket)
        if execution_id is not None:
            self._tell(execution_id)

    def _settled(self, ticket: int) -> str | None:
        """Whatever came of it, this ticket and those before it wait no more. None when that is known already."""
        execution_id = self._owner_of.get(ticket)
        if execution_id is None:
            return None
        waiting, now = self._waiting[execution_id], time.perf_counter()
        while waiting and waiting[0][0] <= ticket:
            number, since = waiting.popleft()
            del self._owner_of[number]
            self.latency.add(now - since)
        if not waiting:
            del self._waiting[execution_id]
        return execution_id

    async def create(self, header: Header, document: bytes, key: str | None = None, owner: str | None = None) -> str:
        execution_id = await self.inner.create(header, document, key, owner)
        self._created.add(execution_id)
        self._tell(execution_id)
        return execution_id

    async def release(self, execution_id: str) -> None:
        await self.inner.release(execution_id)
        self._claimed.discard(execution_id)
        waiting = self._waiting.get(execution_id)
        if waiting:
            self._settled(waiting[-1][0])
        self._tell(execution_id)

    def _tell(self, execution_id: str) -> None:
        for listener in self.listeners:
            listener(execution_id)

    async def claim(self, execution_id: str, owner: str) -> int:
        epoch = await self.inner.claim(execution_id, owner)
        self._claimed.add(execution_id)
        return epoch

    def unfinished(self, partitions: Collection[int] | None = None) -> list[str]:
        found = self.inner.unfinished(partitions)
        return [one for one in found if self.is_for_us(one)] if self._is_shared else found

    def is_for_us(self, execution_id: str) -> bool:
        """Whether this server goes on with an unfinished execution."""
        if not self._is_shared or execution_id in self._claimed:
            return True
        if not self._adopts:
            return execution_id in self._created
        if self.inner.has_owner(execution_id):
            return False
        header = self.inner.header(execution_id)
        if header is None or header.last_seq:
            return header is not None
        # Whoever registered it was gone before it began. Only a run that was submitted has its inputs with it.
        return INPUTS in self.inner.document(execution_id)

    def __getattr__(self, name: str) -> Any:
        """All else is passed on."""
        return getattr(self.inner, name)
