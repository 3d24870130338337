"""What the conditions of arcs and admissions saw: the variables each reads, with the values they had at that time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.expr.check import inspect
from penstock.expr.scope import OutcomeView, Visible
from penstock.expr.values import MISSING, Missing
from penstock.kernel.evolve import Execution, evolve
from penstock.kernel.facts import RunEnded, boundary
from penstock.kernel.fanin import seen_by_arcs
from penstock.kernel.net import Node
from penstock.kernel.places import run_place
from penstock.kernel.state import ExecutionState, RunState, last_outcome
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.ports.wire import to_fact
from penstock.views.history import StepRun
from penstock.views.wording import shown

Saw = dict[tuple[str, str, int], list[tuple[str, str]]]
"""(step run id, `arc` or `admit`, index) -> the variables of that condition and their values, shown."""


def what_conditions_saw(entries: Iterable[Entry], load: Load, asked: Mapping[str, tuple[StepRun, Node]]) -> Saw:
    """Folds the log again and stops where a run in `asked` was refused, or ended and its arcs were decided."""
    stops: dict[int, tuple[StepRun, Node]] = {}
    for run, node in asked.values():
        if run.status == "refused" and node.admit:
            stops[run.created_seq] = (run, node)
        elif run.end_seq is not None and any(edge.guard is not None for edge in node.edges):
            stops[run.end_seq] = (run, node)
    saw: Saw = {}
    last = max(stops, default=0)
    tree = Execution()
    for entry in entries if stops else ():
        evolve(tree, to_fact(entry, load), entry.ts)
        if entry.seq in stops:
            _note(saw, tree.executions[stops[entry.seq][0].execution], *stops[entry.seq])
        if entry.seq >= last:
            break
    return saw


def _note(saw: Saw, state: ExecutionState, run: StepRun, node: Node) -> None:
    if run.status == "refused":
        token = next(
            (token for token in state.tokens.values() if run_place(state.place, token.step, token.path).id == run.id),
            None,
        )
        if token is not None:
            event: JsonMap = {"name": "token.created", "step": token.origin, "args": token.args}
            scope = _visible(state, event, token.args)
            for index, rule in enumerate(node.admit or ()):
                _look(saw, (run.id, "admit", index), rule.when, scope)
        return
    ended = state.ending.get(run.id)
    if ended is not None and ended.ended is not None:
        scope = _visible(state, _event(ended, ended.ended), ended.args)
        scope.fixed["output"] = OutcomeView(ended.outcome or last_outcome(ended, ended.ended))
        if node.fan is not None:
            scope.fixed["fanin"] = seen_by_arcs(ended, ended.ended, "")
        for edge in node.edges:
            _look(saw, (run.id, "arc", edge.index), edge.guard, scope)


def _look(saw: Saw, key: tuple[str, str, int], condition: str | None, scope: Visible) -> None:
    if condition is not None:
        paths = dict.fromkeys(use.path for use in inspect(condition, condition=True).uses)
        saw[key] = [(".".join(map(str, path)), _looked_up(scope, path)) for path in paths]


def _event(run: RunState, end: RunEnded) -> JsonMap:
    name = boundary(end)
    return {
        "name": name,
        "type": name,
        "step": run.step,
        "step_run_id": run.place.id,
        "status": end.status,
        "visit": run.visit,
        "result": end.result,
        "error": end.error,
        "args": run.args,
    }


def _visible(state: ExecutionState, event: JsonMap, args: JsonMap) -> Visible:
    workload: Any = state.workload if isinstance(state.workload, Mapping) else {}
    fixed: dict[str, Any] = {"event": event, "ctx": state.ctx.values, "workload": workload, "args": args}
    return Visible(fixed, (args, state.ctx.values, workload), (state.results,))


def because(saw: Saw, key: tuple[str, str, int]) -> str:
    """` (name = value, …)`, or nothing."""
    values = saw.get(key)
    return " (" + ", ".join(f"{name} = {value}" for name, value in values[:6]) + ")" if values else ""


def _looked_up(scope: Visible, path: Sequence[str | int]) -> str:
    value: Any = scope.lookup(str(path[0]))
    for part in path[1:]:
        value = _inside(value, part)
    return "undefined" if isinstance(value, Missing) else shown(value)


def _inside(value: Any, part: str | int) -> Any:
    try:
        if isinstance(value, Mapping):
            return value[part]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value[int(part)]
    except (KeyError, IndexError, ValueError):
        return MISSING
    return MISSING
