"""What is the SQLite log's own: its files, how it groups commits, and what is left of it at every point of a crash."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from penstock.adapters.sql_files import FOLDER, filtered, queries, schema_files, sql_folder
from penstock.adapters.sqlite import writer as sqlite_writer
from penstock.adapters.sqlite.database import SQL
from penstock.adapters.sqlite.log import SqliteLog
from tests.contracts.entries import entries, entry, header


async def owned(home: Path) -> tuple[SqliteLog, int]:
    log = SqliteLog(home)
    await log.create(header(), b"document")
    return log, await log.claim("run-1", "me")


def count_commits(log: SqliteLog) -> list[str]:
    commits: list[str] = []
    log._writer._connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    return commits


def test_the_writer_uses_a_write_ahead_log_with_full_synchronisation(tmp_path: Path) -> None:
    async def scene() -> None:
        log, _ = await owned(tmp_path)
        asked = {
            name: log._writer._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "auto_vacuum", "application_id")
        }
        assert asked == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "auto_vacuum": 2,
            "application_id": 0x50454E53,
        }
        await log.close()

    asyncio.run(scene())


@pytest.mark.parametrize("inline", [64, -1])
def test_tasks_that_wait_at_the_same_time_share_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: int
) -> None:
    monkeypatch.setattr(sqlite_writer, "INLINE_ENTRIES", inline)

    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        commits = count_commits(log)
        seq = 0

        async def work() -> None:
            nonlocal seq
            for _ in range(10):
                seq += 1
                await log.durable(log.append("run-1", epoch, [entry(seq)]))

        await asyncio.gather(*(work() for _ in range(40)))
        assert len(commits) <= 40
        await log.close()

    asyncio.run(scene())


def test_entries_nobody_waits_for_are_committed_in_few_transactions(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        commits = count_commits(log)
        for seq in range(1, 5_001):
            log.append("run-1", epoch, [entry(seq)])
            if seq % 50 == 0:
                await asyncio.sleep(0)
        await log.durable(5_000)
        assert len(commits) <= 1_000
        await log.close()

    asyncio.run(scene())


def test_entries_nobody_waits_for_reach_the_disk_all_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        log.append("run-1", epoch, [entry(1)])
        for _ in range(20_000):
            if log.backlog:
                await asyncio.sleep(0.001)
        assert list(log.read("run-1")) == [entry(1)]
        await log.close()

    asyncio.run(scene())


def test_a_log_can_be_appended_to_without_a_running_loop(tmp_path: Path) -> None:
    log, epoch = asyncio.run(owned(tmp_path))
    for seq in range(1, 1_001):
        log.append("run-1", epoch, [entry(seq)])
    log.ask("run-1", "cancel")
    log.answered(log.asked("run-1")[0].number)
    asyncio.run(log.close())
    log = SqliteLog(tmp_path)
    assert list(log.read("run-1")) == entries(1, 1_000)
    asyncio.run(log.close())


def test_waiters_on_two_event_loops_are_all_woken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "INLINE_ENTRIES", -1)

    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        tickets = [log.append("run-1", epoch, [entry(seq)]) for seq in range(1, 301)]
        threads = [threading.Thread(target=lambda t=ticket: asyncio.run(log.durable(t))) for ticket in tickets[::60]]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(log.durable(ticket) for ticket in tickets))
        for thread in threads:
            await asyncio.to_thread(thread.join)
        await log.close()

    asyncio.run(scene())


def test_any_thread_may_read_while_the_owner_writes(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        seen: list[list[int]] = []

        def look() -> None:
            for _ in range(20):
                seen.append([found.seq for found in log.read("run-1")])
                log.headers()

        looking = [asyncio.create_task(asyncio.to_thread(look)) for _ in range(3)]
        for seq in range(1, 201):
            await log.durable(log.append("run-1", epoch, [entry(seq)]))
        await asyncio.gather(*looking)
        assert all(one == list(range(1, len(one) + 1)) for one in seen)
        await log.close()

    asyncio.run(scene())


def test_the_write_ahead_log_stays_small_and_is_gone_after_close(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        largest = 0
        for first in range(1, 60_001, 100):
            ticket = log.append("run-1", epoch, entries(first, first + 99))
            if first % 2_000 == 1:
                await log.durable(ticket)
                largest = max(largest, (tmp_path / "penstock.db-wal").stat().st_size)
        await log.close()
        assert largest < 16_000_000

    asyncio.run(scene())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["locks", "penstock.db"]


def test_forgetting_gives_the_room_back_to_the_disk(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        await log.durable(log.append("run-1", epoch, [entry(seq, b"x" * 500) for seq in range(1, 12_001)]))
        await log.release("run-1")
        await log.forget("run-1")
        await log.close()
        assert (tmp_path / "penstock.db").stat().st_size < 200_000

    asyncio.run(scene())


def test_a_forgetting_that_was_broken_off_is_finished_by_the_next_one(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        await log.durable(log.append("run-1", epoch, entries(1, 100)))
        await log.create(header("run-2"), b"")
        await log.release("run-1")
        other = sqlite3.connect(log.path, isolation_level=None)
        other.execute(queries("sqlite/log")["mark_forgotten"], ("run-1",)).fetchall()
        assert [found.execution_id for found in log.headers()] == ["run-2"]
        await log.forget("run-2")
        left = [other.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("execution", "event")]
        assert left == [0, 0]
        other.close()
        await log.close()

    asyncio.run(scene())


def test_the_history_can_be_read_with_a_database_shell(tmp_path: Path) -> None:
    async def scene() -> None:
        log, epoch = await owned(tmp_path)
        await log.durable(log.append("run-1", epoch, [entry(1, b'{"a":1}'), entry(2)]))
        other = sqlite3.connect(log.path)
        rows = other.execute("SELECT execution_id, seq, type, payload FROM history ORDER BY seq").fetchall()
        assert rows == [("run-1", 1, "task.done", '{"a":1}'), ("run-1", 2, "task.done", "{}")]
        other.close()
        await log.close()

    asyncio.run(scene())


def test_wherever_a_crash_cuts_the_write_ahead_log_all_acknowledged_entries_are_there(tmp_path: Path) -> None:
    """Each prefix of the file, and each with a block torn out: a crash may keep later blocks and lose an earlier one."""

    async def record() -> list[int]:
        """The size of the write-ahead log after each commit."""
        log, epoch = await owned(tmp_path)
        wal = tmp_path / "penstock.db-wal"
        sizes = [wal.stat().st_size]
        seq = 0
        for count in (1, 1, 3, 40, 1, 2, 1):
            await log.durable(log.append("run-1", epoch, entries(seq + 1, seq + count)))
            seq += count
            sizes.append(wal.stat().st_size)
            counts.append(seq)
        for name in ("penstock.db", "penstock.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")
        await log.close()
        return sizes

    async def recover(wal: bytes) -> list[int]:
        home = tmp_path / "crashed"
        home.mkdir()
        shutil.copy(tmp_path / "copy-penstock.db", home / "penstock.db")
        (home / "penstock.db-wal").write_bytes(wal)
        log = SqliteLog(home)
        found = [one.seq for one in log.read("run-1")]
        epoch = await log.claim("run-1", "the next one")
        await log.durable(log.append("run-1", epoch, [entry(len(found) + 1)]))
        await log.close()
        shutil.rmtree(home)
        return found

    async def enumerate_crashes() -> None:
        sizes = await record()
        whole = (tmp_path / "copy-penstock.db-wal").read_bytes()
        assert sizes[-1] == len(whole)
        for cut in range(sizes[0], len(whole), 512):
            acknowledged = max(count for size, count in zip(sizes, counts, strict=True) if size <= cut)
            torn = whole[:cut] + bytes(255 - byte for byte in whole[cut : cut + 512]) + whole[cut + 512 :]
            for wal in (whole[:cut], torn):
                assert await recover(wal) == list(range(1, acknowledged + 1)), cut

    counts = [0]
    asyncio.run(enumerate_crashes())


def test_schema_files_are_numbered_without_gaps() -> None:
    assert list(schema_files("sqlite/log")) == list(range(1, len(schema_files("sqlite/log")) + 1))


def test_every_query_has_a_sentence_and_is_used() -> None:
    blocks = (sql_folder("sqlite/log") / "queries.sql").read_text().split("-- name: ")[1:]
    sources = "".join(path.read_text() for path in (FOLDER / "sqlite").glob("*.py"))
    for block in blocks:
        name, sentence = block.splitlines()[:2]
        assert sentence.startswith("-- "), name
        query = name.partition(".")[0]  # What follows a dot is one of its conditions.
        assert f'SQL["{query}"]' in sources or f'filtered(SQL, "{query}"' in sources, name
    assert len(queries("sqlite/log")) == len(blocks)


@pytest.mark.parametrize(
    "given", [{"status": "failed"}, {"name": "orders"}, {"since": 0.0}, {"status": "failed", "since": 0.0}]
)
def test_a_filtered_list_of_runs_is_served_by_an_index(tmp_path: Path, given: dict[str, object]) -> None:
    values = {"limit": 20, **given}
    asyncio.run(SqliteLog(tmp_path).close())
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {filtered(SQL, 'headers', values)}", values).fetchall()
    steps = [str(row[3]) for row in rows]
    assert not any(step.startswith("SCAN") for step in steps), steps
    assert any("INDEX execution_" in step for step in steps), steps
