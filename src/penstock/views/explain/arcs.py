"""Why an arc fired, and why it did not."""

from __future__ import annotations

from penstock.kernel.net import Edge, Node
from penstock.views.explain.values import Saw, because
from penstock.views.history import StepRun
from penstock.views.wording import condition, error_line


def label(edge: Edge) -> str:
    return f"arc {edge.index + 1}"


def fired(edge: Edge | None, run: StepRun, saw: Saw) -> str:
    """What made the arc fire, in one line."""
    if edge is None:
        return "the arc fired"
    if edge.guard is None:
        return f"{label(edge)} fired: it has no condition"
    return f"{label(edge)} fired: {condition(edge.guard)} was true{because(saw, (run.id, 'arc', edge.index))}"


def verdict(edge: Edge, node: Node, run: StepRun, saw: Saw) -> str:
    """What became of one arc of a step run, in one line."""
    selected = run.selected
    if selected is None:
        return _undecided(run)
    if edge.index in selected.arcs:
        return fired(edge, run, saw)
    if selected.error is not None:
        return f"the arcs could not be decided: {error_line(selected.error)}"
    if selected.was_stopped:
        return "not looked at: the run was being stopped"
    if selected.arcs and node.first_only and min(selected.arcs) < edge.index:
        return f"not looked at: arc {min(selected.arcs) + 1} fired first, and the arcs are exclusive"
    if edge.guard is None:
        return "an arc without `when` does not take a failure"
    if run.status == "failed" and not edge.reads_event:
        return f"not considered: the step failed, and {condition(edge.guard)} does not read `event`"
    return f"{condition(edge.guard)} was false{because(saw, (run.id, 'arc', edge.index))}"


def _undecided(run: StepRun) -> str:
    match run.status:
        case "refused":
            return f"the token for `{run.id}` was refused, so it has no end to go on from"
        case "waiting" | "stranded":
            return f"`{run.id}` never started"
        case _:
            return f"`{run.id}` has not ended"
