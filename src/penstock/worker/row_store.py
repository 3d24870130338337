"""The rows of one job while it runs: who holds them, what is durable, when they can be dropped.

Each sub-job has its engine. Rows stay in it as long as they have readers; another engine reads them as Parquet. Rows that
cross into another sub-job are also written to the result store, because that sub-job may run after a crash (D31); rows over
the in-flight limit go to disk (D19).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from penstock.kernel.errors import Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.rows import Column, Engine, EngineChoice, Engines, EngineSession, Relation, Schema
from penstock.ports.state_folder import PRIVATE_FOLDER

PARQUET = "application/vnd.apache.parquet"
CHUNK = 1 << 20


class RowStore:
    def __init__(self, folder: Path, make: Engines, blobs: BlobStore, *, is_offline: bool = False) -> None:
        self._is_offline = is_offline
        self.folder = folder
        self._make = make
        self._blobs = blobs
        self._engines: dict[EngineChoice, Engine] = {}
        self._files: Path | None = None
        self._is_made = False
        self._held: dict[str, dict[EngineChoice, Relation]] = {}
        """The rows of a port, on each engine that has them."""
        self._readers: dict[str, int] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    # ---- the engines

    def engine(self, choice: EngineChoice) -> Engine:
        """Created by the first component that uses rows; called from worker threads."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the job's rows have been let go")
            found = self._engines.get(choice)
            if found is None:
                self._make_folder()
                found = self._engines[choice] = self._make(choice, self.folder, is_offline=self._is_offline)
            return found

    def session(self, choice: EngineChoice) -> LazySession:
        return LazySession(self, choice)

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
            engines, self._engines = list(self._engines.values()), {}
        for engine in engines:
            engine.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- rows

    def keep(self, at: str, choice: EngineChoice, rows: Relation, readers: int) -> None:
        """`readers`: how many will read the rows, or -1 if that is not known beforehand."""
        with self._lock:
            self._held[at] = {choice: rows}
            self._readers[at] = readers
            self._spill(choice)

    def _spill(self, choice: EngineChoice) -> None:
        """Over the limit, the largest rows of the engine that wait for a reader go to disk first."""
        rows_limit, bytes_limit = choice.get("max_in_flight_rows"), choice.get("max_in_flight_bytes")
        if rows_limit is None and bytes_limit is None:
            return
        held = {at: copies[choice] for at, copies in self._held.items() if choice in copies}
        waiting = sorted((one for one in held.items() if not one[1].spilled), key=lambda one: -one[1].rows)
        while waiting and _is_over([rows for _, rows in waiting], rows_limit, bytes_limit):
            at, rows = waiting.pop(0)
            self._held[at][choice] = self.engine(choice).spill(rows)

    def find(self, output: Mapping[str, Any], choice: EngineChoice) -> Relation:
        """The rows that a component's end refers to, on the engine that asks; those of another engine or of an earlier
        process come from the result store."""
        at = str(output["at"])
        with self._lock:
            copies = self._held.setdefault(at, {})
            found = copies.get(choice)
            if found is None:
                found = copies[choice] = self._attached(at, output, choice, copies)
                self._readers.setdefault(at, -1)
            return found

    def _attached(
        self, at: str, output: Mapping[str, Any], choice: EngineChoice, copies: Mapping[EngineChoice, Relation]
    ) -> Relation:
        engine, stored = self.engine(choice), output.get("stored")
        if isinstance(stored, dict):
            path = Path(self._blobs.path(ResultRef.from_json(stored)))
            return engine.attach(path, schema_of(output["schema"]), int(output["rows"]), str(output["hash"]))
        for other, rows in copies.items():
            path = (
                self.files
                / f"handed-over-{sha256(repr((at, choice.kind, choice.told)).encode()).hexdigest()[:16]}.parquet"
            )
            self.engine(other).export(rows, path)
            return engine.attach(path, rows.schema, rows.rows, rows.hash)
        raise Unavailable(f"the rows of `{at}` are gone", "resume the run; the sub-job will make them again")

    def store(self, rows: Relation, choice: EngineChoice) -> JsonMap:
        """Make rows durable. Returns what the log needs in order to find them again."""
        path = self.folder / f"export-{threading.get_ident()}-{abs(hash(rows.name))}.parquet"
        self.engine(choice).export(rows, path)
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
        copies = self._held.pop(at, {})
        self._readers.pop(at, None)
        for choice, rows in copies.items():
            is_held = any(rows == other.get(choice) for other in self._held.values())
            if choice in self._engines and not is_held:
                self._engines[choice].drop(rows)


class LazySession:
    """A session that is opened on first use: most control components never touch a row."""

    def __init__(self, row_store: RowStore, choice: EngineChoice) -> None:
        self._plane = row_store
        self._choice = choice
        self._session: EngineSession | None = None
        self._is_interrupted = False

    def __getattr__(self, name: str) -> Any:
        if self._session is None:
            self._session = self._plane.engine(self._choice).session()
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


def _is_over(waiting: list[Relation], rows_limit: Json, bytes_limit: Json) -> bool:
    rows, size = sum(one.rows for one in waiting), sum(one.bytes for one in waiting)
    return (isinstance(rows_limit, int) and rows > rows_limit) or (isinstance(bytes_limit, int) and size > bytes_limit)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def schema_of(columns: Any) -> Schema:
    return tuple(
        Column(one["name"], one["type"], one.get("nullable", True), one.get("key", False), one.get("pattern"))
        for one in columns
    )
