"""The picture of a playbook: its steps, and the arcs between them."""

from __future__ import annotations

import re

from penstock.dialects.drawing.picture import Card, Line, LineStyle, Picture, shortened
from penstock.kernel.net import Arc, Fan, Gate, LoopMode, Net, Node

_MOST_TASKS = 5
_END_OF_STEP = re.compile(r"""event\.name == (['"])((?:step|loop)\.\w+)\1""")


def card(node: Node) -> Card:
    tasks = [f"{task.label} · {task.kind}" for task in node.tasks]
    if len(tasks) > _MOST_TASKS:
        tasks = [*tasks[: _MOST_TASKS - 1], f"… {len(tasks) - _MOST_TASKS + 1} more"]
    return Card(node.name, tuple(_badges(node)), tuple(shortened(line) for line in tasks))


def _badges(node: Node) -> list[str]:
    found: list[str] = []
    if node.gate is Gate.JOIN:
        found.append(shortened("join " + " + ".join(node.joins)))
    if node.admit is not None:
        found.append("admission")
    if node.fan is not None:
        found.append(shortened(f"loop {node.fan.iterator}, {_how(node.fan)}"))
    if not node.first_only and len(node.edges) > 1:
        found.append("all matching arcs")
    return found


def _how(fan: Fan) -> str:
    if fan.fanout is not None:
        return "fan-out"
    return f"parallel × {fan.max_in_flight}" if fan.mode is LoopMode.PARALLEL else "sequential"


def arc_text(edge: Arc) -> str:
    """The guard without its braces, and ends of steps by their bare names; nothing for an arc without guard."""
    if edge.guard is None:
        return ""
    text = " ".join(edge.guard.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        text = text[2:-2].strip("- ")
    return _END_OF_STEP.sub(r"\2", text)


def is_failure_arc(edge: Arc) -> bool:
    return edge.guard is not None and "step.failed" in edge.guard


_ARC = LineStyle("arc", "#475569", 1.3)


def picture(net: Net) -> Picture:
    return Picture(
        name=net.name,
        cards={name: card(node) for name, node in net.nodes.items()},
        lines=[
            Line(node.name, edge.target, arc_text(edge), _ARC, is_failure_arc(edge), edge.index)
            for node in net.nodes.values()
            for edge in node.edges
        ],
        members=list(net.nodes),
        entry=net.entry,
        styles=(_ARC,),
        has_entry=True,
        letter="s",
        lines_first=False,
        indent=14.0,
        gap_y=80.0,
    )
