"""Calls over NATS: a worker's letters to the servers, and their answers.

Law: a letter is sent until it is answered or the patience is at an end, each time with the same token and the same address for
the answer; so an answer to any of the tries will do. A server that answers is asked again for as long as it does, and when one
does not, the first that returns a greeting is asked: a server that is frozen costs a worker one wait, and not every second one.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar
from uuid import uuid4

from msgspec import MsgspecError
from msgspec.msgpack import decode
from nats.aio.client import Client
from nats.aio.msg import Msg

from penstock.adapters.nats.connection import NATS_ERRORS, Link, end, send
from penstock.adapters.nats.wire import (
    VERSION,
    Answer,
    Letter,
    Names,
    Parts,
    Problem,
    Request,
    Saying,
    SayingAll,
    Unreadable,
    frames,
    packed,
    read_answer,
)
from penstock.kernel.errors import PenstockError, Refused, Unavailable

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
# How long a try waits for its answer: the first one, and the longest.
FIRST_TRY, LONGEST_TRY = 2.0, 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
# So long a server is kept to. Servers that have come since get their share of the workers by and by.
KEEP_SECONDS = 60.0
# After the first server has returned a greeting, the others have so long.
GREETING_SECONDS = 0.01
# So many calls are remembered after their end, for answers that come late.
LATE_CALLS = 256


class Nobody(Exception):
    """No server listens."""


class Cut(Exception):
    """The connection was lost while an answer was waited for."""


@dataclass(slots=True)
class Call:
    number: int
    answer: asyncio.Future[bytes]
    late: Callable[[bytes | None, bytes], None] | None = None
    first: bytes | None = None
    """The answer that counts."""
    parts: Parts = field(default_factory=Parts)


class Calls:
    def __init__(self, names: Names, patience_s: float = PATIENCE_SECONDS) -> None:
        self._names = names
        self._patience_s = patience_s
        self._inbox = f"_INBOX.{uuid4().hex}"
        self._numbers = count(1)
        self._calls: dict[int, Call] = {}
        self._ended: OrderedDict[int, Call] = OrderedDict()
        self._greetings: dict[int, asyncio.Queue[bytes]] = {}
        self._server: str | None = None
        self._avoided: dict[str, float] = {}
        self._kept_until = 0.0
        self._is_wary = False
        """The last one that was asked did not answer in time."""
        self.is_alone = False
        """The last that was heard is that no server listens."""

    async def greet(self, client: Client) -> None:
        await client.subscribe(f"{self._inbox}.*", cb=self._heard)

    def lost(self) -> None:
        """The connection has gone: what waits for an answer is sent again."""
        for call in self._calls.values():
            _fail(call.answer, Cut())
        for greetings in self._greetings.values():
            greetings.put_nowait(b"")

    async def ask(
        self, link: Link, request: Request, kind: type[T], late: Callable[[T | None, T], None] | None = None
    ) -> T:
        """What a server answers. `late(first, other)` is given what others answer after that; there is no `first` when the
        patience was at an end before."""

        def came_late(first: bytes | None, other: bytes) -> None:
            if late is not None:
                late(None if first is None else _read(first, kind), _read(other, kind))

        call = Call(next(self._numbers), asyncio.get_running_loop().create_future())
        call.late = came_late if late is not None else None
        self._calls[call.number] = call
        try:
            return await self._patiently(link, request, call, kind)
        finally:
            del self._calls[call.number]
            if not call.answer.cancel():
                call.answer.exception()
            if call.late is not None:
                self._ended[call.number] = call
                if len(self._ended) > LATE_CALLS:
                    self._ended.popitem(last=False)

    async def _patiently(self, link: Link, request: Request, call: Call, kind: type[T]) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        pause, wait_s, is_repeated = FIRST_PAUSE, FIRST_TRY, False
        while True:
            client = await link.client(deadline)
            try:
                left = deadline - loop.time()
                data = await self._once(client, Letter(VERSION, is_repeated, request), call, min(wait_s, left))
                answer = read_answer(data)
            except (Nobody, Cut, Unreadable, *NATS_ERRORS) as error:
                self._is_wary = isinstance(error, TimeoutError)
                if self._is_wary:
                    self._avoid()
                self._server = None
                # What nobody listened to was carried out by nobody.
                is_repeated = is_repeated or not isinstance(error, Nobody)
                if loop.time() + pause > deadline:
                    raise _unanswered(link, error) from error
                if not isinstance(error, TimeoutError):
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                wait_s = min(wait_s * 2, LONGEST_TRY)
            else:
                self._is_wary = False
                self._keep_to(answer.server)
                return _opened(answer, kind)

    async def _once(self, client: Client, letter: Letter, call: Call, wait_s: float) -> bytes:
        self._begin(call)
        messages = list(frames(packed(letter), client.max_payload))
        if self._address() == self._names.rpc and (len(messages) > 1 or self._is_wary):
            await self._meet(client, wait_s)
        address, reply = self._address(), f"{self._inbox}.{call.number}"
        for message in messages:
            await send(client, address, message, reply)
        async with asyncio.timeout(wait_s):
            return await asyncio.shield(call.answer)

    def _begin(self, call: Call) -> None:
        """An answer that has come since the last try is as good as one to come."""
        if call.answer.done() and (call.answer.cancelled() or call.answer.exception() is not None):
            call.answer = asyncio.get_running_loop().create_future()

    async def _meet(self, client: Client, wait_s: float) -> None:
        """Find a server that is awake: for a letter in parts, which go to one server, and when one did not answer."""
        number, greetings = next(self._numbers), asyncio.Queue[bytes]()
        self._greetings[number] = greetings
        try:
            await send(client, self._names.hello, reply=f"{self._inbox}.{number}")
            async with asyncio.timeout(wait_s):
                servers = [_greeter(await greetings.get())]
            await asyncio.sleep(GREETING_SECONDS)
            while not greetings.empty():
                servers.append(_greeter(greetings.get_nowait()))
        finally:
            del self._greetings[number]
        now = asyncio.get_running_loop().time()
        self._keep_to(random.choice([one for one in servers if self._avoided.get(one, 0.0) < now] or servers))

    def _avoid(self) -> None:
        """The server that was kept to has not answered: it may be awake, and cut off from its store."""
        now = asyncio.get_running_loop().time()
        self._avoided = {one: until for one, until in self._avoided.items() if until > now}
        if self._server is not None:
            self._avoided[self._server] = now + KEEP_SECONDS

    def _address(self) -> str:
        if self._server is None or asyncio.get_running_loop().time() > self._kept_until:
            return self._names.rpc
        return self._server

    def _keep_to(self, server: str) -> None:
        self.is_alone = False
        if self._address() != server:
            self._server = server
            self._kept_until = asyncio.get_running_loop().time() + KEEP_SECONDS

    async def _heard(self, message: Msg) -> None:
        number = int(message.subject.rpartition(".")[2])
        if number in self._greetings:
            self._greetings[number].put_nowait(message.data)
            return
        call = self._calls.get(number)
        if not message.data:
            # NATS itself answers so when nobody listens to a subject.
            if call is not None:
                self.is_alone = True
                _fail(call.answer, Nobody())
            return
        known = call or self._ended.get(number)
        if known is None:
            return
        try:
            whole = known.parts.add(message.data)
            if whole is None:
                return
            if call is not None and call.first is None:
                call.first = whole
                self._begin(call)
                call.answer.set_result(whole)
            elif known.late is not None:
                known.late(known.first, whole)
        except (Unreadable, Refused, Unavailable):
            return  # The next try, or nobody, is told what is wrong.


def _greeter(greeting: bytes) -> str:
    whole = Parts().add(greeting) if greeting else None
    if whole is None:
        raise Nobody
    return read_answer(whole).server


def _fail(answer: asyncio.Future[bytes], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _read(data: bytes, kind: type[T]) -> T:
    return _opened(read_answer(data), kind)


def _opened(answer: Answer, kind: type[T]) -> T:
    problem = answer.problem
    if problem is not None:
        raise (Refused if problem.is_refused else Unavailable)(problem.message, problem.hint)
    try:
        return decode(answer.value, type=kind)
    except MsgspecError as error:
        raise Unavailable(f"a server answered what this worker does not understand: {error}") from error


def _unanswered(link: Link, error: Exception) -> Unavailable:
    if isinstance(error, Nobody):
        return Unavailable(
            f"no server of the fleet listens on NATS at `{link.place}`",
            "start one with `penstock serve --dispatch`, on the same NATS",
        )
    if isinstance(error, TimeoutError):
        return Unavailable(
            f"no server of the fleet answers on NATS at `{link.place}`",
            "see whether the servers and their database run",
        )
    return link.unavailable(None if isinstance(error, Cut) else error)


# ---- What holders say, on its way to a server: all that waits goes in one letter.
# Law: what a lease says is sent in the order it was said, and the next thing when the last is answered for. It is carried to
# its end even if whoever said it does not wait any more.

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
