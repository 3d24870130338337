"""What a picture of a playbook says about each step and each arc, whatever the picture is drawn with."""

from __future__ import annotations

import re

from penstock.dialects.drawing.cards import Card, shortened
from penstock.kernel.net import Edge, Fan, Gate, LoopMode, Net, Node

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
