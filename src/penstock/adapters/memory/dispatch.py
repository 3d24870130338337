"""Dispatch within one process. Several adapters on one hall stand for several servers and workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from penstock.adapters.dispatch_checks import check_card, check_id, check_kind, check_offers
from penstock.adapters.memory.dispatch_store import MemoryHall
from penstock.adapters.relayed_dispatch import next_token
from penstock.kernel.errors import Refused
from penstock.ports.dispatch import (
    Held,
    LeaseSeen,
    Note,
    NoteKind,
    Offer,
    Pulse,
    Told,
    WorkerCard,
    WorkerSeen,
)

T = TypeVar("T")

__all__ = ["MemoryDispatch", "MemoryHall", "MemoryIntake"]


class _Door:
    """One process's way into the hall."""

    def __init__(self, hall: MemoryHall) -> None:
        self._store = hall
        self._is_closed = False

    @property
    def _hall(self) -> MemoryHall:
        if self._is_closed:
            raise Refused("this end of the dispatch is closed", hint="open another one")
        return self._store

    async def _first(self, look: Callable[[], list[T]], wait_s: float) -> list[T]:
        """What `look` finds, as soon as it finds something; nothing after so long, or when this door is closed."""
        hall = self._hall
        deadline = hall.clock.now() + wait_s
        while True:
            found = [] if self._is_closed else look()
            left = deadline - hall.clock.now()
            if found or left <= 0 or self._is_closed:
                return found
            await hall.changed(left)

    async def now(self) -> float:
        return self._hall.clock.now()

    async def close(self) -> None:
        self._is_closed = True
        self._store.ring()


class MemoryDispatch(_Door):
    async def offer(self, offers: Sequence[Offer]) -> None:
        self._hall.offer(check_offers(offers))

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        return self._hall.withdraw(keys)

    async def tell(self, key: str, body: bytes) -> bool:
        return self._hall.tell(key, body) is not None

    async def tell_holder(self, key: str, body: bytes) -> str | None:
        return self._hall.tell(key, body)

    async def notes(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Note]:
        wanted = frozenset(partitions)
        return await self._first(lambda: self._hall.notes_in(wanted, limit), wait_s)

    async def heard(self, numbers: Collection[int]) -> None:
        self._hall.heard(numbers)

    async def reap(self) -> int:
        return self._hall.reap()

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        return self._hall.missing(keys)

    async def forget(self, execution_id: str) -> None:
        self._hall.forget(execution_id)

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        return self._hall.executions(partitions, after)[: max(limit, 0)]

    async def workers(self) -> list[WorkerSeen]:
        return self._hall.workers_seen()

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]:
        return self._hall.leases_seen(execution_id, limit)

    async def waiting(self) -> Mapping[str, int]:
        return self._hall.waiting()


class MemoryIntake(_Door):
    async def enlist(self, card: WorkerCard) -> None:
        check_card(card)
        self._hall.enlist(card)

    async def take(self, worker: str, room: int, ranges: int, wait_s: float) -> list[Held]:
        check_id("a worker's `id`", worker)
        if room <= 0:
            return []
        return await self._first(lambda: self._hall.take(worker, room, ranges, next_token()), wait_s)

    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        taken = self._hall.taken(worker, token) if is_repeated else []
        return taken or self._hall.take(worker, room, ranges, token)

    async def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        self._hall.give_up(worker, token, keys)

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        return self._hall.beat(worker, pulses, draining=draining)

    async def say(self, worker: str, key: str, attempt: int, kind: NoteKind, bodies: Sequence[bytes]) -> bool:
        check_kind(kind)
        return self._hall.say(worker, key, attempt, kind, bodies, next_token())

    async def say_as(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: NoteKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool,
    ) -> bool:
        check_kind(kind)
        # An end that was kept by an earlier try, and has been heard meanwhile, has left nothing here.
        is_over = is_repeated and kind is NoteKind.DONE and key not in self._hall.leases
        return is_over or self._hall.say(worker, key, attempt, kind, bodies, token)

    async def told(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Told]:
        self._hall.seen(worker, seen)
        return await self._first(lambda: self._hall.told_to(worker), wait_s)

    async def is_pressed(self, worker: str) -> bool:
        return self._hall.is_pressed(worker)

    async def retire(self, worker: str) -> None:
        self._hall.retire(worker)
