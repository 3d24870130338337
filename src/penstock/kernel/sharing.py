"""An execution that is decided in several places: by its server, and by the holders of its parts.

The holder of a step run, of a sub-job, or of some elements of an iterator decides what happens inside it; the server decides when
these start, closes them, and settles the edges between them. The server records what a holder has decided as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.kernel import fans
from penstock.kernel.decision import Decision
from penstock.kernel.facts import (
    ElementsClaimed,
    Fact,
    IterationEnded,
    IterationStarted,
    LoopStarted,
    RunEnded,
    TaskEnded,
    TaskStarted,
)
from penstock.kernel.mandate import NOTHING
from penstock.kernel.plan import Plan
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import NOT_OPENED, RUNNING, ComponentRun, State

# ---- the side of the server


class New:
    """Tells which of the facts reported together have not been recorded yet. Late, duplicate and foreign facts are not new."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._scopes: set[str] = set()

    def is_new(self, fact: Fact) -> bool:
        """Once a fact of a scope is new, all later facts of that scope are new too, even if the scope has closed since."""
        if type(fact.body) in _STEPWISE:
            return _is_new_of_step(self._state, fact)
        if fact.scope in self._scopes or _is_new(self._state, fact):
            self._scopes.add(fact.scope)
            return True
        return False


_STEPWISE = frozenset(
    {TaskStarted, TaskEnded, LoopStarted, ElementsClaimed, IterationStarted, IterationEnded, RunEnded}
)


def _is_new_of_step(state: State, fact: Fact) -> bool:
    """A holder's facts arrive in the order of their scope's counter, and may arrive twice."""
    body, scope = fact.body, fact.scope
    pipeline = state.pipelines.get(scope)
    if isinstance(body, IterationEnded):
        return pipeline is not None
    if isinstance(body, TaskStarted | TaskEnded):
        return pipeline is not None and _number(fact) >= pipeline.counter
    run = state.step_run(scope.rpartition("[")[0] if isinstance(body, IterationStarted) else scope)
    if run is None:
        return False
    if isinstance(body, RunEnded):
        return True
    if isinstance(body, LoopStarted):
        return run.fan is None or run.fan.opened_at == NOT_OPENED
    if isinstance(body, ElementsClaimed):
        return run.fan is not None and body.lo == run.fan.total
    assert isinstance(body, IterationStarted)
    return run.fan is not None and body.index not in run.fan.open and body.index not in run.fan.settled


def _number(fact: Fact) -> int:
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    return counter


def _is_new(state: State, fact: Fact) -> bool:
    """A closed iteration is no longer in the state: all its facts have been recorded."""
    scope = fact.scope
    at = scope.rfind("/") + 1
    while (begin := scope.find("[#", at)) >= 0:
        end = scope.index("]", begin)
        iterator = state.component(scope[:begin])
        if iterator is None or iterator.fan is None:
            return False
        number = int(scope[begin + 2 : end])
        if number in iterator.fan.settled and number not in iterator.fan.open:
            return False
        at = end
    owner: Any = state.runs.get(scope) or state.subjobs.get(scope) or state.scopes.get(f"{scope}.")
    known = owner.counter if owner is not None else 0
    return _number(fact) >= max(known, state.counter(scope))


def is_members(d: Decision, component: ComponentRun) -> bool:
    """Whether the component lies in one of the job's own sub-jobs, not in a joblet or an iteration."""
    return component.subjob.scope is d.execution


def spread_in(d: Decision, subjob: str) -> list[ComponentRun]:
    """The running iterators of a sub-job that are spread: their iterations run in several places at once, since they do not
    depend on each other or on anything that only the holder of the sub-job has."""
    members = d.execution.subjobs[subjob].members.values()
    return [one for one in members if one.status == RUNNING and one.fan is not None and one.fan.is_elsewhere]


def cut(d: Decision, component: ComponentRun, out: Collection[ElementRange], size: int) -> ElementRange | None:
    """The next elements to hand out, which have not settled and are not out. None if there are none, or none may start."""
    iterator, node = component.fan, d.node_of(component)
    assert iterator is not None
    assert iterator.total is not None
    if not d.may_start(node.name) or (iterator.failed and fans.halts(node)):
        return None
    lo = iterator.settled.low
    while lo < iterator.total:
        held = next((one.hi for one in out if one.hi is not None and one.lo <= lo < one.hi), None)
        if held is None and lo not in iterator.settled:
            break
        lo = held if held is not None else lo + 1
    hi, end = lo, min([iterator.total, lo + size, *(one.lo for one in out if one.lo > lo)])
    while hi < end and hi not in iterator.settled:
        hi += 1
    return ElementRange(0, lo, hi) if hi > lo else None


# ---- the side of a holder


def may_spread(d: Decision, component: ComponentRun, total: int | None, parallel: int) -> bool:
    """Whether the iterations of an iterator that is about to start can be run by others.

    They cannot if they run one at a time (they see each other's globals), if there is a `while` (its condition is evaluated
    between them), or if the body reads rows from beside the iterator (these are stored where its sub-job is held).
    """
    if not is_members(d, component) or parallel < 2 or total is None or total < 2:
        return False
    kept = component.fan
    is_half_over = kept is not None and bool(kept.open or kept.reopened)
    return not is_half_over and not d.plan.awaited[d.name_of(component)]


def kinds_inside(plan: Plan, name: str) -> frozenset[str]:
    """The kinds of all components in an iterator's body, and in everything that the body opens."""
    found: set[str] = set()
    todo = [plan.locations[name].opens]
    while todo:
        key = todo.pop()
        for member in (one for region in plan.containers[key].regions for one in region.members) if key else ():
            found.update(task.kind for task in plan.node(member).tasks)
            todo.append(plan.locations[member].opens)
    return frozenset(found)


def take(d: Decision, iterator: str, elements: ElementRange) -> None:
    """Take some elements of an iterator, and begin with the first."""
    d.mandate.only, d.mandate.fan, d.mandate.elements = NOTHING, iterator, elements
    d.fans.append(d.state.runs[iterator])


def is_through(d: Decision) -> bool:
    """Whether everything the holder of a sub-job, or of some elements, had to decide has been decided."""
    if d.mandate.elements is not None:
        run = d.state.runs[d.mandate.fan]
        return not run.fan.open and not fans.has_next(d, run)
    subjob = d.execution.subjobs[d.mandate.only or ""]
    return subjob.ended == len(d.plan.containers[""].regions[subjob.index].members)
