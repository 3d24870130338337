"""What is the PostgreSQL log's own: its tables, how it groups commits, how it reads, and what it needs of the server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.adapters.postgres import log as postgres_log
from penstock.adapters.postgres.control import TABLES as CONTROL
from penstock.adapters.postgres.database import LOG, SQL, Tables, open_database
from penstock.adapters.postgres.log import PostgresLog
from penstock.adapters.postgres.rows import given, kept
from penstock.adapters.sql_files import FOLDER, queries, schema_files, sql_folder
from tests.adapters.postgres_scenes import execute, opened, owned, until
from tests.contracts.entries import entries, entry, header
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


def batches(log: PostgresLog) -> int:
    return log._writer._batches


def test_commits_are_durable_whatever_the_server_does_by_default(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, [entry(1)]))
            asked = "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')"
            connection = log._writer._connection
            assert connection
            assert connection.execute(asked).fetchone() == ("on", "read committed")

    options = conninfo_to_dict(postgres_url)["options"]
    loose = "-csynchronous_commit=off -cdefault_transaction_isolation=serializable"
    url = make_conninfo(postgres_url, options=f"{options} {loose}")
    assert execute(url, "SHOW synchronous_commit") == [("off",)]
    asyncio.run(scene())


def test_tasks_that_wait_at_the_same_time_share_a_commit(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            seq = 0

            async def work() -> None:
                nonlocal seq
                for _ in range(10):
                    seq += 1
                    await log.durable(log.append("run-1", epoch, [entry(seq)]))

            await asyncio.gather(*(work() for _ in range(40)))
            assert batches(log) <= 60

    asyncio.run(scene())


def test_the_appends_of_many_executions_share_a_commit(postgres_url: str) -> None:
    async def scene() -> None:
        names = [f"run-{number}" for number in range(20)]
        async with owned(postgres_url, *names) as (log, epoch):
            tickets = []
            for seq in range(1, 6):
                tickets += [log.append(name, epoch, [entry(seq)]) for name in names]
            for ticket in tickets:
                await log.durable(ticket)
            assert batches(log) <= 3
            assert all(list(log.read(name)) == entries(1, 5) for name in names)

    asyncio.run(scene())


def test_entries_nobody_waits_for_are_written_all_the_same_in_few_transactions(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            for seq in range(1, 2_001):
                log.append("run-1", epoch, [entry(seq)])
                if seq % 50 == 0:
                    await asyncio.sleep(0)
            await until(lambda: log.backlog == 0, "they are not written")
            assert batches(log) <= 200
            assert log.header("run-1") == header(last_seq=2_000)

    asyncio.run(scene())


def test_a_log_can_be_appended_to_without_a_running_loop(postgres_url: str) -> None:
    async def begin() -> PostgresLog:
        log = PostgresLog(postgres_url, name="a server")
        await log.create(header(), b"")
        await log.claim("run-1", "me")
        return log

    log = asyncio.run(begin())
    for seq in range(1, 1_001):
        log.append("run-1", 1, [entry(seq)])
    log.ask("run-1", "cancel")
    log.answered(log.asked("run-1")[0].number)
    asyncio.run(log.close())
    assert execute(postgres_url, "SELECT count(*), max(seq) FROM entry") == [(1_000, 1_000)]


def test_waiters_on_two_event_loops_are_all_woken(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            tickets = [log.append("run-1", epoch, [entry(seq)]) for seq in range(1, 301)]
            threads = [
                threading.Thread(target=lambda t=ticket: asyncio.run(log.durable(t))) for ticket in tickets[::60]
            ]
            for thread in threads:
                thread.start()
            await asyncio.gather(*(log.durable(ticket) for ticket in tickets))
            for thread in threads:
                await asyncio.to_thread(thread.join)

    asyncio.run(scene())


def test_more_threads_than_connections_may_read_at_once(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, entries(1, 500)))
            seen: list[int] = []
            threads = [threading.Thread(target=lambda: seen.append(len(list(log.read("run-1"))))) for _ in range(30)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
            assert seen == [500] * 30
            assert len(log._database._idle) <= 8

    asyncio.run(scene())


def test_a_page_has_no_more_bytes_than_its_limit_and_one_entry(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_log, "PAGE_BYTES", 10_000)

    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            made = [entry(seq, b"x" * 4_000) for seq in range(1, 20)] + [entry(20, b"y" * 50_000), entry(21)]
            await log.durable(log.append("run-1", epoch, made))
            assert list(log.read("run-1")) == made
            born = execute(postgres_url, "SELECT born FROM execution")[0][0]
            values = {"born": born, "execution_id": "run-1", "last": 21, "limit": 2_000, "bytes": 10_000}
            sizes = {after: len(log._rows(SQL["read_page"], **values, after=after)) for after in (0, 10, 18, 19, 20)}
            assert sizes == {0: 3, 10: 3, 18: 2, 19: 1, 20: 1}

    asyncio.run(scene())


def test_the_history_can_be_read_with_a_database_shell(postgres_url: str) -> None:
    async def scene() -> None:
        async with owned(postgres_url) as (log, epoch):
            await log.durable(log.append("run-1", epoch, [entry(1, b'{"a":1}'), entry(2)]))
            rows = execute(postgres_url, "SELECT execution_id, seq, type, payload FROM history ORDER BY seq")
            assert rows == [("run-1", 1, "task.done", '{"a":1}'), ("run-1", 2, "task.done", "{}")]

    asyncio.run(scene())


def test_the_partition_is_stored_with_the_execution(postgres_url: str) -> None:
    async def scene() -> None:
        async with opened(postgres_url) as log:
            await log.create(header("run-1"), b"")

    asyncio.run(scene())
    assert execute(postgres_url, "SELECT partition FROM execution") == [(227,)]


@pytest.mark.parametrize("text", ["", "plain", "\x00", "\x1a", "\x1a0", "\x1a1", "\x1a\x00\x1a\x1a0\x00", "é\x00🚰"])
def test_any_text_is_kept_without_the_character_0_and_given_back_as_it_was(text: str) -> None:
    assert "\x00" not in kept(text)
    assert given(kept(text)) == text


def test_what_starts_a_run_without_postgresql_does_not_load_it() -> None:
    code = "import sys, penstock.app.embedded, penstock.ports.partitions, penstock.adapters.memory.dispatch; "
    code += "sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_schema_files_are_numbered_without_gaps() -> None:
    assert list(schema_files("postgres/log")) == list(range(1, len(schema_files("postgres/log")) + 1))


@pytest.mark.parametrize(("tables", "earlier"), [(LOG, 1), (LOG, 4), (CONTROL, 1)], ids=["log 1", "log 4", "control 1"])
def test_tables_of_an_earlier_version_are_brought_up(postgres_url: str, tables: Tables, earlier: int) -> None:
    known = schema_files(tables.store)
    for number in range(1, earlier + 1):
        execute(postgres_url, known[number].read_text())
        execute(postgres_url, f"INSERT INTO {tables.versions} (version) VALUES ({number})")
    for _ in range(2):  # The second time there is nothing to do.
        open_database(postgres_url, tables=[tables]).close()
        assert execute(postgres_url, f"SELECT version FROM {tables.versions} ORDER BY version") == [(n,) for n in known]


@pytest.mark.parametrize("store", ["postgres/log", "postgres/database"])
def test_every_query_has_a_sentence_and_is_used(store: str) -> None:
    blocks = (sql_folder(store) / "queries.sql").read_text().split("-- name: ")[1:]
    sources = "".join(path.read_text() for path in (FOLDER / "postgres").glob("*.py"))
    for block in blocks:
        name, sentence = block.splitlines()[:2]
        assert sentence.startswith("-- "), name
        query = name.partition(".")[0]  # What follows a dot is one of its conditions.
        assert re.search(rf'(SQL|SHARED)\["{query}"\]', sources) or f'filtered(SQL, "{query}"' in sources, name
    assert len(queries(store)) == len(blocks)
