"""Dispatch over NATS: the server's side, for fleets whose workers hold no connection to the database.

Law: NATS is only a transport, and holds nothing that matters. Every call is carried out on the store behind it, which is the same
for all servers; so any server answers any worker, and NATS may lose all its data without a lease being lost or counted twice.
(The worker's side is `intake`.)

What goes over NATS, for the prefix `penstock`:

    penstock.rpc            letters of workers; one of the listening servers answers
    penstock.rpc.SERVER     letters to that server
    penstock.hello          every server that is awake returns the greeting
    penstock.told.WORKER    there are commands for this worker
    penstock.work.POOL.*    tickets (`step`, `range`), in the work-queue stream `penstock_WORK`, a consumer for each subject
    penstock.dead.POOL      tickets that nobody could use, in the stream `penstock_DEAD`

A worker needs to publish to `penstock.rpc`, `penstock.rpc.*`, `penstock.hello`, `$JS.API.CONSUMER.MSG.NEXT.penstock_WORK.*` and
`$JS.ACK.penstock_WORK.>`, and to subscribe to `_INBOX.>` and `penstock.told.*`. Every client that may is a worker of this fleet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec import Raw
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError
from nats.js.errors import NotFoundError

from penstock.adapters.dispatch import RelayedDispatch, RelayedIntake
from penstock.adapters.nats import wire
from penstock.adapters.nats.connection import NATS_ERRORS, Link, end, send
from penstock.adapters.nats.queue import REQUEST_SECONDS, QueueTerms, WorkQueue
from penstock.kernel.errors import PenstockError, Refused
from penstock.ports.dispatch import Dispatch, LeaseSeen, Message, Offer, WorkerSeen

# ---- Answering letters that come over NATS: the server's half of a call.
# Law: a letter is carried out at most once at a time here; one that comes again while it is being carried out shares the
# answer, and one that comes later is carried out as a repeated one. An answer that cannot be sent is not waited for: the
# letter will come again.

QUEUE = "servers"
# Maximum number of letters carried out at a time; the others come again.
MOST_LETTERS = 4096
# The parts received of letters that are not complete yet.
MOST_BYTES = 512_000_000
PARTS_SECONDS = 30.0
CLOSING_SECONDS, CLOSING_PAUSE = 5.0, 0.02

Handler = Callable[[wire.Request, bool], Awaitable[Any]]


@dataclass(slots=True)
class Gathering:
    until: float
    parts: wire.Parts = field(default_factory=wire.Parts)


class RelayServer:
    def __init__(self, names: wire.Names, name: str, carry_out: Handler) -> None:
        """`carry_out(request, is_repeated)` returns the value of the answer."""
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

        (hello,) = wire.frames(
            wire.packed(wire.Answer(self._address, None, Raw(wire.packed(None)))), client.max_payload
        )
        self._client = client
        self._subscriptions = [
            await client.subscribe(self._names.rpc, queue=QUEUE, cb=asked),
            await client.subscribe(self._names.hello, cb=greeted),
            await client.subscribe(self._address, cb=asked),
        ]

    async def close(self) -> None:
        """Letters go to other servers from now on; those already here are answered."""
        self._is_leaving = True
        await self._drain()
        self._is_closing = True
        running = set(self._running.values())
        if running:
            _, late = await asyncio.wait(running, timeout=CLOSING_SECONDS)
            await end(late)

    async def _drain(self) -> None:
        """Drain only while connected: the client would wait for an answer on a connection that is gone."""
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
        except wire.Unreadable:
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
        answer = wire.packed(await self._answer_to(data))
        client = link.current
        if client is None:
            return
        with suppress(*NATS_ERRORS):
            for frame in wire.frames(answer, client.max_payload):
                await client.publish(reply, frame)
        self.answered += 1

    async def _answer_to(self, data: bytes) -> wire.Answer:
        try:
            letter = _letter(data)
            self.repeated += letter.is_repeated
            value = await self._carry_out(letter.request, letter.is_repeated)
        except PenstockError as error:
            problem = wire.Problem(isinstance(error, Refused), error.message, error.hint)
            return wire.Answer(self._address, problem, Raw(wire.packed(None)))
        return wire.Answer(self._address, None, Raw(wire.packed(value)))


def _letter(data: bytes) -> wire.Letter:
    try:
        letter = wire.read_letter(data)
    except wire.Unreadable as error:
        raise _strange(str(error)) from error
    if letter.version != wire.VERSION:
        raise _strange(f"it speaks version {letter.version}, and this server version {wire.VERSION}")
    return letter


def _strange(why: str) -> Refused:
    return Refused(f"the server does not understand the worker: {why}", "run workers and servers of the same version")


# ---- Keeping the work queue level with the store: as many tickets as offers that wait, and a consumer that hands them out.
# Law: the store says what waits; the queue follows. Tickets that JetStream lost are put in again, excess ones are removed,
# and a consumer that delivers nothing although workers ask and tickets are there is recreated, with a warning.

# Maximum number of tickets put in again at a time.
MOST_AGAIN = 256


class Seen(NamedTuple):
    """The observed state of a consumer."""

    idle: int = 0
    """Workers that wait for a ticket."""
    pending: int = 0
    """Tickets that have not been delivered."""
    delivered: int = 0
    """The number of the last delivery."""


class Watch:
    def __init__(
        self, dispatch: Dispatch, link: Link, queue: WorkQueue, level_s: float, warn: Callable[[str], None]
    ) -> None:
        self._dispatch = dispatch
        self._link = link
        self._queue = queue
        self._level_s = level_s
        self._warn = warn
        self._short: set[str] = set()
        self._still: dict[str, tuple[int, float]] = {}
        """Consumer -> its last delivery, and when it was first seen without another."""
        self._missed = ""
        self.put_again = 0
        self.taken_out = 0
        self.made_anew = 0

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(self._level_s)
            client = self._link.current
            if client is None:
                self._miss("NATS", f"{self._link.unavailable().message}; workers wait for it")
                continue
            try:
                await self._link.carry(self.look(client))
                self._missed = ""
            except (NotFoundError, ConnectionClosedError):
                continue  # Something went away between two requests: the next look shows what.
            except NATS_ERRORS as error:
                self._queue.forget_ready()
                self._miss("JetStream", f"JetStream cannot be used, and workers are slower to find work: {error}")
            except PenstockError:
                continue  # The callers of the store get its errors.

    def _miss(self, what: str, words: str) -> None:
        """Logged once for each outage."""
        if self._missed != what:
            self._warn(words)
        self._missed = what

    async def look(self, client: Client) -> None:
        waiting = dict(await self._dispatch.waiting())
        pools = self._queue.known | waiting.keys()
        if not pools:
            return
        tickets = await self._tickets(client, pools)
        for pool in pools:
            await self._level(client, pool, waiting.get(pool, 0), tickets)

    async def _tickets(self, client: Client, pools: set[str]) -> dict[str, int]:
        """How many tickets there are, by subject."""
        js = client.jetstream(timeout=REQUEST_SECONDS)
        names = self._queue.names
        try:
            info = await js.stream_info(names.work_stream, subjects_filter=names.all_work)
        except NotFoundError:
            self._warn_if_gone("stream", names.work_stream)
            self._queue.forget_ready()
            await self._queue.make_ready(client, pools)
            return {}
        return info.state.subjects or {}

    async def _level(self, client: Client, pool: str, waiting: int, tickets: dict[str, int]) -> None:
        """Keep no more tickets than offers; and while offers wait, one ticket for each worker that waits for one."""
        names, js = self._queue.names, client.jetstream(timeout=REQUEST_SECONDS)
        for kind in wire.KINDS:
            found = tickets.get(names.work(pool, kind), 0)
            if found > waiting:
                await js.purge_stream(names.work_stream, subject=names.work(pool, kind), keep=waiting)
                self.taken_out += found - waiting
        lack = 0
        if waiting:
            seen = [await self._look_at(client, pool, kind) for kind in wire.KINDS]
            lack = min(waiting, max(one.idle for one in seen)) - sum(one.pending for one in seen)
        if lack > 0 and pool in self._short:
            await self._put_again(pool, min(lack, MOST_AGAIN))
        elif lack > 0:  # A difference seen only once may be tickets in transit.
            self._short.add(pool)
        else:
            self._short.discard(pool)

    def _warn_if_gone(self, what: str, name: str) -> None:
        """Says nothing of what was never there: it is made when the first ticket or worker comes, perhaps at this moment."""
        if name in self._queue.made:
            self._warn(f"the {what} `{name}` is gone from NATS, and is made again")

    async def _put_again(self, pool: str, count: int) -> None:
        leases = await self._dispatch.leases(limit=4 * MOST_AGAIN)
        named = [
            wire.Ticket(one.key, one.execution_id, pool) for one in leases if one.worker is None and one.pool == pool
        ]
        named = named[:count] + [wire.Ticket("", "", pool)] * (count - len(named))
        # Several servers find the same at about the same time.
        moment = int(await self._dispatch.now() / max(self._level_s, 0.001))
        self._queue.put(named, f"again.{wire.plain(pool)}.{moment}")
        self.put_again += count

    async def _look_at(self, client: Client, pool: str, kind: str) -> Seen:
        js = client.jetstream(timeout=REQUEST_SECONDS)
        name = wire.consumer(pool, kind)
        try:
            info = await js.consumer_info(self._queue.names.work_stream, name)
        except NotFoundError:
            self._warn_if_gone("consumer", name)
            self._queue.forget_ready()
            await self._queue.make_ready(client, {pool})
            return Seen()
        delivered = info.delivered.consumer_seq if info.delivered else 0
        seen = Seen(info.num_waiting or 0, info.num_pending or 0, delivered)
        if self._has_stalled(name, seen):
            self.made_anew += 1
            self._warn(f"the consumer `{name}` hands out nothing though workers ask; it is made anew")
            await self._queue.make_anew(client, pool, kind)
        return seen

    def _has_stalled(self, name: str, seen: Seen) -> bool:
        """Whether workers and tickets wait, but nothing has been delivered for a long time."""
        now = asyncio.get_running_loop().time()
        delivered, since = self._still.get(name, (-1, now))
        if delivered != seen.delivered or not seen.idle or not seen.pending:
            self._still[name] = (seen.delivered, now)
            return False
        if now - since <= 2 * self._queue.terms.ack_wait_s:
            return False
        del self._still[name]
        return True


LEVEL_SECONDS = 1.0
READY_SECONDS = 15.0

_log = logging.getLogger(__name__)


class NatsDispatch:
    def __init__(
        self,
        dispatch: RelayedDispatch,
        intake: RelayedIntake,
        url: str,
        prefix: str = wire.PREFIX,
        *,
        terms: QueueTerms | None = None,
        level_s: float = LEVEL_SECONDS,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        """`dispatch` and `intake` access the same store, and are closed with this one."""
        names = wire.Names(prefix)
        self._dispatch = dispatch
        self._relay = Relay(intake, dispatch)
        self._link = Link(url, "the servers of the fleet", self._greet, self._up)
        self._serving = RelayServer(names, uuid4().hex, self._relay.carry_out)
        self._queue = WorkQueue(names, self._link, terms or QueueTerms(), warn)
        self._relay.queue = self._queue
        self._watch = Watch(dispatch, self._link, self._queue, level_s, warn)
        self._watching: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Start serving. The first call does so, too."""
        if not self._is_closed and self._watching is None:
            self._link.start()
            self._watching = asyncio.ensure_future(self._watch.run())

    async def ready(self, wait_s: float = READY_SECONDS) -> None:
        """Return when workers are served and the streams exist; Unavailable if that is not possible."""
        self.start()
        client = await self._link.client(asyncio.get_running_loop().time() + wait_s)
        try:
            await self._link.carry(self._queue.make_ready(client, ()))
        except NATS_ERRORS as error:
            raise self._link.unavailable(error) from error

    def figures(self) -> dict[str, int]:
        """Counts since the start, for monitoring."""
        return {
            "tickets_sent": self._queue.sent,
            "tickets_put_again": self._watch.put_again,
            "tickets_taken_out": self._watch.taken_out,
            "dead_letters": self._queue.dead,
            "consumers_made_anew": self._watch.made_anew,
            "letters_answered": self._serving.answered,
            "letters_repeated": self._serving.repeated,
            "letters_unreadable": self._serving.unreadable,
            "leases_granted": self._relay.granted,
            "connections": self._link.connections,
            "messages_dropped": self._link.dropped,
        }

    async def close(self) -> None:
        self._is_closed = True
        if self._watching is not None:
            await end({self._watching})
        await self._serving.close()
        await self._queue.close()
        await self._link.close()
        await self._relay.intake.close()
        await self._dispatch.close()

    async def _greet(self, client: Client) -> None:
        await self._queue.greet(client)
        await self._serving.greet(client, self._link)

    def _up(self) -> None:
        self._queue.go_on()

    # ---- what also goes over NATS

    async def offer(self, offers: Sequence[Offer]) -> None:
        self.start()
        await self._dispatch.offer(offers)
        self._queue.put(wire.Ticket(one.key, one.execution_id, one.pool, one.needs, one.is_range) for one in offers)

    async def send(self, key: str, body: bytes) -> bool:
        self.start()
        worker = await self._dispatch.send_to_holder(key, body)
        client = self._link.current
        if worker is not None and client is not None:
            with suppress(*NATS_ERRORS):
                await send(client, self._queue.names.commands(worker))
        return worker is not None

    # ---- what is the store's alone

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        return await self._dispatch.withdraw(keys)

    async def messages(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Message]:
        self.start()
        return await self._dispatch.messages(partitions, limit, wait_s)

    async def acknowledge(self, numbers: Collection[int]) -> None:
        await self._dispatch.acknowledge(numbers)

    async def reap(self) -> int:
        self.start()
        return await self._dispatch.reap()

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        return await self._dispatch.missing(keys)

    async def forget(self, execution_id: str) -> None:
        await self._dispatch.forget(execution_id)

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        return await self._dispatch.executions(partitions, after, limit)

    async def workers(self) -> list[WorkerSeen]:
        return await self._dispatch.workers()

    async def drain(self, worker: str) -> bool:
        return await self._dispatch.drain(worker)

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]:
        return await self._dispatch.leases(execution_id, limit)

    async def waiting(self) -> Mapping[str, int]:
        return await self._dispatch.waiting()

    async def now(self) -> float:
        self.start()
        return await self._dispatch.now()


