"""Lines of delimited files that could not be read: DuckDB keeps them aside while it reads, here they get a place and
a sentence.

DuckDB numbers records; people and editors number lines. A quoted value may hold line breaks, so the line is counted
from the file itself, up to the byte at which the record begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqlglot import exp

from penstock.components.base import Call, ComponentFailure
from penstock.components.io import file_paths
from penstock.components.io.row_types import REJECTED, Notation
from penstock.components.io.scans import all_of
from penstock.components.types import WHOLE, is_written_whole
from penstock.data import select
from penstock.ports.rows import Relation

if TYPE_CHECKING:
    from penstock.components.io.csv_shape import Reading

_ERRORS, _SCANS = "penstock_rejects_{}", "penstock_reject_scans_{}"
_FRACTIONS, _FRACTION_SCANS = "penstock_fractions_{}", "penstock_fraction_scans_{}"
_CODES = {
    "CAST": "bad_value",
    "MISSING COLUMNS": "missing_columns",
    "TOO MANY COLUMNS": "too_many_columns",
    "UNQUOTED VALUE": "bad_quotes",
    "LINE SIZE OVER MAXIMUM": "line_too_long",
    "INVALID ENCODING": "bad_encoding",
}
_NOT_CONVERTED = re.compile(r"Could not convert string \"(.*)\" to '(.*)'", re.DOTALL)
_STARTS = 'Could not convert string "'
_COUNTED = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Refused:
    """One line that was not read."""

    code: str
    message: str
    file: str
    line: int
    column: str | None
    raw: str

    def row(self) -> tuple[Any, ...]:
        return (self.code, self.message, self.file, self.line, self.column, self.raw)

    def describe(self) -> str:
        where = f"`{self.file}`, line {self.line}"
        return f"{where}, column `{self.column}`: {self.message}" if self.column else f"{where}: {self.message}"


@dataclass(slots=True)
class Rejects:
    """The refused lines of one read, in the order of the files."""

    call: Call
    reading: Reading
    errors: Relation | None
    """What DuckDB kept aside, an error a row; None when there was nothing to read."""
    count: int

    def lines(self) -> Iterator[Refused]:
        for file, found in groupby(_errors(self.call, self.errors), key=lambda error: error[0]):
            yield from _explained(Path(file), self.reading, found)

    def first(self) -> str:
        return next(self.lines()).describe()

    def failure(self) -> ComponentFailure:
        first = next(self.lines())
        more = f" ({self.count} lines in all)" if self.count > 1 else ""
        return ComponentFailure(
            first.code,
            f"{first.describe()}{more}{_hint(first.code)}",
            file=first.file,
            line=first.line,
            column=first.column,
            rejected=self.count,
        )

    def relation(self) -> Relation:
        return self.call.engine.load(REJECTED, _batches(self.lines()))


def _batches(lines: Iterable[Refused], size: int = 5_000) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for line in lines:
        batch.append(line.row())
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def read(reading: Reading, call: Call) -> tuple[Relation, Rejects]:
    """The rows that could be read, and the lines that could not. Raises RowsFailed when it is not the lines' fault."""
    scans = len(reading.parts()) if any(group.names for group in reading.groups) else 0
    tables = (_ERRORS, _SCANS, _FRACTIONS, _FRACTION_SCANS)
    for name in [template.format(number) for number in range(scans) for template in tables]:
        call.engine.run(f"DROP TABLE IF EXISTS {select.sql(select.table(name))}")
    aside = {"store_rejects": True, "rejects_table": _ERRORS, "rejects_scan": _SCANS}
    rows = call.engine.select(select.sql(reading.query(is_checked=False, **aside)), {})
    if not scans:
        return rows, Rejects(call, reading, None, 0)
    errors = call.engine.select(select.sql(all_of(*(_kept(number) for number in range(scans)))), {})
    if reading.whole:
        fractions = _fractions(reading, call, scans)
        if fractions.rows:
            rows = call.engine.select(select.sql(_without_fractions(reading)), {})
            errors = call.engine.select(
                select.sql(
                    all_of(*(exp.select(exp.Star()).from_(select.table(one)) for one in ("errors", "fractions")))
                ),
                {"errors": errors, "fractions": fractions},
            )
    return rows, Rejects(call, reading, errors, _count(call, errors))


