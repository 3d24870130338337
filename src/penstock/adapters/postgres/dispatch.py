"""Dispatch on PostgreSQL: the server's side. (The worker's side is `intake`.)

Law: every change is one statement that returns what it changed, or one transaction; the clock is the database's. A call that
broke off is made again, and recognises its own work by a token.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from penstock.adapters.dispatch import ALIVE_S, KEPT_S, check_offers
from penstock.adapters.postgres import database
from penstock.adapters.postgres.rows import given, kept
from penstock.adapters.sql_files import queries
from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.dispatch import LeaseSeen, Message, MessageKind, Offer, WorkerCard, WorkerSeen
from penstock.ports.log import partition_of
from penstock.ports.together import Together
from penstock.ports.undoing import unless_done_async

# ---- The connection to PostgreSQL: it makes one call at a time, and makes it again when the connection broke.
# Law: a call that has been sent is carried to its end even if its caller has stopped waiting: no statement is cut off.
# Transient failures are retried until the patience runs out; so a call may be made more than once, and has to recognise its
# own work. Only one try is under way at a time: the server is told to end the connection that was given up.

T = TypeVar("T")
Call = Callable[["Connection"], Awaitable[T]]

CLOSING_SECONDS = 5.0

TABLES = database.Tables(
    "postgres/dispatch",
    lock="penstock dispatch",
    tables=("dispatch_version",),
    versions="dispatch_version",
    newer="the dispatch tables in {place} are of a newer Penstock",
)
SQL = queries(TABLES.store)
SESSION = database.Session(statement_s=15.0, lock_s=5.0, idle_s=15.0, is_short_lived=True)


class Connection(psycopg.AsyncConnection[TupleRow]):
    """A connection on which no wait lasts for ever, not even when the network swallows the answer, and which does not
    outlive its task.

    A task that is cancelled while it waits for an answer waits until the server has given it up. If the connection breaks in
    the meantime, the driver raises only that error; a caller that tries again on it would do so for ever."""

    limit_s = SESSION.statement_s + SESSION.lock_s
    name = ""
    """The name by which the server can be told to end it."""

    async def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            return await super().wait(database.limited(gen, self.limit_s), *args, **more)
        except psycopg.Error as error:
            if task is not None and task.cancelling() > before:
                raise asyncio.CancelledError from error
            raise

    async def perform(self, steps: database.Steps[T]) -> T:
        row = None
        try:
            while True:
                cursor = await self.execute(*steps.send(row))
                row = await cursor.fetchone() if cursor.description else None
        except StopIteration as end:
            result: T = end.value
            return result


async def connect(url: str) -> Connection:
    """A connection on which every statement is a transaction of its own, under a name of its own. Raises psycopg's errors."""
    said = conninfo_to_dict(url)
    name = f"{said.get('application_name', 'penstock dispatch')} {uuid4().hex[:16]}"
    conninfo = make_conninfo(database.conninfo_of(url, SESSION.silence_s), application_name=name)
    connection = await Connection.connect(conninfo, autocommit=True, prepare_threshold=1)
    connection.name = name
    return connection


