"""Dispatch within one process. Several adapters on one store stand for several servers and workers."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import TypeVar
from uuid import UUID, uuid4

from penstock.adapters import dispatch
from penstock.kernel.errors import Refused
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.dispatch import (
    TOLD_TO_DRAIN,
    Command,
    Held,
    LeaseSeen,
    Message,
    MessageKind,
    Offer,
    Pulse,
    WorkerCard,
    WorkerSeen,
)
from penstock.ports.log import PARTITIONS, partition_of
from penstock.ports.partitions import Server, fair_share

T = TypeVar("T")


# ---- What the store keeps of a lease and of a worker, and what can be said of one alone.


class Standing(Enum):
    WAITING = "waiting"
    HELD = "held"
    DONE = "done"
    """Its holder has sent its last report, which has not been acknowledged yet."""
    BACK = "back"
    """Lost, returned, stale or withdrawn. All that is left is the number of its last attempt."""


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
    rows: bytes = b""
    mark: UUID | None = None
    """The token of its holder's last call; the tokens of one holder increase."""

    def grant(self, worker: str, now: float, mark: UUID) -> None:
        self.standing, self.holder, self.since, self.mark = Standing.HELD, worker, now, mark
        self.progress, self.progress_at, self.cursor, self.rows = 0, now, b"", b""
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
    """Order within one execution: steps before ranges, then as they were offered."""
    return lease.offer.is_range, lease.number


def suits(lease: Lease, card: WorkerCard) -> bool:
    return lease.offer.pool == card.pool and lease.offer.needs <= card.can


def is_free(lease: Lease, named: Mapping[str, int]) -> bool:
    return all(named.get(name, 0) < most for name, most in lease.offer.limits)


def limit_names(lease: Lease) -> set[str]:
    return {name for name, _ in lease.offer.limits}


def is_stale(lease: Lease, now: float) -> bool:
    return lease.offer.ttl_s is not None and lease.since + lease.offer.ttl_s <= now


# ---- The store that servers and workers of one process share.
# Law: every method here is atomic, and there is one clock, the store's.


