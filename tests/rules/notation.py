"""Given facts, when a stimulus, then facts: rules of the kernel in one notation for playbooks and jobs.

    case = given(job("a (ok) b"))
    assert case.when(begun()) == ["subjob.started <a>", "component.started a"]
    assert case.when(ok("a")) == ["component.ok a", "edge.fired a (ok) b", "component.started b"]

A stimulus gives the whole list of what follows from it, each fact as one line: its type, its scope, and what matters of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_text
from penstock.kernel import facts
from penstock.kernel.decide import Begin, Cancel, GiveUp, GoOn, Interrupt, Lost, Resume, RunOver, decide, opening
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import Fact, RunEnded, TaskEnded, TaskStarted, event_type
from penstock.kernel.fans import Claim, Elements, PartOver
from penstock.kernel.judge import Admission, Ended, Selection, Verdict
from penstock.kernel.net import (
    AdmitRule,
    Arc,
    Backoff,
    Do,
    FailureMode,
    Fan,
    Gate,
    Limits,
    Link,
    LoopMode,
    Net,
    Node,
    Task,
    Writes,
)
from penstock.kernel.pipeline import Verdict as PolicyVerdict
from penstock.kernel.pipeline import advance
from penstock.kernel.places import ROOT
from penstock.kernel.state import ERROR, OK, ComponentRun, State, StepRun, Token, next_fact
from penstock.worker.claims import ClaimedValues
from tests.flow.nets import job
from tests.spec_jobs.support import job as document

__all__ = [
    "Case",
    "begun",
    "cancelled",
    "claimed",
    "claiming",
    "document",
    "elements",
    "expanded",
    "failed",
    "folded",
    "given",
    "job",
    "ok",
    "part",
    "resumed",
    "steps",
]

Stimulus = Callable[["Case"], object]


# ---- nets of steps


_ARC = re.compile(r"(\w+)(?: if (\w+))?( on failure)?")


def steps(*ways: str, **more: Any) -> Net:
    """`start -> a if x, b on failure`: arcs in their order. More of a step: `joins={"j": ("a", "b")}`, `inclusive={"start"}`,
    `admit={"a": ["not x", "y", "else"]}` (rules in their order), `loops={"start": Fan}`, `tasks={"start": "fetch save"}`; of the
    arcs to a step: `args={"a": {"k": 1}}`, `sets={"a": {"k": 1}}`; of the net: `fail_fast`, `max_visits`."""
    args: Mapping[str, dict[str, Any]] = more.get("args", {})
    sets: Mapping[str, dict[str, Any]] = more.get("sets", {})
    arcs: dict[str, list[Arc]] = {}
    for way in ways:
        source, _, targets = way.partition(" -> ")
        found = arcs.setdefault(source, [])
        for text in targets.split(", ") if targets else ():
            target, guard, failure = _ARC.fullmatch(text).groups()  # type: ignore[union-attr]
            writes = Writes(ctx=sets.get(target, {}))
            found.append(Arc(len(found), target, guard, args.get(target, {}), writes, reads_event=failure is not None))
    names = dict.fromkeys([*arcs, *(arc.target for several in arcs.values() for arc in several)])
    joins: Mapping[str, tuple[str, ...]] = more.get("joins", {})
    admit: Mapping[str, list[str]] = more.get("admit", {})
    tasks: Mapping[str, str] = more.get("tasks", {})
    nodes = {
        name: Node(
            name,
            tuple(Task(label, "noop") for label in tasks.get(name, "t").split()),
            fan=more.get("loops", {}).get(name),
            gate=Gate.JOIN if name in joins else Gate.TOKEN,
            joins=joins.get(name, ()),
            admit=tuple(_admit_rule(text) for text in admit[name]) if name in admit else None,
            edges=tuple(arcs.get(name, ())),
            first_only=name not in more.get("inclusive", ()),
        )
        for name in names
    }
    failure = FailureMode.FAIL_FAST if more.get("fail_fast") else FailureMode.BEST_EFFORT
    limits = Limits(max_step_visits=more.get("max_visits", 10_000))
    return Net("steps", next(iter(names)), nodes, failure=failure, limits=limits)


def _admit_rule(text: str) -> AdmitRule:
    condition = text.removeprefix("not ")
    return AdmitRule(None if condition == "else" else condition, condition == text)


def loop(mode: str = "sequential", at_once: int = 1, *, fail_fast: bool = True) -> Fan:
    failure = FailureMode.FAIL_FAST if fail_fast else FailureMode.BEST_EFFORT
    return Fan("{{ items }}", "n", LoopMode(mode), at_once, failure)


# ---- nets of components, from documents


def expanded(text: str, **joblets: str) -> Net:
    """The net of a job's document, with the joblets that it calls; all as `document` writes them."""
    files = {f"/{name}.yaml": json.dumps({"kind": "Joblet", **json.loads(inside)}) for name, inside in joblets.items()}
    compiled = compile_text(text, "/job.yaml", REGISTRY, read=lambda path: files.get(str(path)))
    assert compiled.net is not None, compiled.problems
    return compiled.net


