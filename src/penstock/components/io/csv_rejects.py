"""Lines of delimited files that could not be read: DuckDB keeps them aside while it reads, here they get a place and
a sentence.

DuckDB numbers records; people and editors number lines. A quoted value may hold line breaks, so the line is counted
from the file itself, up to the byte at which the record begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqlglot import exp

from penstock.components.base import Call, ComponentFailure
from penstock.components.io import files
from penstock.components.io.rejects import REJECTED
from penstock.components.io.scans import all_of
from penstock.data import select
from penstock.ports.rows import Relation

if TYPE_CHECKING:
    from penstock.components.io.read_csv import Reading

_ERRORS, _SCANS = "penstock_rejects_{}", "penstock_reject_scans_{}"
_CODES = {
    "CAST": "bad_value",
    "MISSING COLUMNS": "missing_columns",
    "TOO MANY COLUMNS": "too_many_columns",
    "UNQUOTED VALUE": "bad_quotes",
    "LINE SIZE OVER MAXIMUM": "line_too_long",
    "INVALID ENCODING": "bad_encoding",
}
_NOT_CONVERTED = re.compile(r"Could not convert string \"(.*)\" to '(.*)'", re.DOTALL)
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

    def said(self) -> str:
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
            yield from _told(Path(file), self.reading, found)

    def first(self) -> str:
        return next(self.lines()).said()

    def failure(self) -> ComponentFailure:
        first = next(self.lines())
        more = f" ({self.count} lines in all)" if self.count > 1 else ""
        return ComponentFailure(
            first.code,
            f"{first.said()}{more}{_hint(first.code)}",
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
    for name in [template.format(number) for number in range(scans) for template in (_ERRORS, _SCANS)]:
        call.engine.run(f"DROP TABLE IF EXISTS {select.sql(select.table(name))}")
    more = {"store_rejects": True, "rejects_table": _ERRORS, "rejects_scan": _SCANS}
    rows = call.engine.select(select.sql(reading.query(**more)), {})
    if not scans:
        return rows, Rejects(call, reading, None, 0)
    errors = call.engine.select(select.sql(all_of(*(_kept(number) for number in range(scans)))), {})
    return rows, Rejects(call, reading, errors, _count(call, errors))


def _count(call: Call, errors: Relation) -> int:
    # Several values of one line may be wrong: each is a row of DuckDB's.
    lines = exp.select(select.column("scan"), select.column("file"), select.column("line")).distinct()
    counted = exp.select(exp.Count(this=exp.Star())).from_(lines.from_(select.table("errors")).subquery("lines"))
    (((total,),),) = list(call.engine.rows(select.sql(counted), {"errors": errors}))
    return int(total)


def _kept(number: int) -> exp.Select:
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
    errors = exp.alias_(select.table(_ERRORS.format(number)), "e", table=True)
    scans = exp.alias_(select.table(_SCANS.format(number)), "s", table=True)
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


def _told(path: Path, reading: Reading, errors: Iterable[tuple[Any, ...]]) -> Iterator[Refused]:
    shown = str((reading.shown or {}).get(path, path))
    with LineCounter(path) as counter:
        for record, found in groupby(errors, key=lambda error: int(error[1])):
            same = list(found)
            _, _, byte, column, kind, raw, _ = same[0]
            code = _CODES.get(kind, "bad_line")
            # A value that is wrong has a column; a line of the wrong length has none.
            culprit = str(column) if code in ("bad_value", "bad_quotes", "bad_encoding") and column else None
            line = counter.line_at(int(byte)) if byte is not None else None
            yield Refused(code, _words(same, reading), shown, line or record, culprit, str(raw or "").rstrip("\r\n"))


def _words(errors: list[tuple[Any, ...]], reading: Reading) -> str:
    kind, message = str(errors[0][4]), str(errors[0][6])
    match kind:
        case "CAST":
            said = [(error[3], _not_converted(str(error[6]))) for error in errors if error[4] == "CAST"]
            return said[0][1] if len(said) == 1 else "; ".join(f"`{column}`: {text}" for column, text in said)
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


def _not_converted(message: str) -> str:
    found = _NOT_CONVERTED.search(message)
    if found is None:
        return message
    value = found[1] if len(found[1]) <= 200 else f"{found[1][:200]}…"
    return f"`{value}` is not a {found[2]}"


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
        if self._path.suffix not in (".zst", ".zstd"):
            self._file = files.open_bytes(self._path)
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
