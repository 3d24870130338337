"""Replay: decide a recorded run again from its recorded outcomes and compare every decision with the one in the log.

Outcomes, starts and what the server was told, in its order, come from the record; admission, policies, routing, writes and ids
are worked out anew. The two canonical timelines must be equal; the first line that is not is the difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from penstock.kernel.facts import (
    CancelAsked,
    ComponentEnded,
    ComponentStarted,
    ExecutionResumed,
    ExecutionStarted,
    Fact,
    GlobalSet,
    IterationStarted,
    IteratorStarted,
    LoopStarted,
    RunEnded,
    TaskEnded,
    TaskStarted,
)
from penstock.kernel.outcome import Outcome
from penstock.kernel.places import Place
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import PATIENT_TURNS, Caller, Lease, LeaseLost
from penstock.ports.results import encode
from penstock.server.documents import Pinned
from penstock.server.executions import Driver, ExecutionHost, ScopeDriver
from penstock.server.jobs import Played

# So many turns of the event loop without a new fact mean that the replay has come to the end of the record.
QUIET_TURNS = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the decision made now is not the one in the log."""

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


class Turn(NamedTuple):
    """Something the server was told. What it knows when it decides depends on the order of these."""

    what: Literal["end", "cancel", "resume"]
    scope: str
    reason: str = ""


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


def _cancel_of(scope: str) -> str:
    return f"cancel {scope}"


