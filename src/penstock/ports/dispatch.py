"""Dispatch: how the right to run a scope gets from its server to a worker, and how the worker's messages get back.

Law, the same for every adapter:

- *One holder.* An offer is granted to one worker at a time. Each grant has a number (`attempt`); what a holder says after
  its lease ran out, was given back or was revoked is refused and leaves nothing behind.
- *No message is lost.* `say` returns once the messages are stored. The owner of the execution is shown each message until it
  has called `acknowledge`; so a message may be shown twice but is never lost. The messages of one lease come in the order in
  which they were said.
- *No lease is held for ever.* One that is not renewed in time comes back as a message, once for each attempt, however many
  servers look for such leases. A lease only ends when `reap` finds it expired: until then a late holder is still the one
  holder, and may renew it.
- *One clock*, that of the store. Times of two machines are never compared.
- *The log is the truth.* Everything stored here may be lost: `missing` says which of the leases that the log calls for are
  not known here, and they are offered again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from penstock.ports.leases import DEFAULT_POOL

TOLD_TO_DRAIN = ""
"""Stands among the keys that a heartbeat returns when a server asked the worker to drain; no lease has this key, so that a worker
of an earlier release takes no notice."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Work that waits for a worker. `key` is derived from the place of the scope, so that offering it again changes nothing."""

    key: str
    execution_id: str
    payload: bytes
    pool: str = DEFAULT_POOL
    needs: frozenset[str] = frozenset()
    """What the worker must be able to do: every one of these is among its capabilities."""
    limits: tuple[tuple[str, int], ...] = ()
    """(name, n): over all executions, at most n leases with this name are held at a time."""
    lease_s: float = 10.0
    stall_s: float | None = None
    """A live holder whose progress does not change for this long loses the lease."""
    ttl_s: float | None = None
    """How long it may wait for a worker; then it comes back as STALE."""
    is_range: bool = False
    """A range of a large loop or iterator, which gives way to other work."""


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that this worker has been granted."""

    key: str
    execution_id: str
    attempt: int
    payload: bytes
    lease_s: float
    is_range: bool = False


class MessageKind(Enum):
    REPORTED = "said"
    """The holder reports something and goes on."""
    ASKED = "asked"
    """The holder asks for something; the answer is a command (`Dispatch.send`)."""
    DONE = "done"
    """The last report of the holder; the lease is over."""
    LOST = "lost"
    """The holder did not renew the lease, or made no progress, for too long. `body`: the cursor of its last heartbeat."""
    RETURNED = "returned"
    """The holder gives the lease back unfinished, through no fault of its own. `body` as it gave it."""
    STALE = "stale"
    """Nobody took the offer in time; it is withdrawn."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to the owner of an execution."""

    number: int
    execution_id: str
    key: str
    attempt: int
    worker: str
    kind: MessageKind
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Pulse:
    """A heartbeat for one lease. `progress` is any number that changes while work is done; `cursor` replaces the last one, and so
    does `rows`, which is for those who watch (`penstock.ports.meters.RowsSoFar`) and decides nothing."""

    attempt: int
    progress: int = 0
    cursor: bytes | None = None
    rows: bytes | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A server's message to the holder of a lease: an answer, or an order to stop."""

    number: int
    key: str
    attempt: int
    body: bytes


@dataclass(frozen=True, slots=True)
class WorkerCard:
    """A worker. `id` is `NAME#…` and belongs to this incarnation: a process that is started again is another worker."""

    id: str
    name: str
    pool: str = DEFAULT_POOL
    slots: int = 4
    can: frozenset[str] = frozenset()
    version: str = ""


def name_of(worker: str) -> str:
    """The name of a worker, from its id."""
    return worker.partition("#")[0]


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker as others see it. `age_s`: time since its last heartbeat."""

    card: WorkerCard
    held: int
    age_s: float
    is_alive: bool
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease as others see it; `worker` is None while it waits. `age_s`: time since it was offered or granted. `rows`: as the
    last heartbeat of this holder that carried them has them; empty before."""

    key: str
    execution_id: str
    pool: str
    attempt: int
    worker: str | None
    age_s: float
    left_s: float | None = None
    needs: frozenset[str] = frozenset()
    limits: tuple[tuple[str, int], ...] = ()
    rows: bytes = b""


