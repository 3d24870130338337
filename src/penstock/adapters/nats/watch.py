"""Keeping the work queue level with the store: as many tickets as offers that wait, and a consumer that hands them out.

Law: the store says what waits; the queue follows. Whatever JetStream lost is put in again, whatever is too much is taken out, and
a consumer that hands out nothing though workers ask and tickets lie there is made anew, with a warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from nats.aio.client import Client
from nats.errors import ConnectionClosedError
from nats.js.errors import NotFoundError

from penstock.adapters.nats.connection import NATS_ERRORS, Link
from penstock.adapters.nats.queue import REQUEST_SECONDS, WorkQueue
from penstock.adapters.nats.wire import KINDS, Ticket, consumer, plain
from penstock.kernel.errors import PenstockError
from penstock.ports.dispatch import Dispatch

# So many tickets at most are put in again at a time.
MOST_AGAIN = 256


class Seen(NamedTuple):
    """A consumer as it is seen."""

    idle: int = 0
    """Workers that wait for a ticket."""
    pending: int = 0
    """Tickets that have not been delivered to anybody."""
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
        """For as long as this is not cancelled."""
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
                continue  # Something went away between two questions: the next look says what.
            except NATS_ERRORS as error:
                self._queue.forget_ready()
                self._miss("JetStream", f"JetStream cannot be used, and workers are slower to find work: {error}")
            except PenstockError:
                continue  # The callers of the store are told what is wrong with it.

    def _miss(self, what: str, words: str) -> None:
        """Said once for each time that it is away."""
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
            self._warn(f"the stream `{names.work_stream}` is gone from NATS, and is made again")
            self._queue.forget_ready()
            await self._queue.make_ready(client, pools)
            return {}
        return info.state.subjects or {}

    async def _level(self, client: Client, pool: str, waiting: int, tickets: dict[str, int]) -> None:
        """No more tickets than offers; and if offers wait, one to come for each worker that waits for one."""
        names, js = self._queue.names, client.jetstream(timeout=REQUEST_SECONDS)
        for kind in KINDS:
            found = tickets.get(names.work(pool, kind), 0)
            if found > waiting:
                await js.purge_stream(names.work_stream, subject=names.work(pool, kind), keep=waiting)
                self.taken_out += found - waiting
        lack = 0
        if waiting:
            seen = [await self._look_at(client, pool, kind) for kind in KINDS]
            lack = min(waiting, max(one.idle for one in seen)) - sum(one.pending for one in seen)
        if lack > 0 and pool in self._short:
            await self._put_again(pool, min(lack, MOST_AGAIN))
        elif lack > 0:  # What is seen once may be tickets on their way.
            self._short.add(pool)
        else:
            self._short.discard(pool)

    async def _put_again(self, pool: str, count: int) -> None:
        leases = await self._dispatch.leases(limit=4 * MOST_AGAIN)
        named = [Ticket(one.key, one.execution_id, pool) for one in leases if one.worker is None and one.pool == pool]
        named = named[:count] + [Ticket("", "", pool)] * (count - len(named))
        # Several servers find the same at about the same time.
        moment = int(await self._dispatch.now() / max(self._level_s, 0.001))
        self._queue.put(named, f"again.{plain(pool)}.{moment}")
        self.put_again += count

    async def _look_at(self, client: Client, pool: str, kind: str) -> Seen:
        js = client.jetstream(timeout=REQUEST_SECONDS)
        name = consumer(pool, kind)
        try:
            info = await js.consumer_info(self._queue.names.work_stream, name)
        except NotFoundError:
            self._warn(f"the consumer `{name}` is gone from NATS, and is made again")
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
        """Workers wait and tickets wait, and for long nothing has been delivered."""
        now = asyncio.get_running_loop().time()
        delivered, since = self._still.get(name, (-1, now))
        if delivered != seen.delivered or not seen.idle or not seen.pending:
            self._still[name] = (seen.delivered, now)
            return False
        if now - since <= 2 * self._queue.terms.ack_wait_s:
            return False
        del self._still[name]
        return True
