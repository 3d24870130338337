"""Rows on their way through a transfer: what a source gives, and files at either end, a chunk in memory at a time. A file that
is written appears when it is complete."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Protocol

import msgspec

from penstock.kernel.values import Json
from penstock.ports.folders import require_writable
from penstock.ports.json_text import json_mistake
from penstock.tools.base import Call, ToolFailure, os_failure, require_regular
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.connection import Stop
from penstock.tools.sql.cursors import Opened
from penstock.tools.sql.plan import Planner, columns_of
from penstock.tools.sql.results import as_json_text, parsed, to_json
from penstock.tools.sql.tables import Change, DuckdbTable, Row
from penstock.tools.sql.text import Bound, Dialect, quote_all, quote_table
from penstock.tools.sql.types import Origin, infer, is_plain, to_database
from penstock.tools.transfer.params import DatabaseFileSource, ServerSource

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Flow:
    """What a source gives: batches of rows, all with the same columns."""

    columns: list[str]
    origin: Origin
    batches: Iterator[list[Row]]
    types: Mapping[str, str] = field(default_factory=dict)
    """Types the source declares, by DuckDB's names. JSON is handed over as its text."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows as a target sees them: its own names for the columns, and their types."""

    columns: list[str]
    types: list[str]
    origin: Origin


def in_batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch


def from_objects(objects: Iterable[Any], size: int, wanted: Sequence[str] | None) -> Flow:
    """JSON objects as rows. The first chunk says which columns there are, unless the author did."""
    rest = iter(objects)
    first = list(islice(rest, size))
    columns = list(wanted) if wanted is not None else columns_of(first, "the source")
    return Flow(columns, "json", in_batches(_as_rows(chain(first, rest), columns, wanted is not None), size))


def _as_rows(objects: Iterable[Any], columns: list[str], chosen: bool) -> Iterator[Row]:
    known = set(columns)
    for index, each in enumerate(objects):
        if not isinstance(each, dict):
            raise ToolFailure("parameters", f"the source: row {index} is not a mapping from column to value")
        if not chosen and not each.keys() <= known:
            strange = next(name for name in each if name not in known)
            raise ToolFailure(
                "columns",
                f"row {index} has the column `{strange}`, which no row of the first chunk has; "
                "hint: name the columns to move in `columns`",
            )
        yield [each.get(column) for column in columns]


def shape_of(flow: Flow, names: Sequence[tuple[str, int]], sample: Sequence[Row]) -> Shape:
    """`names` are the target's columns, each with its place in the source's rows; `sample` has the target's columns."""
    types = [
        flow.types.get(flow.columns[place]) or infer((row[index] for row in sample), flow.origin)
        for index, (_, place) in enumerate(names)
    ]
    return Shape([name for name, _ in names], types, flow.origin)


def statement_of(
    source: ServerSource | DatabaseFileSource, dialect: Dialect, wanted: Sequence[str] | None, call: Call
) -> Bound:
    """The one statement that gives the rows."""
    if (source.table is None) == (source.query is None):
        raise ToolFailure("parameters", "the source has exactly one of `table` and `query`")
    planner = Planner(dialect, call)
    if source.table is not None:
        columns = quote_all(wanted, dialect) if wanted is not None else "*"
        return planner.text(f"SELECT {columns} FROM {quote_table(source.table, dialect)}", None)[0]
    statements = planner.text(source.query or "", source.params)
    if len(statements) != 1:
        raise ToolFailure("parameters", f"`source.query` takes one statement, and this text has {len(statements)}")
    return statements[0]


@contextmanager
def read(opening: AbstractContextManager[Opened], size: int) -> Iterator[Flow]:
    with opening as opened:
        batches = map(list, opened.batches(size, lambda before: "reading"))
        types = {name: type for name, type in opened.columns if is_plain(type)}
        yield Flow([name for name, _ in opened.columns], "sql", batches, types)


_CHUNK = 1 << 16
_MAX_ELEMENT = 64 * 1024 * 1024


def _open(path: Path, encoding: str | None = None) -> IO[Any]:
    try:
        require_regular(path)
        if encoding is None:
            return path.open("rb")
        return path.open(encoding=encoding, newline="")
    except OSError as error:
        raise os_failure(error, path) from error
    except LookupError as error:
        raise ToolFailure("parameters", f"there is no encoding `{encoding}`") from error


