"""The line to PostgreSQL: one connection, on which one call at a time is made, and made again when it broke.

Law: a call that has been sent is carried to its end even if nobody waits for its answer any more: no statement is cut off. What
fails because the world shook is tried again until the patience is at an end; so a call may be made more than once, and has to
know its own work. No two tries are under way at a time: the server is told to end the connection that was given up.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from penstock.adapters.postgres.database import (
    Lost,
    is_passing,
    is_soon_over,
    is_unfit,
    place_of,
    unavailable,
    words_of,
)
from penstock.adapters.sql_files import queries, schema_files
from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.undoing import unless_done_async

# ---- The dispatch tables of one PostgreSQL schema, brought to what this program knows.
# Law: whoever gets a connection gets it with durable commits, the tables of this program and a bound on every wait, or an
# `Unavailable` that says what is wrong with the database.

T = TypeVar("T")

STORE = "postgres/dispatch"
SQL = queries(STORE)

OLDEST_SERVER = 140_000
STATEMENT_SECONDS = 15.0
LOCK_SECONDS = 5.0

# Without these a server that vanished would be waited for for hours.
_NETWORK = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class Connection(psycopg.AsyncConnection[TupleRow]):
    """A connection on which no wait is for ever, not even when the network swallows the answer; and none outlives its task.

    Who is cancelled while he waits for an answer waits until the server has given it up. If the connection breaks meanwhile, the
    driver tells only that; whoever tries again then would do so for ever.
    """

    limit_s = STATEMENT_SECONDS + LOCK_SECONDS
    name = ""
    """By which the server can be told to end it."""

    async def wait(self, gen: Any, *args: Any, **more: Any) -> Any:
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            return await super().wait(_limited(gen, self.limit_s), *args, **more)
        except psycopg.Error as error:
            if task is not None and task.cancelling() > before:
                raise asyncio.CancelledError from error
            raise


def _limited(steps: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    deadline = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise Lost(f"no answer within {seconds:g} s")
            wanted = steps.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


async def connect(url: str) -> Connection:
    """A connection on which every statement is a transaction of its own, under a name of its own. Raises psycopg's errors."""
    said = conninfo_to_dict(url)
    name = f"{said.get('application_name', 'penstock dispatch')} {uuid4().hex[:16]}"
    conninfo = make_conninfo("", **{**_NETWORK, **said, "client_encoding": "utf8", "application_name": name})
    connection = await Connection.connect(conninfo, autocommit=True, prepare_threshold=1)
    connection.name = name
    return connection


async def prepare(connection: Connection, place: str) -> None:
    values = {"statement_ms": _ms(STATEMENT_SECONDS), "lock_ms": _ms(LOCK_SECONDS)}
    cursor = await connection.execute(SQL["prepare_session"], values)
    *_, version, encoding, schema = await cursor.fetchone() or ()
    _check_server(place, version, encoding, schema)


async def bring_up(connection: Connection, place: str) -> None:
    known = schema_files(STORE)
    newest = max(known)
    if await _version(connection, place, newest) == newest:
        return
    async with connection.transaction():
        await connection.execute(SQL["lock_schema"])
        # Asked again under the lock: another process may have brought the schema up in the meantime.
        version = await _version(connection, place, newest)
        for number in range(version + 1, newest + 1):
            await connection.execute(known[number].read_bytes())
            await connection.execute(SQL["record_version"], {"version": number})


async def _version(connection: Connection, place: str, newest: int) -> int:
    (is_there,) = await (await connection.execute(SQL["has_tables"])).fetchone() or (False,)
    if not is_there:
        return 0
    (version,) = await (await connection.execute(SQL["schema_version"])).fetchone() or (0,)
    if version > newest:
        raise Unavailable(
            f"the dispatch tables in {place} are of a newer Penstock (schema {version}; this one knows up to {newest})",
            "use that version, or another schema",
        )
    return int(version)


def _check_server(place: str, version: int, encoding: str, schema: str | None) -> None:
    if version < OLDEST_SERVER:
        raise Unavailable(
            f"{place} is PostgreSQL {version // 10_000}, and Penstock needs {OLDEST_SERVER // 10_000} or newer",
            "upgrade the server",
        )
    if encoding != "UTF8":
        raise Unavailable(
            f"{place} has the encoding `{encoding}`, in which not every text can be kept",
            "make a database with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`",
        )
    if schema is None:
        raise Unavailable(
            f"{place} has none of the schemas in its `search_path`",
            "make one with `CREATE SCHEMA`, or correct the `search_path` of the URL",
        )


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))


Call = Callable[[Connection], Awaitable[T]]

PATIENCE_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
CLOSING_SECONDS = 5.0


