"""Pictures of a playbook: Mermaid and DOT as text, SVG drawn here, so that no other program is needed."""

from __future__ import annotations

from penstock.dialects.drawing.cards import dot_label, dot_text, mermaid_label, mermaid_text, wrapped
from penstock.dialects.playbook.cards import arc_text, card, is_failure_arc, targets
from penstock.dialects.playbook.svg import svg
from penstock.kernel.net import Net

__all__ = ["dot", "mermaid", "svg"]


def mermaid(net: Net) -> str:
    ids = {name: f"s{number}" for number, name in enumerate(net.nodes)}
    lines = ["flowchart TD", f"  entry((( ))) --> {ids[net.entry]}"]
    for name, node in net.nodes.items():
        lines.append(f'  {ids[name]}["{mermaid_label(card(node))}"]')
    for source, edge in targets(net):
        arrow = "-.->" if is_failure_arc(edge) else "-->"
        guard = "<br/>".join(mermaid_text(line) for line in wrapped(arc_text(edge)))
        label = f'|"{guard}"|' if guard else ""
        lines.append(f"  {ids[source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def dot(net: Net) -> str:
    lines = [
        f"digraph {dot_text(net.name)} {{",
        '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
        '  "" [shape=point, width=0.15];',
        f'  "" -> {dot_text(net.entry)};',
    ]
    for name, node in net.nodes.items():
        lines.append(f"  {dot_text(name)} [label={dot_label(card(node))}];")
    for source, edge in targets(net):
        options = [f"label={dot_text(chr(10).join(wrapped(arc_text(edge))))}"] if edge.guard is not None else []
        if is_failure_arc(edge):
            options.append("style=dashed")
        suffix = f" [{', '.join(options)}]" if options else ""
        lines.append(f"  {dot_text(source)} -> {dot_text(edge.target)}{suffix};")
    return "\n".join([*lines, "}"]) + "\n"
