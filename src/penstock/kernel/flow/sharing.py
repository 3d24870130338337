"""A job whose sub-jobs are decided in several places: its server's, and those of the holders of its sub-jobs.

The holder of a sub-job decides what happens inside it; the server decides when sub-jobs start, closes them, and settles what
leads from one to another. What the holder decided is recorded by the server and then heard of here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.kernel import facts
from penstock.kernel.flow import resuming
from penstock.kernel.flow.state import ComponentState, RegionState

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


def adopt(flow: Flow, elsewhere: Iterable[str] = (), only: str | None = None) -> list[ComponentState]:
    """Find one's way into a job that goes on: what has settled is known, and nothing is recorded of it again.

    Gives the components of the job's own sub-jobs that are at work; what lies inside them is their holder's business.
    """
    flow.elsewhere, flow.only = set(elsewhere), only
    flow.scenes.clear()
    at_work = resuming.settle_so_far(flow, flow.stage(flow.root, flow.net.containers[""]))
    resuming.recall_dying(flow)
    flow.move()
    return at_work


def heard(flow: Flow, component: ComponentState) -> None:
    """A component of a sub-job that is held elsewhere has ended or was skipped there, and that has been recorded."""
    scene = flow.scenes[flow.root.id]
    name = component.place.id.removeprefix(flow.root.prefix)
    if component.dies:
        flow.die(resuming.DEAD.format(component.name), name)
    scene.component_place(name)
    scene.pending.pop(name, None)
    region = scene.spec.regions[component.region.index]
    if scene.unsettled[region.index] == 1:  # The last one: from here on the sub-job is ours again, to be closed.
        flow.elsewhere.discard(scene.region_scope(region))
    flow.settle_component(scene, name, component)
    flow.move()


def lose(flow: Flow, region: RegionState) -> None:
    """Whoever held a sub-job is gone: it starts over, and all others stay as they are."""
    state, scope = flow.state, region.place.id
    kept = [other for other in flow.root.regions if other != scope]
    flow.mark(
        facts.ExecutionStarted(
            state.name,
            state.digest,
            state.workload,
            "",
            state.trace_id,
            kind="job",
            resumed=True,
            kept=kept,
            lost=scope,
        )
    )
    adopt(flow, flow.elsewhere - {scope})


def is_members(flow: Flow, component: ComponentState) -> bool:
    """Does it lie in one of the job's own sub-jobs, and not in a joblet or an iteration?"""
    return component.region.container is flow.root
