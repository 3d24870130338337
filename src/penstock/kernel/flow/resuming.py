"""What a resume keeps, and how a decider finds its way back into a state that was folded from the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    RegionState,
    dying,
)
from penstock.kernel.net import On, Region

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


DEAD = "`{}` ended in ERROR and the job dies with it"
ABORTED = "sub-job `{}` ended in ERROR and `on_subjob_error` is abort"


def resume(flow: Flow) -> None:
    """Record the new start. After a crash whatever has closed is kept; after a failure, what ended OK or was dealt with."""
    state = flow.state
    if state.status in ("completed", "cancelled"):
        raise Refused(f"the run is {state.status}; there is nothing to resume")
    kept = kept_of(flow, has_failed=state.status == "failed")
    body = facts.ExecutionStarted(
        state.name, state.digest, state.workload, "", state.trace_id, kind="job", resumed=True, kept=kept
    )
    flow.mark(body)


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
    is_dealt_with = status == ERROR and state not in routing.failures(scene) and not scene.plan.net.aborts
    return status == OK or is_dealt_with


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
