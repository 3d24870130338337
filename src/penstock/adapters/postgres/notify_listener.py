"""Bells: a connection that listens, so that those who wait for something look for it when there is reason to.

Law: a bell says "look again" and nothing else. Whoever waits looks after he has begun to listen and before he waits, and now and
then without having been called: a call that was lost costs time, never work.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from typing import TypeVar

import psycopg
from psycopg import sql

from penstock.adapters.postgres.dispatch_connection import FIRST_PAUSE, LONGEST_PAUSE, Line
from penstock.adapters.postgres.dispatch_schema import SQL, Connection
from penstock.kernel.errors import PenstockError

T = TypeVar("T")

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
