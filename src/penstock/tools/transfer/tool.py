"""Rows from one place to another in chunks: what is in memory is one chunk, whatever the size of the whole.

Law: rows count as written only when their chunk is committed; a failure says how many those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.http.tool import HttpParams, HttpTool
from penstock.tools.sql import duckdb, sqlite
from penstock.tools.sql.connection import Stop, address_of, auth_of, interruptible
from penstock.tools.sql.cursors import open_duckdb, open_mysql, open_postgres, open_sqlite
from penstock.tools.sql.mysql import login_of
from penstock.tools.sql.plan import rows_of
from penstock.tools.sql.postgres_connection import conninfo
from penstock.tools.sql.results import prefixed
from penstock.tools.sql.tables import Change, DuckdbTable, MysqlTable, PostgresTable, Row, SqliteTable, Table, WriteMode
from penstock.tools.sql.text import Bound, Dialect
from penstock.tools.sql.types import to_database
from penstock.tools.transfer import params as ends
from penstock.tools.transfer.params import TableTarget, TransferParams
from penstock.tools.transfer.rows import (
    CsvLines,
    FileTarget,
    Flow,
    JsonLines,
    ParquetWriter,
    Shape,
    from_objects,
    read,
    read_csv,
    read_json,
    read_jsonl,
    shape_of,
    statement_of,
)

Writer = Table | FileTarget
"""The writing end. What comes before the first row belongs to the first chunk's commit; `abort` undoes what is not committed or
finished."""
OpenSource = Callable[[Stop], AbstractContextManager[Flow]]
OpenTarget = Callable[[Stop], Writer]
_SAY_EVERY = 5.0
_MODES: dict[str, WriteMode] = {
    "append": "insert",
    "truncate": "truncate_insert",
    "upsert": "upsert",
    "replace": "replace",
}


def wanted_columns(params: TransferParams) -> list[str] | None:
    """The source's names of the columns to move, or None for all."""
    if params.columns is None:
        return None
    return list(params.columns.values() if isinstance(params.columns, dict) else params.columns)


def target_names(params: TransferParams, flow: Flow) -> list[tuple[str, int]]:
    """What the target calls each column, and where it stands in the source's rows."""
    if params.columns is None:
        return [(name, index) for index, name in enumerate(flow.columns)]
    pairs = params.columns if isinstance(params.columns, dict) else {name: name for name in params.columns}
    for source in pairs.values():
        if source not in flow.columns:
            known = ", ".join(f"`{name}`" for name in flow.columns)
            raise ToolFailure("columns", f"the source has no column `{source}`; it has {known or 'none'}")
    return [(name, flow.columns.index(source)) for name, source in pairs.items()]


def change_of(target: TableTarget, shape: Shape, dialect: Dialect) -> Change:
    if target.mode == "upsert" and not target.keys:
        raise ToolFailure("parameters", "`mode: upsert` needs `keys`, the columns that identify a row")
    missing = [name for name in [*target.keys, *target.types] if name not in shape.columns]
    if missing:
        known = ", ".join(f"`{name}`" for name in shape.columns)
        raise ToolFailure("parameters", f"the target's column `{missing[0]}` is not among those moved: {known}")
    types = {
        name: to_database(type, dialect, key=name in target.keys)
        for name, type in zip(shape.columns, shape.types, strict=True)
    }
    return Change(
        target.table,
        _MODES.get(target.mode, "insert"),
        shape.columns,
        keys=target.keys,
        create=target.create,
        types=types | target.types,
        texts_are_values=shape.origin == "json",
    )


@dataclass(slots=True)
class Count:
    rows_read: int = 0
    rows_written: int = 0
    chunks: int = 0

    def as_json(self) -> JsonMap:
        return {"rows_read": self.rows_read, "rows_written": self.rows_written, "chunks": self.chunks}


