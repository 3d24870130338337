"""Errors of DuckDB, reworded for the author of a job.

DuckDB reports errors as JSON, with the position in the query apart from the message; its advice about settings, its links and its
excerpts of the query are left out, since none of them is about the author's document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.data.types import MissingColumn
from penstock.ports.rows import RowsFailed

if TYPE_CHECKING:
    import duckdb  # It takes 0.1 s to import.

_NOISE = re.compile(
    r"\n*(?:Possible [Ss]olutions?:|Possible fixes:|See also https?:|For more info, visit|LINE \d+:|Candidate functions:|"
    r"\tCandidate functions:|Use \"SET | ?Use TRY\(|You can adjust this setting|\n {2}file = ).*\Z",
    re.DOTALL,
)
_PREFIX = re.compile(r"\A(?:[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)*) Error: ")
_BURIED = re.compile(r'\{"exception_type".*\}\Z', re.DOTALL)
_WIDTHS = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "BOOL": "BOOLEAN"}
_CANNOT_CONVERT = re.compile(
    r"Could not convert string '(?P<value>.*)' to (?P<type>[\w() ,]+?)(?: when casting from source column (?P<column>.+))?\Z",
    re.DOTALL,
)
_OUT_OF_RANGE = re.compile(r"Type \w+ with value (?P<value>\S+) can't be cast .* destination type (?P<type>\w+)")
_BAD_DATE = re.compile(
    r"(?:invalid|date|timestamp) (?P<what>date|timestamp|time|field).*?\"(?P<value>[^\"]*)\".*?"
    r"(?: when casting from source column (?P<column>.+))?\Z",
    re.DOTALL,
)


_MISSING = re.compile(
    r"(?P<what>Table|Type|View|(?:Scalar|Aggregate|Table) Function) with name (?P<name>\S+) does not exist"
)
_MISSING_COLUMN = re.compile(
    r"Referenced column \"(?P<name>.+?)\" (?:was )?not found|"
    r"(?:Table|[Vv]alues list) \"(?P<table>.+?)\" does not have a column named \"(?P<column>.+?)\""
)
_FILE = re.compile(r"\"([^\"]+)\"")
_IN_QUOTES = re.compile(r"\"([\w.$ /:-]+)\"")


@dataclass(frozen=True, slots=True)
class Trouble:
    """DuckDB's error, taken apart. `offset` and `length` are in bytes of the query's text."""

    type: str
    message: str
    subtype: str = ""
    name: str = ""
    offset: int | None = None
    length: int = 0


def bound(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    """A query that is bound and not run: its columns are known."""
    import duckdb  # It takes 0.1 s to import.

    try:
        return connection.sql(query)
    except duckdb.Error:
        # The quick way does not give the position of an error; this one does, and fails the same way.
        connection.execute(query)
        raise


def columns_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    """The names and types of the columns of a query."""
    found = bound(connection, query)
    return [(name, str(type)) for name, type in zip(found.columns, found.types, strict=True)]


def trouble(error: duckdb.Error) -> Trouble:
    text = str(error)
    start = text.find("{")
    try:
        details: dict[str, Any] = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        details = {}
    if "exception_message" not in details:
        return Trouble(type(error).__name__.removesuffix("Exception"), _PREFIX.sub("", text))
    offset, length = _location(details)
    return Trouble(
        details.get("exception_type", ""),
        details["exception_message"],
        details.get("error_subtype", ""),
        details.get("name", ""),
        offset,
        length,
    )


def _location(details: dict[str, Any]) -> tuple[int | None, int]:
    try:
        offset, length = json.loads(details["location"])
        return int(offset), int(length)
    except (KeyError, ValueError, TypeError):
        position = details.get("position", "")
        return (int(position), 0) if str(position).isdigit() else (None, 0)


class NoSuchColumn(RowsFailed):
    """The query names a column that none of its inputs has."""

    def __init__(self, message: str, missing: MissingColumn, position: int | None) -> None:
        super().__init__("sql", message, position=position)
        self.missing = missing


def rows_failed(error: duckdb.Error) -> RowsFailed:
    parsed = trouble(error)
    message = _unburied(parsed.message)
    kind = _kind(parsed.type, message)
    if kind == "sql" and (found := _MISSING_COLUMN.search(message)):
        missing = MissingColumn(found["name"] or found["column"], found["table"])
        return NoSuchColumn(plain(kind, message), missing, parsed.offset)
    return RowsFailed(kind, plain(kind, message), position=parsed.offset, retryable=kind == "network")


def type_trouble_at(error: duckdb.Error, statement: str) -> int | None:
    """How far the statement was bound when a type did not fit, counted from its end; None when it is something else."""
    found = trouble(error)
    if _kind(found.type, found.message) != "sql" or found.type == "Parser" or _MISSING_COLUMN.search(found.message):
        return None
    return (found.offset or 0) - len(statement.encode())


@contextmanager
def placed_in(query: str, statement: str) -> Iterator[None]:
    """Maps the position of an error in the statement to its position in the query that the statement contains."""
    try:
        yield
    except RowsFailed as failed:
        if failed.position is not None:
            before = statement.encode().find(query.encode())
            at = query.encode()[: max(0, failed.position - before)]
            failed.position = len(at.decode(errors="ignore")) if 0 <= before <= failed.position else None
        raise


def _unburied(message: str) -> str:
    """The message of an error in a background write contains the JSON of the actual error."""
    buried = _BURIED.search(message)
    if buried is None:
        return message
    try:
        return str(json.loads(buried.group())["exception_message"])
    except (ValueError, KeyError):
        return message


def _kind(type: str, message: str) -> str:
    match type.replace(" ", ""):
        case "OutofMemory" | "OutOfMemory":
            return "disk" if "offload" in message or "temp_directory_size" in message else "memory"
        case "IO":
            return _io_kind(message)
        case "Conversion" | "OutofRange" | "OutOfRange":
            return "conversion"
        case "Constraint":
            return "constraint"
        case "Parser" | "Binder" | "Catalog" | "Syntax" | "ParameterNotResolved" | "Dependency":
            return "sql"
        # A connection of DuckDB's only ends when the run does.
        case "INTERRUPT" | "Interrupt" | "Connection":
            return "interrupted"
        case "HTTP" | "Network":
            return "network"
        case "InvalidInput":
            return _input_kind(message)
        case "Permission":
            return "permission"
        case "MismatchType" | "TypeMismatch" | "InvalidType":
            return "conversion"
        case _:
            return "engine"


def _io_kind(message: str) -> str:
    low = message.lower()
    if any(words in low for words in ("no space left", "file too large", "disk quota", "disk full")):
        return "disk"
    if any(words in low for words in ("no files found", "no such file", "does not exist")):
        return "missing_file"
    if "permission denied" in low:
        return "permission"
    if "http" in low or "could not establish connection" in low:
        return "network"
    return "io"


def _input_kind(message: str) -> str:
    if "could not parse" in message.lower() or "Failed to cast" in message:
        return "conversion"
    if any(
        words in message
        for words in ("CSV Error", "sniffing file", "Malformed JSON", "magic bytes", "not a valid", "Parquet")
    ):
        return "format"
    return "data"


def plain(kind: str, message: str) -> str:
    """One or two sentences, without advice that is not about the document."""
    sentence = _NOISE.sub("", message).strip()
    if kind == "memory":
        used = re.search(r"\(([^)]*) used\)", sentence)
        return f"not enough memory{f': {used.group(1)} used' if used else ''}; raise `memory_limit` or do less at once"
    if kind == "disk":
        return f"the disk is full: {sentence.splitlines()[0]}" if sentence else "the disk is full"
    if kind == "interrupted":
        return "interrupted"
    if kind == "conversion":
        sentence = _conversion(sentence)
    if kind == "missing_file" and (named := _FILE.search(sentence)):
        return f"there is no file `{named.group(1)}`"
    if found := _MISSING_COLUMN.search(sentence):
        where = f" in `{found['table']}`" if found["table"] else ""
        return f"there is no column `{found['name'] or found['column']}`{where}"
    if found := _MISSING.match(sentence):
        return f"there is no {found['what'].lower()} `{found['name']}`"
    lines = [line.strip() for line in sentence.splitlines() if line.strip()]
    return _IN_QUOTES.sub(r"`\1`", " ".join(lines)) if lines else "DuckDB failed without saying why"


def _conversion(message: str) -> str:
    for pattern in (_CANNOT_CONVERT, _OUT_OF_RANGE, _BAD_DATE):
        found = pattern.search(message)
        if found is None:
            continue
        parts = found.groupdict()
        wanted = parts.get("type") or (parts.get("what") or "").upper()
        wanted = "DATE" if wanted == "FIELD" else _WIDTHS.get(wanted, wanted)
        column = parts.get("column")
        where = f" (column `{column.strip()}`)" if column else ""
        return f"`{parts['value']}` is not a valid {wanted}{where}"
    return message
