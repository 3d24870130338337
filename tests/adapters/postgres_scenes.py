"""A PostgreSQL log to play scenes on, and a look into its tables from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from penstock.adapters.postgres.log import PostgresLog
from tests.contracts.entries import header


@asynccontextmanager
async def opened(url: str, name: str = "a server", **settings: float) -> AsyncIterator[PostgresLog]:
    log = PostgresLog(url, name=name, **settings)
    try:
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def owned(url: str, *names: str, **settings: float) -> AsyncIterator[tuple[PostgresLog, int]]:
    """With `run-1`, and more, created and claimed; the epoch is 1."""
    async with opened(url, **settings) as log:
        for name in names or ("run-1",):
            await log.create(header(name), b"document")
            epoch = await log.claim(name, "me")
        yield log, epoch


def execute(url: str, statement: str, *values: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def let_leases_run_out(url: str) -> None:
    """As if an hour had passed, for those whose lease is shorter than the time since PostgreSQL was started."""
    execute(url, "UPDATE holder SET until = until - interval '50 minutes'")


async def until(happened: Callable[[], object], what: str) -> None:
    """Wait for it, with a bound that no healthy machine meets; the loop turns meanwhile."""
    deadline = time.monotonic() + 60
    while not await asyncio.to_thread(happened):
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)
