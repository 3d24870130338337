"""From scope ids to states: where a fact finds what it changes, and where scopes that are gone go on counting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kernel.facts import Fact

if TYPE_CHECKING:
    from penstock.kernel.flow.state import ComponentState, ContainerState, RegionState


@dataclass(slots=True)
class FlowIndex:
    """From scope ids to the states of all component nets of one execution tree."""

    containers: dict[str, ContainerState] = field(default_factory=dict)
    regions: dict[str, RegionState] = field(default_factory=dict)
    components: dict[str, ComponentState] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    """Where scopes go on counting that are no longer, or not yet, known: an event's name is never given twice."""


def count(owner: ComponentState | RegionState, fact: Fact) -> None:
    owner.counter = number_after(fact)


def number_after(fact: Fact) -> int:
    """The number of the next fact of its scope."""
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    return counter + 1


def forget(index: FlowIndex, container: ContainerState, *, is_over: bool = True) -> None:
    """Let go of a scope that has closed. One that may run again goes on counting where it stopped."""
    if not is_over and container.index is not None:
        index.counters[container.place.id] = container.counter
    for scope, region in container.regions.items():
        forget_region(index, scope, region, is_over=is_over)
    index.containers.pop(container.id, None)


def forget_region(index: FlowIndex, scope: str, region: RegionState, *, is_over: bool) -> None:
    """`scope` is what it is called now: of a job that goes on under another name, what was kept is known by the old one."""
    index.regions.pop(region.place.id, None)
    if not is_over:
        index.counters[scope] = max(region.counter, index.counters.get(scope, 0))
    for name, component in region.members.items():
        index.components.pop(component.place.id, None)
        if not is_over:
            index.counters[name] = component.counter
        if component.inside is not None:
            forget(index, component.inside, is_over=is_over)
        if component.iterator is not None:
            for inner in component.iterator.open.values():
                forget(index, inner, is_over=is_over)


def remember(index: FlowIndex, container: ContainerState) -> None:
    """An iteration whose body has ended is open again: what handles its end finds it."""
    index.containers[container.id] = container
    for scope, region in container.regions.items():
        index.regions[region.place.id] = region
        index.counters.pop(scope, None)
        for name, component in region.members.items():
            index.components[component.place.id] = component
            index.counters.pop(name, None)
