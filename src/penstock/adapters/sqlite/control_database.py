"""The file of the control store: opened for its owner alone, and brought to the schema this program knows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.adapters.files.folders import make_home
from penstock.adapters.sql_files import queries, schema_files, statements
from penstock.adapters.sqlite.database import APPLICATION_ID, Database
from penstock.kernel.errors import Unavailable

STORE = "sqlite/control"
SQL = queries(STORE)
# Somebody waits for the answer; half a minute, as the log takes, would be too long.
BUSY_SECONDS = 10.0


class ControlDatabase(Database):
    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        make_home(path.parent)
        super().__init__(path, busy_seconds)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A connection on which all that is done until the end is done at once, or not at all."""
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

    def _prepare(self, connection: sqlite3.Connection) -> None:
        known = schema_files(STORE)
        newest = max(known)
        if self._version(connection, newest) == newest:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again under the lock: another process may have brought the schema up in the meantime.
            for number in range(self._version(connection, newest) + 1, newest + 1):
                for statement in statements(known[number].read_text(encoding="utf-8")):
                    connection.execute(statement)
                connection.execute(SQL["record_version"], {"version": number})
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _version(self, connection: sqlite3.Connection, newest: int) -> int:
        tables = {name for (name,) in connection.execute(SQL["table_names"])}
        if not tables:
            return 0
        if "control_version" not in tables:
            raise Unavailable(
                f"`{self.path}` is a database of another program",
                "move it away, or choose another folder with `PENSTOCK_HOME`",
            )
        version: int = connection.execute(SQL["schema_version"]).fetchone()[0] or 0
        if version > newest:
            raise Unavailable(
                f"`{self.path}` was written by a newer Penstock (schema {version}; this one knows up to {newest})",
                "use that version, or choose another folder with `PENSTOCK_HOME`",
            )
        return version
