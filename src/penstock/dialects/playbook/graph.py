"""Pictures of a playbook: Mermaid and DOT as text, SVG drawn here, so that no other program is needed."""

from __future__ import annotations

from penstock.dialects.playbook.cards import arc_text, card, is_failure_arc, targets, wrapped
from penstock.dialects.playbook.svg import svg
from penstock.kernel.net import Net

__all__ = ["dot", "mermaid", "svg"]

_SYNTAX = frozenset("\"'<>&#;[]{}()|`\\")


def mermaid(net: Net) -> str:
    ids = {name: f"s{number}" for number, name in enumerate(net.nodes)}
    lines = ["flowchart TD", f"  entry((( ))) --> {ids[net.entry]}"]
    for name, node in net.nodes.items():
        shown = card(node)
        text = "<br/>".join([f"<b>{_entities(shown.title)}</b>", *(_entities(f"[{badge}]") for badge in shown.badges)])
        small = "<br/>".join(_entities(line) for line in shown.lines)
        label = f"{text}<br/><small>{small}</small>" if small else text
        lines.append(f'  {ids[name]}["{label}"]')
    for source, edge in targets(net):
        arrow = "-.->" if is_failure_arc(edge) else "-->"
        guard = "<br/>".join(_entities(line) for line in wrapped(arc_text(edge)))
        label = f'|"{guard}"|' if guard else ""
        lines.append(f"  {ids[source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def _entities(text: str) -> str:
    """Mermaid writes characters that would be syntax as `#number;`."""
    return "".join(f"#{ord(sign)};" if sign in _SYNTAX else sign for sign in text)


def dot(net: Net) -> str:
    lines = [
        f"digraph {_quoted(net.name)} {{",
        '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
        '  "" [shape=point, width=0.15];',
        f'  "" -> {_quoted(net.entry)};',
    ]
    for name, node in net.nodes.items():
        shown = card(node)
        label = "\n".join([shown.title, *(f"[{badge}]" for badge in shown.badges), *shown.lines])
        lines.append(f"  {_quoted(name)} [label={_quoted(label)}];")
    for source, edge in targets(net):
        options = [f"label={_quoted(chr(10).join(wrapped(arc_text(edge))))}"] if edge.guard is not None else []
        if is_failure_arc(edge):
            options.append("style=dashed")
        suffix = f" [{', '.join(options)}]" if options else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(edge.target)}{suffix};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
