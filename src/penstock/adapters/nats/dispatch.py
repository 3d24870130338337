"""Dispatch over NATS: the server's side, for fleets whose workers hold no connection to the database.

Law: NATS carries, and keeps nothing that counts. Every call is carried out on the store behind, which is the same for all
servers; so any server answers any worker, and NATS may lose all it has without a lease being lost or counted twice. (The worker's
side is `nats_dispatch_intake`.)

What goes over NATS, for the prefix `penstock`:

    penstock.rpc            letters of workers; one server of those that listen answers
    penstock.rpc.SERVER     letters to that server
    penstock.hello          every server that is awake returns the greeting
    penstock.told.WORKER    there is something to be told to this worker
    penstock.work.POOL.*    tickets (`step`, `range`), in the work-queue stream `penstock_WORK`, a consumer for each subject
    penstock.dead.POOL      tickets that nobody could use, in the stream `penstock_DEAD`

A worker needs to publish to `penstock.rpc`, `penstock.rpc.*`, `penstock.hello`, `$JS.API.CONSUMER.MSG.NEXT.penstock_WORK.*` and
`$JS.ACK.penstock_WORK.>`, and to subscribe to `_INBOX.>` and `penstock.told.*`. Whoever may do so is a worker of this fleet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from nats.aio.client import Client

from penstock.adapters.nats.connection import NATS_ERRORS, Link, end, send
from penstock.adapters.nats.queue import QueueTerms, WorkQueue
from penstock.adapters.nats.relay import Serving
from penstock.adapters.nats.watch import Watch
from penstock.adapters.nats.wire import (
    PREFIX,
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
from penstock.adapters.relayed_dispatch import RelayedDispatch, RelayedIntake
from penstock.kernel.errors import PenstockError, Refused
from penstock.ports.dispatch import LeaseSeen, Note, Offer, WorkerSeen

LEVEL_SECONDS = 1.0
READY_SECONDS = 15.0

_log = logging.getLogger(__name__)


class NatsDispatch:
    def __init__(
        self,
        dispatch: RelayedDispatch,
        intake: RelayedIntake,
        url: str,
        prefix: str = PREFIX,
        *,
        terms: QueueTerms | None = None,
        level_s: float = LEVEL_SECONDS,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        """`dispatch` and `intake` are ends of the same store, and are closed with this one."""
        names = Names(prefix)
        self._dispatch = dispatch
        self._relay = Relay(intake, dispatch)
        self._link = Link(url, "the servers of the fleet", self._greet, self._up)
        self._serving = Serving(names, uuid4().hex, self._relay.carry_out)
        self._queue = WorkQueue(names, self._link, terms or QueueTerms(), warn)
        self._relay.queue = self._queue
        self._watch = Watch(dispatch, self._link, self._queue, level_s, warn)
        self._watching: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin to serve. The first call does it as well."""
        if not self._is_closed and self._watching is None:
            self._link.start()
            self._watching = asyncio.ensure_future(self._watch.run())

    async def ready(self, wait_s: float = READY_SECONDS) -> None:
        """Return when workers are served and the streams are there; Unavailable if that cannot be."""
        self.start()
        client = await self._link.client(asyncio.get_running_loop().time() + wait_s)
        try:
            await self._link.carry(self._queue.make_ready(client, ()))
        except NATS_ERRORS as error:
            raise self._link.unavailable(error) from error

    def figures(self) -> dict[str, int]:
        """What happened since the start, for those who keep an eye on it."""
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
        self._queue.put(Ticket(one.key, one.execution_id, one.pool, one.needs, one.is_range) for one in offers)

    async def tell(self, key: str, body: bytes) -> bool:
        self.start()
        worker = await self._dispatch.tell_holder(key, body)
        client = self._link.current
        if worker is not None and client is not None:
            with suppress(*NATS_ERRORS):
                await send(client, self._queue.names.told(worker))
        return worker is not None

    # ---- what is the store's alone

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        return await self._dispatch.withdraw(keys)

    async def notes(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Note]:
        self.start()
        return await self._dispatch.notes(partitions, limit, wait_s)

    async def heard(self, numbers: Collection[int]) -> None:
        await self._dispatch.heard(numbers)

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

    async def carry_out(self, request: Request, is_repeated: bool) -> Any:
        intake = self.intake
        match request:
            case Enlisting(card):
                await intake.enlist(card)
                await self.queue.want(card.pool)
                return None
            case Claiming():
                return await self._claim(request, is_repeated)
            case GivingUp(worker, pool, token, keys):
                await intake.give_up(worker, token, keys)
                self.queue.put(Ticket(key, "", pool) for key in keys)
                return None
            case Beating(worker, pulses, is_draining):
                return await intake.beat(worker, pulses, draining=is_draining)
            case SayingAll(said):
                return await asyncio.gather(*(self._say(one, is_repeated or one.is_repeated) for one in said))
            case Listening(worker, seen):
                return await intake.told(worker, 0.0, seen)
            case AskingPressure(worker):
                return await intake.is_pressed(worker)
            case Retiring(worker):
                await intake.retire(worker)
                return None
            case AskingTime():
                return await intake.now()

    async def _claim(self, asked: Claiming, is_repeated: bool) -> Granted:
        leases = await self.intake.claim(asked.worker, asked.room, asked.ranges, asked.token, is_repeated=is_repeated)
        self.granted += len(leases)
        if asked.is_deaf and asked.pool:
            await self.queue.miss(asked.pool)
        has_more = False
        if len(leases) < asked.tickets:
            # Asked after the claim: a ticket that was in the worker's hand before it stands for something counted here.
            has_more = (await self._dispatch.waiting()).get(asked.pool, 0) > 0
        return Granted(leases, has_more)

    async def _say(self, said: Saying, is_repeated: bool) -> bool | Problem:
        """One lease's words do not suffer from another's."""
        try:
            return await self.intake.say_as(
                said.worker, said.key, said.attempt, said.kind, said.bodies, said.token, is_repeated=is_repeated
            )
        except PenstockError as error:
            return Problem(isinstance(error, Refused), error.message, error.hint)
