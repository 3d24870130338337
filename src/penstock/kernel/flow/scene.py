"""A scene: how far the links of one open container have settled. Worked out from state and net, never recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.kernel.flow.plan import FlowPlan
from penstock.kernel.flow.state import ComponentState, ContainerState, RegionState
from penstock.kernel.net import Container, Link, On, Region
from penstock.kernel.places import Place
from penstock.kernel.values import Json


@dataclass(slots=True)
class Scene:
    plan: FlowPlan
    spec: Container
    state: ContainerState
    settled: dict[int, bool] = field(default_factory=dict)
    """Link -> did it fire?"""
    pending: dict[str, int] = field(default_factory=dict)
    """Node -> how many of its links have not settled."""
    unsettled: dict[int, int] = field(default_factory=dict)
    """Sub-job -> how many of its members have not settled."""
    branches: dict[int, str] = field(default_factory=dict)
    """Synchronise link -> how its branch ended."""
    open_regions: int = 0
    is_closing: bool = False
    names: dict[str, str] = field(default_factory=dict)
    """Scope id -> the node that it is a run of."""
    bodies: tuple[Region, ...] = ()
    """Its sub-jobs without those that the end of an iteration leads to."""
    held: tuple[str, Json] | None = None
    """How the one sub-job of an iteration ended, until the iteration's own end is recorded."""
    stem: str = ""
    """What nodes here are called in the net and not in the run: the iterator's name, where its body is a joblet."""

    @staticmethod
    def opened(plan: FlowPlan, spec: Container, state: ContainerState) -> Scene:
        bodies = tuple(region for region in spec.regions if not plan.is_handler(region))
        scene = Scene(plan, spec, state, bodies=bodies, stem=_stem(plan, spec.key))
        for region in bodies:
            scene.admit(region)
        return scene

    def admit(self, region: Region) -> None:
        """This sub-job is to run here, or to be skipped; either way it will close."""
        self.unsettled[region.index] = len(region.members)
        self.open_regions += 1
        for name in region.members:
            links = self.plan.inbound[name]
            self.pending[name] = len(links) + len(self.plan.awaited[name])

    # ---- names

    def scope(self, name: str) -> str:
        """What a node is called in this scope."""
        return f"{self.state.prefix}{name.removeprefix(self.stem)}"

    def component(self, name: str) -> ComponentState | None:
        return self.state.components.get(self.scope(name))

    def component_place(self, name: str) -> Place:
        part = self.plan.part(name)
        scope = self.scope(name)
        self.names[scope] = name
        return Place(scope, (*self.state.place.clock, (part.region, part.rank)))

    def region_scope(self, region: Region) -> str:
        if self.is_single and region is self.bodies[0]:
            return self.state.place.id
        return f"{self.state.prefix}<{region.name}>"

    @property
    def is_single(self) -> bool:
        """An iteration that is one sub-job, and has its name."""
        return self.state.index is not None and len(self.bodies) == 1

    def region(self, region: Region) -> RegionState | None:
        return self.state.regions.get(self.region_scope(region))

    # ---- links

    def control(self, name: str) -> list[Link]:
        return [link for link in self.plan.inbound[name] if link.on is not On.DATA]

    def data(self, name: str) -> list[Link]:
        return [link for link in self.plan.inbound[name] if link.on is On.DATA]


def _stem(plan: FlowPlan, key: str) -> str:
    while key and not plan.is_body(key):
        key = plan.part(key).container
    return f"{key}." if key else ""
