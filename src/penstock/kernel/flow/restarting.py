"""The part of `evolve` that knows of a new start: what a resume leaves of the state before it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.kernel.facts import ExecutionStarted
from penstock.kernel.flow.gathering import reopen
from penstock.kernel.flow.index import FlowIndex, forget, forget_region
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    PENDING,
    RUNNING,
    SETTLED,
    SKIPPED,
    ComponentState,
    ContainerState,
    IteratorState,
    deaths_in,
    dying,
    failed_iterations,
)
from penstock.kernel.places import LogicalClock
from penstock.kernel.state import NOT_OPENED


def start_over(index: FlowIndex, job: ContainerState, body: ExecutionStarted) -> None:
    """A job goes on after a stop; or one of its sub-jobs starts over, and nobody stopped the others."""
    lost = job.regions.get(body.lost) if body.lost is not None else None
    dead = set(lost.members) if lost is not None else set()
    restart(index, job, frozenset([*body.kept, *body.kept_components]), frozenset(body.reopened))
    if body.lost is not None:
        for region in job.regions.values():
            region.kept = False
        job.deaths = [death for death in job.deaths if _outermost(death.scope) not in dead]
        place = lost.place if lost is not None else None
        for scope in [name for name, join in index.joined.items() if place and _lies_in(join.clock, place.clock)]:
            del index.joined[scope]
        return
    job.deaths = deaths_in(job)
    inside = len(job.prefix)
    for scope in [one for one in index.joined if one.startswith(job.prefix) and "/" not in one[inside:]]:
        del index.joined[scope]


def _lies_in(clock: LogicalClock, region: LogicalClock) -> bool:
    """A component begins its clock with its sub-job's place: (number, rank) and (number,)."""
    at, own = clock[-1], region[-1]
    return clock[:-1] == region[:-1] and isinstance(at, tuple) and isinstance(own, tuple) and at[0] == own[0]


def _outermost(scope: str) -> str:
    """The component of the job's own that another one lies in."""
    begin = scope.rfind("/") + 1
    return scope[:begin] + scope[begin:].partition("[#")[0].partition(".__")[0]


def restart(
    index: FlowIndex, container: ContainerState, kept: frozenset[str], reopened: frozenset[str] = frozenset()
) -> None:
    """What is kept stays as it is; everything else is as if it had not been, but for iterations that have ended. Of these,
    `reopened` go on."""
    container.status = RUNNING
    for scope, region in list(container.regions.items()):
        if scope in kept:
            region.kept = True
            continue
        for name, component in list(region.members.items()):
            if name in kept:
                component.kept = True
                continue
            del region.members[name]
            _let_go(index, container, name, component, kept, reopened)
        if region.members:  # Only iterations run again in it, and what follows from them.
            region.status, region.error, region.aborts = PENDING, None, False
            region.ended = len(region.members)
            continue
        index.counters[scope] = region.counter
        del container.regions[scope]
        index.regions.pop(scope, None)
    container.closed = sum(one.status in SETTLED and not one.handles for one in container.regions.values())


def continue_in(index: FlowIndex, old: ContainerState, new: ContainerState, kept: list[str]) -> None:
    """A failed job goes on under another name: what is kept is found there, and still says where it happened."""
    restart(index, old, frozenset(old.prefix + scope.removeprefix(new.prefix) for scope in kept))
    _hand_over(old, new, lambda scope: new.prefix + scope.removeprefix(old.prefix))
    new.deaths = deaths_in(new)


def _hand_over(old: ContainerState, new: ContainerState, renamed: Callable[[str], str]) -> None:
    new.regions = {renamed(scope): region for scope, region in old.regions.items()}
    for region in new.regions.values():
        region.container = new
        region.members = {renamed(scope): component for scope, component in region.members.items()}
    new.components = {renamed(scope): component for scope, component in old.components.items()}
    new.marks, new.closed = old.marks, old.closed
    new.kept_iterators = {renamed(scope): iterator for scope, iterator in old.kept_iterators.items()}
    for scope, inside in old.kept_insides.items():
        # Its place is known when the call starts.
        again = new.kept_insides[renamed(scope)] = ContainerState(renamed(inside.id), new.prefix, new.place)
        _hand_over(inside, again, renamed)
    for iterator in new.kept_iterators.values():
        iterator.partial = {}  # They are opened again by their own job only.
        for iteration in iterator.open.values():
            iteration.id, iteration.prefix = renamed(iteration.id), renamed(iteration.prefix)
            _hand_over(iteration, iteration, renamed)


def _let_go(
    index: FlowIndex,
    container: ContainerState,
    scope: str,
    component: ComponentState,
    kept: frozenset[str],
    reopened: frozenset[str],
) -> None:
    del container.components[scope]
    component.status = SKIPPED  # Only its counter counts from here on: it may start anew.
    if component.iterator is not None:
        again = _reopened(index, component.iterator, kept, reopened)
        if again.ok or again.open or again.reopened or again.items is not None:
            container.kept_iterators[scope] = again
    if component.inside is not None:
        restart(index, component.inside, kept, reopened)
        container.kept_insides[scope] = component.inside
        component.inside = None


def _reopened(index: FlowIndex, old: IteratorState, kept: frozenset[str], reopened: frozenset[str]) -> IteratorState:
    """Failed iterations, and those that had not ended, run again. Where only handlers are left to run, only these do. One that
    ended OK and is reopened goes on where iterations inside of it failed."""
    partial = {number: one for number, one in old.partial.items() if one.place.id in reopened}
    settled = old.settled.without(old.not_ok)
    for number in partial:
        settled.discard(number)
    again = IteratorState(NOT_OPENED, old.total, old.items, old.parallel, old.mode, settled=settled)
    again.ok, again.merged_up_to = old.ok - len(partial), old.merged_up_to
    again.failed_inside = old.failed_inside - sum(map(failed_iterations, partial.values()))
    again.reopened = dict(old.reopened)
    again.partial = {number: one for number, one in old.partial.items() if number not in partial}
    again.top = old.top
    reopen(old, again)
    for number, iteration in partial.items():
        iteration.body, iteration.error, iteration.handlers, iteration.is_reopened = "", None, 0, True
        iteration.fired.clear()
        restart(index, iteration, kept, reopened)
        again.reopened[number] = iteration
    for number, iteration in sorted({**old.open, **old.mishandled}.items()):
        if iteration.place.id in reopened and not iteration.body:  # It was going on, and goes on once more.
            restart(index, iteration, kept, reopened)
            again.reopened[number] = iteration
            continue
        if not iteration.body:
            forget(index, iteration, is_over=False)
            continue
        _keep_body(index, iteration)
        again.open[number] = iteration
        dead = dying(iteration)
        if dead is not None and again.death is None:
            again.death = (dead.place.clock, dead.exit_code, dead.error)
    return again


def _keep_body(index: FlowIndex, iteration: ContainerState) -> None:
    """The body has ended and stays, and so do the handlers of its end that ended OK. The others are as if they had not been."""
    for scope, region in list(iteration.regions.items()):
        if not region.handles or region.status == OK:
            continue
        iteration.handlers += region.status not in (PENDING, RUNNING)
        forget_region(index, scope, region, is_over=False)
        del iteration.regions[scope]
        for name in region.members:
            del iteration.components[name]
    iteration.status = iteration.body
    iteration.error = iteration.error if iteration.body == ERROR else None
