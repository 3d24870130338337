"""`read_positional`: text in which a value is where it stands, not what stands around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.incremental import IncrementalParam
from penstock.components.io import columns, file_paths, text_file, words
from penstock.components.io.rejects import REJECTED
from penstock.components.io.text_types import Notation
from penstock.ports.rows import Column, Schema


class PositionalColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: how wide it is, and what stands in it."""

    name: Annotated[str, Meta(min_length=1, description="Its name.")]
    width: Annotated[int, Meta(ge=1, description="How many characters it takes.")]
    start: Annotated[
        words.AtLeastOne | None,
        Meta(description="Where it begins, the first character being 1; after the column before it if left out."),
    ] = None
    type: Annotated[str | None, Meta(description="Its type; inferred from all values when left out.")] = None
    format: Annotated[str | None, Meta(description="How its dates or timestamps are written, such as `%Y%m%d`.")] = None


class ReadPositionalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.SourcePath
    columns: Annotated[list[PositionalColumn], Meta(min_length=1, description="The columns, from left to right.")]
    skip: Annotated[int, Meta(ge=0, description="Lines to leave out at the beginning.")] = 0
    encoding: words.Encoding = "utf-8"
    trim: Annotated[bool, Meta(description="Take the blanks around values off.")] = True
    null: words.NullTexts = ""
    decimal: words.Decimal = "."
    thousands: words.Thousands = None
    fill_missing: Annotated[
        bool, Meta(description="A line that ends too early is filled up with blanks, as many programs cut them off.")
    ] = True
    on_error: words.OnError = "fail"
    incremental: IncrementalParam = None


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
    Params = ReadPositionalParams
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="lines that cannot be read, with what is wrong"),
    )
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: read_ledger}
components:
  - name: ledger
    type: fixed_rows
    params: {columns: [account, amount], rows: [["4711", 12.5], ["0815", 100]]}
  - name: write
    type: write_positional
    params:
      path: ledger.txt
      columns: [{name: account, width: 6}, {name: amount, width: 8}]
  - name: read
    type: read_positional
    params:
      path: ledger.txt
      columns: [{name: account, width: 6, type: string}, {name: amount, width: 8, type: "decimal(8,2)"}]
  - name: show
    type: log_rows
connections:
  data: |
    ledger.main -> write.input
    read.main -> show.input
  control: |
    write (subjob_ok) read
"""

    def check(self, params: ReadPositionalParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        typed = [words.NamedColumn(name=column.name, type=column.type) for column in params.columns]
        found = columns.type_mistakes(typed, {})
        try:
            file_paths.codec(params.encoding)
        except ComponentFailure as failure:
            found.append(Mistake(("encoding",), failure.message))
        return found

    def schemas(
        self, params: ReadPositionalParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        types = [column.type for column in params.columns]
        known = tuple(
            Column(column.name, columns.sql_type(column.type)) for column in params.columns if column.type is not None
        )
        return {"main": known if all(types) else call.declared.get("main"), "reject": REJECTED}

    def run(self, params: ReadPositionalParams, call: Call) -> None:
        from penstock.components.io.row_types import Wanted, deliver, loading_schema

        found = file_paths.all_files(params.path, call)
        sources = [f"t{index}" for index in range(len(params.columns))]
        rows = (row for path in found for row in _rows(path, params))
        loaded = call.engine.load(loading_schema(sources), text_file.in_batches(rows))
        declared = {column.name: column.type for column in call.declared.get("main", ())}
        wanted = [
            Wanted(
                column.name,
                source,
                columns.sql_type(column.type) if column.type is not None else declared.get(column.name),
                Notation(params.decimal, params.thousands, column.format, column.format),
            )
            for column, source in zip(params.columns, sources, strict=True)
        ]
        deliver(loaded, wanted, call, params.on_error)


def _rows(path: Path, params: ReadPositionalParams) -> Iterator[tuple[Any, ...]]:
    places = placed(params.columns)
    end = max(stop for _, _, stop in places)
    nulls = {params.null} if isinstance(params.null, str) else set(params.null)
    name = str(path)
    for number, line, flaw in text_file.lines(path, params.encoding, params.skip):
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
