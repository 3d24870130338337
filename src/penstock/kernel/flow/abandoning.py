"""Cancelling a job that nobody works on: from its state alone, and with the same facts as if it were cancelled while it ran.

What was at work when the job stopped ends as stopped, what has not begun is skipped, and what has ended stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from penstock.kernel import facts
from penstock.kernel.flow import closing, iterating, resuming
from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.ending import Ended, stopped
from penstock.kernel.flow.scene import Scene
from penstock.kernel.flow.state import ERROR, RUNNING, SETTLED, ComponentState, ContainerState, RegionState
from penstock.kernel.net import Container, Region
from penstock.kernel.values import JsonMap


def cancel(flow: Flow, reason: str, end_child: Callable[[ComponentState], None]) -> None:
    """`end_child` ends the execution that a component runs, if it runs one."""
    if not flow.state.cancelling:
        flow.mark(facts.CancelAsked(reason, "job"))
    flow.allowed = frozenset()
    flow.scenes.clear()
    at_work = list(_take_up(flow, flow.root, flow.net.containers[""]))
    for component in sorted(at_work, key=lambda one: one.place.clock):
        end_child(component)
        flow.end(component, stopped(component))
    flow.move()
    _close_the_rest(flow)


def abandon(
    flow: Flow, region: RegionState, end_child: Callable[[ComponentState], None], error: JsonMap | None = None
) -> None:
    """Nobody works on one of the job's own sub-jobs any more: what was at work there ends, as stopped or with the error given,
    and what would have followed in it is decided here."""
    scene = flow.scenes[flow.root.id]
    at_work: list[ComponentState] = []
    for name in scene.spec.regions[region.index].members:
        component = scene.component(name)
        if component is not None and component.status == RUNNING:
            for iterator in _iterators(component):
                flow.over[iterator.place.id] = error  # It opens no more iterations.
            at_work.extend(_at_work(flow, name, component))
    for component in sorted(at_work, key=lambda one: one.place.clock):
        end_child(component)
        flow.end(component, stopped(component) if error is None else Ended(ERROR, error=error))
    flow.move()


def _iterators(component: ComponentState) -> Iterator[ComponentState]:
    """The component, if it iterates, and those inside it that do."""
    inside = [component.inside] if component.inside is not None else []
    if component.iterator is not None:
        yield component
        inside += component.iterator.open.values()
    for container in inside:
        for member in container.components.values():
            if member.status == RUNNING:
                yield from _iterators(member)


def _close_the_rest(flow: Flow) -> None:
    """Of what waits for nothing any more: a log that was cut off between two facts of one decision lacks the second."""
    for scene in reversed(list(flow.scenes.values())):
        for region in scene.spec.regions:
            state = scene.region(region)
            if state is not None and state.status not in SETTLED and not scene.unsettled[region.index]:
                closing.close_region(flow, scene, region)
        if scene.state.id in flow.scenes:
            closing.close_if_over(flow, scene)
        flow.move()


def _take_up(flow: Flow, container: ContainerState, spec: Container) -> Iterator[ComponentState]:
    """Settle what has ended in a scope that is open, and in those inside it. The components that were at work."""
    scene = flow.stage(container, spec)
    for region in chain(scene.bodies, _handlers(flow, scene)):
        state = scene.region(region)
        if state is not None and state.status in SETTLED:
            resuming.settle_closed(flow, scene, region, state, joins_anew=False)
            continue
        for name in region.members:
            component = scene.component(name)
            if component is not None and component.status in SETTLED:
                resuming.settle_ended(flow, scene, name, component)
                scene.unsettled[region.index] -= 1
            elif component is not None and component.status == RUNNING:
                scene.pending.pop(name, None)
                scene.component_place(name)
                yield from _at_work(flow, name, component)


def _handlers(flow: Flow, scene: Scene) -> Iterator[Region]:
    """In an iteration whose body has closed: the sub-jobs that its end has led to. Asked for when the body has been settled."""
    if not scene.state.handlers:
        return
    on = iterating.leading(scene.state.body)
    regions = iterating.handlers_of(scene, on)
    for region in regions:
        scene.admit(region)
    iterating.settle_handlers(flow, scene, regions, on)
    yield from regions


def _at_work(flow: Flow, name: str, component: ComponentState) -> Iterator[ComponentState]:
    opens = flow.plan.part(name).opens
    if opens is None or (component.inside is None and component.iterator is None):
        yield component
    elif component.inside is not None:
        yield from _take_up(flow, component.inside, flow.net.containers[opens])
    elif component.iterator is not None:
        for container in component.iterator.open.values():
            yield from _take_up(flow, container, flow.net.containers[opens])
        if not component.iterator.open:
            flow.advancing.append(component)
