"""The part of `evolve` that knows of iterators: how their iterations open, close and are let go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.kernel import facts
from penstock.kernel.facts import Fact
from penstock.kernel.flow.gathering import gather, seen_by_next, writes_of, writes_of_handlers
from penstock.kernel.flow.index import FlowIndex, count, forget, number_after, remember
from penstock.kernel.flow.state import (
    ERROR,
    KEPT_FAILURES,
    KEPT_PARTIAL,
    OK,
    RUNNING,
    STATUSES,
    ComponentState,
    ContainerState,
    IteratorState,
    RegionState,
    deaths_in,
    failed_iterations,
    owner,
    root_of,
    rules_of,
)
from penstock.kernel.kept import mark
from penstock.kernel.places import Place

ENDS = ("iteration_ok", "iteration_error")
"""The links that the end of an iteration fires."""


def take_up(index: FlowIndex, iterator: IteratorState, component: ComponentState, fact: Fact) -> None:
    """An iterator starts anew, and is what a resume has kept of it: of iterations that are open, their bodies."""
    component.iterator = iterator
    deaths = root_of(component.region.container).deaths
    for number, container in iterator.open.items():
        container.opener = component
        deaths += deaths_in(container)
        scope = f"{fact.scope}[#{number}]"
        if container.place.id != scope:
            # Only under another name: of what is written beside each other the later place wins, whichever start it is of.
            container.place = Place(scope, (*fact.clock, number))
        remember(index, container)


def iterator_started(index: FlowIndex, fact: Fact, body: facts.IteratorStarted, ts: float) -> None:
    component = index.components[fact.scope]
    counter = number_after(fact) - 1
    count(component, fact)
    items: Sequence[Any] | None = (
        body.items if isinstance(body.items, Sequence) and not isinstance(body.items, str) else None
    )
    iterator = component.iterator
    if iterator is None:
        iterator = IteratorState(counter, body.total, items, body.parallel, body.mode)
        component.iterator = iterator
    iterator.opened_at, iterator.base, iterator.spread = counter, component.view, body.spread
    iterator.items = items if items is not None else iterator.items
    iterator.next_index = iterator.settled.low


def element_started(index: FlowIndex, fact: Fact, body: facts.ElementStarted, ts: float) -> None:
    """Opens the iteration's scope. Unless its body has several sub-jobs, the iteration is one itself."""
    component = index.components[fact.scope[: fact.scope.rindex("[#")]]
    iterator = component.iterator
    assert iterator is not None
    place = Place(fact.scope, fact.clock[:-2])
    reopened = iterator.reopened.pop(body.index, None)
    if reopened is not None:
        _go_on(index, reopened, component, fact, body)
        return
    container = ContainerState(f"{fact.scope}.", f"{fact.scope}.", place, opener=component, index=body.index)
    container.view = seen_by_next(iterator, owner(component.region), (fact.clock, component.name))
    container.counter = number_after(fact)
    if body.subjobs == 1:
        region = RegionState(
            fact.scope, 0, Place(fact.scope, (*place.clock, (0,))), container, RUNNING, container.counter
        )
        container.regions[fact.scope] = index.regions[fact.scope] = region
    index.containers[container.id] = container
    iterator.open[body.index] = container
    iterator.next_index = max(iterator.next_index, body.index + 1)
    index.counters.pop(fact.scope, None)


def _go_on(
    index: FlowIndex, container: ContainerState, component: ComponentState, fact: Fact, body: facts.ElementStarted
) -> None:
    """An iteration that had ended OK goes on: what was kept of it is there, at the places that it had."""
    iterator = component.iterator
    assert iterator is not None
    container.opener, container.status, container.counter = component, RUNNING, number_after(fact)
    region = container.regions.get(fact.scope)
    if body.subjobs == 1 and region is None:
        place = Place(fact.scope, (*container.place.clock, (0,)))
        region = RegionState(fact.scope, 0, place, container, RUNNING, container.counter)
        container.regions[fact.scope] = index.regions[fact.scope] = region
    if region is not None:
        region.status, region.counter = RUNNING, container.counter
    index.containers[container.id] = container
    iterator.open[body.index] = container
    iterator.next_index = max(iterator.next_index, body.index + 1)
    index.counters.pop(fact.scope, None)


def element_ended(index: FlowIndex, fact: Fact, body: facts.ElementEnded, ts: float) -> None:
    container = index.containers[f"{fact.scope}."]
    region = container.regions.get(fact.scope)
    if region is not None:
        count(region, fact)
        region.status, region.error = STATUSES[body.status], body.error
        if region.status == OK:
            mark(container.marks, region.marks)
    container.counter = number_after(fact)
    container.status, container.error = STATUSES[body.status], body.error
    container.body, container.handlers = container.status, body.handlers
    if not body.handlers:
        close_iteration(index, container)


def end_fired(index: FlowIndex, fact: Fact, body: facts.LinkFired) -> None:
    """The end of an iteration leads to a handler."""
    container = index.containers[f"{fact.scope}."]
    container.fired.add(body.link)
    container.counter = number_after(fact)
    region = container.regions.get(fact.scope)
    if region is not None:
        count(region, fact)


def close_iteration(index: FlowIndex, container: ContainerState) -> None:
    component = container.opener
    assert component is not None
    assert component.iterator is not None
    assert container.index is not None
    iterator = component.iterator
    iterator.open.pop(container.index)
    iterator.settled.add(container.index)
    if container.status == OK:
        iterator.ok += 1
        failed_inside = failed_iterations(container)
        iterator.failed_inside += failed_inside
        if failed_inside and len(iterator.partial) < KEPT_PARTIAL:
            iterator.partial[container.index] = container
        mark(iterator.marks, container.marks)
        gather(iterator, container.index, writes_of(container))
    else:
        iterator.failed += 1
        iterator.not_ok.add(container.index)
        if len(iterator.failures) < KEPT_FAILURES:
            iterator.failures[container.index] = container.error
        if container.body == OK:
            iterator.mishandled[container.index] = container
        if iterator.first_failed is None or container.index < iterator.first_failed:
            iterator.first_failed, iterator.first_error = container.index, container.error
        is_told = container.body == ERROR and rules_of(container) >= 2
        gather(iterator, container.index, writes_of_handlers(container) if is_told else {})
    if container.index not in iterator.partial:
        iterator.top = max(iterator.top, forget(index, container, is_over=container.status == OK))


def iterator_completed(index: FlowIndex, fact: Fact, body: facts.IteratorCompleted, ts: float) -> None:
    count(index.components[fact.scope], fact)
