"""Replay: decide a recorded run again from its recorded outcomes and compare every decision with the one in the log.

The log is read in order. A decision has already been made again when the record reaches it; what came from outside (an
outcome, a list of elements, a cancel, a loss) is taken from the record, and what follows from it is decided again. No tool
is called, no time passes and nothing waits: it is a fold that decides. The two canonical timelines must be equal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Protocol

from penstock.kernel import facts
from penstock.kernel.decide import (
    Begin,
    Cancel,
    Decider,
    GiveUp,
    GoOn,
    HoldElements,
    Interrupt,
    Lost,
    Resume,
    RunOver,
    SpreadOver,
    opening,
)
from penstock.kernel.errors import PenstockError
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.fans import Claim, Elements, PartOver
from penstock.kernel.judge import Ended
from penstock.kernel.mandate import NOTHING
from penstock.kernel.places import Place
from penstock.kernel.reasons import is_stop
from penstock.kernel.shards import SETTLED, ElementRange, Shards
from penstock.kernel.state import ERROR, OK, ComponentRun, Execution, Loop, Pipeline, State, StepRun
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.job_scope import iteration_of
from penstock.ports.leases import FanRange, Keys, Lease, ScopeContext
from penstock.ports.loop_results import keep_result
from penstock.ports.outcome import Outcome
from penstock.ports.results import encode
from penstock.server.child_execution import going_on
from penstock.server.documents import Documents, Pinned
from penstock.server.executions import context_of, end_child
from penstock.server.fanout import FannedLoop
from penstock.server.fanout_results import gather
from penstock.server.judge import TemplateJudge


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the decision made now differs from the one in the log."""

    at: int
    recorded: JsonMap | None
    replayed: JsonMap | None

    def describe(self) -> str:
        def line(event: JsonMap | None) -> str:
            return "nothing" if event is None else encode(event).decode()

        return f"difference at canonical event {self.at}:\n  recorded: {line(self.recorded)}\n  replayed: {line(self.replayed)}"

    def as_json(self) -> JsonMap:
        return {"at": self.at, "recorded": self.recorded, "replayed": self.replayed}


def first_difference(recorded: Iterable[JsonMap], replayed: Iterable[JsonMap]) -> Difference | None:
    for at, (one, other) in enumerate(zip_longest(recorded, replayed)):
        if one != other:
            return Difference(at, one, other)
    return None


class Work(Protocol):
    """What a worker makes of a step run's outcomes."""

    def begins(self, pipeline: Pipeline) -> Fact: ...

    def concludes(self, pipeline: Pipeline, index: int | None, outcome: Outcome) -> Fact: ...

    def around(self, pipeline: Pipeline, index: int | None) -> Any: ...

    def over(self, collected: Json) -> Elements | RunEnded | None:
        """The elements of its loop; how it ended, if the elements cannot be determined; None if only the record knows."""
        ...

    def end(self, refused: Json = None) -> RunEnded:
        """How the run ended. `refused`: the error of a claim that failed."""
        ...


_STARTS = (
    facts.RunScheduled,
    facts.IterationStarted,
    facts.ComponentStarted,
    facts.ComponentSkipped,
    facts.ElementStarted,
)
_CONSEQUENCES = (
    facts.RunScheduled,
    facts.TokenRefused,
    facts.TokenStranded,
    facts.ArcsSelected,
    facts.ExecutionEnded,
    facts.SubjobStarted,
    facts.SubjobEnded,
    facts.ComponentStarted,
    facts.ComponentSkipped,
    facts.ElementEnded,
    facts.LinkFired,
)
_GIVEN = (facts.ShardsEnqueued, facts.ShardsStarted, facts.ShardsReported, facts.ShardsReturned)


