"""One batch, tried more than once: it is in the log once or not at all, and each try finds out which."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from uuid import uuid4

from penstock.adapters.postgres.database import Connection
from penstock.adapters.postgres.log import PostgresLog
from penstock.adapters.postgres.writer import Append, Batch, plan, settle, write
from tests.adapters.postgres_scenes import execute, opened, owned
from tests.contracts.entries import entries, entry
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

WRITER = uuid4()


class Broken(Exception):
    """The connection is gone before the commit."""


def batch_of(log: PostgresLog) -> Batch:
    appends = [Append(1, "run-1", 1, entries(1, 2), None), Append(2, "run-2", 1, [entry(1)], "completed")]
    return plan(1, appends, log._claims, {})


def try_and_break(connection: Connection, batch: Batch) -> None:
    try:
        with connection.transaction():
            write(connection, WRITER, batch)
            raise Broken
    except Broken:
        return


async def take_over(url: str, payload: bytes) -> None:
    """Another process owns `run-1` now, and has gone on with entries of its own."""
    execute(url, "UPDATE holder SET until = '-infinity', lease = interval '0' WHERE name = 'a server'")
    async with opened(url, "another") as other:
        epoch = await other.claim("run-1", "the new one")
        last = other.header("run-1").last_seq  # type: ignore[union-attr]
        added = [entry(seq, payload) for seq in range(last + 1, last + 4)]
        await other.durable(other.append("run-1", epoch, added))


def play(url: str, scene: Callable[[PostgresLog, Connection], Awaitable[None]]) -> None:
    async def play() -> None:
        async with owned(url, "run-1", "run-2", lease_s=1000.0) as (log, _):
            with log._database.lending() as connection:
                await scene(log, connection)

    asyncio.run(play())


def test_a_second_try_of_what_was_committed_writes_nothing_more(postgres_url: str) -> None:
    async def scene(log: PostgresLog, connection: Connection) -> None:
        batch = batch_of(log)
        for _ in range(3):
            write(connection, WRITER, batch)
        settle(batch, {})
        assert batch.refused == {}
        assert (list(log.read("run-1")), list(log.read("run-2"))) == (entries(1, 2), [entry(1)])
        assert [log._claims[name].last_seq for name in ("run-1", "run-2")] == [2, 1]

    play(postgres_url, scene)


def test_what_was_committed_is_acknowledged_though_another_has_gone_on_since(postgres_url: str) -> None:
    async def scene(log: PostgresLog, connection: Connection) -> None:
        batch = batch_of(log)
        write(connection, WRITER, batch)
        await take_over(postgres_url, b"new")
        write(connection, WRITER, batch)
        settle(batch, {})
        assert batch.refused == {}
        assert [one.payload for one in log.read("run-1")] == [b"{}", b"{}", b"new", b"new", b"new"]

    play(postgres_url, scene)


def test_what_was_not_committed_is_refused_when_another_has_the_same_numbers_now(postgres_url: str) -> None:
    async def scene(log: PostgresLog, connection: Connection) -> None:
        batch = batch_of(log)
        try_and_break(connection, batch)
        await take_over(postgres_url, b"new")
        write(connection, WRITER, batch)
        settle(batch, {})
        assert {ticket: why.message.partition(" (")[0] for ticket, why in batch.refused.items()} == {
            1: "`run-1` has been taken over by somebody who has let go of it since"
        }
        assert [one.payload for one in log.read("run-1")] == [b"new", b"new", b"new"]
        assert list(log.read("run-2")) == [entry(1)]

    play(postgres_url, scene)


def test_a_try_that_is_still_under_way_is_waited_for_and_recognised(postgres_url: str) -> None:
    """The network was cut during the commit, and the server is still at it."""

    async def scene(log: PostgresLog, connection: Connection) -> None:
        for ends_well in (False, True):
            batch = batch_of(log)
            with log._database.lending() as late:
                late.execute("BEGIN")
                write(late, WRITER, batch)
                again = threading.Thread(target=write, args=(connection, WRITER, batch))
                again.start()
                waiting = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
                while not execute(postgres_url, waiting, connection.info.backend_pid):
                    assert again.is_alive()
                late.execute("COMMIT" if ends_well else "ROLLBACK")
                again.join()
            if not ends_well:
                assert list(log.read("run-1")) == entries(1, 2)
                execute(postgres_url, "DELETE FROM entry; DELETE FROM writer; UPDATE execution SET last_seq = 0")
        settle(batch, {})
        assert batch.refused == {}
        assert (list(log.read("run-1")), list(log.read("run-2"))) == (entries(1, 2), [entry(1)])

    play(postgres_url, scene)
