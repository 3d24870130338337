"""From scope ids to states: where a fact finds what it changes, and where scopes that are gone go on counting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kernel.facts import Fact
from penstock.kernel.places import LogicalClock

if TYPE_CHECKING:
    from penstock.kernel.flow.state import ComponentState, ContainerState, RegionState


@dataclass(slots=True)
class Joined:
    clock: LogicalClock
    """Of the join."""
    links: set[int] = field(default_factory=set)


@dataclass(slots=True)
class FlowIndex:
    """From scope ids to the states of all component nets of one execution tree."""

    containers: dict[str, ContainerState] = field(default_factory=dict)
    regions: dict[str, RegionState] = field(default_factory=dict)
    components: dict[str, ComponentState] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    """Where scopes go on counting that are no longer, or not yet, known: an event's name is never given twice."""
    floors: dict[str, int] = field(default_factory=dict)
    """Iterator -> where all scopes in its iterations begin to count, when what lies around it starts over: those that had closed
    are gone, and have left only the highest number that was given in them."""

    joined: dict[str, Joined] = field(default_factory=dict)
    """Scope of a join that has not started -> its links that have fired."""

    def counter(self, scope: str) -> int:
        """Where a scope that is not known begins to count."""
        counter = self.counters.get(scope, 0)
        if self.floors:
            at = scope.find("[#")
            while at >= 0:
                counter = max(counter, self.floors.get(scope[:at], 0))
                at = scope.find("[#", at + 1)
        return counter

    def take_counter(self, scope: str) -> int:
        """The same for one that is known from now on."""
        counter = self.counter(scope)
        self.counters.pop(scope, None)
        return counter


def count(owner: ComponentState | RegionState, fact: Fact) -> None:
    owner.counter = number_after(fact)


def number_after(fact: Fact) -> int:
    """The number of the next fact of its scope."""
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    return counter + 1


def forget(index: FlowIndex, container: ContainerState, *, is_over: bool = True) -> int:
    """Let go of a scope that has closed: one past the highest number that was given in it. One that may run again goes on
    counting where it stopped."""
    top = container.counter
    if not is_over and container.index is not None:
        index.counters[container.place.id] = container.counter
    for scope, region in container.regions.items():
        top = max(top, forget_region(index, scope, region, is_over=is_over))
    index.containers.pop(container.id, None)
    return top


def forget_region(index: FlowIndex, scope: str, region: RegionState, *, is_over: bool) -> int:
    """`scope` is what it is called now: of a job that goes on under another name, what was kept is known by the old one."""
    top = region.counter
    index.regions.pop(region.place.id, None)
    if not is_over:
        index.counters[scope] = max(region.counter, index.counters.get(scope, 0))
    for name, component in region.members.items():
        top = max(top, component.counter)
        index.components.pop(component.place.id, None)
        if not is_over:
            index.counters[name] = component.counter
        if component.inside is not None:
            top = max(top, forget(index, component.inside, is_over=is_over))
        if component.iterator is not None:
            for inner in component.iterator.held():
                top = max(top, forget(index, inner, is_over=is_over))
            top = max(top, component.iterator.top)
            if is_over:
                index.floors.pop(name, None)
            elif component.iterator.top:
                index.floors[name] = max(component.iterator.top, index.floors.get(name, 0))
    return top


def remember(index: FlowIndex, container: ContainerState) -> None:
    """An iteration whose body has ended is open again: what handles its end finds it."""
    index.containers[container.id] = container
    for scope, region in container.regions.items():
        index.regions[region.place.id] = region
        index.counters.pop(scope, None)
        for name, component in region.members.items():
            index.components[component.place.id] = component
            index.counters.pop(name, None)
