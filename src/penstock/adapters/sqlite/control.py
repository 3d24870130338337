"""The control store of one machine: `control.db` in the state folder, or in memory, for tests and for a server that keeps
nothing.

Law: what changes is changed in one transaction, and is on disk when the call returns.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.adapters import control
from penstock.adapters.control import Seal
from penstock.adapters.files.folders import make_home
from penstock.adapters.sql_files import queries
from penstock.adapters.sqlite.database import Database
from penstock.kernel.errors import Refused
from penstock.ports.control import Filed, Scope, Token

STORE = "sqlite/control"
SQL = queries(STORE)
# A caller waits for the answer: half a minute, as for the log, would be too long.
BUSY_SECONDS = 10.0
FILE = "control.db"


class ControlDatabase(Database):
    """The file of the control store, which is opened for its owner alone."""

    store = STORE
    SQL = SQL
    tables = frozenset({"control_version"})

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        make_home(path.parent)
        super().__init__(path, busy_seconds)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A connection with one transaction for the whole block."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _settings(self, connection: sqlite3.Connection) -> None:
        super()._settings(connection)
        # A secret that was taken away or encrypted since is not left behind in free pages.
        connection.execute("PRAGMA secure_delete = ON")


class SqliteControl(control.ControlStore):
    def __init__(
        self,
        home: Path,
        *,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
        patience_s: float = BUSY_SECONDS,
    ) -> None:
        self._seal = control.Seal(environ)
        self._now = now
        self._database = ControlDatabase(home / FILE, patience_s)
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._database.close()

    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        self._check_open()
        values = control.filed_values(path, text, kind, digest, sources, by)
        with self._database.changing() as connection:
            row = connection.execute(SQL["newest_document"], values).fetchone()
            if row is not None and control.has_content(control.filed_of(row), kind, text, sources):
                return control.filed_of(row)
            (version,) = connection.execute(SQL["next_version"], values).fetchone()
            now = self._now()
            connection.execute(SQL["file"], {**values, "version": version, "now": now})
        return Filed(path, version, digest, kind, text=text, created_at=now, created_by=by, sources=dict(sources))

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        control.check_name("name", name)
        secret = control.new_token_secret()
        token = Token(control.new_token_id(), name, scope, self._now(), expires_at)
        values = {"id": token.id, "hash": control.hash_of(secret), "name": name, "scope": scope.value}
        self._changes("add_token", {**values, "now": token.created_at, "expires_at": expires_at})
        return token, secret

    def token(self, secret: str) -> Token | None:
        return self._used("token", "hash", control.hash_of(secret))

    def token_of_session(self, session: str) -> Token | None:
        return self._used("token_of_session", "session", control.hash_of(session))

    def _used(self, statement: str, column: str, shown: str) -> Token | None:
        now = self._now()
        for kept, *row in self._rows(statement, {column: shown, "now": now}):
            token = control.token_of(row)
            if not control.is_same(kept, shown):
                continue
            if control.is_used_anew(token.last_used_at, now):
                self._changes("use_token", {"id": token.id, "now": now})
                token = replace(token, last_used_at=now)
            return token
        return None

    # ---- the file

    def _rows(self, statement: str, values: control.Values) -> list[Any]:
        self._check_open()
        try:
            with self._database.reading() as connection:
                return connection.execute(SQL[statement], values).fetchall()
        except (UnicodeEncodeError, OverflowError):
            return []  # What cannot be kept is not there.

    def _changes(self, statement: str, values: control.Values) -> bool:
        """Whether there was something to change."""
        self._check_open()
        try:
            with self._database.changing() as connection:
                return connection.execute(SQL[statement], values).rowcount > 0
        except UnicodeEncodeError:
            return False

    def _check_open(self) -> None:
        if self._is_closed:
            raise Refused("the control store is closed", "open it again first")


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
