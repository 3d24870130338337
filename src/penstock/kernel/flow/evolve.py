"""evolve for component nets: one fact in, one transition, no expression evaluated and no decision made.

No fact needs the document to be understood: a start says which scopes' globals it sees, a sub-job says where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.facts import Fact
from penstock.kernel.flow.gathering import gather, seen_by_next, writes_of
from penstock.kernel.flow.state import (
    ERROR,
    KEPT_FAILURES,
    OK,
    RUNNING,
    SKIPPED,
    ComponentState,
    ContainerState,
    IteratorState,
    RegionState,
    owner,
    with_inside,
)
from penstock.kernel.flow.views import View, Written, exported, joined
from penstock.kernel.places import LogicalClock, Place
from penstock.kernel.state import Bitmap

STATUSES = {"ok": OK, "error": ERROR, "skipped": SKIPPED}


@dataclass(slots=True)
class FlowIndex:
    """From scope ids to the states of all component nets of one execution tree."""

    containers: dict[str, ContainerState] = field(default_factory=dict)
    regions: dict[str, RegionState] = field(default_factory=dict)
    components: dict[str, ComponentState] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    """Where scopes go on counting that are no longer, or not yet, known: an event's name is never given twice."""


def open_root(index: FlowIndex, place: Place) -> ContainerState:
    container = ContainerState(place.id, place.id, place)
    index.containers[place.id] = container
    return container


def evolve(index: FlowIndex, fact: Fact, ts: float) -> bool:
    """False when the fact is none of this half's."""
    handler = _HANDLERS.get(type(fact.body))
    if handler is None:
        return False
    handler(index, fact, fact.body, ts)
    return True


def _count(owner: ComponentState | RegionState, fact: Fact) -> None:
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    owner.counter = counter + 1


# ---- sub-jobs


def _container(index: FlowIndex, scope: str) -> ContainerState:
    container = index.containers.get(scope)
    if container is None:
        raise Bug(f"a fact names the scope `{scope}`, which was never opened")
    return container


def _region(index: FlowIndex, fact: Fact, body: facts.SubjobStarted | facts.SubjobEnded) -> RegionState:
    region = index.regions.get(fact.scope)
    if region is None:
        container = _container(index, body.container)
        clock = (*container.place.clock, (body.index,))
        counter = index.counters.pop(fact.scope, 0)
        region = RegionState(body.subjob, body.index, Place(fact.scope, clock), container, counter=counter)
        container.regions[fact.scope] = index.regions[fact.scope] = region
    return region


def _subjob_started(index: FlowIndex, fact: Fact, body: facts.SubjobStarted, ts: float) -> None:
    region = _region(index, fact, body)
    region.status = RUNNING
    _count(region, fact)


def _subjob_ended(index: FlowIndex, fact: Fact, body: facts.SubjobEnded, ts: float) -> None:
    region = _region(index, fact, body)
    region.status, region.error = STATUSES[body.status], body.error
    _count(region, fact)
    container = region.container
    if container.handlers:
        container.handlers -= 1
        if region.status == ERROR and container.status == OK:
            container.status, container.error = ERROR, body.error  # What its end led to belongs to the iteration.
        if not container.handlers:
            _close_iteration(index, container)


def _checkpoint_saved(index: FlowIndex, fact: Fact, body: facts.CheckpointSaved, ts: float) -> None:
    region = index.regions.get(fact.scope)
    if region is not None:
        _count(region, fact)
    elif fact.scope in index.counters:  # The last of an iteration's handlers: with its end the scope was let go.
        index.counters[fact.scope] = _next(fact)


# ---- components


def _component(index: FlowIndex, fact: Fact, subjob: str) -> ComponentState:
    """A component is first heard of when it starts, is skipped, or a join of it is reached. After a resume it starts anew."""
    component = index.components.get(fact.scope)
    region = index.regions.get(subjob)
    if region is None:
        raise Bug(f"component `{fact.scope}` lies in `{subjob}`, which was never opened")
    counter = max(component.counter if component is not None else 0, index.counters.pop(fact.scope, 0))
    if component is None or component.region is not region or component.status in (OK, ERROR, SKIPPED):
        component = ComponentState(fact.scope, Place(fact.scope, fact.clock[:-1]), region, counter=counter)
        region.members[fact.scope] = region.container.components[fact.scope] = component
        index.components[fact.scope] = component
    return component


def _component_started(index: FlowIndex, fact: Fact, body: facts.ComponentStarted, ts: float) -> None:
    component = _component(index, fact, body.subjob)
    container = component.region.container
    component.status, component.type, component.started_at = RUNNING, body.type, ts
    component.rows_in = body.rows_in
    component.view = View((_seen(index, component, body.sees),))
    _count(component, fact)
    component.iterator = container.kept_iterators.pop(fact.scope, None)
    if body.opens is not None:
        inside = container.kept_insides.pop(fact.scope, None)
        if inside is None:
            place = Place(body.opens, fact.clock)
            inside = ContainerState(body.opens, container.prefix, place, opener=component)
        inside.opener, inside.view, inside.status = component, component.view, RUNNING
        inside.place = Place(body.opens, fact.clock)
        component.inside = index.containers[body.opens] = inside