class Move:
    """One transfer, in a thread."""

    def __init__(self, params: TransferParams, call: Call, stop: Stop) -> None:
        self.params = params
        self.call = call
        self.stop = stop
        self.count = Count()
        self.columns: list[str] = []
        self._said_at = call.clock.now()

    def run(self, open_source: OpenSource, open_target: OpenTarget) -> None:
        try:
            with ExitStack() as opened:
                with _prefixed("opening the source"):
                    flow = opened.enter_context(open_source(self.stop))
                with _prefixed("opening the target"):
                    writer = open_target(self.stop)
                opened.callback(writer.close)
                self._write(flow, writer)
        except ToolFailure as failure:
            failure.detail.update(self.count.as_json())
            raise

    def _write(self, flow: Flow, writer: Writer) -> None:
        finished = False
        try:
            self._all(flow, writer)
            finished = True
        except writer.errors as error:
            failure = writer.failure(error)
            hint = ""
            if failure.kind == "not_found" and not getattr(self.params.target, "create", True):
                hint = "; hint: `create: true` makes a missing table"
            raise prefixed(failure, f"writing to {self._target()}", hint) from None
        finally:
            if not finished:
                writer.abort()

    def _target(self) -> str:
        target = self.params.target
        return f"`{getattr(target, 'table', None) or getattr(target, 'path', '')}`"

    def _all(self, flow: Flow, writer: Writer) -> None:
        names = target_names(self.params, flow)
        self.columns = [name for name, _ in names]
        places = [index for _, index in names]
        first: Sequence[Row] | None = None
        uncommitted = 0
        for batch in flow.batches:
            self.stop.check()
            rows = [[row[place] for place in places] for row in batch]
            self.count.rows_read += len(rows)
            if first is None:
                first = rows
                self._start(writer, shape_of(flow, names, rows))
            uncommitted += writer.write(rows)
            self.count.chunks += 1
            if not self.params.atomic:
                writer.commit()
                self.count.rows_written += uncommitted
                uncommitted = 0
            self._say()
        if first is None:
            self._start(writer, shape_of(flow, names, []))
        self.stop.check()
        writer.commit()
        writer.finish()
        self.count.rows_written += uncommitted

    def _start(self, writer: Writer, shape: Shape) -> None:
        if isinstance(writer, FileTarget | ParquetWriter):
            writer.start(shape)
        else:
            assert isinstance(self.params.target, TableTarget)
            writer.prepare(change_of(self.params.target, shape, writer.dialect))

    def _say(self) -> None:
        now = self.call.clock.now()
        if now - self._said_at >= _SAY_EVERY:
            self._said_at = now
            self.call.say(f"{self.count.rows_read} rows read, {self.count.rows_written} committed")


@contextmanager
def _prefixed(doing: str) -> Iterator[None]:
    try:
        yield
    except ToolFailure as failure:
        raise prefixed(failure, doing) from None


