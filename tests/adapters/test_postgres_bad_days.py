"""The PostgreSQL log when something is wrong with the database, the address or the values: clear errors, no silent gap."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from penstock.adapters.postgres.log import PostgresLog
from penstock.kernel.errors import Refused, Unavailable
from tests.adapters.postgres_scenes import execute, opened, owned
from tests.contracts.entries import entries, entry, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


# -- the address and the database -------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["nonsense", "postgresql://me:se%cret@h/x", "postgresql://h/x?secret=1"])
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Refused, match="this is no PostgreSQL URL") as told:
        PostgresLog(url, name="a server")
    assert "secret" not in f"{told.value.message} {told.value.hint}"
    assert "postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in str(told.value.hint)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:topsecret@localhost:1/orders",
        "postgresql://me:topsecret@nowhere.invalid:5432/orders",
        "postgresql://me:topsecret@/orders?host=/nowhere",
    ],
)
def test_a_server_that_is_not_there_is_told_at_once_without_the_password(url: str) -> None:
    with pytest.raises(Unavailable, match=r"^database `orders` on `.*` cannot be reached: ") as told:
        PostgresLog(url, name="a server")
    assert "topsecret" not in f"{told.value.message} {told.value.hint}"


def test_a_database_or_a_role_that_does_not_exist_is_told(postgres_server: str) -> None:
    with pytest.raises(Unavailable, match=r"database `nothing` on .* does not exist"):
        PostgresLog(make_conninfo(postgres_server, dbname="nothing"), name="a server")
    with pytest.raises(Unavailable, match="refuses the login"):
        PostgresLog(make_conninfo(postgres_server, user="nobody", password="topsecret"), name="a server")


def test_a_schema_that_does_not_exist_is_told(postgres_server: str) -> None:
    with pytest.raises(Unavailable, match="has none of the schemas in its `search_path`") as told:
        PostgresLog(make_conninfo(postgres_server, options="-csearch_path=missing"), name="a server")
    assert "CREATE SCHEMA" in str(told.value.hint)


def test_a_newer_schema_is_told_and_left_as_it_is(postgres_url: str) -> None:
    asyncio.run(PostgresLog(postgres_url, name="a server").close())
    execute(postgres_url, "INSERT INTO schema_version (version) VALUES (999)")
    with pytest.raises(
        Unavailable, match=r"brought up by a newer Penstock \(schema 999; this one knows up to \d+\)"
    ) as told:
        PostgresLog(postgres_url, name="a server")
    assert "use that version" in str(told.value.hint)


def test_tables_of_another_program_are_told_and_left_as_they_are(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE execution (name text)")
    with pytest.raises(Unavailable, match=r"has tables of another program in this schema \(`execution`\)") as told:
        PostgresLog(postgres_url, name="a server")
    assert "search_path" in str(told.value.hint)
    assert execute(postgres_url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == [
        ("execution",)
    ]


def test_other_tables_beside_ours_do_no_harm(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE recipes (name text)")
    asyncio.run(PostgresLog(postgres_url, name="a server").close())


def test_tables_that_were_taken_away_are_told(postgres_url: str) -> None:
    async def scene() -> None:
        log = PostgresLog(postgres_url, name="a server")
        execute(postgres_url, "DROP TABLE request")
        with pytest.raises(Unavailable, match='lacks tables of Penstock, or they were changed: relation "request"'):
            log.asked()
        await log.close()

    asyncio.run(scene())


# -- locks ------------------------------------------------------------------------------------------------------------


def test_a_lock_that_another_program_holds_only_delays_and_does_not_stop_the_event_loop(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            with psycopg.connect(postgres_url) as other:
                other.execute("LOCK TABLE execution IN ACCESS EXCLUSIVE MODE")
                waiting = [
                    asyncio.create_task(log.durable(log.append("run-1", epoch, [entry(1)]))),
                    asyncio.create_task(log.create(header("run-2"), b"")),
                ]
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert not any(task.done() for task in waiting)
                other.rollback()
                await asyncio.gather(*waiting)
            assert log.header("run-1") == header(last_seq=1)

    asyncio.run(scene())


def test_a_lock_that_outlasts_the_patience_is_told(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.adapters.postgres.database.LOCK_SECONDS", 0.1)

    async def scene() -> None:
        async with owned(postgres_url, patience_s=0.2) as (log, epoch):
            with psycopg.connect(postgres_url) as other:
                other.execute("LOCK TABLE execution IN ACCESS EXCLUSIVE MODE")
                for _ in range(2):
                    with pytest.raises(Unavailable, match="is kept locked by another program"):
                        await log.durable(log.append("run-1", epoch, [entry(1)]))
                other.rollback()

    asyncio.run(scene())


# -- reading ----------------------------------------------------------------------------------------------------------


def test_entries_that_vanish_are_told_and_never_skipped(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, entries(1, 10)))
            execute(postgres_url, "DELETE FROM entry WHERE seq = 4")
            with pytest.raises(Unavailable, match="`run-1` has no entry 1, or one soon after it, though it has 10"):
                list(log.read("run-1"))

    asyncio.run(scene())


def test_a_run_forgotten_while_it_is_read_is_told(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, entries(1, 5_000)))
            await log.release("run-1")
            reading = log.read("run-1")
            next(reading)
            await log.forget("run-1")
            with pytest.raises(Unavailable, match="`run-1` has no entry 2001"):
                list(reading)

    asyncio.run(scene())


def test_a_name_no_database_can_hold_names_nothing(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            assert log.header("\ud800") is None
            assert not log.has_owner("\ud800")
            with pytest.raises(Refused, match="there is no execution"):
                log.document("\ud800")
            with pytest.raises(Refused, match="cannot be stored"):
                await log.claim("\ud800", "me")

    asyncio.run(scene())


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unfit",
    [
        entry(2, scope="\ud800"),
        entry(2, ts=float("nan")),
        entry(2, ts="soon"),
        entry(2**70),
        entry(2, task=object()),
        entry(2, type=None),
        entry(2, payload=None),
    ],
)
def test_an_entry_that_cannot_be_stored_is_refused_and_harms_no_other_run(postgres_url: str, unfit: object) -> None:
    async def scene() -> None:
        async with owned(postgres_url, "run-1", "run-2") as (log, epoch):
            log.append("run-2", epoch, [entry(1)])
            first = log.append("run-1", epoch, [entry(1)])
            wrong = log.append("run-1", epoch, [unfit, entry(3)])  # type: ignore[list-item]
            after = log.append("run-1", epoch, [entry(2)])
            last = log.append("run-2", epoch, [entry(2)], status="completed")
            await log.durable(first)
            await log.durable(last)
            for ticket in (wrong, after):
                with pytest.raises(Refused, match=r"`run-1`"):
                    await log.durable(ticket)
            assert list(log.read("run-1")) == [entry(1)]
            assert list(log.read("run-2")) == entries(1, 2)
            await log.durable(log.append("run-2", epoch, [entry(3)]))

    asyncio.run(scene())


def test_what_only_the_server_finds_wrong_is_refused_and_harms_no_other_run(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url, "run-1", "run-2") as (log, epoch):
            execute(postgres_url, "ALTER TABLE entry ADD CHECK (type <> 'forbidden')")
            first = log.append("run-1", epoch, [entry(1)])
            wrong = log.append("run-1", epoch, [entry(2, type="forbidden")])
            after = log.append("run-1", epoch, [entry(3)])
            last = log.append("run-2", epoch, entries(1, 2), status="completed")
            await log.durable(first)
            await log.durable(last)
            with pytest.raises(
                Refused, match=r"entry 2 or one after it of `run-1` cannot be stored: .* check constraint"
            ):
                await log.durable(wrong)
            with pytest.raises(Refused, match="entry 2 or one after it of `run-1` cannot be stored"):
                await log.durable(after)
            assert list(log.read("run-1")) == [entry(1)]
            assert list(log.read("run-2")) == entries(1, 2)

    asyncio.run(scene())


def test_a_status_that_does_not_exist_is_refused(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            with pytest.raises(Refused, match="status `dancing` of `run-1` cannot be stored"):
                await log.durable(log.append("run-1", epoch, [], status="dancing"))  # type: ignore[arg-type]
            assert log.header("run-1") == header()

    asyncio.run(scene())


def test_a_header_or_a_key_that_cannot_be_stored_is_refused(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            # As random as an id may be: what repeats is compressed, and then fits.
            long = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(4_000))
            for bad in (header(name="\ud800"), header(""), header(status="dancing"), header(long)):
                with pytest.raises(Refused, match="cannot be stored"):
                    await log.create(bad, b"")
            with pytest.raises(Refused, match="cannot be stored"):
                await log.create(header(), b"", long)
            assert log.headers() == []

    asyncio.run(scene())
