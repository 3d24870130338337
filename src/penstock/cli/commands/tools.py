"""`penstock tools [KIND]`: what a task can be, and what each kind takes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, safe
from penstock.cli.params import example_page, params_json, params_page, title
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

    registry = Registry().at(Path.cwd())
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
    return {"kind": tool.kind, "summary": tool.summary, "params": params_json(tool.params)}


def _page(tool: ToolDescription, text: str, example: str) -> str:
    from inspect import cleandoc

    lines = [title(tool.kind), "", safe(cleandoc(text)), "", *params_page(tool.params, tool.schema)]
    return "\n".join([*lines, *example_page(example)])