class Record:
    """The log of a run, indexed: where each scope was started, and which ones were stopped before they could start."""

    def __init__(self, recorded: list[tuple[Fact, float]]) -> None:
        self.recorded = recorded
        self.at = 0
        """The current position of the replay."""
        self._next: dict[str, list[tuple[int, str | None]]] = {}
        """Scope -> where it was started (None) or skipped, and in the latter case why."""
        self._ends: dict[str, list[int]] = {}
        self._globals: dict[str, list[tuple[int, facts.GlobalSet]]] = {}
        self._resumes: list[int] = []
        self._losses: dict[str, list[int]] = {}
        """Sub-job -> where it started over because its holder was lost."""
        held: set[int] = set()
        last_start = -1
        for at, (fact, _) in enumerate(recorded):
            body = fact.body
            if isinstance(body, _STARTS):
                last_start = at
                reason = body.cause if isinstance(body, facts.ComponentSkipped) else None
                self._next.setdefault(fact.scope, []).append((at, reason))
            elif isinstance(body, facts.GlobalSet):
                self._globals.setdefault(fact.scope, []).append((at, body))
            elif isinstance(body, RunEnded):
                self._ends.setdefault(fact.scope, []).append(at)
            elif isinstance(body, facts.ExecutionStarted) and body.lost is not None:
                self._losses.setdefault(body.lost, []).append(at)
            elif isinstance(body, facts.ExecutionResumed) or (
                isinstance(body, facts.ExecutionStarted) and body.resumed
            ):
                self._resumes.append(at)
            elif isinstance(body, facts.ExecutionInterrupted) and not fact.scope:
                held.update(range(last_start + 1, at))
        self._held = held

    @property
    def is_held(self) -> bool:
        """Whether the position is between a signal and the end of its grace period, when nothing starts."""
        return self.at in self._held

    def _coming(self, scope: str, subjob: str) -> tuple[int, str | None] | None:
        """The next start or skip before the run was resumed or the sub-job started over: later ones have other reasons."""
        found = self._next.get(scope, [])
        at = bisect_left(found, self.at, key=lambda one: one[0])
        end = min(self._after(self._resumes), self._after(self._losses.get(subjob, [])))
        return found[at] if at < len(found) and found[at][0] < end else None

    def _after(self, places: list[int]) -> int:
        at = bisect_right(places, self.at)
        return places[at] if at < len(places) else len(self.recorded)

    def was_lost(self, scope: str, subjob: str) -> bool:
        return self._after(self._losses.get(subjob, [])) < len(self.recorded) and self._coming(scope, subjob) is None

    def has_begun(self, scope: str, subjob: str) -> bool:
        coming = self._coming(scope, subjob)
        return coming is not None and coming[1] is None

    def stopped(self, scope: str, subjob: str) -> str | None:
        coming = self._coming(scope, subjob)
        return coming[1] if coming is not None and coming[1] is not None and is_stop(coming[1]) else None

    def end_of(self, scope: str) -> RunEnded | None:
        """How the run that is under way there will end."""
        found = self._ends.get(scope, [])
        at = bisect_left(found, self.at)
        body = self.recorded[found[at]][0].body if at < len(found) else None
        return body if isinstance(body, RunEnded) else None

    def globals_of(self, at: int) -> list[facts.GlobalSet]:
        """What the component whose end is at `at` wrote."""
        scope = self.recorded[at][0].scope
        starts = self._next.get(scope, [])
        again = bisect_right(starts, at, key=lambda one: one[0])
        end = starts[again][0] if again < len(starts) else len(self.recorded)
        return [body for number, body in self._globals.get(scope, ()) if at < number < end]


@dataclass(slots=True)
class _Scope:
    """One execution that is decided again."""

    decider: Decider
    context: ScopeContext
    judge: TemplateJudge
    has_begun: bool = False


