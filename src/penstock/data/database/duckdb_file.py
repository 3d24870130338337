"""A DuckDB file as one job run sees it: the file and the rows of the run lie in one DuckDB, and a statement reads both.

What the run makes is in a database beside the file that is in memory and can spill, so the file has only what a component writes
into it. All connections of this process to the file lead to one DuckDB; so settings are those of a cursor wherever there is such.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from penstock.data.duckdb_database import Database, Limits, failing_plainly
from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.data.output_hash import plan_key
from penstock.data.statements import quoted
from penstock.ports.rows import OwnQuery, Relation, RowsFailed

_OF_A_CURSOR = ("SET TimeZone = 'UTC'", "SET errors_as_json = true")
_OF_ALL = (
    "SET GLOBAL autoinstall_known_extensions = false",
    # The marks that hold counts in place are samples; none may end up inside a scan.
    "SET GLOBAL disabled_optimizers = 'sampling_pushdown'",
)


class FileDatabase(Database):
    def __init__(
        self, folder: Path, limits: Limits, connect: Callable[[], duckdb.DuckDBPyConnection], place: object
    ) -> None:
        self._connect = connect
        self._beside = f"penstock_{secrets.token_hex(8)}"
        self.place = place
        super().__init__(folder, limits)

    def _open(self, limits: Limits) -> duckdb.DuckDBPyConnection:
        root = self._connect()
        self._threads = limits.threads or int(_asked(root, "SELECT current_setting('threads')"))
        settings = [*_OF_ALL, f"SET GLOBAL threads = {self._threads}"]
        if limits.memory is not None:
            settings.append(f"SET GLOBAL memory_limit = '{limits.memory}'")
        self._file = str(_asked(root, "SELECT current_database()"))
        for statement in (*settings, f"ATTACH ':memory:' AS {self._beside}"):
            root.execute(statement)
        return self._settled(root)

    def _settled(self, cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        for statement in (*_OF_A_CURSOR, f"USE {self._beside}"):
            cursor.execute(statement)
        return cursor

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._settled(super().cursor())

    def cursor_in_file(self) -> duckdb.DuckDBPyConnection:
        """One for which the tables of the file are at hand."""
        cursor = self.cursor()
        cursor.execute(f"USE {quoted(self._file)}")
        return cursor

    def stored_beside(self, name: str) -> str:
        """A table of the run, as any connection to the file names it."""
        return f"{self._beside}.main.{quoted(name)}"

    def drop(self, name: str) -> None:
        with self._lock:
            if self._is_closed or name not in self._files:
                return
            file = self._files.pop(name)
        kind = "VIEW" if name.startswith("f") else "TABLE"
        cursor = self.cursor()
        with failing_plainly():
            cursor.execute(f"DROP {kind} IF EXISTS {self.stored_beside(name)}")
        cursor.close()
        if file is not None:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        with self._lock:
            is_open = not self._is_closed
        if is_open:
            # The file's own DuckDB may live on in a tool.
            for cursor in list(self._cursors):
                cursor.close()
            self._root.execute(f"USE {quoted(self._file)}")
            self._root.execute(f"DETACH {self._beside}")
        super().close()


def _asked(root: duckdb.DuckDBPyConnection, question: str) -> Any:
    row = root.execute(question).fetchone()
    assert row is not None
    return row[0]


class DuckDbFileSession(DuckDbSession):
    _database: FileDatabase

    def take(self, query: OwnQuery) -> Relation:
        """The rows of a query of the author's over the tables of the file."""
        values = query.values
        with self.making() as name:
            cursor = self._database.cursor_in_file()
            try:
                with self.using(cursor):
                    if query.folders:
                        cursor.execute("SET file_search_path = $folders", {"folders": query.folders})
                    self._check_names(cursor, query.text, values)
                    text = f"CREATE TABLE {self._database.stored_beside(name)} AS SELECT * FROM (\n{query.text}\n)"
                    rows = (cursor.execute(text, values) if values else cursor.execute(text)).rowcount
            finally:
                cursor.close()
            with self.own() as own:
                return self.relation(own, name, rows, key=plan_key(secrets.token_hex(16), {}))

    @staticmethod
    def _check_names(cursor: duckdb.DuckDBPyConnection, statement: str, values: Mapping[str, Any] | None) -> None:
        question = f"DESCRIBE {statement}"
        found = (cursor.execute(question, values) if values else cursor.execute(question)).fetchall()
        names = [str(row[0]).lower() for row in found]
        if len(set(names)) < len(names):
            raise RowsFailed("columns", "two columns of the query have the same name; hint: `AS` gives another")

    def table(self, relation: Relation) -> str:
        """The table that the rows are in, as a connection to the file names it."""
        return self._database.stored_beside(relation.name)

    def is_text(self, type: str) -> bool:
        return type == "VARCHAR"


class DuckDbFileEngine(DuckDbEngine):
    _database: FileDatabase

    def __init__(
        self, folder: Path, limits: Limits, connect: Callable[[], duckdb.DuckDBPyConnection], place: object
    ) -> None:
        self._limits = limits
        self._database = FileDatabase(folder, limits, connect, place)

    def session(self) -> DuckDbFileSession:
        return DuckDbFileSession(self._database, self._limits)
