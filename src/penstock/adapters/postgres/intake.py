"""Dispatch on PostgreSQL: the worker's side.

Law: a lease is granted by the statement that finds it, so no two workers find the same one. A grant that nobody waits for
any more is given up at once; if that fails too, it expires. Turns between executions are exact as long as no more than
`WINDOW` of them wait; beyond that, successive looks go round.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from penstock.adapters.dispatch import ENDS, PRESSED_AFTER_S, check_card, check_id, check_kind, next_token
from penstock.adapters.postgres.database import PATIENCE_SECONDS
from penstock.adapters.postgres.dispatch import (
    CLOSING_SECONDS,
    SQL,
    Connection,
    DispatchConnection,
    NotifyListener,
    check_size,
    rows_of,
)
from penstock.adapters.postgres.rows import given, kept
from penstock.kernel.errors import PenstockError, Refused
from penstock.ports.dispatch import TOLD_TO_DRAIN, Command, Held, MessageKind, Pulse, WorkerCard

# ---- What holders say, on its way to PostgreSQL: all that waits goes in one statement, so that many leases cost one commit.
# Law: what is said under a lease is stored once and in order, and is answered when it is stored.

MOST_CALLS = 256
MOST_BYTES = 16_000_000


@dataclass(slots=True)
class QueuedReport:
    worker: str
    key: str
    attempt: int
    kind: MessageKind
    bodies: Sequence[bytes]
    answer: asyncio.Future[bool]
    token: UUID
    is_repeated: bool

    @property
    def size(self) -> int:
        return sum(map(len, self.bodies))


class ReportQueue:
    def __init__(self, connection: DispatchConnection) -> None:
        self._connection = connection
        self._queue: deque[QueuedReport] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def say(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: MessageKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool = False,
    ) -> bool:
        self._connection.check_open()
        for body in bodies:
            check_size(f"what the holder of `{key}` says", body)
        # The owner learns of the end even if the holder has nothing left to report.
        bodies = bodies or ([b""] if kind in ENDS else [])
        answer = asyncio.get_running_loop().create_future()
        queued = QueuedReport(
            kept(worker), kept(key), attempt, kind, bodies=bodies, answer=answer, token=token, is_repeated=is_repeated
        )
        self._queue.append(queued)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send())
        return await queued.answer

    async def close(self) -> None:
        """Send what is pending, unless the server is unreachable."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSING_SECONDS)

    async def _send(self) -> None:
        while self._queue:
            batch = self._next()
            try:
                accepted = await self._kept(batch)
            except PenstockError as error:
                for queued in batch:
                    if not queued.answer.done():
                        queued.answer.set_exception(error)
                continue
            except asyncio.CancelledError:
                # The connection broke during the commit: whether it was stored is unknown.
                for queued in (*batch, *self._queue):
                    queued.answer.cancel()
                raise
            for number, queued in enumerate(batch):
                if not queued.answer.done():
                    queued.answer.set_result(number in accepted)

    def _next(self) -> list[QueuedReport]:
        """The longest prefix of the queue in which no lease occurs twice."""
        batch: list[QueuedReport] = []
        keys: set[str] = set()
        size = 0
        while self._queue and len(batch) < MOST_CALLS and size < MOST_BYTES and self._queue[0].key not in keys:
            queued = self._queue.popleft()
            if not queued.answer.done():  # otherwise it was cancelled before it was sent
                batch.append(queued)
                keys.add(queued.key)
                size += queued.size
        return batch

    async def _kept(self, batch: list[QueuedReport]) -> set[int]:
        """The numbers of those that were stored."""
        values = _columns(batch)
        tries = 0

        async def keep(connection: Connection) -> set[int]:
            nonlocal tries
            tries += 1
            accepted = set((await _one(connection, "say", values))[0])
            repeated = {number for number, queued in enumerate(batch) if tries > 1 or queued.is_repeated}
            if repeated - accepted:
                accepted |= await _kept_before(connection, batch, repeated - accepted)
            return accepted

        return await self._connection.run(keep) if batch else set()


async def _kept_before(connection: Connection, batch: list[QueuedReport], doubtful: set[int]) -> set[int]:
    """Ends that were stored by a try whose answer was lost, and have been acknowledged since: nothing is left of these."""
    ends = {number: batch[number].key for number in doubtful if batch[number].kind is MessageKind.DONE}
    cursor = await connection.execute(SQL["are_known"], {"keys": list(ends.values())})
    known = {key for (key,) in await cursor.fetchall()}
    return {number for number, key in ends.items() if key not in known}