def _decoded(path: Path, things: Iterator[Any], line: Callable[[], int] = lambda: 0) -> Iterator[Any]:
    """The things, with all that can go wrong in reading them said in terms of the file."""
    while True:
        try:
            thing = next(things)
        except StopIteration:
            return
        except OSError as error:
            raise os_failure(error, path) from error
        except (csv.Error, UnicodeError) as error:
            where = f"`{path}`, line {line()}" if line() else f"`{path}`"
            raise ToolFailure("decode", f"{where}: {error}", path=str(path)) from error
        yield thing


@contextmanager
def read_csv(path: Path, size: int, *, delimiter: str, header: bool, null: str, encoding: str) -> Iterator[Flow]:
    csv.field_size_limit(2**31 - 1)  # the default refuses fields of 128 KiB
    with _open(path, encoding) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        lines = _decoded(path, reader, lambda: reader.line_num)
        first: list[str] = next(lines, [])
        columns = first if header else [f"column_{index + 1}" for index in range(len(first))]
        if len(set(columns)) != len(columns):
            double = next(name for name in columns if columns.count(name) > 1)
            raise ToolFailure("columns", f"`{path}` has two columns of the name `{double}`", path=str(path))
        start = [] if header or not first else [first]
        rows = (_csv_row(path, reader.line_num, cells, len(columns), null) for cells in chain(start, lines) if cells)
        yield Flow(columns, "text", in_batches(rows, size))


def _csv_row(path: Path, line: int, cells: list[str], width: int, null: str) -> Row:
    if len(cells) > width:
        message = f"`{path}`, line {line}: {len(cells)} values for {width} columns"
        raise ToolFailure("columns", message, path=str(path), line=line)
    row = [None if cell == null else cell for cell in cells]
    return row + [None] * (width - len(row))


@contextmanager
def read_jsonl(path: Path, size: int, wanted: Sequence[str] | None) -> Iterator[Flow]:
    with _open(path) as file:
        yield from_objects(_decoded(path, _json_lines(path, file)), size, wanted)


def _json_lines(path: Path, file: IO[bytes]) -> Iterator[Any]:
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            reason = json_mistake(line, error).removeprefix("line 1, ")
            raise ToolFailure("decode", f"`{path}`, line {number}, {reason}", path=str(path), line=number) from error


@contextmanager
def read_json(path: Path, size: int, at: str | None, wanted: Sequence[str] | None) -> Iterator[Flow]:
    with _open(path, "utf-8-sig") as file:
        elements = _json_elements(path, file) if at is None else _elements_at(path, file, at)
        yield from_objects(_decoded(path, elements), size, wanted)


def _elements_at(path: Path, file: IO[str], at: str) -> Iterator[Any]:
    text = file.read()
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ToolFailure("decode", f"`{path}` is not JSON: {json_mistake(text, error)}", path=str(path)) from error
    for part in at.split("."):
        inner = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            inner = value[int(part)]
        value = inner
    if not isinstance(value, list):
        raise ToolFailure("parameters", f"there is no list at `{at}` in `{path}`", path=str(path))
    yield from value


