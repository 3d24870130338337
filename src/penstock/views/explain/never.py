"""Why a step never ran: every way a token could have come to it, and what became of each."""

from __future__ import annotations

from penstock.kernel.net import Edge, Net, Node
from penstock.views.explain import arcs
from penstock.views.explain.values import Saw
from penstock.views.history import ExecutionSeen, History
from penstock.views.wording import condition

DEPTH = 4
MOST = 5


def never_ran(step: str, execution: ExecutionSeen, net: Net, seen: History, saw: Saw) -> list[str]:
    return _ways(step, execution, net, seen, saw, 0, {step})


def _ways(
    step: str, execution: ExecutionSeen, net: Net, seen: History, saw: Saw, depth: int, known: set[str]
) -> list[str]:
    indent = "  " * depth
    before = [(node, edge) for node in net.nodes.values() for edge in node.edges if edge.target == step]
    if not before:
        return [f"{indent}nothing: no arc leads to `{step}`, and it is not the entry"]
    lines: list[str] = []
    for node, edge in before:
        lines += _way(node, edge, execution, net, seen, saw, depth, known)
    return lines


def _way(
    node: Node, edge: Edge, execution: ExecutionSeen, net: Net, seen: History, saw: Saw, depth: int, known: set[str]
) -> list[str]:
    indent = "  " * depth
    guard = f" when {condition(edge.guard)}" if edge.guard is not None else ""
    start = f"{indent}`{node.name}` ({arcs.label(edge)}{guard})"
    runs = seen.of_step(node.name, execution.scope)
    if runs:
        shown = runs[-MOST:]
        lines = [f"{start}:"] + [f"{indent}  {_verdict(edge, node, run.id, seen, saw)}" for run in shown]
        return lines if len(runs) <= MOST else [*lines, f"{indent}  … and {len(runs) - MOST:,} earlier runs of it"]
    if node.name in known or depth >= DEPTH:
        return [f"{start}: it never ran either"]
    known.add(node.name)
    return [
        f"{start}: it never ran either; tokens could have come to it from",
        *_ways(node.name, execution, net, seen, saw, depth + 1, known),
    ]


def _verdict(edge: Edge, node: Node, run_id: str, seen: History, saw: Saw) -> str:
    run = seen.runs[run_id]
    ended = {"done": "was done", "failed": "failed", "refused": "was refused", "running": "has not ended"}.get(
        run.status, run.status
    )
    return f"`{run.id}` {ended}: {arcs.verdict(edge, node, run, saw)}"
