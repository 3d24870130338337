"""`penstock tools [KIND]`: what a task can be, and what each kind takes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import BOLD, painted, put, put_json, safe, table
from penstock.kernel.errors import Refused
from penstock.ports.plugins import ParamInfo, ToolDescription

if TYPE_CHECKING:
    from penstock.tools.registry import Registry

# No plug-in stands behind this kind: the call is replaced by the task it names when the document is compiled.
WORKBOOK = ToolDescription(
    "workbook",
    "Call a task of the workbook by its name.",
    {
        "task": ParamInfo("task", types=("string",), description="The task of `workbook`; else the call's own `name`."),
        "args": ParamInfo("args", types=("object",), description="Laid over the `args` that the workbook gives it."),
    },
)
WORKBOOK_EXAMPLE = """\
workbook:
  - name: greet
    kind: python
    args: { greeting: hello }
    code: result = f"{greeting}, {who}"
workflow:
  - step: start
    tool:
      - name: first
        kind: workbook
        task: greet
        args: { who: world }
"""


def main(options: Namespace) -> int:
    from penstock.tools.registry import Registry

    registry = Registry()
    if options.kind is None:
        return _all(registry, as_json=options.json)
    if options.kind == WORKBOOK.kind:
        return _one(WORKBOOK, WORKBOOK.summary, WORKBOOK_EXAMPLE, as_json=options.json)
    described = registry.describe(options.kind)
    if described is None:
        registry.get(options.kind)  # Raises with what was probably meant.
        raise CommandLineError(f"there is no tool of kind `{options.kind}`")
    tool = registry.get(options.kind)
    return _one(described, type(tool).__doc__ or "", tool.example, as_json=options.json)


def _one(described: ToolDescription, text: str, example: str, *, as_json: bool) -> int:
    if as_json:
        put_json({**_as_json(described), "schema": described.schema, "example": example})
    else:
        put(_page(described, text, example))
    return 0


def _all(registry: Registry, *, as_json: bool) -> int:
    found: list[tuple[str, ToolDescription | None, str]] = []
    for kind in registry.kinds():
        try:
            found.append((kind, registry.describe(kind), ""))
        except Refused as error:  # A broken plug-in hides neither itself nor the others.
            found.append((kind, None, error.message))
    found.append((WORKBOOK.kind, WORKBOOK, ""))
    if as_json:
        put_json(
            {"tools": [_as_json(one) if one is not None else {"kind": kind, "error": why} for kind, one, why in found]}
        )
    else:
        put(
            table(
                ("KIND", "WHAT IT DOES"),
                ((kind, one.summary if one is not None else f"broken: {why}") for kind, one, why in found),
            )
        )
    return 0


def _as_json(tool: ToolDescription) -> dict[str, Any]:
    return {
        "kind": tool.kind,
        "summary": tool.summary,
        "params": [
            {
                "name": param.name,
                "types": list(param.types),
                "required": param.required,
                "enum": list(param.enum) if param.enum is not None else None,
                "description": param.description,
            }
            for param in tool.params.values()
        ],
    }


def _page(tool: ToolDescription, text: str, example: str) -> str:
    from inspect import cleandoc
    from textwrap import dedent

    properties: dict[str, Any] = tool.schema.get("properties") or {}  # type: ignore[assignment]
    rows = [
        (one.name, _kind(properties.get(one.name, {"type": list(one.types)})), one.required, one.description)
        for one in sorted(tool.params.values(), key=lambda one: not one.required)
    ]
    lines = [_title(tool.kind), "", safe(cleandoc(text)), "", _title("parameters"), *(_listed(rows) or ["  none"])]
    for name, part in _parts(tool.schema):
        required = part.get("required", [])
        fields = [
            (field, _kind(one), field in required, one.get("description", ""))
            for field, one in part.get("properties", {}).items()
        ]
        about = f": {safe(part['description'])}" if part.get("description") else ""
        lines += ["", f"{_title(name)}{about}", *_listed(fields)]
    if example:
        lines += ["", _title("example"), *(f"  {line}".rstrip() for line in dedent(example).strip().splitlines())]
    return "\n".join(lines)


def _title(text: str) -> str:
    return painted(text, BOLD, sys.stdout)


def _listed(rows: list[tuple[str, str, bool, str]]) -> list[str]:
    width = max((len(name) for name, *_ in rows), default=0)
    return [
        f"  {name:<{width}}  ({kind}{', required' if required else ''})  {safe(about)}".rstrip()
        for name, kind, required, about in rows
    ]


def _kind(schema: dict[str, Any]) -> str:
    """What a value may be. Null is left out: it says what a missing value says."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"] if one is not None)
    if "const" in schema:
        return str(schema["const"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(_kind(one) for one in schema[word] if one.get("type") != "null"))
    kinds = schema.get("type", "any")
    if kinds == "array" and schema.get("items"):
        return f"list of {_kind(schema['items'])}"
    return " | ".join(one for one in kinds if one != "null") if isinstance(kinds, list) else str(kinds)


def _parts(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
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
