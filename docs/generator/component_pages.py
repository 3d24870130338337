"""One page per component: what it does, its ports and parameters, and an example with the output that the engine gave."""

from __future__ import annotations

import re
from collections.abc import Iterable

from docs.generator.examples import UNREACHABLE, UNSTEADY, output_of
from docs.generator.markdown import code, page, table
from docs.generator.tool_pages import parameters, parts
from penstock.cli.commands.plugins import FAMILIES
from penstock.components.registry import ComponentRegistry, built_in
from penstock.kernel.errors import Bug
from penstock.ports.components import ComponentDescription, Port

AFTER = {
    "NB_LINE": "Rows that came in; of a component without inputs, rows that went out.",
    "NB_LINE_OUT_<port>": "Rows that went out of a port. Without a data link there, they are counted if the document asks; "
    "else it is 0.",
    "ERROR_MESSAGE": "Why it failed; null when it did not.",
    "DURATION_MS": "How long it ran, in milliseconds.",
    "RESULT": "What it gave back, of components that give something back.",
}
_AFTER_SENTENCE = re.compile(r"[^.;]*[Aa]fter-variables?\b[^.;]*")
_NAME = re.compile(r"`([A-Z][A-Z_]+)`")


def component_pages() -> dict[str, str]:
    registry = ComponentRegistry()
    described = {type_: _described(registry, type_) for type_ in built_in()}
    pages = {f"components/{type_}.md": _page(one) for type_, one in described.items()}
    pages["components/index.md"] = _index(described.values())
    return dict(sorted(pages.items()))


def _described(registry: ComponentRegistry, type_: str) -> ComponentDescription:
    found = registry.page(type_)
    assert found is not None
    if found.family not in FAMILIES:
        raise Bug(f"the family `{found.family}` of `{type_}` has no words in `penstock components`")
    return found


def _index(described: Iterable[ComponentDescription]) -> str:
    every = list(described)
    lists = []
    for family, title in FAMILIES.items():
        rows = [(f"[`{one.type}`]({one.type}.md)", one.summary) for one in every if one.family == family]
        lists += [f"## {title[0].upper()}{title[1:]}", table(("type", "what it does"), rows)]
    return page(
        "Components",
        "A component names its `type`, and its parameters stand under `params`. `penstock components` lists these types and "
        "those of installed packages; `penstock components TYPE` shows one of them. Expressions over rows (conditions, columns, "
        "measures) are SQL in DuckDB's dialect; `{{ … }}` in a parameter is a [template](../expressions.md).",
        *lists,
        "## After-variables",
        "Every component sets these when it ends. They are read as `global.<component>.NAME`, and in the conditions of its own "
        "`if` links by their bare name. Components that set more of them say so on their pages.",
        table(("variable", "what it is"), [(f"`{name}`", about) for name, about in AFTER.items()]),
        "[Write a component](../../how-to/write-a-component.md) shows how to add one; "
        "[Talend words](../../how-to/talend-words.md) says which of these does what a Talend component did.",
    )


def _page(one: ComponentDescription) -> str:
    return page(
        f"`{one.type}`",
        one.doc,
        _nature(one),
        "## Ports" if one.ports.inputs or one.ports.outputs else "",
        _ports(one),
        "## Parameters" if one.params else "",
        parameters(one.schema),
        *parts(one.schema),
        "## After-variables" if own_variables(one.doc) else "",
        _after(one),
        "## Example",
        code("yaml", one.example),
        *_output(one),
    )


def _nature(one: ComponentDescription) -> str:
    said = []
    if one.startable:
        said.append("It may start without a control link.")
    if one.is_relational:
        said.append("It can be [fused](../../concepts/data-plane.md#fusing) with its neighbours into one query.")
    if one.is_iterator:
        said.append("How iterators work is told in [iterate](../../how-to/iterators.md).")
    return " ".join(said)


def _ports(one: ComponentDescription) -> str:
    rows = [(f"`{port.name}`", "in", _in(port), port.description) for port in one.ports.inputs]
    rows += [(f"`{port.name}`", "out", _out(port), port.description) for port in one.ports.outputs]
    return table(("port", "", "links", "what it is"), rows)


def _in(port: Port) -> str:
    need = "required" if port.required else "optional"
    return f"{need}, several" if port.many else need


def _out(port: Port) -> str:
    return "may be left unread" if port.reject else ""


def own_variables(doc: str) -> list[str]:
    """The after-variables that a component's words name."""
    sentences = _AFTER_SENTENCE.findall(" ".join(doc.split()))
    return list(dict.fromkeys(name for sentence in sentences for name in _NAME.findall(sentence)))


def _after(one: ComponentDescription) -> str:
    own = own_variables(one.doc)
    if not own:
        return ""
    names = ", ".join(f"`{name}`" for name in own)
    return f"{names}, beside [those that every component sets](index.md#after-variables)."


def _output(one: ComponentDescription) -> list[str]:
    if one.type in UNREACHABLE or one.type in UNSTEADY:
        return []
    lines = output_of(one.type, one.example)
    return ["It shows:", code("text", "\n".join(lines))] if lines else []
