"""`write_positional`: rows as text with columns of fixed width."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.io import columns, file_paths, placing, words
from penstock.ports.rows import Schema
from penstock.tools.sql.values import as_json_text, to_json


class WrittenColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: how wide it is, and how values stand in it."""

    name: Annotated[str, Meta(min_length=1, description="The column of the rows.")]
    width: Annotated[int, Meta(ge=1, description="How many characters it takes.")]
    align: Annotated[
        Literal["auto", "left", "right"], Meta(description="Where values stand; `auto`: numbers to the right.")
    ] = "auto"
    pad: Annotated[str, Meta(min_length=1, max_length=1, description="What fills the rest.")] = " "
    format: Annotated[str | None, Meta(description="How dates and timestamps are written, such as `%Y%m%d`.")] = None


class WritePositionalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.TargetPath
    columns: Annotated[list[WrittenColumn], Meta(min_length=1, description="The columns, from left to right.")]
    header: Annotated[bool, Meta(description="Name the columns in the first line.")] = False
    overflow: Annotated[
        Literal["fail", "cut"], Meta(description="What a value that is too long does: end in ERROR, or be cut.")
    ] = "fail"
    null: Annotated[str, Meta(description="How a missing value is written.")] = ""
    decimal: words.Decimal = "."
    encoding: words.Encoding = "utf-8"
    append: words.Append = False


class WritePositional(Action[WritePositionalParams]):
    """Write rows as text with columns of fixed width.

    Numbers stand to the right, everything else to the left, unless `align` says otherwise. A value that does not fit
    ends the component in ERROR and names the row, unless `overflow: cut`. The file replaces an older one when it is
    complete.

    The rows go on through `main` when it is connected.
    """

    type = "write_positional"
    family = "write"
    Params = WritePositionalParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the same rows, written"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: write_ledger}
components:
  - name: ledger
    type: fixed_rows
    params: {columns: [account, amount], rows: [["4711", 12.5], ["0815", 100]]}
  - name: write
    type: write_positional
    params:
      path: ledger.txt
      columns: [{name: account, width: 6}, {name: amount, width: 10, pad: "0"}]
connections:
  data: ledger.main -> write.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def check(
        self, params: WritePositionalParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> list[Mistake]:
        try:
            file_paths.codec(params.encoding)
        except ComponentFailure as failure:
            return [Mistake(("encoding",), failure.message)]
        schema = inputs.get("input")
        present = [] if schema is None else [column.name for column in schema]
        wrong = [] if schema is None else [(i, c.name) for i, c in enumerate(params.columns) if c.name not in present]
        return [
            Mistake(("columns", index, "name"), columns.missing([name], present, "the input") or "", kind="column")
            for index, name in wrong
        ]

    def schemas(
        self, params: WritePositionalParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        return {"main": inputs.get("input")}

    def run(self, params: WritePositionalParams, call: Call) -> None:
        from sqlglot import exp

        from penstock.data import select

        rows = call.input()
        problem = columns.missing(
            [column.name for column in params.columns], [column.name for column in rows.schema], "the input"
        )
        if problem is not None:
            raise ComponentFailure("columns", problem)
        query = exp.select(*(select.column(column.name) for column in params.columns)).from_(select.table("input"))
        path, encoding = file_paths.resolved(params.path, call), file_paths.codec(params.encoding)
        begun = params.append and placing.is_begun(path)
        number = 0
        with placing.target_file(path, append=params.append) as file:
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
