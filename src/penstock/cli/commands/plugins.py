"""`penstock tools`, `components` and `schema`: what documents are made of, and the parameters of each, from their JSON Schema."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import BOLD, painted, put, put_json, safe, table
from penstock.kernel.values import JsonMap
from penstock.ports.components import ComponentDescription, Port
from penstock.ports.plugins import ParamInfo, ToolDescription
from penstock.ports.results import encode
from penstock.server.reference import (
    WORKBOOK,
    Reference,
    all_tools,
    component_json,
    described,
    kind_words,
    tool_json,
)
from penstock.tools.plugins import shipped_example
from penstock.tools.registry import Registry, example_of

if TYPE_CHECKING:
    from penstock.components.registry import ComponentRegistry


D = TypeVar("D")
FAMILIES = {
    "read": "read rows",
    "write": "write rows",
    "transform": "transform rows",
    "quality": "check rows",
    "code": "your own code",
    "iterate": "run a part of the job many times",
    "orchestrate": "run and steer",
    "file": "files",
}


def components(options: Namespace) -> int:
    from penstock.components.registry import ComponentRegistry  # Only jobs need components and DuckDB.

    registry = ComponentRegistry().at(Path.cwd())
    if options.type is None:
        return _all_components(registry, as_json=options.json)
    found = registry.page(options.type)
    if found is None:
        registry.get(options.type)  # Raises with what was probably meant.
        raise CommandLineError(f"there is no component of type `{options.type}`")
    if options.json:
        put_json(
            {
                **component_json(found),
                "doc": found.doc,
                "schema": found.schema,
                "example": found.example,
            }
        )
    else:
        put(_component_page(found))
    return 0


def _all_components(registry: ComponentRegistry, *, as_json: bool) -> int:
    found = described(registry.types(), registry.describe)
    if as_json:
        every = [component_json(one) if one is not None else {"type": name, "error": why} for name, one, why in found]
        put_json({"components": every})
    else:
        put(_list(found))
    return 0


def _list(found: list[tuple[str, ComponentDescription | None, str]]) -> str:
    width = max(len(name) for name, *_ in found)
    families: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name, one, why in found:
        family = one.family if one is not None else "broken"
        about = one.summary if one is not None else f"broken: {why}"
        families.setdefault(family, []).append(f"  {name:<{width}}  {safe(about)}".rstrip())
    blocks = [
        "\n".join([painted(FAMILIES.get(family, family), BOLD, sys.stdout), *lines])
        for family, lines in families.items()
        if lines
    ]
    return "\n\n".join(blocks)


def _component_page(component: ComponentDescription) -> str:
    lines = [title(component.type), "", safe(component.doc or component.summary)]
    ports = [*(("in", port) for port in component.ports.inputs), *(("out", port) for port in component.ports.outputs)]
    lines += ["", title("ports"), *(_port(*one) for one in ports)] if ports else []
    lines += ["", *params_page(component.params, component.schema)]
    return "\n".join([*lines, *example_page(component.example)])


def _port(way: str, port: Port) -> str:
    words = []
    if port.is_wild:
        words.append("any number")
    if way == "in":
        words.append("required" if port.required else "optional")
        if port.many:
            words.append("several links")
    elif port.reject:
        words.append("may be left unread")
    remark = f"  ({', '.join(words)})" if words else ""
    about = f"  {safe(port.description)}" if port.description else ""
    return f"  {way:<3}  {port.name}{remark}{about}"


def tools(options: Namespace) -> int:
    registry = Registry().at(Path.cwd())
    if options.kind is None:
        return _all_tools(registry, as_json=options.json)
    if options.kind == WORKBOOK.kind:
        return _one_tool(WORKBOOK, WORKBOOK.summary, shipped_example(WORKBOOK.kind), as_json=options.json)
    found = registry.describe(options.kind)
    if found is None:
        registry.get(options.kind)  # Raises with what was probably meant.
        raise CommandLineError(f"there is no tool of kind `{options.kind}`")
    tool = registry.get(options.kind)
    return _one_tool(found, type(tool).__doc__ or "", example_of(type(tool)), as_json=options.json)


def _one_tool(described: ToolDescription, text: str, example: str, *, as_json: bool) -> int:
    if as_json:
        put_json({**tool_json(described), "schema": described.schema, "example": example})
    else:
        put(_tool_page(described, text, example))
    return 0


def _all_tools(registry: Registry, *, as_json: bool) -> int:
    found = all_tools(registry)
    if as_json:
        put_json(
            {"tools": [tool_json(one) if one is not None else {"kind": kind, "error": why} for kind, one, why in found]}
        )
    else:
        put(
            table(
                ("KIND", "WHAT IT DOES"),
                ((kind, one.summary if one is not None else f"broken: {why}") for kind, one, why in found),
            )
        )
    return 0


def _tool_page(tool: ToolDescription, text: str, example: str) -> str:
    lines = [title(tool.kind), "", safe(cleandoc(text)), "", *params_page(tool.params, tool.schema)]
    return "\n".join([*lines, *example_page(example)])


def params_page(params: dict[str, ParamInfo], schema: JsonMap) -> list[str]:
    """One line for each parameter, the required ones first, and the structures that they are made of."""
    properties: dict[str, Any] = schema.get("properties") or {}  # type: ignore[assignment]
    rows = [
        (one.name, kind_words(properties.get(one.name, {"type": list(one.types)})), one.required, one.description)
        for one in sorted(params.values(), key=lambda one: not one.required)
    ]
    lines = [title("parameters"), *(listed(rows) or ["  none"])]
    for name, part in parts(schema):
        required = part.get("required", [])
        fields = [
            (field, kind_words(one), field in required, one.get("description", ""))
            for field, one in part.get("properties", {}).items()
        ]
        about = f": {safe(part['description'])}" if part.get("description") else ""
        lines += ["", f"{title(name)}{about}", *listed(fields)]
    return lines


def example_page(example: str) -> list[str]:
    if not example:
        return []
    return ["", title("example"), *(f"  {line}".rstrip() for line in dedent(example).strip().splitlines())]


def title(text: str) -> str:
    return painted(text, BOLD, sys.stdout)


def listed(rows: list[tuple[str, str, bool, str]]) -> list[str]:
    width = max((len(name) for name, *_ in rows), default=0)
    return [
        f"  {name:<{width}}  ({kind}{', required' if required else ''})  {safe(about)}".rstrip()
        for name, kind, required, about in rows
    ]


def parts(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The structures that parameters are made of, each once, in the order in which a reader meets them."""
    definitions = schema.get("$defs", {})
    waiting, seen = [schema.get("properties", {})], set()
    while waiting:
        for name in _named(waiting.pop(0)):
            if name not in seen and name in definitions:
                seen.add(name)
                waiting.append(definitions[name])
                yield name, definitions[name]


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for inner in schema.values():
            yield from _named(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _named(inner)


def schema(options: Namespace) -> int:
    put(msgspec.json.format(encode(Reference(Path.cwd()).schema(options.kind)), indent=2).decode())
    return 0
