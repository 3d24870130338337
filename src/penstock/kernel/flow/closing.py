"""The end of a sub-job, and of what holds it: a joblet call, an iteration, the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.kernel import facts
from penstock.kernel.facts import Fact
from penstock.kernel.flow import iterating, routing
from penstock.kernel.flow.ending import Ended
from penstock.kernel.flow.scope import Scope
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    RUNNING,
    SETTLED,
    SKIPPED,
    ComponentState,
    RegionState,
    dying,
    failed_iterations,
)
from penstock.kernel.kept import closed, part
from penstock.kernel.net import Link, On, Opening, Region
from penstock.kernel.places import event_name
from penstock.kernel.values import Json

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow

ENDS: dict[str, Literal["ok", "error", "skipped"]] = {OK: "ok", ERROR: "error", SKIPPED: "skipped"}


def close_region(flow: Flow, scope: Scope, region: Region) -> None:
    """Close a sub-job whose members have all ended. Whoever holds it leaves that to the server."""
    state = scope.region(region)
    if state is None or state.status in SETTLED or state.ended < len(region.members) or not flow.closes(scope):
        return
    flow.mandate.elsewhere.discard(state.place.id)
    if scope.is_single and region is scope.bodies[0]:
        close_scope(flow, scope)
        return
    status, error = routing.aggregate(flow, scope, region)
    _record_region_end(flow, scope, region, state, status, error)
    for link in flow.plan.of_region[scope.key, region.index]:
        if link.on is On.SYNCHRONISE:
            join(flow, scope, link)
        elif routing.region_fires(link, status) and not link.hidden:
            cause = event_name(state.place.id, state.counter - 1)
            flow.in_region(scope, region, state, _fired(scope, link), cause)
        flow.look_at(scope, link.target)
    close_scope(flow, scope)


def _fired(scope: Scope, link: Link) -> facts.LinkFired:
    return facts.LinkFired(scope.scope(link.source), scope.scope(link.target), link.on.value, link.order, link.index)


def join(flow: Flow, scope: Scope, link: Link) -> None:
    """Record that a join is reached, once, when its last branch has ended."""
    place = scope.place(link.target)
    is_told = place.id in flow.tree.flow.joined or scope.component(link.target) is not None
    if is_told or link.hidden or not flow.closes(scope) or not routing.joins(scope, link):
        return
    for one in flow.plan.joins[link.target]:
        flow.record(Fact(place.id, (*place.clock, flow.counter(place.id)), _fired(scope, one)))


def _record_region_end(flow: Flow, scope: Scope, region: Region, state: RegionState, status: str, error: Json) -> None:
    aborts = status == ERROR and flow.net.aborts and scope.spec.opening is Opening.JOB
    ended = ENDS[status]
    body = facts.SubjobEnded(region.name, ended, region.index, scope.state.id, error, aborts)
    flow.in_region(scope, region, state, body, None)
    if status != SKIPPED:
        checkpoint = routing.checkpoint(flow.state.workload, state, state.status)
        flow.in_region(scope, region, state, checkpoint, event_name(state.place.id, state.counter - 1))


def close_scope(flow: Flow, scope: Scope) -> None:
    """Close a scope whose sub-jobs have all closed."""
    container = scope.state
    if container.index is not None:
        iterating.close(flow, scope)
    elif container.closed < len(scope.bodies):
        return
    elif container.opener is None:
        _end(flow)
    elif container.opener.status == RUNNING:
        _end_call(flow, scope, container.opener)


def _end_call(flow: Flow, scope: Scope, call: ComponentState) -> None:
    """All sub-jobs of a joblet have closed, and so the call ends."""
    name = flow.name_of(call)
    failed = routing.failures(scope)
    end = Ended(ERROR, error=routing.first_error(failed)) if failed else Ended()
    for link in flow.plan.proxies[name]:
        source = scope.component(link.source)
        if source is not None and source.status == OK and link.port in source.outputs:
            end.outputs[link.to_port] = source.outputs[link.port]
            end.rows_out[link.to_port] = source.rows_out.get(link.port, 0)
    flow.finish(call, end)


def _end(flow: Flow) -> None:
    if flow.state.status != "running" or not flow.mandate.is_whole:
        return
    status: Literal["completed", "failed", "cancelled"] = "completed"
    error: Json = None
    exit_code: int | None = None
    dead = dying(flow.root)
    failed = routing.failures(Scope(flow.plan, flow.root))
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
