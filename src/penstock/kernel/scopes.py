"""One scope as net and state have it together: what its nodes are called there, and how far each of them is."""

from __future__ import annotations

from penstock.kernel.facts import ArcEnqueued, LinkFired
from penstock.kernel.net import Arc, Link, On, Region
from penstock.kernel.places import Path, Place
from penstock.kernel.plan import Plan
from penstock.kernel.state import ERROR, OK, ComponentRun, Scope, Subjob

LEADS = {OK: On.ITERATION_OK, ERROR: On.ITERATION_ERROR}
"""How the body of an iteration ended -> the links that its end fires."""


class ScopeView:
    __slots__ = ("bodies", "is_single", "key", "plan", "spec", "state", "stem")

    def __init__(self, plan: Plan, state: Scope) -> None:
        if state.key is None:
            state.key = plan.node_of(state.opener.place.id) if state.opener is not None else ""
        self.plan = plan
        self.state = state
        self.key = state.key
        self.spec = plan.containers[state.key]
        self.bodies = plan.bodies[state.key]
        """Its sub-jobs without those that the end of an iteration leads to."""
        self.stem = plan.stems[state.key]
        """What nodes here are called in the net and not in the run: the iterator's name, where its body is a joblet."""
        self.is_single = plan.moves_tokens or (state.index is not None and len(self.bodies) == 1)
        """It is one sub-job, and has its name: a playbook, an iteration whose body is one."""

    # ---- names

    def scope(self, name: str) -> str:
        """What a node is called in this scope."""
        return f"{self.state.prefix}{name.removeprefix(self.stem)}"

    def place(self, name: str, path: Path = ()) -> Place:
        """`path`: of a step run. A component stands at the number of its sub-job and its rank in it."""
        if path:
            return Place(f"{self.scope(name)}@{'.'.join(map(str, path))}", (*self.state.place.clock, path))
        part = self.plan.parts[name]
        return Place(self.scope(name), (*self.state.place.clock, (part.region, part.rank)))

    def subjob_scope(self, region: Region) -> str:
        if self.is_single and region is self.bodies[0]:
            return self.state.place.id
        return f"{self.state.prefix}<{region.name}>"

    def firing(self, edge: Arc | Link, path: Path = ()) -> ArcEnqueued | LinkFired:
        """That an edge fires, in the words of its document. `path`: of the token that an arc sends."""
        if isinstance(edge, Arc):
            return ArcEnqueued(edge.target, list(path), edge.index)
        source, target = self.scope(edge.source), self.scope(edge.target)
        return LinkFired(source, target, edge.on.value, edge.order, edge.index)

    # ---- states

    def component(self, name: str) -> ComponentRun | None:
        return self.state.runs.get(self.scope(name))

    def subjob(self, region: Region) -> Subjob | None:
        return self.state.subjobs.get(self.subjob_scope(region))

    def admits(self, region: Region) -> bool:
        """Is this sub-job to run here, or to be skipped? What handles the end of an iteration comes after its body."""
        on = self.plan.handles[self.key, region.index]
        return not on or LEADS.get(self.state.body) in on

    def handlers(self, status: str) -> list[Region]:
        """What the end of an iteration leads to."""
        return [region for region in self.spec.regions if LEADS[status] in self.plan.handles[self.key, region.index]]
