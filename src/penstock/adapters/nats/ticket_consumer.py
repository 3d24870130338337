"""A worker's turns: tickets that it orders from the work queue of its pool when it has found nothing to do.

Law: a ticket is a call to look, and is answered for when the look is over: done with, or handed on to another worker. One that
comes when nobody waits for it any more is handed on at once. Of each kind one order is out at a time, and it is the same to all
who wait whose order has brought a ticket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg

from penstock.adapters.nats.connection import NATS_ERRORS, Link, send
from penstock.adapters.nats.wire import NO_TICKET, Names, Ticket, Unreadable, consumer, read_ticket
from penstock.ports.undoing import unless_done_async

# So long an order stands, and so much later it is taken to be lost if nothing was heard of it.
ORDER_SECONDS, LATE_SECONDS = 5.0, 1.0
# How long JetStream may take to say that there is nothing.
ANSWER_SECONDS = 1.0
# A ticket that this worker cannot use is delivered again after so long: at first, and at most.
FIRST_DELAY, LONGEST_DELAY = 0.01, 30.0
OFTEN_TRIED = 10
# 503: nobody listens. 409: the consumer was deleted, or more wait than may.
DEAF = ("503", "409")

Turn = tuple[Msg, Ticket]


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    until: float


@dataclass(slots=True)
class Waiter:
    subjects: set[str]
    enough: int
    turns: list[Turn] = field(default_factory=list)
    is_deaf: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lacks(self) -> bool:
        return len(self.turns) < self.enough and bool(self.subjects) and not self.is_deaf


class Turns:
    def __init__(self, names: Names, link: Link) -> None:
        self._names = names
        self._link = link
        self._inbox = f"_INBOX.{uuid4().hex}"
        self._numbers = count(1)
        self._asked: dict[int, str] = {}
        """Number of a request -> the subject that it asks for."""
        self._orders: dict[str, Order] = {}
        self._waiters: list[Waiter] = []
        self.is_deaf = False
        """The last who waited found no consumer to ask."""

    async def greet(self, client: Client) -> None:
        await client.subscribe(f"{self._inbox}.*", cb=self._heard)

    def lost(self) -> None:
        """The connection has gone, and the orders with it."""
        self._asked.clear()
        self._orders.clear()
        for waiter in self._waiters:
            waiter.is_deaf = True
            waiter.news.set()

    async def wait(self, pool: str, kinds: Iterable[str], wait_s: float) -> list[Turn]:
        """The next ticket; nothing after so long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        orders = {self._names.work(pool, kind): consumer(pool, kind) for kind in kinds}
        waiter = Waiter(set(orders), 1)

        async def wait() -> None:
            while waiter.lacks and (left := deadline - loop.time()) > 0:
                waiter.news.clear()
                for subject, name in orders.items():
                    await self._order(subject, name)
                soonest = min(self._orders[one].until if one in self._orders else 0.0 for one in orders)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, min(left, soonest - loop.time()))):
                        await waiter.news.wait()

        return await self._while_waiting(waiter, wait())

    async def more(self, pool: str, kinds: Collection[str], most: int) -> list[Turn]:
        """Those that are there now."""
        waiter = Waiter({self._names.work(pool, kind) for kind in kinds}, most)

        async def gather() -> None:
            for kind in kinds:
                subject, asked = self._names.work(pool, kind), {"batch": most, "no_wait": True}
                await self._ask(subject, consumer(pool, kind), asked)
            async with asyncio.timeout(ANSWER_SECONDS):
                while waiter.lacks:
                    waiter.news.clear()
                    await waiter.news.wait()

        return await self._while_waiting(waiter, gather())

    async def _while_waiting(self, waiter: Waiter, waiting: Awaitable[None]) -> list[Turn]:
        self._waiters.append(waiter)
        try:
            async with unless_done_async(lambda: self.hand_on(message for message, _ in waiter.turns)):
                with suppress(*NATS_ERRORS):  # Whoever is not called looks all the same.
                    await waiting
        finally:
            self._waiters.remove(waiter)
        self.is_deaf = waiter.is_deaf
        return waiter.turns

    # ---- JetStream

    async def _order(self, subject: str, name: str) -> None:
        now = asyncio.get_running_loop().time()
        order = self._orders.get(subject)
        if order is None or order.until <= now:
            number = await self._ask(subject, name, {"batch": 1, "expires": int(ORDER_SECONDS * 1e9)})
            self._orders[subject] = Order(number, now + ORDER_SECONDS + LATE_SECONDS)

    async def _ask(self, subject: str, name: str, what: Mapping[str, object]) -> int:
        client = self._link.current
        number = next(self._numbers)
        if client is None:
            raise OSError("there is no connection")
        self._asked[number] = subject
        request = f"$JS.API.CONSUMER.MSG.NEXT.{self._names.work_stream}.{name}"
        await send(client, request, json.dumps(what).encode(), f"{self._inbox}.{number}")
        return number

    async def _heard(self, message: Msg) -> None:
        status = (message.headers or {}).get("Status")
        if status is not None:
            self._ended(int(message.subject.rpartition(".")[2]), status)
            return
        self._orders.pop(message.subject, None)  # A ticket comes under its own subject.
        try:
            ticket = read_ticket(message.data)
        except Unreadable:
            await self._answer([message], f"+TERM {NO_TICKET}".encode())
            return
        waiting = (one for one in self._waiters if message.subject in one.subjects and one.lacks)
        if (waiter := next(waiting, None)) is None:
            await self.hand_on([message])
        else:
            waiter.turns.append((message, ticket))
        for other in self._waiters:
            other.news.set()

    def _ended(self, number: int, status: str) -> None:
        """JetStream says that no more will come of a request."""
        subject = self._asked.pop(number, None)
        if subject is None or status == "100":
            return
        order = self._orders.get(subject)
        is_order = order is not None and order.number == number
        if is_order:
            del self._orders[subject]
        for waiter in self._waiters:
            if subject in waiter.subjects:
                waiter.is_deaf |= status in DEAF
                if not is_order and waiter.enough > 1:
                    waiter.subjects.discard(subject)
                waiter.news.set()

    # ---- answering for tickets

    async def done(self, messages: Iterable[Msg]) -> None:
        await self._answer(messages, b"+ACK")

    async def hand_on(self, messages: Iterable[Msg]) -> None:
        """At once, to whoever waits."""
        await self._answer(messages, b"-NAK")

    async def keep(self, messages: Iterable[Msg]) -> None:
        """It is still being looked at."""
        await self._answer(messages, b"+WPI")

    async def put_off(self, messages: Iterable[Msg]) -> None:
        """It is for workers of another kind; each time it waits longer for one."""
        for message in messages:
            await self._answer([message], _nak_with_delay(message))

    async def try_later(self, messages: Iterable[Msg]) -> None:
        """The store has work that it does not grant now. That may be so for long, and is nobody's fault: a ticket that has
        been tried often is done with, and the server puts in another one."""
        for message in messages:
            is_tired = message.metadata.num_delivered >= OFTEN_TRIED
            await self._answer([message], b"+ACK" if is_tired else _nak_with_delay(message))

    async def _answer(self, messages: Iterable[Msg], answer: bytes) -> None:
        """A ticket that came by a connection which is gone is answered for by the next one as well."""
        client = self._link.current
        with suppress(*NATS_ERRORS):
            for message in messages:
                if client is not None:
                    await client.publish(message.reply, answer)


def _nak_with_delay(message: Msg) -> bytes:
    delay_s = min(FIRST_DELAY * 2 ** min(message.metadata.num_delivered - 1, 20), LONGEST_DELAY)
    return b'-NAK {"delay": %d}' % int(delay_s * 1e9)