@dataclass(slots=True)
class Record:
    """What the log says happened, by place: the memory of a replay."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    lost: dict[str, JsonMap] = field(default_factory=dict)
    starts: set[str] = field(default_factory=set)
    iterations: set[str] = field(default_factory=set)
    loops: set[str] = field(default_factory=set)
    surrendered: dict[str, JsonMap] = field(default_factory=dict)
    openings: dict[str, tuple[ExecutionStarted, float]] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    """Where in `turns` the end of a step run stands."""
    components: dict[str, ComponentEnded] = field(default_factory=dict)
    globals: dict[str, dict[str, Json]] = field(default_factory=dict)
    sets: dict[str, set[str]] = field(default_factory=dict)
    iterators: dict[str, IteratorStarted] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    order: Order = field(default_factory=Order)

    def add(self, fact: Fact, ts: float) -> None:
        body = fact.body
        if isinstance(body, TaskStarted):
            self.starts.add(fact.task or "")
        elif isinstance(body, TaskEnded):
            self._add_outcome(fact.task or "", body)
        elif isinstance(body, LoopStarted):
            self.loops.add(fact.scope)
        elif isinstance(body, IterationStarted):
            self.iterations.add(fact.scope)
        elif isinstance(body, RunEnded):
            self.ends[fact.scope] = len(self.turns)
            self.turns.append(Turn("end", fact.scope))
            if body.given_up:
                self.surrendered[fact.scope] = body.error if isinstance(body.error, dict) else {}
        elif isinstance(body, ComponentEnded):
            self.components[fact.scope] = body
            self.globals[fact.scope], self.sets[fact.scope] = {}, set()
            if fact.scope not in self.calls and fact.scope not in self.iterators:
                self.order.add(fact.scope)
        elif isinstance(body, ComponentStarted):
            if body.opens is not None:
                self.calls.add(fact.scope)
        elif isinstance(body, GlobalSet):
            self.globals[fact.scope][body.key] = body.new
            if body.is_set:
                self.sets[fact.scope].add(body.key)
        elif isinstance(body, IteratorStarted):
            if body.items is not None or fact.scope not in self.iterators:
                self.iterators[fact.scope] = body
        elif isinstance(body, ExecutionStarted) and not body.resumed:
            self.openings[fact.scope] = (body, ts)
        elif isinstance(body, CancelAsked):
            self.turns.append(Turn("cancel", fact.scope, body.reason))
            if body.kind == "job":
                self.order.add(_cancel_of(fact.scope))
        elif isinstance(body, ExecutionResumed) and body.reopened:
            self.turns.append(Turn("resume", fact.scope))

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

    def iterated(self, scope: str) -> bool:
        return scope in self.iterations

    def given_up(self, scope: str) -> JsonMap | None:
        return self.surrendered.get(scope)

    def opened(self, scope: str) -> bool:
        return scope in self.openings

    def component(self, scope: str) -> tuple[ComponentEnded | None, dict[str, Json], frozenset[str]]:
        return self.components.get(scope), self.globals.get(scope, {}), frozenset(self.sets.get(scope, ()))

    def is_next(self, scope: str) -> bool:
        return self.order.is_next(scope)

    def told(self, scope: str) -> None:
        self.order.told(scope)

    @property
    def told_so_far(self) -> int:
        return self.order.so_far

    def iterator(self, scope: str) -> IteratorStarted | None:
        return self.iterators.get(scope)


class ReplayHost(ExecutionHost):
    """The server is told what it was told, in the order of the record, so that whatever saw ctx sees the same ctx again."""

    # Holders stop where the record says they were stopped, not when this server would have come to it.
    stops_holders = False

    def __init__(self, record: Record, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._record = record
        self._turn = 0
        self._waiting: dict[str, asyncio.Event] = {}
        self._is_over = False
        self._stood = 0
        self._stood_at = 0

    # ---- what came from outside

    def record(self, fact: Fact) -> None:
        if isinstance(fact.body, ExecutionStarted) and fact.scope in self._record.openings:
            _, ts = self._record.openings[fact.scope]
            self.stream.now = lambda: ts  # Templates can see when an execution started.
        super().record(fact)

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        started, _ = self._record.openings[f"{caller.run_id}/"]
        return await super().play(caller, path, cast(JsonMap, started.workload), return_step, outputs)

    def _document(self, place: Place, path: str, folder: Path) -> Pinned:
        """The text it was pinned to; the file may have changed since, or be gone."""
        started, _ = self._record.openings[place.id]
        return Pinned.from_mapping(started.document)

    # ---- turns

    def _next(self) -> Turn | None:
        turns = self._record.turns
        return turns[self._turn] if self._turn < len(turns) else None

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None:
        scope = lease.run.place.id
        at = self._record.ends.get(scope)
        if at is None or at < self._turn:
            return  # It never ended in the record, so whatever this is, it decides nothing.
        if at != self._turn:
            waiting = self._waiting[scope] = asyncio.Event()
            await waiting.wait()
            if self._is_over:
                return
        try:
            await super().end(lease, body, counter)
        finally:
            self._turn_over()

    def _turn_over(self) -> None:
        self._turn += 1
        turn = self._next()
        if turn is not None and turn.scope in self._waiting:
            self._waiting.pop(turn.scope).set()

    async def let_go(self) -> None:
        """Those who still wait for their turn wait for something that does not happen any more: that is the difference."""
        self._is_over = True
        for waiting in self._waiting.values():
            waiting.set()
        await super().let_go()

    async def prompt(self, root: Driver) -> None:
        """Say what is to be said next, when it is no holder's word and the scope it is about is there."""
        turn = self._next()
        driver = self._drivers.get(turn.scope) if turn is not None else None
        if turn is None or driver is None:
            return
        if not isinstance(driver, ScopeDriver):
            if turn.what == "cancel" and driver.state.status == "running" and self._is_due(turn):
                self._turn_over()
                self._record.told(_cancel_of(turn.scope))
                await driver.cancel(turn.reason)
            return
        if turn.what == "cancel" and driver.state.status == "running":
            driver.decider.cancel(turn.reason)
            self._turn_over()
            await driver.advance()
        elif turn.what == "resume" and driver.state.status == "failed":
            driver.finished.clear()
            driver.decider.resume([])
            self._turn_over()
            await driver.advance()

    def _is_due(self, turn: Turn) -> bool:
        """A job is cancelled after what ended before that; but a replay that has come to a stand waits for nothing."""
        at = self._record.told_so_far
        self._stood = self._stood + 1 if at == self._stood_at else 0
        self._stood_at = at
        return self._record.is_next(_cancel_of(turn.scope)) or self._stood > PATIENT_TURNS

    def is_through(self, root: Driver) -> bool:
        return root.finished.is_set() and self._next() is None


async def decide_again(host: ReplayHost, document: Pinned, record: Record) -> None:
    """Drive the replay until it ends or nothing moves any more."""
    started, _ = record.openings[""]
    root = await host.begin_root(document, cast(JsonMap, started.workload), started.trace_id)
    seen, quiet = host.stream.seq, 0
    while quiet < QUIET_TURNS and not host.is_through(root) and host.error is None:
        await asyncio.sleep(0)
        await host.prompt(root)
        quiet = quiet + 1 if host.stream.seq == seen else 0
        seen = host.stream.seq
    await host.let_go()
    if host.error is not None:
        raise host.error
