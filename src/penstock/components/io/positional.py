"""`read_positional` and `write_positional`: text with columns of fixed width."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas, Writer
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.row_types import REJECTED, Notation, Wanted, deliver, loading_schema
from penstock.data import select
from penstock.ports.rows import Column
from penstock.tools.parameters import about
from penstock.tools.sql.results import as_json_text, to_json


class PositionalColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: how wide it is, and what stands in it."""

    name: Annotated[str, about("Its name.", min_length=1)]
    width: Annotated[int, about("How many characters it takes.", ge=1)]
    start: Annotated[
        parameters.AtLeastOne | None,
        about("Where it begins, the first character being 1; after the column before it if left out."),
    ] = None
    type: Annotated[str | None, about("Its type; inferred from all values when left out.")] = None
    format: Annotated[str | None, about("How its dates or timestamps are written, such as `%Y%m%d`.")] = None


class ReadPositionalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    columns: Annotated[list[PositionalColumn], about("The columns, from left to right.", min_length=1)]
    skip: Annotated[int, about("Lines to leave out at the beginning.", ge=0)] = 0
    encoding: parameters.Encoding = "utf-8"
    trim: Annotated[bool, about("Take the blanks around values off.")] = True
    null: parameters.NullTexts = ""
    decimal: parameters.Decimal = "."
    thousands: parameters.Thousands = None
    fill_missing: Annotated[
        bool, about("A line that ends too early is filled up with blanks, as many programs cut them off.")
    ] = True
    on_error: parameters.OnError = "fail"
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


def placed(given: list[PositionalColumn]) -> list[tuple[PositionalColumn, int, int]]:
    """Each column with its first and last place, counted from 0."""
    found: list[tuple[PositionalColumn, int, int]] = []
    at = 0
    for column in given:
        begin = at if column.start is None else column.start - 1
        found.append((column, begin, begin + column.width))
        at = begin + column.width
    return found


