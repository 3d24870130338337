"""Logs that do what disks and operating systems do on a bad day. Each stands before a real one and passes all else on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.adapters.files.folders import full_disk
from penstock.ports.log import Entry, EventLog


class PassingLog:
    """All of a log, as it is."""

    def __init__(self, log: Any) -> None:
        self._log: EventLog = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        return self._log.append(execution_id, epoch, entries, *more)

    async def durable(self, ticket: int) -> None:
        await self._log.durable(ticket)


class EndingLog(PassingLog):
    """Calls `end` as soon as entry number `at` has been acknowledged, before anything can follow from it."""

    def __init__(self, log: Any, at: int, end: Callable[[], None]) -> None:
        super().__init__(log)
        self._at = at
        self._end = end
        self._reaches: dict[int, int] = {}

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        ticket = super().append(execution_id, epoch, entries, *more)
        if entries:
            self._reaches[ticket] = entries[-1].seq
        return ticket

    async def durable(self, ticket: int) -> None:
        await super().durable(ticket)
        if self._reaches.get(ticket, 0) >= self._at:
            self._end()


class FullLog(PassingLog):
    """A disk with room for so many entries. What does not fit is not there, and nothing after it either."""

    def __init__(self, log: Any, room: int) -> None:
        super().__init__(log)
        self._room = room
        self._is_full = False

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        self._is_full = self._is_full or bool(entries and entries[-1].seq > self._room)
        return 0 if self._is_full else super().append(execution_id, epoch, entries, *more)

    async def durable(self, ticket: int) -> None:
        if self._is_full:
            raise full_disk("penstock.db")
        await super().durable(ticket)


class BoundaryLog(PassingLog):
    """Notes after which entries the log may end when the power fails.

    Between two appends, certainly. Inside one, wherever the next entry is a worker's: had the writer been woken a moment
    earlier, it would have begun a new append. What the server decides at once is never torn apart.
    """

    def __init__(self, log: Any) -> None:
        super().__init__(log)
        self.boundaries: set[int] = set()

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        for entry in entries:
            if entry.source == "worker":
                self.boundaries.add(entry.seq - 1)
        if entries:
            self.boundaries.add(entries[-1].seq)
        return super().append(execution_id, epoch, entries, *more)
