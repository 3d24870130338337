"""`log_rows`: shows rows on the terminal and passes them on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Call, Known, PlanCall, Port, Writer
from penstock.data import select
from penstock.kernel.values import Json
from penstock.ports.rows import Schema
from penstock.tools.parameters import about
from penstock.tools.sql.results import to_json

_NUMERIC = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL")


class LogRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    format: Annotated[
        Literal["table", "lines", "json"],
        about("`table` with ruled columns, `lines` with one `name: value, …` a row, or `json` with one object a row."),
    ] = "table"
    limit: Annotated[int, about("At most so many rows are shown; all of them go on.", ge=0)] = 100
    width: Annotated[int, about("Longer values are cut in a table.", ge=1)] = 60
    title: Annotated[str | None, about("A line above the rows; the component's name when left out.")] = None


class LogRows(Writer[LogRowsParams]):
    """Show rows on the terminal and pass them on unchanged.

    The lines are also kept in the run's log, and secrets that are known are hidden in them. At most `limit` rows are
    shown; the last line says how many there are. Everything that came in goes on through `main`.
    """

    type = "log_rows"
    makes_files: ClassVar[bool] = False
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to show"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the same rows"),)

    def bound_here(self, params: LogRowsParams, inputs: Known, call: PlanCall) -> str | None:
        return None  # It looks at a few rows.

    def run(self, params: LogRowsParams, call: Call) -> None:
        rows = call.input()
        call.put("main", rows)
        query = exp.select(exp.Star()).from_(select.table("input")).limit(params.limit)
        found = [row for batch in call.engine.rows(select.sql(query), {"input": rows}) for row in batch]
        if params.format != "json" or params.title is not None:
            call.show(params.title or call.component)
        for line in _LINES[params.format](rows.schema, found, params.width):
            call.show(line)
        if params.format == "table" or len(found) < rows.rows:
            call.show(_counted(len(found), rows.rows))


def _counted(shown: int, total: int) -> str:
    rows = "1 row" if total == 1 else f"{total} rows"
    return rows if shown == total else f"{shown} of {rows}"


def _table(schema: Schema, rows: Sequence[Sequence[Any]], width: int) -> Iterator[str]:
    cells = [[_cell(value, width) for value in row] for row in rows]
    names = [_cut(column.name, width) for column in schema]
    widths = [max(len(name), *(len(row[index]) for row in cells), 1) for index, name in enumerate(names)]
    right = [any(word in column.type for word in _NUMERIC) and "[" not in column.type for column in schema]

    def line(values: Sequence[str]) -> str:
        padded = [
            value.rjust(size) if at_right else value.ljust(size)
            for value, size, at_right in zip(values, widths, right, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    yield line(names)
    yield f"|{'|'.join('-' * (size + 2) for size in widths)}|"
    for row in cells:
        yield line(row)


def _lines(schema: Schema, rows: Sequence[Sequence[Any]], width: int) -> Iterator[str]:
    for row in rows:
        yield ", ".join(
            f"{column.name}: {_printable(_as_text(value))}" for column, value in zip(schema, row, strict=True)
        )


def _objects(schema: Schema, rows: Sequence[Sequence[Any]], width: int) -> Iterator[str]:
    for row in rows:
        shown: dict[str, Json] = {column.name: to_json(value) for column, value in zip(schema, row, strict=True)}
        yield json.dumps(shown, ensure_ascii=False)


_LINES = {"table": _table, "lines": _lines, "json": _objects}


def _as_text(value: Any) -> str:
    if value is None:
        return "NULL"
    shown = to_json(value)
    if isinstance(shown, (dict, list)):
        return json.dumps(shown, ensure_ascii=False)
    if isinstance(shown, bool):
        return "true" if shown else "false"
    # The spelling of a decimal is part of what it says: 3.00 is a price, 3 is not.
    return str(shown) if isinstance(shown, str) else str(value)


def _cell(value: Any, width: int) -> str:
    return _cut(_printable(_as_text(value)), width)


def _printable(text: str) -> str:
    # One row is one line, and a terminal is not to be steered by data.
    return text if text.isprintable() else "".join(mark if mark.isprintable() else " " for mark in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 1)]}…"
