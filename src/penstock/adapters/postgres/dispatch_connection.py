"""The line to PostgreSQL: one connection, on which one call at a time is made, and made again when it broke.

Law: a call that has been sent is carried to its end even if nobody waits for its answer any more: no statement is cut off. What
fails because the world shook is tried again until the patience is at an end; so a call may be made more than once, and has to
know its own work. No two tries are under way at a time: the server is told to end the connection that was given up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from penstock.adapters.postgres.dispatch_schema import SQL, Connection, bring_up, connect, prepare
from penstock.adapters.postgres.errors import is_passing, is_soon_over, is_unfit, place_of, unavailable, words_of
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done_async

T = TypeVar("T")
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
