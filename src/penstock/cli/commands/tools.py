"""`penstock tools [KIND]`: what a task can be, and what each kind takes."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import BOLD, painted, put, put_json, safe, table
from penstock.kernel.errors import Refused

if TYPE_CHECKING:
    from penstock.ports.plugins import ToolDescription


def main(options: Namespace) -> int:
    from penstock.tools.registry import Registry

    registry = Registry()
    if options.kind is None:
        return _all(registry, as_json=options.json)
    described = registry.describe(options.kind)
    if described is None:
        registry.get(options.kind)  # Raises with what was probably meant.
        raise CommandLineError(f"there is no tool of kind `{options.kind}`")
    tool = registry.get(options.kind)
    if options.json:
        put_json({**_as_json(described), "schema": described.schema, "example": tool.example})
    else:
        put(_page(described, type(tool).__doc__ or "", tool.example))
    return 0


def _all(registry: Any, *, as_json: bool) -> int:
    found: list[tuple[str, ToolDescription | None, str]] = []
    for kind in registry.kinds():
        try:
            found.append((kind, registry.describe(kind), ""))
        except Refused as error:  # A broken plug-in hides neither itself nor the others.
            found.append((kind, None, error.message))
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

    lines = [
        painted(tool.kind, BOLD, sys.stdout),
        "",
        safe(cleandoc(text)),
        "",
        painted("parameters", BOLD, sys.stdout),
    ]
    width = max((len(name) for name in tool.params), default=0)
    for param in sorted(tool.params.values(), key=lambda one: not one.required):
        kind = " | ".join(map(str, param.enum)) if param.enum else " | ".join(param.types)
        needed = ", required" if param.required else ""
        lines.append(f"  {param.name:<{width}}  ({kind}{needed})  {safe(param.description)}".rstrip())
    if not tool.params:
        lines.append("  none")
    if example:
        lines += [
            "",
            painted("example", BOLD, sys.stdout),
            *(f"  {line}".rstrip() for line in cleandoc(example).splitlines()),
        ]
    return "\n".join(lines)