class Line:
    def __init__(self, url: str, patience_s: float = PATIENCE_SECONDS) -> None:
        self.place = place_of(url)
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
        """A connection of one's own, with the tables there. Raises psycopg's errors."""
        connection = await connect(self._url)
        self._has_answered = True
        async with unless_done_async(connection.close):
            await prepare(connection, self.place)
            if not self._is_brought_up:
                await bring_up(connection, self.place)
                self._is_brought_up = True
        return connection

    async def run(self, call: Call[T], abandoned: Callable[[T], Awaitable[None]] | None = None) -> T:
        """`call`, until it was made. `abandoned` gets the answer if whoever asked is gone when it comes."""
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
        """What is under way may end; what waits for a server that is away may not."""
        self._is_closed = True
        calls = {call for call in self._calls if call is not asyncio.current_task()}
        if calls:
            _, late = await asyncio.wait(calls, timeout=CLOSING_SECONDS)
            for call in late:
                call.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._hang_up()

    async def _patiently(self, call: Call[T]) -> T:
        deadline = time.monotonic() + self._patience_s
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._mutex:
                    return await self._once(call)
            except psycopg.Error as error:
                if is_unfit(error):
                    raise Refused(f"{self.place} cannot keep this: {words_of(error)}") from error
                # A server that never answered is more likely named wrongly than about to come back.
                is_hopeful = is_passing(error) if self._has_answered else is_soon_over(error)
                if not is_hopeful or self._is_closed or time.monotonic() + pause > deadline:
                    raise unavailable(error, self.place) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

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
                await connection.execute(SQL["end_backends"], {"names": self._given_up})
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
            task.exception()  # Whoever asked has been told, unless he has gone.


async def _hand_on(task: asyncio.Future[T], abandoned: Callable[[T], Awaitable[None]]) -> None:
    try:
        await abandoned(await task)
    except (Refused, Unavailable):
        # Nobody is there to be told. What was granted runs out in its time.
        return


# ---- Bells: a connection that listens, so that those who wait for something look for it when there is reason to.
# Law: a bell says "look again" and nothing else. Whoever waits looks after he has begun to listen and before he waits, and
# now and then without having been called: a call that was lost costs time, never work.

# How often is looked without a call: while the bell is heard, and while it is not.
SELDOM_SECONDS = 2.0
OFTEN_SECONDS = 0.25


class Bell:
    """One channel."""

    def __init__(self) -> None:
        self.is_heard = asyncio.Event()
        self._waiters: dict[asyncio.Future[None], frozenset[str] | None] = {}

    def ring(self, about: str = "") -> None:
        """`about`: words, one of which concerns a waiter who does not wait for all."""
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
        """What `look` finds, as soon as it finds something; nothing after so long, or when it is over."""
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
                pause = SELDOM_SECONDS if self.is_heard.is_set() else OFTEN_SECONDS
                await asyncio.wait({waiter}, timeout=min(left, pause))
            finally:
                del self._waiters[waiter]


class Bells:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._bells: dict[tuple[str, str], Bell] = {}
        self._channels: dict[str, Bell] = {}
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def bell(self, kind: str, name: str = "") -> Bell:
        bell = self._bells.get((kind, name))
        if bell is None:
            bell = self._bells[(kind, name)] = Bell()
            self._fresh.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._listen())
        return bell

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._ring_all()

    async def _listen(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                connection = await self._line.connect()
                try:
                    pause = FIRST_PAUSE
                    await self._hear(connection)
                finally:
                    await connection.close()
            except (psycopg.Error, PenstockError):
                # The callers' own line tells them what is wrong.
                self._ring_all()
            finally:
                self._channels.clear()
                for bell in self._bells.values():
                    bell.is_heard.clear()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _hear(self, connection: Connection) -> None:
        """Until the connection ends; keep-alives tell if it does."""
        connection.limit_s = math.inf
        while True:
            self._fresh.clear()
            await self._subscribe(connection)
            hearing = asyncio.ensure_future(self._pass_on(connection))
            fresh = asyncio.ensure_future(self._fresh.wait())
            try:
                await asyncio.wait({hearing, fresh}, return_when=asyncio.FIRST_COMPLETED)
                if hearing.done():
                    hearing.result()
            finally:
                hearing.cancel()
                fresh.cancel()
                await asyncio.gather(hearing, fresh, return_exceptions=True)

    async def _subscribe(self, connection: Connection) -> None:
        for (kind, name), bell in list(self._bells.items()):
            if not bell.is_heard.is_set():
                cursor = await connection.execute(SQL["channel"], {"kind": kind, "name": name})
                (channel,) = await cursor.fetchone() or ("",)
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                self._channels[channel] = bell
                bell.is_heard.set()
        # What happened before the first word could be heard is found by looking.
        self._ring_all()

    async def _pass_on(self, connection: Connection) -> None:
        async with aclosing(connection.notifies()) as news:
            async for notify in news:
                bell = self._channels.get(notify.channel)
                if bell is not None:
                    bell.ring(notify.payload)

    def _ring_all(self) -> None:
        for bell in self._bells.values():
            bell.ring()