def _seen(index: FlowIndex, component: ComponentState, sees: list[str]) -> View:
    views = []
    for scope in sees:
        region = index.regions.get(scope)
        if region is not None:
            views.append(exported(region.out()))
            continue
        source = index.components[scope]
        is_inside = source.region is component.region
        views.append(source.view if is_inside else exported(source.view))
    return joined(views) if views else component.region.container.view


def _component_ended(index: FlowIndex, fact: Fact, body: facts.ComponentEnded, ts: float) -> None:
    component = index.components[fact.scope]
    _count(component, fact)
    component.status = STATUSES[body.status]
    component.rows_in, component.rows_out, component.outputs = body.rows_in, body.rows_out, body.outputs
    component.error, component.dies, component.exit_code = body.error, body.dies, body.exit_code
    if component.inside is not None:
        component.view = with_inside(component)
        index.containers.pop(component.inside.id, None)
    if body.dies:
        _note_death(component)
    after = body.after if body.result is None else {**body.after, "RESULT": body.result}
    component.view.set_after(_bare(component), after)
    if component.iterator is not None:
        component.iterator.gathered.clear()


def _note_death(component: ComponentState) -> None:
    """Iterations are let go when they close, so the iterators around it remember: of several deaths the first by place."""
    death = (component.place.clock, component.exit_code, component.error)
    opener = component.region.container.opener
    while opener is not None:
        iterator = opener.iterator
        if iterator is not None and (iterator.death is None or death[0] < iterator.death[0]):
            iterator.death = death
        opener = opener.region.container.opener


def _bare(component: ComponentState) -> str:
    """Its name within its iteration: how its after-variables are called there."""
    return component.name.removeprefix(component.region.container.prefix)


def _component_skipped(index: FlowIndex, fact: Fact, body: facts.ComponentSkipped, ts: float) -> None:
    if body.subjob not in index.regions:  # None of its members has started, and none may.
        container = _container(index, body.container)
        place = Place(body.subjob, (*container.place.clock, (body.index,)))
        counter = index.counters.pop(body.subjob, 0)
        region = RegionState(body.subjob_name, body.index, place, container, counter=counter)
        container.regions[body.subjob] = index.regions[body.subjob] = region
    component = _component(index, fact, body.subjob)
    component.status = SKIPPED
    _count(component, fact)


def _link_fired(index: FlowIndex, fact: Fact, body: facts.LinkFired, ts: float) -> None:
    region = index.regions.get(fact.scope)
    if region is not None:
        _count(region, fact)
        return
    component = index.components.get(fact.scope)
    if component is None or (body.on == "synchronise" and component.status in (OK, ERROR, SKIPPED)):
        # The links of a join are counted with its target, which is not there before they have fired.
        counter = fact.clock[-1]
        assert isinstance(counter, int)
        index.counters[fact.scope] = counter + 1
        return
    _count(component, fact)
    component.fired.add(body.link)


def _global_set(index: FlowIndex, fact: Fact, body: facts.GlobalSet, ts: float) -> None:
    component = index.components[fact.scope]
    _count(component, fact)
    before = component.view.get(body.key)
    past = before.past | {before.stamp} if before is not None else frozenset()
    written = Written(body.new, (fact.clock, body.writer), body.creator, past, body.is_set)
    component.view.write(body.key, written, local=body.local)
    if not body.local:
        component.written.append(body.key)


# ---- iterators


def _iterator_started(index: FlowIndex, fact: Fact, body: facts.IteratorStarted, ts: float) -> None:
    component = index.components[fact.scope]
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    _count(component, fact)
    items: Sequence[Any] | None = (
        body.items if isinstance(body.items, Sequence) and not isinstance(body.items, str) else None
    )
    iterator = component.iterator
    if iterator is None:
        iterator = IteratorState(counter, body.total, items, body.parallel, body.mode)
        component.iterator = iterator
    iterator.opened_at, iterator.base = counter, component.view
    iterator.items = items if items is not None else iterator.items
    iterator.next_index = iterator.settled.low


def _element_started(index: FlowIndex, fact: Fact, body: facts.ElementStarted, ts: float) -> None:
    """Opens the iteration's scope. Unless its body has several sub-jobs, the iteration is one itself."""
    component = index.components[fact.scope[: fact.scope.rindex("[#")]]
    iterator = component.iterator
    assert iterator is not None
    place = Place(fact.scope, fact.clock[:-2])
    container = ContainerState(f"{fact.scope}.", f"{fact.scope}.", place, opener=component, index=body.index)
    container.view = seen_by_next(iterator, owner(component.region), (fact.clock, component.name))
    container.counter = _next(fact)
    if body.subjobs == 1:
        region = RegionState(
            fact.scope, 0, Place(fact.scope, (*place.clock, (0,))), container, RUNNING, container.counter
        )
        container.regions[fact.scope] = index.regions[fact.scope] = region
    index.containers[container.id] = container
    iterator.open[body.index] = container
    iterator.next_index = max(iterator.next_index, body.index + 1)
    index.counters.pop(fact.scope, None)


