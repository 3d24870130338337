"""Dispatch over NATS: the worker's side. It knows NATS and nothing else of the fleet.

Law: a worker asks, and a server grants. It asks when it has room and once more when it is called by a ticket; without a call it
asks now and then, so that a ticket that was lost costs time and never work. What was granted to a call that nobody waits for any
more is given up; if that fails too, it runs out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.msg import Msg

from penstock.adapters.dispatch import check_card, check_id, check_kind, next_token
from penstock.adapters.nats.calls import PATIENCE_SECONDS, Calls, Says
from penstock.adapters.nats.connection import Link, check_cancelled, end
from penstock.adapters.nats.queue import Turns
from penstock.adapters.nats.wire import (
    KINDS,
    PREFIX,
    STEP,
    AskingPressure,
    AskingTime,
    Beating,
    Claiming,
    Enlisting,
    GivingUp,
    Granted,
    Listening,
    Names,
    Problem,
    Request,
    Retiring,
    Saying,
    SayingAll,
    Ticket,
)
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.dispatch import Held, NoteKind, Pulse, Told, WorkerCard

T = TypeVar("T")

# How often a worker asks without being called: while all is well, and while tickets cannot be had.
SELDOM_SECONDS = 2.0
OFTEN_SECONDS = 0.25
TOLD_SECONDS = 5.0
# Tickets of work that others have taken meanwhile are cleared away so many at a time.
MOST_TICKETS = 256
# Of so many leases the last word is remembered that was not answered; most of them will have been lost.
MOST_DOUBTFUL = 1000
# While a server takes its time, tickets are kept from being delivered again.
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
        return KINDS if self.ranges > 0 else (STEP,)


class NatsIntake:
    def __init__(self, url: str, prefix: str = PREFIX, *, patience_s: float = PATIENCE_SECONDS) -> None:
        self._names = Names(prefix)
        self._calls = Calls(self._names, patience_s)
        self._link = Link(url, "a worker of the fleet", self._greet, lost=self._lost)
        self._turns = Turns(self._names, self._link)
        self._says = Says(self._send_said)
        self._cards: dict[str, WorkerCard] = {}
        self._bells: dict[str, asyncio.Event] = {}
        """Worker -> there may be something to be told."""
        self._doubtful: dict[tuple[str, str, int], Saying] = {}
        """What holders said when there was no answer."""
        self._closing = asyncio.Event()
        self._asides: set[asyncio.Future[Any]] = set()

    # ---- who works

    async def enlist(self, card: WorkerCard) -> None:
        check_card(card)
        await self._ask(Enlisting(card), type(None))
        self._cards[card.id] = card

    async def retire(self, worker: str) -> None:
        await self._ask(Retiring(worker), type(None))
        self._cards.pop(worker, None)

    async def beat(self, worker: str, pulses: Mapping[str, Pulse], *, draining: bool = False) -> frozenset[str]:
        return await self._ask(Beating(worker, dict(pulses), draining), frozenset[str])

    async def is_pressed(self, worker: str) -> bool:
        return await self._ask(AskingPressure(worker), bool)

    async def now(self) -> float:
        return await self._ask(AskingTime(), float)

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
                # There may be more tickets for what others have taken: one look will do for all of them.
                tickets = await self._sorted(bid, await self._turns.more(bid.pool, bid.kinds, MOST_TICKETS))
                if tickets:
                    continue
            tickets = await self._called(bid, min(left, OFTEN_SECONDS if self._turns.is_deaf else SELDOM_SECONDS))
            if self._closing.is_set():
                await self._turns.hand_on(tickets)
                return []

    async def _called(self, bid: Bid, wait_s: float) -> list[Msg]:
        """Tickets, as soon as there is one; nothing after so long, or when this end is closed."""
        if not bid.pool:
            await self._pause(wait_s)
            return []
        if self._link.current is None:  # Nobody says when it is back: whoever waits looks again soon.
            await self._pause(min(wait_s, OFTEN_SECONDS))
            return []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (left := deadline - loop.time()) > 0 and not self._closing.is_set():
            pulled = await self._until_closed(self._turns.wait(bid.pool, bid.kinds, left))
            tickets = await self._sorted(bid, pulled or [])
            if tickets:
                return tickets
            if self._turns.is_deaf:
                await self._pause(min(deadline - loop.time(), OFTEN_SECONDS))
                return []
        return []

    async def _sorted(self, bid: Bid, pulled: list[tuple[Msg, Ticket]]) -> list[Msg]:
        """Tickets for what this worker can do; the others are for others."""
        card = self._cards.get(bid.worker)
        can = card.can if card is not None else frozenset[str]()
        await self._turns.put_off(message for message, ticket in pulled if not ticket.needs <= can)
        return [message for message, ticket in pulled if ticket.needs <= can]

    async def _claim(self, bid: Bid, tickets: list[Msg]) -> Granted:
        """Ask for work, and answer for the tickets in hand."""
        token = next_token()
        asked = Claiming(bid.worker, bid.pool, bid.room, bid.ranges, token, len(tickets), self._turns.is_deaf)

        def late(first: Granted | None, other: Granted) -> None:
            """Two servers have carried out what was asked once."""
            known = set() if first is None else {(held.key, held.attempt) for held in first.leases}
            extra = [held for held in other.leases if (held.key, held.attempt) not in known]
            self._aside(self._give_up(bid, token, extra))

        claiming = self._aside(self._ask(asked, Granted, late))
        try:
            granted = await self._while_kept(claiming, tickets)
        except asyncio.CancelledError:
            self._aside(self._hand_back(bid, token, claiming, tickets))
            raise
        except Refused:
            if self._closing.is_set():
                return Granted([], False)
            raise
        # Of a call that failed the tickets are left as they are: somebody else gets them, who perhaps reaches a server.
        await self._answer_for(tickets, granted, bid)
        return granted

    async def _while_kept(self, claiming: asyncio.Future[Granted], tickets: list[Msg]) -> Granted:
        while True:
            done, _ = await asyncio.wait({claiming}, timeout=KEEP_SECONDS if tickets else None)
            if done:
                return claiming.result()
            if not self._calls.is_alone:
                await self._turns.keep(tickets)

    async def _answer_for(self, tickets: list[Msg], granted: Granted, bid: Bid) -> None:
        """As many tickets are done with as there are leases; or all, when nothing is left that they could stand for."""
        count = len(granted.leases)
        if count >= bid.room:
            await self._turns.done(tickets[:count])
            await self._turns.hand_on(tickets[count:])
        elif granted.has_more:
            await self._turns.done(tickets[:count])
            await self._turns.try_later(tickets[count:])
        else:
            await self._turns.done(tickets)

    async def _hand_back(self, bid: Bid, token: UUID, claiming: asyncio.Future[Granted], tickets: list[Msg]) -> None:
        await self._turns.hand_on(tickets)
        await self._give_up(bid, token, (await claiming).leases)

    async def _give_up(self, bid: Bid, token: UUID, leases: Sequence[Held]) -> None:
        if leases:
            await self._ask(GivingUp(bid.worker, bid.pool, token, [held.key for held in leases]), type(None))

    # ---- speaking and being spoken to

    async def say(self, worker: str, key: str, attempt: int, kind: NoteKind, bodies: Sequence[bytes]) -> bool:
        check_kind(kind)
        self._link.check_open()
        lease = (worker, key, attempt)
        saying = Saying(worker, key, attempt, kind, list(bodies), next_token())
        last = self._doubtful.pop(lease, None)
        if last is not None and (last.kind, last.bodies) == (saying.kind, saying.bodies):
            # Nobody knows whether it was kept; so this is the same call, and not the same words a second time.
            saying = last
        try:
            return await self._says.say(saying)
        except Unavailable:
            self._doubtful[lease] = replace(saying, is_repeated=True)
            if len(self._doubtful) > MOST_DOUBTFUL:
                del self._doubtful[next(iter(self._doubtful))]
            raise

    async def _send_said(self, said: SayingAll) -> list[bool | Problem]:
        return await self._ask(said, list[bool | Problem])

    async def told(self, worker: str, wait_s: float, seen: Collection[int] = ()) -> list[Told]:
        self._link.check_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        bell = await self._bell(worker)
        while True:
            check_cancelled()
            bell.clear()
            found = await self._ask(Listening(worker, list(seen)), list[Told])
            left = deadline - loop.time()
            if found or left <= 0 or self._closing.is_set():
                return found
            await self._until_closed(bell.wait(), min(left, TOLD_SECONDS))
            if self._closing.is_set():
                return []

    async def _bell(self, worker: str) -> asyncio.Event:
        bell = self._bells.get(worker)
        if bell is None:
            bell = self._bells[worker] = asyncio.Event()
            if (client := self._link.current) is not None:
                await self._listen(client, worker, bell)
        return bell

    async def _listen(self, client: Client, worker: str, bell: asyncio.Event) -> None:
        async def ring(_: Msg) -> None:
            bell.set()

        await client.subscribe(self._names.told(worker), cb=ring)
        check_cancelled()

    # ---- the link

    async def close(self) -> None:
        self._closing.set()
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while (tasks := self._asides | self._says.tasks) and self._has_hope(deadline):
            await asyncio.wait(tasks, timeout=CLOSING_PAUSE)
        await self._says.close()
        await end(list(self._asides))
        await self._link.close()

    def _has_hope(self, deadline: float) -> bool:
        """That what is under way comes to its end."""
        is_time_left = asyncio.get_running_loop().time() < deadline
        return is_time_left and self._link.current is not None and not self._calls.is_alone

    async def _greet(self, client: Client) -> None:
        await self._calls.greet(client)
        await self._turns.greet(client)
        for worker, bell in self._bells.items():
            await self._listen(client, worker, bell)
            bell.set()

    def _lost(self) -> None:
        self._calls.lost()
        self._turns.lost()

    async def _ask(self, request: Request, kind: type[T], late: Callable[[T | None, T], None] | None = None) -> T:
        return await self._calls.ask(self._link, request, kind, late)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._closing.wait()

    async def _until_closed(self, work: Coroutine[Any, Any, T], wait_s: float | None = None) -> T | None:
        """What `work` gives; None when it took longer, or this end was closed before."""
        task, closing = asyncio.ensure_future(work), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({task, closing}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            await end({task, closing})

    def _aside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Something that is carried to its end even if nobody waits for it any more."""
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Future[Any]) -> None:
        self._asides.discard(task)
        if not task.cancelled():
            task.exception()  # Nobody is there to be told. What was granted runs out in its time.