@dataclass(slots=True)
class MemoryDispatchStore:
    clock: Clock = field(default_factory=SystemClock)
    alive_s: float = dispatch.ALIVE_S
    leases: dict[str, Lease] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    ends: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Message -> (key, attempt): once it is acknowledged, the lease is forgotten."""
    commands: dict[int, tuple[str, Lease, Command]] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _waiters: set[asyncio.Future[None]] = field(default_factory=set)

    # ---- waiting for a change

    def ring(self) -> None:
        """Something changed: waiters look again."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self, wait_s: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        sleep = asyncio.ensure_future(self.clock.sleep(wait_s))
        try:
            await asyncio.wait({waiter, sleep}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiters.discard(waiter)
            sleep.cancel()
            await asyncio.gather(sleep, return_exceptions=True)

    # ---- the server's side

    def offer(self, offers: Iterable[Offer]) -> None:
        now = self.clock.now()
        for offer in offers:
            known = self.leases.get(offer.key)
            if known is None or known.standing is Standing.BACK:
                fresh = self.leases[offer.key] = Lease(offer, next(self._numbers), now)
                if known is not None:
                    fresh.attempt, fresh.mark = known.attempt + 1, known.mark
        self.ring()

    def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        taken = frozenset(key for key in keys if self._stands(key, Standing.WAITING))
        for key in taken:
            self.leases[key].come_back()
        return taken

    def send(self, key: str, body: bytes) -> str | None:
        """Store a command; returns the holder that will be shown it."""
        lease = self.leases.get(key)
        if lease is None or lease.standing is not Standing.HELD or lease.holder is None:
            return None
        number = next(self._numbers)
        self.commands[number] = (lease.holder, lease, Command(number, key, lease.attempt, body))
        self.ring()
        return lease.holder

    def messages_in(self, partitions: Collection[int], limit: int) -> list[Message]:
        found: list[Message] = []
        for message in self.messages.values():
            if len(found) >= limit:
                break
            if partition_of(message.execution_id) in partitions:
                found.append(message)
        return found

    def acknowledge(self, numbers: Collection[int]) -> None:
        for number in numbers:
            self.messages.pop(number, None)
            key, attempt = self.ends.pop(number, ("", 0))
            if self._stands(key, Standing.DONE) and self.leases[key].attempt == attempt:
                del self.leases[key]

    def reap(self) -> int:
        now = self.clock.now()
        lost = [one for one in self._standing(Standing.HELD) if one.until <= now]
        stale = [one for one in self._standing(Standing.WAITING) if is_stale(one, now)]
        for lease in lost:
            self._message(lease, MessageKind.LOST, lease.cursor)
            lease.come_back()
        for lease in stale:
            self._message(lease, MessageKind.STALE)
            lease.come_back()
        gone = [name for name, worker in self.workers.items() if now - worker.seen > dispatch.KEPT_S]
        for name in gone:
            del self.workers[name]
        self._clear_commands()
        if lost or stale:
            self.ring()
        return len(lost) + len(stale)

    def missing(self, keys: Collection[str]) -> frozenset[str]:
        unacknowledged = {message.key for message in self.messages.values()}
        return frozenset(
            key
            for key in keys
            if key not in unacknowledged
            and not self._stands(key, Standing.WAITING)
            and not self._stands(key, Standing.HELD)
        )

    def forget(self, execution_id: str) -> None:
        keys = {key for key, lease in self.leases.items() if lease.offer.execution_id == execution_id}
        self.leases = {key: lease for key, lease in self.leases.items() if key not in keys}
        self.messages = {
            number: message for number, message in self.messages.items() if message.execution_id != execution_id
        }
        self.ends = {number: end for number, end in self.ends.items() if number in self.messages}
        self._clear_commands()
        self.ring()

    def executions(self, partitions: Collection[int], after: str) -> list[str]:
        kept = {lease.offer.execution_id for lease in self.leases.values()}
        return sorted(one for one in kept if one > after and partition_of(one) in partitions)

    def workers_seen(self) -> list[WorkerSeen]:
        now = self.clock.now()
        held = Counter(lease.holder for lease in self._standing(Standing.HELD))
        return [
            WorkerSeen(one.card, held[one.card.id], now - one.seen, now - one.seen < self.alive_s, one.is_draining)
            for one in self.workers.values()
        ]

    def leases_seen(self, execution_id: str | None, limit: int) -> list[LeaseSeen]:
        now = self.clock.now()
        found = [
            lease
            for lease in self.leases.values()
            if lease.standing in (Standing.WAITING, Standing.HELD)
            and (execution_id is None or lease.offer.execution_id == execution_id)
        ]
        found.sort(key=lambda lease: lease.number)
        return [
            LeaseSeen(
                one.offer.key,
                one.offer.execution_id,
                one.offer.pool,
                one.attempt,
                worker=one.holder,
                age_s=now - one.since,
                left_s=one.until - now if one.standing is Standing.HELD else None,
                needs=one.offer.needs,
                limits=one.offer.limits,
                rows=one.rows if one.standing is Standing.HELD else b"",
            )
            for one in found[: max(limit, 0)]
        ]

    def waiting(self) -> Mapping[str, int]:
        return dict(Counter(lease.offer.pool for lease in self._standing(Standing.WAITING)))

    # ---- the worker's side

    def enlist(self, card: WorkerCard) -> None:
        self.workers[card.id] = Worker(card, self.clock.now())
        self.ring()

    def take(self, worker: str, room: int, ranges: int, token: UUID) -> list[Held]:
        known = self.workers.get(worker)
        if known is None or known.is_draining:
            return []
        now = self.clock.now()
        granted: list[Held] = []
        for lease in self._in_turn(known.card, room, ranges):
            lease.grant(worker, now, token)
            granted.append(lease.held())
        return granted

    def taken(self, worker: str, token: UUID) -> list[Held]:
        """What that call has been granted and still has."""
        mine = (one for one in self._standing(Standing.HELD) if one.holder == worker and one.mark == token)
        return [lease.held() for lease in sorted(mine, key=lambda one: one.number)]

    def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        for key in keys:
            lease = self.leases.get(key)
            if lease is not None and self._stands(key, Standing.HELD) and (lease.holder, lease.mark) == (worker, token):
                lease.standing, lease.holder, lease.since = Standing.WAITING, None, self.clock.now()
                lease.attempt += 1
        self.ring()

    def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool) -> frozenset[str]:
        known = self.workers.get(worker)
        if known is None:
            raise Refused(f"worker `{worker}` is not enlisted", hint="call `enlist` first; what it held is lost")
        now = self.clock.now()
        known.seen = now
        known.is_draining |= draining
        lost: set[str] = {TOLD_TO_DRAIN} if known.is_draining and not draining else set()
        for key, pulse in pulses.items():
            lease = self._held_by(worker, key, pulse.attempt)
            if lease is None:
                lost.add(key)
                continue
            if pulse.progress != lease.progress:
                lease.progress, lease.progress_at = pulse.progress, now
            if pulse.cursor is not None:
                lease.cursor = pulse.cursor
            if pulse.rows is not None:
                lease.rows = pulse.rows
            lease.renew(now)
        return frozenset(lost)

    def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes], token: UUID) -> bool:
        """A call that was stored before is not stored again, nor is one that a later call of its holder has overtaken."""
        if key in self.leases and self.leases[key].mark == token:
            return True
        lease = self._held_by(worker, key, attempt)
        if lease is None or (lease.mark is not None and token < lease.mark):
            return False
        lease.mark = token
        number = 0
        # The owner learns of the end even if the holder has nothing left to report.
        for body in bodies or ((b"",) if kind in dispatch.ENDS else ()):
            number = self._message(lease, kind, body)
        if kind is MessageKind.DONE:
            lease.standing, lease.holder = Standing.DONE, None
            self.ends[number] = (key, attempt)
        elif kind is MessageKind.RETURNED:
            lease.come_back()
        self.ring()
        return True

    def commands_to(self, worker: str) -> list[Command]:
        self._clear_commands()
        return [command for holder, _, command in self.commands.values() if holder == worker]

    def seen(self, worker: str, numbers: Collection[int]) -> None:
        for number in numbers:
            if number in self.commands and self.commands[number][0] == worker:
                del self.commands[number]

    def is_pressed(self, worker: str) -> bool:
        known = self.workers.get(worker)
        if known is None:
            return False
        held, named = self._held_by_execution(), self._held_by_name()
        most = max((held[one.offer.execution_id] for one in self._ranges_of(worker)), default=0)
        now = self.clock.now()
        return any(
            now - lease.since >= dispatch.PRESSED_AFTER_S
            and suits(lease, known.card)
            and is_free(lease, named)
            # Exchanging a range for a range pays only if it leaves the two more even than they were.
            and held[lease.offer.execution_id] + lease.offer.is_range < most
            for lease in self._standing(Standing.WAITING)
        )

    def retire(self, worker: str) -> None:
        self.workers.pop(worker, None)
        for lease in [one for one in self._standing(Standing.HELD) if one.holder == worker]:
            self._message(lease, MessageKind.LOST, lease.cursor)
            lease.come_back()
        self._clear_commands()
        self.ring()

    # ---- within

    def _in_turn(self, card: WorkerCard, room: int, ranges: int) -> Iterator[Lease]:
        """Up to `room` waiting leases that this worker may have now, the execution with the fewest first."""
        held, named = self._held_by_execution(), self._held_by_name()
        queues: dict[str, list[Lease]] = {}
        for lease in self._standing(Standing.WAITING):
            if suits(lease, card):
                queues.setdefault(lease.offer.execution_id, []).append(lease)
        heads = []
        for execution_id, queue in queues.items():
            queue.sort(key=rank, reverse=True)
            heads.append((held[execution_id], *rank(queue[-1]), execution_id))
        heapq.heapify(heads)
        while heads and room > 0:
            turn, is_range, _, execution_id = heapq.heappop(heads)
            lease = queues[execution_id].pop()
            if is_free(lease, named) and not (is_range and ranges <= 0):
                named.update(limit_names(lease))
                room, ranges, turn = room - 1, ranges - is_range, turn + 1
                yield lease
            if queues[execution_id]:
                heapq.heappush(heads, (turn, *rank(queues[execution_id][-1]), execution_id))

    def _standing(self, standing: Standing) -> Iterator[Lease]:
        return (lease for lease in self.leases.values() if lease.standing is standing)

    def _stands(self, key: str, standing: Standing) -> bool:
        lease = self.leases.get(key)
        return lease is not None and lease.standing is standing

    def _held_by(self, worker: str, key: str, attempt: int) -> Lease | None:
        lease = self.leases.get(key)
        is_his = (
            lease is not None
            and lease.standing is Standing.HELD
            and lease.holder == worker
            and lease.attempt == attempt
        )
        return lease if is_his else None

    def _held_by_execution(self) -> Counter[str]:
        return Counter(lease.offer.execution_id for lease in self._standing(Standing.HELD))

    def _held_by_name(self) -> Counter[str]:
        return Counter(name for lease in self._standing(Standing.HELD) for name in limit_names(lease))

    def _ranges_of(self, worker: str) -> Iterator[Lease]:
        return (one for one in self._standing(Standing.HELD) if one.holder == worker and one.offer.is_range)

    def _message(self, lease: Lease, kind: MessageKind, body: bytes = b"") -> int:
        number = next(self._numbers)
        offer = lease.offer
        self.messages[number] = Message(
            number, offer.execution_id, offer.key, lease.attempt, lease.holder or "", kind, body
        )
        return number

    def _clear_commands(self) -> None:
        """Delete commands to former holders: the next holder must not see them."""
        self.commands = {
            number: (holder, lease, command)
            for number, (holder, lease, command) in self.commands.items()
            if self._held_by(holder, command.key, command.attempt) is lease
        }


