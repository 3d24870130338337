"""The record of a run, for a replay: what the log says happened at each place, and in which order the server was told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from penstock.kernel.facts import (
    CancelAsked,
    ComponentEnded,
    ComponentSkipped,
    ComponentStarted,
    ElementStarted,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStarted,
    Fact,
    FanoutStarted,
    GlobalSet,
    IterationStarted,
    IteratorStarted,
    LoopStarted,
    RunEnded,
    ShardFailed,
    ShardsDone,
    ShardsEnqueued,
    ShardsReported,
    ShardsReturned,
    ShardsStarted,
    TaskEnded,
    TaskStarted,
)
from penstock.kernel.fanout import SETTLED
from penstock.kernel.flow.reasons import is_stop
from penstock.kernel.outcome import Outcome
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import LeaseLost

HOLD = "hold"


class Turn(NamedTuple):
    """Something the server was told. What it knows when it decides depends on the order of these."""

    what: Literal["end", "cancel", "resume"]
    scope: str
    reason: str = ""
    iterators: frozenset[str] = frozenset()
    """Of a cancel: the iterators that had begun to iterate by then."""


class Order:
    """The ends of components in the order in which the server was told of them, and the cancelling of jobs among them.

    Whether a job was dying already, or an iterator had come to a halt, decides what still started.
    """

    def __init__(self) -> None:
        self._last: dict[str, None] = {}
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self._told: set[str] = set()
        self.so_far = 0

    def add(self, what: str) -> None:
        self._last.pop(what, None)  # After a resume its last end counts.
        self._last[what] = None

    @property
    def last(self) -> str | None:
        return next(reversed(self._last), None)

    def insert(self, what: str, after: str | None) -> None:
        ordered = list(self._last)
        ordered.insert(ordered.index(after) + 1 if after is not None else 0, what)
        self._last = dict.fromkeys(ordered)

    def __contains__(self, what: str) -> bool:
        return what in self._last

    def is_told(self, what: str) -> bool:
        return what in self._told

    def is_next(self, what: str) -> bool:
        self._number()
        return self._places.get(what, 0) <= self.so_far

    def told(self, what: str) -> None:
        self._number()
        self._told.add(what)
        while self.so_far < len(self._order) and self._order[self.so_far] in self._told:
            self.so_far += 1

    def _number(self) -> None:
        if len(self._order) != len(self._last):
            self._order = list(self._last)
            self._places = {each: at for at, each in enumerate(self._order)}


def cancel_of(scope: str) -> str:
    return f"cancel {scope}"


@dataclass(slots=True)
class Record:
    """What the log says happened, by place: the memory of a replay."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    lost: dict[str, JsonMap] = field(default_factory=dict)
    starts: set[str] = field(default_factory=set)
    iterations: set[str] = field(default_factory=set)
    loops: dict[str, Json] = field(default_factory=dict)
    """Loops that began, and what those ran over whose collection was read page by page."""
    unopened: dict[str, JsonMap] = field(default_factory=dict)
    """Loops that failed before they began."""
    surrendered: dict[str, JsonMap] = field(default_factory=dict)
    openings: dict[str, tuple[ExecutionStarted, float]] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    """Where in `turns` the end of a step run stands."""
    components: dict[str, ComponentEnded] = field(default_factory=dict)
    globals: dict[str, dict[str, Json]] = field(default_factory=dict)
    sets: dict[str, set[str]] = field(default_factory=dict)
    deletes: dict[str, list[str]] = field(default_factory=dict)
    iterators: dict[str, IteratorStarted] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    """Components and iterations that have started."""
    stops: dict[str, str] = field(default_factory=dict)
    """Components that were skipped because the job was to stop, and the reason."""
    shards: dict[str, list[Fact]] = field(default_factory=dict)
    """What was handed out of a fanned-out loop and what came of it, by the place of its run."""
    order: Order = field(default_factory=Order)
    is_stopped: bool = False
    """The run was interrupted and never went on; at most it was cancelled later."""
    moved_after: str | None = None
    """The last end or cancel before something last started or was skipped. What ended after that led to nothing (see `hold`)."""

    def add(self, fact: Fact, ts: float) -> None:
        body = fact.body
        if isinstance(body, TaskStarted | TaskEnded) and fact.scope.rpartition("[")[0] in self.shards:
            self._shards_of(fact.scope).append(fact)
        elif isinstance(body, TaskStarted):
            self.starts.add(fact.task or "")
        elif isinstance(body, TaskEnded):
            self._add_outcome(fact.task or "", body)
        elif isinstance(body, LoopStarted):
            self.loops.setdefault(fact.scope, body.collection)
        elif isinstance(body, IterationStarted):
            self.iterations.add(fact.scope)
        elif isinstance(body, FanoutStarted):
            self.shards.setdefault(fact.scope, [])
        elif isinstance(body, ShardFailed | ShardsDone):
            # The fan-in is decided anew.
            if not body.at_fanin and body.range != SETTLED:
                self._shards_of(fact.scope).append(fact)
        elif isinstance(body, ShardsEnqueued | ShardsStarted | ShardsReported | ShardsReturned):
            self._shards_of(fact.scope).append(fact)
        elif isinstance(body, RunEnded):
            self.ends[fact.scope] = len(self.turns)
            self.turns.append(Turn("end", fact.scope))
            if body.given_up:
                self.surrendered[fact.scope] = body.error if isinstance(body.error, dict) else {}
            elif body.looped and fact.scope not in self.loops and isinstance(body.error, dict):
                self.unopened[fact.scope] = body.error
        elif isinstance(body, ComponentEnded):
            self.components[fact.scope] = body
            self.globals[fact.scope], self.sets[fact.scope] = {}, set()
            self.deletes.pop(fact.scope, None)
            if fact.scope not in self.calls and fact.scope not in self.iterators:
                self.order.add(fact.scope)
        elif isinstance(body, ComponentStarted):
            self._moved()
            self._begins(fact.scope)
            if body.opens is not None:
                self.calls.add(fact.scope)
        elif isinstance(body, ComponentSkipped | ElementStarted):
            if not self.is_stopped:
                self._moved()
            if isinstance(body, ElementStarted):
                self._begins(fact.scope)
            elif is_stop(body.cause):
                self.stops[fact.scope] = body.cause
                self.begun.discard(fact.scope)
        elif isinstance(body, ExecutionInterrupted):
            self.is_stopped = True
        elif isinstance(body, GlobalSet):
            if body.deleted:
                self.deletes.setdefault(fact.scope, []).append(body.key)
            else:
                self.globals[fact.scope][body.key] = body.new
            if body.is_set:
                self.sets[fact.scope].add(body.key)
        elif isinstance(body, IteratorStarted):
            if body.items is not None or fact.scope not in self.iterators:
                self.iterators[fact.scope] = body
        elif isinstance(body, ExecutionStarted) and not body.resumed:
            self.openings[fact.scope] = (body, ts)
        elif isinstance(body, CancelAsked):
            self.turns.append(Turn("cancel", fact.scope, body.reason, frozenset(self.iterators)))
            if body.kind == "job":
                self.order.add(cancel_of(fact.scope))
        elif isinstance(body, ExecutionResumed) and body.reopened:
            self.turns.append(Turn("resume", fact.scope))

    def _shards_of(self, scope: str) -> list[Fact]:
        """Of the loop whose run, or one element of it, has this scope."""
        return self.shards[scope if scope in self.shards else scope.rpartition("[")[0]]

    def _moved(self) -> None:
        self.is_stopped, self.moved_after = False, self.order.last

    def _begins(self, scope: str) -> None:
        self.begun.add(scope)
        self.stops.pop(scope, None)

    def has_begun(self, scope: str) -> bool:
        return scope in self.begun

    def stopped(self, scope: str) -> str | None:
        return self.stops.get(scope)

    def close(self) -> None:
        """The whole log has been added. After a signal nothing started any more, though sub-jobs may still have closed."""
        if self.is_stopped:
            self.order.insert(HOLD, self.moved_after)

    def _add_outcome(self, task_run_id: str, body: TaskEnded) -> None:
        if body.given_up:
            self.lost[task_run_id] = body.error if isinstance(body.error, dict) else {}
        else:
            self.outcomes[task_run_id] = Outcome.from_json(body.outcome)

    def outcome(self, task_run_id: str) -> Outcome | None:
        if task_run_id in self.lost:
            raise LeaseLost(self.lost[task_run_id])
        return self.outcomes.get(task_run_id)

    def started(self, task_run_id: str) -> bool:
        return task_run_id in self.starts

    def looped(self, scope: str) -> bool:
        return scope in self.loops

    def collection(self, scope: str) -> Json:
        return self.loops.get(scope)

    def unopened_loop(self, scope: str) -> JsonMap | None:
        return self.unopened.get(scope)

    def iterated(self, scope: str) -> bool:
        return scope in self.iterations

    def given_up(self, scope: str) -> JsonMap | None:
        return self.surrendered.get(scope)

    def opened(self, scope: str) -> bool:
        return scope in self.openings

    def component(self, scope: str) -> tuple[ComponentEnded | None, dict[str, Json], frozenset[str], tuple[str, ...]]:
        sets, deletes = frozenset(self.sets.get(scope, ())), tuple(self.deletes.get(scope, ()))
        return self.components.get(scope), self.globals.get(scope, {}), sets, deletes

    def is_next(self, scope: str) -> bool:
        return self.order.is_next(scope)

    def told(self, scope: str) -> None:
        self.order.told(scope)

    @property
    def told_so_far(self) -> int:
        return self.order.so_far

    def iterator(self, scope: str) -> IteratorStarted | None:
        return self.iterators.get(scope)