def _element_ended(index: FlowIndex, fact: Fact, body: facts.ElementEnded, ts: float) -> None:
    container = index.containers[f"{fact.scope}."]
    region = container.regions.get(fact.scope)
    if region is not None:
        _count(region, fact)
        region.status, region.error = STATUSES[body.status], body.error
    container.counter = _next(fact)
    container.status, container.error = STATUSES[body.status], body.error
    container.handlers = body.handlers
    if not body.handlers:
        _close_iteration(index, container)


def _next(fact: Fact) -> int:
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    return counter + 1


def _close_iteration(index: FlowIndex, container: ContainerState) -> None:
    component = container.opener
    assert component is not None
    assert component.iterator is not None
    assert container.index is not None
    iterator = component.iterator
    iterator.open.pop(container.index)
    iterator.settled.add(container.index)
    if container.status == OK:
        iterator.ok += 1
        gather(iterator, container.index, writes_of(container))
    else:
        iterator.failed += 1
        if len(iterator.failures) < KEPT_FAILURES:
            iterator.failures.append(container.index)
        if iterator.first_error is None:
            iterator.first_error = container.error
        gather(iterator, container.index, {})
    forget(index, container, is_over=container.status == OK)


def forget(index: FlowIndex, container: ContainerState, *, is_over: bool = True) -> None:
    """Let go of a scope that has closed. One that may run again goes on counting where it stopped."""
    if not is_over and container.index is not None:
        index.counters[container.place.id] = container.counter
    for scope, region in container.regions.items():
        index.regions.pop(scope, None)
        if not is_over:
            index.counters[scope] = max(region.counter, index.counters.get(scope, 0))
    for scope, component in container.components.items():
        index.components.pop(scope, None)
        if not is_over:
            index.counters[scope] = component.counter
        if component.inside is not None:
            forget(index, component.inside, is_over=is_over)
        if component.iterator is not None:
            for inner in component.iterator.open.values():
                forget(index, inner, is_over=is_over)
    index.containers.pop(container.id, None)


def _iterator_completed(index: FlowIndex, fact: Fact, body: facts.IteratorCompleted, ts: float) -> None:
    _count(index.components[fact.scope], fact)


# ---- a new start


def restart(index: FlowIndex, container: ContainerState, kept: frozenset[str]) -> None:
    """What is kept stays as it is; everything else is as if it had not been, but for iterations that have ended OK."""
    container.status = RUNNING
    for scope, region in list(container.regions.items()):
        if scope in kept:
            region.kept = True
            continue
        for name, component in region.members.items():
            _let_go(index, container, name, component, kept)
        index.counters[scope] = region.counter
        del container.regions[scope], index.regions[scope]


def _let_go(
    index: FlowIndex, container: ContainerState, scope: str, component: ComponentState, kept: frozenset[str]
) -> None:
    del container.components[scope]
    component.status = SKIPPED  # Only its counter counts from here on: it may start anew.
    if component.iterator is not None:
        for inner in component.iterator.open.values():
            forget(index, inner, is_over=False)
        reopened = _reopened(component.iterator)
        if reopened.ok or reopened.items is not None:
            container.kept_iterators[scope] = reopened
    if component.inside is not None:
        restart(index, component.inside, kept)
        container.kept_insides[scope] = component.inside
        component.inside = None


def _reopened(old: IteratorState) -> IteratorState:
    """Failed iterations, and those that had not ended, run again."""
    settled = Bitmap()
    for number in range(old.next_index):
        if number in old.settled and number not in old.failures:
            settled.add(number)
    again = IteratorState(old.opened_at, old.total, old.items, old.parallel, old.mode, settled=settled)
    again.ok, again.merged, again.merged_up_to, again.sets = old.ok, old.merged, old.merged_up_to, old.sets
    again.gathered = old.gathered
    return again


def clock_of(container: ContainerState, region: int, rank: int) -> LogicalClock:
    return (*container.place.clock, (region, rank))


_HANDLERS: dict[type[object], Callable[[FlowIndex, Fact, Any, float], None]] = {
    facts.SubjobStarted: _subjob_started,
    facts.SubjobEnded: _subjob_ended,
    facts.CheckpointSaved: _checkpoint_saved,
    facts.ComponentStarted: _component_started,
    facts.ComponentEnded: _component_ended,
    facts.ComponentSkipped: _component_skipped,
    facts.LinkFired: _link_fired,
    facts.GlobalSet: _global_set,
    facts.IteratorStarted: _iterator_started,
    facts.ElementStarted: _element_started,
    facts.ElementEnded: _element_ended,
    facts.IteratorCompleted: _iterator_completed,
}