class DispatchConnection:
    def __init__(self, url: str, patience_s: float = database.PATIENCE_SECONDS) -> None:
        self.place = database.place_of(url)
        self._url = url
        self._patience_s = patience_s
        self._connection: Connection | None = None
        self._mutex = asyncio.Lock()
        self._calls: set[asyncio.Future[Any]] = set()
        self._given_up: list[str] = []
        self._has_answered = False
        self._is_brought_up = False
        self._is_closed = False

    async def connect(self) -> Connection:
        """A connection for the caller's own use, with the tables in place. Raises psycopg's errors."""
        connection = await connect(self._url)
        self._has_answered = True
        async with unless_done_async(connection.close):
            cursor = await connection.execute(database.SHARED["prepare_session"], SESSION.values())
            *_, version, encoding, schema = await cursor.fetchone() or ()
            database.check_server(self.place, version, encoding, schema)
            if not self._is_brought_up:
                await connection.perform(TABLES.bring_up(self.place))
                self._is_brought_up = True
        return connection

    async def run(self, call: Call[T], abandoned: Callable[[T], Awaitable[None]] | None = None) -> T:
        """`call`, repeated until it succeeds. `abandoned` gets the result if the caller was cancelled before it came."""
        self.check_open()
        is_sent = False

        async def send(connection: Connection) -> T:
            nonlocal is_sent
            is_sent = True
            return await call(connection)

        task = asyncio.ensure_future(self._patiently(send))
        self._keep(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not is_sent:
                task.cancel()
            elif abandoned is not None:
                self._keep(asyncio.ensure_future(_hand_on(task, abandoned)))
            raise

    def check_open(self) -> None:
        if self._is_closed:
            raise Refused(f"{self.place} is closed here", "open it again first")

    async def close(self) -> None:
        """Let calls under way end, but not those that wait for an unreachable server."""
        self._is_closed = True
        calls = {call for call in self._calls if call is not asyncio.current_task()}
        if calls:
            _, late = await asyncio.wait(calls, timeout=CLOSING_SECONDS)
            for call in late:
                call.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._hang_up()

    async def _patiently(self, call: Call[T]) -> T:
        retry = database.Retry(self.place, self._patience_s)
        while True:
            try:
                async with self._mutex:
                    return await self._once(call)
            except psycopg.Error as error:
                if database.is_unfit(error):
                    raise Refused(f"{self.place} cannot keep this: {database.words_of(error)}") from error
                if self._is_closed:
                    raise database.unavailable(error, self.place) from error
                pause = retry.pause(error, has_answered=self._has_answered)
            await asyncio.sleep(pause)

    async def _once(self, call: Call[T]) -> T:
        if self._connection is None:
            self._connection = await self._connect_again()
        connection = self._connection

        async def leave() -> None:
            if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
                await self._hang_up()

        async with unless_done_async(leave):
            return await call(connection)

    async def _connect_again(self) -> Connection:
        connection = await self.connect()
        async with unless_done_async(connection.close):
            if self._given_up:
                await connection.execute(database.SHARED["end_backends"], {"names": self._given_up})
                self._given_up = []
        return connection

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._given_up.append(connection.name)
            await connection.close()

    def _keep(self, task: asyncio.Future[Any]) -> None:
        self._calls.add(task)
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Future[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # The caller has it already, unless it was cancelled.


async def _hand_on(task: asyncio.Future[T], abandoned: Callable[[T], Awaitable[None]]) -> None:
    try:
        await abandoned(await task)
    except (Refused, Unavailable):
        # There is nobody to report it to. What was granted will expire.
        return


# ---- A connection that listens for notifications, so that waiters poll when there is reason to.
# Law: a notification means "look again" and nothing else. A waiter looks after it has begun to listen and before it waits,
# and at intervals without a notification: a lost one costs time, never work.

# How often waiters poll: while the channel is listened to, and while it is not.
SELDOM_SECONDS = 2.0
OFTEN_SECONDS = 0.25


class Channel:
    """One channel."""

    def __init__(self) -> None:
        self.is_listening = asyncio.Event()
        self._waiters: dict[asyncio.Future[None], frozenset[str] | None] = {}

    def wake(self, about: str = "") -> None:
        """`about`: words, one of which concerns a waiter that does not wait for all."""
        called = set(about.split())
        for waiter, wanted in list(self._waiters.items()):
            if (not called or wanted is None or called & wanted) and not waiter.done():
                waiter.set_result(None)

    async def first(
        self,
        look: Callable[[], Awaitable[list[T]]],
        wait_s: float,
        is_over: Callable[[], bool],
        wanted: Collection[str] | None = None,
    ) -> list[T]:
        """What `look` finds, as soon as it finds something; nothing after `wait_s`, or when the channel is closed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        words = None if wanted is None else frozenset(wanted)
        while True:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters[waiter] = words
            try:
                found = [] if is_over() else await look()
                left = deadline - loop.time()
                if found or left <= 0 or is_over():
                    return found
                pause = SELDOM_SECONDS if self.is_listening.is_set() else OFTEN_SECONDS
                await asyncio.wait({waiter}, timeout=min(left, pause))
            finally:
                del self._waiters[waiter]


class NotifyListener:
    def __init__(self, connection: DispatchConnection) -> None:
        self._connection = connection
        self._channels: dict[tuple[str, str], Channel] = {}
        self._by_name: dict[str, Channel] = {}
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def channel(self, kind: str, name: str = "") -> Channel:
        channel = self._channels.get((kind, name))
        if channel is None:
            channel = self._channels[(kind, name)] = Channel()
            self._fresh.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._listen())
        return channel

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._wake_all()

    async def _listen(self) -> None:
        pause = database.FIRST_PAUSE
        while True:
            try:
                connection = await self._connection.connect()
                try:
                    pause = database.FIRST_PAUSE
                    await self._follow(connection)
                finally:
                    await connection.close()
            except (psycopg.Error, PenstockError):
                # The callers learn what is wrong on their own connection.
                self._wake_all()
            finally:
                self._by_name.clear()
                for channel in self._channels.values():
                    channel.is_listening.clear()
            await asyncio.sleep(pause)
            pause = min(pause * 2, database.LONGEST_PAUSE)

    async def _follow(self, connection: Connection) -> None:
        """Follow notifications until the connection ends; keep-alives detect that."""
        connection.limit_s = math.inf
        while True:
            self._fresh.clear()
            await self._subscribe(connection)
            listening = asyncio.ensure_future(self._forward(connection))
            fresh = asyncio.ensure_future(self._fresh.wait())
            try:
                await asyncio.wait({listening, fresh}, return_when=asyncio.FIRST_COMPLETED)
                if listening.done():
                    listening.result()
            finally:
                listening.cancel()
                fresh.cancel()
                await asyncio.gather(listening, fresh, return_exceptions=True)

    async def _subscribe(self, connection: Connection) -> None:
        for (kind, name), channel in list(self._channels.items()):
            if not channel.is_listening.is_set():
                cursor = await connection.execute(SQL["channel"], {"kind": kind, "name": name})
                (named,) = await cursor.fetchone() or ("",)
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(named)))
                self._by_name[named] = channel
                channel.is_listening.set()
        # What happened before the channel was listened to is found by looking.
        self._wake_all()

    async def _forward(self, connection: Connection) -> None:
        async with aclosing(connection.notifies()) as news:
            async for notify in news:
                channel = self._by_name.get(notify.channel)
                if channel is not None:
                    channel.wake(notify.payload)

    def _wake_all(self) -> None:
        for channel in self._channels.values():
            channel.wake()


# Maximum number of leases per statement.
MOST_LEASES = 2000
# Approximate maximum size of the messages shown at a time.
MOST_BYTES = 16_000_000
LARGEST_BYTES = 256_000_000
TIDY_SECONDS = 30.0


class PostgresDispatch:
    def __init__(self, url: str, *, patience_s: float = database.PATIENCE_SECONDS, alive_s: float = ALIVE_S) -> None:
        self._connection = DispatchConnection(url, patience_s)
        self._listener = NotifyListener(self._connection)
        self._alive_s = alive_s
        self._tidied = 0.0
        self._is_closed = False
        self._forgetting = Together(self._forget)

    async def offer(self, offers: Sequence[Offer]) -> None:
        checked = check_offers(offers)
        for offer in checked:
            check_size(f"the payload of offer `{offer.key}`", offer.payload)
        for start in range(0, len(checked), MOST_LEASES):
            values = _offered(checked[start : start + MOST_LEASES])
            await self._rows("offer", **values, token=uuid4())

    async def withdraw(self, keys: Collection[str]) -> frozenset[str]:
        rows = await self._rows("withdraw", keys=[kept(key) for key in keys], token=uuid4())
        return frozenset(given(key) for (key,) in rows)

    async def send(self, key: str, body: bytes) -> bool:
        return await self.send_to_holder(key, body) is not None

    async def send_to_holder(self, key: str, body: bytes) -> str | None:
        check_size(f"what the holder of `{key}` is told", body)
        rows = await self._rows("tell", key=kept(key), body=body)
        return given(rows[0][0]) if rows else None

    async def messages(self, partitions: Collection[int], limit: int, wait_s: float) -> list[Message]:
        values = {"partitions": sorted(partitions), "limit": max(limit, 0), "most_bytes": MOST_BYTES}

        async def look() -> list[Message]:
            return [
                Message(number, given(execution_id), given(key), attempt, given(worker), MessageKind(kind), body)
                for number, execution_id, key, attempt, worker, kind, body in await self._rows("notes", **values)
            ]

        self._connection.check_open()
        channel = self._listener.channel("notes")
        return await channel.first(look, wait_s, lambda: self._is_closed, [str(one) for one in partitions])

    async def acknowledge(self, numbers: Collection[int]) -> None:
        await self._change("heard", numbers=list(numbers))

    async def reap(self) -> int:
        total, count = 0, MOST_LEASES
        while count >= MOST_LEASES:
            ((count, *_),) = await self._rows("reap", limit=MOST_LEASES)
            total += count
        if time.monotonic() - self._tidied > TIDY_SECONDS:
            await self._change("tidy", kept_s=KEPT_S)
            self._tidied = time.monotonic()
        return total

    async def missing(self, keys: Collection[str]) -> frozenset[str]:
        rows = await self._rows("missing", keys=[kept(key) for key in keys])
        return frozenset(given(key) for (key,) in rows)

    async def forget(self, execution_id: str) -> None:
        await self._forgetting.ask(execution_id)

    async def _forget(self, execution_ids: list[str]) -> list[None]:
        values = {
            "names": [kept(one) for one in execution_ids],
            "partitions": [partition_of(one) for one in execution_ids],
        }

        async def forget(connection: Connection) -> None:
            async with connection.transaction():
                await connection.execute(SQL["forget_leases"], values)
                await connection.execute(SQL["forget_notes"], values)

        await self._connection.run(forget)
        return [None] * len(execution_ids)

    async def executions(self, partitions: Collection[int], after: str = "", limit: int = 1000) -> list[str]:
        values = {"partitions": sorted(partitions), "after": kept(after), "limit": max(limit, 0)}
        return [given(one) for (one,) in await self._rows("executions", **values)]

    async def workers(self) -> list[WorkerSeen]:
        return [self._seen(*row) for row in await self._rows("workers")]

    async def drain(self, worker: str) -> bool:
        return bool(await self._rows("drain", worker=kept(worker)))

    async def leases(self, execution_id: str | None = None, limit: int = 1000) -> list[LeaseSeen]:
        if execution_id is None:
            rows = await self._rows("leases", limit=max(limit, 0))
        else:
            values = {"execution_id": kept(execution_id), "partition": partition_of(execution_id)}
            rows = await self._rows("leases_of", limit=max(limit, 0), **values)
        return [_lease_seen(*row) for row in rows]

    async def waiting(self) -> Mapping[str, int]:
        return {given(pool): count for pool, count in await self._rows("waiting")}

    async def now(self) -> float:
        ((now,),) = await self._rows("now")
        return float(now)

    async def close(self) -> None:
        self._is_closed = True
        await self._listener.close()
        await self._connection.close()

    async def _rows(self, name: str, **values: Any) -> list[Any]:
        return await rows_of(self._connection, name, values)

    async def _change(self, name: str, **values: Any) -> None:
        async def change(connection: Connection) -> None:
            await connection.execute(SQL[name], values)

        await self._connection.run(change)

    def _seen(
        self,
        worker: str,
        name: str,
        pool: str,
        slots: int,
        can: list[str],
        version: str,
        held: int,
        age_s: float,
        is_draining: bool,
    ) -> WorkerSeen:
        abilities = frozenset(given(one) for one in can)
        card = WorkerCard(given(worker), given(name), given(pool), slots, abilities, given(version))
        return WorkerSeen(card, held, age_s, age_s < self._alive_s, is_draining)


async def rows_of(connection: DispatchConnection, name: str, values: Mapping[str, Any]) -> list[Any]:
    """The rows that one statement returns."""

    async def ask(connection: Connection) -> list[Any]:
        return await (await connection.execute(SQL[name], values)).fetchall()

    return await connection.run(ask)


def check_size(what: str, body: bytes) -> None:
    if len(body) > LARGEST_BYTES:
        raise Refused(
            f"{what} has {len(body)} bytes, and PostgreSQL can pass on {LARGEST_BYTES}",
            "put what is large into the result store",
        )


def _lease_seen(
    key: str,
    execution_id: str,
    pool: str,
    attempt: int,
    holder: str | None,
    age_s: float,
    left_s: float | None,
    needs: list[str],
    limit_names: list[str],
    limit_counts: list[int],
    rows: bytes,
) -> LeaseSeen:
    return LeaseSeen(
        given(key),
        given(execution_id),
        given(pool),
        attempt,
        worker=None if holder is None else given(holder),
        age_s=age_s,
        left_s=None if holder is None else left_s,
        needs=frozenset(map(given, needs)),
        limits=tuple(zip(map(given, limit_names), limit_counts, strict=True)),
        rows=b"" if holder is None else rows,
    )


def _offered(offers: Sequence[Offer]) -> dict[str, Any]:
    """Offers as columns. Fields that are lists are sent as JSON, since arrays of arrays must be rectangular."""
    return {
        "keys": [kept(one.key) for one in offers],
        "execution_ids": [kept(one.execution_id) for one in offers],
        "partitions": [partition_of(one.execution_id) for one in offers],
        "pools": [kept(one.pool) for one in offers],
        "needs": [json.dumps(sorted(kept(need) for need in one.needs)) for one in offers],
        "limits": [json.dumps(_limits(one)) for one in offers],
        "ranges": [one.is_range for one in offers],
        "leases": [one.lease_s for one in offers],
        "stalls": [one.stall_s for one in offers],
        "ttls": [one.ttl_s for one in offers],
        "payloads": [one.payload for one in offers],
    }


def _limits(offer: Offer) -> list[tuple[str, int]]:
    """Each name once; of two numbers the smaller one counts."""
    least: dict[str, int] = {}
    for name, most in offer.limits:
        least[name] = min(most, least.get(name, most))
    return [(kept(name), most) for name, most in least.items()]
