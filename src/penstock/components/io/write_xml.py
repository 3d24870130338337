"""`write_xml`: rows as elements of an XML file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.io import columns, file_paths, placing, words
from penstock.ports.rows import Relation, Schema
from penstock.tools.sql.values import as_json_text, to_json

_NAME = re.compile(r"[^\W\d][\w.-]*(:[^\W\d][\w.-]*)?")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class WriteXmlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.TargetPath
    root: Annotated[str, Meta(min_length=1, description="Name of the element around all rows.")] = "rows"
    row: Annotated[str, Meta(min_length=1, description="Name of the element of each row.")] = "row"
    columns: Annotated[
        dict[str, str],
        Meta(
            description="Column to the place of its value: `name`, `customer/name`, `@id`, `price/@currency` or `.`. "
            "When left out, each column is a child of its own name."
        ),
    ] = {}
    namespace: Annotated[str | None, Meta(description="The namespace of all elements.")] = None
    encoding: words.Encoding = "utf-8"


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


class WriteXml(Action[WriteXmlParams]):
    """Write rows as XML: an element for each row, with the columns as children, attributes or text.

    `columns` says where each value goes: `@id` is an attribute of the row, `customer/name` a child of a child, `.`
    the row's own text. NULL is left out. Characters that the `encoding` does not have are written as references. The
    file replaces an older one when it is complete. The rows go on through `main` when it is connected.
    """

    type = "write_xml"
    family = "write"
    Params = WriteXmlParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the same rows, written"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: write_orders}
components:
  - name: orders
    type: fixed_rows
    params: {columns: [id, customer, total], rows: [[1, Ada, 12.5], [2, "Bob & Co", 3.25]]}
  - name: write
    type: write_xml
    params:
      path: orders.xml
      root: orders
      row: order
      columns: {id: "@id", customer: customer/name, total: total}
connections:
  data: orders.main -> write.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def check(self, params: WriteXmlParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        for where, name in (("root", params.root), ("row", params.row)):
            if not _NAME.fullmatch(name):
                return [Mistake((where,), f"`{name}` cannot be the name of an XML element")]
        schema = inputs.get("input")
        try:
            file_paths.codec(params.encoding)
            if schema is not None:
                _shape(params, schema)
        except ComponentFailure as failure:
            where = "encoding" if "encoding" in failure.message else "columns"
            return [Mistake((where,), failure.message, kind="column" if failure.kind == "columns" else "value")]
        return []

    def schemas(
        self, params: WriteXmlParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        return {"main": inputs.get("input")}

    def run(self, params: WriteXmlParams, call: Call) -> None:
        rows = call.input()
        encoder = codecs.getincrementalencoder(file_paths.codec(params.encoding))("xmlcharrefreplace")
        with placing.whole_file(file_paths.resolved(params.path, call)) as file:
            for text in _texts(rows, params, call):
                file.write(encoder.encode(text))
        call.put("main", rows)


def _shape(params: WriteXmlParams, schema: Schema) -> Shape:
    names = [column.name for column in schema]
    problem = columns.missing(list(params.columns), names, "the input")
    if problem is not None:
        raise ComponentFailure("columns", problem)
    shape = Shape(_checked(params.row))
    for name, path in (params.columns or {name: name for name in names}).items():
        shape.put(path, names.index(name))
    return shape


def _texts(rows: Relation, params: WriteXmlParams, call: Call) -> Iterator[str]:
    from penstock.components.queries import everything
    from penstock.data import select

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
            told = to_json(value)
            return told if isinstance(told, str) else str(value)
