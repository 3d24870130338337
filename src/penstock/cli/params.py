"""Parameters on a page: what they are called, what they may be, what they mean. From their JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from penstock.cli.output import BOLD, painted, safe
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ParamInfo


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


def params_json(params: dict[str, ParamInfo]) -> list[dict[str, Any]]:
    return [
        {
            "name": param.name,
            "types": list(param.types),
            "required": param.required,
            "enum": list(param.enum) if param.enum is not None else None,
            "description": param.description,
        }
        for param in params.values()
    ]


def example_page(example: str) -> list[str]:
    from textwrap import dedent

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


def kind_words(schema: dict[str, Any]) -> str:
    """What a value may be. Null is left out: it says what a missing value says."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"] if one is not None)
    if "const" in schema:
        return str(schema["const"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(kind_words(one) for one in schema[word] if one.get("type") != "null"))
    kinds = schema.get("type", "any")
    if kinds == "array" and schema.get("items"):
        return f"list of {kind_words(schema['items'])}"
    return " | ".join(one for one in kinds if one != "null") if isinstance(kinds, list) else str(kinds)


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
