"""What a resume keeps, and how a decider finds its way back into a state that was folded from the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.kernel import facts
from penstock.kernel.errors import Refused
from penstock.kernel.flow import joining, routing
from penstock.kernel.flow.plan import OF_REGION
from penstock.kernel.flow.scene import Scene
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    PENDING,
    RUNNING,
    WAIT,
    ComponentState,
    ContainerState,
    IteratorState,
    RegionState,
    dying,
)
from penstock.kernel.net import On, Region

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


DEAD = "`{}` ended in ERROR and the job dies with it"
ABORTED = "sub-job `{}` ended in ERROR and `on_subjob_error` is abort"


def resume(flow: Flow, *, failed_only: bool = False) -> None:
    """Record the new start. After a crash whatever has closed is kept; after a failure, what ended OK or was dealt with.

    `failed_only`: also a job that completed is resumed, for the sake of its failed iterations.
    """
    state = flow.state
    kept_components: list[str] = []
    reopened: list[str] = []
    if state.status == "completed" and failed_only:
        kept, kept_components, reopened = _besides_failed(flow)
    elif state.status in ("completed", "cancelled"):
        failed, noun = state.failed_iterations, "iteration" if state.failed_iterations == 1 else "iterations"
        if failed and state.status == "completed":
            raise Refused(
                f"the run is completed, and {failed:,} {noun} of it failed",
                hint="`penstock resume --failed` runs only the failed iterations again",
            )
        raise Refused(f"the run is {state.status}; there is nothing to resume")
    else:
        kept = kept_of(flow, has_failed=state.status == "failed")
        kept_components = list(kept_members(flow.root, frozenset(kept)))
        reopened = list(going_on(flow.root, kept_components, frozenset(kept)))
    body = facts.ExecutionStarted(
        state.name,
        state.digest,
        state.workload,
        "",
        state.trace_id,
        kind="job",
        resumed=True,
        kept=kept,
        kept_components=kept_components,
        reopened=reopened,
        rules=flow.root.rules,
    )
    flow.mark(body)


# ---- failed iterations of a job that went on


class _Sorted(NamedTuple):
    """What stays when only failed iterations run again (D60), and which iterations that had ended OK go on."""

    kept: list[str]
    """Sub-jobs."""
    components: list[str]
    """Of sub-jobs that start over."""
    reopened: list[str]


def _besides_failed(flow: Flow) -> _Sorted:
    if not _has_failed_iterations(flow.root):
        raise Refused("no iteration of the run failed that could be run again")
    found = _Sorted([], [], [])
    _sort_out(flow, flow.root, "", found)
    return found


def _sort_out(flow: Flow, container: ContainerState, key: str, found: _Sorted) -> None:
    scene = Scene.opened(flow.plan, flow.net.containers[key], container)
    again = _again(flow, scene)
    for region in scene.spec.regions:
        state = scene.region(region)
        if state is None or state.handles:  # What the end of an iteration leads to follows from it once more.
            continue
        if again.isdisjoint(region.members):
            found.kept.append(scene.region_scope(region))
            continue
        for name in region.members:
            component = scene.component(name)
            if component is None:
                continue
            if name not in again:
                found.components.append(scene.scope(name))
            elif component.inside is not None:
                _sort_out(flow, component.inside, name, found)
            elif component.iterator is not None:
                for iteration in component.iterator.partial.values():
                    found.reopened.append(iteration.place.id)
                    _sort_out(flow, iteration, name, found)


def _has_failed(iterator: IteratorState | None) -> bool:
    return iterator is not None and bool(iterator.failed or iterator.partial)


def _has_failed_iterations(container: ContainerState) -> bool:
    return any(
        _has_failed(component.iterator) or (component.inside is not None and _has_failed_iterations(component.inside))
        for component in container.components.values()
    )


def _again(flow: Flow, scene: Scene) -> set[str]:
    """The nodes of a scope that start anew: iterators with failed iterations, what follows from their ends, and whoever gives
    these rows that are nowhere any more."""
    plan, found = flow.plan, set[str]()
    todo = [
        name
        for region in scene.spec.regions
        for name in region.members
        if (component := scene.component(name)) is not None
        and (
            _has_failed(component.iterator)
            or (component.inside is not None and _has_failed_iterations(component.inside))
        )
    ]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        part, component = plan.part(name), scene.component(name)
        todo += [link.target for link in (*plan.outbound[name], *plan.of_region[part.container, part.region])]
        todo += plan.awaiting.get(name, ())
        goes_on = component is not None and component.iterator is not None  # Over the elements that it had.
        given = plan.awaited[name] if goes_on else [*plan.awaited[name], *scene.data(name)]
        todo += [link.source for link in given if plan.part(link.source).region == part.region and not link.crosses]
    return {name for name in found if plan.part(name).container == scene.spec.key}


def kept_members(container: ContainerState, kept: frozenset[str]) -> Iterator[str]:
    """Components that an earlier resume kept in sub-jobs that start over once more."""
    for scope, region in container.regions.items():
        for name, component in region.members.items() if scope not in kept else ():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from kept_members(component.inside, kept)


def going_on(container: ContainerState, components: list[str], kept: Collection[str] = frozenset()) -> Iterator[str]:
    """Iterations that an earlier resume had opened again and that have not ended: they go on once more. What is kept of them is
    added to `components`. `kept` are the sub-jobs that stay as they are."""
    members = [one for one in container.components.values() if one.region.place.id not in kept]
    iterators = [one.iterator for one in members if one.iterator is not None]
    for iterator in (*iterators, *container.kept_iterators.values()):
        for iteration in (*iterator.open.values(), *iterator.reopened.values()):
            if iteration.is_reopened and not iteration.body:
                yield iteration.place.id
                components += _still_kept(iteration)
                yield from going_on(iteration, components)
    for inside in (*(one.inside for one in members), *container.kept_insides.values()):
        if inside is not None:
            yield from going_on(inside, components)


def _still_kept(container: ContainerState) -> Iterator[str]:
    """Of an iteration that was opened again: what has closed, and what stayed as it was."""
    for scope, region in container.regions.items():
        if region.status not in (PENDING, RUNNING):
            yield scope
            continue
        for name, component in region.members.items():
            if component.kept:
                yield name
            elif component.inside is not None:
                yield from _still_kept(component.inside)


def kept_of(flow: Flow, *, has_failed: bool) -> list[str]:
    return list(_kept(flow, flow.root, "", has_failed=has_failed))


def _kept(flow: Flow, container: ContainerState, key: str, *, has_failed: bool) -> Iterator[str]:
    """The sub-jobs to keep, here and inside joblet calls whose own sub-job starts over."""
    spec = flow.net.containers[key]
    scene = Scene.opened(flow.plan, spec, container)
    for region in spec.regions:
        state = scene.region(region)
        if state is None:
            continue
        if _is_kept(scene, state.status, region, has_failed=has_failed):
            yield scene.region_scope(region)
            continue
        for name in region.members:
            component = scene.component(name)
            if component is not None and component.inside is not None:
                yield from _kept(flow, component.inside, name, has_failed=has_failed)


def _is_kept(scene: Scene, status: str, region: Region, *, has_failed: bool) -> bool:
    if status in (PENDING, RUNNING):
        return False
    if not has_failed:
        return True
    members = [scene.component(name) for name in region.members]
    if any(scene.plan.part(name).always for name in region.members):
        return False
    if any(component is not None and _has_died(component) for component in members):
        return False
    state = scene.region(region)
    failures = routing.failures(scene)
    is_dealt_with = status == ERROR and state not in failures and not scene.plan.net.aborts
    return (status == OK and not _handles(scene, region, failures)) or is_dealt_with


def _handles(scene: Scene, region: Region, failures: list[RegionState]) -> bool:
    """Was it led to by the failure of a sub-job that starts over? In a joblet it was, though the call failed all the same."""
    links = [link for name in region.members for link in scene.plan.inbound[name] if link.on is On.SUBJOB_ERROR]
    return any(scene.region(scene.plan.region(link.source)) in failures for link in links)


def _has_died(component: ComponentState) -> bool:
    if component.dies:
        return True
    return component.inside is not None and dying(component.inside) is not None


def recall_dying(flow: Flow) -> None:
    """A job that was dying when it stopped goes on dying."""
    scene = flow.scenes[flow.root.id]
    for region in scene.spec.regions if flow.net.aborts else ():
        state = scene.region(region)
        if state is not None and state.status == ERROR:
            flow.die(ABORTED.format(region.name), *region.members)
    recall_death(flow, scene)


def recall_death(flow: Flow, scene: Scene) -> None:
    component = dying(scene.state)
    if component is not None:
        around = component
        while around.region.container is not scene.state:  # What it lay in has closed; its way out begins here.
            assert around.region.container.opener is not None
            around = around.region.container.opener
        flow.die(DEAD.format(component.name), scene.names[around.place.id])


def settle_kept(flow: Flow, scene: Scene) -> None:
    """Sub-jobs that are there already have closed: what they led to is settled, and nothing is recorded again."""
    for region in scene.bodies:
        state = scene.region(region)
        if state is not None and state.status not in (PENDING, RUNNING):
            settle_closed(flow, scene, region, state)
        elif state is not None:
            _settle_members(flow, scene, region)


def settle_closed(
    flow: Flow, scene: Scene, region: Region, state: RegionState, *, joins_anew: bool | str | None = True
) -> None:
    """`joins_anew`: a join that this sub-job was the last to come to, and that has not started, says so once more: every one, or
    those of one sub-job that starts over."""
    scene.open_regions -= 1
    for name in region.members:
        scene.pending.pop(name, None)
        component = scene.component(name)
        if component is not None:
            settle_ended(flow, scene, name, component)
    for link in flow.plan.of_region[scene.spec.key, region.index]:
        if link.on is On.SYNCHRONISE:
            target = scene.region_scope(flow.plan.region(link.target))
            joining.branch_ended(flow, scene, link, state.status, is_told=joins_anew not in (True, target))
        else:
            flow.settle(scene, link, routing.region_fires(link, state.status))


def settle_ended(flow: Flow, scene: Scene, name: str, component: ComponentState) -> None:
    """A component that has ended: what it led to is settled."""
    scene.pending.pop(name, None)
    scene.component_place(name)
    if component.dies:
        flow.die(DEAD.format(component.name), name)
    for link in flow.plan.outbound[name]:
        if link.on not in OF_REGION:
            flow.settle(scene, link, routing.has_fired(link, component))
    for iterator in flow.plan.awaiting.get(name, ()):
        flow.count_down(scene, iterator)


def settle_so_far(flow: Flow, scene: Scene, lost: str | None = None) -> list[ComponentState]:
    """Settle what has ended in a scope that is open. The components that are at work. `lost`: a sub-job that starts over."""
    at_work: list[ComponentState] = []
    for region in scene.bodies:
        state = scene.region(region)
        if state is not None and state.status not in (PENDING, RUNNING):
            settle_closed(flow, scene, region, state, joins_anew=lost)
            continue
        at_work += _settle_members(flow, scene, region)
    return at_work


def _settle_members(flow: Flow, scene: Scene, region: Region) -> list[ComponentState]:
    """Of a sub-job that is open: what its members have led to is settled. Those that are at work."""
    at_work: list[ComponentState] = []
    for name in region.members:
        component = scene.component(name)
        if component is None:
            continue
        if component.status == RUNNING:
            scene.pending.pop(name, None)
            scene.component_place(name)
            at_work.append(component)
        elif component.status != WAIT:
            settle_ended(flow, scene, name, component)
            scene.unsettled[region.index] -= 1
    return at_work