class _Client:
    """One process's access to the store."""

    def __init__(self, store: MemoryDispatchStore) -> None:
        self._store = store
        self._is_closed = False

    @property
    def _opened(self) -> MemoryDispatchStore:
        if self._is_closed:
            raise Refused("this end of the dispatch is closed", hint="open another one")
        return self._store

    async def _first(self, look: Callable[[], list[T]], wait_s: float) -> list[T]:
        """What `look` finds, as soon as it finds something; nothing after `wait_s`, or when this client is closed."""
        store = self._opened
        deadline = store.clock.now() + wait_s
        while True:
            found = [] if self._is_closed else look()
            left = deadline - store.clock.now()
            if found or left <= 0 or self._is_closed:
                return found
            await store.changed(left)

    async def now(self) -> float:
        return self._opened.clock.now()

    async def close(self) -> None:
        self._is_closed = True
        self._store.ring()


class MemoryDispatch(_Client):
    async def offer(self, offers: Sequence[Offer]) -> None:
        self._opened.offer(dispatch.check_offers(offers))

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        return self._opened.withdraw(keys)

    async def send(self, key: str, body: bytes) -> bool:
        return self._opened.send(key, body) is not None

    async def send_to_holder(self, key: str, body: bytes) -> str | None:
        return self._opened.send(key, body)

    async def messages(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Message]:
        wanted = frozenset(partitions)
        return await self._first(lambda: self._opened.messages_in(wanted, limit), wait_s)

    async def acknowledge(self, numbers: Collection[int]) -> None:
        self._opened.acknowledge(numbers)

    async def reap(self) -> int:
        return self._opened.reap()

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        return self._opened.missing(keys)

    async def forget(self, execution_id: str) -> None:
        self._opened.forget(execution_id)

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        return self._opened.executions(partitions, after)[: max(limit, 0)]

    async def workers(self) -> list[WorkerSeen]:
        return self._opened.workers_seen()

    async def drain(self, worker: str) -> bool:
        known = self._opened.workers.get(worker)
        if known is not None:
            known.is_draining = True
        return known is not None

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]:
        return self._opened.leases_seen(execution_id, limit)

    async def waiting(self) -> Mapping[str, int]:
        return self._opened.waiting()


