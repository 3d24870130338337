"""Iterators: one scope per element, so many at a time; what follows from the end of one, and from the end of the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernel import facts
from penstock.kernel.facts import Fact
from penstock.kernel.fanout import Stretch
from penstock.kernel.flow import routing
from penstock.kernel.flow.ending import Ended, Witness
from penstock.kernel.flow.gathering import finish
from penstock.kernel.flow.scope import Scope, handlers_of, leading
from penstock.kernel.flow.state import ERROR, OK, RUNNING, ComponentState, IteratorState
from penstock.kernel.net import Iteration, Node
from penstock.kernel.places import Path, event_name
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow

SHOWN_ITEM = 200
LIMIT = "CONDITION_REEVALUATION_LIMIT"


def start(
    flow: Flow, component: ComponentState, total: int | None, items: Json, parallel: int, mode: str, *, spread: bool
) -> None:
    body = facts.IteratorStarted(component.name, total, items, parallel, mode, spread)
    flow.in_component(component, body, event_name(component.place.id, component.counter - 1))
    flow.look_inside(component)


def advance(flow: Flow, component: ComponentState) -> None:
    """Open what may be opened; when nothing is open and nothing to come, the iterator is over."""
    iterator, node = _iterator(component), flow.node_of(component)
    if component.status != RUNNING:
        return
    stretch = flow.mandate.stretch_of(component)
    width = 1 if stretch is not None else iterator.parallel
    while len(iterator.open) < width and (index := _next(flow, component, node)) is not None:
        _open(flow, component, index)
    if not iterator.open and component.status == RUNNING and stretch is None:
        complete(flow, component)


def is_through(flow: Flow, stretch: Stretch) -> bool:
    """Has whoever holds these elements nothing left to do?"""
    component = flow.tree.flow.components[stretch.iterator]
    return not _iterator(component).open and _next(flow, component, flow.node_of(component)) is None


def _iterator(component: ComponentState) -> IteratorState:
    assert component.iterator is not None
    return component.iterator


def _next(flow: Flow, component: ComponentState, node: Node) -> int | None:
    iterator = _iterator(component)
    assert node.iterates is not None
    if component.place.id in flow.over:
        return None
    if flow.witness is not None and iterator.total is not None:
        return _witnessed(component, iterator, flow.witness)
    if flow.state.cancelling or not routing.may_start(flow, node.name):
        return None
    if node.iterates.halts and iterator.failed:
        return None
    index = iterator.next_index
    stretch = flow.mandate.stretch_of(component)
    if stretch is not None:
        index = max(index, stretch.lo)
        return index if index < stretch.hi else None
    while index in iterator.settled or index in iterator.open:
        index += 1
    if iterator.total is not None:
        return index if index < iterator.total else None
    return index if _again(flow, component, node, index) else None


def _witnessed(component: ComponentState, iterator: IteratorState, witness: Witness) -> int | None:
    assert iterator.total is not None
    for index in range(iterator.next_index, iterator.total):
        is_open = index in iterator.settled or index in iterator.open
        if not is_open and witness.has_begun(f"{component.place.id}[#{index}]"):
            return index
    return None


def _again(flow: Flow, component: ComponentState, node: Node, index: int) -> bool:
    """Rulebook 8: a condition that is evaluated again and again is cut off, in case nothing will ever make it false."""
    limit = flow.net.limits.max_reevaluations
    if index > limit:
        message = f"the condition of `{component.name}` was evaluated again {limit} times and is still true"
        flow.over[component.place.id] = {
            "kind": LIMIT,
            "message": f"{LIMIT}: {message}",
            "retryable": False,
            "limit": limit,
        }
        return False
    verdict = flow.judge.again(node, component, index)
    if verdict is True:
        return True
    flow.over[component.place.id] = verdict or None
    return False


def _open(flow: Flow, component: ComponentState, index: int) -> None:
    iterator = _iterator(component)
    scope = f"{component.place.id}[#{index}]"
    container = flow.plan.part(flow.name_of(component)).opens
    assert container is not None
    subjobs = len(flow.plan.bodies[container])
    # Where the body has sub-jobs of its own, the first of them begins at (0,).
    at: Path = (0,) if subjobs == 1 else ()
    clock = (*component.place.clock, iterator.opened_at, index, at, flow.tree.flow.counter(scope))
    if (reopened := iterator.reopened.get(index)) is not None:
        region = reopened.regions.get(scope)
        clock = (*reopened.place.clock, at, max(reopened.counter, region.counter if region is not None else 0))
    item = _shown(iterator.items[index]) if iterator.items is not None else None
    body = facts.ElementStarted(component.name, index, item, subjobs)
    flow.record(Fact(scope, clock, body, event_name(component.place.id, iterator.opened_at)))
    flow.survey(iterator.open[index])


def _shown(item: Json) -> Json:
    """A small element is worth seeing in the log; a larger one is found among the items of the iterator."""
    if isinstance(item, dict) and len(item) <= 12:
        return (
            {key: _shown(value) for key, value in item.items()}
            if all(_is_small(one) for one in item.values())
            else None
        )
    return item if _is_small(item) else None


def _is_small(item: Json) -> bool:
    return item is None or isinstance(item, int | float) or (isinstance(item, str) and len(item) <= SHOWN_ITEM)


# ---- the end of one


def close(flow: Flow, scope: Scope) -> None:
    """Close an iteration whose body has ended, or whose handlers have; and go on with the next one."""
    container, component = scope.state, scope.state.opener
    assert component is not None
    if container.status == RUNNING:
        if not _has_ended(scope):
            return
        _record_end(flow, scope, component)
        if container.handlers:
            lead_on(flow, scope)
            return
    if not container.handlers:
        flow.advance(component)


def _has_ended(scope: Scope) -> bool:
    if not scope.is_single:
        return scope.state.closed == len(scope.bodies)
    region = scope.region(scope.bodies[0])
    return region is not None and region.ended == len(scope.bodies[0].members)


def _record_end(flow: Flow, scope: Scope, component: ComponentState) -> None:
    container = scope.state
    assert container.index is not None
    if scope.is_single:
        status, error = routing.aggregate(flow, scope, scope.bodies[0])
    else:
        failed = routing.failures(scope)
        status, error = (ERROR, routing.first_error(failed)) if failed else (OK, None)
    handlers = handlers_of(scope, leading(status))
    region = container.regions.get(container.place.id)
    if region is not None:
        _in_scope(flow, scope, routing.checkpoint(None, region, ERROR if status == ERROR else OK))
    ended = facts.ElementEnded(
        component.name, container.index, "error" if status == ERROR else "ok", error, len(handlers)
    )
    _in_scope(flow, scope, ended)


def lead_on(flow: Flow, scope: Scope) -> None:
    """The end of an iteration fires the links to what handles it."""
    on = leading(scope.state.body)
    component = scope.state.opener
    assert component is not None
    for region in handlers_of(scope, on):
        for name in region.members:
            for link in scope.plan.inbound[name]:
                if link.on is on and link.index not in scope.state.fired:
                    target = scope.scope(link.target)
                    _in_scope(flow, scope, facts.LinkFired(component.name, target, on.value, link.order, link.index))
    flow.look_at_regions(scope, handlers_of(scope, on))


def _in_scope(flow: Flow, scope: Scope, body: facts.Body) -> None:
    """A fact of the iteration itself, after all that its body did."""
    container = scope.state
    region = container.regions.get(container.place.id)
    counter = region.counter if region is not None else container.counter
    at: Path = (0, _members(scope)) if region is not None else (0, _members(scope), 0)
    clock = (*container.place.clock, at, counter)
    flow.record(Fact(container.place.id, clock, body, event_name(container.place.id, counter - 1)))


def _members(scope: Scope) -> int:
    """After every member of every sub-job of the body, which are numbered from (0, 0)."""
    if len(scope.bodies) == 1:
        return len(scope.bodies[0].members)
    return max((len(region.members) for region in scope.spec.regions), default=0)


# ---- the end of all


def complete(flow: Flow, component: ComponentState) -> None:
    iterator, node = _iterator(component), flow.node_of(component)
    assert node.iterates is not None
    ended = iterator.ok + iterator.failed
    body = facts.IteratorCompleted(
        component.name,
        "error" if iterator.failed or flow.over.get(component.place.id) is not None else "ok",
        ended,
        iterator.ok,
        iterator.failed,
        sorted(iterator.failures),
    )
    flow.in_component(component, body, event_name(component.place.id, component.counter - 1))
    error = _error(flow, component, iterator, node.iterates)
    dies = iterator.death is not None or (isinstance(error, dict) and error.get("kind") == LIMIT)
    after: JsonMap = {"NB_ITERATION": ended, "NB_ITERATION_OK": iterator.ok, "NB_ITERATION_ERROR": iterator.failed}
    finished = finish(iterator)
    end = Ended(
        ERROR if error is not None else OK,
        after=after,
        error=error,
        writes=finished.writes,
        sets=finished.sets,
        deletes=finished.deletes,
        exports_all=True,
        exit_code=iterator.death[1] if iterator.death is not None else None,
        dies=dies,
    )
    flow.finish(component, end)


def _error(flow: Flow, component: ComponentState, iterator: IteratorState, settings: Iteration) -> Json:
    judged = flow.over.get(component.place.id)
    if judged is not None:
        return judged
    if iterator.failed and (settings.halts or settings.fails or iterator.death is not None):
        return _failed(component, iterator)
    if iterator.death is not None:  # What its error link led to made the iteration OK, and the job dies all the same.
        return iterator.death[2]
    is_short = iterator.total is not None and iterator.ok + iterator.failed < iterator.total
    if is_short or (iterator.total is None and component.place.id not in flow.over):
        return {
            "kind": "stopped",
            "message": f"`{component.name}` was stopped before its last iteration",
            "retryable": True,
        }
    return None


def _failed(component: ComponentState, iterator: IteratorState) -> JsonMap:
    first = iterator.first_error if isinstance(iterator.first_error, dict) else {}
    index = iterator.first_failed
    message = f"iteration {index} of `{component.name}` failed: {first.get('message', 'no reason given')}"
    return {
        **first,
        "kind": first.get("kind", "iteration"),
        "message": message,
        "iteration": index,
        "failed": iterator.failed,
    }
