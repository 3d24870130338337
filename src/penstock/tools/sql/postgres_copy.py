"""COPY: the fast way of rows into and out of PostgreSQL, to and from files, the result store, or rows at hand."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO
from typing import Literal as OneOf

import msgspec
from msgspec import Meta

from penstock.kernel.values import JsonMap
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.meanings import READS_FILE
from penstock.tools.base import Call, ToolFailure
from penstock.tools.paths import local_path, os_failure, require_regular
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.lexer import Dialect, Kind, scan
from penstock.tools.sql.names import quote_all, quote_table
from penstock.tools.sql.plan import Bindings, Planner, Step, columns_of, rows_of
from penstock.tools.sql.postgres_connection import argument, arguments
from penstock.tools.sql.results import Table

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_CHUNK = 256 * 1024
_MEDIA = {"csv": "text/csv", "text": "text/tab-separated-values", "binary": "application/octet-stream"}


class CopyData(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """COPY in (`table` and `from`) or out (`table` or `query`, and `to`)."""

    table: Annotated[str | None, Meta(description="The table, spelled as the database keeps it.")] = None
    query: Annotated[str | None, Meta(description="Copy out what this query gives, instead of a table.")] = None
    source: Annotated[
        str | list[Any] | dict[str, Any] | None,
        Meta(
            description="Copy in: a file's path, or a list of rows, each a mapping or a list of values.",
            extra_json_schema=READS_FILE,
        ),
    ] = msgspec.field(default=None, name="from")
    to: Annotated[
        str | None,
        Meta(
            description="Copy out: a file's path, `blob` for the result store (the default), or `rows` for the result."
        ),
    ] = None
    columns: Annotated[list[str] | None, Meta(description="Columns, in the order of the data.")] = None
    format: Annotated[OneOf["csv", "text", "binary"], Meta(description="Format of the file.")] = "csv"
    header: Annotated[
        bool, Meta(description="csv: the first line names the columns; when reading, it decides which column is which.")
    ] = True
    delimiter: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1)] | None,
        Meta(description="csv and text: the character between values."),
    ] = None
    null: Annotated[str | None, Meta(description="csv and text: how a missing value is written.")] = None


@dataclass(frozen=True, slots=True)
class CopyIn(Step):
    table: str
    rows: list[Any] | None
    path: Path | None
    wanted: CopyData

    @property
    def excerpt(self) -> str:
        return f"COPY {self.table} FROM STDIN"


@dataclass(frozen=True, slots=True)
class CopyOut(Step):
    what: Bound | str
    """A query, or the quoted name of a table with its columns."""
    path: Path | None
    wanted: CopyData

    @property
    def excerpt(self) -> str:
        return f"COPY {self.what if isinstance(self.what, str) else f'({self.what.excerpt})'} TO STDOUT"


def copy_step(wanted: CopyData, params: Bindings, planner: Planner) -> Step:
    if wanted.source is not None:
        return _copy_in(wanted, planner.call)
    if (wanted.table is None) == (wanted.query is None):
        raise ToolFailure(
            "parameters", "`copy` out takes exactly one of `table` and `query`; `copy` in takes `table` and `from`"
        )
    if wanted.table is not None:
        columns = f" ({quote_all(wanted.columns, Dialect.POSTGRES)})" if wanted.columns else ""
        name = quote_table(wanted.table, Dialect.POSTGRES)
        if wanted.to == "rows":
            listed = quote_all(wanted.columns, Dialect.POSTGRES) if wanted.columns else "*"
            return planner.item(f"SELECT {listed} FROM {name}", None)
        return CopyOut(name + columns, _target(wanted, planner.call), wanted)
    if wanted.to == "rows":
        return planner.item(wanted.query or "", params)
    statements = planner.text(wanted.query or "", params)
    if len(statements) != 1:
        raise ToolFailure("parameters", f"`copy.query` takes one statement, and this text has {len(statements)}")
    return CopyOut(statements[0], _target(wanted, planner.call), wanted)


def _copy_in(wanted: CopyData, call: Call) -> CopyIn:
    if wanted.table is None or wanted.query is not None or wanted.to is not None:
        raise ToolFailure("parameters", "`copy` in takes `table` and `from`, without `query` or `to`")
    if isinstance(wanted.source, str):
        return CopyIn(wanted.table, None, local_path(wanted.source, call), wanted)
    if isinstance(wanted.source, dict) and is_ref(wanted.source) and wanted.source.get("media") != "application/json":
        return CopyIn(wanted.table, None, Path(call.blobs.path(ResultRef.from_json(wanted.source))), wanted)
    return CopyIn(wanted.table, rows_of(wanted.source, call, "`copy.from`"), None, wanted)


def _target(wanted: CopyData, call: Call) -> Path | None:
    return None if wanted.to in (None, "blob") else local_path(wanted.to or "", call)


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _options(wanted: CopyData) -> str:
    options = [f"FORMAT {wanted.format}"]
    if wanted.format == "csv":
        options.append(f"HEADER {'true' if wanted.header else 'false'}")
    if wanted.format != "binary":
        options += [f"DELIMITER {_literal(wanted.delimiter)}"] if wanted.delimiter is not None else []
        options += [f"NULL {_literal(wanted.null)}"] if wanted.null is not None else []
    return f"WITH ({', '.join(options)})"


async def copy_in(step: CopyIn, connection: AsyncConnection[Any], call: Call) -> Table:
    if step.rows is not None:
        return await _rows_in(step, step.rows, connection)
    path = step.path or Path()
    try:
        file, columns = await call.threads.run(_open_source, path, step.wanted)
    except OSError as error:
        raise os_failure(error, path) from error
    except UnicodeError as error:
        raise ToolFailure("decode", f"`{path}` is not UTF-8 text: {error}") from error
    with file:
        listed = f" ({quote_all(columns, Dialect.POSTGRES)})" if columns else ""
        text = f"COPY {quote_table(step.table, Dialect.POSTGRES)}{listed} FROM STDIN {_options(step.wanted)}"
        async with connection.cursor() as cursor:
            async with cursor.copy(text.encode()) as copy:
                while chunk := await call.threads.run(file.read, _CHUNK):
                    await copy.write(chunk)
            return Table(row_count=max(cursor.rowcount, 0), more={"file": str(path)})


def _open_source(path: Path, wanted: CopyData) -> tuple[IO[bytes], list[str]]:
    require_regular(path)
    columns = list(wanted.columns or [])
    if not columns and wanted.format == "csv" and wanted.header:
        with path.open(encoding="utf-8-sig", newline="") as text:
            columns = next(csv.reader(text, delimiter=wanted.delimiter or ","), [])
    return path.open("rb"), columns


async def _rows_in(step: CopyIn, rows: list[Any], connection: AsyncConnection[Any]) -> Table:
    columns = list(step.wanted.columns or [])
    by_name = bool(rows) and isinstance(rows[0], dict)
    if by_name:
        columns = columns or columns_of(rows, "`copy.from`")
    listed = f" ({quote_all(columns, Dialect.POSTGRES)})" if columns else ""
    text = f"COPY {quote_table(step.table, Dialect.POSTGRES)}{listed} FROM STDIN"
    async with connection.cursor() as cursor:
        async with cursor.copy(text.encode()) as copy:
            for index, row in enumerate(rows):
                await copy.write_row([argument(value) for value in _values(row, index, columns, by_name=by_name)])
        return Table(row_count=max(cursor.rowcount, 0))


def _values(row: Any, index: int, columns: list[str], *, by_name: bool) -> list[Any]:
    if by_name and isinstance(row, dict):
        return [row.get(column) for column in columns]
    if not by_name and isinstance(row, list):
        return row
    raise ToolFailure(
        "parameters", f"`copy.from`: row {index} is not like the first; rows are all mappings or all lists"
    )


def _with_literals(query: Bound, connection: AsyncConnection[Any]) -> str:
    """COPY takes no bound values, so the driver writes them as literals, quoted by its own rules."""
    from psycopg.sql import Literal

    literals = [Literal(value).as_string(connection) for value in arguments(query) or []]
    if not literals:
        return query.text
    pieces = scan(query.text, Dialect.POSTGRES)
    return "".join(literals[int(piece.name) - 1] if piece.kind is Kind.NUMBERED else piece.text for piece in pieces)


async def copy_out(step: CopyOut, connection: AsyncConnection[Any], call: Call) -> Table:
    what = step.what if isinstance(step.what, str) else f"({_with_literals(step.what, connection)})"
    text = f"COPY {what} TO STDOUT {_options(step.wanted)}".encode()
    folder = step.path.parent if step.path else None
    try:
        handle, temporary = await call.threads.run(_temporary, folder)
    except OSError as error:
        raise os_failure(error, step.path or Path(tempfile.gettempdir())) from error
    try:
        with os.fdopen(handle, "wb") as file:
            columns, count = await _receive(text, connection, call, file, step.wanted)
        more = await call.threads.run(_keep, Path(temporary), step, call)
    except OSError as error:
        raise os_failure(error, step.path or Path(temporary)) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return Table(columns or list(step.wanted.columns or []), [], count, more)


def _temporary(folder: Path | None) -> tuple[int, str]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(prefix=".copy-", dir=folder)


async def _receive(
    text: bytes, connection: AsyncConnection[Any], call: Call, file: BinaryIO, wanted: CopyData
) -> tuple[list[str], int]:
    columns: list[str] = []
    waiting: list[bytes] = []
    size = 0
    async with connection.cursor() as cursor:
        async with cursor.copy(text) as copy:
            async for data in copy:
                piece = bytes(data)
                if not waiting and not columns and wanted.format == "csv" and wanted.header:
                    columns = next(csv.reader([piece.decode()], delimiter=wanted.delimiter or ","))
                waiting.append(piece)
                size += len(piece)
                if size >= _CHUNK:
                    await call.threads.run(file.write, b"".join(waiting))
                    waiting, size = [], 0
        await call.threads.run(file.write, b"".join(waiting))
        return columns, max(cursor.rowcount, 0)


def _keep(temporary: Path, step: CopyOut, call: Call) -> JsonMap:
    size = temporary.stat().st_size
    if step.path is not None:
        temporary.chmod(0o644)
        temporary.replace(step.path)
        return {"file": str(step.path), "bytes": size}
    with temporary.open("rb") as file:
        chunks: Iterator[bytes] = iter(lambda: file.read(_CHUNK), b"")
        ref = call.blobs.put(chunks, _MEDIA[step.wanted.format])
    return {"blob": ref.as_json(), "bytes": size}
