"""The end of a sub-job, and of what holds it: a joblet call, an iteration, the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.kernel import facts
from penstock.kernel.flow import iterating, joining, resuming, routing
from penstock.kernel.flow.ending import Ended
from penstock.kernel.flow.scene import Scene
from penstock.kernel.flow.state import ERROR, OK, SKIPPED, ComponentState, RegionState, dying, failed_iterations
from penstock.kernel.kept import closed, part
from penstock.kernel.net import On, Opening, Region
from penstock.kernel.places import event_name
from penstock.kernel.values import Json

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow

ENDS: dict[str, Literal["ok", "error", "skipped"]] = {OK: "ok", ERROR: "error", SKIPPED: "skipped"}


def close_region(flow: Flow, scene: Scene, region: Region) -> None:
    state = scene.region(region)
    assert state is not None
    status, error = routing.aggregate(flow, scene, region)
    scene.open_regions -= 1
    if scene.is_single and region is scene.bodies[0]:
        scene.held = (status, error)
        close_if_over(flow, scene)
        return
    _record_region_end(flow, scene, region, state, status, error)
    for link in flow.plan.of_region[scene.spec.key, region.index]:
        if link.on is On.SYNCHRONISE:
            joining.branch_ended(flow, scene, link, status)
            continue
        fired = routing.region_fires(link, status)
        if fired and not link.hidden:
            cause = event_name(state.place.id, state.counter - 1)
            body = facts.LinkFired(
                scene.scope(link.source), scene.scope(link.target), link.on.value, link.order, link.index
            )
            flow.in_region(scene, region, state, body, cause)
        flow.settle(scene, link, fired)
    close_if_over(flow, scene)


def close_if_over(flow: Flow, scene: Scene) -> None:
    if not scene.open_regions:
        _close(flow, scene)


def _record_region_end(flow: Flow, scene: Scene, region: Region, state: RegionState, status: str, error: Json) -> None:
    aborts = status == ERROR and flow.net.aborts and scene.spec.opening is Opening.JOB
    ended = ENDS[status]
    body = facts.SubjobEnded(region.name, ended, region.index, scene.state.id, error, aborts)
    flow.in_region(scene, region, state, body, None)
    if status != SKIPPED:
        _checkpoint(flow, scene, region, state)
    if aborts:
        flow.die(resuming.ABORTED.format(region.name), *region.members)


def _checkpoint(flow: Flow, scene: Scene, region: Region, state: RegionState) -> None:
    body = routing.checkpoint(flow.state.workload, state, state.status)
    flow.in_region(scene, region, state, body, event_name(state.place.id, state.counter - 1))


def _close(flow: Flow, scene: Scene) -> None:
    """All sub-jobs of a scope have closed."""
    if scene.is_closing:
        return
    scene.is_closing = True
    container = scene.state
    if container.opener is None:
        _end(flow)
    elif container.index is not None:
        iterating.scope_closed(flow, scene)
    else:
        _end_call(flow, scene, container.opener)


def _end_call(flow: Flow, scene: Scene, call: ComponentState) -> None:
    """All sub-jobs of a joblet have closed, and so the call ends."""
    del flow.scenes[scene.state.id]
    outer = flow.scene_of(call)
    name = outer.names[call.place.id]
    failed = routing.failures(scene)
    end = Ended(ERROR, error=routing.first_error(failed)) if failed else Ended()
    for link in flow.plan.proxies[name]:
        source = scene.component(link.source)
        if source is not None and source.status == OK and link.port in source.outputs:
            end.outputs[link.to_port] = source.outputs[link.port]
            end.rows_out[link.to_port] = source.rows_out.get(link.port, 0)
    flow.finish(outer, name, call, end)


def _end(flow: Flow) -> None:
    status: Literal["completed", "failed", "cancelled"] = "completed"
    error: Json = None
    exit_code: int | None = None
    dead = dying(flow.root)
    failed = routing.failures(flow.scenes[flow.root.id])
    if flow.state.cancelling:
        status = "cancelled"
    elif dead is not None:
        status, error, exit_code = "failed", routing.with_component(dead), dead.exit_code or 1
    elif failed:
        status, error = "failed", routing.first_error(failed)
    kept: Json = None
    if status == "completed":
        kept = closed(flow.state.kept, part(flow.state.kept, "values"), flow.root.marks)
    body = facts.ExecutionEnded(status, error, "job", exit_code, failed_iterations(flow.root), kept)
    flow.mark(body, at=(len(flow.net.containers[""].regions),))
