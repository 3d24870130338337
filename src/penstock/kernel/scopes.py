"""One scope as seen from the net and the state together: the names of its nodes there, and their states."""

from __future__ import annotations

from penstock.kernel.facts import ArcEnqueued, LinkFired
from penstock.kernel.net import Arc, Link, On, Region
from penstock.kernel.places import Path, Place
from penstock.kernel.plan import Plan
from penstock.kernel.state import ERROR, OK, ComponentRun, Scope, Subjob

LEADS = {OK: On.ITERATION_OK, ERROR: On.ITERATION_ERROR}
"""Status of an iteration's body -> the kind of links that its end fires."""


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
        """Its sub-jobs, without the handlers of an iteration's end."""
        self.stem = plan.stems[state.key]
        """The prefix that nodes here have in the net but not in the run: the iterator's name, if its body is a joblet."""
        self.is_single = plan.moves_tokens or (state.index is not None and len(self.bodies) == 1)
        """The scope and its only sub-job share one id: a playbook, or an iteration whose body is one sub-job."""

    # ---- names

    def scope(self, name: str) -> str:
        """The scope id of a node in this scope."""
        return f"{self.state.prefix}{name.removeprefix(self.stem)}"

    def place(self, name: str, path: Path = ()) -> Place:
        """The place of a node. `path`: of a step run. The path of a component is its sub-job's number and its rank in it."""
        if path:
            return Place(f"{self.scope(name)}@{'.'.join(map(str, path))}", (*self.state.place.clock, path))
        part = self.plan.locations[name]
        return Place(self.scope(name), (*self.state.place.clock, (part.region, part.rank)))

    def subjob_scope(self, region: Region) -> str:
        if self.is_single and region is self.bodies[0]:
            return self.state.place.id
        return f"{self.state.prefix}<{region.name}>"

    def firing(self, edge: Arc | Link, path: Path = ()) -> ArcEnqueued | LinkFired:
        """The fact that an edge fires. `path`: of the token that an arc sends."""
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
        """Whether nodes of this sub-job may be decided now. Handlers of an iteration's end come after its body."""
        on = self.plan.handles[self.key, region.index]
        return not on or LEADS.get(self.state.body) in on

    def handlers(self, status: str) -> list[Region]:
        """The sub-jobs that handle an iteration that ended with this status."""
        return [region for region in self.spec.regions if LEADS[status] in self.plan.handles[self.key, region.index]]
