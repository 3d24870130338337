"""The part of `evolve` that knows of a new start: what a resume leaves of the state before it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.kernel.flow.gathering import reopen
from penstock.kernel.flow.index import FlowIndex, forget, forget_region
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    PENDING,
    RUNNING,
    SKIPPED,
    ComponentState,
    ContainerState,
    IteratorState,
    dying,
    failed_iterations,
)


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
            region.status, region.error = PENDING, None
            continue
        index.counters[scope] = region.counter
        del container.regions[scope]
        index.regions.pop(scope, None)


def continue_in(index: FlowIndex, old: ContainerState, new: ContainerState, kept: list[str]) -> None:
    """A failed job goes on under another name: what is kept is found there, and still says where it happened."""
    restart(index, old, frozenset(old.prefix + scope.removeprefix(new.prefix) for scope in kept))
    _hand_over(old, new, lambda scope: new.prefix + scope.removeprefix(old.prefix))


def _hand_over(old: ContainerState, new: ContainerState, renamed: Callable[[str], str]) -> None:
    new.regions = {renamed(scope): region for scope, region in old.regions.items()}
    for region in new.regions.values():
        region.container = new
        region.members = {renamed(scope): component for scope, component in region.members.items()}
    new.components = {renamed(scope): component for scope, component in old.components.items()}
    new.marks = old.marks
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
    again = IteratorState(old.opened_at, old.total, old.items, old.parallel, old.mode, settled=settled)
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
