"""One page per tool, and one on the collections that a loop reads page by page, with their parameters and examples."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docs.generator.markdown import code, literal, page, table
from docs.generator.schemas import Schema, default_of, kind_of, parts_in
from penstock.dialects.playbook.words import SCOPES
from penstock.ports.plugins import ToolDescription
from penstock.tools.base import Tool
from penstock.tools.pages.base import KINDS, describe_pages, reader_of
from penstock.tools.pages.base import example_of as collection_example
from penstock.tools.plugins import shipped_example
from penstock.tools.registry import BUILT_IN, Registry, example_of

_HELPER = re.compile(r"outcome\.(?!error|result|meta|status)(\w+)\.(\w+)")
HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: greetings }\n"
WORKBOOK_EXAMPLE = HEADER + shipped_example("workbook")


def tool_pages() -> dict[str, str]:
    registry = Registry()
    pages = {f"tools/{kind}.md": _page(registry, kind) for kind in BUILT_IN}
    pages["tools/workbook.md"] = _workbook()
    pages["tools/index.md"] = _index(registry)
    return dict(sorted(pages.items()))


def summary_of(registry: Registry, kind: str) -> str:
    description = registry.describe(kind)
    assert description is not None
    return description.summary


def _index(registry: Registry) -> str:
    rows = [(f"[`{kind}`]({kind}.md)", summary_of(registry, kind)) for kind in BUILT_IN]
    rows.append(("[`workbook`](workbook.md)", "Call a task of the workbook by its name."))
    return page(
        "Tools",
        "A task names its tool with `kind`; every other key of the task is a parameter of that tool. "
        "`penstock tools` lists these kinds and those of installed packages; `penstock tools KIND` shows one of them.",
        table(("kind", "what it does"), rows),
        "[Write a tool](../../how-to/write-a-tool.md) shows how to add one.",
    )


def _page(registry: Registry, kind: str) -> str:
    tool = registry.get(kind)
    description = registry.describe(kind)
    assert description is not None
    return page(
        f"`{kind}`",
        inspect.getdoc(type(tool)) or "",
        "## Parameters" if description.params else "",
        parameters(description.schema),
        *parts(description.schema),
        _defaults(description),
        _helpers(tool),
        "## Example",
        code("yaml", example_of(type(tool))),
    )


def parameters(schema: Schema) -> str:
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", kind_of(one), "yes" if name in required else "", default_of(one), str(one.get("description", "")))
        for name, one in schema.get("properties", {}).items()
    ]
    return table(("parameter", "type", "required", "default", "what it is"), rows)


def parts(schema: Schema) -> list[str]:
    """Structures that parameters are made of, each once, in the order in which a reader meets them."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    order = list(dict.fromkeys(parts_in(schema)))
    for name in order:  # grows while it is walked: a part may lead to further parts
        order += [inner for inner in dict.fromkeys(parts_in(definitions[name])) if inner not in order]
    found: list[str] = []
    for name in order:
        found += [f"### {name}", str(definitions[name].get("description", "")), parameters(definitions[name])]
    return found


def _defaults(description: ToolDescription) -> str:
    if not description.defaults:
        return ""
    lines = [f"- `{key}`: {literal(value)}" for key, value in description.defaults.items()]
    return "\n".join(["## Defaults of `spec`", "", *lines])


def _helpers(tool: Tool[Any]) -> str:
    fields = dict.fromkeys(_HELPER.findall(inspect.getdoc(type(tool)) or ""))
    if not fields:
        return ""
    lines = [f"- `outcome.{family}.{field}`" for family, field in fields]
    return "\n".join(["## What policies see besides the outcome's own fields", "", *lines])


def _workbook() -> str:
    scope = SCOPES["workbook_task"]
    keys = table(
        ("key", "type", "what it is"), [(f"`{n}`", kind_of(w.schema), w.about) for n, w in scope.words.items()]
    )
    return page(
        "`workbook`",
        "Call a task that the playbook's `workbook` section defines. The call is replaced by the task when the document is "
        "compiled, so nothing of it is left in a run; `penstock plan` shows what became of it.",
        "The task is named by `task`, or by `name` when there is no `task`. What the call says (`args`, `spec`, parameters) is "
        "laid over what the workbook says.",
        "## Keys of a task in the workbook",
        keys.replace("](#", "](../playbook.md#"),
        "## Example",
        code("yaml", WORKBOOK_EXAMPLE),
    )


def collections_page() -> str:
    return page(
        "Collections",
        "Besides a list, a template or `{range: 10}`, `loop.in` may describe a collection that is read page by page, so that "
        "nobody holds all of it. One key says of what kind it is; what stands below it may have templates. The one parameter "
        "that a kind cannot do without may stand alone: `{lines: orders.csv}`.",
        "With `loop_mode: fanout` a page is read by the worker that works on it. A shard that is tried again has the same "
        "element again: pages of collections that may change are kept in the result store until the run is removed. A local loop "
        "reads all pages before it begins, except for `claim`: there it claims as it goes on.",
        *(section for kind in KINDS for section in _sections(kind)),
    )


def _sections(kind: str) -> list[str]:
    reader = reader_of(kind)
    description = describe_pages(kind)
    assert description is not None
    return [
        f"## `{kind}`",
        inspect.getdoc(reader) or "",
        code("yaml", collection_example(kind)),
        parameters(description.schema),
        *parts(description.schema),
    ]
