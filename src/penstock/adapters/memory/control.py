"""The control store in memory, for tests and for a server that keeps nothing: that of SQLite, without a file.

Several `MemoryControl`s on one `MemoryControlStore` stand for several processes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.adapters.control import Seal
from penstock.adapters.sqlite.control import ControlDatabase, SqliteControl


class MemoryControlStore(ControlDatabase):
    """What outlives a control store that is closed: one connection, which they use in turn."""

    def __init__(self) -> None:
        self.path = Path(":memory:")
        self.busy_seconds = 0.0
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._prepare(self._connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self.guarding():
            yield self._connection

    def close(self) -> None:
        """It is kept for the next store that is opened on it."""


class MemoryControl(SqliteControl):
    def __init__(self, store: MemoryControlStore | None = None, *, now: Callable[[], float] = time.time) -> None:
        self._seal = Seal({})
        self._now = now
        self._database = store or MemoryControlStore()
        self._is_closed = False
