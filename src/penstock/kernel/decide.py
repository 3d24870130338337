"""decide: one stimulus in, the facts that follow from it out.

Every decision is derived from the net and the state alone: after a fold of the log, a survey of every open scope finds what
there is to decide; after a single fact, looking at what depends on it finds the same. The state evolves with each fact; the
caller appends the facts to the log and acts on them.

What a holder decided under its lease is recorded as it reports it (the tasks of a step run, the facts of a sub-job); what follows
from it is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.kernel import abandon, components, facts, fans, ranges, resume, sharing, steps
from penstock.kernel.abandon import EndChild
from penstock.kernel.decision import Decision, Rules
from penstock.kernel.errors import Refused
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import RULES, Fact, RunEnded
from penstock.kernel.fans import Elements, PartOver
from penstock.kernel.judge import Ended, Judge, located
from penstock.kernel.kept import STATE, closed
from penstock.kernel.net import Net, Region
from penstock.kernel.places import ENTRY_PATH, Path, Place, event_name
from penstock.kernel.scopes import ScopeView
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import (
    RUNNING,
    SETTLED,
    ComponentRun,
    Execution,
    Run,
    State,
    StepRun,
    Subjob,
    dying,
    failed_iterations,
)
from penstock.kernel.survey import survey
from penstock.kernel.values import Json, JsonMap

# ---- stimuli


@dataclass(slots=True, eq=False)
class Begin:
    """The execution has just been opened."""


@dataclass(slots=True, eq=False)
class GoOn:
    """Decide what follows from the state, however it came about: by a fold, a take-over, or decisions made elsewhere."""


@dataclass(slots=True, eq=False)
class RunOver:
    """A runner reports how a run ended. Raises Refused, changing nothing, if the run is not running or is not known here."""

    run: Run
    end: Ended | RunEnded


@dataclass(slots=True, eq=False)
class Cancel:
    """`end_child` is given when no process is driving the execution: everything still running is ended too."""

    reason: str
    end_child: EndChild | None = None


@dataclass(slots=True, eq=False)
class Interrupt:
    reason: str


@dataclass(slots=True, eq=False)
class Resume:
    """Continue after a stop. `restarted`: the task runs that were under way. `failed_only`: resume even a completed job, to
    rerun its failed iterations."""

    restarted: list[str]
    failed_only: bool = False


@dataclass(slots=True, eq=False)
class EndedElsewhere:
    """Components of sub-jobs held elsewhere have ended or were skipped there, and this has already been recorded."""

    components: Iterable[ComponentRun]


@dataclass(slots=True, eq=False)
class FactsFromServer:
    """The server sends a holder the facts recorded since it last heard. This includes the holder's own facts, which are
    recognised and skipped."""

    facts: Iterable[tuple[Fact, float]]


@dataclass(slots=True, eq=False)
class Hold:
    """Take one sub-job, to decide what happens inside it."""

    subjob: str


@dataclass(slots=True, eq=False)
class HoldElements:
    """Take some elements of an iterator."""

    iterator: str
    elements: ElementRange


@dataclass(slots=True, eq=False)
class Lost:
    """The holder of a sub-job is gone: that sub-job starts over, and all others stay as they are."""

    subjob: Subjob


@dataclass(slots=True, eq=False)
class SpreadOver:
    """All elements of a spread iterator have been returned and none is left to hand out."""

    iterator: ComponentRun


@dataclass(slots=True, eq=False)
class GiveUp:
    """Nothing is working any more on an execution that is being stopped, or on one of its sub-jobs or step runs."""

    end_child: EndChild
    subjob: Subjob | None = None
    run: StepRun | None = None
    error: JsonMap | None = None


_STEPS: Rules = steps
_COMPONENTS: Rules = components


class Decider(Decision):
    def __init__(self, state: State, execution: Execution, net: Net, judge: Judge) -> None:
        super().__init__(state, execution, net, judge, _STEPS if net.kind == "playbook" else _COMPONENTS)

    def decide(self, stimulus: object, now: float) -> list[Fact]:
        self.now, self.facts = now, []
        try:
            _HANDLERS[type(stimulus)](self, stimulus)
            self._move()
            if self.plan.moves_tokens and not self.execution.runs:  # Nothing runs and no token can move.
                _close(self, self.root, None)
        except Refused:
            self._forget()
            raise
        if self.no_more or self.nodes or self.fans:
            self._forget()
        return self.facts

    def _forget(self) -> None:
        """Drop pending work that could not be processed; the next survey of the state finds it again."""
        self.no_more.clear()
        for queue in (self.ends, self.closings, self.nodes, self.fans):
            queue.clear()

    def _move(self) -> None:
        """Process the queues in rounds: ends first, then closings, then nodes that may start or be skipped, then fans."""
        while True:
            if self.ends:
                self._finish(*self.ends.popleft())
            elif self.closings:
                _close(self, *self.closings.popleft())
            elif self.mandate.starts_nothing:
                return
            elif self.nodes:
                self._start_or_refuse(*self.nodes.popleft())
            elif self.fans:
                fans.advance(self, self.fans.popleft())
            else:
                return

    def _finish(self, run: Run, end: Ended | RunEnded) -> None:
        view, name = self.view_of(run), self.name_of(run)
        self.rules.end(self, view, name, run, end)
        self.queue_dependents(view, name)

    def _start_or_refuse(self, view: ScopeView, name: str, path: tuple[int, ...]) -> None:
        if not view.admits(self.plan.region(name)):
            return
        ready = self.rules.ready(self, view, name, path)
        if ready is None:
            return
        if ready.refusal is None:
            self.rules.start(self, view, name, ready)
            run = view.component(name)
            if run is not None and run.inside is not None:
                survey(self, run.inside)
        else:
            self.rules.refuse(self, view, name, ready)
            self.queue_dependents(view, name)


# ---- what each stimulus means


def _begin(d: Decision, stimulus: Begin) -> None:
    """Create the entry token of a playbook; if it continues a failed execution, start the failed step runs again instead."""
    if d.execution.unhandled:
        steps.reopen(d)
    elif d.plan.moves_tokens:
        steps.create_token(d, d.net.entry, ENTRY_PATH, {}, event_name(d.execution.place.id, 0))
    survey(d, d.execution)


def _go_on(d: Decision, stimulus: GoOn) -> None:
    survey(d, d.execution)


def _run_over(d: Decision, stimulus: RunOver) -> None:
    run = stimulus.run
    if d.state.runs.get(run.place.id) is not run or run.status != RUNNING:
        raise Refused(f"`{run.place.id}` is not running")
    if run.is_fanning and isinstance(run, ComponentRun):
        raise Refused(f"`{run.place.id}` ends with its iterations")
    d.ends.append((run, stimulus.end))


def _cancel(d: Decision, stimulus: Cancel) -> None:
    if stimulus.end_child is not None and d.plan.moves_tokens and d.execution.status == "interrupted":
        d.record_own(facts.ExecutionResumed())  # Resumed only in order to be ended.
    if stimulus.end_child is None or d.plan.moves_tokens:
        _require_running(d)
    if not d.execution.cancelling:
        d.record_own(facts.CancelAsked(stimulus.reason, d.net.kind))
    if stimulus.end_child is not None:
        abandon.give_up(d, stimulus.end_child)
    survey(d, d.execution)


def _interrupt(d: Decision, stimulus: Interrupt) -> None:
    _require_running(d)
    d.record_own(facts.ExecutionInterrupted(stimulus.reason, d.net.kind))


def _require_running(d: Decision) -> None:
    if d.execution.status != "running":
        raise Refused(f"the run is {d.execution.status}, not running")


def _resume(d: Decision, stimulus: Resume) -> None:
    if d.plan.moves_tokens:
        steps.resume(d, stimulus.restarted)
    else:
        resume.resume(d, failed_only=stimulus.failed_only)
    survey(d, d.execution)


def _ended_elsewhere(d: Decision, stimulus: EndedElsewhere) -> None:
    for component in stimulus.components:
        d.queue_dependents(d.root, d.name_of(component))


def _facts_from_server(d: Decision, stimulus: FactsFromServer) -> None:
    inside = len(d.execution.place.id)
    received = sharing.New(d.state)
    for fact, ts in stimulus.facts:
        is_a_childs = "/" in fact.scope[inside:]
        if not is_a_childs and received.is_new(fact):
            evolve(d.state, fact, ts)
    survey(d, d.execution)


def _hold(d: Decision, stimulus: Hold) -> None:
    d.mandate.only = stimulus.subjob
    survey(d, d.execution)


def _hold_elements(d: Decision, stimulus: HoldElements) -> None:
    sharing.take(d, stimulus.iterator, stimulus.elements)


def _lost(d: Decision, stimulus: Lost) -> None:
    subjob = stimulus.subjob.place.id
    resume.resume(d, lost=subjob)
    d.mandate.elsewhere.discard(subjob)
    survey(d, d.execution)


def _spread_over(d: Decision, stimulus: SpreadOver) -> None:
    iterator = stimulus.iterator
    fans.complete(d, iterator)
    d.to_inform.add(iterator.subjob.place.id)  # Its holder must be told, even if only that the iterator is done.


def _give_up(d: Decision, stimulus: GiveUp) -> None:
    if stimulus.run is not None:
        assert stimulus.error is not None
        abandon.give_up_run(d, stimulus.run, stimulus.error, stimulus.end_child)
        return
    if stimulus.subjob is not None:
        abandon.abandon(d, stimulus.subjob, stimulus.end_child, stimulus.error)
    else:
        abandon.give_up(d, stimulus.end_child)
    survey(d, d.execution)


_HANDLERS: dict[type[object], Callable[[Decider, Any], None]] = {
    Begin: _begin,
    GoOn: _go_on,
    RunOver: _run_over,
    PartOver: fans.end_part,
    Elements: fans.start,
    fans.Claim: fans.claim,
    Cancel: _cancel,
    Interrupt: _interrupt,
    Resume: _resume,
    EndedElsewhere: _ended_elsewhere,
    FactsFromServer: _facts_from_server,
    Hold: _hold,
    HoldElements: _hold_elements,
    Lost: _lost,
    SpreadOver: _spread_over,
    GiveUp: _give_up,
    ranges.FanOut: ranges.fan_out,
    ranges.CutRange: ranges.cut,
    ranges.RangeReported: ranges.reported,
    ranges.RangeReturned: ranges.returned,
    ranges.CallOff: ranges.call_off,
    ranges.FanIn: ranges.bring_together,
}


def decide(state: State, net: Net, stimulus: object, judge: Judge, *, scope: str = "", now: float = 0.0) -> list[Fact]:
    """The facts that follow from a stimulus, in the execution whose scope is given."""
    return Decider(state, state.executions[scope], net, judge).decide(stimulus, now)


def opening(
    net: Net,
    place: Place,
    workload: Json,
    *,
    trace_id: str | None = None,
    parent: str | None = None,
    document: Json = None,
    continues: str | None = None,
    kept: list[str] | None = None,
    state: Json = None,
) -> Fact:
    """The first fact of an execution scope. `continues` names a failed child of an earlier task run, which this one replaces;
    if it is a job, `kept` names the sub-jobs that stay as they ended there."""
    body = facts.ExecutionStarted(
        net.name,
        net.digest,
        workload,
        net.entry,
        trace_id=trace_id,
        parent=parent,
        document=document,
        continues=continues,
        kind=net.kind,
        kept=kept or [],
        rules=RULES,
        state=state,
    )
    return Fact(place.id, (*place.clock, (), 0), body)


# ---- the end of a sub-job, and of the scope it lies in: a joblet call, an iteration, the execution


def _close(d: Decision, view: ScopeView, region: Region | None) -> None:
    if region is not None:
        _close_subjob(d, view, region)
    else:
        _close_scope(d, view)


def _close_subjob(d: Decision, view: ScopeView, region: Region) -> None:
    """Close a sub-job whose members have all ended. Those of the execution itself are closed by the server, never by a holder."""
    subjob = view.subjob(region)
    if subjob is None or subjob.status in SETTLED or not d.closes(view) or not d.is_over(region, subjob):
        return
    d.mandate.elsewhere.discard(subjob.place.id)
    if not view.is_single or region is not view.bodies[0]:
        components.close(d, view, region, subjob)
    _close_scope(d, view)


def _close_scope(d: Decision, view: ScopeView) -> None:
    """Close a scope whose sub-jobs have all closed."""
    scope = view.state
    if scope.index is not None:
        assert scope.opener is not None
        fans.end_part(d, PartOver(scope.opener, scope.index))
    elif not d.has_ended(view):
        return
    elif scope.opener is None:
        _end(d, view)
    elif scope.opener.status == RUNNING:
        components.end_call(d, view, scope.opener)


def _end(d: Decision, view: ScopeView) -> None:
    """End the execution as cancelled, as failed (a fatal or an unhandled error), or as completed."""
    execution = d.execution
    if execution.status != "running" or not d.mandate.is_whole:
        return
    dead, exit_code = dying(execution), None
    error, cause = d.rules.failure(d, view)
    if dead is not None:
        error, exit_code = located(dead.error, component=dead.place.id), dead.exit_code or 1
    status: Literal["completed", "failed", "cancelled"] = "failed" if error is not None else "completed"
    if execution.cancelling:
        status, error, exit_code = "cancelled", None, None
    kept: Json = None
    if status == "completed":
        kept = closed(execution.kept, execution.ctx.values.get(STATE), execution.marks)
    body = facts.ExecutionEnded(status, error, d.net.kind, exit_code, failed_iterations(execution), kept)
    # A resume undoes an end, which stays in the log, and a playbook may then have a run at the next number. So the path of an
    # end has two numbers, which no run's path has.
    at: Path = (execution.top + 1, 0) if d.plan.moves_tokens else (len(view.spec.regions),)
    d.record_own(body, at=at, cause=cause)
