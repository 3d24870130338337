"""The rows of one job run, on DuckDB.

One database per run, one session per component run; sessions work at the same time in threads of their own. Rows lie in
memory as far as the limit allows and in the run's folder beyond that, which DuckDB sees to by itself; `close` takes all of
it away.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from penstock.data.duckdb_database import Database, Limits, failing_plainly, settle
from penstock.data.duckdb_session import DuckDbSession
from penstock.data.hashing import content_hash, content_query
from penstock.data.landing import Landing
from penstock.data.parquet import export_statement, view_statement
from penstock.ports.rows import Relation, RowsFailed, Schema
from penstock.ports.undoing import unless_done


class DuckDbEngine:
    def __init__(
        self,
        folder: Path,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        max_in_flight_rows: int | None = None,
        max_in_flight_bytes: int | None = None,
        max_spill: str | None = None,
        is_offline: bool = False,
    ) -> None:
        self._limits = Limits(memory_limit, threads, max_spill, max_in_flight_rows, max_in_flight_bytes, is_offline)
        self._database = Database(folder, self._limits)

    def session(self) -> DuckDbSession:
        return DuckDbSession(self._database, self._limits)

    def drop(self, relation: Relation) -> None:
        self._database.drop(relation.name)

    def export(self, relation: Relation, path: Path) -> None:
        landing = Landing(path)
        try:
            self._write(relation, landing.written)
            landing.land()
            settle(landing.path)
        finally:
            landing.discard()

    def attach(self, path: Path, schema: Schema, rows: int, hash: str) -> Relation:
        if not path.is_file():
            raise RowsFailed("missing_file", f"there is no file `{path}` to read rows from")
        return self._view(path, schema, rows, hash, is_ours=False)

    def spill(self, relation: Relation) -> Relation:
        if relation.spilled:
            return relation
        path = self._database.new_file()
        with unless_done(lambda: path.unlink(missing_ok=True)):
            self._write(relation, path)
            spilled = self._view(path, relation.schema, relation.rows, relation.hash, is_ours=True)
        self._database.drop(relation.name)
        return spilled

    def content_hash(self, relation: Relation) -> str:
        """The hash of the rows themselves, also where the relation has one of its plan."""
        if relation.hash.startswith("rows:"):
            return relation.hash
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            added = cursor.execute(content_query(relation.name, relation.schema)).fetchall()[0][0]
        return content_hash(relation.schema, relation.rows, added)

    def close(self) -> None:
        self._database.close()

    def _write(self, relation: Relation, path: Path) -> None:
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            cursor.execute(export_statement(relation.name, relation.schema, path))
        if not path.is_file():
            raise RowsFailed("io", f"`{path}` was not written")

    def _view(self, path: Path, schema: Schema, rows: int, hash: str, *, is_ours: bool) -> Relation:
        name = self._database.name_file(path, is_ours=is_ours)
        with failing_plainly(), closing(self._database.cursor()) as cursor:
            cursor.execute(view_statement(name, schema, path))
        return Relation(name, schema, rows, hash, path.stat().st_size, spilled=True)
