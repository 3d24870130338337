"""Rows of Python values go into a table through DuckDB's appender, batch by batch.

A table grows while it is loaded: a column that was not there before is added, and one whose type turns out too narrow is
widened, so that rows from anywhere can be taken without reading them twice. What a batch holds is never looked at value by
value where a look at its types is enough; that is what makes a million rows a second possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeAlias

import duckdb
from duckdb.sqltypes import DuckDBPyType

from penstock.data.failures import rows_failed
from penstock.data.inference import NATIVE, NULL, TEXT, Kind, json_text, kind_of_column, native, unify
from penstock.data.statements import columns, quoted, stored
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.ports.rows import Column, RowsFailed, Schema

Convert = Callable[[Any], Any]
_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")


class Conversion:
    """How the rows of one query become Python values."""

    def __init__(self, names: Sequence[str], types: Sequence[DuckDBPyType]) -> None:
        self._names = names
        self._types = [str(type) for type in types]
        self._converts: list[Convert | None] = [
            _converter(type) if _is_zoned(text) else None for type, text in zip(types, self._types, strict=True)
        ]

    @property
    def is_needed(self) -> bool:
        return any(self._converts)

    def query(self, query: str) -> str:
        """The query, with columns as DuckDB can hand them over."""
        chosen = ", ".join(_unzoned(name, type) for name, type in zip(self._names, self._types, strict=True))
        return f"SELECT {chosen} FROM (\n{query}\n)"

    def rows(self, batch: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        columns = [list(column) for column in zip(*batch, strict=True)]
        for at, convert in enumerate(self._converts):
            if convert is not None:
                columns[at] = [None if value is None else convert(value) for value in columns[at]]
        return list(zip(*columns, strict=True))


def _is_zoned(type: str) -> bool:
    return any(name in type for name in _ZONED)


def _unzoned(name: str, type: str) -> str:
    if not _is_zoned(type):
        return quoted(name)
    plain = type
    for zoned in _ZONED:
        plain = plain.replace(zoned, "TIMESTAMP")
    return f"CAST({quoted(name)} AS {plain}) AS {quoted(name)}"


def _converter(type: Any) -> Convert | None:
    """Of a DuckDBPyType; its children are types, but for the size of an array."""
    match type.id:
        case "timestamp with time zone" | "timestamptz_ns":
            return _in_utc
        case "list" | "array":
            return _each(_converter(dict(type.children)["child"]))
        case "struct":
            return _fields({name: _converter(child) for name, child in type.children})
        case "map":
            parts = dict(type.children)
            return _entries(_converter(parts["key"]), _converter(parts["value"]))
        case _:
            return None


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _each(convert: Convert | None) -> Convert:
    return lambda values: [_apply(convert, value) for value in values]


def _fields(converts: dict[str, Convert | None]) -> Convert:
    return lambda value: {name: _apply(converts.get(name), part) for name, part in value.items()}


def _entries(key: Convert | None, value: Convert | None) -> Convert:
    return lambda entries: {_apply(key, one): _apply(value, other) for one, other in entries.items()}


def batches(fetch: Callable[[int], list[tuple[Any, ...]]], size: int, conversion: Conversion | None) -> Iterator[Any]:
    while batch := fetch(size):
        yield conversion.rows(batch) if conversion is not None else batch


Row: TypeAlias = Sequence[Any]
_FLUSH_EVERY = 20_000
"""Rows. Fewer make more statements, more make larger buffers; above two thousand the difference is small."""
_NESTED = (dict, list, tuple, set, frozenset)


class TableWriter:
    """Rows into a table whose columns are known."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, name: str, schema: Schema) -> None:
        if not schema:
            raise RowsFailed("schema", "rows need at least one column")
        self._cursor = cursor
        self._name = name
        self.schema = schema
        self.rows = 0
        self._pending = 0
        cursor.execute(f"CREATE TABLE {stored(name)} ({columns(schema)})")
        self.reopen()

    def reopen(self) -> None:
        """After the table was altered."""
        self._appender = self._cursor.appender(self._name)
        # A mapping in a text or JSON column is JSON, not the text that DuckDB prints for a struct.
        self._texts = [at for at, column in enumerate(self.schema) if column.type in ("VARCHAR", "JSON")]

    def write(self, batch: Sequence[Row]) -> None:
        self.append(self._without_nested_in_texts(batch))

    def append(self, batch: Sequence[Row]) -> None:
        """Rows in which every value is what its column holds."""
        try:
            self._appender.append_rows(batch)
        except (duckdb.Error, TypeError, ValueError, OverflowError) as error:
            self._append_carefully(batch, error)
        self.rows += len(batch)
        self._pending += len(batch)
        if self._pending >= _FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._appender.flush()
            self._pending = 0

    def abandon(self) -> None:
        """What was not written yet will not be."""
        self._appender.clear()
        self._pending = 0

    def _without_nested_in_texts(self, batch: Sequence[Row]) -> Sequence[Row]:
        nested = [at for at in self._texts if _has_nested(batch, at)]
        if not nested:
            return batch
        ready = []
        for row in batch:
            values = list(row)
            for at in nested:
                if isinstance(values[at], _NESTED):
                    values[at] = json_text(native(values[at]))
            ready.append(values)
        return ready

    def _append_carefully(self, batch: Sequence[Row], error: Exception) -> None:
        """Once more, value by value: to make values of foreign types native, and to say which one is wrong if any is."""
        # The appender stopped at the first row it could not take, and holds those before it.
        self._appender.flush()
        self._pending = 0
        held = self._cursor.execute(f"SELECT count(*) FROM {stored(self._name)}").fetchall()[0][0]
        taken = int(held) - self.rows
        for number, row in enumerate(batch[taken:], start=self.rows + taken + 1):
            self._check_width(row, number)
            values = [_native(value, number, column) for value, column in zip(row, self.schema, strict=True)]
            try:
                self._appender.append_row(*values)
            except (duckdb.Error, TypeError, ValueError, OverflowError) as broken:
                raise self._wrong(row, number, broken) from error

    def _check_width(self, row: Row, number: int) -> None:
        if len(row) != len(self.schema):
            raise RowsFailed("data", f"row {number} has {len(row)} values; there are {len(self.schema)} columns")

    def _wrong(self, row: Row, number: int, error: Exception) -> RowsFailed:
        for value, column in zip(row, self.schema, strict=True):
            try:
                self._cursor.execute(f"SELECT CAST(? AS {column.type})", [native(value)]).fetchall()
            except duckdb.Error as broken:
                failed = rows_failed(broken)
                return RowsFailed(failed.kind, f"row {number}, column `{column.name}`: {failed.message}")
        reason = rows_failed(error).message if isinstance(error, duckdb.Error) else str(error)
        return RowsFailed("data", f"row {number}: {reason}")