def _fractions(reading: Reading, call: Call, scans: int) -> Relation:
    """The values with a fraction that DuckDB has taken for whole ones, as errors like those it kept aside itself."""
    aside = {"store_rejects": True, "rejects_table": _FRACTIONS, "rejects_scan": _FRACTION_SCANS}
    read = [exp.alias_(exp.Count(this=select.column(name)), select.name(name)) for name in reading.whole]
    call.engine.select(select.sql(exp.select(*read).from_(reading.fractions(**aside).subquery("scanned"))), {})
    kept = all_of(*(_kept(number, _FRACTIONS, _FRACTION_SCANS) for number in range(scans)))
    pattern = r"""(?s)Could not convert string "(.*)" to '"""
    value = exp.Anonymous(
        this="regexp_extract", expressions=[select.column("message"), select.literal(pattern), select.literal(1)]
    )
    is_taken = exp.TryCast(this=value, to=select.data_type("HUGEINT")).is_(exp.null()).not_()
    wrong = exp.and_(select.column("kind").eq(select.literal("CAST")), is_taken, is_written_whole(value).not_())
    return call.engine.select(select.sql(exp.select(exp.Star()).from_(kept.subquery("kept")).where(wrong)), {})


def _without_fractions(reading: Reading) -> exp.Query:
    """The rows again, with the whole columns as the texts they are, until they are known to be whole."""
    texts = replace(reading, types={**reading.types, **dict.fromkeys(reading.whole, "VARCHAR")})
    found = texts.query(is_checked=False, ignore_errors=True)
    picked = [
        exp.alias_(exp.TryCast(this=value, to=select.data_type(column.type)), select.name(column.name))
        if column.name in reading.whole
        else value
        for column in reading.schema
        for value in [select.column(column.name)]
    ]
    right = [
        exp.or_(
            select.column(name).is_(exp.null()),
            exp.and_(
                is_written_whole(select.column(name)),
                exp.TryCast(this=select.column(name), to=select.data_type(reading.types[name])).is_(exp.null()).not_(),
            ),
        )
        for name in reading.whole
    ]
    return exp.select(*picked).from_(found.subquery("found")).where(exp.and_(*right))


def _count(call: Call, errors: Relation) -> int:
    # Several values of one line may be wrong: each is a row of DuckDB's.
    lines = exp.select(select.column("scan"), select.column("file"), select.column("line")).distinct()
    counted = exp.select(exp.Count(this=exp.Star())).from_(lines.from_(select.table("errors")).subquery("lines"))
    (((total,),),) = list(call.engine.rows(select.sql(counted), {"errors": errors}))
    return int(total)


def _kept(number: int, errors_table: str = _ERRORS, scans_table: str = _SCANS) -> exp.Select:
    """What DuckDB kept aside in one scan. Its tables can be seen only by the session that did the reading."""
    wanted = {
        "scan": select.literal(number),
        "file": select.column("file_path", "s"),
        "file_number": select.column("file_id", "e"),
        "line": select.column("line", "e"),
        "byte": select.column("line_byte_position", "e"),
        "place": select.column("column_idx", "e"),
        "column": select.column("column_name", "e"),
        "kind": select.cast(select.column("error_type", "e"), "VARCHAR"),
        "raw": select.column("csv_line", "e"),
        "message": select.column("error_message", "e"),
    }
    errors = exp.alias_(select.table(errors_table.format(number)), "e", table=True)
    scans = exp.alias_(select.table(scans_table.format(number)), "s", table=True)
    same = [exp.EQ(this=select.column(key, "e"), expression=select.column(key, "s")) for key in ("scan_id", "file_id")]
    named = [exp.alias_(node, select.name(name)) for name, node in wanted.items()]
    return exp.select(*named).from_(errors).join(scans, on=exp.and_(*same))


def _errors(call: Call, errors: Relation | None) -> Iterator[tuple[Any, ...]]:
    """(file, line, byte, column, kind, raw line, message) of each error, in the order of the files."""
    if errors is None:
        return
    wanted = [select.column(name) for name in ("file", "line", "byte", "column", "kind", "raw", "message")]
    order = [select.column(name) for name in ("scan", "file_number", "line", "place")]
    query = exp.select(*wanted).from_(select.table("errors")).order_by(*order)
    for batch in call.engine.rows(select.sql(query), {"errors": errors}):
        yield from batch


