"""`write_excel`: rows as a worksheet. It needs openpyxl, which is installed apart."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, PlanCall, Port
from penstock.components.io import file_paths, placing, words
from penstock.components.io.excel import openpyxl
from penstock.data.untyped import is_open
from penstock.ports.rows import Relation, Schema
from penstock.tools.sql.values import as_json_text, to_json

MAX_ROWS = 1_048_576
MAX_TEXT = 32_767
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_EXACT = 2**53
"""Excel keeps numbers as DOUBLE: whole numbers beyond this lose digits."""


class WriteExcelParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.TargetPath
    sheet: Annotated[str, Meta(min_length=1, max_length=31, description="Name of the sheet.")] = "Sheet1"
    header: Annotated[bool, Meta(description="Name the columns in the first row.")] = True
    keep: Annotated[
        bool, Meta(description="Keep the other sheets of a file that is there already, and replace only this one.")
    ] = False


class WriteExcel(Action[WriteExcelParams]):
    """Write rows into a worksheet of an Excel file (`.xlsx`). The file replaces an older one when it is complete.

    Numbers, dates and truth values are cells of their own kind, everything else is text; a text that begins with `=`
    stays a text. Whole numbers of more than 15 digits are written as text, since Excel would round them. With `keep:
    true` the other sheets of the file stay as they are. A sheet has room for 1,048,576 rows.

    Needs the package `openpyxl`: `pip install penstock[excel]`. The rows go on through `main` when it is connected.
    """

    type = "write_excel"
    family = "write"
    Params = WriteExcelParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the same rows, written"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: write_plan}
components:
  - name: plan
    type: fixed_rows
    params: {columns: [month, amount], rows: [[January, 120.5], [February, 99]]}
  - name: write
    type: write_excel
    params: {path: plan.xlsx, sheet: Plan}
connections:
  data: plan.main -> write.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def schemas(
        self, params: WriteExcelParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        return {"main": inputs.get("input")}

    def run(self, params: WriteExcelParams, call: Call) -> None:
        rows = call.input()
        if rows.rows + params.header > MAX_ROWS:
            raise ComponentFailure(
                "too_large", f"{rows.rows} rows do not fit: a sheet has room for {MAX_ROWS}; hint: `write_csv`"
            )
        library = openpyxl()
        path = file_paths.resolved(params.path, call)
        with placing.whole_file(path) as file:
            if params.keep and path.exists():
                _write_into(library, path, params, rows, call, file)
            else:
                book = library.Workbook(write_only=True)
                sheet = book.create_sheet(params.sheet)
                with _undone(sheet):
                    _fill(library, sheet, params, rows, call)
                book.save(file)
        call.put("main", rows)


def _write_into(
    library: Any, path: Path, params: WriteExcelParams, rows: Relation, call: Call, file: IO[bytes]
) -> None:
    from zipfile import BadZipFile

    try:
        book = library.load_workbook(path)
    except (BadZipFile, KeyError, ValueError, library.utils.exceptions.InvalidFileException):
        raise ComponentFailure("format", f"`{path}` is there, and is not an Excel file", path=str(path)) from None
    at = None
    if params.sheet in book.sheetnames:
        at = book.sheetnames.index(params.sheet)
        del book[params.sheet]
    _fill(library, book.create_sheet(params.sheet, at), params, rows, call)
    book.save(file)


def _fill(library: Any, sheet: Any, params: WriteExcelParams, rows: Relation, call: Call) -> None:
    from penstock.components.queries import everything
    from penstock.data import select

    if params.header and not is_open(rows.schema):
        sheet.append([_cell(library, sheet, column.name) for column in rows.schema])
    number = 0
    for batch in call.engine.rows(select.sql(everything("input")), {"input": rows}):
        for row in batch:
            number += 1
            sheet.append([_cell(library, sheet, _value(value, number)) for value in row])


@contextmanager
def _undone(sheet: Any) -> Iterator[None]:
    """A sheet that is written row by row lies in a temporary file of its own, which goes when the block fails."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            sheet.close()
            sheet._writer.cleanup()


def _cell(library: Any, sheet: Any, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("="):
        return value
    cell = library.cell.WriteOnlyCell(sheet, value)
    cell.data_type = "s"  # else it would be a formula
    return cell


def _value(value: Any, number: int) -> Any:
    match value:
        case datetime.datetime():
            # Excel knows no zones: a moment is written as it is called in UTC.
            return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        case None | bool() | float() | Decimal() | datetime.date():
            return value
        case int():
            return value if abs(value) <= _EXACT else str(value)
        case datetime.time():
            return value.replace(tzinfo=None)
        case str():
            return _fitting(value, number)
        case dict() | list():
            return _fitting(as_json_text(value), number)
        case _:
            return str(to_json(value))


def _fitting(text: str, number: int) -> str:
    # Looked for here, since openpyxl would leave half a file behind when it finds them.
    if _CONTROL.search(text):
        raise ComponentFailure(
            "bad_value", f"row {number} has a control character, which an Excel cell cannot hold", row=number
        )
    if len(text) > MAX_TEXT:
        raise ComponentFailure(
            "too_long", f"row {number} has a text of {len(text)} characters: an Excel cell has room for {MAX_TEXT}"
        )
    return text
