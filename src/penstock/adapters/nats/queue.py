"""The work queue in JetStream: a ticket for every offer, so that one worker that has room is called for each.

Law: a ticket is no right to anything, and none is missed: a worker without a ticket polls now and then. So tickets may be lost,
doubled and late, and no call waits until they are stored. One that nobody could use after `max_deliver` deliveries is put
aside as a dead letter, where people find it; the offer that it stands for still waits in the store.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NotFoundError

from penstock.adapters.nats.connection import NATS_ERRORS, Link, end, send
from penstock.adapters.nats.wire import KINDS, NO_TICKET, Names, Ticket, Unreadable, consumer, packed, read_ticket
from penstock.ports.undoing import unless_done_async

REQUEST_SECONDS = 5.0
# So many tickets are sent before it is asked whether they have come.
BATCH = 256
# Tickets beyond this are not kept for a NATS that is away: what they stand for is found by the next look.
MOST_TICKETS = 20_000
TICKET_AGE_SECONDS = 3600.0
# So long until it is seen whether there is another connection.
LOST_SECONDS = 0.01
# A ticket that is sent again within this time is the same one.
DOUBLE_SECONDS = 10.0
DEAD_AGE_SECONDS = 7 * 86_400.0
MOST_DEAD = 10_000
MOST_WAITING = 16_384
MOST_UNACKED = 50_000

# So often it is seen to consumers that workers miss.
MISSED_SECONDS = 0.5
# How often the server reports dead letters to it.
WARN_SECONDS = 60.0

STREAM_IN_USE = 10058
ADVISORY = "$JS.EVENT.ADVISORY.CONSUMER"


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """How the streams are kept. All servers of a fleet have the same."""

    ack_wait_s: float = 5.0
    """So long a worker may look at a ticket before another one gets it."""
    max_deliver: int = 25
    """With the growing delays between them that is about seven minutes."""
    replicas: int = 1


class WorkQueue:
    def __init__(self, names: Names, link: Link, terms: QueueTerms, warn: Callable[[str], None]) -> None:
        self.names = names
        self.terms = terms
        self._link = link
        self._warn = warn
        self._tickets: deque[tuple[str, Ticket]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._pools: set[str] = set()
        self.known: set[str] = set()
        """Pools that work was offered to, or workers came from."""
        self.made: set[str] = set()
        """The stream of tickets and its consumers, by name, once they have been there: only these can have gone."""
        self._has_streams = False
        self._missed_until = 0.0
        self._untold: Counter[str] = Counter()
        self._told_until: dict[str, float] = {}
        self.sent = 0
        self.dead = 0

    # ---- putting tickets in

    def put(self, tickets: Iterable[Ticket], name: str | None = None) -> None:
        """`name`: the same one again, within a short time, is the same tickets."""
        shared = name or uuid4().hex
        self._tickets.extend((f"{shared}.{number}", ticket) for number, ticket in enumerate(tickets))
        while len(self._tickets) > MOST_TICKETS:
            self._tickets.popleft()
        self.go_on()

    def go_on(self) -> None:
        if self._tickets and (self._sending is None or self._sending.done()):
            self._sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        while self._tickets and (client := self._link.current) is not None:
            batch = [self._tickets.popleft() for _ in range(min(BATCH, len(self._tickets)))]
            for _ in range(2):
                try:
                    await self._link.carry(self._publish(client, batch))
                    self.sent += len(batch)
                    break
                except ConnectionClosedError:
                    self._tickets.extendleft(reversed(batch))
                    await asyncio.sleep(LOST_SECONDS)
                    break
                except NATS_ERRORS:
                    # The stream may have gone; once more, from the start.
                    self.forget_ready()

    async def _publish(self, client: Client, batch: list[tuple[str, Ticket]]) -> None:
        """The last one is answered when all before it have come."""
        await self.make_ready(client, {ticket.pool for _, ticket in batch})
        *others, (name, last) = batch
        for other, ticket in others:
            await client.publish(self.names.work(ticket.pool, ticket.kind), packed(ticket), headers=_headers(other))
        stream = client.jetstream(timeout=REQUEST_SECONDS)
        await stream.publish(self.names.work(last.pool, last.kind), packed(last), headers=_headers(name))

    # ---- streams and consumers

    def forget_ready(self) -> None:
        """Streams and consumers may be gone: the next one who needs them looks."""
        self._has_streams = False
        self._pools.clear()

    async def make_ready(self, client: Client, pools: Iterable[str]) -> None:
        js = client.jetstream(timeout=REQUEST_SECONDS)
        wanted = set(pools)
        self.known |= wanted
        if not self._has_streams:
            for config in self._streams():
                await _keep_stream(js, config)
            self._has_streams = True
            self.made.add(self.names.work_stream)
        for pool in wanted - self._pools:
            for kind in KINDS:
                await js.add_consumer(self.names.work_stream, self._consumer(pool, kind))
                self.made.add(consumer(pool, kind))
            self._pools.add(pool)

    async def want(self, pool: str) -> None:
        """A worker wants to ask for tickets of this pool."""
        client = self._link.current
        if client is not None:
            with suppress(*NATS_ERRORS):
                await self._link.carry(self.make_ready(client, {pool}))

    async def miss(self, pool: str) -> None:
        """A worker could not ask for tickets of this pool: see that there is a consumer, once in a while."""
        now = asyncio.get_running_loop().time()
        if now >= self._missed_until:
            self._missed_until = now + MISSED_SECONDS
            self.forget_ready()
            await self.want(pool)

    async def make_anew(self, client: Client, pool: str, kind: str) -> None:
        """A consumer that hands out nothing is replaced; the tickets stay."""
        js = client.jetstream(timeout=REQUEST_SECONDS)
        self._pools.discard(pool)
        with suppress(NotFoundError):
            await js.delete_consumer(self.names.work_stream, consumer(pool, kind))
        await self.make_ready(client, {pool})

    def _streams(self) -> tuple[api.StreamConfig, api.StreamConfig]:
        work = api.StreamConfig(
            name=self.names.work_stream,
            description="penstock: tickets for work that waits",
            subjects=[self.names.all_work],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
            max_age=TICKET_AGE_SECONDS,
            duplicate_window=DOUBLE_SECONDS,
            num_replicas=self.terms.replicas,
        )
        dead = api.StreamConfig(
            name=self.names.dead_stream,
            description="penstock: tickets that nobody could use",
            subjects=[f"{self.names.prefix}.dead.*"],
            storage=api.StorageType.FILE,
            max_age=DEAD_AGE_SECONDS,
            max_msgs=MOST_DEAD,
            num_replicas=self.terms.replicas,
        )
        return work, dead

    def _consumer(self, pool: str, kind: str) -> api.ConsumerConfig:
        return api.ConsumerConfig(
            name=consumer(pool, kind),
            durable_name=consumer(pool, kind),
            description=f"penstock: tickets ({kind}) of pool {pool[:200]!r}",
            filter_subject=self.names.work(pool, kind),
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self.terms.ack_wait_s,
            max_deliver=self.terms.max_deliver,
            max_waiting=MOST_WAITING,
            max_ack_pending=MOST_UNACKED,
        )

    # ---- dead letters

    async def greet(self, client: Client) -> None:
        self.forget_ready()
        for kind in ("MAX_DELIVERIES", "MSG_TERMINATED"):
            subject = f"{ADVISORY}.{kind}.{self.names.work_stream}.*"
            await client.subscribe(subject, queue="servers", cb=self._advised)

    async def close(self) -> None:
        await end([task for task in (self._sending, *self._asides) if task is not None])

    async def _advised(self, message: Msg) -> None:
        """JetStream tells of a message that it will not deliver again. (It also does so of tickets that are taken out.)"""
        with suppress(ValueError):
            advice = json.loads(message.data)
            if advice.get("reason", NO_TICKET) == NO_TICKET:
                self._aside(self._bury(advice))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _bury(self, advice: dict[str, Any]) -> None:
        client = self._link.current
        if client is None:
            return
        js = client.jetstream(timeout=REQUEST_SECONDS)
        sequence, tries = int(advice.get("stream_seq", 0)), int(advice.get("deliveries", 0))
        ticket, data = Ticket("", "", "?"), b""
        with suppress(*NATS_ERRORS, Unreadable):
            data = (await js.get_msg(self.names.work_stream, seq=sequence)).data or b""
            ticket = read_ticket(data)
        self.dead += 1
        self._tell_of_dead(ticket, data, tries)
        with suppress(*NATS_ERRORS):
            headers = {"Penstock-Deliveries": str(tries), "Penstock-Consumer": str(advice.get("consumer", ""))}
            await js.publish(self.names.dead(ticket.pool), data, headers=headers)
        with suppress(*NATS_ERRORS):
            await js.delete_msg(self.names.work_stream, sequence)

    def _tell_of_dead(self, ticket: Ticket, data: bytes, tries: int) -> None:
        """Once in a while: where one is, there are often many."""
        now = asyncio.get_running_loop().time()
        self._untold[ticket.pool] += 1
        if now >= self._told_until.get(ticket.pool, 0.0):
            self._told_until[ticket.pool] = now + WARN_SECONDS
            count = self._untold.pop(ticket.pool)
            what = f"the ticket of `{ticket.key}` in pool `{ticket.pool}`" if data else "a message that is no ticket"
            self._warn(
                f"{what} was put aside after {tries} deliveries: no worker could use it, and what it stands for still waits"
                f" (dead letters since the last word of them: {count})"
            )


def _headers(name: str) -> dict[str, str]:
    return {api.Header.MSG_ID.value: name}


async def _keep_stream(js: JetStreamContext, config: api.StreamConfig) -> None:
    """The stream as it is to be, whether or not it is there."""
    try:
        await js.add_stream(config)
    except BadRequestError as error:
        if error.err_code != STREAM_IN_USE:
            raise
        with suppress(APIError):  # Some terms cannot be changed; the old ones will do.
            await js.update_stream(config)


# ---- A worker's turns: tickets that it orders from the work queue of its pool when it has found nothing to do.
# Law: a ticket is a call to look, and is answered for when the look is over: done with, or handed on to another worker. One
# that comes when nobody waits for it any more is handed on at once. Of each kind one order is out at a time, and it is the
# same to all who wait whose order has brought a ticket.

# So long an order stands, and so much later it is taken to be lost if nothing was heard of it.
ORDER_SECONDS, LATE_SECONDS = 5.0, 1.0
# How long JetStream may take to say that there is nothing.
ANSWER_SECONDS = 1.0
# A ticket that this worker cannot use is delivered again after so long: at first, and at most.
FIRST_DELAY, LONGEST_DELAY = 0.01, 30.0
OFTEN_TRIED = 10
# 503: no subscriber. 409: the consumer was deleted, or more wait than may.
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


class TicketConsumer:
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
        await client.subscribe(f"{self._inbox}.*", cb=self._received)

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
                with suppress(*NATS_ERRORS):  # A waiter that is not woken polls all the same.
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

    async def _received(self, message: Msg) -> None:
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
        """At once, to any waiter."""
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
