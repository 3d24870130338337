"""One decision under way: what it is about, what is still to be looked at, and the facts so far.

Law: facts are recorded in rounds. What has ended is told first, with the edges that it fired; then what has closed with that;
then what may start or is skipped (rulebook 1.3). All facts of one decision go into the log at once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from penstock.kernel.evolve import evolve
from penstock.kernel.facts import Body, Fact, RunEnded
from penstock.kernel.judge import Admission, Ended, Judge, Witness
from penstock.kernel.mandate import Mandate
from penstock.kernel.net import Net, Node, Region
from penstock.kernel.places import LogicalClock, Path
from penstock.kernel.plan import plan_of
from penstock.kernel.reasons import Skip
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import (
    PREVIOUS,
    Death,
    Execution,
    Pipeline,
    Run,
    Scope,
    State,
    Subjob,
    Token,
    next_fact,
)
from penstock.kernel.values import Json


@dataclass(frozen=True, slots=True)
class Ready:
    """All that a node waited for has come in. `refusal`: why it does not run all the same."""

    refusal: Skip | Admission | None = None
    token: Token | None = None
    """Of a step: the one that it takes, with its args; of a join those of all that it takes."""
    rule: int | None = None
    consumed: tuple[Path, ...] = ()
    """Of a join: all tokens that it takes."""


class Decision:
    def __init__(self, state: State, execution: Execution, net: Net, judge: Judge, rules: ModuleType | Any) -> None:
        self.state = state
        self.execution = execution
        self.net = net
        self.plan = plan_of(net)
        self.judge = judge
        self.rules: Any = rules
        """What differs between steps and components: `penstock.kernel.steps`, `penstock.kernel.components`."""
        self.mandate = Mandate()
        self.witness: Witness | None = None
        """In a replay: whether a stop was known where something was decided is not to be worked out, only told."""
        self.now = 0.0
        self.facts: list[Fact] = []
        self.left: set[str] = set()
        """Sub-jobs that are held elsewhere and in which something can be decided because of what was decided here."""
        self.stops: dict[str, Json] = {}
        """Fans that open no more parts, with the error that keeps them from it."""
        self.ends: deque[tuple[Run, Ended | RunEnded]] = deque()
        self.closings: deque[tuple[ScopeView, Region | None]] = deque()
        self.nodes: deque[tuple[ScopeView, str, Path]] = deque()
        self.fans: deque[Run] = deque()
        self.root = ScopeView(self.plan, execution)
        self._paths: tuple[tuple[Death, ...], frozenset[str]] = ((), frozenset())

    # ---- where things are

    def view_of(self, run: Run) -> ScopeView:
        return ScopeView(self.plan, run.subjob.scope)

    def name_of(self, run: Run) -> str:
        """The node that this is a run of."""
        if not run.node:
            run.node = self.plan.node_of(run.place.id)
        return run.node

    def node_of(self, run: Run) -> Node:
        return self.net.nodes[self.name_of(run)]

    # ---- what may happen here

    @property
    def deaths(self) -> list[Death]:
        return self.execution.deaths or self.mandate.deaths

    @property
    def is_stopping(self) -> bool:
        """Is it being cancelled, or does it die, as far as is known here?"""
        execution = self.execution
        return execution.cancelling or bool(execution.deaths or self.mandate.deaths)

    def may_start(self, name: str) -> bool:
        """One that is being cancelled starts nothing; one that dies, only its error path and what runs always, with all that
        these open."""
        if self.execution.cancelling:
            return False
        if not self.is_stopping:
            return True
        deaths = tuple(self.deaths)
        if deaths != self._paths[0]:
            self._paths = deaths, self.plan.error_path([name for death in deaths for name in self._nodes_of(death)])
        around = name
        while around:
            part = self.plan.parts[around]
            if around in self._paths[1] or part.always:
                return True
            around = part.container
        return False

    def _nodes_of(self, death: Death) -> tuple[str, ...]:
        if not death.scope.endswith(">"):
            return (self.plan.node_of(death.scope),)
        subjob = self.state.subjobs.get(death.scope)
        return self.plan.containers[""].regions[subjob.index].members if subjob is not None else ()

    def decides(self, view: ScopeView, region: Region) -> bool:
        """Is what happens in this sub-job decided here?"""
        return view.state is not self.execution or self.mandate.decides(view.subjob_scope(region))

    def closes(self, view: ScopeView) -> bool:
        """Are sub-jobs of this scope closed here? Those of the execution itself are closed by its server."""
        return view.state is not self.execution or self.mandate.is_whole

    # ---- what there is to decide

    def look_at(self, view: ScopeView, name: str, path: Path = ()) -> None:
        """May this node run now? `path`: the token that waits there."""
        self.nodes.append((view, name, path))

    def check(self, view: ScopeView, region: Region | None = None) -> None:
        """Has this sub-job closed, or the whole scope?"""
        self.closings.append((view, region))

    def settle(self, view: ScopeView, name: str) -> None:
        """A run has ended or was skipped: whatever waits for that is looked at, and its sub-job may be over."""
        for link in self.plan.outbound[name]:
            self.look_at(view, link.target)
        for iterator in self.plan.awaiting.get(name, ()):
            self.look_at(view, iterator)
        self.check(view, self.plan.region(name))

    def is_over(self, region: Region, subjob: Subjob) -> bool:
        """Have all members of a sub-job ended? Those of a playbook, when nothing runs and no token can move."""
        if self.plan.moves_tokens:
            return not (self.nodes or self.execution.runs or self.execution.ending)
        return subjob.ended >= len(region.members)

    def has_ended(self, view: ScopeView) -> bool:
        """Have all sub-jobs of a scope come to their ends?"""
        if not view.is_single:
            return view.state.closed == len(view.bodies)
        subjob = view.subjob(view.bodies[0])
        return subjob is not None and self.is_over(view.bodies[0], subjob)

    # ---- recording

    def record(self, fact: Fact) -> None:
        evolve(self.state, fact, self.now)
        self.facts.append(fact)

    def mark(self, body: Body, *, cause: str | None = None, at: Path = ()) -> None:
        """A fact of the execution itself."""
        place = self.execution.place
        self.record(Fact(place.id, (*place.clock, at, self.execution.counter), body, cause))

    def tell(
        self,
        holder: Run | Pipeline | Subjob | Scope,
        body: Body,
        cause: str | None = PREVIOUS,
        clock: LogicalClock | None = None,
    ) -> None:
        """The next fact of a run, a pipeline, a sub-job or an iteration."""
        fact = next_fact(holder, body, cause, clock=clock)
        evolve(self.state, fact, self.now)
        self.facts.append(fact)
