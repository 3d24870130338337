"""The context of decisions: the execution, the queues of pending work, and the facts recorded so far.

Law: facts are recorded in rounds. Ends come first, with the edges they fire; then the scopes that close because of them; then
the nodes that start or are skipped (rulebook 1.3). All facts of one decision are appended to the log at once.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

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
from penstock.kernel.values import Json, frozen


@frozen
class Ready:
    """A node has everything it waited for. `refusal`: why it still must not run; None if it may."""

    refusal: Skip | Admission | None = None
    token: Token | None = None
    """The token a step consumes. For a join: a combined token with the args of all consumed tokens."""
    rule: int | None = None
    consumed: tuple[Path, ...] = ()
    """For a join: the paths of all tokens it consumes."""


class Rules(Protocol):
    """What differs between steps and components; the modules `steps` and `components` implement it."""

    def ready(self, d: Decision, view: ScopeView, name: str, path: Path, /) -> Ready | None:
        """None if the node still has to wait. `path`: of the token that waits at a step; `()` for a component."""
        ...

    def start(self, d: Decision, view: ScopeView, name: str, ready: Ready, /) -> None: ...

    def refuse(self, d: Decision, view: ScopeView, name: str, ready: Ready, /) -> None:
        """Record that a token was refused, or that a component is skipped."""
        ...

    def end(self, d: Decision, view: ScopeView, name: str, run: Any, end: Any, /) -> None:
        """Record the end of a run and the edges it fires."""
        ...

    def failure(self, d: Decision, view: ScopeView, /) -> tuple[Json, str | None]:
        """The error that fails the execution, None if there is none; and the event that caused it."""
        ...


class Decision:
    def __init__(self, state: State, execution: Execution, net: Net, judge: Judge, rules: Rules) -> None:
        self.state = state
        self.execution = execution
        self.net = net
        self.plan = plan_of(net)
        self.judge = judge
        self.rules = rules
        self.mandate = Mandate()
        self.witness: Witness | None = None
        """Set during replay: whether a stop was known at the time of a decision cannot be derived, so the record is asked."""
        self.now = 0.0
        self.facts: list[Fact] = []
        self.to_inform: set[str] = set()
        """Sub-jobs held elsewhere whose holders must be informed, because a decision made here affects them."""
        self.no_more: dict[str, Json] = {}
        """Fans that open no more parts -> the error that stopped them, or None if their condition became false."""
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
        """The name of the node that `run` is a run of."""
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
        """Whether the execution is being cancelled or is dying, as far as is known here."""
        execution = self.execution
        return execution.cancelling or bool(execution.deaths or self.mandate.deaths)

    def may_start(self, name: str) -> bool:
        """While the execution is being cancelled, nothing may start. While it is dying, only nodes on the error path, `always`
        nodes, and everything inside them."""
        if self.execution.cancelling:
            return False
        if not self.is_stopping:
            return True
        deaths = tuple(self.deaths)
        if deaths != self._paths[0]:
            self._paths = deaths, self.plan.error_path([name for death in deaths for name in self._nodes_of(death)])
        around = name
        while around:
            part = self.plan.locations[around]
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
        """Whether this sub-job is decided here."""
        return view.state is not self.execution or self.mandate.decides(view.subjob_scope(region))

    def closes(self, view: ScopeView) -> bool:
        """Whether sub-jobs of this scope are closed here. Those of the execution itself are closed by its server only."""
        return view.state is not self.execution or self.mandate.is_whole

    # ---- pending work

    def queue_node(self, view: ScopeView, name: str, path: Path = ()) -> None:
        """Queue a check whether this node may run. `path`: the path of the token waiting there (steps only)."""
        self.nodes.append((view, name, path))

    def queue_closing(self, view: ScopeView, region: Region | None = None) -> None:
        """Queue a check whether this sub-job can close; without `region`, whether the whole scope can."""
        self.closings.append((view, region))

    def queue_dependents(self, view: ScopeView, name: str) -> None:
        """A run has ended or was skipped: queue every node that waits for it, and a check whether its sub-job can close."""
        for link in self.plan.outbound[name]:
            self.queue_node(view, link.target)
        for iterator in self.plan.awaiting.get(name, ()):
            self.queue_node(view, iterator)
        self.queue_closing(view, self.plan.region(name))

    def is_over(self, region: Region, subjob: Subjob) -> bool:
        """Whether all members of a sub-job have ended. In a playbook: nothing runs and no token can move."""
        if self.plan.moves_tokens:
            return not (self.nodes or self.execution.runs or self.execution.ending)
        return subjob.ended >= len(region.members)

    def has_ended(self, view: ScopeView) -> bool:
        """Whether all sub-jobs of a scope have ended."""
        if not view.is_single:
            return view.state.closed == len(view.bodies)
        subjob = view.subjob(view.bodies[0])
        return subjob is not None and self.is_over(view.bodies[0], subjob)

    # ---- recording

    def record(self, fact: Fact) -> None:
        evolve(self.state, fact, self.now)
        self.facts.append(fact)

    def record_own(self, body: Body, *, cause: str | None = None, at: Path = ()) -> None:
        """Record a fact of the execution itself."""
        place = self.execution.place
        self.record(Fact(place.id, (*place.clock, at, self.execution.counter), body, cause))

    def record_next(
        self,
        owner: Run | Pipeline | Subjob | Scope,
        body: Body,
        cause: str | None = PREVIOUS,
        clock: LogicalClock | None = None,
    ) -> None:
        """Record the next fact of a run, a pipeline, a sub-job or an iteration."""
        fact = next_fact(owner, body, cause, clock=clock)
        evolve(self.state, fact, self.now)
        self.facts.append(fact)