REGISTRY = ComponentRegistry()


# ---- the judge


@dataclass
class Truths:
    """Conditions are true when they are named here; one that is named `!x` cannot be evaluated."""

    true: frozenset[str] = frozenset()
    rounds: int = 3

    def admit(self, node: Node, token: Token) -> Admission:
        for index, rule in enumerate(node.admit or ()):
            if rule.when is None or rule.when in self.true:
                return Admission(rule.allow, index)
        return Admission(False)

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        fired: list[tuple[Arc, dict[str, Any]]] = []
        writes: dict[str, Any] = {}
        for arc in node.edges:
            if end.status == "failed" and not arc.reads_event:
                continue
            if arc.guard is not None and f"!{arc.guard}" in self.true:
                return Selection(error={"kind": "expression", "message": arc.guard})
            if arc.guard is None or arc.guard in self.true:
                fired.append((arc, dict(arc.args)))
                writes |= arc.writes.ctx
                if node.first_only:
                    break
        return Selection(fired, {"ctx": writes} if writes else {})

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        for link in links:
            if f"!{link.when}" in self.true:
                return Verdict(error={"kind": "expression", "message": str(link.when)})
        return Verdict(tuple(link.index for link in links if link.when in self.true))

    def again(self, node: Node, component: ComponentRun, index: int) -> bool:
        return index < self.rounds


# ---- what a policy's rule says


@dataclass
class Rule:
    verdict: PolicyVerdict
    to: str | None = None


def rule(do: str, to: str | None = None, **more: Any) -> Rule:
    """`rule("retry", attempts=3, delay=2.0, backoff="linear")`, `rule("jump", "fetch")`."""
    if "backoff" in more:
        more["backoff"] = Backoff(more["backoff"])
    return Rule(PolicyVerdict(0, Do(do), **more), to)