class Relay:
    """Carries out what workers ask for, on the store."""

    queue: WorkQueue

    def __init__(self, intake: RelayedIntake, dispatch: RelayedDispatch) -> None:
        self.intake = intake
        self._dispatch = dispatch
        self.granted = 0

    async def carry_out(self, request: wire.Request, is_repeated: bool) -> Any:
        intake = self.intake
        match request:
            case wire.Enlisting(card):
                await intake.enlist(card)
                await self.queue.want(card.pool)
                return None
            case wire.Claiming():
                return await self._claim(request, is_repeated)
            case wire.GivingUp(worker, pool, token, keys):
                await intake.give_up(worker, token, keys)
                self.queue.put(wire.Ticket(key, "", pool) for key in keys)
                return None
            case wire.Beating(worker, pulses, is_draining):
                return await intake.beat(worker, pulses, draining=is_draining)
            case wire.SayingAll(said):
                return await asyncio.gather(*(self._say(one, is_repeated or one.is_repeated) for one in said))
            case wire.Listening(worker, seen):
                return await intake.commands(worker, 0.0, seen)
            case wire.AskingPressure(worker):
                return await intake.is_pressed(worker)
            case wire.Retiring(worker):
                await intake.retire(worker)
                return None
            case wire.AskingTime():
                return await intake.now()

    async def _claim(self, asked: wire.Claiming, is_repeated: bool) -> wire.Granted:
        leases = await self.intake.claim(asked.worker, asked.room, asked.ranges, asked.token, is_repeated=is_repeated)
        self.granted += len(leases)
        if asked.is_deaf and asked.pool:
            await self.queue.miss(asked.pool)
        has_more = False
        if len(leases) < asked.tickets:
            # Asked after the claim: a ticket that the worker held before stands for something counted here.
            has_more = (await self._dispatch.waiting()).get(asked.pool, 0) > 0
        return wire.Granted(leases, has_more)

    async def _say(self, said: wire.Saying, is_repeated: bool) -> bool | wire.Problem:
        """An error with one lease's messages does not affect another's."""
        try:
            return await self.intake.say_as(
                said.worker, said.key, said.attempt, said.kind, said.bodies, said.token, is_repeated=is_repeated
            )
        except PenstockError as error:
            return wire.Problem(isinstance(error, Refused), error.message, error.hint)