class Replay:
    def __init__(
        self,
        execution_id: str,
        recorded: list[tuple[Fact, float]],
        documents: Documents,
        blobs: BlobStore,
        keys: Keys,
        work: Callable[[Lease], Work],
    ) -> None:
        self.execution_id = execution_id
        self.blobs = blobs
        self.state = State(on_iteration_closed=keep_result)
        self.state.on_shards = lambda run, body: gather(run, body, blobs)
        self.facts: list[Fact] = []
        self._decided: set[tuple[str, object]] = set()
        self._record = Record(recorded)
        self._documents = documents
        self._keys = keys
        self._work_for = work
        self._scopes: dict[str, _Scope] = {}
        self._works: dict[str, tuple[StepRun, Work]] = {}
        self._spread: dict[str, Decider] = {}
        self._now = 0.0

    def run(self, document: Pinned) -> list[Fact]:
        """All facts that are decided. Ends early where the record has a fact that cannot follow: that is the difference."""
        for at, (fact, ts) in enumerate(self._record.recorded):
            self._record.at, self._now = at, ts
            if (fact.scope, fact.clock) in self._decided:
                continue
            try:
                self._follow(fact, document)
            except (PenstockError, LookupError, ValueError, AssertionError, TypeError, AttributeError):
                break
            if (fact.scope, fact.clock) not in self._decided:
                break
        return self.facts

    # ---- recording

    def _keep(self, decided: list[Fact]) -> None:
        for fact in decided:
            self.facts.append(fact)
            self._decided.add((fact.scope, fact.clock))

    def record(self, fact: Fact) -> None:
        evolve(self.state, fact, self._now)
        self._keep([fact])

    def _decide(self, decider: Decider, stimulus: object) -> list[Fact]:
        decider.mandate.starts_nothing = self._record.is_held
        decided = decider.decide(stimulus, self._now)
        self._keep(decided)
        return decided

    # ---- what the record says next

    def _follow(self, fact: Fact, document: Pinned) -> None:
        body = fact.body
        match body:
            case facts.ExecutionStarted() if not body.resumed:
                self._open(fact, body, document)
            case (
                facts.ExecutionStarted() | facts.ExecutionResumed() | facts.ExecutionInterrupted() | facts.CancelAsked()
            ):
                self._decide(self._scopes[fact.scope].decider, self._asked(fact.scope, body))
            case facts.ComponentEnded():
                self._component_ended(fact, body)
            case facts.IteratorStarted():
                run = self.state.runs[fact.scope]
                how = (body.total, body.items, body.parallel, body.mode, body.spread)
                self._decide(self._decider_of(fact.scope), Elements(run, *how))
            case facts.ElementStarted():
                self._hold_element(fact.scope[: fact.scope.rindex("[#")], body.index)
            case facts.IteratorCompleted():
                run = self.state.runs[fact.scope]
                self._decide(self._decider_of(fact.scope), SpreadOver(run))
            case facts.ShardsDone() | facts.ShardFailed() if not body.at_fanin and body.range != SETTLED:
                self.record(fact)
            case _ if isinstance(body, _GIVEN):
                self.record(fact)
            case facts.TokenCreated():
                around = self._scope_of(fact.scope)
                assert not around.has_begun
                around.has_begun = True
                self._decide(around.decider, Begin())
            case _ if isinstance(body, _CONSEQUENCES):
                # Only the state led to it: after a stop, the resuming process examined everything there was.
                self._decide(self._decider_of(fact.scope), GoOn())
            case _:
                self._step(fact)

    def _asked(self, scope: str, body: facts.Body) -> object:
        execution = self.state.executions[scope]
        match body:
            case facts.ExecutionStarted() if body.lost is not None:
                return Lost(self.state.subjobs[body.lost])
            case facts.ExecutionStarted():
                return Resume([], failed_only=execution.status == "completed")
            case facts.ExecutionResumed():
                return Resume(body.restarted)
            case facts.ExecutionInterrupted():
                return Interrupt(body.reason)
            case facts.CancelAsked():
                # One that nobody worked on was ended by the same decision.
                return Cancel(body.reason, None if execution.status == "running" else self._end_child)
        raise TypeError(f"nobody asks for a {type(body).__name__}")

    # ---- executions

    def _open(self, fact: Fact, body: facts.ExecutionStarted, document: Pinned) -> None:
        place, parent, depth, around = Place(fact.scope, fact.clock[:-2]), None, 0, None
        if fact.scope:
            document, parent = Pinned.from_mapping(body.document), fact.scope.removesuffix("/")
            depth, around = self._around(parent)
        net = self._documents.compile(document)[0]
        before = self.state.executions.get(f"{body.continues}/") if body.continues is not None else None
        goes_on = going_on(before, net, place)
        first = opening(
            net,
            place,
            body.workload,
            trace_id=body.trace_id,
            parent=parent,
            document=body.document,
            state=body.state,
            **goes_on,
        )
        assert isinstance(first.body, facts.ExecutionStarted)
        self.record(first._replace(body=replace(first.body, rules=body.rules)))
        execution = self.state.executions[fact.scope]
        context = context_of(
            self._documents,
            document,
            self.execution_id,
            net,
            execution,
            workload=body.workload,
            keychain=self._keys,
            iter_parent=around,
            depth=depth,
        )
        judge = TemplateJudge(context, lambda scope, line: None)
        decider = Decider(self.state, execution, net, judge)
        decider.witness = self._record
        self._scopes[fact.scope] = _Scope(decider, context, judge)

    def _around(self, parent: str) -> tuple[int, Any]:
        """How deep a child of this task or component lies, and in which iteration."""
        component = self.state.component(parent)
        if component is not None:
            return self._scope_of(parent).context.depth + 1, iteration_of(component.subjob.scope)
        scope = parent.rpartition("/")[0]
        run, index = self._run_of(scope)
        pipeline = self.state.pipelines[scope]
        return self._scope_of(scope).context.depth + 1, self._work(run).around(pipeline, index)

    def _scope_of(self, scope: str) -> _Scope:
        return self._scopes[scope[: scope.rfind("/") + 1]]

    def _end_child(self, child: Execution) -> list[Fact]:
        return end_child(
            self.state, child, lambda pinned: self._documents.compile(Pinned.from_mapping(pinned))[0], self._now
        )

    # ---- components

    def _component_ended(self, fact: Fact, body: facts.ComponentEnded) -> None:
        run = self.state.runs[fact.scope]
        assert isinstance(run, ComponentRun)
        wrote = self._record.globals_of(self._record.at)
        end = Ended(
            OK if body.status == "ok" else ERROR,
            body.rows_out,
            body.outputs,
            dict(body.after),
            body.result,
            body.error,
            writes={one.key: one.new for one in wrote if not one.deleted},
            sets=frozenset(one.key for one in wrote if one.is_set),
            deletes=tuple(one.key for one in wrote if one.deleted),
            exit_code=body.exit_code,
            dies=body.dies,
        )
        self._decide(self._decider_of(fact.scope), RunOver(run, end))

    def _decider_of(self, scope: str) -> Decider:
        """The decider for this scope: inside the iterations of a spread iterator, that of their holder."""
        at = scope.rfind("/") + 1
        at = scope.find("[#", at)
        while at >= 0:
            if scope[:at] in self._spread:
                return self._spread[scope[:at]]
            at = scope.find("[#", at + 1)
        return self._scope_of(scope).decider

    def _hold_element(self, iterator: str, index: int) -> None:
        run = self.state.runs[iterator]
        assert isinstance(run, ComponentRun)
        assert run.fan is not None
        assert run.fan.is_elsewhere
        around = self._scope_of(iterator)
        decider = self._spread.get(iterator)
        if decider is None:
            decider = Decider(self.state, around.decider.execution, around.context.net, around.judge)
            decider.witness, decider.mandate.only = self._record, NOTHING
            self._spread[iterator] = decider
        self._decide(decider, HoldElements(iterator, ElementRange(0, index, index + 1)))

    # ---- steps

    def _run_of(self, scope: str) -> tuple[StepRun, int | None]:
        """The step run that a pipeline belongs to, and the index of its iteration."""
        held = self.state.pipelines.get(scope)
        if held is not None and held.opener is not None:
            return held.opener, int(scope[scope.rindex("[") + 1 : -1])
        run = self.state.step_run(scope)
        if run is None:
            run = self.state.step_run(scope[: scope.rindex("[")])
        assert run is not None
        return run, None

    def _work(self, run: StepRun) -> Work:
        known = self._works.get(run.place.id)
        if known is None or known[0] is not run:
            around = self._scope_of(run.place.id)
            known = self._works[run.place.id] = (run, self._work_for(Lease(around.context, around.decider, run)))
        return known[1]

    def _step(self, fact: Fact) -> None:
        body = fact.body
        run, index = self._run_of(fact.scope)
        decider = self._scope_of(run.place.id).decider
        end = self._record.end_of(run.place.id)
        is_shards = isinstance(run.fan, Shards)
        if is_shards and isinstance(body, facts.TaskStarted | facts.TaskEnded):
            self.record(fact)  # Only the worker of an element has the state of its pipeline.
            return
        match body:
            case facts.TaskStarted():
                self.record(self._work(run).begins(self.state.pipelines[fact.scope]))
            case facts.TaskEnded() if not body.given_up:
                pipeline = self.state.pipelines[fact.scope]
                self.record(self._work(run).concludes(pipeline, index, Outcome.from_json(body.outcome)))
            case facts.LoopStarted() | facts.IterationStarted():
                collected = body.collection if isinstance(body, facts.LoopStarted) else None
                found = self._work(run).over(collected)
                assert found is not None
                self._decide(decider, found if isinstance(found, Elements) else RunOver(run, found))
            case facts.ElementsClaimed():
                self._decide(decider, Claim(run, body.hi - body.lo, body.items, body.keys))
            case facts.IterationEnded() if not self._is_given_up(run, body.index, end):
                self._decide(decider, PartOver(run, body.index))
            case facts.FanoutStarted():
                FannedLoop(_FanoutDriver(self, run), decider.node_of(run), run).begin()
            case RunEnded() | facts.IterationEnded() | facts.TaskEnded() if end is not None and end.given_up:
                assert isinstance(end.error, dict)
                self._decide(decider, GiveUp(self._end_child, run=run, error=end.error))
            case RunEnded() if not body.fanned_out:
                self._decide(decider, RunOver(run, self._ended(run, body)))
            case RunEnded() if run.fan is None:
                FannedLoop(_FanoutDriver(self, run), decider.node_of(run), run).begin()
            case RunEnded():
                FannedLoop(_FanoutDriver(self, run), decider.node_of(run), run).fan_in()
            case facts.FaninCompleted() | facts.ShardsDone() | facts.ShardFailed():
                FannedLoop(_FanoutDriver(self, run), decider.node_of(run), run).bring_together()

    def _is_given_up(self, run: StepRun, index: int, end: RunEnded | None) -> bool:
        pipeline = run.fan.open[index] if run.fan is not None else None
        is_over = pipeline is not None and (
            pipeline.ended is not None or not self._scope_of(run.place.id).decider.node_of(run).tasks
        )
        return not is_over and end is not None and end.given_up

    def _ended(self, run: StepRun, body: RunEnded) -> RunEnded:
        """A loop that could not read its pages, or claim its rows, ended as the record says: that is not tried again."""
        if not body.looped or run.fan is not None:
            end = self._work(run).end()
            may_be_refused = isinstance(run.fan, Loop) and run.fan.claims and body.status == "failed"
            return self._work(run).end(body.error) if may_be_refused and end.status == "done" else end
        found = self._work(run).over(None)
        return found if isinstance(found, RunEnded) else body


class _FanoutDriver:
    """The driver's side of a fanned-out loop, as far as deciding what follows from its ranges needs it."""

    def __init__(self, replay: Replay, run: StepRun) -> None:
        self._replay = replay
        around = replay._scope_of(run.place.id)
        self.context, self.judge, self._decider = around.context, around.judge, around.decider
        self.host: Any = self
        self.stream = replay
        self.blobs, self.execution_id = replay.blobs, replay.execution_id

    def fanout_ended(self, loop: FannedLoop, body: RunEnded) -> None:
        self._replay._decide(self._decider, RunOver(loop.run, body))

    def record_decision(self, stimulus: object) -> list[Fact]:
        return self._replay._decide(self._decider, stimulus)

    def ranges_of(self, run: StepRun) -> list[Lease]:
        return []

    def hand_out(self, part: FanRange) -> None:
        raise AssertionError("a replay hands out nothing")
