"""`read_xml`: elements of XML files as rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.incremental import IncrementalParam
from penstock.components.io import columns, file_paths, words
from penstock.components.io.csv_shape import distinct
from penstock.components.io.rejects import REJECTED
from penstock.components.io.text_types import Notation
from penstock.components.io.xml_rows import Element, RowPath, elements, local, values_at
from penstock.data.untyped import UNKNOWN_COLUMNS
from penstock.ports.rows import Column, Schema

_BATCH = 2_000


class XmlColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One column: where its value is within the row's element, and what it is."""

    path: Annotated[str, Meta(min_length=1, description="Such as `customer/name`, `@id`, `price/@currency` or `.`.")]
    type: Annotated[str | None, Meta(description="Its type; inferred from all values when left out.")] = None
    format: Annotated[str | None, Meta(description="How its dates or timestamps are written, such as `%d.%m.%Y`.")] = (
        None
    )
    many: Annotated[bool, Meta(description="Take all values that the path leads to, as a list of texts.")] = False


class ReadXmlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.SourcePath
    rows: Annotated[
        str,
        Meta(
            min_length=1,
            description="The elements that are rows: `/orders/order` from the root, or `order` wherever it is.",
        ),
    ]
    columns: Annotated[
        dict[str, str | XmlColumn],
        Meta(
            description="Column to its path within the row (`customer/name`, `@id`, `.`), or `{path, type, format, many}`. "
            "When left out, the attributes and child elements of the rows."
        ),
    ] = {}
    types: words.Types = {}
    encoding: Annotated[str | None, Meta(description="When the file itself says it wrongly.")] = None
    decimal: words.Decimal = "."
    thousands: words.Thousands = None
    on_error: words.OnError = "fail"
    incremental: IncrementalParam = None


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
    Params = ReadXmlParams
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="rows with values of the wrong type, with what is wrong"),
    )
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: read_orders}
components:
  - name: orders
    type: fixed_rows
    params: {columns: [id, customer, total], rows: [[1, Ada, 12.5], [2, Bob, 3.25]]}
  - name: write
    type: write_xml
    params:
      path: orders.xml
      root: orders
      row: order
      columns: {id: "@id", customer: customer/name, total: total}
  - name: read
    type: read_xml
    params:
      path: orders.xml
      rows: /orders/order
      columns:
        id: "@id"
        customer: customer/name
        total: {path: total, type: "decimal(10,2)"}
  - name: show
    type: log_rows
connections:
  data: |
    orders.main -> write.input
    read.main -> show.input
  control: |
    write (subjob_ok) read
"""

    def check(self, params: ReadXmlParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        typed = {name: column.type for name, column in _columns(params).items() if column.type is not None}
        found = [
            Mistake(("columns", str(mistake.path[1]), "type"), mistake.message, kind="type")
            for mistake in columns.type_mistakes([], typed)
        ]
        found += columns.type_mistakes([], params.types)
        try:
            RowPath.of(params.rows)
        except ComponentFailure as failure:
            found.append(Mistake(("rows",), failure.message))
        return found

    def schemas(
        self, params: ReadXmlParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        given = {name: _type(name, column, params) for name, column in _columns(params).items()}
        known = tuple(Column(name, type) for name, type in given.items() if type is not None)
        is_known = bool(given) and len(known) == len(given)
        return {"main": known if is_known else call.declared.get("main"), "reject": REJECTED}

    def run(self, params: ReadXmlParams, call: Call) -> None:
        from penstock.components.io.row_types import Wanted, deliver, loading_schema

        found = file_paths.all_files(params.path, call)
        given = _columns(params)
        declared = {column.name: column.type for column in call.declared.get("main", ())}
        if not given:
            given = {name: XmlColumn(path=name) for name in declared}
        given = given or _present(found, params)
        if not given:
            call.say(f"`{found[0]}` has no elements `{params.rows}` with anything in them")
            call.put("main", call.engine.empty(UNKNOWN_COLUMNS))
            return
        problem = columns.missing(list(params.types), list(given), f"`{found[0]}`")
        if problem is not None:
            raise ComponentFailure("columns", problem, path=str(found[0]))
        sources = [f"t{index}" for index in range(len(given))]
        schema = [*loading_schema([])]
        schema += [
            Column(source, "VARCHAR[]" if column.many else "VARCHAR")
            for source, column in zip(sources, given.values(), strict=True)
        ]
        loaded = call.engine.load(tuple(schema), _batches(found, params, given))
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
    return columns.sql_type(type) if type is not None else None


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
    found: list[Path], params: ReadXmlParams, given: Mapping[str, XmlColumn]
) -> Iterator[list[tuple[Any, ...]]]:
    rows = (
        _row(path, element, given)
        for path in found
        for element in elements(path, RowPath.of(params.rows), params.encoding)
    )
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _row(path: Path, element: Element, given: Mapping[str, XmlColumn]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for column in given.values():
        values = [value for value in values_at(element, column.path) if value]
        cells.append((values or None) if column.many else next(iter(values), None))
    raw = json.dumps(dict(zip(given, cells, strict=True)), ensure_ascii=False)
    return (str(path), element.line, raw, None, *cells)
