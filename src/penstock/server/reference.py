"""What documents are made of, as `penstock tools --json`, `components --json` and `schema` print it and the web page shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import ComponentDescription, Port
from penstock.ports.plugins import ParamInfo, ToolDescription
from penstock.tools.plugins import shipped_example
from penstock.tools.registry import Registry, example_of

if TYPE_CHECKING:
    from penstock.components.registry import ComponentRegistry

D = TypeVar("D")

# This kind has no plug-in: the compiler replaces the call by the task that it names.
WORKBOOK = ToolDescription(
    "workbook",
    "Call a task of the workbook by its name.",
    {
        "task": ParamInfo("task", types=("string",), description="The task of `workbook`; else the call's own `name`."),
        "args": ParamInfo("args", types=("object",), description="Laid over the `args` that the workbook gives it."),
    },
)


def described(names: list[str], describe: Callable[[str], D | None]) -> list[tuple[str, D | None, str]]:
    """(name, description, ""), or (name, None, why): a broken plug-in hides neither itself nor the others."""
    found: list[tuple[str, D | None, str]] = []
    for name in names:
        try:
            found.append((name, describe(name), ""))
        except Refused as error:
            found.append((name, None, error.message))
    return found


def all_tools(registry: Registry) -> list[tuple[str, ToolDescription | None, str]]:
    return [*described(registry.kinds(), registry.describe), (WORKBOOK.kind, WORKBOOK, "")]


# ---- as JSON


def component_json(component: ComponentDescription) -> dict[str, Any]:
    return {
        "type": component.type,
        "family": component.family,
        "summary": component.summary,
        "inputs": [port_json(port) for port in component.ports.inputs],
        "outputs": [port_json(port) for port in component.ports.outputs],
        "params": params_json(component.params),
        "startable": component.startable,
        "iterator": component.is_iterator,
        "relational": component.is_relational,
    }


def port_json(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "required": port.required,
        "many": port.many,
        "reject": port.reject,
        "description": port.description,
    }


def tool_json(tool: ToolDescription) -> dict[str, Any]:
    return {"kind": tool.kind, "summary": tool.summary, "params": params_json(tool.params)}


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


def kind_words(schema: dict[str, Any]) -> str:
    """The types that a value may have, without null, which means the same as a missing value."""
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


_OUTPUT = re.compile(r"^The result\b|(?<=[.;:] )The result\b", re.MULTILINE)


def output_of(doc: str) -> str:
    """What the documentation of a tool says about its result: from there to the end of the paragraph, with the list below it."""
    text = cleandoc(doc)
    found = _OUTPUT.search(text)
    if found is None:
        return ""
    paragraph, _, rest = text[found.start() :].partition("\n\n")
    return f"{paragraph}\n\n{rest.partition(chr(10) * 2)[0]}" if paragraph.endswith(":") else paragraph


# ---- for the page


class Reference:
    """Tools and components of this installation, and of the plug-ins in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @cached_property
    def tools(self) -> Registry:
        return Registry() if self._folder is None else Registry().at(self._folder)

    @cached_property
    def components(self) -> ComponentRegistry:
        from penstock.components.registry import ComponentRegistry  # Loads DuckDB.

        return ComponentRegistry() if self._folder is None else ComponentRegistry().at(self._folder)

    def entries(self) -> list[JsonMap]:
        found: list[JsonMap] = []
        for name, tool, error in all_tools(self.tools):
            found.append(_entry("tool", name, "", "" if tool is None else tool.summary, error))
        for name, component, error in described(self.components.types(), self.components.describe):
            family, summary = ("", "") if component is None else (component.family, component.summary)
            found.append(_entry("component", name, family, summary, error))
        return found

    def tool(self, name: str) -> JsonMap | None:
        """Raises Refused if its plug-in is broken."""
        if name == WORKBOOK.kind:
            tool, doc, example = WORKBOOK, WORKBOOK.summary, shipped_example(name)
        else:
            found = self.tools.describe(name)
            if found is None:
                return None
            code = type(self.tools.get(name))
            tool, doc, example = found, code.__doc__ or "", example_of(code)
        return {
            **_entry("tool", name, "", tool.summary),
            "text": cleandoc(doc),
            "params": _params(tool.params, tool.schema),
            "inputs": [],
            "outputs": [],
            "example": dedent(example).strip(),
            "output": output_of(doc),
        }

    def component(self, name: str) -> JsonMap | None:
        found = self.components.page(name)
        if found is None:
            return None
        return {
            **_entry("component", name, found.family, found.summary),
            "text": cleandoc(found.doc or found.summary),
            "params": _params(found.params, found.schema),
            "inputs": [port_json(port) for port in found.ports.inputs],
            "outputs": [port_json(port) for port in found.ports.outputs],
            "example": dedent(found.example).strip(),
            "output": "",
        }

    def schema(self, kind: str) -> JsonMap:
        """Jobs and joblets have one schema between them, which tells them apart by `kind`."""
        if kind == "playbook":
            from penstock.dialects.playbook.schema import json_schema  # Each dialect is loaded when it is asked for.

            return json_schema(self.tools)
        from penstock.dialects.job.schema import json_schema as job_schema  # As above.

        return job_schema(self.components)


def _entry(kind: str, name: str, family: str, summary: str, error: str = "") -> JsonMap:
    return {"kind": kind, "name": name, "family": family, "summary": summary, "error": error or None}


def _params(params: dict[str, ParamInfo], schema: JsonMap) -> list[Json]:
    properties: dict[str, Any] = schema.get("properties") or {}  # type: ignore[assignment]
    return [
        {
            "name": one.name,
            "type": kind_words(properties.get(one.name, {"type": list(one.types)})),
            "required": one.required,
            "default": properties.get(one.name, {}).get("default"),
            "description": one.description,
        }
        for one in sorted(params.values(), key=lambda one: not one.required)
    ]