class ReadPositional(Action[ReadPositionalParams]):
    """Read rows from text with columns of fixed width.

    `columns` says how wide each column is, from left to right; `start` leaves a gap or reads a place twice. Blanks
    around values are taken off, and a value that is then empty is NULL. Types are inferred from all values when they
    are not given.

    Lines that cannot be read (text beyond the last column, bytes of another encoding, a value that is not of its
    column's type, and with `fill_missing: false` lines that end too early) go to the port `reject` with `error_code`,
    `error_message`, `file`, `line`, `column` and `raw_line`. When it is not connected they end the component in
    ERROR, unless `on_error: skip`. After-variables: `NB_LINE_REJECTED`.
    """

    type = "read_positional"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="lines that cannot be read, with what is wrong"),
    )

    def check(self, params: ReadPositionalParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        typed = [parameters.NamedColumn(name=column.name, type=column.type) for column in params.columns]
        found = parameters.type_mistakes(typed, {})
        found += parameters.encoding_mistakes(params.encoding)
        return found

    def schemas(self, params: ReadPositionalParams, inputs: Known, call: PlanCall) -> Schemas:
        types = [column.type for column in params.columns]
        known = tuple(
            Column(column.name, parameters.sql_type(column.type))
            for column in params.columns
            if column.type is not None
        )
        return {"main": known if all(types) else call.declared.get("main"), "reject": REJECTED}

    def run(self, params: ReadPositionalParams, call: Call) -> None:
        found = file_paths.all_files(params.path, call, params.credentials)
        sources = [f"t{index}" for index in range(len(params.columns))]
        rows = (row for path in found for row in _rows(path, file_paths.shown(path, call), params))
        loaded = call.engine.load(loading_schema(sources), file_paths.in_batches(rows))
        declared = {column.name: column.type for column in call.declared.get("main", ())}
        wanted = [
            Wanted(
                column.name,
                source,
                parameters.sql_type(column.type) if column.type is not None else declared.get(column.name),
                Notation(params.decimal, params.thousands, column.format, column.format),
            )
            for column, source in zip(params.columns, sources, strict=True)
        ]
        deliver(loaded, wanted, call, params.on_error)


def _rows(path: Path, name: str, params: ReadPositionalParams) -> Iterator[tuple[Any, ...]]:
    places = placed(params.columns)
    end = max(stop for _, _, stop in places)
    nulls = {params.null} if isinstance(params.null, str) else set(params.null)
    for number, line, flaw in file_paths.lines(path, params.encoding, params.skip):
        if not line:
            continue
        wrong = flaw or _misfit(line, end, params)
        cells = [line[begin:stop] for _, begin, stop in places]
        if params.trim:
            cells = [cell.strip() for cell in cells]
        yield (name, number, line, wrong, *(None if cell in nulls or not cell.strip() else cell for cell in cells))


def _misfit(line: str, end: int, params: ReadPositionalParams) -> str | None:
    if len(line) > end and line[end:].strip():
        return f"there is text beyond column {end}, where the last value ends"
    if len(line) < end and not params.fill_missing:
        return f"the line ends at column {len(line)}, before the last value does at {end}"
    return None


class WrittenColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: how wide it is, and how values stand in it."""

    name: Annotated[str, about("The column of the rows.", min_length=1)]
    width: Annotated[int, about("How many characters it takes.", ge=1)]
    align: Annotated[Literal["auto", "left", "right"], about("Where values stand; `auto`: numbers to the right.")] = (
        "auto"
    )
    pad: Annotated[str, about("What fills the rest.", min_length=1, max_length=1)] = " "
    format: Annotated[str | None, about("How dates and timestamps are written, such as `%Y%m%d`.")] = None


class WritePositionalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    columns: Annotated[list[WrittenColumn], about("The columns, from left to right.", min_length=1)]
    header: Annotated[bool, about("Name the columns in the first line.")] = False
    overflow: Annotated[
        Literal["fail", "cut"], about("What a value that is too long does: end in ERROR, or be cut.")
    ] = "fail"
    null: Annotated[str, about("How a missing value is written.")] = ""
    decimal: parameters.Decimal = "."
    encoding: parameters.Encoding = "utf-8"
    append: parameters.Append = False
    credentials: parameters.Credentials = None


class WritePositional(Writer[WritePositionalParams]):
    """Write rows as text with columns of fixed width.

    Numbers stand to the right, everything else to the left, unless `align` says otherwise. A value that does not fit
    ends the component in ERROR and names the row, unless `overflow: cut`. The file replaces an older one when it is
    complete.

    The rows go on through `main` when it is connected.
    """

    type = "write_positional"

    def check(self, params: WritePositionalParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if mistakes := parameters.encoding_mistakes(params.encoding):
            return mistakes
        schema = inputs.get("input")
        present = [] if schema is None else [column.name for column in schema]
        wrong = [] if schema is None else [(i, c.name) for i, c in enumerate(params.columns) if c.name not in present]
        return [
            Mistake(("columns", index, "name"), parameters.missing([name], present, "the input") or "", kind="column")
            for index, name in wrong
        ]

    def run(self, params: WritePositionalParams, call: Call) -> None:
        rows = call.input()
        parameters.require([column.name for column in params.columns], rows.schema)
        query = exp.select(*(select.column(column.name) for column in params.columns)).from_(select.table("input"))
        encoding = file_paths.codec(params.encoding)
        path = file_paths.target(params.path, call, params.credentials, append=params.append)
        begun = params.append and file_paths.is_begun(path)
        number = 0
        with (
            file_paths.target_file(path, append=params.append) as target,
            file_paths.packed_into(target, path) as file,
        ):
            if params.header and not begun:
                file.write(_line([column.name for column in params.columns], params, 0, encoding))
            for batch in call.engine.rows(select.sql(query), {"input": rows}):
                lines = [_line(row, params, number + index, encoding) for index, row in enumerate(batch, 1)]
                file.write(b"".join(lines))
                number += len(batch)
        call.put("main", rows)


def _line(row: Sequence[Any], params: WritePositionalParams, number: int, encoding: str) -> bytes:
    cells = [_cell(value, column, params, number) for value, column in zip(row, params.columns, strict=True)]
    try:
        return ("".join(cells) + "\n").encode(encoding)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise ComponentFailure("encoding", f"row {number}: `{wrong}` cannot be written in `{encoding}`") from None


def _cell(value: Any, column: WrittenColumn, params: WritePositionalParams, number: int) -> str:
    text = _text(value, column.format, params)
    if len(text) > column.width:
        if params.overflow == "fail":
            raise ComponentFailure(
                "too_long",
                f"row {number}: `{text}` is longer than the {column.width} characters of `{column.name}`; "
                "hint: a larger `width`, or `overflow: cut`",
                row=number,
                column=column.name,
            )
        text = text[: column.width]
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    right = column.align == "right" or (column.align == "auto" and is_number)
    # Zeros go between the sign and the digits: `-0012`, not `00-12`.
    if right and column.pad == "0" and is_number:
        return text.zfill(column.width)
    return text.rjust(column.width, column.pad) if right else text.ljust(column.width, column.pad)


def _text(value: Any, format: str | None, params: WritePositionalParams) -> str:
    match value:
        case None:
            return params.null
        case bool():
            return "true" if value else "false"
        case datetime.date() | datetime.time() if format is not None:
            return value.strftime(format)
        case float() | Decimal():
            return str(value).replace(".", params.decimal)
        case str():
            return value
        case dict() | list():
            return as_json_text(value)
        case _:
            return str(to_json(value))