class Dispatch(Protocol):
    """The server's side."""

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Offer these to workers. An offer that waits or is held stays as it is, and so does one whose end (DONE) has not
        been acknowledged yet; one that came back or was withdrawn waits again, on the terms given now and with the next
        attempt. Attempts count from 1."""
        ...

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        """Withdraw offers that nobody holds. Returns those that were withdrawn; no worker will get them any more."""
        ...

    async def send(self, key: str, body: bytes) -> bool:
        """Send a command to the holder of a lease; the next holder will not see it. False if nobody holds it."""
        ...

    async def messages(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Message]:
        """Messages for executions in these partitions, oldest first; waits up to `wait_s` for the first one."""
        ...

    async def acknowledge(self, numbers: Collection[int]) -> None:
        """These messages have taken effect: they are not shown again."""
        ...

    async def reap(self) -> int:
        """Turn expired leases, and offers that waited too long, into messages. Returns how many."""
        ...

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        """Those of `keys` that neither wait nor are held, and have no message that is still to be acknowledged."""
        ...

    async def forget(self, execution_id: str) -> None:
        """The execution is over: delete everything stored for it; its holders are refused from now on."""
        ...

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        """The ids of the executions in these partitions for which a lease is stored, in whatever state; those after `after`."""
        ...

    async def workers(self) -> list[WorkerSeen]: ...

    async def drain(self, worker: str) -> bool:
        """Ask a worker to drain: it gets nothing more, and its next heartbeat tells it (`TOLD_TO_DRAIN`). False if it is not
        enlisted."""
        ...

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]: ...

    async def waiting(self) -> Mapping[str, int]:
        """How many offers wait in each pool."""
        ...

    async def now(self) -> float:
        """The time by the store's clock."""
        ...

    async def close(self) -> None: ...


class Intake(Protocol):
    """The worker's side. Every call carries the worker's incarnation, given by `enlist`."""

    async def enlist(self, card: WorkerCard) -> None: ...

    async def take(self, worker: str, room: int, ranges: int, wait_s: float) -> list[Held]:
        """Up to `room` leases, at most `ranges` of them ranges; waits up to `wait_s` for the first one. Executions take
        turns: the one that holds the fewest leases comes first; within one, steps come before ranges and then the oldest.
        Nothing for a worker that drains or is not enlisted."""
        ...

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        """Renew the worker and its leases. Returns the keys of leases that are no longer its own, and `TOLD_TO_DRAIN` among
        them if it was asked to drain and does not say that it does. A worker that drains does so for good.
        Refused if it is not enlisted (or no longer: it has retired, or the store was lost)."""
        ...

    async def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes]) -> bool:
        """Store what the holder says: a REPORTED, ASKED, DONE or RETURNED message for each body, all or none; the last two
        kinds end the lease, and leave an empty message if there is no body. False if the lease is no longer the worker's;
        nothing was stored.

        (An adapter that lost the answer says it again. An end of which nothing is left by then counts as stored: it has been
        acknowledged, or its execution forgotten.)"""
        ...

    async def commands(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Command]:
        """Commands for this worker; waits up to `wait_s` for the first one. `seen`: numbers not to be shown again."""
        ...

    async def is_pressed(self, worker: str) -> bool:
        """Whether work that this worker could do has been waiting (at least for a moment) for a slot, in an execution with
        fewer leases than one whose range it holds. A waiting range counts only if giving way would make the two executions
        more even."""
        ...

    async def retire(self, worker: str) -> None:
        """The worker leaves. What it still holds comes back at once, as LOST."""
        ...

    async def now(self) -> float: ...

    async def close(self) -> None: ...
