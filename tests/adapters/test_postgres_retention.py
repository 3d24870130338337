"""What the PostgreSQL log keeps for how long: a table per month of birth, dropped when nobody born in it is left."""

from __future__ import annotations

import asyncio
from datetime import date

import psycopg

from penstock.adapters.postgres.executions import Months
from penstock.adapters.postgres.log import PostgresLog
from tests.adapters.postgres_scenes import execute, opened
from tests.contracts.entries import entries, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


async def make(log: PostgresLog, url: str, name: str, born: date | None = None, count: int = 3) -> None:
    """An execution that has ended, perhaps long ago."""
    await log.create(header(name), b"document")
    if born:
        with log._database.lending() as connection, connection.transaction():
            Months().ensure(connection, born)
        execute(url, "UPDATE execution SET born = %s WHERE execution_id = %s", born, name)
    epoch = await log.claim(name, "me")
    await log.durable(log.append(name, epoch, entries(1, count), "completed"))
    await log.release(name)


def tables(url: str) -> list[str]:
    rows = execute(
        url, "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'entry'::regclass ORDER BY 1"
    )
    return [name for (name,) in rows]


def this_month(url: str) -> str:
    return str(execute(url, "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', '\"entry_\"YYYY_MM')")[0][0])


def test_all_entries_of_an_execution_lie_in_the_month_it_was_born_in(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await make(log, postgres_url, "old", date(2024, 12, 31))
            await make(log, postgres_url, "older", date(2024, 2, 29))
            await make(log, postgres_url, "new")
            rows = execute(
                postgres_url, "SELECT tableoid::regclass::text, execution_id, count(*) FROM entry GROUP BY 1, 2"
            )
            assert sorted(rows) == sorted(
                [("entry_2024_12", "old", 3), ("entry_2024_02", "older", 3), (this_month(postgres_url), "new", 3)]
            )
            for name in ("old", "older", "new"):
                assert list(log.read(name)) == entries(1, 3)

    asyncio.run(scene())


def test_a_month_that_is_over_is_dropped_with_the_last_execution_born_in_it(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            for name, born in (("a", date(2024, 5, 1)), ("b", date(2024, 5, 31)), ("c", date(2024, 6, 1)), ("d", None)):
                await make(log, postgres_url, name, born)
            now = this_month(postgres_url)
            assert tables(postgres_url) == ["entry_2024_05", "entry_2024_06", now]
            assert await log.prune(9e9, limit=1) == ["a"]
            assert tables(postgres_url) == ["entry_2024_05", "entry_2024_06", now]
            assert execute(postgres_url, "SELECT count(*) FROM entry_2024_05") == [(3,)]
            assert await log.prune(9e9, limit=1) == ["b"]
            assert tables(postgres_url) == ["entry_2024_06", now]
            assert await log.prune(9e9) == ["c", "d"]
            # This month's stays: somebody may be born in it at any moment.
            assert tables(postgres_url) == [now]
            assert execute(postgres_url, "SELECT count(*) FROM entry") == [(0,)]
            await make(log, postgres_url, "e")
            assert list(log.read("e")) == entries(1, 3)

    asyncio.run(scene())


def test_a_month_whose_last_execution_was_forgotten_goes_with_the_next_pruning(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await make(log, postgres_url, "a", date(2024, 5, 1))
            await log.forget("a")
            assert tables(postgres_url) == ["entry_2024_05", this_month(postgres_url)]
            assert await log.prune(0.0) == []
            assert tables(postgres_url) == [this_month(postgres_url)]

    asyncio.run(scene())


def test_a_month_that_somebody_is_reading_is_left_for_the_next_time(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await make(log, postgres_url, "a", date(2024, 5, 1))
            with psycopg.connect(postgres_url) as other:
                other.execute("SELECT count(*) FROM entry_2024_05")
                assert await log.prune(9e9) == ["a"]
                assert "entry_2024_05" in tables(postgres_url)
            assert log.header("a") is None
            assert await log.prune(9e9) == []
            assert tables(postgres_url) == [this_month(postgres_url)]

    asyncio.run(scene())


def test_an_id_whose_old_entries_have_not_gone_yet_begins_anew_all_the_same(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await make(log, postgres_url, "a", date(2024, 5, 1))
            with psycopg.connect(postgres_url) as other:
                other.execute("SELECT count(*) FROM entry_2024_05")
                assert await log.prune(9e9) == ["a"]
                await make(log, postgres_url, "a", count=2)
                assert list(log.read("a")) == entries(1, 2)
                assert execute(postgres_url, "SELECT count(*) FROM entry") == [(5,)]

    asyncio.run(scene())


def test_executions_made_at_once_in_a_new_month_make_one_table(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as one, opened(postgres_url) as two:
            names = [f"run-{number}" for number in range(8)]
            await asyncio.gather(*((one, two)[n % 2].create(header(name), b"") for n, name in enumerate(names)))
            assert tables(postgres_url) == [this_month(postgres_url)]

    asyncio.run(scene())


def test_looking_for_what_is_unfinished_does_not_read_what_is_finished(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await log.create(header("run-1"), b"")
        execute(
            postgres_url,
            "INSERT INTO execution (execution_id, kind, name, path, digest, status, started_at, ended_at, born, partition, token)"
            " SELECT 'old-' || n, 'playbook', 'x', 'x', 'x', 'completed', 1, 2, '2024-05-01', n % 256, gen_random_uuid()"
            " FROM generate_series(1, 20000) AS n",
        )
        execute(postgres_url, "ANALYZE execution")
        plans = {
            "execution_unfinished": "SELECT execution_id FROM execution"
            " WHERE status = 'running' AND partition = ANY('{1,2,3}') ORDER BY number",
            "execution_newest": "SELECT execution_id FROM execution ORDER BY number DESC LIMIT 100",
            "execution_ended": "SELECT execution_id FROM execution"
            " WHERE status IN ('completed', 'failed', 'cancelled') AND ended_at < 1 ORDER BY ended_at, number LIMIT 10",
        }
        for index, query in plans.items():
            plan = "\n".join(line for (line,) in execute(postgres_url, f"EXPLAIN {query}"))
            assert index in plan

    asyncio.run(scene())