def _native(value: Any, number: int, column: Column) -> Any:
    try:
        return native(value)
    except RowsFailed as failed:
        raise RowsFailed(failed.kind, f"row {number}, column `{column.name}`: {failed.message}") from failed


def _has_nested(batch: Sequence[Row], at: int) -> bool:
    try:
        found = set(map(type, map(itemgetter(at), batch)))
    except IndexError:
        return False
    return any(issubclass(one, _NESTED) for one in found)


class MappingWriter:
    """Rows into a table whose columns are found out on the way."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        self._cursor = cursor
        self._name = name
        self._writer: TableWriter | None = None
        self._kinds: dict[str, Kind] = {}
        self._rows = 0

    def write(self, batch: Sequence[Mapping[str, Any]]) -> None:
        if not batch:
            return
        rows = self._tuples(batch)
        table = list(zip(*rows, strict=True))
        changed = [self._fit(name, at, table) for at, name in enumerate(list(self._kinds))]
        self._open().append(list(zip(*table, strict=True)) if any(changed) else rows)
        self._rows += len(batch)

    def _fit(self, name: str, at: int, table: list[tuple[Any, ...]]) -> bool:
        """Widens the table for the values of one column. Returns whether the values were changed."""
        before = table[at]
        types = set(map(type, before))
        if not types <= NATIVE or dict in types or list in types:
            table[at] = tuple(self._natives(name, before))
            types = set(map(type, table[at]))
        kind = unify(self._kinds[name], kind_of_column(table[at], types))
        if kind != self._kinds[name]:
            self._widen(name, kind)
        if encode := _encoding(kind, types):
            table[at] = tuple(None if value is None else encode(value) for value in table[at])
        return table[at] is not before

    def finish(self) -> TableWriter:
        return self._open()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def _tuples(self, batch: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        names = tuple(self._kinds)
        if len(names) > 1:
            try:
                rows = list(map(itemgetter(*names), batch))
            except (KeyError, TypeError, IndexError):
                rows = []
            # No key is missing, and as many as there should be: they are the same in every row.
            if rows and sum(map(len, batch)) == len(names) * len(batch):
                return rows
        self._see_names(batch)
        names = tuple(self._kinds)
        return [tuple(row.get(name) for name in names) for row in batch]

    def _see_names(self, batch: Sequence[Mapping[str, Any]]) -> None:
        for number, row in enumerate(batch, start=self._rows + 1):
            if not isinstance(row, Mapping):
                raise RowsFailed(
                    "data", f"row {number} is a `{type(row).__name__}`, not a mapping of columns to values"
                )
            for key in row:
                if key not in self._kinds:
                    self._add(key)
        if not self._kinds:
            raise RowsFailed("data", "rows need at least one column, and these mappings are empty")

    def _add(self, name: str) -> None:
        if not isinstance(name, str):
            raise RowsFailed("data", f"a column is named by a text, not by `{name!r}`")
        if name.lower() in (known.lower() for known in self._kinds):
            raise RowsFailed(
                "data", f"column `{name}` stands there already in another case: DuckDB knows only one of them"
            )
        self._kinds[name] = NULL
        if self._writer is not None:
            self._alter(f"ADD COLUMN {quoted(name)} {NULL.type}")

    def _natives(self, name: str, values: Iterable[Any]) -> Iterator[Any]:
        for number, value in enumerate(values, start=self._rows + 1):
            yield _native(value, number, Column(name, ""))

    def _widen(self, name: str, kind: Kind) -> None:
        before, self._kinds[name] = self._kinds[name], kind
        if self._writer is None or kind.type == before.type:
            return
        old, new = quoted(name), kind.type
        using = f"CAST({old} AS {new})"
        if before.is_nested and kind.name in ("json", "text"):
            using = f"CAST(to_json({old}) AS {new})"
        elif kind.name == "json":
            using = f"to_json({old})"
        self._alter(f"ALTER COLUMN {old} SET DATA TYPE {new} USING {using}")

    def _alter(self, change: str) -> None:
        writer = self._open()
        writer.flush()
        self._cursor.execute(f"ALTER TABLE {stored(self._name)} {change}")
        writer.schema = self._schema()
        writer.reopen()

    def _open(self) -> TableWriter:
        if self._writer is None:
            self._writer = TableWriter(self._cursor, self._name, self._schema())
        return self._writer

    def _schema(self) -> Schema:
        # A table needs a column, and of rows that never came none is known.
        return tuple(Column(name, kind.type) for name, kind in self._kinds.items()) or UNKNOWN_COLUMNS


def _encoding(kind: Kind, types: set[type]) -> Callable[[Any], Any] | None:
    """How values must be written before DuckDB sees them, if they must."""
    if kind.name == "json":
        return json_text
    if kind == TEXT and types & {dict, list, int}:
        return lambda value: (
            json_text(value) if isinstance(value, dict | list) else str(value) if type(value) is int else value
        )
    return None
