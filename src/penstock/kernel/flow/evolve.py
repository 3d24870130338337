"""evolve for component nets: one fact in, one transition, no expression evaluated and no decision made.

No fact needs the document to be understood: a start says which scopes' globals it sees, a sub-job says where it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.facts import Fact
from penstock.kernel.flow import iterations
from penstock.kernel.flow.index import FlowIndex, Joined, count, number_after
from penstock.kernel.flow.restarting import continue_in, start_over
from penstock.kernel.flow.state import (
    ABORTED,
    DEAD,
    ERROR,
    OK,
    RUNNING,
    SKIPPED,
    STATUSES,
    ComponentState,
    ContainerState,
    Death,
    RegionState,
    deaths_in,
    root_of,
    with_inside,
)
from penstock.kernel.flow.views import View, Written, exported, joined
from penstock.kernel.kept import WATERMARK, WATERMARK_KEY, mark
from penstock.kernel.places import Place

__all__ = ["FlowIndex", "continue_in", "evolve", "open_root", "start_over"]


def open_root(index: FlowIndex, place: Place, rules: int = 1) -> ContainerState:
    container = ContainerState(place.id, place.id, place, rules=rules)
    index.containers[place.id] = container
    return container


def evolve(index: FlowIndex, fact: Fact, ts: float) -> bool:
    """False when the fact is none of this half's."""
    handler = _HANDLERS.get(type(fact.body))
    if handler is None:
        return False
    handler(index, fact, fact.body, ts)
    return True


# ---- sub-jobs


def _container(index: FlowIndex, scope: str) -> ContainerState:
    container = index.containers.get(scope)
    if container is None:
        raise Bug(f"a fact names the scope `{scope}`, which was never opened")
    return container


def _region(index: FlowIndex, fact: Fact, body: facts.SubjobStarted | facts.SubjobEnded) -> RegionState:
    region = index.regions.get(fact.scope)
    return region if region is not None else _opened(index, fact.scope, body.subjob, body.index, body.container)


def _opened(index: FlowIndex, scope: str, name: str, number: int, around: str) -> RegionState:
    container = _container(index, around)
    place = Place(scope, (*container.place.clock, (number,)))
    counter = index.take_counter(scope)
    region = RegionState(name, number, place, container, counter=counter, handles=bool(container.body))
    container.regions[scope] = index.regions[scope] = region
    return region


def _subjob_started(index: FlowIndex, fact: Fact, body: facts.SubjobStarted, ts: float) -> None:
    region = _region(index, fact, body)
    region.status = RUNNING
    count(region, fact)


def _subjob_ended(index: FlowIndex, fact: Fact, body: facts.SubjobEnded, ts: float) -> None:
    region = _region(index, fact, body)
    region.status, region.error, region.aborts = STATUSES[body.status], body.error, body.aborts
    count(region, fact)
    container = region.container
    if not region.handles:
        container.closed += 1
    if body.aborts:
        root_of(container).deaths.append(Death(fact.scope, ABORTED.format(region.name)))
    if region.status == OK:
        mark(container.marks, region.marks)
    if container.handlers:
        container.handlers -= 1
        if region.status == ERROR and container.status == OK:
            container.status, container.error = ERROR, body.error  # What its end led to belongs to the iteration.
        if not container.handlers:
            iterations.close_iteration(index, container)


def _checkpoint_saved(index: FlowIndex, fact: Fact, body: facts.CheckpointSaved, ts: float) -> None:
    region = index.regions.get(fact.scope)
    if region is not None:
        count(region, fact)
    elif fact.scope in index.counters:  # The last of an iteration's handlers: with its end the scope was let go.
        index.counters[fact.scope] = number_after(fact)


# ---- components