class MemoryIntake(_Client):
    async def enlist(self, card: WorkerCard) -> None:
        dispatch.check_card(card)
        self._opened.enlist(card)

    async def take(self, worker: str, room: int, ranges: int, wait_s: float) -> list[Held]:
        dispatch.check_id("a worker's `id`", worker)
        if room <= 0:
            return []
        return await self._first(lambda: self._opened.take(worker, room, ranges, dispatch.next_token()), wait_s)

    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        taken = self._opened.taken(worker, token) if is_repeated else []
        return taken or self._opened.take(worker, room, ranges, token)

    async def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        self._opened.give_up(worker, token, keys)

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        return self._opened.beat(worker, pulses, draining=draining)

    async def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes]) -> bool:
        dispatch.check_kind(kind)
        return self._opened.say(worker, key, attempt, kind, bodies, dispatch.next_token())

    async def say_as(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: MessageKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool,
    ) -> bool:
        dispatch.check_kind(kind)
        # An end that was stored by an earlier try, and has been acknowledged since, has left nothing here.
        is_over = is_repeated and kind is MessageKind.DONE and key not in self._opened.leases
        return is_over or self._opened.say(worker, key, attempt, kind, bodies, token)

    async def commands(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Command]:
        self._opened.seen(worker, seen)
        return await self._first(lambda: self._opened.commands_to(worker), wait_s)

    async def is_pressed(self, worker: str) -> bool:
        return self._opened.is_pressed(worker)

    async def retire(self, worker: str) -> None:
        self._opened.retire(worker)


