"""`penstock components [NAME]`: what a component can be, and what each type takes."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import BOLD, painted, put, put_json, safe
from penstock.cli.params import example_page, params_json, params_page, title
from penstock.kernel.errors import Refused
from penstock.ports.components import ComponentDescription, Port

if TYPE_CHECKING:
    from penstock.components.registry import ComponentRegistry

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


def main(options: Namespace) -> int:
    from penstock.components.registry import ComponentRegistry

    registry = ComponentRegistry().at(Path.cwd())
    if options.type is None:
        return _all(registry, as_json=options.json)
    described = registry.page(options.type)
    if described is None:
        registry.get(options.type)  # Raises with what was probably meant.
        raise CommandLineError(f"there is no component of type `{options.type}`")
    if options.json:
        put_json(
            {**_as_json(described), "doc": described.doc, "schema": described.schema, "example": described.example}
        )
    else:
        put(_page(described))
    return 0


def _all(registry: ComponentRegistry, *, as_json: bool) -> int:
    found: list[tuple[str, ComponentDescription | None, str]] = []
    for name in registry.types():
        try:
            found.append((name, registry.describe(name), ""))
        except Refused as error:  # A broken plug-in hides neither itself nor the others.
            found.append((name, None, error.message))
    if as_json:
        every = [_as_json(one) if one is not None else {"type": name, "error": why} for name, one, why in found]
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


def _as_json(component: ComponentDescription) -> dict[str, Any]:
    return {
        "type": component.type,
        "family": component.family,
        "summary": component.summary,
        "inputs": [_port_json(port) for port in component.ports.inputs],
        "outputs": [_port_json(port) for port in component.ports.outputs],
        "params": params_json(component.params),
        "startable": component.startable,
        "iterator": component.is_iterator,
        "relational": component.is_relational,
    }


def _port_json(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "required": port.required,
        "many": port.many,
        "reject": port.reject,
        "description": port.description,
    }


def _page(component: ComponentDescription) -> str:
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
    said = f"  ({', '.join(words)})" if words else ""
    about = f"  {safe(port.description)}" if port.description else ""
    return f"  {way:<3}  {port.name}{said}{about}"
