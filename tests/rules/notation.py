"""Given facts, when a stimulus, then facts: rules of the kernel in one notation for playbooks and jobs.

    case = given(job("a (ok) b"))
    assert case.when(begun()) == ["subjob.started <a>", "component.started a"]
    assert case.when(ok("a")) == ["component.ok a", "edge.fired a (ok) b", "component.started b"]

A stimulus gives the whole list of what follows from it, each fact as one line: its type, its scope, and what matters of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel import facts
from penstock.kernel.decide import Begin, Cancel, Interrupt, Resume, RunOver, decide, opening
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import Fact, RunEnded, TaskEnded, TaskStarted, event_type
from penstock.kernel.fans import Elements, PartOver
from penstock.kernel.judge import Admission, Ended, Selection, Verdict
from penstock.kernel.net import AdmitRule, Arc, FailureMode, Fan, Gate, Link, LoopMode, Net, Node, Task
from penstock.kernel.places import ROOT
from penstock.kernel.state import ERROR, OK, ComponentRun, State, StepRun, Token, next_fact
from tests.flow.nets import job

__all__ = ["Case", "begun", "cancelled", "elements", "failed", "given", "job", "ok", "part", "resumed", "steps"]

Stimulus = Callable[["Case"], object]


# ---- nets of steps


_ARC = re.compile(r"(\w+)(?: if (\w+))?( on failure)?")


def steps(*ways: str, **more: Any) -> Net:
    """`start -> a if x, b on failure`: arcs in their order. More of a step: `joins={"j": ("a", "b")}`, `inclusive={"start"}`,
    `admit={"a": "x"}`, `loops={"start": Fan}`; more of the net: `fail_fast`."""
    arcs: dict[str, list[Arc]] = {}
    for way in ways:
        source, _, targets = way.partition(" -> ")
        found = arcs.setdefault(source, [])
        for text in targets.split(", ") if targets else ():
            target, guard, failure = _ARC.fullmatch(text).groups()  # type: ignore[union-attr]
            found.append(Arc(len(found), target, guard, reads_event=failure is not None))
    names = dict.fromkeys([*arcs, *(arc.target for several in arcs.values() for arc in several)])
    joins: Mapping[str, tuple[str, ...]] = more.get("joins", {})
    admit: Mapping[str, str] = more.get("admit", {})
    nodes = {
        name: Node(
            name,
            (Task("t", "noop"),),
            fan=more.get("loops", {}).get(name),
            gate=Gate.JOIN if name in joins else Gate.TOKEN,
            joins=joins.get(name, ()),
            admit=(AdmitRule(admit[name], True),) if name in admit else None,
            edges=tuple(arcs.get(name, ())),
            first_only=name not in more.get("inclusive", ()),
        )
        for name in names
    }
    failure = FailureMode.FAIL_FAST if more.get("fail_fast") else FailureMode.BEST_EFFORT
    return Net("steps", next(iter(names)), nodes, failure=failure)


def loop(mode: str = "sequential", at_once: int = 1, *, fail_fast: bool = True) -> Fan:
    failure = FailureMode.FAIL_FAST if fail_fast else FailureMode.BEST_EFFORT
    return Fan("{{ items }}", "n", LoopMode(mode), at_once, failure)


# ---- the judge


@dataclass
class Truths:
    """Conditions are true when they are named here; one that is named `!x` cannot be evaluated."""

    true: frozenset[str] = frozenset()
    rounds: int = 3

    def admit(self, node: Node, token: Token) -> Admission:
        for index, rule in enumerate(node.admit or ()):
            if rule.when in self.true:
                return Admission(rule.allow, index)
        return Admission(False)

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        fired: list[tuple[Arc, dict[str, Any]]] = []
        for arc in node.edges:
            if end.status == "failed" and not arc.reads_event:
                continue
            if arc.guard is not None and f"!{arc.guard}" in self.true:
                return Selection(error={"kind": "expression", "message": arc.guard})
            if arc.guard is None or arc.guard in self.true:
                fired.append((arc, {}))
                if node.first_only:
                    break
        return Selection(fired)

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        for link in links:
            if f"!{link.when}" in self.true:
                return Verdict(error={"kind": "expression", "message": str(link.when)})
        return Verdict(tuple(link.index for link in links if link.when in self.true))

    def again(self, node: Node, component: ComponentRun, index: int) -> bool:
        return index < self.rounds


# ---- cases


@dataclass
class Case:
    net: Net
    judge: Truths
    state: State = field(default_factory=State)
    facts: list[Fact] = field(default_factory=list)

    def when(self, stimulus: Stimulus) -> list[str]:
        found = decide(self.state, self.net, stimulus(self), self.judge)
        self.facts += found
        return [line(fact) for fact in found]

    def then(self, *stimuli: Stimulus) -> Case:
        """The same, where nobody asks what follows from these."""
        for stimulus in stimuli:
            self.when(stimulus)
        return self

    def task(self, scope: str, fails: str | None = None, **writes: Any) -> Case:
        """The only task of a pipeline has run, and written this to ctx; or failed."""
        pipeline = self.state.pipelines[scope]
        end = TaskEnded("t", 1, {"status": "ok"}, "continue", -1, writes={"ctx": writes} if writes else {})
        if fails is not None:
            end = TaskEnded("t", 1, {"status": "error"}, "fail", -1, error={"message": fails})
        for body in (TaskStarted("t", "noop", 1), end):
            fact = next_fact(
                pipeline, body, task=pipeline.next_task_run("t") if isinstance(body, TaskStarted) else None
            )
            evolve(self.state, fact, 0.0)
            self.facts.append(fact)
        return self

    @property
    def status(self) -> str:
        return self.state.root.status

    @property
    def ctx(self) -> dict[str, Any]:
        return self.state.root.ctx.values


def given(net: Net, *true: str, rounds: int = 3) -> Case:
    """A run that has just been opened. `true`: the conditions that hold."""
    case = Case(net, Truths(frozenset(true), rounds))
    first = opening(net, ROOT, {})
    evolve(case.state, first, 0.0)
    case.facts.append(first)
    return case


def line(fact: Fact) -> str:
    body = fact.body
    said = f"{event_type(body)} {fact.scope}".rstrip()
    match body:
        case facts.LinkFired():
            return f"edge.fired {body.source} ({body.on}) {body.target}"
        case facts.ComponentSkipped():
            return f"{said}: {body.cause}"
        case facts.GlobalSet():
            local = ", local" if body.local else ""
            return f"global.set {body.key}: {body.old} -> {body.new} by {body.writer}{local}"
        case facts.ArcsSelected():
            unhandled = ", unhandled" if body.unhandled else ""
            return f"next.selected {fact.scope} -> {', '.join(body.steps) or 'nothing'}{unhandled}"
        case facts.ArcEnqueued():
            return f"next.enqueued {fact.scope} -> {body.step}"
        case facts.TokenStranded():
            return f"{said}: nothing from {', '.join(body.missing)}"
        case facts.IteratorCompleted():
            return f"{said}: {body.ok} ok, {body.failed} failed"
        case facts.ExecutionStarted():
            return f"job.started, keeping {', '.join(body.kept) or 'nothing'}"
        case facts.ExecutionResumed():
            return f"playbook.resumed, reopening {', '.join(body.reopened) or 'nothing'}"
        case facts.ExecutionEnded() | facts.IterationEnded() | facts.ComponentEnded() if isinstance(body.error, dict):
            return f"{said}: {body.error.get('message')}"
    return said


# ---- stimuli


def begun() -> Stimulus:
    return lambda case: Begin()


def ok(scope: str, **globals_: Any) -> Stimulus:
    """A run is over, and well. Of a component: all its output ports have a row, and it wrote these globals."""
    return lambda case: RunOver(case.state.runs[scope], _end(case, scope, None, globals_))


def failed(scope: str, message: str = "no", *, dies: bool = False) -> Stimulus:
    return lambda case: RunOver(case.state.runs[scope], _end(case, scope, message, {}, dies=dies))


def _end(case: Case, scope: str, message: str | None, globals_: dict[str, Any], *, dies: bool = False) -> Any:
    run, error = case.state.runs[scope], {"kind": "x", "message": message} if message is not None else None
    if isinstance(run, StepRun):
        looped = run.fan is not None
        return RunEnded(run.step, "failed" if error else "done", error=error, looped=looped)
    name = re.sub(r".*\]\.", "", scope)
    ports = {link.port for link in case.net.links if link.source == name and link.port}
    outputs: dict[str, Any] = {} if error else {port: {"rows": 1} for port in ports}
    return Ended(ERROR if error else OK, outputs=outputs, error=error, writes=globals_, dies=dies)


def elements(scope: str, items: list[Any] | None, at_once: int = 1, mode: str = "accumulate") -> Stimulus:
    """None where a condition is judged before each."""
    total = None if items is None else len(items)
    return lambda case: Elements(case.state.runs[scope], total, items, at_once, mode)


def part(scope: str, index: int) -> Stimulus:
    """The pipeline of an iteration has come to its end."""
    return lambda case: PartOver(case.state.runs[scope], index)


def cancelled() -> Stimulus:
    return lambda case: Cancel("enough")


def interrupted() -> Stimulus:
    return lambda case: Interrupt("a signal")


def resumed() -> Stimulus:
    return lambda case: Resume([])
