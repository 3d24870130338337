"""One SQLite file: opened, brought to the schema this program knows, and lent out as connections.

Law: a connection comes in WAL mode with full synchronisation and with the schema of this program, or not at all: then an
`Unavailable` names what is wrong with the file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, TypeVar

from penstock.adapters.files.folders import SAFE, full_disk, make_folder, unavailable_file
from penstock.adapters.sql_files import queries, schema_files, statements
from penstock.kernel.errors import Unavailable
from penstock.ports.state_folder import make_private_file
from penstock.ports.undoing import unless_done

T = TypeVar("T")


# ---- Errors of SQLite as messages: what is wrong, with which file, and what can be done.


def is_busy(error: sqlite3.Error) -> bool:
    return _family(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def unavailable(error: sqlite3.Error | OSError | MemoryError, path: Path) -> Unavailable:
    """The `Unavailable` for an error of SQLite about the file `path`."""
    if isinstance(error, OSError):
        return unavailable_file(error, path)
    if isinstance(error, MemoryError):
        return Unavailable(f"there was no memory left to work on `{path}`", f"{SAFE}; resume the run with more memory")
    match _family(error):
        case sqlite3.SQLITE_FULL:
            return full_disk(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return Unavailable(
                f"`{path}` is locked by another program",
                f"{SAFE}; end the program that holds it (a database shell, a backup) and resume the run",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return Unavailable(
                f"`{path}` is damaged: {error}",
                f"put a backup in its place, or save what can be read with `sqlite3 {path} .recover` and move "
                "the file away; the next run makes a new one",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return Unavailable(
                f"`{path}` cannot be written: {error}",
                "make the file and its folder writable, or choose another folder with `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_CANTOPEN if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
            return Unavailable(
                f"`{path}` cannot be opened: its folder is read-only",
                "make the folder writable, or choose another with `--store` or `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_CANTOPEN:
            return Unavailable(
                f"`{path}` cannot be opened: {error}",
                "see that it is a file and that its folder can be read and written, "
                "or choose another folder with `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_IOERR:
            return Unavailable(
                f"the disk under `{path}` failed: {error} ({_name(error)})",
                f"{SAFE}; see that the disk is healthy and has room, then resume the run",
            )
    return Unavailable(f"`{path}` could not be used: {error} ({_name(error)})", SAFE)


def _family(error: sqlite3.Error) -> int:
    """Extended codes keep their family in the low byte."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _name(error: sqlite3.Error) -> str:
    name: str = getattr(error, "sqlite_errorname", "no code")
    return name


APPLICATION_ID = 0x50454E53  # "PENS": `file` and other programs can tell whose database it is.
BUSY_SECONDS = 30.0
# The write-ahead log is copied into the database whenever it has passed this many pages, and cut to this size.
CHECKPOINT_PAGES = 1000
WAL_BYTES = 64 * 1024 * 1024

SQL = queries("sqlite/log")


def patiently(call: Callable[[], T], seconds: float) -> T:
    """`call`, again while another process holds the lock. Finer steps than SQLite's own, which begin at a millisecond
    and soon reach 100: two runs on one database hold the lock for a fraction of a millisecond at a time."""
    deadline = time.monotonic() + seconds
    pause = 0.0002
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


class Database:
    store: ClassVar = "sqlite/log"
    SQL: ClassVar = SQL
    tables: ClassVar = frozenset({"schema_version", "execution", "event"})
    """Those by which the database is recognised."""

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.busy_seconds = busy_seconds
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        make_folder(path.parent)
        # SQLite gives the files beside it the same permissions. If it cannot be created, SQLite reports why.
        with suppress(OSError):
            make_private_file(path)
        with self.guarding():
            connection = self._connect(busy_seconds)
            with unless_done(connection.close):
                self._prepare(connection)
        self._idle.append(connection)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Turns errors of SQLite about this file into `Unavailable`."""
        try:
            yield
        except (sqlite3.Error, OSError, MemoryError) as error:
            raise unavailable(error, self.path) from error

    def writing(self) -> sqlite3.Connection:
        """A connection for the one writer. It never waits inside SQLite: the writer chooses how long to be patient."""
        with self.guarding():
            return self._connect(0.0)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for one query, so that any thread may read and no read stays open."""
        with self.guarding():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(self.busy_seconds)
            try:
                yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _connect(self, busy_seconds: float) -> sqlite3.Connection:
        if self._is_archive():
            uri = f"{self.path.absolute().as_uri()}?immutable=1"
            return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        connection = sqlite3.connect(
            self.path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        with unless_done(connection.close):
            patiently(lambda: self._settings(connection), self.busy_seconds)
        return connection

    def _is_archive(self) -> bool:
        """On a read-only disk with an empty write-ahead log: SQLite must be told to read it as immutable."""
        try:
            read_only = bool(os.statvfs(self.path).f_flag & os.ST_RDONLY)
            wal = self.path.with_name(self.path.name + "-wal")
            return read_only and not (wal.exists() and wal.stat().st_size)
        except OSError:
            return False

    def _settings(self, connection: sqlite3.Connection) -> None:
        if self.path.stat().st_size == 0:
            # Takes effect only while the file is empty, needs the write lock, and lets `forget` return space to the disk.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise Unavailable(
                f"`{self.path}` lies where a write-ahead log cannot be kept (SQLite stays in mode `{mode}`)",
                "choose a folder on a local disk with `PENSTOCK_HOME`",
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        known = schema_files(self.store)
        newest = max(known)
        if self._version(connection, newest) == newest:
            return
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.busy_seconds)
        try:
            # Asked again under the lock: another process may have brought the schema up in the meantime.
            version = self._version(connection, newest)
            for number in range(version + 1, newest + 1):
                for statement in statements(known[number].read_text(encoding="utf-8")):
                    connection.execute(statement)
                connection.execute(self.SQL["record_version"], (number,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _version(self, connection: sqlite3.Connection, newest: int) -> int:
        tables = {name for (name,) in connection.execute(self.SQL["table_names"])}
        if not tables:
            return 0
        if not self.tables <= tables:
            raise Unavailable(
                f"`{self.path}` is a database of another program",
                "move it away, or choose another folder with `PENSTOCK_HOME`",
            )
        version: int = connection.execute(self.SQL["schema_version"]).fetchone()[0] or 0
        if version > newest:
            raise Unavailable(
                f"`{self.path}` was written by a newer Penstock (schema {version}; this one knows up to {newest})",
                "use that version, or choose another folder with `PENSTOCK_HOME`",
            )
        return version