async def _one(connection: Connection, name: str, values: dict[str, Any]) -> Any:
    return await (await connection.execute(SQL[name], values)).fetchone()


def _columns(batch: list[QueuedReport]) -> dict[str, Any]:
    messages = [
        (number, index == len(queued.bodies) - 1, body)
        for number, queued in enumerate(batch)
        for index, body in enumerate(queued.bodies)
    ]
    return {
        "calls": list(range(len(batch))),
        "workers": [queued.worker for queued in batch],
        "keys": [queued.key for queued in batch],
        "attempts": [queued.attempt for queued in batch],
        "kinds": [queued.kind.value for queued in batch],
        "tokens": [queued.token for queued in batch],
        "note_calls": [call for call, _, _ in messages],
        "lasts": [is_last for _, is_last, _ in messages],
        "bodies": [body for _, _, body in messages],
    }


# What a look costs grows with it: at 200 it was half of what a small run cost PostgreSQL.
WINDOW = 32
# How many more candidates are examined than there is room for: others may be about to take the first ones.
REACH = 32
# How often, and after about how long, to look again for work that others were just about to take.
CROWDED = 10
CROWD_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Look:
    """The parameters of one look for work."""

    worker: str
    room: int
    ranges: int
    after: str
    token: UUID
    is_repeated: bool = False

    def values(self) -> dict[str, Any]:
        return {
            "worker": self.worker,
            "room": self.room,
            "ranges": min(self.ranges, self.room),
            "reach": self.room + REACH,
            "token": self.token,
            "after": self.after,
            "window": max(WINDOW, self.room),
        }


class Found(NamedTuple):
    granted: list[Held]
    is_limited: bool = False
    candidates: int = 0
    """How many could have been granted without concurrent takers."""
    after: str = ""
    """The execution at which a partial look ended; empty: all were examined."""


