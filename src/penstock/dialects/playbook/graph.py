"""Pictures of a playbook: Mermaid and DOT as text, SVG drawn here, so that no other program is needed."""

from __future__ import annotations

import re

from penstock.dialects.drawing import parts
from penstock.dialects.drawing.layout import Point, Spot, laid_out
from penstock.kernel.net import Edge, Fan, Gate, LoopMode, Net, Node

# ---- Cards and labels, for all formats


_MOST_TASKS = 5
_END_OF_STEP = re.compile(r"""event\.name == (['"])((?:step|loop)\.\w+)\1""")


def card(node: Node) -> parts.Card:
    tasks = [f"{task.label} · {task.kind}" for task in node.tasks]
    if len(tasks) > _MOST_TASKS:
        tasks = [*tasks[: _MOST_TASKS - 1], f"… {len(tasks) - _MOST_TASKS + 1} more"]
    return parts.Card(node.name, tuple(_badges(node)), tuple(parts.shortened(line) for line in tasks))


def _badges(node: Node) -> list[str]:
    found: list[str] = []
    if node.gate is Gate.JOIN:
        found.append(parts.shortened("join " + " + ".join(node.joins)))
    if node.admit is not None:
        found.append("admission")
    if node.fan is not None:
        found.append(parts.shortened(f"loop {node.fan.iterator}, {_how(node.fan)}"))
    if not node.first_only and len(node.edges) > 1:
        found.append("all matching arcs")
    return found


def _how(fan: Fan) -> str:
    if fan.fanout is not None:
        return "fan-out"
    return f"parallel × {fan.max_in_flight}" if fan.mode is LoopMode.PARALLEL else "sequential"


def arc_text(edge: Edge) -> str:
    """The guard without its braces, and ends of steps by their bare names; nothing for an arc without guard."""
    if edge.guard is None:
        return ""
    text = " ".join(edge.guard.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        text = text[2:-2].strip("- ")
    return _END_OF_STEP.sub(r"\2", text)


def is_failure_arc(edge: Edge) -> bool:
    return edge.guard is not None and "step.failed" in edge.guard


def targets(net: Net) -> list[tuple[str, Edge]]:
    """Every arc with the step it leaves."""
    return [(node.name, edge) for node in net.nodes.values() for edge in node.edges]


def mermaid(net: Net) -> str:
    ids = {name: f"s{number}" for number, name in enumerate(net.nodes)}
    lines = ["flowchart TD", f"  entry((( ))) --> {ids[net.entry]}"]
    for name, node in net.nodes.items():
        lines.append(f'  {ids[name]}["{parts.mermaid_label(card(node))}"]')
    for source, edge in targets(net):
        arrow = "-.->" if is_failure_arc(edge) else "-->"
        guard = "<br/>".join(parts.mermaid_text(line) for line in parts.wrapped(arc_text(edge)))
        label = f'|"{guard}"|' if guard else ""
        lines.append(f"  {ids[source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def dot(net: Net) -> str:
    lines = [
        f"digraph {parts.dot_text(net.name)} {{",
        '  rankdir=TB; node [shape=box, style="rounded", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
        '  "" [shape=point, width=0.15];',
        f'  "" -> {parts.dot_text(net.entry)};',
    ]
    for name, node in net.nodes.items():
        lines.append(f"  {parts.dot_text(name)} [label={parts.dot_label(card(node))}];")
    for source, edge in targets(net):
        options = (
            [f"label={parts.dot_text(chr(10).join(parts.wrapped(arc_text(edge))))}"] if edge.guard is not None else []
        )
        if is_failure_arc(edge):
            options.append("style=dashed")
        suffix = f" [{', '.join(options)}]" if options else ""
        lines.append(f"  {parts.dot_text(source)} -> {parts.dot_text(edge.target)}{suffix};")
    return "\n".join([*lines, "}"]) + "\n"


# ---- SVG


_GAP_Y = 80.0
_INDENT = 14.0
_ABOVE = 26.0
"""Room for the dot that shows where tokens enter."""
_STYLE = ".arc{fill:none;stroke:#475569;stroke-width:1.3}.entry{fill:#334155}"


def svg(net: Net) -> str:
    cards = {name: card(node) for name, node in net.nodes.items()}
    arcs = targets(net)
    layout = laid_out(
        {name: parts.box(each, _INDENT, 8) for name, each in cards.items()},
        [(source, edge.target) for source, edge in arcs],
        net.entry,
        _GAP_Y,
    )
    ways = [(way, edge) for way, (_, edge) in zip(layout.ways, arcs, strict=True)]
    body = [_entry(layout.spots[net.entry])]
    body += [_arc(way, edge) for way, edge in ways]
    body += [_step(layout.spots[name], each) for name, each in cards.items()]
    body += [parts.line_label(way, parts.wrapped(arc_text(edge)), edge.index) for way, edge in ways]
    has_labels = any(edge.guard for _, edge in arcs)
    return parts.page(net.name, _STYLE, parts.tip("arc", "#475569"), layout, body, has_labels=has_labels, above=_ABOVE)


def _entry(spot: Spot) -> str:
    top = spot.y - spot.height / 2
    return (
        f'<circle class="entry" cx="{spot.x:.1f}" cy="{top - 32:.1f}" r="5"/>'
        f'<path class="arc" d="M{spot.x:.1f} {top - 27:.1f}V{top:.1f}" marker-end="url(#tip-arc)"/>'
    )


def _step(spot: Spot, shown: parts.Card) -> str:
    return parts.card_box(spot, shown.title, (("badge", shown.badges), ("line", shown.lines)), _INDENT)


def _arc(way: list[Point], edge: Edge) -> str:
    style = "arc fail" if is_failure_arc(edge) else "arc"
    return f'<path class="{style}" d="{parts.curve(way)}" marker-end="url(#tip-arc)"/>'
