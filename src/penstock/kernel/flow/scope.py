"""One scope of a component net: what its nodes are called there, and how far each of them is. Worked out from net and state."""

from __future__ import annotations

from penstock.kernel.flow.plan import FlowPlan
from penstock.kernel.flow.state import ComponentState, ContainerState, RegionState
from penstock.kernel.net import Link, On, Region
from penstock.kernel.places import Place


class Scope:
    __slots__ = ("bodies", "key", "plan", "spec", "state", "stem")

    def __init__(self, plan: FlowPlan, state: ContainerState) -> None:
        if state.key is None:
            state.key = plan.node_of(state.opener.place.id) if state.opener is not None else ""
        self.plan = plan
        self.state = state
        self.key = state.key
        self.spec = plan.net.containers[state.key]
        self.bodies = plan.bodies[state.key]
        """Its sub-jobs without those that the end of an iteration leads to."""
        self.stem = plan.stems[state.key]
        """What nodes here are called in the net and not in the run: the iterator's name, where its body is a joblet."""

    # ---- names

    def scope(self, name: str) -> str:
        """What a node is called in this scope."""
        return f"{self.state.prefix}{name.removeprefix(self.stem)}"

    def place(self, name: str) -> Place:
        part = self.plan.part(name)
        return Place(self.scope(name), (*self.state.place.clock, (part.region, part.rank)))

    def region_scope(self, region: Region) -> str:
        if self.is_single and region is self.bodies[0]:
            return self.state.place.id
        return f"{self.state.prefix}<{region.name}>"

    @property
    def is_single(self) -> bool:
        """An iteration that is one sub-job, and has its name."""
        return self.state.index is not None and len(self.bodies) == 1

    # ---- states

    def component(self, name: str) -> ComponentState | None:
        return self.state.components.get(self.scope(name))

    def region(self, region: Region) -> RegionState | None:
        return self.state.regions.get(self.region_scope(region))

    def region_of(self, name: str) -> RegionState | None:
        return self.region(self.plan.region(name))

    def admits(self, region: Region) -> bool:
        """Is this sub-job to run here, or to be skipped? What handles the end of an iteration comes after its body."""
        on = self.plan.handles[self.key, region.index]
        return not on or (bool(self.state.body) and leading(self.state.body) in on)

    def handlers(self) -> list[Region]:
        """The sub-jobs that the end of an iteration has led to."""
        return handlers_of(self, leading(self.state.body)) if self.state.body else []

    # ---- links

    def control(self, name: str) -> list[Link]:
        return [link for link in self.plan.inbound[name] if link.on is not On.DATA]

    def data(self, name: str) -> list[Link]:
        return [link for link in self.plan.inbound[name] if link.on is On.DATA]


def leading(status: str) -> On:
    """The link that the end of an iteration fires."""
    return On.ITERATION_ERROR if status == "ERROR" else On.ITERATION_OK


def handlers_of(scope: Scope, on: On) -> list[Region]:
    return [region for region in scope.spec.regions if on in scope.plan.handles[scope.key, region.index]]