class PostgresIntake:
    def __init__(self, url: str, *, patience_s: float = PATIENCE_SECONDS) -> None:
        self._connection = DispatchConnection(url, patience_s)
        self._listener = NotifyListener(self._connection)
        # One of their own: what was done is told while the next leases are taken.
        self._reporting = DispatchConnection(url, patience_s)
        self._reports = ReportQueue(self._reporting)
        self._pools: dict[str, str] = {}
        self._after: dict[str, str] = {}
        self._is_closed = False

    async def enlist(self, card: WorkerCard) -> None:
        check_card(card)
        values = {
            "id": kept(card.id),
            "name": kept(card.name),
            "pool": kept(card.pool),
            "slots": card.slots,
            "can": [kept(one) for one in card.can],
            "version": kept(card.version),
        }

        async def enlist(connection: Connection) -> None:
            await connection.execute(SQL["enlist"], values)

        await self._connection.run(enlist)
        self._pools[card.id] = kept(card.pool)

    # ---- taking

    async def take(self, worker: str, room: int, ranges: int, wait_s: float) -> list[Held]:
        check_id("a worker's `id`", worker)
        self._connection.check_open()
        if room <= 0:
            return []
        channel = self._listener.channel("work", await self._pool(worker))

        async def look() -> list[Held]:
            return await self._granted(worker, room, max(ranges, 0), next_token())

        return await channel.first(look, wait_s, lambda: self._is_closed)

    async def claim(self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool) -> list[Held]:
        check_id("a worker's `id`", worker)
        return await self._granted(worker, room, max(ranges, 0), token, is_repeated=is_repeated) if room > 0 else []

    async def give_up(self, worker: str, token: UUID, keys: Collection[str]) -> None:
        await self._rows("give_up", keys=[kept(key) for key in keys], worker=kept(worker), token=token)

    async def _pool(self, worker: str) -> str:
        """The pool it was enlisted in, perhaps through another intake."""
        if worker not in self._pools:
            rows = await self._rows("pool_of", worker=kept(worker))
            if not rows:
                return ""
            ((self._pools[worker],),) = rows
        return self._pools[worker]

    async def _granted(
        self, worker: str, room: int, ranges: int, token: UUID, *, is_repeated: bool = False
    ) -> list[Held]:
        """Up to `room` leases. Looks again at once if others were quicker, or if there is more to see."""
        crowded = 0
        while True:
            begun_at = self._after.get(worker, "")
            found = await self._claim(Look(kept(worker), room, ranges, begun_at, token, is_repeated))
            self._after[worker] = found.after
            if found.granted or self._is_closed:
                return found.granted
            if found.candidates and crowded < CROWDED:
                crowded += 1
                await asyncio.sleep(CROWD_SECONDS * crowded * random.random())
            elif not begun_at and not found.after:
                return []

    async def _claim(self, look: Look) -> Found:
        tries = int(look.is_repeated)

        async def claim(connection: Connection) -> Found:
            nonlocal tries
            tries += 1
            if tries > 1:
                cursor = await connection.execute(SQL["taken"], {"worker": look.worker, "token": look.token})
                if rows := await cursor.fetchall():
                    return Found([_held(*row) for row in rows], after=look.after)
            found = await _look(connection, look, under_lock=False)
            return await _look_under_lock(connection, look) if found.is_limited else found

        async def give_up(found: Found) -> None:
            if found.granted:
                await self.give_up(given(look.worker), look.token, [one.key for one in found.granted])

        return await self._connection.run(claim, give_up)

    # ---- holding

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        ((is_draining, renewed),) = await self._rows(
            "beat",
            worker=kept(worker),
            draining=draining,
            keys=[kept(key) for key in pulses],
            attempts=[pulse.attempt for pulse in pulses.values()],
            progresses=[pulse.progress for pulse in pulses.values()],
            cursors=[pulse.cursor for pulse in pulses.values()],
            rows=[pulse.rows for pulse in pulses.values()],
        )
        if is_draining is None:
            raise Refused(f"worker `{worker}` is not enlisted", hint="call `enlist` first; what it held is lost")
        lost = frozenset(pulses) - {given(key) for key in renewed}
        return lost | {TOLD_TO_DRAIN} if is_draining and not draining else lost

    async def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes]) -> bool:
        check_kind(kind)
        return await self._reports.say(worker, key, attempt, kind, bodies, next_token())

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
        check_kind(kind)
        return await self._reports.say(worker, key, attempt, kind, bodies, token, is_repeated=is_repeated)

    async def commands(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Command]:
        values = {"worker": kept(worker), "seen": list(seen)}

        async def look() -> list[Command]:
            rows = await self._rows("told", **values)
            return [Command(number, given(key), attempt, body) for number, key, attempt, body in rows]

        self._connection.check_open()
        channel = self._listener.channel("told", kept(worker))
        return await channel.first(look, wait_s, lambda: self._is_closed)

    async def is_pressed(self, worker: str) -> bool:
        ((is_pressed,),) = await self._rows("is_pressed", worker=kept(worker), moment_s=PRESSED_AFTER_S)
        return bool(is_pressed)

    async def retire(self, worker: str) -> None:
        await self._rows("retire", worker=kept(worker))
        self._pools.pop(worker, None)
        self._after.pop(worker, None)

    async def now(self) -> float:
        ((now,),) = await self._rows("now")
        return float(now)

    async def close(self) -> None:
        self._is_closed = True
        await self._reports.close()
        await self._listener.close()
        await self._reporting.close()
        await self._connection.close()

    async def _rows(self, name: str, **values: Any) -> list[Any]:
        return await rows_of(self._connection, name, values)


async def _look(connection: Connection, look: Look, *, under_lock: bool) -> Found:
    cursor = await connection.execute(SQL["take"], {**look.values(), "under_lock": under_lock})
    rows = await cursor.fetchall()
    is_limited, candidates, after = rows[0][:3]
    granted = [_held(*row[3:9]) for row in rows if row[3] is not None]
    return Found(granted, is_limited, candidates, after or "")


async def _look_under_lock(connection: Connection, look: Look) -> Found:
    """A look ends with the first offer that has limits, so it is repeated until there is no more room, or nothing is found."""
    granted: list[Held] = []
    room, ranges = look.room, look.ranges
    async with connection.transaction():
        await connection.execute(SQL["lock_limits"])
        while True:
            found = await _look(connection, replace(look, room=room, ranges=ranges), under_lock=True)
            granted += found.granted
            room -= len(found.granted)
            ranges -= sum(one.is_range for one in found.granted)
            if room <= 0 or not found.granted:
                return found._replace(granted=granted)


def _held(key: str, execution_id: str, attempt: int, payload: bytes, lease_s: float, is_range: bool) -> Held:
    return Held(given(key), given(execution_id), attempt, payload, lease_s, is_range)
