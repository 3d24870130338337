from __future__ import annotations

from pathlib import Path

import pytest

from penstock.adapters import sqlite_writer
from penstock.adapters.memory_log import MemoryLog, MemoryStore
from penstock.adapters.sqlite_log import SqliteLog
from penstock.ports.log import EventLog
from tests.contracts.log_contract import LogContract


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
