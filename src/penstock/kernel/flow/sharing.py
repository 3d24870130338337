"""A job whose sub-jobs are decided in several places: its server's, and those of the holders of its sub-jobs.

The holder of a sub-job decides what happens inside it; the server decides when sub-jobs start, closes them, and settles what
leads from one to another. What the holder decided is recorded by the server and then heard of here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.kernel import facts
from penstock.kernel.evolve import Execution, evolve
from penstock.kernel.flow import resuming
from penstock.kernel.flow.state import SETTLED, ComponentState, RegionState

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow
    from penstock.kernel.flow.scene import Scene


def adopt(
    flow: Flow, elsewhere: Iterable[str] = (), only: str | None = None, lost: str | None = None
) -> list[ComponentState]:
    """Find one's way into a job that goes on: what has settled is known, and nothing is recorded of it again.

    Gives the components of the job's own sub-jobs that are at work; what lies inside them is their holder's business. To the
    holder of the sub-job `only`, those are the components of it that are at work, also inside of joblet calls.
    """
    flow.elsewhere, flow.only = set(elsewhere), only
    flow.scenes.clear()
    scene = flow.stage(flow.root, flow.net.containers[""])
    at_work = resuming.settle_so_far(flow, scene, lost)
    if only is not None:
        mine = [component for component in at_work if component.region.place.id == only]
        at_work = [inner for component in mine for inner in _inside(flow, scene, component)]
    resuming.recall_dying(flow)
    flow.move()
    return at_work


def _inside(flow: Flow, scene: Scene, component: ComponentState) -> list[ComponentState]:
    """Of a joblet call, what is at work inside of it: with the call whoever offered it has started what begins there."""
    if component.inside is None:
        return [component]
    opens = flow.plan.part(scene.names[component.place.id]).opens
    assert opens is not None
    inner = flow.stage(component.inside, flow.net.containers[opens])
    return [one for found in resuming.settle_so_far(flow, inner) for one in _inside(flow, inner, found)]


def heard(flow: Flow, component: ComponentState) -> None:
    """A component of a sub-job that is held elsewhere has ended or was skipped there, and that has been recorded."""
    scene = flow.scenes[flow.root.id]
    name = component.place.id.removeprefix(flow.root.prefix)
    if component.dies:
        flow.die(resuming.DEAD.format(component.name), name)
    scene.component_place(name)
    scene.pending.pop(name, None)
    region = scene.spec.regions[component.region.index]
    if scene.unsettled[region.index] == 1:  # The last one: from here on the sub-job is ours again, to be closed.
        flow.elsewhere.discard(scene.region_scope(region))
    flow.settle_component(scene, name, component)
    flow.move()


def catch_up(flow: Flow, news: Iterable[tuple[facts.Fact, float]]) -> None:
    """The holder of a sub-job hears what has happened around it. What it decided itself comes back among that, and is known."""
    inside = len(flow.state.place.id)
    told = New(flow.tree)
    for fact, ts in news:
        is_a_childs = "/" in fact.scope[inside:]
        if not is_a_childs and told.is_new(fact):
            evolve(flow.tree, fact, ts)
    scene = flow.stage(flow.root, flow.net.containers[""])
    resuming.settle_so_far(flow, scene)
    resuming.recall_dying(flow)
    flow.move()
    mine = next(region for region in scene.bodies if scene.region_scope(region) == flow.only)
    members = map(scene.component, mine.members)
    flow.is_through = all(component is not None and component.status in SETTLED for component in members)


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
    adopt(flow, flow.elsewhere - {scope}, lost=scope)


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
