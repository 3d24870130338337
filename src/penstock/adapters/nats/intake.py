"""Dispatch over NATS: the worker's side. It knows NATS and nothing else of the fleet.

Law: a worker asks, and a server grants. It asks when it has room and once more when a ticket calls it; without a call it
asks at intervals, so that a lost ticket costs time and never work. What was granted to a call that nobody waits for any more
is given up; if that fails too, it expires.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar
from uuid import UUID, uuid4

from msgspec import MsgspecError
from msgspec.msgpack import decode
from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.msg import Msg

from penstock.adapters.dispatch import check_card, check_id, check_kind, next_token
from penstock.adapters.nats import wire
from penstock.adapters.nats.connection import NATS_ERRORS, Link, check_cancelled, end, send
from penstock.adapters.nats.queue import TicketConsumer
from penstock.adapters.nats.wire import VERSION
from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.dispatch import Command, Held, MessageKind, Pulse, WorkerCard

T = TypeVar("T")


# ---- Calls over NATS: a worker's letters to the servers, and their answers.
# Law: a letter is sent until it is answered or the patience runs out, each time with the same token and the same reply
# address; so an answer to any of the tries will do. A server that answers is asked again as long as it does. When one does
# not, the first server that returns a greeting is asked: a frozen server costs a worker one wait, and not every second one.


PATIENCE_SECONDS = 60.0
# How long a try waits for its answer: the first one, and the longest.
FIRST_TRY, LONGEST_TRY = 2.0, 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
# How long a worker stays with one server. Servers that were added since get their share of the workers over time.
SERVER_SECONDS = 60.0
# How long the others have after the first server has returned a greeting.
GREETING_SECONDS = 0.01
# How many calls are remembered after their end, for late answers.
LATE_CALLS = 256


class Nobody(Exception):
    """No server listens."""


class Cut(Exception):
    """The connection was lost while waiting for an answer."""


@dataclass(slots=True)
class Call:
    number: int
    answer: asyncio.Future[bytes]
    late: Callable[[bytes | None, bytes], None] | None = None
    first: bytes | None = None
    """The answer that counts."""
    parts: wire.Parts = field(default_factory=wire.Parts)


class Calls:
    def __init__(self, names: wire.Names, patience_s: float = PATIENCE_SECONDS) -> None:
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
        """Whether the last server that was asked failed to answer in time."""
        self.is_alone = False
        """Whether, according to the last reply, no server listens."""

    async def greet(self, client: Client) -> None:
        await client.subscribe(f"{self._inbox}.*", cb=self._received)

    def lost(self) -> None:
        """The connection was lost: whatever waits for an answer is sent again."""
        for call in self._calls.values():
            _fail(call.answer, Cut())
        for greetings in self._greetings.values():
            greetings.put_nowait(b"")

    async def ask(
        self, link: Link, request: wire.Request, kind: type[T], late: Callable[[T | None, T], None] | None = None
    ) -> T:
        """A server's answer. `late(first, other)` is given the answers that come after that; there is no `first` if the
        patience ran out before."""

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

    async def _patiently(self, link: Link, request: wire.Request, call: Call, kind: type[T]) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        pause, wait_s, is_repeated = FIRST_PAUSE, FIRST_TRY, False
        while True:
            client = await link.client(deadline)
            try:
                left = deadline - loop.time()
                data = await self._once(client, wire.Letter(VERSION, is_repeated, request), call, min(wait_s, left))
                answer = wire.read_answer(data)
            except (Nobody, Cut, wire.Unreadable, *NATS_ERRORS) as error:
                self._is_wary = isinstance(error, TimeoutError)
                if self._is_wary:
                    self._avoid()
                self._server = None
                # A request without a subscriber was not carried out.
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

    async def _once(self, client: Client, letter: wire.Letter, call: Call, wait_s: float) -> bytes:
        self._begin(call)
        messages = list(wire.frames(wire.packed(letter), client.max_payload))
        if self._address() == self._names.rpc and (len(messages) > 1 or self._is_wary):
            await self._meet(client, wait_s)
        address, reply = self._address(), f"{self._inbox}.{call.number}"
        for message in messages:
            await send(client, address, message, reply)
        async with asyncio.timeout(wait_s):
            return await asyncio.shield(call.answer)

    def _begin(self, call: Call) -> None:
        """An answer that has come since the last try is as good as a future one."""
        if call.answer.done() and (call.answer.cancelled() or call.answer.exception() is not None):
            call.answer = asyncio.get_running_loop().create_future()

    async def _meet(self, client: Client, wait_s: float) -> None:
        """Find a responsive server: for a letter in parts, which all go to one server, and after one did not answer."""
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
        """The preferred server has not answered: it may be alive but cut off from its store."""
        now = asyncio.get_running_loop().time()
        self._avoided = {one: until for one, until in self._avoided.items() if until > now}
        if self._server is not None:
            self._avoided[self._server] = now + SERVER_SECONDS

    def _address(self) -> str:
        if self._server is None or asyncio.get_running_loop().time() > self._kept_until:
            return self._names.rpc
        return self._server

    def _keep_to(self, server: str) -> None:
        self.is_alone = False
        if self._address() != server:
            self._server = server
            self._kept_until = asyncio.get_running_loop().time() + SERVER_SECONDS

    async def _received(self, message: Msg) -> None:
        number = int(message.subject.rpartition(".")[2])
        if number in self._greetings:
            self._greetings[number].put_nowait(message.data)
            return
        call = self._calls.get(number)
        if not message.data:
            # NATS itself replies like this if a subject has no subscriber.
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
        except (wire.Unreadable, Refused, Unavailable):
            return  # The next attempt, if there is one, reports the error.


def _greeter(greeting: bytes) -> str:
    whole = wire.Parts().add(greeting) if greeting else None
    if whole is None:
        raise Nobody
    return wire.read_answer(whole).server


def _fail(answer: asyncio.Future[bytes], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _read(data: bytes, kind: type[T]) -> T:
    return _opened(wire.read_answer(data), kind)


def _opened(answer: wire.Answer, kind: type[T]) -> T:
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
# Law: what is said under a lease is sent in order, each message once the last has been answered. It is carried to its end
# even if its sender has stopped waiting.

MOST_CALLS = 256
MOST_BYTES = 8_000_000

Send = Callable[[wire.SayingAll], Awaitable[list[bool | wire.Problem]]]


@dataclass(slots=True)
class QueuedReport:
    saying: wire.Saying
    answer: asyncio.Future[bool]

    @property
    def size(self) -> int:
        return sum(map(len, self.saying.bodies))


class ReportQueue:
    def __init__(self, send: Send) -> None:
        self._send_all = send
        self._queue: deque[QueuedReport] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def say(self, saying: wire.Saying) -> bool:
        queued = QueuedReport(saying, asyncio.get_running_loop().create_future())
        self._queue.append(queued)
        if not self.tasks:
            self._sending = asyncio.ensure_future(self._send())
        return await queued.answer

    @property
    def tasks(self) -> set[asyncio.Future[None]]:
        """What is under way."""
        return set() if self._sending is None or self._sending.done() else {self._sending}

    async def close(self) -> None:
        if self._sending is not None:
            await end({self._sending})
        for queued in self._queue:
            _answer(queued, Unavailable("the connection was closed before this was sent"))

    async def _send(self) -> None:
        while self._queue:
            batch = self._next()
            if not batch:
                continue
            try:
                answers = await self._send_all(wire.SayingAll([queued.saying for queued in batch]))
            except PenstockError as error:
                for queued in batch:
                    _answer(queued, error)
                continue
            except asyncio.CancelledError:
                for queued in batch:
                    _answer(queued, Unavailable("the connection was closed before this was answered"))
                raise
            for queued, answer in zip(batch, answers, strict=True):
                _answer(queued, answer)

    def _next(self) -> list[QueuedReport]:
        """The longest prefix of the queue in which no lease occurs twice."""
        batch: list[QueuedReport] = []
        keys: set[str] = set()
        size = 0
        while self._queue and len(batch) < MOST_CALLS and size < MOST_BYTES and self._queue[0].saying.key not in keys:
            queued = self._queue.popleft()
            if not queued.answer.done():  # otherwise it was cancelled before it was sent
                batch.append(queued)
                keys.add(queued.saying.key)
                size += queued.size
        return batch


def _answer(queued: QueuedReport, answer: bool | wire.Problem | PenstockError) -> None:
    if queued.answer.done():
        return
    if isinstance(answer, wire.Problem):
        answer = (Refused if answer.is_refused else Unavailable)(answer.message, answer.hint)
    if isinstance(answer, PenstockError):
        queued.answer.set_exception(answer)
    else:
        queued.answer.set_result(answer)


# How often a worker asks without being called: normally, and while tickets are unavailable.
SELDOM_SECONDS = 2.0
OFTEN_SECONDS = 0.25
TOLD_SECONDS = 5.0
# How many tickets for work that others have taken are cleared away at a time.
MOST_TICKETS = 256
# For how many leases an unanswered last report is remembered; most of them will have been lost.
MOST_DOUBTFUL = 1000
# While a server is slow, tickets are kept from being delivered again.
KEEP_SECONDS = 1.5
CLOSING_SECONDS, CLOSING_PAUSE = 5.0, 0.02


@dataclass(frozen=True, slots=True)
class Bid:
    """What one `take` asks for."""

    worker: str
    pool: str
    room: int
    ranges: int

    @property
    def kinds(self) -> tuple[str, ...]:
        return wire.KINDS if self.ranges > 0 else (wire.STEP,)


class NatsIntake:
    def __init__(self, url: str, prefix: str = wire.PREFIX, *, patience_s: float = PATIENCE_SECONDS) -> None:
        self._names = wire.Names(prefix)
        self._calls = Calls(self._names, patience_s)
        self._link = Link(url, "a worker of the fleet", self._greet, lost=self._lost)
        self._consumer = TicketConsumer(self._names, self._link)
        self._reports = ReportQueue(self._send_said)
        self._cards: dict[str, WorkerCard] = {}
        self._events: dict[str, asyncio.Event] = {}
        """Worker -> set when there may be commands for it."""
        self._doubtful: dict[tuple[str, str, int], wire.Saying] = {}
        """What holders said without getting an answer."""
        self._closing = asyncio.Event()
        self._asides: set[asyncio.Future[Any]] = set()

    # ---- who works

    async def enlist(self, card: WorkerCard) -> None:
        check_card(card)
        await self._ask(wire.Enlisting(card), type(None))
        self._cards[card.id] = card

    async def retire(self, worker: str) -> None:
        await self._ask(wire.Retiring(worker), type(None))
        self._cards.pop(worker, None)

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        return await self._ask(wire.Beating(worker, dict(pulses), draining), frozenset[str])

    async def is_pressed(self, worker: str) -> bool:
        return await self._ask(wire.AskingPressure(worker), bool)

    async def now(self) -> float:
        return await self._ask(wire.AskingTime(), float)

    # ---- taking

    async def take(self, worker: str, room: int, ranges: int, wait_s: float) -> list[Held]:
        check_id("a worker's `id`", worker)
        self._link.check_open()
        if room <= 0:
            return []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        card = self._cards.get(worker)
        bid = Bid(worker, card.pool if card is not None else "", room, max(ranges, 0))
        tickets: list[Msg] = []
        while True:
            check_cancelled()
            granted = await self._claim(bid, tickets)
            left = deadline - loop.time()
            if granted.leases or left <= 0:
                return granted.leases
            if tickets and not granted.has_more:
                # There may be more tickets for what others have taken: one look serves for all of them.
                tickets = await self._sorted(bid, await self._consumer.more(bid.pool, bid.kinds, MOST_TICKETS))
                if tickets:
                    continue
            tickets = await self._called(bid, min(left, OFTEN_SECONDS if self._consumer.is_deaf else SELDOM_SECONDS))
            if self._closing.is_set():
                await self._consumer.hand_on(tickets)
                return []

    async def _called(self, bid: Bid, wait_s: float) -> list[Msg]:
        """Tickets, as soon as there is one; nothing after `wait_s`, or when this intake is closed."""
        if not bid.pool:
            await self._pause(wait_s)
            return []
        if self._link.current is None:  # No message announces its return: waiters poll often.
            await self._pause(min(wait_s, OFTEN_SECONDS))
            return []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (left := deadline - loop.time()) > 0 and not self._closing.is_set():
            pulled = await self._until_closed(self._consumer.wait(bid.pool, bid.kinds, left))
            tickets = await self._sorted(bid, pulled or [])
            if tickets:
                return tickets
            if self._consumer.is_deaf:
                await self._pause(min(deadline - loop.time(), OFTEN_SECONDS))
                return []
        return []

    async def _sorted(self, bid: Bid, pulled: list[tuple[Msg, wire.Ticket]]) -> list[Msg]:
        """Tickets for what this worker can do; the others are for others."""
        card = self._cards.get(bid.worker)
        can = card.can if card is not None else frozenset[str]()
        await self._consumer.put_off(message for message, ticket in pulled if not ticket.needs <= can)
        return [message for message, ticket in pulled if ticket.needs <= can]

    async def _claim(self, bid: Bid, tickets: list[Msg]) -> wire.Granted:
        """Ask for work, and answer for the tickets in hand."""
        token = next_token()
        asked = wire.Claiming(bid.worker, bid.pool, bid.room, bid.ranges, token, len(tickets), self._consumer.is_deaf)

        def late(first: wire.Granted | None, other: wire.Granted) -> None:
            """Two servers have carried out one request."""
            known = set() if first is None else {(held.key, held.attempt) for held in first.leases}
            extra = [held for held in other.leases if (held.key, held.attempt) not in known]
            self._aside(self._give_up(bid, token, extra))

        claiming = self._aside(self._ask(asked, wire.Granted, late))
        try:
            granted = await self._while_kept(claiming, tickets)
        except asyncio.CancelledError:
            self._aside(self._hand_back(bid, token, claiming, tickets))
            raise
        except Refused:
            if self._closing.is_set():
                return wire.Granted([], False)
            raise
        # The tickets of a failed call are left as they are: another worker, which may reach a server, gets them.
        await self._answer_for(tickets, granted, bid)
        return granted

    async def _while_kept(self, claiming: asyncio.Future[wire.Granted], tickets: list[Msg]) -> wire.Granted:
        while True:
            done, _ = await asyncio.wait({claiming}, timeout=KEEP_SECONDS if tickets else None)
            if done:
                return claiming.result()
            if not self._calls.is_alone:
                await self._consumer.keep(tickets)

    async def _answer_for(self, tickets: list[Msg], granted: wire.Granted, bid: Bid) -> None:
        """As many tickets are finished as there are leases; or all, if nothing is left that they could stand for."""
        count = len(granted.leases)
        if count >= bid.room:
            await self._consumer.done(tickets[:count])
            await self._consumer.hand_on(tickets[count:])
        elif granted.has_more:
            await self._consumer.done(tickets[:count])
            await self._consumer.try_later(tickets[count:])
        else:
            await self._consumer.done(tickets)

    async def _hand_back(
        self, bid: Bid, token: UUID, claiming: asyncio.Future[wire.Granted], tickets: list[Msg]
    ) -> None:
        await self._consumer.hand_on(tickets)
        await self._give_up(bid, token, (await claiming).leases)

    async def _give_up(self, bid: Bid, token: UUID, leases: Sequence[Held]) -> None:
        if leases:
            await self._ask(wire.GivingUp(bid.worker, bid.pool, token, [held.key for held in leases]), type(None))

    # ---- speaking and being spoken to

    async def say(self, worker: str, key: str, attempt: int, kind: MessageKind, bodies: Sequence[bytes]) -> bool:
        check_kind(kind)
        self._link.check_open()
        lease = (worker, key, attempt)
        saying = wire.Saying(worker, key, attempt, kind, list(bodies), next_token())
        last = self._doubtful.pop(lease, None)
        if last is not None and (last.kind, last.bodies) == (saying.kind, saying.bodies):
            # It is not known whether it was stored; so this is the same call, and not the same message a second time.
            saying = last
        try:
            return await self._reports.say(saying)
        except Unavailable:
            self._doubtful[lease] = replace(saying, is_repeated=True)
            if len(self._doubtful) > MOST_DOUBTFUL:
                del self._doubtful[next(iter(self._doubtful))]
            raise

    async def _send_said(self, reports: wire.SayingAll) -> list[bool | wire.Problem]:
        return await self._ask(reports, list[bool | wire.Problem])

    async def commands(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Command]:
        self._link.check_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        event = await self._event(worker)
        while True:
            check_cancelled()
            event.clear()
            found = await self._ask(wire.Listening(worker, list(seen)), list[Command])
            left = deadline - loop.time()
            if found or left <= 0 or self._closing.is_set():
                return found
            await self._until_closed(event.wait(), min(left, TOLD_SECONDS))
            if self._closing.is_set():
                return []

    async def _event(self, worker: str) -> asyncio.Event:
        event = self._events.get(worker)
        if event is None:
            event = self._events[worker] = asyncio.Event()
            if (client := self._link.current) is not None:
                await self._listen(client, worker, event)
        return event

    async def _listen(self, client: Client, worker: str, event: asyncio.Event) -> None:
        async def notify(_: Msg) -> None:
            event.set()

        await client.subscribe(self._names.commands(worker), cb=notify)
        check_cancelled()

    # ---- the link

    async def close(self) -> None:
        self._closing.set()
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while (tasks := self._asides | self._reports.tasks) and self._has_hope(deadline):
            await asyncio.wait(tasks, timeout=CLOSING_PAUSE)
        await self._reports.close()
        await end(list(self._asides))
        await self._link.close()

    def _has_hope(self, deadline: float) -> bool:
        """Whether what is under way may still succeed."""
        is_time_left = asyncio.get_running_loop().time() < deadline
        return is_time_left and self._link.current is not None and not self._calls.is_alone

    async def _greet(self, client: Client) -> None:
        await self._calls.greet(client)
        await self._consumer.greet(client)
        for worker, event in self._events.items():
            await self._listen(client, worker, event)
            event.set()

    def _lost(self) -> None:
        self._calls.lost()
        self._consumer.lost()

    async def _ask(self, request: wire.Request, kind: type[T], late: Callable[[T | None, T], None] | None = None) -> T:
        return await self._calls.ask(self._link, request, kind, late)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._closing.wait()

    async def _until_closed(self, work: Coroutine[Any, Any, T], wait_s: float | None = None) -> T | None:
        """The result of `work`; None if it took longer, or this intake was closed before."""
        task, closing = asyncio.ensure_future(work), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({task, closing}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            await end({task, closing})

    def _aside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs to its end even if its caller has stopped waiting."""
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Future[Any]) -> None:
        self._asides.discard(task)
        if not task.cancelled():
            task.exception()  # There is nobody to report it to. What was granted will expire.
