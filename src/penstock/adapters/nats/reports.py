"""What holders say, on its way to a server: all that waits goes in one letter.

Law: what a lease says is sent in the order it was said, and the next thing when the last is answered for. It is carried to its
end even if whoever said it does not wait any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.adapters.nats.connection import end
from penstock.adapters.nats.wire import Problem, Saying, SayingAll
from penstock.kernel.errors import PenstockError, Refused, Unavailable

MOST_CALLS = 256
MOST_BYTES = 8_000_000

Send = Callable[[SayingAll], Awaitable[list[bool | Problem]]]


@dataclass(slots=True)
class Said:
    saying: Saying
    answer: asyncio.Future[bool]

    @property
    def size(self) -> int:
        return sum(map(len, self.saying.bodies))


class Says:
    def __init__(self, send: Send) -> None:
        self._send_all = send
        self._queue: deque[Said] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def say(self, saying: Saying) -> bool:
        said = Said(saying, asyncio.get_running_loop().create_future())
        self._queue.append(said)
        if not self.tasks:
            self._sending = asyncio.ensure_future(self._send())
        return await said.answer

    @property
    def tasks(self) -> set[asyncio.Future[None]]:
        """What is under way."""
        return set() if self._sending is None or self._sending.done() else {self._sending}

    async def close(self) -> None:
        if self._sending is not None:
            await end({self._sending})
        for said in self._queue:
            _answer(said, Unavailable("the connection was closed before this was sent"))

    async def _send(self) -> None:
        while self._queue:
            batch = self._next()
            if not batch:
                continue
            try:
                answers = await self._send_all(SayingAll([said.saying for said in batch]))
            except PenstockError as error:
                for said in batch:
                    _answer(said, error)
                continue
            except asyncio.CancelledError:
                for said in batch:
                    _answer(said, Unavailable("the connection was closed before this was answered"))
                raise
            for said, answer in zip(batch, answers, strict=True):
                _answer(said, answer)

    def _next(self) -> list[Said]:
        """The longest beginning of the queue in which no lease speaks twice."""
        batch: list[Said] = []
        keys: set[str] = set()
        size = 0
        while self._queue and len(batch) < MOST_CALLS and size < MOST_BYTES and self._queue[0].saying.key not in keys:
            said = self._queue.popleft()
            if not said.answer.done():  # else it was cancelled before it was sent
                batch.append(said)
                keys.add(said.saying.key)
                size += said.size
        return batch


def _answer(said: Said, answer: bool | Problem | PenstockError) -> None:
    if said.answer.done():
        return
    if isinstance(answer, Problem):
        answer = (Refused if answer.is_refused else Unavailable)(answer.message, answer.hint)
    if isinstance(answer, PenstockError):
        said.answer.set_exception(answer)
    else:
        said.answer.set_result(answer)
