"""What the hall keeps of a lease and of a worker, and what can be said of one alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from penstock.ports.dispatch import Held, Offer, WorkerCard


class Standing(Enum):
    WAITING = "waiting"
    HELD = "held"
    DONE = "done"
    """Its holder has said its last; the note of it is not heard yet."""
    BACK = "back"
    """Lost, returned, stale or withdrawn. What is left of it is the number of its last attempt."""


@dataclass(slots=True)
class Lease:
    offer: Offer
    number: int
    """Its place in the queue."""
    since: float
    """When it was offered, or granted."""
    attempt: int = 1
    standing: Standing = Standing.WAITING
    holder: str | None = None
    until: float = 0.0
    progress: int = 0
    progress_at: float = 0.0
    cursor: bytes = b""
    mark: UUID | None = None
    """The last call of its holder; the calls of one holder rise."""

    def grant(self, worker: str, now: float, mark: UUID) -> None:
        self.standing, self.holder, self.since, self.mark = Standing.HELD, worker, now, mark
        self.progress, self.progress_at, self.cursor = 0, now, b""
        self.renew(now)

    def held(self) -> Held:
        offer = self.offer
        return Held(offer.key, offer.execution_id, self.attempt, offer.payload, offer.lease_s, offer.is_range)

    def renew(self, now: float) -> None:
        offer = self.offer
        self.until = now + offer.lease_s
        if offer.stall_s is not None:
            self.until = min(self.until, self.progress_at + offer.stall_s)

    def come_back(self) -> None:
        self.standing, self.holder, self.cursor = Standing.BACK, None, b""


@dataclass(slots=True)
class Worker:
    card: WorkerCard
    seen: float
    is_draining: bool = False


def rank(lease: Lease) -> tuple[bool, int]:
    """Within one execution: steps before pieces of its loops, then as they were offered."""
    return lease.offer.is_range, lease.number


def suits(lease: Lease, card: WorkerCard) -> bool:
    return lease.offer.pool == card.pool and lease.offer.needs <= card.can


def is_free(lease: Lease, named: Mapping[str, int]) -> bool:
    return all(named.get(name, 0) < most for name, most in lease.offer.limits)


def limit_names(lease: Lease) -> set[str]:
    return {name for name, _ in lease.offer.limits}


def is_stale(lease: Lease, now: float) -> bool:
    return lease.offer.ttl_s is not None and lease.since + lease.offer.ttl_s <= now