# ---- The shares of servers in memory: for one process, which owns all, and for tests, where several share one store.

LEASE_SECONDS = 10.0


@dataclass(slots=True)
class PartitionLease:
    owner: str | None = None
    epoch: int = 0
    until: float = float("-inf")


@dataclass(slots=True)
class MemoryPartitionStore:
    """What the servers of one fleet share. Its clock is the only one that counts."""

    clock: Callable[[], float] = time.monotonic
    leases: list[PartitionLease] = field(default_factory=lambda: [PartitionLease() for _ in range(PARTITIONS)])
    servers: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """Id -> name, since, until."""

    def live(self) -> list[str]:
        now = self.clock()
        return [server for server, (_, _, until) in self.servers.items() if until > now]


class MemoryPartitions:
    def __init__(
        self, store: MemoryPartitionStore | None = None, *, name: str = "server", lease_s: float = LEASE_SECONDS
    ) -> None:
        self._store = store or MemoryPartitionStore()
        self._name = name
        self._lease_s = lease_s
        self._id = str(uuid4())

    async def hold(self) -> dict[int, int]:
        store = self._store
        now = store.clock()
        _, since, _ = store.servers.get(self._id, ("", now, 0.0))
        store.servers[self._id] = (self._name, since, now + self._lease_s)
        share = fair_share(len(store.live()))
        mine = [number for number, lease in enumerate(store.leases) if lease.owner == self._id]
        for number in mine[share:]:
            self._free(store.leases[number])
        free = [number for number, lease in enumerate(store.leases) if lease.owner is None or lease.until <= now]
        free = [number for number in free if number not in mine]
        for number in free[: max(share - len(mine), 0)]:
            store.leases[number].owner = self._id
            store.leases[number].epoch += 1
        held = {number: lease for number, lease in enumerate(store.leases) if lease.owner == self._id}
        for lease in held.values():
            lease.until = now + self._lease_s
        return {number: lease.epoch for number, lease in held.items()}

    async def leave(self) -> None:
        self._store.servers.pop(self._id, None)
        for lease in self._store.leases:
            if lease.owner == self._id:
                self._free(lease)

    async def servers(self) -> list[Server]:
        store = self._store
        now = store.clock()
        owners = [lease.owner for lease in store.leases if lease.until > now]
        found = [Server(one, *store.servers[one][:2], owners.count(one)) for one in store.live()]
        return sorted(found, key=lambda server: server.since)

    async def close(self) -> None:
        await self.leave()

    @staticmethod
    def _free(lease: PartitionLease) -> None:
        lease.owner, lease.until = None, float("-inf")