def _explained(path: Path, reading: Reading, errors: Iterable[tuple[Any, ...]]) -> Iterator[Refused]:
    shown = (reading.shown or {}).get(path, str(path))
    with LineCounter(path) as counter:
        for record, found in groupby(errors, key=lambda error: int(error[1])):
            same = list(found)
            _, _, byte, column, kind, raw, _ = same[0]
            code = _CODES.get(kind, "bad_line")
            # A value that is wrong has a column; a line of the wrong length has none.
            culprit = str(column) if code in ("bad_value", "bad_quotes", "bad_encoding") and column else None
            line = counter.line_at(int(byte)) if byte is not None else None
            text = str(raw or "")
            if code == "bad_encoding" and byte is not None:
                # DuckDB replaces more than the bytes that are wrong: a delimiter behind one would be gone.
                text = _line_in(path, int(byte)) or text
            yield Refused(code, _words(same, reading), shown, line or record, culprit, text.rstrip("\r\n"))


def _line_in(path: Path, byte: int) -> str | None:
    """The line that begins there, with bytes that are not text as `\\xe9`; None where the file cannot be read so."""
    with file_paths.open_bytes(path) as file:
        file.seek(max(byte - 1, 0))  # DuckDB counts from 1.
        return file.readline(_CHUNK).decode("utf-8", "backslashreplace")


def _words(errors: list[tuple[Any, ...]], reading: Reading) -> str:
    kind, message = str(errors[0][4]), str(errors[0][6])
    match kind:
        case "CAST":
            describe = [
                (error[3], _not_converted(str(error[6]), reading.types.get(str(error[3])), reading.layout.notation))
                for error in errors
                if error[4] == "CAST"
            ]
            return (
                describe[0][1] if len(describe) == 1 else "; ".join(f"`{column}`: {text}" for column, text in describe)
            )
        case "MISSING COLUMNS" | "TOO MANY COLUMNS":
            counted = _COUNTED.search(message)
            return f"{counted[2]} values for {counted[1]} columns" if counted else message
        case "UNQUOTED VALUE":
            return "a quote is not closed, or text stands beside it"
        case "LINE SIZE OVER MAXIMUM":
            return f"the line is longer than `max_line_bytes` ({reading.layout.max_line_bytes})"
        case "INVALID ENCODING":
            return f"these bytes are not `{reading.layout.encoding}`"
        case _:
            return message


def _not_converted(message: str, wanted: str | None, notation: Notation) -> str:
    found = _NOT_CONVERTED.search(message)
    if found is None and (wanted is None or _STARTS not in message):
        return message
    # DuckDB breaks off its message at the end of a line, also where that is a part of the value.
    text = found[1] if found is not None else f"{message.partition(_STARTS)[2]}…"
    value = text if len(text) <= 200 else f"{text[:200]}…"
    # A value with a fraction was refused by a scan that looked for those, and not by one for the type that is wanted.
    type = wanted or "" if found is None or wanted in WHOLE else found[2]
    return f"`{value}` is not a {type}{notation.written_as(type)}"


def _hint(code: str) -> str:
    match code:
        case "bad_value":
            return "; hint: give the column another type in `types`, connect the `reject` port, or set `on_error: skip`"
        case "missing_columns":
            return "; hint: `fill_missing: true` fills up short lines; or connect the `reject` port, or set `on_error: skip`"
        case "line_too_long":
            return "; hint: raise `max_line_bytes`"
        case "bad_encoding":
            return "; hint: say in `encoding` how the file is written, such as `latin-1` or `cp1252`"
        case _:
            return "; hint: connect the `reject` port, or set `on_error: skip`"


class LineCounter:
    """Says on which line a byte stands. Asked in the order of the file, it reads the file once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._byte = 0
        self._line = 1

    def __enter__(self) -> LineCounter:
        self._file = file_paths.open_bytes(self._path)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._file is not None:
            self._file.close()

    def line_at(self, byte: int) -> int | None:
        """None when the file cannot be counted, or was asked about a place that is behind."""
        if self._file is None or byte < self._byte:
            return None
        while self._byte < byte:
            chunk = self._file.read(min(_CHUNK, byte - self._byte))
            if not chunk:
                return None
            self._byte += len(chunk)
            # A file of a Macintosh long ago has no `\n` at all; DuckDB's number is as good then.
            self._line += chunk.count(b"\n")
        return self._line
