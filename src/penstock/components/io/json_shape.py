"""What JSON files hold: the objects that are their rows, and the columns those have in common.

Law: columns and types are settled before the first row is read. A key that the first objects do not have is a column
only when the author names it with its type.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from penstock.components.base import ComponentFailure
from penstock.components.io import file_paths, parameters, scans
from penstock.components.io.row_types import call as function
from penstock.components.io.scans import all_of, column_types, renamed, scan, text_lines
from penstock.components.queries import row_number
from penstock.components.types import WHOLE, checked_whole
from penstock.data import select
from penstock.data.types import NOTHING, OPEN
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import similar

Form = Literal["array", "newline_delimited", "unstructured"]
ONLY = "value"
"""The one column of rows that are no objects."""
_NOTHING = re.compile(r'"NULL"(?=$|[,)\[])')
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Manner:
    """How the files are to be taken. Hashable: what was found out about a file is remembered under it."""

    form: Form
    rows: str | None = None
    sample: int = 20_480
    max_object_bytes: int = 16_777_216
    date_format: str | None = None
    timestamp_format: str | None = None

    def options(self) -> dict[str, Any]:
        return {
            "format": self.form,
            "maximum_object_size": self.max_object_bytes,
            "dateformat": self.date_format,
            "timestampformat": self.timestamp_format,
        }


def form_of(path: Path, wanted: str, rows: str | None) -> Form:
    """By what the author says, else by how the file begins."""
    if rows is not None:
        return "unstructured"
    if wanted != "auto":
        return "array" if wanted == "array" else "newline_delimited"
    try:
        with file_paths.open_bytes(path) as file:
            begins = file.read(4096).removeprefix(_BOM).lstrip()
    except file_paths.unpacking_failures() as error:
        raise ComponentFailure("format", f"`{path}` cannot be read: {error}", path=str(path)) from None
    if begins[:1] == b"[":
        return "array"
    # Objects that are spread over several lines are read one after another; a line each is faster.
    first, _, rest = begins.partition(b"\n")
    return "newline_delimited" if rest and first.rstrip().endswith(b"}") else "unstructured"


@dataclass(frozen=True, slots=True)
class Reading:
    """One read, settled."""

    paths: tuple[Path, ...]
    manner: Manner
    top: Mapping[str, str]
    """The columns that DuckDB is to read from each document, with their types."""
    columns: Schema
    file_column: str | None = None
    is_empty: bool = False
    """There are no rows: nothing says what the columns would be, and nothing is read."""
    declared: frozenset[str] = frozenset()
    """The columns that the author wants as whole numbers. Of one that was inferred, the values are whole."""
    names: tuple[tuple[str, str], ...] = ()
    """Of copies: what their paths begin with, and what is shown instead."""

    @property
    def schema(self) -> Schema:
        return (*self.columns, Column(self.file_column, "VARCHAR")) if self.file_column is not None else self.columns

    @property
    def has_objects(self) -> bool:
        """Are the rows objects? Those of a list inside the document may be plain values."""
        return self.manner.rows is None or fields_of(_element_type(self.manner.rows, self.top)) is not None

    def query(self) -> exp.Query:
        if self.is_empty:
            return parameters.no_rows(self.schema)
        return self._query() if self.file_column is None else renamed(self._query(), self.file_column, self.names)

    def _query(self) -> exp.Query:
        named = [select.column(self.file_column)] if self.file_column is not None else []
        checked = self.declared if self.manner.rows is None else frozenset()
        # As the JSON it is: DuckDB would round a number with a fraction to a whole one, and say nothing.
        top = {name: "JSON" if name in checked else type for name, type in self.top.items()}
        options = self.manner.options() | {"columns": column_types(top), "filename": self.file_column}
        source = scan("read_json", self.paths, options)
        if self.manner.rows is None:
            picked = [
                _whole(column) if column.name in checked else select.column(column.name) for column in self.columns
            ]
            return exp.select(*picked, *named).from_(source)
        element = exp.alias_(_elements(self.manner.rows, self.top), select.name("element"))
        inner = exp.select(element, *named).from_(source).subquery(select.name("found"))
        return exp.select(*(self._field(column) for column in self.columns), *named).from_(inner)

    def _field(self, column: Column) -> exp.Expr:
        fields = fields_of(_element_type(self.manner.rows or "", self.top))
        element: exp.Expr = select.column("element")
        if fields is not None and column.name not in fields:
            return exp.alias_(select.cast(exp.null(), column.type), select.name(column.name))
        if fields is not None:
            element = exp.Anonymous(this="struct_extract", expressions=[element, select.literal(column.name)])
        if column.name in self.declared:
            element = checked_whole(select.cast(element, "VARCHAR"))
        return exp.alias_(select.cast(element, column.type), select.name(column.name))


def _whole(column: Column) -> exp.Expr:
    """The column, which is JSON, as a whole number; a value that is none cannot be cast, and ends the query."""
    text = exp.Anonymous(this="json_extract_string", expressions=[select.column(column.name), select.literal("$")])
    return exp.alias_(select.cast(checked_whole(text), column.type), select.name(column.name))


@lru_cache(maxsize=256)
def _top(found: tuple[file_paths.Stamp, ...], manner: Manner) -> dict[str, str]:
    """The columns of the documents, by the first `sample` of them."""
    options = manner.options() | {"sample_size": manner.sample, "union_by_name": len(found) > 1 or None}
    # A line that is not JSON says nothing about the others; which one it is comes out when the rows are read.
    options["ignore_errors"] = manner.form == "newline_delimited" or None
    paths = [Path(path) for path, _, _ in found]
    query = exp.select(exp.Star()).from_(scan("read_json", paths, options))
    top = {column.name: _NOTHING.sub("VARCHAR", column.type) for column in scans.columns(query)}
    if _tells_no_columns(manner, top) and (fields := _fields_of_objects(paths, manner)):
        return fields if manner.rows is None else _with_elements(manner.rows, top, fields)
    return top


def _tells_no_columns(manner: Manner, top: Mapping[str, str]) -> bool:
    """There are rows that are no objects, or no rows at all."""
    if manner.rows is None:
        return list(top.items()) == [("json", "JSON")]
    try:
        return _element_type(manner.rows, top) == "JSON"
    except KeyError:
        return False


def _fields_of_objects(paths: list[Path], manner: Manner) -> dict[str, str]:
    """The columns of those rows that are objects: one that is none is a reject, and takes no column from the others."""
    query = exp.select(select.column("raw")).from_(rows_in(paths, manner).subquery("rows_there")).where(is_object())
    try:
        found = scans.ask(query if manner.sample < 0 else query.limit(manner.sample))
    except ComponentFailure:
        return {}  # What is wrong with the file is said by who reads it.
    if not found:
        return {}
    with tempfile.TemporaryDirectory(prefix="penstock-look-") as folder:
        copy = Path(folder) / "objects.json"
        copy.write_text("\n".join(str(raw) for (raw,) in found), encoding="utf-8")
        options = manner.options() | {"format": "unstructured", "sample_size": -1}
        described = scans.columns(exp.select(exp.Star()).from_(scan("read_json", [copy], options)))
    return {column.name: _NOTHING.sub("VARCHAR", column.type) for column in described}


def _with_elements(rows: str, top: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, str]:
    """The type of the document with the elements at `rows` as objects with these fields."""

    def typed(type: str, way: list[str]) -> str:
        if not way:
            element = f"STRUCT({', '.join(f'{_quoted(name)} {kind}' for name, kind in fields.items())})"
            return element if inner_of(type) is None else f"{element}[]"
        inner = fields_of(type)
        if inner is None:
            return f"{typed(inner_of(type) or '', way[1:])}[]"
        return f"STRUCT({_quoted(way[0])} {typed(inner[way[0]], way[1:])})"

    first, *others = steps(rows)
    return {first: typed(top[first], others)}


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def settle(
    paths: list[Path],
    manner: Manner,
    wanted: Mapping[str, str | None],
    types: Mapping[str, str],
    file_column: str | None,
) -> Reading:
    """What is to be read. `wanted` are the columns the author names, in order; `types` those of some. Raises
    ComponentFailure."""
    given = {name: type for name, type in wanted.items() if type is not None} | dict(types)
    declared = frozenset(name for name, type in given.items() if type in WHOLE)
    if wanted and manner.rows is None and all(name in given for name in wanted):
        # All is said: the files need not be looked at.
        top = {name: given[name] for name in wanted}
        return Reading(tuple(paths), manner, top, _columns(top), file_column, declared=declared)
    top = _top(file_paths.stamps(paths), manner)
    present = _present(paths[0], manner, top)
    says_nothing = list(present.items()) in ([("json", "JSON")], [(ONLY, "JSON")])
    if not wanted and says_nothing and not _has_rows(Reading(tuple(paths), manner, top, _columns(present))):
        chosen = {**given, OPEN: NOTHING}
        return Reading(tuple(paths), manner, top, _columns(chosen), file_column, is_empty=True)
    untyped = [name for name in [*wanted, *types] if name not in given]
    problem = parameters.missing(untyped, list(present), f"`{paths[0]}`")
    if problem is not None and wanted and not _has_rows(Reading(tuple(paths), manner, top, _columns(present))):
        chosen = {name: given.get(name, NOTHING) for name in wanted}
        return Reading(tuple(paths), manner, top, _columns(chosen), file_column, is_empty=True)
    if problem is not None:
        raise ComponentFailure("columns", problem, path=str(paths[0]))
    chosen = {name: given.get(name) or present[name] for name in wanted or {**present, **types}}
    if manner.rows is None:
        top = chosen
    return Reading(tuple(paths), manner, top, _columns(chosen), file_column, declared=declared)


def _has_rows(reading: Reading) -> bool:
    try:
        return bool(scans.ask(reading.query().limit(1)))
    except ComponentFailure:
        return True  # something is there, though it is no row


def _columns(types: Mapping[str, str]) -> Schema:
    return tuple(Column(name, type) for name, type in types.items())


class NoSuchRows(ComponentFailure):
    """The path in `rows` leads nowhere."""


def _present(path: Path, manner: Manner, top: Mapping[str, str]) -> dict[str, str]:
    """The columns of the rows, by what the documents are."""
    if manner.rows is None:
        return dict(top)
    try:
        type = _element_type(manner.rows, top)
    except KeyError as error:
        raise NoSuchRows("columns", f"`{path}`: {error.args[0]}", path=str(path)) from None
    return fields_of(type) or {ONLY: type}


def steps(rows: str) -> list[str]:
    return [step for step in rows.removeprefix("$").strip(".").split(".") if step]


def fields_of(type: str) -> dict[str, str] | None:
    """The fields of a structure with their types, as DuckDB spells them; None when it is none."""
    if not (type.startswith("STRUCT(") and type.endswith(")")):
        return None
    fields: dict[str, str] = {}
    for part in _parts(type[len("STRUCT(") : -1]):
        name, _, kind = part.partition('" ') if part.startswith('"') else part.partition(" ")
        plain = name.removeprefix('"').replace('""', '"') if part.startswith('"') else name
        fields[plain] = _NOTHING.sub("VARCHAR", kind)
    return fields


def _parts(text: str) -> list[str]:
    """A text cut at its commas, but not at those within quotes or parentheses."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "([":
            depth += 1
        elif not quoted and mark in ")]":
            depth -= 1
        elif not quoted and not depth and mark == ",":
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def inner_of(type: str) -> str | None:
    """What a list is a list of; None when it is none."""
    return type.removesuffix("[]") if type.endswith("[]") else None


def _element_type(rows: str, top: Mapping[str, str]) -> str:
    """The type of one row. Raises KeyError with a sentence when the path leads nowhere."""
    known: Mapping[str, str] | None = top
    type = ""
    for step in steps(rows):
        if known is None and step.isdecimal() and inner_of(type) is not None:
            type = inner_of(type) or ""
        elif known is None or step not in known:
            there = ", ".join(f"`{name}`" for name in known) if known else f"a {type}"
            raise KeyError(f"there is no `{step}` of `rows: {rows}`{similar(step, known or ())}; there is {there}")
        else:
            type = known[step]
        known = fields_of(type)
    return inner_of(type) or type


def _elements(rows: str, top: Mapping[str, str]) -> exp.Expr:
    """The expression that gives the rows: the steps of the path, and a row for each element of the list they lead
    to."""
    first, *others = steps(rows)
    node: exp.Expr = select.column(first)
    type = top[first]
    for step in others:
        fields = fields_of(type)
        if fields is None:
            node = exp.Anonymous(this="list_extract", expressions=[node, select.literal(int(step) + 1)])
            type = inner_of(type) or type
        else:
            node = exp.Anonymous(this="struct_extract", expressions=[node, select.literal(step)])
            type = fields[step]
    return exp.Anonymous(this="unnest", expressions=[node]) if inner_of(type) is not None else node


def named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(node, select.name(name))


def rows_in(paths: Iterable[Path], manner: Manner) -> exp.Query:
    """(file, line, raw) of every row, as text that may or may not be JSON."""
    return all_of(*(_of_file(path, manner) for path in paths))


def is_object() -> exp.Expr:
    """Of a row of `rows_in`. DuckDB stops at text that is not JSON, so that is asked first."""
    kind = function("json_type", select.column("raw"))
    asked = exp.case().when(function("json_valid", select.column("raw")), kind).else_(exp.null())
    return asked.eq(select.literal("OBJECT"))


def _of_file(path: Path, manner: Manner) -> exp.Query:
    if manner.form == "newline_delimited":
        lines = text_lines(path, "raw")
    else:
        options = {"format": manner.form, "maximum_object_size": manner.max_object_bytes}
        documents = scan("read_json_objects", [path], options | {"columns": column_types({})})
        found: exp.Expr = select.column("json")
        if manner.rows is not None:
            way = "".join(f"[{step}]" if step.isdecimal() else f'."{step}"' for step in steps(manner.rows))
            there = function("json_extract", found, f"${way}")
            is_list = function("json_type", there).eq(select.literal("ARRAY"))
            several = function("json_extract", there.copy(), "$[*]")
            found = function("unnest", exp.case().when(is_list, several).else_(exp.Array(expressions=[there.copy()])))
        lines = exp.select(named(select.cast(found, "VARCHAR"), "raw")).from_(documents)
    numbered = exp.select(named(row_number(), "line"), select.column("raw")).from_(lines.subquery("lines"))
    wanted = [named(select.literal(str(path)), "file"), select.column("line"), select.column("raw")]
    filled = function("trim", function("coalesce", select.column("raw"), "")).neq(select.literal(""))
    return exp.select(*wanted).from_(numbered.subquery("numbered")).where(filled)
