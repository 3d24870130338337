"""Ending what nobody works on any more: from its state alone, and with the same facts as if it were stopped while it ran.

What was at work ends as stopped, what has not begun is skipped, and what has ended stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.kernel import facts
from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.ending import Ended, stopped
from penstock.kernel.flow.state import ERROR, RUNNING, ComponentState, RegionState
from penstock.kernel.values import JsonMap


def cancel(flow: Flow, reason: str, end_child: Callable[[ComponentState], None]) -> None:
    """`end_child` ends the execution that a component runs, if it runs one."""
    if not flow.state.cancelling:
        flow.mark(facts.CancelAsked(reason, "job"))
    _end_all(flow, flow.root.components.values(), end_child, None)
    flow.go_on()


def abandon(
    flow: Flow, region: RegionState, end_child: Callable[[ComponentState], None], error: JsonMap | None = None
) -> None:
    """Nobody works on one of the job's own sub-jobs any more: what was at work there ends, as stopped or with the error given,
    and what would have followed in it is decided here."""
    flow.mandate.elsewhere.discard(region.place.id)
    for iterator in _iterators(region.members.values()):
        flow.over[iterator.place.id] = error  # It opens no more iterations.
    _end_all(flow, region.members.values(), end_child, error)
    flow.go_on()


def _end_all(
    flow: Flow, components: Iterable[ComponentState], end_child: Callable[[ComponentState], None], error: JsonMap | None
) -> None:
    """End what is at work, and what others were to run or a resume had kept."""
    iterators = [one for one in _iterators(components) if not one.is_iterating or one.iterator.spread]  # type: ignore[union-attr]
    running = [component for component in at_work(components) if component.iterator is None]
    for component in sorted(running, key=lambda one: one.place.clock):
        end_child(component)
        flow.finish(component, stopped(component) if error is None else Ended(ERROR, error=error))
    for component in iterators:
        for iteration in component.iterator.open.values() if component.iterator is not None else ():
            flow.survey(iteration)
        flow.advance(component)


def at_work(components: Iterable[ComponentState]) -> Iterator[ComponentState]:
    """Those of them whose work is under way, and those inside of what they have opened."""
    for component in components:
        if component.status != RUNNING:
            continue
        if component.inside is None and not component.is_iterating:
            yield component
        for container in component.opened():
            yield from at_work(container.components.values())


def _iterators(components: Iterable[ComponentState]) -> Iterator[ComponentState]:
    """Those of them that iterate, and those inside of what they have opened."""
    for component in components:
        if component.status != RUNNING:
            continue
        if component.iterator is not None:
            yield component
        for container in component.opened():
            yield from _iterators(container.components.values())
