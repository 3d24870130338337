"""The SQLite log when the world fails: clear errors, nothing acknowledged lost, no silent gap."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.adapters.sqlite.database import Database
from penstock.adapters.sqlite.log import SqliteLog
from penstock.kernel.errors import Refused, Unavailable
from tests.adapters import children
from tests.contracts.entries import entries, entry, header


def test_a_full_disk_closes_the_log_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    async def fill() -> int:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"document")
        epoch = await log.claim("run-1", "me")
        # What SQLite says when the disk is full, it also says when the file has as many pages as it may have.
        log._writer._connection.execute("PRAGMA max_page_count = 40")
        seq = 0

        async def append_for_ever() -> None:
            nonlocal seq
            while True:
                await log.durable(log.append("run-1", epoch, [entry(seq + 1, b"x" * 3_000)]))
                seq += 1

        with pytest.raises(Unavailable, match=r"the disk is full: `.*penstock.db` could not be written") as first:
            await append_for_ever()
        assert "resume the run" in str(first.value.hint)
        for _ in range(2):
            with pytest.raises(Unavailable) as later:
                await log.durable(log.append("run-1", epoch, [entry(seq + 1)], status="failed"))
            assert later.value.message == first.value.message
        with pytest.raises(Unavailable, match="the disk is full"):
            await log.create(header("run-2"), b"")
        await log.release("run-1")
        await log.close()
        return seq

    async def go_on(seq: int) -> None:
        log = SqliteLog(tmp_path)
        assert [found.seq for found in log.read("run-1")] == list(range(1, seq + 1))
        assert log.header("run-1") == header(last_seq=seq)
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, [entry(seq + 1)], status="completed"))
        await log.close()

    acknowledged = asyncio.run(fill())
    assert acknowledged > 5
    asyncio.run(go_on(acknowledged))


def test_a_limit_on_file_sizes_is_told_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    said = children.finish(children.start("append_beyond_a_limit", tmp_path, 300_000))
    acknowledged, kind, message = said.split(maxsplit=2)
    assert kind == "Unavailable"
    assert str(tmp_path / "penstock.db") in message
    log = SqliteLog(tmp_path)
    found = [one.seq for one in log.read("run-1")]
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= int(acknowledged) > 5
    asyncio.run(log.close())


def test_what_waits_when_the_disk_fails_is_told_by_close(tmp_path: Path) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"document")
        epoch = await log.claim("run-1", "me")
        log._writer._connection.execute("PRAGMA max_page_count = 20")
        for seq in range(1, 101):
            log.append("run-1", epoch, [entry(seq, b"x" * 3_000)])
        with pytest.raises(Unavailable, match="the disk is full"):
            await log.close()
        await log.close()

    asyncio.run(scene())


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another program that has begun to write and goes on for long."""
    asyncio.run(SqliteLog(tmp_path).close())
    other = sqlite3.connect(tmp_path / "penstock.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_database_that_stays_locked_is_told(tmp_path: Path, locked: sqlite3.Connection) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path, busy_seconds=0.05)
        with pytest.raises(Unavailable, match=r"penstock.db` is locked by another program") as error:
            await log.create(header(), b"")
        assert "database shell" in str(error.value.hint)
        locked.execute("ROLLBACK")
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        locked.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(Unavailable, match="is locked by another program"):
                await log.durable(log.append("run-1", epoch, [entry(1)]))
        locked.execute("ROLLBACK")
        with pytest.raises(Unavailable, match="is locked by another program"):
            await log.durable(log.append("run-1", epoch, [entry(1)]))
        assert list(log.read("run-1")) == []
        await log.close()

    asyncio.run(scene())


def test_a_lock_that_ends_in_time_only_delays_and_does_not_stop_the_event_loop(
    tmp_path: Path, locked: sqlite3.Connection
) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        locked.execute("ROLLBACK")
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        locked.execute("BEGIN IMMEDIATE")
        waiting = [
            asyncio.create_task(log.durable(log.append("run-1", epoch, [entry(1)]))),
            asyncio.create_task(log.create(header("run-2"), b"")),
        ]
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not any(task.done() for task in waiting)
        locked.execute("ROLLBACK")
        await asyncio.gather(*waiting)
        assert log.header("run-1") == header(last_seq=1)
        await log.close()

    asyncio.run(scene())


@pytest.mark.parametrize("content", [b"not a database, and long enough to be looked at " * 50, b"\x00" * 5_000])
def test_a_file_that_is_no_database_is_told_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "penstock.db").write_bytes(content)
    with pytest.raises(Unavailable, match=r"penstock.db` is damaged: file is not a database") as error:
        SqliteLog(tmp_path)
    assert ".recover" in str(error.value.hint)
    assert (tmp_path / "penstock.db").read_bytes() == content


def test_damaged_pages_are_told_by_whoever_meets_them(tmp_path: Path) -> None:
    async def damage() -> None:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"document")
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, entries(1, 3_000)))
        await log.close()

    async def meet() -> None:
        log = SqliteLog(tmp_path)
        with pytest.raises(Unavailable, match=r"penstock.db` is damaged: database disk image is malformed"):
            list(log.read("run-1"))
        await log.close()

    asyncio.run(damage())
    file = tmp_path / "penstock.db"
    data = bytearray(file.read_bytes())
    middle = len(data) // 4096 // 2 * 4096
    data[middle : middle + 30 * 4096] = b"\xa5" * (30 * 4096)
    file.write_bytes(data)
    asyncio.run(meet())


