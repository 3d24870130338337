"""The stores that a dispatch is tried on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg

from penstock.adapters.memory.dispatch import MemoryDispatch, MemoryDispatchStore, MemoryIntake
from penstock.adapters.postgres.dispatch import PostgresDispatch
from penstock.adapters.postgres.intake import PostgresIntake
from penstock.ports.dispatch import Dispatch, Intake
from tests.contracts.dispatch_scenes import Scene
from tests.virtual import VirtualClock, VirtualLoop, run_virtually

TABLES = ("dispatch_lease", "dispatch_note", "dispatch_told", "dispatch_worker")

# The tables' one clock is moved by the test; it starts when no holder has its lease again because of a start of PostgreSQL.
STAND_STILL = """
CREATE TABLE test_clock AS SELECT clock_timestamp() + interval '1 day' AS at;
CREATE OR REPLACE FUNCTION dispatch_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT at FROM test_clock $$;
"""


class MemoryScene(Scene):
    def __init__(self) -> None:
        self.dispatch_store = MemoryDispatchStore(VirtualClock())

    def dispatch(self) -> Dispatch:
        return MemoryDispatch(self.dispatch_store)

    def intake(self) -> Intake:
        return MemoryIntake(self.dispatch_store)

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def cut(self) -> None:
        """There is no connection."""

    async def wipe(self) -> None:
        for kept in (
            self.dispatch_store.leases,
            self.dispatch_store.messages,
            self.dispatch_store.ends,
            self.dispatch_store.commands,
            self.dispatch_store.workers,
        ):
            kept.clear()

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        async def main(loop: VirtualLoop) -> None:
            await story

        run_virtually(main)


class PostgresScene(Scene):
    def __init__(self, url: str) -> None:
        self.name = f"test {uuid4().hex[:12]}"
        self.url = url
        asyncio.run(self._bring_up())
        self._execute(STAND_STILL)

    def dispatch(self) -> Dispatch:
        return PostgresDispatch(self._named_url)

    def intake(self) -> Intake:
        return PostgresIntake(self._named_url)

    @property
    def _named_url(self) -> str:
        """By their name this test's own connections are known from those of others on the same server."""
        return f"{self.url}&application_name={quote(self.name)}"

    async def pass_time(self, seconds: float) -> None:
        self._execute("UPDATE test_clock SET at = at + make_interval(secs => %s)", seconds)

    async def cut(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            mine = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s || ' %%'"
            pids = [pid for (pid,) in connection.execute(mine, (self.name,))]
            connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::integer[]) AS pid", (pids,))
            while connection.execute("SELECT FROM pg_stat_activity WHERE pid = ANY(%s)", (pids,)).fetchone():
                connection.execute("SELECT pg_sleep(0.001)")

    async def wipe(self) -> None:
        self._execute(f"TRUNCATE {', '.join(TABLES)}")

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        asyncio.run(story)

    async def _bring_up(self) -> None:
        dispatch = self.dispatch()
        await dispatch.now()
        await dispatch.close()

    def _execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values or None)
