"""Answering letters that come over NATS: the server's half of a call.

Law: a letter is carried out at most once at a time here; one that comes again while it is being carried out shares the answer,
and one that comes after that is carried out as a repeated one. An answer that cannot be sent is not waited for: the letter will
come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from penstock.adapters.nats.connection import NATS_ERRORS, Link, end
from penstock.adapters.nats.wire import (
    VERSION,
    Answer,
    Letter,
    Names,
    Parts,
    Problem,
    Request,
    Unreadable,
    frames,
    packed,
    read_letter,
)
from penstock.kernel.errors import PenstockError, Refused

QUEUE = "servers"
# So many letters are carried out at a time; those beyond come again.
MOST_LETTERS = 4096
# What has come of letters that are not whole yet.
MOST_BYTES = 512_000_000
PARTS_SECONDS = 30.0
CLOSING_SECONDS, CLOSING_PAUSE = 5.0, 0.02

Handler = Callable[[Request, bool], Awaitable[Any]]


@dataclass(slots=True)
class Gathering:
    until: float
    parts: Parts = field(default_factory=Parts)


class Serving:
    def __init__(self, names: Names, name: str, carry_out: Handler) -> None:
        """`carry_out(request, is_repeated)` gives the value of the answer."""
        self._names = names
        self._address = names.server(name)
        self._carry_out = carry_out
        self._client: Client | None = None
        self._subscriptions: list[Subscription] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._gathering: dict[str, Gathering] = {}
        self._is_leaving = False
        self._is_closing = False
        self.answered = 0
        self.repeated = 0
        self.unreadable = 0

    async def greet(self, client: Client, link: Link) -> None:
        if self._is_leaving:
            return

        async def asked(message: Msg) -> None:
            self._asked(message, link)

        async def greeted(message: Msg) -> None:
            with suppress(*NATS_ERRORS):
                await message.respond(hello)

        (hello,) = frames(packed(Answer(self._address, None, Raw(packed(None)))), client.max_payload)
        self._client = client
        self._subscriptions = [
            await client.subscribe(self._names.rpc, queue=QUEUE, cb=asked),
            await client.subscribe(self._names.hello, cb=greeted),
            await client.subscribe(self._address, cb=asked),
        ]

    async def close(self) -> None:
        """Letters go to other servers from now on; those that are here are answered."""
        self._is_leaving = True
        await self._drain()
        self._is_closing = True
        running = set(self._running.values())
        if running:
            _, late = await asyncio.wait(running, timeout=CLOSING_SECONDS)
            await end(late)

    async def _drain(self) -> None:
        """For as long as there is a connection: the client would wait for an answer on one that is gone."""
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        drains = [asyncio.ensure_future(one.drain()) for one in self._subscriptions]  # type: ignore[no-untyped-call]
        while (left := [one for one in drains if not one.done()]) and asyncio.get_running_loop().time() < deadline:
            if self._client is None or not self._client.is_connected:
                break
            await asyncio.wait(left, timeout=CLOSING_PAUSE)
        await end(drains)

    def _asked(self, message: Msg, link: Link) -> None:
        reply = message.reply
        if not reply or self._is_closing or reply in self._running or len(self._running) >= MOST_LETTERS:
            return
        try:
            whole = self._whole(reply, message.data)
        except Unreadable:
            self.unreadable += 1
            return
        if whole is not None:
            task = asyncio.ensure_future(self._answer(reply, whole, link))
            self._running[reply] = task
            task.add_done_callback(lambda _: self._running.pop(reply, None))

    def _whole(self, reply: str, frame: bytes) -> bytes | None:
        now = asyncio.get_running_loop().time()
        gathering = self._gathering.get(reply) or Gathering(now + PARTS_SECONDS)
        whole = gathering.parts.add(frame)
        if whole is not None:
            self._gathering.pop(reply, None)
            return whole
        self._gathering[reply] = gathering
        for other in [one for one, its in self._gathering.items() if its.until < now]:
            del self._gathering[other]
        if sum(its.parts.size for its in self._gathering.values()) > MOST_BYTES:
            del self._gathering[reply]
        return None

    async def _answer(self, reply: str, data: bytes, link: Link) -> None:
        answer = packed(await self._answer_to(data))
        client = link.current
        if client is None:
            return
        with suppress(*NATS_ERRORS):
            for frame in frames(answer, client.max_payload):
                await client.publish(reply, frame)
        self.answered += 1

    async def _answer_to(self, data: bytes) -> Answer:
        try:
            letter = _letter(data)
            self.repeated += letter.is_repeated
            value = await self._carry_out(letter.request, letter.is_repeated)
        except PenstockError as error:
            problem = Problem(isinstance(error, Refused), error.message, error.hint)
            return Answer(self._address, problem, Raw(packed(None)))
        return Answer(self._address, None, Raw(packed(value)))


def _letter(data: bytes) -> Letter:
    try:
        letter = read_letter(data)
    except Unreadable as error:
        raise _strange(str(error)) from error
    if letter.version != VERSION:
        raise _strange(f"it speaks version {letter.version}, and this server version {VERSION}")
    return letter


def _strange(why: str) -> Refused:
    return Refused(f"the server does not understand the worker: {why}", "run workers and servers of the same version")
