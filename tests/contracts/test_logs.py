from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.adapters.postgres.log import PostgresLog
from penstock.adapters.sqlite import writer as sqlite_writer
from penstock.adapters.sqlite.log import SqliteLog
from penstock.ports.log import PARTITIONS, EventLog, partition_of
from tests.contracts.log_contract import LogContract
from tests.contracts.log_damage_contract import LogDamageContract, flipped
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestMemoryLog(LogContract, LogDamageContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = MemoryStore()

    def open_log(self) -> EventLog:
        return MemoryLog(self.store)

    def damage(self, seq: int, field: str) -> None:
        kept = self.store.executions["run-1"].entries
        kept[seq - 1] = kept[seq - 1]._replace(**{field: flipped(getattr(kept[seq - 1], field))})

    def take_checksums(self) -> None:
        self.store.executions["run-1"].checksums.clear()


class TestSqliteLog(LogContract, LogDamageContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = tmp_path / "state"

    def open_log(self) -> EventLog:
        return SqliteLog(self.home)

    def damage(self, seq: int, field: str) -> None:
        with closing(sqlite3.connect(self.home / "penstock.db")) as database, database:
            found = f"SELECT place, {field} FROM event ORDER BY place LIMIT 1 OFFSET {seq - 1}"
            place, value = database.execute(found).fetchone()
            database.execute(f"UPDATE event SET {field} = ? WHERE place = ?", (flipped(value), place))

    def take_checksums(self) -> None:
        with closing(sqlite3.connect(self.home / "penstock.db")) as database, database:
            database.execute("UPDATE event SET checksum = NULL")


class TestSqliteLogOnItsOwnThread(TestSqliteLog):
    """As on a slow disk: nothing is committed on the calling thread."""

    @pytest.fixture(autouse=True)
    def _slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_writer, "INLINE_ENTRIES", -1)


class TestPostgresLog(LogContract, LogDamageContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def open_log(self) -> EventLog:
        return PostgresLog(self.url, name="a server")

    def damage(self, seq: int, field: str) -> None:
        with psycopg.connect(self.url) as connection:
            (value,) = connection.execute(f"SELECT {field} FROM entry WHERE seq = %s", (seq,)).fetchone() or (None,)
            connection.execute(f"UPDATE entry SET {field} = %s WHERE seq = %s", (flipped(value), seq))

    def take_checksums(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE entry SET checksum = NULL")


def test_a_partition_is_the_same_on_every_machine_and_in_every_release() -> None:
    assert [partition_of(name) for name in ("run-1", "", "ä 🚰", "\ud800")] == [227, 0, 226, 40]
    assert {partition_of(f"run-{number}") for number in range(5_000)} == set(range(PARTITIONS))
