"""Dispatch: how the right to run a scope gets from its server to a worker, and how what the worker says gets back.

Law, the same for every adapter:

- *One holder.* An offer is granted to one worker at a time. Each grant has a number (`attempt`); what a holder says after its
  lease ran out, was given back or was taken away is refused and leaves nothing behind.
- *Nothing said is lost.* `say` returns once what was said is kept. The owner of the execution is shown it as a message until it
  has called `acknowledge`; so a message may be shown twice and is never lost. The messages of one lease come in the order in
  which they were said.
- *No lease is held for ever.* One that is not renewed in time comes back as a message, once for each attempt, however many
  servers look for such leases. It is the looking that ends it: until then a late holder is still the one holder, and may renew
  it.
- *One clock*, that of the store. Nobody compares times of two machines.
- *Truth lies in the log.* What is kept here may be lost wholly: `missing` says which of the leases that the log calls for are not
  known here, and they are offered anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from penstock.ports.leases import DEFAULT_POOL


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
    """(name, n): of all leases with this name, in whatever execution, no more than n are held at a time."""
    lease_s: float = 10.0
    stall_s: float | None = None
    """A holder that is alive and whose progress does not change for so long loses the lease all the same."""
    ttl_s: float | None = None
    """So long it may wait for a worker; then it comes back as STALE."""
    is_range: bool = False
    """A piece of a large loop, which gives way to others."""


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
    """The holder says something and goes on."""
    ASKED = "asked"
    """The holder asks for something and will be told (`Dispatch.tell`)."""
    DONE = "done"
    """The last that the holder says; the lease is over."""
    LOST = "lost"
    """The holder has not been heard of, or made no progress, for too long. `body`: what its last sign of life carried."""
    RETURNED = "returned"
    """The holder gives the lease back unfinished, through no fault of its own. `body` as it gave it."""
    STALE = "stale"
    """Nobody took the offer in time; it is withdrawn."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something that the owner of an execution has to know."""

    number: int
    execution_id: str
    key: str
    attempt: int
    worker: str
    kind: MessageKind
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Pulse:
    """A sign of life for one lease. `progress` is any number that changes while work is done; `cursor` replaces the last one."""

    attempt: int
    progress: int = 0
    cursor: bytes | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """What a server tells the holder of a lease: an answer, or to stop."""

    number: int
    key: str
    attempt: int
    body: bytes


@dataclass(frozen=True, slots=True)
class WorkerCard:
    """Who works. `id` is `NAME#…` and of this incarnation only: a process that is started again is another worker."""

    id: str
    name: str
    pool: str = DEFAULT_POOL
    slots: int = 4
    can: frozenset[str] = frozenset()
    version: str = ""


def name_of(worker: str) -> str:
    """The name that a worker goes by, from its id."""
    return worker.partition("#")[0]


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker as others see it. `age_s`: since its last sign of life."""

    card: WorkerCard
    held: int
    age_s: float
    is_alive: bool
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease as others see it; `worker` is None while it waits. `age_s`: since it was offered or granted."""

    key: str
    execution_id: str
    pool: str
    attempt: int
    worker: str | None
    age_s: float
    left_s: float | None = None
    needs: frozenset[str] = frozenset()
    limits: tuple[tuple[str, int], ...] = ()


class Dispatch(Protocol):
    """The server's side."""

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Let workers have these. One that waits or is held already stays as it is, and so does one whose end (DONE) is not heard
        yet; one that came back or was withdrawn waits again, on the terms given now and with the next attempt. Attempts count
        from 1."""
        ...

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        """Take back offers that nobody holds: those that were, and that nobody will get any more."""
        ...

    async def send(self, key: str, body: bytes) -> bool:
        """Tell the holder of a lease something; it is nothing to the next holder. False: nobody holds it."""
        ...

    async def messages(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Message]:
        """Notes for executions in these partitions, oldest first; waits so long for the first one."""
        ...

    async def acknowledge(self, numbers: Collection[int]) -> None:
        """What these messages said has taken effect: they are not shown again."""
        ...

    async def reap(self) -> int:
        """Turn leases that have run out, and offers that waited too long, into messages. Gives how many."""
        ...

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        """Those of `keys` that neither wait nor are held, and of which no message is still to be heard."""
        ...

    async def forget(self, execution_id: str) -> None:
        """The execution is over: whatever is kept of it goes, and its holders are refused from now on."""
        ...

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        """The executions in these partitions of which a lease is kept, whatever has become of it, by their ids; those after
        `after`."""
        ...

    async def workers(self) -> list[WorkerSeen]: ...

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
        """Up to `room` leases, of these at most `ranges` ranges; waits so long for the first one. Executions take turns: the one
        that holds the fewest leases comes first; within one, steps come before ranges and then the oldest. Nothing for a worker
        that drains or is not enlisted."""
        ...

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        """Renew the worker and its leases. Gives the keys of those that are not its own any more. A worker that drains does so
        for good. Refused if it is not enlisted (or no longer: it has retired, or the store was lost)."""
        ...

    async def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes]) -> bool:
        """Keep what the holder says: a REPORTED, ASKED, DONE or RETURNED message for each body, all or none; the last two kinds
        end the lease, and leave an empty message if there is no body. False: the lease is not the worker's any more; nothing was
        kept.
        (An adapter that lost the answer says it again. An end of which nothing is left by then counts as kept: it has been heard,
        or its execution forgotten.)"""
        ...

    async def commands(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Command]:
        """What servers have to tell this worker; waits so long for the first one. `seen`: numbers not to be shown again."""
        ...

    async def is_pressed(self, worker: str) -> bool:
        """Does work that this worker could do wait (for a moment at least) for a place, in an execution with fewer leases than
        one whose range it holds? A range presses only where the two executions would be more even then."""
        ...

    async def retire(self, worker: str) -> None:
        """The worker goes. What it still holds comes back at once, as LOST."""
        ...

    async def now(self) -> float: ...

    async def close(self) -> None: ...