def _component(index: FlowIndex, fact: Fact, subjob: str) -> ComponentState:
    """A component is first heard of when it starts, is skipped, or a join of it is reached. After a resume it starts anew."""
    component = index.components.get(fact.scope)
    region = index.regions.get(subjob)
    if region is None:
        raise Bug(f"component `{fact.scope}` lies in `{subjob}`, which was never opened")
    counter = max(component.counter if component is not None else 0, index.take_counter(fact.scope))
    index.joined.pop(fact.scope, None)
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
    count(component, fact)
    kept = container.kept_iterators.pop(fact.scope, None)
    if kept is not None:
        iterations.take_up(index, kept, component, fact)
    if body.opens is not None:
        inside = container.kept_insides.pop(fact.scope, None)
        if inside is None:
            place = Place(body.opens, fact.clock)
            inside = ContainerState(body.opens, container.prefix, place, opener=component)
        inside.opener, inside.view, inside.status = component, component.view, RUNNING
        inside.place = Place(body.opens, fact.clock)
        component.inside = index.containers[body.opens] = inside
        root_of(container).deaths += deaths_in(inside)


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
    count(component, fact)
    component.status = STATUSES[body.status]
    component.region.ended += 1
    component.rows_in, component.rows_out, component.outputs = body.rows_in, body.rows_out, body.outputs
    component.error, component.dies, component.exit_code = body.error, body.dies, body.exit_code
    if component.inside is not None:
        component.view = with_inside(component)
        index.containers.pop(component.inside.id, None)
    if body.dies:
        _note_death(component)
    if component.status == OK:
        _note_watermarks(component, body)
    after = body.after if body.result is None else {**body.after, "RESULT": body.result}
    component.view.set_after(_bare(component), after)
    if component.iterator is not None:
        component.iterator.gathered.clear()


def _note_watermarks(component: ComponentState, body: facts.ComponentEnded) -> None:
    """They count for its sub-job; those of iterations and joblets that ended OK count for the component that ran these."""
    marks = component.region.marks
    if component.iterator is not None:
        mark(marks, component.iterator.marks)
    if component.inside is not None:
        mark(marks, component.inside.marks)
    if WATERMARK in body.after:
        mark(marks, {str(body.after.get(WATERMARK_KEY)): body.after[WATERMARK]})


def _note_death(component: ComponentState) -> None:
    """Iterations are let go when they close, so the iterators around it remember: of several deaths the first by place."""
    root_of(component.region.container).deaths.append(Death(component.place.id, DEAD.format(component.name)))
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
        _opened(index, body.subjob, body.subjob_name, body.index, body.container)
    component = _component(index, fact, body.subjob)
    component.status = SKIPPED
    component.region.ended += 1
    count(component, fact)


def _link_fired(index: FlowIndex, fact: Fact, body: facts.LinkFired, ts: float) -> None:
    if body.on in iterations.ENDS:
        iterations.end_fired(index, fact, body)
        return
    region = index.regions.get(fact.scope)
    if region is not None:
        count(region, fact)
        return
    component = index.components.get(fact.scope)
    if component is None or (body.on == "synchronise" and component.status in (OK, ERROR, SKIPPED)):
        # The links of a join are counted with its target, which is not there before they have fired.
        index.counters[fact.scope] = number_after(fact)
        if body.on == "synchronise":
            index.joined.setdefault(fact.scope, Joined(fact.clock[:-1])).links.add(body.link)
        return
    count(component, fact)
    component.fired.add(body.link)


def _global_set(index: FlowIndex, fact: Fact, body: facts.GlobalSet, ts: float) -> None:
    component = index.components[fact.scope]
    count(component, fact)
    before = component.view.get(body.key)
    past = before.past | {before.stamp} if before is not None else frozenset()
    written = Written(body.new, (fact.clock, body.writer), body.creator, past, body.is_set, body.deleted)
    component.view.write(body.key, written, local=body.local)
    if not body.local:
        component.written.append(body.key)


_HANDLERS: dict[type[object], Callable[[FlowIndex, Fact, Any, float], None]] = {
    facts.SubjobStarted: _subjob_started,
    facts.SubjobEnded: _subjob_ended,
    facts.CheckpointSaved: _checkpoint_saved,
    facts.ComponentStarted: _component_started,
    facts.ComponentEnded: _component_ended,
    facts.ComponentSkipped: _component_skipped,
    facts.LinkFired: _link_fired,
    facts.GlobalSet: _global_set,
    facts.IteratorStarted: iterations.iterator_started,
    facts.ElementStarted: iterations.element_started,
    facts.ElementEnded: iterations.element_ended,
    facts.IteratorCompleted: iterations.iterator_completed,
}
