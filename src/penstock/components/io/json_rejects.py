"""JSON rows one by one: which are objects with values of the right types, and what is wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.components.base import Call
from penstock.components.io.json_objects import named, rows_in
from penstock.components.io.json_shape import Reading
from penstock.components.io.text_types import Notation, try_cast
from penstock.components.io.text_types import call as function
from penstock.components.written_numbers import WHOLE, is_whole
from penstock.data import select
from penstock.data.untyped import NOTHING
from penstock.ports.rows import Column, Relation


def objects(reading: Reading, call: Call) -> Relation:
    """(file, line, raw) of every row, as text that may or may not be JSON."""
    return call.engine.select(select.sql(rows_in(reading.paths, reading.manner)), {})


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column, and where in the row's JSON its value is."""

    column: Column
    way: str
    notation: Notation

    @staticmethod
    def of(column: Column, reading: Reading) -> _Cell:
        key = column.name.replace("\\", "\\\\").replace('"', '\\"')
        manner = reading.manner
        notation = Notation(date_format=manner.date_format, timestamp_format=manner.timestamp_format)
        return _Cell(column, f'$."{key}"' if reading.has_objects else "$", notation)

    @property
    def text(self) -> exp.Expr:
        return function("json_extract_string", select.column("raw"), self.way)

    @property
    def value(self) -> exp.Expr:
        """As the column's type; NULL when it cannot be."""
        if self.column.type == "VARCHAR":
            return self.text
        if self.column.type == NOTHING:
            return exp.null()
        value: exp.Expr = try_cast(function("json_extract", select.column("raw"), self.way), self.column.type)
        format = self.notation.format_of(self.column.type)
        if format is not None:
            # What is written as in ISO 8601 is read as well, as DuckDB does it.
            written = select.cast(function("try_strptime", self.text, format), self.column.type)
            return function("coalesce", written, value)
        return exp.case().when(is_whole(self.text), value).else_(exp.null()) if self.column.type in WHOLE else value

    @property
    def is_wrong(self) -> exp.Expr:
        kind = function("coalesce", function("json_type", select.column("raw"), self.way), "NULL")
        return exp.and_(kind.neq(select.literal("NULL")), self.value.is_(exp.null()))


def parted(reading: Reading) -> tuple[exp.Query, exp.Query]:
    """Over `objects`: the rows, and the rejects."""
    cells = [_Cell.of(column, reading) for column in reading.columns]
    wrong = [cell for cell in cells if cell.column.type not in ("VARCHAR", "JSON")]
    code = exp.case().when(function("json_valid", select.column("raw")).not_(), select.literal("not_json"))
    # DuckDB stops at text that is not JSON, so every question about it comes after that one.
    if reading.has_objects:
        is_other = function("json_type", select.column("raw")).neq(select.literal("OBJECT"))
        code = code.when(is_other, select.literal("not_an_object"))
    culprit = exp.case().when(function("json_valid", select.column("raw")).not_(), exp.null())
    for cell in wrong:
        code = code.when(cell.is_wrong, select.literal("bad_value"))
        culprit = culprit.when(cell.is_wrong, select.literal(cell.column.name))
    judged = exp.select(exp.Star(), named(code, "code"), named(culprit, "culprit")).from_(select.table("objects"))
    extra = [named(select.column("file"), reading.file_column)] if reading.file_column is not None else []
    good = exp.select(*(named(cell.value, cell.column.name) for cell in cells), *extra)
    good = good.from_(judged.copy().subquery("judged")).where(select.column("code").is_(exp.null()))
    bad = exp.select(
        named(select.column("code"), "error_code"),
        named(_message(wrong), "error_message"),
        select.column("file"),
        select.column("line"),
        named(select.cast(_culprit_if_any(), "VARCHAR"), "column"),
        named(select.column("raw"), "raw_line"),
    )
    return good, bad.from_(judged.subquery("judged")).where(select.column("code").is_(exp.null()).not_())


def _culprit_if_any() -> exp.Expr:
    is_value = select.column("code").eq(select.literal("bad_value"))
    return exp.case().when(is_value, select.column("culprit")).else_(exp.null())


def _message(wrong: list[_Cell]) -> exp.Expr:
    message = exp.case()
    message = message.when(select.column("code").eq(select.literal("not_json")), select.literal("this is not JSON"))
    is_other = select.column("code").eq(select.literal("not_an_object"))
    message = message.when(is_other, select.literal("this is JSON, but no object"))
    for cell in wrong:
        column = cell.column
        ending = f"` is not a {column.type}{cell.notation.written_as(column.type)}"
        said = function("concat", "`", function("left", cell.text, select.literal(200)), ending)
        message = message.when(select.column("culprit").eq(select.literal(column.name)), said)
    return message