NO_MATCH = Rule(PolicyVerdict())
"""The task has rules, and none of them matches."""


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
        """The task at the cursor of a pipeline has run, and written this to ctx; or failed."""
        self.runs_task(scope, fails, writes={"ctx": writes})
        return self

    def runs_task(self, scope: str, fails: str | None = None, rule: Rule | None = None, **more: Any) -> list[str]:
        """What follows from the outcome of the task at the cursor. `rule`: the one of its policy that matches; None without a
        policy. `writes`: to `ctx`, `iter`, `append`."""
        run_id = self.starts_task(scope)
        pipeline, tasks = self.state.pipelines[scope], self.net.nodes[re.sub(r"@.*", "", scope)].tasks
        label, attempt = tasks[pipeline.cursor].label, pipeline.attempt
        error = {"kind": "x", "message": fails} if fails is not None else None
        to = [task.label for task in tasks].index(rule.to) if rule is not None and rule.to else -1
        verdict = None if rule is None else replace(rule.verdict, to=to)
        directive = advance(pipeline.cursor, len(tasks), attempt, error, verdict)
        outcome: dict[str, Any] = {"status": "error", "error": error} if error else {"status": "ok", "result": label}
        writes = {kind: values for kind, values in more.get("writes", {}).items() if values}
        end = TaskEnded(
            label,
            attempt,
            outcome,
            directive.do.value,
            directive.next,
            delay=directive.delay,
            writes=writes,
            error=directive.error,
        )
        self._record(next_fact(pipeline, end, task=run_id))
        return [line(fact) for fact in self.facts[-2:]]

    def starts_task(self, scope: str) -> str:
        """The task at the cursor is under way: its name."""
        pipeline, tasks = self.state.pipelines[scope], self.net.nodes[re.sub(r"@.*", "", scope)].tasks
        label = tasks[pipeline.cursor].label
        run_id = pipeline.next_task_run(label)
        self._record(next_fact(pipeline, TaskStarted(label, "noop", pipeline.attempt), task=run_id))
        return run_id

    def ended(self, scope: str) -> str | None:
        """How a pipeline has ended; None when a task is to follow."""
        return self.state.pipelines[scope].ended

    def _record(self, fact: Fact) -> None:
        evolve(self.state, fact, 0.0)
        self.facts.append(fact)

    def said(self, what: str) -> Any:
        """The last fact of this type and scope: its payload."""
        return next(fact.body for fact in reversed(self.facts) if f"{event_type(fact.body)} {fact.scope}" == what)

    def lines(self) -> list[str]:
        return [line(fact) for fact in self.facts]

    def timeline(self) -> list[str]:
        """What happened, in the order of the logical clock."""
        return [line(fact) for fact in sorted(self.facts, key=lambda fact: fact.clock)]

    def sees(self, scope: str) -> Any:
        """What the templates of a pipeline see: ctx, iter, results by name, the previous result."""
        pipeline = self.state.pipelines[scope]
        return {"ctx": pipeline.ctx, "iter": pipeline.iter, "results": pipeline.results, "prev": pipeline.prev}

    @property
    def status(self) -> str:
        return self.state.root.status

    @property
    def ctx(self) -> dict[str, Any]:
        return self.state.root.ctx.values


def given(net: Net, *true: str, rounds: int = 3, context: dict[str, Any] | None = None) -> Case:
    """A run that has just been opened. `true`: the conditions that hold."""
    case = Case(net, Truths(frozenset(true), rounds))
    case._record(opening(net, ROOT, context or {}))
    return case


def folded(case: Case, count: int | None = None) -> Case:
    """What somebody else finds who has only the log, or the first facts of it."""
    again = Case(case.net, case.judge)
    for fact in case.facts[:count]:
        again._record(fact)
    return again


def line(fact: Fact) -> str:
    body = fact.body
    said = f"{event_type(body)} {fact.scope}".rstrip()
    match body:
        case facts.ElementsClaimed():
            return f"{said}: {body.lo}-{body.hi}"
        case facts.LinkFired():
            return f"edge.fired {body.source} ({body.on}) {body.target}"
        case facts.ComponentSkipped():
            return f"{said}: {body.cause}"
        case facts.GlobalSet():
            local = ", local" if body.local else ""
            new = "deleted" if body.deleted else body.new
            return f"global.set {body.key}: {body.old} -> {new} by {body.writer}{local}"
        case facts.TaskStarted():
            return f"task.started {fact.task}, attempt {body.attempt}"
        case facts.TaskEnded():
            delay = f" in {body.delay:g} s" if body.delay else ""
            return f"task.done {fact.task}: {body.do}{delay}"
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


def ok(scope: str, **writes: Any) -> Stimulus:
    """A run is over, and well. Of a component: all its output ports have a row, and it wrote these globals; of a step run: it
    wrote this to ctx."""
    return lambda case: RunOver(case.state.runs[scope], _end(case, scope, None, writes))


def failed(
    scope: str, message: str = "no", *, dies: bool = False, exit_code: int | None = None, **writes: Any
) -> Stimulus:
    return lambda case: RunOver(
        case.state.runs[scope], _end(case, scope, message, writes, dies=dies, exit_code=exit_code)
    )


