"""`read_xml` and `write_xml`: elements of XML files as rows."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import msgspec

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas, Writer
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.csv_shape import distinct
from penstock.components.io.row_types import REJECTED, Notation, Wanted, deliver, loading_schema
from penstock.components.queries import everything
from penstock.data import select
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.parameters import about
from penstock.tools.sql.results import as_json_text, to_json

_CHUNK = 1 << 16
_MAX_DEPTH = 1_000


@dataclass(slots=True)
class Element:
    name: str
    attributes: dict[str, str]
    line: int = 0
    pieces: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()


def local(name: str) -> str:
    """The name without its namespace prefix."""
    return name.rpartition(":")[2]


def is_called(name: str, wanted: str) -> bool:
    return wanted in ("*", name, local(name))


@dataclass(frozen=True, slots=True)
class RowPath:
    """Which elements are rows: `/orders/order` from the root, or `order` wherever it stands."""

    steps: tuple[str, ...]
    from_root: bool

    @staticmethod
    def of(text: str) -> RowPath:
        steps = tuple(step for step in text.split("/") if step)
        if not steps or any(step.startswith("@") for step in steps):
            raise ComponentFailure("parameters", f"`{text}` does not name elements; hint: `/orders/order`, or `order`")
        return RowPath(steps, text.startswith("/") and not text.startswith("//"))

    def matches(self, names: Sequence[str]) -> bool:
        if len(names) < len(self.steps) or (self.from_root and len(names) != len(self.steps)):
            return False
        return all(is_called(name, step) for name, step in zip(reversed(names), reversed(self.steps), strict=False))


def values_at(element: Element, path: str) -> list[str]:
    """The texts that a path such as `customer/name`, `customer/@id` or `.` leads to."""
    found = [element]
    for step in path.split("/"):
        if step in ("", "."):
            continue
        if step.startswith("@"):
            return [value for each in found for name, value in each.attributes.items() if is_called(name, step[1:])]
        found = [child for each in found for child in each.children if is_called(child.name, step)]
    return [each.text for each in found]


class _Reader:
    """Follows the parser through the document and gathers the elements that are rows."""

    def __init__(self, path: RowPath, encoding: str | None) -> None:
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._entity
        self.rows: list[Element] = []
        self._path = path
        self._names: list[str] = []
        self._open: list[Element] = []

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._names.append(name)
        if len(self._names) > _MAX_DEPTH:
            raise ComponentFailure("refused", f"elements are nested more than {_MAX_DEPTH} deep")
        if self._open or self._path.matches(self._names):
            element = Element(name, attributes, self.parser.CurrentLineNumber)
            if self._open:
                self._open[-1].children.append(element)
            self._open.append(element)

    def _end(self, name: str) -> None:
        self._names.pop()
        if self._open:
            element = self._open.pop()
            if not self._open:
                self.rows.append(element)

    def _data(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)

    def _entity(self, *about: object) -> None:
        raise ComponentFailure(
            "refused", f"it declares the entity `{about[0]}`, and documents with entities are not read"
        )


def elements(path: Path, rows: RowPath, encoding: str | None = None) -> Iterator[Element]:
    """The row elements of a file. Raises ComponentFailure where the file is not XML, or not to be trusted."""
    with file_paths.open_bytes(path) as file:
        reader = _Reader(rows, encoding)
        yield from _parsed(path, file, reader)


def _parsed(path: Path, file: IO[bytes], reader: _Reader) -> Iterator[Element]:
    while True:
        chunk = file.read(_CHUNK)
        try:
            reader.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            where = f"`{path}`, line {error.lineno}, column {error.offset + 1}"
            raise ComponentFailure(
                "format",
                f"{where}: this is not XML: {expat.ErrorString(error.code)}",
                path=str(path),
                line=error.lineno,
            ) from None
        except (LookupError, ValueError) as error:
            raise ComponentFailure("encoding", f"`{path}` cannot be decoded: {error}", path=str(path)) from None
        except ComponentFailure as failure:
            line = reader.parser.CurrentLineNumber
            raise ComponentFailure(
                failure.kind, f"`{path}`, line {line}: {failure.message}", path=str(path), line=line
            ) from None
        yield from reader.rows
        reader.rows.clear()
        if not chunk:
            return


_BATCH = 2_000


class XmlColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: where its value is within the row's element, and what it is."""

    path: Annotated[str, about("Such as `customer/name`, `@id`, `price/@currency` or `.`.", min_length=1)]
    type: Annotated[str | None, about("Its type; inferred from all values when left out.")] = None
    format: Annotated[str | None, about("How its dates or timestamps are written, such as `%d.%m.%Y`.")] = None
    many: Annotated[bool, about("Take all values that the path leads to, as a list of texts.")] = False


class ReadXmlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    rows: Annotated[
        str,
        about("The elements that are rows: `/orders/order` from the root, or `order` wherever it is.", min_length=1),
    ]
    columns: Annotated[
        dict[str, str | XmlColumn],
        about(
            "Column to its path within the row (`customer/name`, `@id`, `.`), or `{path, type, format, many}`. "
            "When left out, the attributes and child elements of the rows."
        ),
    ] = {}
    types: parameters.Types = {}
    encoding: Annotated[str | None, about("When the file itself says it wrongly.")] = None
    decimal: parameters.Decimal = "."
    thousands: parameters.Thousands = None
    on_error: parameters.OnError = "fail"
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadXml(Action[ReadXmlParams]):
    """Read rows from XML: the elements at `rows`, with their attributes and children as columns.

    `columns` says for each column where its value is: `name` and `customer/name` for the text of a child, `@id` for
    an attribute, `.` for the row's own text. A path that leads to several values gives the first, or with `many:
    true` a list. What is not there, or empty, is NULL. Prefixes of namespaces may be left out. Types are inferred
    from all values when they are not given.

    A file is read piece by piece, so it may be larger than memory. Documents that declare entities are refused.

    Rows with a value that is not of its column's type go to the port `reject` with `error_code`, `error_message`,
    `file`, `line`, `column` and `raw_line`, its values as JSON. When that port is not connected they end the
    component in ERROR, unless `on_error: skip`. After-variables: `NB_LINE_REJECTED`.
    """

    type = "read_xml"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="rows with values of the wrong type, with what is wrong"),
    )

    def check(self, params: ReadXmlParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        typed = {name: column.type for name, column in _columns(params).items() if column.type is not None}
        found = [
            Mistake(("columns", str(mistake.path[1]), "type"), mistake.message, kind="type")
            for mistake in parameters.type_mistakes([], typed)
        ]
        found += parameters.type_mistakes([], params.types)
        try:
            RowPath.of(params.rows)
        except ComponentFailure as failure:
            found.append(Mistake(("rows",), failure.message))
        return found

    def schemas(self, params: ReadXmlParams, inputs: Known, call: PlanCall) -> Schemas:
        given = {name: _type(name, column, params) for name, column in _columns(params).items()}
        known = tuple(Column(name, type) for name, type in given.items() if type is not None)
        is_known = bool(given) and len(known) == len(given)
        return {"main": known if is_known else call.declared.get("main"), "reject": REJECTED}

    def run(self, params: ReadXmlParams, call: Call) -> None:
        found = file_paths.all_files(params.path, call, params.credentials)
        given = _columns(params)
        declared = {column.name: column.type for column in call.declared.get("main", ())}
        if not given:
            given = {name: XmlColumn(path=name) for name in declared}
        given = given or _present(found, params)
        if not given:
            call.say(f"`{found[0]}` has no elements `{params.rows}` with anything in them")
            call.put("main", call.engine.empty(UNKNOWN_COLUMNS))
            return
        problem = parameters.missing(list(params.types), list(given), f"`{found[0]}`")
        if problem is not None:
            raise ComponentFailure("columns", problem, path=str(found[0]))
        sources = [f"t{index}" for index in range(len(given))]
        schema = [*loading_schema([])]
        schema += [
            Column(source, "VARCHAR[]" if column.many else "VARCHAR")
            for source, column in zip(sources, given.values(), strict=True)
        ]
        loaded = call.engine.load(
            tuple(schema), _batches({path: file_paths.shown(path, call) for path in found}, params, given)
        )
        wanted = [
            Wanted(
                name,
                source,
                _type(name, column, params) or declared.get(name) or ("VARCHAR[]" if column.many else None),
                Notation(params.decimal, params.thousands, column.format, column.format),
            )
            for source, (name, column) in zip(sources, given.items(), strict=True)
        ]
        deliver(loaded, wanted, call, params.on_error)


def _columns(params: ReadXmlParams) -> dict[str, XmlColumn]:
    return {name: XmlColumn(path=each) if isinstance(each, str) else each for name, each in params.columns.items()}


def _type(name: str, column: XmlColumn, params: ReadXmlParams) -> str | None:
    type = column.type or params.types.get(name)
    return parameters.sql_type(type) if type is not None else None


def _present(found: list[Path], params: ReadXmlParams) -> dict[str, XmlColumn]:
    """A column for each attribute and child that the rows have, in the order of first sight. Reads the files once
    more."""
    paths: dict[str, None] = {}
    for path in found:
        for element in elements(path, RowPath.of(params.rows), params.encoding):
            paths.update({f"@{local(name)}": None for name in element.attributes if not name.startswith("xmlns")})
            paths.update({local(child.name): None for child in element.children})
            if element.text and not element.children:
                paths["."] = None
    names = distinct(["text" if path == "." else path.removeprefix("@") for path in paths])
    return {name: XmlColumn(path=path) for name, path in zip(names, paths, strict=True)}


def _batches(
    found: Mapping[Path, str], params: ReadXmlParams, given: Mapping[str, XmlColumn]
) -> Iterator[list[tuple[Any, ...]]]:
    rows = (
        _row(name, element, given)
        for path, name in found.items()
        for element in elements(path, RowPath.of(params.rows), params.encoding)
    )
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _row(name: str, element: Element, given: Mapping[str, XmlColumn]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for column in given.values():
        values = [value for value in values_at(element, column.path) if value]
        cells.append((values or None) if column.many else next(iter(values), None))
    raw = json.dumps(dict(zip(given, cells, strict=True)), ensure_ascii=False)
    return (name, element.line, raw, None, *cells)


_NAME = re.compile(r"[^\W\d][\w.-]*(:[^\W\d][\w.-]*)?")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class WriteXmlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    root: Annotated[str, about("Name of the element around all rows.", min_length=1)] = "rows"
    row: Annotated[str, about("Name of the element of each row.", min_length=1)] = "row"
    columns: Annotated[
        dict[str, str],
        about(
            "Column to the place of its value: `name`, `customer/name`, `@id`, `price/@currency` or `.`. "
            "When left out, each column is a child of its own name."
        ),
    ] = {}
    namespace: Annotated[str | None, about("The namespace of all elements.")] = None
    encoding: parameters.Encoding = "utf-8"
    credentials: parameters.Credentials = None


@dataclass(slots=True)
class Shape:
    """An element of a row: which columns are its attributes, its text, and its children."""

    name: str
    attributes: dict[str, int] = field(default_factory=dict)
    text: int | None = None
    children: dict[str, Shape] = field(default_factory=dict)

    def put(self, path: str, index: int) -> None:
        here = self
        for step in (step for step in path.split("/") if step not in ("", ".")):
            if step.startswith("@"):
                here.attributes[_checked(step[1:])] = index
                return
            here = here.children.setdefault(step, Shape(_checked(step)))
        here.text = index

    def written(self, cells: Sequence[str | None]) -> str:
        """The element, or nothing when there is nothing in it."""
        attributes = "".join(
            f" {name}={quoteattr(cells[index] or '')}"
            for name, index in self.attributes.items()
            if cells[index] is not None
        )
        text = cells[self.text] if self.text is not None else None
        inner = escape(text or "") + "".join(child.written(cells) for child in self.children.values())
        if not attributes and not inner and text is None:
            return ""
        return f"<{self.name}{attributes}>{inner}</{self.name}>" if inner else f"<{self.name}{attributes}/>"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ComponentFailure(
            "parameters", f"`{name}` cannot be the name of an XML element; hint: give it another place in `columns`"
        )
    return name


class WriteXml(Writer[WriteXmlParams]):
    """Write rows as XML: an element for each row, with the columns as children, attributes or text.

    `columns` says where each value goes: `@id` is an attribute of the row, `customer/name` a child of a child, `.`
    the row's own text. NULL is left out. Characters that the `encoding` does not have are written as references. The
    file replaces an older one when it is complete. The rows go on through `main` when it is connected.
    """

    type = "write_xml"

    def check(self, params: WriteXmlParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if wrong := parameters.encoding_mistakes(params.encoding):
            return wrong
        for where, name in (("root", params.root), ("row", params.row)):
            if not _NAME.fullmatch(name):
                return [Mistake((where,), f"`{name}` cannot be the name of an XML element")]
        schema = inputs.get("input")
        try:
            if schema is not None:
                _shape(params, schema)
        except ComponentFailure as failure:
            return [Mistake(("columns",), failure.message, kind="column" if failure.kind == "columns" else "value")]
        return []

    def run(self, params: WriteXmlParams, call: Call) -> None:
        rows = call.input()
        encoder = codecs.getincrementalencoder(file_paths.codec(params.encoding))("xmlcharrefreplace")
        path = file_paths.target(params.path, call, params.credentials)
        with file_paths.whole_file(path) as target, file_paths.packed_into(target, path) as file:
            for text in _texts(rows, params, call):
                file.write(encoder.encode(text))
        call.put("main", rows)


def _shape(params: WriteXmlParams, schema: Schema) -> Shape:
    parameters.require(list(params.columns), schema)
    names = [column.name for column in schema]
    shape = Shape(_checked(params.row))
    for name, path in (params.columns or {name: name for name in names}).items():
        shape.put(path, names.index(name))
    return shape


def _texts(rows: Relation, params: WriteXmlParams, call: Call) -> Iterator[str]:
    shape = _shape(params, rows.schema)
    space = f" xmlns={quoteattr(params.namespace)}" if params.namespace is not None else ""
    # Every XML parser takes UTF-16 for what it is by its byte order mark, and wants to hear just that.
    yield f'<?xml version="1.0" encoding="{params.encoding}"?>\n<{_checked(params.root)}{space}>\n'
    number = 0
    for batch in call.engine.rows(select.sql(everything("input")), {"input": rows}):
        lines: list[str] = []
        for row in batch:
            number += 1
            cells = [_text(value) for value in row]
            if any(cell is not None and _FORBIDDEN.search(cell) for cell in cells):
                raise ComponentFailure(
                    "bad_value", f"row {number} has a control character, which XML cannot hold", row=number
                )
            lines.append(f"  {shape.written(cells) or f'<{params.row}/>'}\n")
        yield "".join(lines)
    yield f"</{params.root}>\n"


def _text(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return as_json_text(value)
        case int() | float():
            return str(value)
        case _:
            plain = to_json(value)
            return plain if isinstance(plain, str) else str(value)
