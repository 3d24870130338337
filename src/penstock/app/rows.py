"""Rows of a job that has run: those of an output port that were stored, as mappings, Arrow, pandas or Polars.

Rows are stored when a run is asked to keep them (`keep=`), and where they had to outlast the process that made them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.components.forms import Form, framed
from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.kernel.errors import Refused
from penstock.ports.blobs import BlobStore, Missing, ResultRef
from penstock.ports.log import Entry, Header
from penstock.ports.results import decode
from penstock.ports.rows import Relation, Schema
from penstock.views.names import node_of
from penstock.worker.row_store import schema_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows that one run of a component put on the port."""

    ref: ResultRef
    schema: Schema
    rows: int


class Rows:
    """The rows of one output port. They are read from the result store each time they are asked for."""

    def __init__(self, name: str, blobs: BlobStore, parts: list[_Stored]) -> None:
        self.name = name
        self.columns: dict[str, str] = {column.name: column.type for column in parts[0].schema}
        """Name -> type, as DuckDB writes it."""
        self._blobs = blobs
        self._parts = parts

    def __len__(self) -> int:
        return sum(part.rows for part in self._parts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each row as a mapping."""
        names = list(self.columns)
        with self._opened() as (session, query, inputs):
            for batch in session.rows(query, inputs):
                for row in batch:
                    yield dict(zip(names, row, strict=True))

    def page(self, offset: int, limit: int) -> list[tuple[Any, ...]]:
        """Some of them, in the order in which they came out."""
        with self._opened() as (session, query, inputs):
            some = f"SELECT * FROM ({query}) LIMIT {int(limit)} OFFSET {int(offset)}"
            return [row for batch in session.rows(some, inputs) for row in batch]

    def arrow(self) -> pyarrow.Table:
        return self._frame(Form.ARROW)

    def pandas(self) -> pandas.DataFrame:
        return self._frame(Form.PANDAS)

    def polars(self) -> polars.DataFrame:
        frame: polars.DataFrame = self._frame(Form.POLARS)
        return frame

    def __repr__(self) -> str:
        return f"<Rows of {self.name}: {len(self):,} rows, {len(self.columns)} columns>"

    def _frame(self, form: Form) -> Any:
        with self._opened() as (session, query, inputs):
            try:
                return framed(session.arrow(query, inputs), form)
            except ModuleNotFoundError as error:
                raise Refused(
                    f"this needs `{error.name}`, which this installation does not have",
                    "`pip install 'penstock[frames]'` installs pyarrow, pandas and Polars",
                ) from error

    @contextmanager
    def _opened(self) -> Iterator[tuple[DuckDbSession, str, dict[str, Relation]]]:
        with tempfile.TemporaryDirectory(prefix="penstock-rows-") as folder:
            files = [self._file(part, Path(folder) / f"{number}.parquet") for number, part in enumerate(self._parts)]
            engine = DuckDbEngine(Path(folder))
            try:
                inputs = {
                    f"part_{number}": engine.attach(file, part.schema, part.rows, "")
                    for number, (part, file) in enumerate(zip(self._parts, files, strict=True))
                }
                session = engine.session()
                try:
                    yield session, " UNION ALL ".join(f'SELECT * FROM "{name}"' for name in inputs), inputs
                finally:
                    session.close()
            finally:
                engine.close()

    def _file(self, part: _Stored, otherwise: Path) -> Path:
        try:
            try:
                return Path(self._blobs.path(part.ref))
            except Refused:  # The store keeps no files of this machine.
                otherwise.write_bytes(self._blobs.get(part.ref))
                return otherwise
        except Missing as error:
            raise Refused(
                f"the rows of `{self.name}` were deleted", "`penstock prune` does that; run the job again"
            ) from error


def rows_of(header: Header, entries: Iterator[Entry], blobs: BlobStore, name: str) -> Rows:
    """The rows of `COMPONENT[.PORT]`; of a component in the body of an iterator, those of all iterations, or of one:
    `each[#3].load.main`. Of a component that ran again after a resume, the last counts."""
    if header.kind != "job":
        raise Refused(f"`{header.name}` is a playbook, which has no rows", "its values are in `result` and `ctx`")
    component, dot, port = name.rpartition(".")
    wanted = {(name, "main"), *({(component, port)} if dot else ())}
    found: dict[str, _Stored] = {}
    ran: set[str] = set()
    seen: dict[str, int] = {}
    for entry in entries:
        if entry.type != "component.ok" or "/" in entry.scope:
            continue
        for port, output in _outputs(entry).items():
            ran.add(f"{node_of(entry.scope)}.{port}")
            if {(entry.scope, port), (node_of(entry.scope), port)} & wanted:
                seen[entry.scope] = int(output["rows"])
                if isinstance(output.get("stored"), dict):
                    found[entry.scope] = _Stored(
                        ResultRef.from_json(output["stored"]), schema_of(output["schema"]), int(output["rows"])
                    )
    if found and len(found) == len(seen):
        return Rows(name, blobs, list(found.values()))
    if seen:
        count = sum(seen.values())
        raise Refused(
            f"the {count:,} rows of `{name}` were not kept",
            f"rows go when nobody needs them any more; run the job with `keep=[{name!r}]`",
        )
    known = ", ".join(f"`{one}`" for one in sorted(ran)[:20])
    raise Refused(
        f"no rows came out of `{name}` in this run",
        f"rows came out of {known}" if known else "no component gave rows out",
    )


def _outputs(entry: Entry) -> dict[str, Any]:
    payload: Any = decode(entry.payload)
    return {port: output for port, output in payload["outputs"].items() if isinstance(output, dict)}
