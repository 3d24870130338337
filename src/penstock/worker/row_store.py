"""The rows of one job while it runs: who holds them, what is durable, when they can be dropped.

Rows stay in the engine as long as they have readers. Rows that cross into another sub-job are also written to the result
store, because that sub-job may run after a crash (D31); rows over the in-flight limit go to disk (D19).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.kernel.errors import Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.rows import Column, Engine, EngineSession, Relation, Schema
from penstock.ports.state_folder import PRIVATE_FOLDER

PARQUET = "application/vnd.apache.parquet"
CHUNK = 1 << 20


class RowStore:
    def __init__(self, folder: Path, settings: JsonMap, blobs: BlobStore, *, is_offline: bool = False) -> None:
        self._is_offline = is_offline
        self.folder = folder
        self._settings = settings
        self._blobs = blobs
        self._engine: Engine | None = None
        self._files: Path | None = None
        self._is_made = False
        self._held: dict[str, Relation] = {}
        self._readers: dict[str, int] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    # ---- the engine

    @property
    def engine(self) -> Engine:
        """Created by the first component that uses rows; called from worker threads."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the job's rows have been let go")
            if self._engine is None:
                from penstock.data.duckdb_engine import (
                    DuckDbEngine,  # DuckDB takes long to load, and few components need it.
                )

                self._make_folder()
                self._engine = DuckDbEngine(self.folder, **_options(self._settings), is_offline=self._is_offline)
            return self._engine

    def session(self) -> LazySession:
        return LazySession(self)

    @property
    def files(self) -> Path:
        """Where components put temporary files; removed with the job."""
        with self._lock:
            if self._files is None:
                self._make_folder()
                self._files = self.folder / "files"
                self._files.mkdir(exist_ok=True)
            return self._files

    def _make_folder(self) -> None:
        """Create the folder once per process: files of components lie in it beside those of the engine."""
        if not self._is_made:
            shutil.rmtree(self.folder, ignore_errors=True)  # Left behind by a process that was killed.
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._is_made = True

    @property
    def is_open(self) -> bool:
        """Whether there is anything to release. There may be files of components without any rows."""
        return self._is_made

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- rows

    def keep(self, at: str, rows: Relation, readers: int) -> None:
        """`readers`: how many will read the rows, or -1 if that is not known beforehand."""
        with self._lock:
            self._held[at] = rows
            self._readers[at] = readers
            self._spill()

    def _spill(self) -> None:
        """Over the limit, the largest rows that wait for a reader go to disk first."""
        rows_limit, bytes_limit = self._settings.get("max_in_flight_rows"), self._settings.get("max_in_flight_bytes")
        if rows_limit is None and bytes_limit is None:
            return
        waiting = sorted((at for at, one in self._held.items() if not one.spilled), key=lambda at: -self._held[at].rows)
        while waiting and self._is_over(waiting, rows_limit, bytes_limit):
            at = waiting.pop(0)
            self._held[at] = self.engine.spill(self._held[at])

    def _is_over(self, waiting: list[str], rows_limit: Json, bytes_limit: Json) -> bool:
        rows = sum(self._held[at].rows for at in waiting)
        size = sum(self._held[at].bytes for at in waiting)
        return (isinstance(rows_limit, int) and rows > rows_limit) or (
            isinstance(bytes_limit, int) and size > bytes_limit
        )

    def find(self, output: Mapping[str, Any]) -> Relation:
        """The rows that a component's end refers to; those of an earlier process come from the result store."""
        at = str(output["at"])
        with self._lock:
            found = self._held.get(at)
            if found is None:
                stored = output.get("stored")
                if not isinstance(stored, dict):
                    raise Unavailable(
                        f"the rows of `{at}` are gone", "resume the run; the sub-job will make them again"
                    )
                path = Path(self._blobs.path(ResultRef.from_json(stored)))
                found = self.engine.attach(path, schema_of(output["schema"]), int(output["rows"]), str(output["hash"]))
                self._held[at], self._readers[at] = found, -1
            return found

    def store(self, rows: Relation) -> JsonMap:
        """Make rows durable. Returns what the log needs in order to find them again."""
        path = self.folder / f"export-{threading.get_ident()}-{abs(hash(rows.name))}.parquet"
        self.engine.export(rows, path)
        try:
            reference = self._blobs.put(_chunks(path), PARQUET)
        finally:
            path.unlink(missing_ok=True)
        stored = reference.as_json()
        stored.pop("$ref", None)
        return {"stored": stored, "schema": [column.as_json() for column in rows.schema]}

    def was_read(self, at: str) -> None:
        with self._lock:
            left = self._readers.get(at, -1)
            if left < 0:
                return
            self._readers[at] = left - 1
            if left <= 1:
                self._drop(at)

    def drop_under(self, prefix: str) -> None:
        """Drop the rows of an iteration that has closed."""
        with self._lock:
            for at in [one for one in self._held if one.startswith(prefix)]:
                self._drop(at)

    def _drop(self, at: str) -> None:
        rows = self._held.pop(at, None)
        self._readers.pop(at, None)
        if rows is not None and self._engine is not None and rows not in self._held.values():
            self._engine.drop(rows)


class LazySession:
    """A session that is opened on first use: most control components never touch a row."""

    def __init__(self, row_store: RowStore) -> None:
        self._plane = row_store
        self._session: EngineSession | None = None
        self._is_interrupted = False

    def __getattr__(self, name: str) -> Any:
        if self._session is None:
            self._session = self._plane.engine.session()
            if self._is_interrupted:
                self._session.interrupt()
        return getattr(self._session, name)

    def interrupt(self) -> None:
        self._is_interrupted = True
        if self._session is not None:
            self._session.interrupt()

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        if self._session is not None:
            self._session.close(handed_over)
            self._session = None


def _options(settings: JsonMap) -> dict[str, Any]:
    known = ("memory_limit", "threads", "max_in_flight_rows", "max_in_flight_bytes")
    return {name: settings[name] for name in known if settings.get(name) is not None}


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def schema_of(columns: Any) -> Schema:
    return tuple(
        Column(one["name"], one["type"], one.get("nullable", True), one.get("key", False), one.get("pattern"))
        for one in columns
    )