def appended(scope: str, **lists: list[Any]) -> Stimulus:
    """A step run is over, and appended this to ctx."""
    return lambda case: RunOver(
        case.state.runs[scope], RunEnded(case.state.runs[scope].step, "done", writes={"append": lists})
    )


def gave(scope: str, **rows: int) -> Stimulus:
    """A component is over, and so many rows came out of each port."""
    outputs = {port: {"rows": count, "hash": f"hash of {count}"} for port, count in rows.items()}
    return lambda case: RunOver(case.state.runs[scope], Ended(OK, rows_out=dict(rows), outputs=outputs))


def deleted(scope: str, *names: str) -> Stimulus:
    """A component is over, and has deleted these globals."""
    return lambda case: RunOver(case.state.runs[scope], Ended(OK, deletes=names))


def united(scope: str, **sets: list[Any]) -> Stimulus:
    """A component is over, and wrote these globals, which stand for sets."""
    return lambda case: RunOver(case.state.runs[scope], Ended(OK, writes=sets, sets=frozenset(sets)))


def _end(case: Case, scope: str, message: str | None, writes: dict[str, Any], **more: Any) -> Any:
    run, error = case.state.runs[scope], {"kind": "x", "message": message} if message is not None else None
    if isinstance(run, StepRun):
        ctx = {"ctx": writes} if writes else {}
        return RunEnded(run.step, "failed" if error else "done", error=error, looped=run.fan is not None, writes=ctx)
    name = re.sub(r".*\]\.", "", scope)
    ports = {link.port for link in case.net.links if link.source == name and link.port}
    outputs: dict[str, Any] = {} if error else {port: {"rows": 1} for port in ports}
    return Ended(ERROR if error else OK, outputs=outputs, error=error, writes=writes, **more)


def elements(scope: str, items: list[Any] | None, at_once: int = 1, mode: str = "accumulate") -> Stimulus:
    """None where a condition is judged before each."""
    total = None if items is None else len(items)
    return lambda case: Elements(case.state.runs[scope], total, items, at_once, mode)


def claiming(scope: str) -> Stimulus:
    """The loop runs over rows that are claimed bit by bit."""
    return lambda case: Elements(case.state.runs[scope], None, _claimed_items(case, scope))


def claimed(scope: str, *items: Any) -> Stimulus:
    """A claim has given these rows."""
    keys = [str(item) for item in items]
    return lambda case: Claim(case.state.runs[scope], len(items), list(items), keys)


def _claimed_items(case: Case, scope: str) -> ClaimedValues:
    return ClaimedValues(case.state.runs[scope], "items", _unread)


def _unread(ref: object) -> Any:
    raise AssertionError("no claim here is large")


def part(scope: str, index: int) -> Stimulus:
    """The pipeline of an iteration has come to its end."""
    return lambda case: PartOver(case.state.runs[scope], index)


def cancelled(*, at_work: bool = True) -> Stimulus:
    """`at_work`: somebody works on the run, and will report; else all that was under way ends with this."""
    return lambda case: Cancel("enough", None if at_work else _no_child)


def timed_out(scope: str) -> Stimulus:
    """A step run is given up: its time limit has passed."""
    error = {"kind": "timeout", "message": "too late"}
    return lambda case: GiveUp(_no_child, run=case.state.runs[scope], error=error)


def lost(subjob: str) -> Stimulus:
    """The worker that held a sub-job is gone."""
    return lambda case: Lost(case.state.subjobs[subjob])


def looked() -> Stimulus:
    """Somebody has folded the log, and decides what follows from that."""
    return lambda case: GoOn()


def _no_child(child: object) -> list[Fact]:
    raise AssertionError("no task runs a document of its own here")


def interrupted() -> Stimulus:
    return lambda case: Interrupt("a signal")


def resumed(*, failed_only: bool = False) -> Stimulus:
    return lambda case: Resume([], failed_only)
