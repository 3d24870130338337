from __future__ import annotations

from pathlib import Path

import pytest

from penstock.adapters import sqlite_writer
from penstock.adapters.memory_log import MemoryLog, MemoryStore
from penstock.adapters.postgres_log import PostgresLog
from penstock.adapters.sqlite_log import SqliteLog
from penstock.ports.log import PARTITIONS, EventLog, partition_of
from tests.contracts.log_contract import LogContract
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestMemoryLog(LogContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = MemoryStore()

    def open_log(self) -> EventLog:
        return MemoryLog(self.store)


class TestSqliteLog(LogContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = tmp_path / "state"

    def open_log(self) -> EventLog:
        return SqliteLog(self.home)


class TestSqliteLogOnItsOwnThread(TestSqliteLog):
    """As on a slow disk: nothing is committed on the calling thread."""

    @pytest.fixture(autouse=True)
    def _slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_writer, "INLINE_ENTRIES", -1)


class TestPostgresLog(LogContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def open_log(self) -> EventLog:
        return PostgresLog(self.url, name="a server")


def test_a_partition_is_the_same_on_every_machine_and_in_every_release() -> None:
    assert [partition_of(name) for name in ("run-1", "", "ä 🚰", "\ud800")] == [227, 0, 226, 40]
    assert {partition_of(f"run-{number}") for number in range(5_000)} == set(range(PARTITIONS))
