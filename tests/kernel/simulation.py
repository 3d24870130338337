"""A kernel with nothing around it: facts kept in a list, verdicts and outcomes drawn from a seed by place, ends in any order.

Verdicts depend on where a run stands and never on when it ran, so two simulations with one seed and different orders are
"equal runs" in the sense of D22.
"""

from __future__ import annotations

import copy
import hashlib
import random
from dataclasses import dataclass, field

from penstock.kernel.decide import Begin, Cancel, Decider, Resume, RunOver, opening
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ExecutionEnded, Fact, RunEnded, RunScheduled
from penstock.kernel.judge import Admission, Selection, Unasked
from penstock.kernel.net import Arc, FailureMode, Gate, Limits, Net, Node
from penstock.kernel.places import ROOT
from penstock.kernel.state import Execution, State, StepRun, Token


def draw(seed: int, *about: object) -> float:
    text = repr((seed, *about)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


@dataclass
class DrawnJudge(Unasked):
    """`odds` of an arc firing shrink with the length of the way, so that every simulation ends."""

    seed: int
    odds: float = 0.7
    refusals: float = 0.1

    def admit(self, node: Node, token: Token) -> Admission:
        return Admission(draw(self.seed, "admit", token.path, node.name) >= self.refusals, 0)

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        hops = sum(run.path) + len(run.path) - 1
        fired = []
        for edge in node.edges:
            if draw(self.seed, "arc", run.place.id, edge.index) < self.odds * 0.85**hops:
                fired.append((edge, {"from": run.place.id}))
                if node.first_only:
                    break
        writes = {"ctx": {f"k{run.path[0] % 3}": run.place.id}, "append": {"all": [run.place.id]}}
        return Selection(fired, writes)


@dataclass
class Simulation:
    net: Net
    judge: DrawnJudge
    facts: list[Fact] = field(default_factory=list)
    tree: State = field(default_factory=State)

    @property
    def state(self) -> Execution:
        return self.tree.root

    def when(self, stimulus: object) -> list[Fact]:
        """All facts of one decision happen at one time."""
        decider = Decider(self.tree, self.tree.root, self.net, self.judge)
        facts = decider.decide(stimulus, float(len(self.facts)))
        self.facts += copy.deepcopy(facts)
        return facts

    def end(self, run: StepRun, status: str | None = None) -> None:
        failed = status == "failed" or (status is None and draw(self.judge.seed, "end", run.place.id) < 0.2)
        body = RunEnded(
            run.step, "failed" if failed else "done", result=run.place.id, error={"message": "no"} if failed else None
        )
        self.when(RunOver(run, body))

    def cancel(self) -> None:
        self.when(Cancel("enough"))

    def resume(self) -> None:
        self.when(Resume([]))

    def start(self) -> None:
        first = opening(self.net, ROOT, {})
        evolve(self.tree, first, 0.0)
        self.facts.append(first)
        self.when(Begin())

    def run(self, order: random.Random) -> None:
        self.start()
        while self.state.status == "running":
            runs = sorted(self.state.runs)
            self.end(self.state.runs[order.choice(runs)])


def folded(facts: list[Fact]) -> State:
    state = State()
    for fact in copy.deepcopy(facts):
        evolve(state, fact, 0.0)
    return state


def timeless(state: State) -> State:
    """Without the times of its facts, which a list of facts does not have."""
    for execution in state.executions.values():
        execution.started_at = execution.resumed_at = 0.0
        execution.ended_at = 0.0 if execution.ended_at is not None else None
        for one in [
            *execution.runs.values(),
            *(failed.run for failed in execution.unhandled if failed.run is not None),
        ]:
            one.scheduled_at = one.started_at = 0.0
    return state


def canonical(facts: list[Fact]) -> list[tuple[object, ...]]:
    """Sorted by logical clock; a visit's number is counted again in that order, since racing tokens number it as they come."""
    lines: list[tuple[object, ...]] = []
    for fact in sorted(facts, key=lambda fact: fact.clock):
        body = fact.body
        if isinstance(body, RunScheduled):
            body = RunScheduled(body.step, body.path, 0, body.args, body.rule, body.tokens, body.continues)
        lines.append((fact.scope, fact.clock, repr(body), fact.cause))
    return lines


def ends(facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if isinstance(fact.body, ExecutionEnded)]


def chain(*names: str, first_only: bool = True) -> Net:
    """A straight net."""
    nodes = {}
    for at, name in enumerate(names):
        edges = (Arc(0, names[at + 1]),) if at + 1 < len(names) else ()
        nodes[name] = Node(name, edges=edges, first_only=first_only)
    return Net("chain", names[0], nodes)


def random_net(seed: int, size: int, joins: bool) -> Net:
    """Any graph, cycles included; with `joins`, some nodes wait for all the nodes that lead to them."""
    names = [f"n{index}" for index in range(size)]
    nodes: dict[str, Node] = {}
    into: dict[str, set[str]] = {name: set() for name in names}
    for at, name in enumerate(names):
        reach = names[at + 1 :] if joins else names
        count = int(draw(seed, "fan", name) * 4)
        targets = [reach[int(draw(seed, "edge", name, k) * len(reach))] for k in range(count)] if reach else []
        for target in targets:
            into[target].add(name)
        admit = () if draw(seed, "gate", name) < 0.3 else None
        nodes[name] = Node(
            name,
            edges=tuple(Arc(k, target) for k, target in enumerate(targets)),
            first_only=draw(seed, "mode", name) < 0.4,
            admit=admit,
        )
    if joins:
        for name in names[1:]:
            if len(into[name]) > 1 and draw(seed, "join", name) < 0.5:
                old = nodes[name]
                nodes[name] = Node(
                    name, edges=old.edges, first_only=old.first_only, gate=Gate.JOIN, joins=tuple(sorted(into[name]))
                )
    mode = FailureMode.BEST_EFFORT
    return Net("random", names[0], nodes, limits=Limits(max_step_visits=10_000), failure=mode)
