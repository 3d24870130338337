"""What holders say, on its way to PostgreSQL: all that waits goes in one statement, so that many leases cost one commit.

Law: what a lease says is kept in the order it was said, once, and is answered when it is kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.adapters.dispatch_checks import ENDS
from penstock.adapters.postgres.dispatch import check_size
from penstock.adapters.postgres.dispatch_connection import CLOSING_SECONDS, Line
from penstock.adapters.postgres.dispatch_schema import SQL, Connection
from penstock.adapters.postgres.rows import kept
from penstock.kernel.errors import PenstockError
from penstock.ports.dispatch import NoteKind

MOST_CALLS = 256
MOST_BYTES = 16_000_000


@dataclass(slots=True)
class Said:
    worker: str
    key: str
    attempt: int
    kind: NoteKind
    bodies: Sequence[bytes]
    answer: asyncio.Future[bool]
    token: UUID
    is_repeated: bool

    @property
    def size(self) -> int:
        return sum(map(len, self.bodies))


class Says:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._queue: deque[Said] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def say(
        self,
        worker: str,
        key: str,
        attempt: int,
        kind: NoteKind,
        bodies: Sequence[bytes],
        token: UUID,
        *,
        is_repeated: bool = False,
    ) -> bool:
        self._line.check_open()
        for body in bodies:
            check_size(f"what the holder of `{key}` says", body)
        # An end is heard of even by a holder who has nothing to add to it.
        bodies = bodies or ([b""] if kind in ENDS else [])
        answer = asyncio.get_running_loop().create_future()
        said = Said(kept(worker), kept(key), attempt, kind, bodies, answer, token, is_repeated)
        self._queue.append(said)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send())
        return await said.answer

    async def close(self) -> None:
        """What waits is still sent, unless the server is away."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSING_SECONDS)

    async def _send(self) -> None:
        while self._queue:
            batch = self._next()
            try:
                accepted = await self._kept(batch)
            except PenstockError as error:
                for said in batch:
                    if not said.answer.done():
                        said.answer.set_exception(error)
                continue
            except asyncio.CancelledError:
                # The line was closed over it: whether it was kept, nobody knows.
                for said in (*batch, *self._queue):
                    said.answer.cancel()
                raise
            for number, said in enumerate(batch):
                if not said.answer.done():
                    said.answer.set_result(number in accepted)

    def _next(self) -> list[Said]:
        """The longest beginning of the queue in which no lease speaks twice."""
        batch: list[Said] = []
        keys: set[str] = set()
        size = 0
        while self._queue and len(batch) < MOST_CALLS and size < MOST_BYTES and self._queue[0].key not in keys:
            said = self._queue.popleft()
            if not said.answer.done():  # else it was cancelled before it was sent
                batch.append(said)
                keys.add(said.key)
                size += said.size
        return batch

    async def _kept(self, batch: list[Said]) -> set[int]:
        """The numbers of those that were kept."""
        values = _columns(batch)
        tries = 0

        async def keep(connection: Connection) -> set[int]:
            nonlocal tries
            tries += 1
            accepted = set((await _one(connection, "say", values))[0])
            repeated = {number for number, said in enumerate(batch) if tries > 1 or said.is_repeated}
            if repeated - accepted:
                accepted |= await _kept_before(connection, batch, repeated - accepted)
            return accepted

        return await self._line.run(keep) if batch else set()


async def _kept_before(connection: Connection, batch: list[Said], doubtful: set[int]) -> set[int]:
    """Ends that were kept by a try whose answer was lost, and heard meanwhile: of these nothing is left."""
    ends = {number: batch[number].key for number in doubtful if batch[number].kind is NoteKind.DONE}
    cursor = await connection.execute(SQL["are_known"], {"keys": list(ends.values())})
    known = {key for (key,) in await cursor.fetchall()}
    return {number for number, key in ends.items() if key not in known}


async def _one(connection: Connection, name: str, values: dict[str, Any]) -> Any:
    return await (await connection.execute(SQL[name], values)).fetchone()


def _columns(batch: list[Said]) -> dict[str, Any]:
    notes = [
        (number, place == len(said.bodies) - 1, body)
        for number, said in enumerate(batch)
        for place, body in enumerate(said.bodies)
    ]
    return {
        "calls": list(range(len(batch))),
        "workers": [said.worker for said in batch],
        "keys": [said.key for said in batch],
        "attempts": [said.attempt for said in batch],
        "kinds": [said.kind.value for said in batch],
        "tokens": [said.token for said in batch],
        "note_calls": [call for call, _, _ in notes],
        "lasts": [is_last for _, is_last, _ in notes],
        "bodies": [body for _, _, body in notes],
    }
