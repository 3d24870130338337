"""A job whose sub-jobs are decided in several places: its server's, and those of the holders of its sub-jobs.

The holder of a sub-job decides what happens inside it; the server decides when sub-jobs start, closes them, and settles what
leads from one to another. What the holder decided is recorded by the server and then heard of here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.kernel import facts
from penstock.kernel.evolve import Execution, evolve
from penstock.kernel.flow import iterating, resuming
from penstock.kernel.flow.abandoning import at_work
from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.scope import Scope
from penstock.kernel.flow.state import ComponentState, RegionState


def hold(flow: Flow, subjob: str) -> list[ComponentState]:
    """Take one sub-job, to decide what happens inside of it: the components of it that are at work."""
    flow.mandate.only = subjob
    flow.go_on()
    return list(at_work(flow.root.regions[subjob].members.values()))


def heard(flow: Flow, components: Iterable[ComponentState]) -> None:
    """Components of sub-jobs that are held elsewhere have ended or were skipped there, and that has been recorded."""
    scope = Scope(flow.plan, flow.root)
    for component in components:
        flow.settle(scope, flow.name_of(component), component)
    flow.move()


def catch_up(flow: Flow, news: Iterable[tuple[facts.Fact, float]]) -> None:
    """The holder of a sub-job hears what has happened around it. What it decided itself comes back among that, and is known."""
    inside = len(flow.state.place.id)
    told = New(flow.tree)
    for fact, ts in news:
        is_a_childs = "/" in fact.scope[inside:]
        if not is_a_childs and told.is_new(fact):
            evolve(flow.tree, fact, ts)
    flow.go_on()


def is_through(flow: Flow) -> bool:
    """Has the holder of a sub-job, or of some elements, come to its end?"""
    if flow.mandate.stretch is not None:
        return iterating.is_through(flow, flow.mandate.stretch)
    region = flow.root.regions[flow.mandate.only or ""]
    return region.ended == len(flow.net.containers[""].regions[region.index].members)


def lose(flow: Flow, region: RegionState) -> None:
    """Whoever held a sub-job is gone: it starts over, and all others stay as they are."""
    state, scope = flow.state, region.place.id
    kept = [other for other in flow.root.regions if other != scope]
    kept_components = list(resuming.kept_members(flow.root, frozenset(kept)))
    reopened = list(resuming.going_on(flow.root, kept_components, frozenset(kept)))
    flow.mark(
        facts.ExecutionStarted(
            state.name,
            state.digest,
            state.workload,
            "",
            state.trace_id,
            kind="job",
            resumed=True,
            kept=kept,
            lost=scope,
            kept_components=kept_components,
            reopened=reopened,
            rules=flow.root.rules,
        )
    )
    flow.mandate.elsewhere.discard(scope)
    flow.go_on()


def is_members(flow: Flow, component: ComponentState) -> bool:
    """Does it lie in one of the job's own sub-jobs, and not in a joblet or an iteration?"""
    return component.region.container is flow.root


class New:
    """Which of the facts that are told together have not been recorded yet."""

    def __init__(self, tree: Execution) -> None:
        self._tree = tree
        self._scopes: set[str] = set()

    def is_new(self, fact: facts.Fact) -> bool:
        """What follows in a scope of which something was new is new as well, though the scope has closed with that."""
        if fact.scope in self._scopes or _is_new(self._tree, fact):
            self._scopes.add(fact.scope)
            return True
        return False


def _is_new(tree: Execution, fact: facts.Fact) -> bool:
    """Has this not been recorded yet? An iteration that has closed is gone from the state: its facts have all been recorded."""
    index, scope = tree.flow, fact.scope
    at = scope.rfind("/") + 1
    while (begin := scope.find("[#", at)) >= 0:
        end = scope.index("]", begin)
        iterator = index.components.get(scope[:begin])
        if iterator is None or iterator.iterator is None:
            return False
        number = int(scope[begin + 2 : end])
        if number in iterator.iterator.settled and number not in iterator.iterator.open:
            return False
        at = end
    owner: Any = index.components.get(scope) or index.regions.get(scope) or index.containers.get(f"{scope}.")
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    known = owner.counter if owner is not None else 0
    return counter >= max(known, index.counter(scope))
