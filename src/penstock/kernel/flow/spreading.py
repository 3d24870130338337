"""Iterators whose iterations are run in several places at once: each holder has a stretch of the elements.

Iterations of such an iterator do not depend on each other, nor on anything that only the holder of its sub-job has. Whoever
holds a stretch decides inside its iterations and tells of each when it is over, so nothing of a lost one is in the log. The
server cuts the stretches, and ends the iterator when the last element has settled.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.kernel.fanout import Stretch
from penstock.kernel.flow import iterating, routing
from penstock.kernel.flow.mandate import NOTHING
from penstock.kernel.flow.plan import FlowPlan
from penstock.kernel.flow.state import RUNNING, ComponentState, IteratorState

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


def may_spread(flow: Flow, component: ComponentState, total: int | None, parallel: int) -> bool:
    """Before it starts: can its iterations be run by others? One by one they see each other's globals, and a `while` is judged
    between them; rows from beside the iterator lie where its sub-job is held."""
    if component.region.container is not flow.root or parallel < 2 or total is None or total < 2:
        return False
    is_half_over = component.iterator is not None and bool(component.iterator.open or component.iterator.reopened)
    return not is_half_over and not flow.plan.awaited[flow.name_of(component)]


def kinds_inside(plan: FlowPlan, name: str) -> frozenset[str]:
    """The kinds of all components that an iterator's body and whatever that opens consist of."""
    found: set[str] = set()
    todo = [plan.part(name).opens]
    while todo:
        key = todo.pop()
        for member in (one for region in plan.net.containers[key].regions for one in region.members) if key else ():
            found.update(task.kind for task in plan.node(member).tasks)
            todo.append(plan.part(member).opens)
    return frozenset(found)


# ---- the server's side


def spread_in(flow: Flow, region: str) -> list[ComponentState]:
    """The iterators of a sub-job that are under way and spread."""
    members = flow.root.regions[region].members.values()
    return [one for one in members if one.status == RUNNING and one.iterator is not None and one.iterator.spread]


def cut(flow: Flow, component: ComponentState, out: Collection[Stretch], size: int) -> Stretch | None:
    """The next elements to give away: such as have not settled and are not out. None: there are none, or none may start."""
    iterator, node = _iterator(component), flow.node_of(component)
    assert iterator.total is not None
    assert node.iterates is not None
    if flow.state.cancelling or not routing.may_start(flow, node.name) or (node.iterates.halts and iterator.failed):
        return None
    lo = iterator.settled.low
    while lo < iterator.total:
        held = next((one.hi for one in out if one.lo <= lo < one.hi), None)
        if held is None and lo not in iterator.settled:
            break
        lo = held if held is not None else lo + 1
    hi, end = lo, min([iterator.total, lo + size, *(one.lo for one in out if one.lo > lo)])
    while hi < end and hi not in iterator.settled:
        hi += 1
    return Stretch(component.place.id, lo, hi) if hi > lo else None


def complete(flow: Flow, component: ComponentState) -> None:
    """No element is out, and none is to come."""
    iterating.complete(flow, component)
    flow.left.add(component.region.place.id)  # Its holder goes on from here, if only to hear that all is over.
    flow.move()


# ---- the side of whoever holds a stretch


def take(flow: Flow, stretch: Stretch) -> None:
    """Take some elements of an iterator, and begin with the first."""
    flow.mandate.only, flow.mandate.stretch = NOTHING, stretch
    flow.advance(flow.tree.flow.components[stretch.iterator])
    flow.move()


def open_scopes(flow: Flow, stretch: Stretch) -> list[str]:
    """The iterations that are not over."""
    component = flow.tree.flow.components[stretch.iterator]
    return [iteration.place.id for iteration in _iterator(component).open.values()]


def _iterator(component: ComponentState) -> IteratorState:
    assert component.iterator is not None
    return component.iterator