class _Ends:
    """Opens both ends: what must be awaited is, the rest is left for the thread."""

    def __init__(self, params: TransferParams, call: Call, held: AsyncExitStack) -> None:
        self.params = params
        self.call = call
        self.held = held
        self.size = params.chunk_rows
        self.wanted = wanted_columns(params)

    def _path(self, path: str) -> Path:
        return local_path(path, self.call)

    async def source(self) -> OpenSource:
        source, call, size = self.params.source, self.call, self.size
        match source:
            case ends.PostgresSource():
                address = address_of(source, call)
                text, statement = conninfo(address, call), self._statement(source, Dialect.POSTGRES)
                return lambda stop: read(open_postgres(text, address, statement, stop), size)
            case ends.MysqlSource():
                login = login_of(address_of(source, call), call)
                statement = self._statement(source, Dialect.MYSQL)
                return lambda stop: read(open_mysql(login, statement, stop), size)
            case ends.SqliteSource():
                statement, file = self._statement(source, Dialect.SQLITE), await self._sqlite(source)
                return lambda stop: read(open_sqlite(file, statement, stop), size)
            case ends.DuckdbSource():
                statement, cursor = self._statement(source, Dialect.DUCKDB), await self._duckdb(source)
                return lambda stop: read(open_duckdb(cursor, statement, stop), size)
            case ends.HttpSource():
                return self._file(source, source.format, await self._fetched(source))
            case ends.RowsSource():
                rows = rows_of(source.rows, call, "`source.rows`")
                return lambda stop: _at_hand(rows, size, self.wanted)
            case ends.CsvSource():
                return self._file(source, "csv", self._path(source.path))
            case ends.JsonSource():
                return self._file(source, "json", self._path(source.path))
            case ends.JsonlSource():
                return self._file(source, "jsonl", self._path(source.path))
            case ends.ParquetSource():
                return self._parquet(self._path(source.path))

    def _statement(self, source: ends.ServerSource | ends.DatabaseFileSource, dialect: Dialect) -> Bound:
        return statement_of(source, dialect, self.wanted, self.call)

    async def _sqlite(self, end: ends.DatabaseFileSource | ends.DatabaseFileTarget) -> sqlite.SharedSqlite:
        shared = await sqlite.shared_database(sqlite.path_of(end.path, auth_of(end), self.call), self.call)
        if shared.turn is not None:
            await self.held.enter_async_context(shared.turn)
        return shared

    async def _duckdb(self, end: ends.DatabaseFileSource | ends.DatabaseFileTarget) -> Callable[[Stop], Any]:
        shared = await duckdb.shared_database(duckdb.path_of(end.path, auth_of(end), self.call), self.call)
        return lambda stop: shared.cursor(self.call.folder, stop)

    async def _fetched(self, source: ends.HttpSource) -> Path:
        request = HttpParams(
            url=source.url,
            method=source.method,
            params=source.params,
            headers=source.headers,
            json=source.json,
            auth=source.auth,
            response="stream",
            max_response_bytes=1 << 50,
        )
        answer = await HttpTool().run(request, self.call)
        result: Any = answer.result
        return Path(self.call.blobs.path(ResultRef.from_json(result["data"])))

    def _file(self, source: Any, form: str, path: Path) -> OpenSource:
        size = self.size
        if form == "csv":
            encoding = getattr(source, "encoding", "utf-8-sig")
            return lambda stop: read_csv(
                path, size, delimiter=source.delimiter, header=source.header, null=source.null, encoding=encoding
            )
        if form == "jsonl":
            return lambda stop: read_jsonl(path, size, self.wanted)
        return lambda stop: read_json(path, size, source.rows, self.wanted)

    def _parquet(self, path: Path) -> OpenSource:
        text = f"SELECT * FROM read_parquet('{str(path).replace(chr(39), chr(39) * 2)}')"
        statement = Bound(text, "select", frozenset({"select"}), text)
        return lambda stop: read(open_duckdb(lambda stop: duckdb.connect(duckdb.MEMORY), statement, stop), self.size)

    async def target(self) -> OpenTarget:
        target, call = self.params.target, self.call
        match target:
            case ends.PostgresTarget():
                address = address_of(target, call)
                text = conninfo(address, call)
                return lambda stop: PostgresTable(text, address, stop)
            case ends.MysqlTarget():
                login = login_of(address_of(target, call), call)
                return lambda stop: MysqlTable(login, stop)
            case ends.SqliteTarget():
                self._refuse_same_file(target)
                file = await self._sqlite(target)
                return lambda stop: SqliteTable(file, stop)
            case ends.DuckdbTarget():
                cursor = await self._duckdb(target)
                return lambda stop: DuckdbTable(cursor, stop)
            case ends.CsvTarget():
                lines = CsvLines(delimiter=target.delimiter, header=target.header, null=target.null)
                return lambda stop: FileTarget(self._path(target.path), lines, append=target.mode == "append")
            case ends.JsonlTarget():
                append = target.mode == "append"
                return lambda stop: FileTarget(self._path(target.path), JsonLines(), append=append)
            case ends.JsonTarget():
                return lambda stop: FileTarget(self._path(target.path), JsonLines(as_list=True))
            case ends.ParquetTarget():
                return lambda stop: ParquetWriter(self._path(target.path), target.types, stop)

    def _refuse_same_file(self, target: ends.SqliteTarget) -> None:
        source = self.params.source
        if not isinstance(source, ends.SqliteSource):
            return
        paths = [sqlite.path_of(end.path, auth_of(end), self.call) for end in (source, target)]
        if paths[0] == paths[1]:
            # A reader keeps a SQLite file from being committed to: the two would wait for each other.
            raise ToolFailure(
                "parameters",
                "source and target are the same SQLite database; hint: use the `sqlite` tool with `INSERT … SELECT`",
            )


@contextmanager
def _at_hand(rows: list[Any], size: int, wanted: Sequence[str] | None) -> Iterator[Flow]:
    yield from_objects(rows, size, wanted)


class TransferTool(Tool[TransferParams]):
    """Move rows from one database, file or HTTP response to another, a chunk at a time.

    `source` and `target` each have a `kind` (`postgres`, `mysql`, `sqlite`, `duckdb`, `csv`, `json`, `jsonl`, `parquet`;
    sources also `http` and `rows`) and the parameters of that kind. `columns` picks and renames columns.
    Each chunk of `chunk_rows` rows is one commit; with `atomic: true` there is one for everything. A file appears when it is
    complete. `mode: upsert`, `replace` and `truncate` can be run again after a failure without doubling rows.
    `create: true` makes a missing table: types come from the source's columns, or else from the first chunk.
    CSV values are text, and the target's columns give them their types; an empty field is a missing value.
    The result is `{rows_read, rows_written, chunks, columns}`; after a failure `outcome.error` has the same counts.
    """

    kind: ClassVar[str] = "transfer"

    async def run(self, params: TransferParams, call: Call) -> object:
        async with AsyncExitStack() as held:
            opened = _Ends(params, call, held)
            open_source, open_target = await opened.source(), await opened.target()

            def work(stop: Stop) -> Move:
                move = Move(params, call, stop)
                move.run(open_source, open_target)
                return move

            move = await interruptible(call, work)
        columns: list[Json] = list(move.columns)
        return Success({**move.count.as_json(), "columns": columns})
