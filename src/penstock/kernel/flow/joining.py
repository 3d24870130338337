"""Joins: the links of a synchronise settle together, when the last of its branches has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernel import facts
from penstock.kernel.facts import Fact
from penstock.kernel.flow.scene import Scene
from penstock.kernel.flow.state import ERROR, SKIPPED
from penstock.kernel.net import Link, On

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


def branch_ended(flow: Flow, scene: Scene, link: Link, status: str, *, is_told: bool = False) -> None:
    """A join waits for all of its branches, then all of its links fire or none (D35). `is_told`: the log has it already."""
    scene.branches[link.index] = status
    links = [one for one in flow.plan.inbound[link.target] if one.on is On.SYNCHRONISE]
    if any(one.index not in scene.branches for one in links):
        return
    ends = [scene.branches[one.index] for one in links]
    fired = ERROR not in ends and any(end != SKIPPED for end in ends)
    place = scene.component_place(link.target)
    if fired and not is_told and scene.component(link.target) is None:  # After a resume the join may be there already.
        for one in links if not link.hidden else ():
            body = facts.LinkFired(scene.scope(one.source), scene.scope(one.target), one.on.value, one.order, one.index)
            flow.record(Fact(place.id, (*place.clock, flow.counter(place.id)), body))
    for one in links:
        flow.settle(scene, one, fired)