def test_entries_that_vanish_are_told_and_never_skipped(tmp_path: Path) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"document")
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, entries(1, 10)))
        other = sqlite3.connect(log.path, isolation_level=None)
        other.execute("DELETE FROM event WHERE place % 65536 = 4")
        other.close()
        with pytest.raises(Unavailable, match="`run-1` has no entry 1, or one soon after it, though it has 10"):
            list(log.read("run-1"))
        await log.close()

    asyncio.run(scene())


def test_a_run_forgotten_while_it_is_read_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"document")
        epoch = await log.claim("run-1", "me")
        await log.durable(log.append("run-1", epoch, entries(1, 5_000)))
        await log.release("run-1")
        reading = log.read("run-1")
        next(reading)
        await log.forget("run-1")
        with pytest.raises(Unavailable, match="`run-1` has no entry 2001"):
            list(reading)
        await log.close()

    asyncio.run(scene())


def test_a_newer_schema_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    asyncio.run(SqliteLog(tmp_path).close())
    other = sqlite3.connect(tmp_path / "penstock.db", isolation_level=None)
    other.execute("INSERT INTO schema_version (version) VALUES (999)")
    other.close()
    with pytest.raises(Unavailable, match=r"was written by a newer Penstock \(schema 999; this one knows up to \d+\)"):
        SqliteLog(tmp_path)


def test_a_database_of_another_program_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "penstock.db", isolation_level=None)
    other.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Unavailable, match=r"penstock.db` is a database of another program"):
        SqliteLog(tmp_path)
    assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("recipes",)]
    other.close()


def test_a_missing_folder_is_made_and_an_empty_file_is_filled(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    asyncio.run(SqliteLog(home).close())
    (home / "penstock.db").write_bytes(b"")
    log = SqliteLog(str(home))
    assert log.headers() == []
    asyncio.run(log.close())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match=r"file` cannot be used: file exists"):
        SqliteLog(tmp_path / "file" / "state")
    with pytest.raises(Unavailable, match=r"`/proc/penstock` cannot be used"):
        SqliteLog("/proc/penstock/state")
    (tmp_path / "penstock.db").mkdir()
    with pytest.raises(Unavailable, match=r"penstock.db` cannot be opened"):
        SqliteLog(tmp_path)


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A state folder that may be looked into by all and written by none but root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(SqliteLog(folder).close())
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize("what", ["log", "blobs"])
def test_a_read_only_folder_is_told_by_its_name(forbidden: Path, what: str) -> None:
    said = children.finish(children.start("write_without_permission", forbidden, what))
    assert said.startswith("Unavailable")
    assert str(forbidden) in said
    assert "PENSTOCK_HOME" in said


def test_on_a_read_only_disk_a_whole_log_is_read_and_writing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tmpfs that is mounted read-only needs root, so the disk is only said to be one."""
    asyncio.run(SqliteLog(tmp_path).close())
    monkeypatch.setattr(Database, "_is_archive", lambda self: True)
    database = Database(tmp_path / "penstock.db")
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM execution").fetchone() == (0,)
    with pytest.raises(Unavailable, match="cannot be written"), database.reading() as connection:
        connection.execute("DELETE FROM execution")
    database.close()
    assert [path.name for path in tmp_path.iterdir()] == ["penstock.db"]


@pytest.mark.parametrize(
    "unfit",
    [
        entry(2, scope="\ud800"),
        entry(2, ts=float("nan")),
        entry(2**70),
        entry(2, task=object()),
        entry(2, type=None),
    ],
)
def test_an_entry_that_cannot_be_stored_is_refused_and_harms_no_other_run(tmp_path: Path, unfit: object) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        for name in ("run-1", "run-2"):
            await log.create(header(name), b"")
        mine, theirs = await log.claim("run-1", "me"), await log.claim("run-2", "me")
        log.append("run-2", theirs, [entry(1)])
        first = log.append("run-1", mine, [entry(1)])
        wrong = log.append("run-1", mine, [unfit, entry(3)])  # type: ignore[list-item]
        after = log.append("run-1", mine, [entry(2)])
        last = log.append("run-2", theirs, [entry(2)], status="completed")
        await log.durable(first)
        await log.durable(last)
        for ticket in (wrong, after):
            with pytest.raises(Refused, match=r"`run-1`"):
                await log.durable(ticket)
        assert list(log.read("run-1")) == [entry(1)]
        assert list(log.read("run-2")) == entries(1, 2)
        await log.durable(log.append("run-2", theirs, [entry(3)]))
        await log.close()

    asyncio.run(scene())


def test_a_status_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        await log.create(header(), b"")
        epoch = await log.claim("run-1", "me")
        with pytest.raises(Refused, match="status `dancing` of `run-1` cannot be stored"):
            await log.durable(log.append("run-1", epoch, [], status="dancing"))  # type: ignore[arg-type]
        assert log.header("run-1") == header()
        await log.close()

    asyncio.run(scene())


def test_a_header_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        log = SqliteLog(tmp_path)
        for bad in (header(name="\ud800"), header(""), header(status="dancing")):
            with pytest.raises(Refused, match="cannot be stored"):
                await log.create(bad, b"")
        assert log.headers() == []
        await log.close()

    asyncio.run(scene())
