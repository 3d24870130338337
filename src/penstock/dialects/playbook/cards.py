"""What a picture of a playbook says about each step and each arc, whatever the picture is drawn with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.kernel.net import Edge, Gate, LoopMode, Net, Node

_MOST_TASKS = 5
_WIDEST = 34
_END_OF_STEP = re.compile(r"""event\.name == (['"])((?:step|loop)\.\w+)\1""")


@dataclass(frozen=True, slots=True)
class Card:
    """One step: its name, badges such as a loop or a join, and its tasks."""

    title: str
    badges: tuple[str, ...]
    lines: tuple[str, ...]


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
        how = f"parallel × {node.fan.max_in_flight}" if node.fan.mode is LoopMode.PARALLEL else "sequential"
        found.append(shortened(f"loop {node.fan.iterator}, {how}"))
    if not node.first_only and len(node.edges) > 1:
        found.append("all matching arcs")
    return found


def arc_text(edge: Edge) -> str:
    """The guard without its braces, and ends of steps by their bare names; nothing for an arc without guard."""
    if edge.guard is None:
        return ""
    text = " ".join(edge.guard.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        text = text[2:-2].strip("- ")
    return _END_OF_STEP.sub(r"\2", text)


def shortened(text: str, widest: int = _WIDEST) -> str:
    return text if len(text) <= widest else text[: widest - 1].rstrip() + "…"


def wrapped(text: str, widest: int = 26, most: int = 3) -> list[str]:
    """The text in lines, broken at blanks; what does not fit into `most` lines is left out."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= widest:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    lines = [shortened(line, widest) for line in lines]
    if len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} …", widest)]
    return lines


def is_failure_arc(edge: Edge) -> bool:
    return edge.guard is not None and "step.failed" in edge.guard


def targets(net: Net) -> list[tuple[str, Edge]]:
    """Every arc with the step it leaves."""
    return [(node.name, edge) for node in net.nodes.values() for edge in node.edges]
