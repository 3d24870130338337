"""`read_excel` and `write_excel`: the cells of a worksheet as rows. Both need openpyxl, an optional package."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import IO, Annotated, Any, ClassVar
from zipfile import BadZipFile

import msgspec

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas, Writer
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.csv_shape import distinct
from penstock.components.io.file_paths import import_module_or_fail
from penstock.components.io.row_types import REJECTED, Wanted, deliver, loading_schema
from penstock.components.queries import everything
from penstock.data import select
from penstock.data.types import is_open
from penstock.ports.rows import Relation
from penstock.tools.parameters import about, similar
from penstock.tools.sql.results import as_json_text, to_json

MISSING = "Excel files need the package `openpyxl`; hint: `pip install penstock[excel]`"
_RANGE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d+)(?::\$?([A-Za-z]{1,3})\$?(\d+)?)?")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")
_ERROR = re.compile(r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!|GETTING_DATA)")
_BATCH = 2_000


def openpyxl() -> ModuleType:
    module = import_module_or_fail("openpyxl", MISSING)
    # It warns of every feature of Excel that it leaves out, none of which are values.
    warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
    return module


class ReadExcelParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.OneSourcePath
    sheet: Annotated[str | int | None, about("Name of the sheet, or its number from 1; the first if left out.")] = None
    range: Annotated[
        str | None,
        about("The cells to read: `B3:F20`, `B3:F` for all rows from there on, or `B3` for all that follows."),
    ] = None
    header: Annotated[bool, about("The first row names the columns; otherwise they are `A`, `B` … as in Excel.")] = True
    columns: Annotated[
        parameters.Columns, about("The columns to read, in this order: names, or `{name, type}`. All if left out.")
    ] = []
    types: parameters.Types = {}
    on_error: parameters.OnError = "fail"
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


@dataclass(frozen=True, slots=True)
class Area:
    """Rows and columns from 1; no end where it is None."""

    top: int = 1
    left: int = 1
    bottom: int | None = None
    right: int | None = None


def area_of(text: str | None) -> Area:
    if text is None:
        return Area()
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ComponentFailure("parameters", f"`{text}` is not a range; hint: `B3:F20`, `B3:F` or `B3`")
    left, top, right, bottom = found.groups()
    area = Area(int(top), _number(left), int(bottom) if bottom else None, _number(right) if right else None)
    if area.top < 1 or (area.bottom or area.top) < area.top or (area.right or area.left) < area.left:
        raise ComponentFailure("parameters", f"`{text}` is not a range: it ends before it begins")
    return area


def _number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


class ReadExcel(Action[ReadExcelParams]):
    """Read rows from a worksheet of an Excel file (`.xlsx`, `.xlsm`).

    The first row of the sheet, or of the `range`, names the columns. Types are those of the cells, unless `columns`,
    `types` or the component's `schema` say otherwise; of formulas, the values that Excel last saved are read. Empty
    rows are left out.

    A row with a cell that is an error (`#DIV/0!`), a formula whose value was never saved (programs that write Excel
    files without being able to calculate leave such), a value beyond the last column, or a value that is not of its
    column's type goes to the port `reject` with `error_code`, `error_message`, `file`, `line` (the row's number in
    the sheet), `column` and `raw_line`. When that port is not connected it ends the component in ERROR, unless
    `on_error: skip`. After-variables: `NB_LINE_REJECTED`.

    Needs the package `openpyxl`: `pip install penstock[excel]`.
    """

    type = "read_excel"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="rows that cannot be read, with what is wrong"),
    )

    def check(self, params: ReadExcelParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = parameters.type_mistakes(params.columns, params.types)
        try:
            area_of(params.range)
        except ComponentFailure as failure:
            found.append(Mistake(("range",), failure.message))
        return found

    def schemas(self, params: ReadExcelParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": call.declared.get("main"), "reject": REJECTED}

    def run(self, params: ReadExcelParams, call: Call) -> None:
        path = file_paths.one_file(params.path, call, params.credentials)
        area = area_of(params.range)
        with _worksheet(path, params) as sheet, _formulas(path, params) as formulas:
            cut = (area.top, area.bottom, area.left, area.right)
            rows = sheet.iter_rows(*cut, values_only=True) if formulas is None else _held_against(sheet, formulas, cut)
            numbered = enumerate(rows, area.top)
            names = _names(numbered, params, area) if params.header else None
            table = _Table(file_paths.shown(path, call), sheet.title, area.left, names)
            loaded = table.load(numbered, call)
        wanted = parameters.named(params.columns, call.declared.get("main"))
        problem = parameters.missing([*wanted, *params.types], table.names, table.where)
        if problem is not None:
            raise ComponentFailure("columns", problem, path=str(path))
        types = {name: parameters.sql_type(type) for name, type in params.types.items()}
        chosen = [
            Wanted(name, table.source(name), types.get(name) or wanted.get(name))
            for name in (wanted or dict.fromkeys(table.names))
        ]
        deliver(loaded, chosen, call, params.on_error)


@contextmanager
def _formulas(path: Path, params: ReadExcelParams) -> Iterator[Any]:
    """The same sheet with formulas instead of values; None for a file without any."""
    if not _has_formulas(path):
        yield None
        return
    with _worksheet(path, params, data_only=False) as sheet:
        yield sheet


def _has_formulas(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                    with archive.open(name) as part:
                        before = b""
                        while chunk := part.read(1 << 20):
                            if _FORMULA.search(before + chunk):
                                return True
                            before = chunk[-8:]
    except (zipfile.BadZipFile, OSError, KeyError):
        return False  # What is wrong with the file is said by who opens it.
    return False


def _held_against(
    values: Any, formulas: Any, cut: tuple[int, int | None, int, int | None]
) -> Iterator[tuple[Any, ...]]:
    """The values, with `_Unsaved` where there is a formula and no program has ever saved its value.

    That of `=""` is saved, as a text with nothing in it."""
    for row, meant in zip(values.iter_rows(*cut), formulas.iter_rows(*cut), strict=False):
        yield tuple(
            _Unsaved(_text_of(formula.value)) if _is_unsaved(cell, formula) else cell.value
            for cell, formula in zip(row, meant, strict=False)
        )


def _is_unsaved(cell: Any, formula: Any) -> bool:
    is_formula = getattr(formula, "data_type", None) == "f"
    return is_formula and cell.value is None and getattr(cell, "data_type", None) != "str"


def _text_of(formula: Any) -> str:
    return str(getattr(formula, "text", formula))


@contextmanager
def _worksheet(path: Path, params: ReadExcelParams, *, data_only: bool = True) -> Iterator[Any]:
    library = openpyxl()
    try:
        book = library.load_workbook(path, read_only=True, data_only=data_only)
    except (zipfile.BadZipFile, KeyError, OSError, ValueError, library.utils.exceptions.InvalidFileException) as error:
        hint = "; hint: save an old `.xls` file as `.xlsx`" if path.suffix.lower() == ".xls" else ""
        reason = "it is empty" if not path.stat().st_size else " ".join(str(error).split())[:200]
        raise ComponentFailure("format", f"`{path}` is not an Excel file: {reason}{hint}", path=str(path)) from None
    try:
        sheet = _sheet(book, path, params.sheet)
        # What a file says of its own size is often wrong, and rows beyond it would be lost.
        sheet.reset_dimensions()
        yield sheet
    finally:
        book.close()


def _sheet(book: Any, path: Path, wanted: str | int | None) -> Any:
    names = [sheet.title for sheet in book.worksheets]
    if isinstance(wanted, str) and wanted not in names and wanted.isdecimal():
        wanted = int(wanted)  # a template gives text
    if isinstance(wanted, str):
        if wanted in names:
            return book.worksheets[names.index(wanted)]
    elif 1 <= (1 if wanted is None else wanted) <= len(names):
        return book.worksheets[(wanted or 1) - 1]
    known = ", ".join(f"`{name}`" for name in names) or "none"
    similarly = similar(str(wanted), names)
    raise ComponentFailure("sheet", f"`{path}` has no sheet `{wanted}`{similarly}; it has {known}", path=str(path))


def _names(rows: Iterator[tuple[int, Sequence[Any]]], params: ReadExcelParams, area: Area) -> tuple[str, ...]:
    """The names in the first row that is not empty."""
    for _, row in rows:
        cells = list(row)
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            named = [
                letters(area.left + index) if cell is None or not str(cell).strip() else str(cell).strip()
                for index, cell in enumerate(cells)
            ]
            return distinct(named)
    return ()


class _Table:
    """The cells below the header, on their way into the engine."""

    def __init__(self, path: str, sheet: str, left: int, names: tuple[str, ...] | None) -> None:
        self.path = path
        self.where = f"`{path}`, sheet `{sheet}`,"
        self.left = left
        self.given = names
        self.names: list[str] = list(names or ())

    def source(self, name: str) -> str:
        return f"t{self.names.index(name)}"

    def load(self, rows: Iterator[tuple[int, Sequence[Any]]], call: Call) -> Relation:
        """Raises ComponentFailure when there are neither names nor cells."""
        mappings = self._mappings(rows)
        first = next(mappings, None)
        if self.given is None and first is not None:
            self.names = [letters(self.left + index) for index in range(len(first) - 4)]
        if not self.names:
            raise ComponentFailure("format", f"{self.where} has no cells in that place", path=self.path)
        if first is None:
            return call.engine.empty(loading_schema([self.source(name) for name in self.names]))
        return call.engine.load_mappings(_in_batches(chain([first], mappings)))

    def _mappings(self, rows: Iterator[tuple[int, Sequence[Any]]]) -> Iterator[dict[str, Any]]:
        width = len(self.given) if self.given is not None else None
        for number, row in rows:
            if all(cell is None for cell in row):
                continue
            cells = [_read_value(cell) for cell in row]
            flaw = self._flaw(cells, width)
            if width is None:
                width = len(cells)
            cells = (cells + [None] * width)[:width]
            raw = ";".join("" if cell is None else str(cell) for cell in row)
            sound = [None if isinstance(cell, _Error) else cell for cell in cells]
            place = {"file": self.path, "line": number, "raw_line": raw, "flaw": flaw}
            yield {**place, **{f"t{index}": cell for index, cell in enumerate(sound)}}

    def _flaw(self, cells: Sequence[Any], width: int | None) -> str | None:
        for index, cell in enumerate(cells):
            if isinstance(cell, _Unsaved):
                return (
                    f"the cell in column {letters(self.left + index)} is the formula `{cell}`, whose value was never saved; "
                    "hint: open the file in Excel or LibreOffice and save it"
                )
            if isinstance(cell, _Error):
                return f"the cell in column {letters(self.left + index)} is the error `{cell}`"
            if width is not None and index >= width and cell is not None:
                return f"there is a value in column {letters(self.left + index)}, beyond the last column that is named"
        return None


class _Error(str):
    """What Excel shows where it cannot show a value."""

    __slots__ = ()


class _Unsaved(_Error):
    """A formula without a value, as programs write it that cannot calculate."""

    __slots__ = ()


def _read_value(cell: Any) -> Any:
    match cell:
        case _Unsaved():
            return cell
        case str() if _ERROR.fullmatch(cell):
            return _Error(cell)
        case str():
            return cell or None
        case datetime.datetime() if cell.time() == datetime.time():
            # A day and the midnight it begins with are the same number in Excel.
            return cell.date()
        case datetime.timedelta():
            return str(cell)
        case _:
            return cell


def _in_batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


MAX_ROWS = 1_048_576
MAX_TEXT = 32_767
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_EXACT = 2**53
"""Excel keeps numbers as DOUBLE: whole numbers beyond this lose digits."""


class WriteExcelParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    sheet: Annotated[str, about("Name of the sheet.", min_length=1, max_length=31)] = "Sheet1"
    header: Annotated[bool, about("Name the columns in the first row.")] = True
    keep: Annotated[
        bool, about("Keep the other sheets of a file that is there already, and replace only this one.")
    ] = False
    credentials: parameters.Credentials = None


class WriteExcel(Writer[WriteExcelParams]):
    """Write rows into a worksheet of an Excel file (`.xlsx`). The file replaces an older one when it is complete.

    Numbers, dates and truth values are cells of their own kind, everything else is text; a text that begins with `=`
    stays a text. Whole numbers of more than 15 digits are written as text, since Excel would round them. With `keep:
    true` the other sheets of the file stay as they are. A sheet has room for 1,048,576 rows.

    Needs the package `openpyxl`: `pip install penstock[excel]`. The rows go on through `main` when it is connected.
    """

    type = "write_excel"

    def run(self, params: WriteExcelParams, call: Call) -> None:
        rows = call.input()
        if rows.rows + params.header > MAX_ROWS:
            raise ComponentFailure(
                "too_large", f"{rows.rows} rows do not fit: a sheet has room for {MAX_ROWS}; hint: `write_csv`"
            )
        library = openpyxl()
        path = file_paths.target(params.path, call, params.credentials, append=params.keep)
        with file_paths.whole_file(path) as file:
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
    if params.header and not is_open(rows.schema):
        sheet.append([_cell(library, sheet, column.name) for column in rows.schema])
    number = 0
    for batch in call.engine.rows(select.sql(everything("input")), {"input": rows}):
        for row in batch:
            number += 1
            sheet.append([_cell(library, sheet, _written_value(value, number)) for value in row])


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


def _written_value(value: Any, number: int) -> Any:
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