class _Elements:
    """Reads the elements of a top-level JSON list one by one, holding no more text than the element at hand."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path = path
        self.file = file
        self.text = ""
        self.position = 0
        self.ended = False

    def more(self) -> None:
        self.text = self.text[self.position :]
        self.position = 0
        # What is asked for doubles, so that a long element is not looked at again for every few bytes.
        read = self.file.read(max(_CHUNK, len(self.text)))
        self.ended = not read
        self.text += read

    def next_character(self) -> str:
        while True:
            while self.position < len(self.text) and self.text[self.position].isspace():
                self.position += 1
            if self.position < len(self.text):
                return self.text[self.position]
            if self.ended:
                return ""
            self.more()

    def element(self) -> Any:
        decoder = json.JSONDecoder()
        while True:
            try:
                value, end = decoder.raw_decode(self.text, self.position)
            except json.JSONDecodeError as error:
                if self.ended or len(self.text) - self.position > _MAX_ELEMENT:
                    raise self.problem(error.msg) from error
            else:
                if end < len(self.text) or self.ended:
                    self.position = end
                    return value
            self.more()

    def problem(self, words: str) -> ToolFailure:
        near = self.text[self.position : self.position + 40]
        return ToolFailure("decode", f"`{self.path}` is not a JSON list of objects: {words} near `{near}`")


def _json_elements(path: Path, file: IO[str]) -> Iterator[Any]:
    elements = _Elements(path, file)
    start = elements.next_character()
    if start != "[":
        words = "it begins with `{`; hint: say in `rows` where the list is" if start == "{" else "there is no list"
        raise elements.problem(words)
    elements.position += 1
    if elements.next_character() == "]":
        return
    while True:
        elements.next_character()
        yield elements.element()
        following = elements.next_character()
        if following == "]":
            return
        if following != ",":
            raise elements.problem("expected `,` or `]`")
        elements.position += 1


class Encoder(Protocol):
    """How rows become bytes of a file."""

    def head(self, shape: Shape, *, fresh: bool) -> bytes: ...

    def rows(self, rows: Sequence[Row]) -> bytes: ...

    def tail(self) -> bytes: ...


def _cells(row: Row, types: Sequence[str], *, json_is_text: bool) -> list[Json]:
    return [
        parsed(value) if type == "JSON" and json_is_text else to_json(value)
        for value, type in zip(row, types, strict=True)
    ]


class JsonLines:
    """Objects, one a line; or with commas between them in one list."""

    def __init__(self, *, as_list: bool = False) -> None:
        self.as_list = as_list
        self.shape = Shape([], [], "json")
        self._any = False

    def head(self, shape: Shape, *, fresh: bool) -> bytes:
        self.shape = shape
        return b"[" if self.as_list else b""

    def rows(self, rows: Sequence[Row]) -> bytes:
        shape = self.shape
        text = shape.origin == "sql"
        objects = [
            msgspec.json.encode(dict(zip(shape.columns, _cells(row, shape.types, json_is_text=text), strict=True)))
            for row in rows
        ]
        if not self.as_list:
            return b"\n".join([*objects, b""])
        before = b",\n" if self._any else b"\n"
        self._any = self._any or bool(objects)
        return before + b",\n".join(objects) if objects else b""

    def tail(self) -> bytes:
        return b"\n]\n" if self.as_list else b""


class CsvLines:
    def __init__(self, *, delimiter: str, header: bool, null: str) -> None:
        self.delimiter = delimiter
        self.header = header
        self.null = null

    def head(self, shape: Shape, *, fresh: bool) -> bytes:
        return self._lines([shape.columns]) if self.header and fresh else b""

    def rows(self, rows: Sequence[Row]) -> bytes:
        return self._lines([[self._cell(value) for value in row] for row in rows])

    def tail(self) -> bytes:
        return b""

    def _cell(self, value: Any) -> Any:
        if value is None:
            return self.null
        if isinstance(value, bool):
            return "true" if value else "false"
        return as_json_text(value) if isinstance(value, (dict, list)) else to_json(value)

    def _lines(self, rows: list[list[Any]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()


class FileTarget:
    """A file being written: beside its place until the end, or at the end of what is there, which a failure restores."""

    errors: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, path: Path, encoder: Encoder, *, append: bool = False) -> None:
        self.path = path
        self.encoder = encoder
        require_writable(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._before = path.stat().st_size if append and path.exists() else 0
            if append:
                self._temporary = None
                self._file: IO[bytes] = path.open("ab")
            else:
                handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
                self._temporary = Path(name)
                self._file = os.fdopen(handle, "wb")
        except OSError as error:
            raise os_failure(error, path) from error

    def failure(self, error: Exception) -> ToolFailure:
        assert isinstance(error, OSError)
        return os_failure(error, self.path)

    def start(self, shape: Shape) -> None:
        self._file.write(self.encoder.head(shape, fresh=self._before == 0))

    def write(self, rows: Sequence[Row]) -> int:
        self._file.write(self.encoder.rows(rows))
        return len(rows)

    def commit(self) -> None:
        """A file counts when it is finished."""

    def finish(self) -> None:
        self._file.write(self.encoder.tail())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._temporary is not None:
            self._temporary.chmod(0o644)
            self._temporary.replace(self.path)

    def abort(self) -> None:
        with suppress(OSError):
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)
            else:
                self._file.flush()
                self._file.truncate(self._before)

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


class ParquetWriter(DuckdbTable):
    """Rows gather in a DuckDB file that spills to disk, and become one Parquet file at the end."""

    def __init__(self, path: Path, types: dict[str, str], stop: Stop) -> None:
        require_writable(path)
        self._folder = TemporaryDirectory(prefix="penstock-parquet-")
        self._path = path
        self._types = types
        database = str(Path(self._folder.name) / "rows.duckdb")
        super().__init__(lambda stop: duckdb_tool.connect(database), stop)

    def start(self, shape: Shape) -> None:
        types = {name: to_database(type, Dialect.DUCKDB) for name, type in zip(shape.columns, shape.types, strict=True)}
        self.prepare(Change("rows", "insert", shape.columns, create=True, types=types | self._types))

    def finish(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f".{self._path.name}-{uuid.uuid4().hex}")
        try:
            self.connection.execute(f"COPY rows TO '{str(beside).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
            beside.replace(self._path)
        finally:
            beside.unlink(missing_ok=True)

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
