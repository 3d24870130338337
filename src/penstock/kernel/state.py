"""State: what the facts so far amount to. Facts change it through `penstock.kernel.evolve` alone.

    State ── Execution ── Subjob ── Run ── Pipeline                  a step run: one task after another
                                        ├─ Fan ── Pipeline …         a step run with a loop: one pipeline per open iteration
                                        ├─ Fan ── Scope ── Subjob …  an iterator of a job: one scope per open iteration
                                        ├─ Fan ── ElementRange …     a loop that is fanned out: the ranges that are out
                                        ├─ Scope ── Subjob …         a joblet call: one inside it
                                        └─ Execution                 a task or a component that runs another document

A playbook's steps form one sub-job, for which no facts are recorded. State is mutable and owned by its decider; closed scopes are
dropped, and only their counters and their writes remain. What is not derived from facts is a cache (`Run.node`, `Scope.key`) or
belongs to a runner (the `items` and `results` of a loop).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.facts import Body, Fact, RunEnded, as_fact
from penstock.kernel.globals import View, Written, exported, joined
from penstock.kernel.patches import Gathered, SharedContext, Staged, claims
from penstock.kernel.places import ROOT, LogicalClock, Path, Place
from penstock.kernel.reducers import fold_parts
from penstock.kernel.values import Json, JsonMap, frozen

RUNNING, OK, ERROR, SKIPPED = "RUNNING", "OK", "ERROR", "SKIPPED"
PENDING = "PENDING"
SETTLED = frozenset({OK, ERROR, SKIPPED})
STATUSES = {"ok": OK, "error": ERROR, "skipped": SKIPPED, "done": OK, "failed": ERROR}
"""The word for an end in facts -> the status."""
NOT_OPENED = -1
KEPT_FAILURES = 10_000
"""How many failed parts of a fan are kept at most, for a resume to run again."""
TOLD_FAILURES = 1_000
"""How many failed iterations of an iterator are listed at most when it ends."""
KEPT_WRITES = 100_000
"""How many iterations' writes are kept unmerged at most, so that a resume can merge reruns in between."""
KEPT_PARTIAL = 10_000
"""How many iterations that ended OK with failures inside are kept at most, for `resume --failed` to reopen."""


@frozen
class Death:
    """From here on only the error path of this run or sub-job, and `always` nodes, may start."""

    scope: str
    why: str


# ---- one pipeline


@dataclass(slots=True)
class Pipeline:
    """The program counter of one pipeline, and everything its templates can see."""

    place: Place
    ctx: JsonMap
    opener: StepRun | None = field(default=None, compare=False, repr=False)
    """For an iteration, the run whose loop it belongs to."""
    iter: JsonMap = field(default_factory=dict)
    counter: int = 0
    cursor: int = 0
    attempt: int = 1
    prev: Json = None
    outcome: JsonMap | None = None
    """The outcome of the last task run that did not lead to a retry."""
    results: dict[str, Json] = field(default_factory=dict)
    staged: Staged = field(default_factory=Staged)
    task_runs: int = 0
    ordinals: dict[str, int] = field(default_factory=dict)
    under_way: str | None = None
    effect: str | None = None
    """The first run of the task at the cursor. It names the task's effect, so that retries and a resume use the same name."""
    due: float | None = None
    """Earliest start of the next attempt; kept across a restart."""
    ended: str | None = None
    status: str = RUNNING
    """Status of a closed iteration. ERROR is possible even after success, if its writes conflict."""
    error: Json = None
    before_end: tuple[JsonMap, JsonMap, Staged] | None = None
    """For an iteration whose last task wrote something: `iter`, ctx and staged writes as they were before that task."""
    children: dict[str, Execution] = field(default_factory=dict)

    def next_task_run(self, label: str) -> str:
        return f"{self.place.id}/{label}#{self.ordinals.get(label, 0) + 1}"


# ---- the parts of a fan


@dataclass(slots=True)
class Bitmap:
    """A set of indexes at one bit each; `low` is the lowest index that is not in it."""

    bits: bytearray = field(default_factory=bytearray)
    low: int = 0
    top: int = field(init=False, compare=False)
    """No index from here on has settled."""

    def __post_init__(self) -> None:
        self.top = len(self.bits) << 3

    def add(self, index: int) -> None:
        if index >= self.top:
            self.top = index + 1
        byte = index >> 3
        if byte >= len(self.bits):
            self.bits.extend(bytes(max(byte + 1 - len(self.bits), 1024)))
        self.bits[byte] |= 1 << (index & 7)
        if index == self.low:
            self._find_low()

    def _find_low(self) -> None:
        bits, low, end = self.bits, self.low + 1, len(self.bits) << 3
        while low < end and bits[low >> 3] & (1 << (low & 7)):
            low += 1
        self.low = low

    def discard(self, index: int) -> None:
        if index in self:
            self.bits[index >> 3] &= ~(1 << (index & 7))
            self.low = min(self.low, index)

    def without(self, other: Bitmap) -> Bitmap:
        """A new bitmap of the indexes that are in this one and not in the other."""
        bits = bytearray(self.bits)
        for at, byte in enumerate(other.bits[: len(bits)]):
            bits[at] &= ~byte & 0xFF
        left = Bitmap(bits, low=-1)
        left._find_low()
        return left

    def __contains__(self, index: int) -> bool:
        byte = index >> 3
        return byte < len(self.bits) and bool(self.bits[byte] & (1 << (index & 7)))


@dataclass(slots=True)
class Fan:
    """A run that opens many parts: a loop, an iterator, a fan-out. Only a bit and a count remain of a closed part."""

    opened_at: int
    """The counter of the fact that started it; NOT_OPENED in a fan kept by a resume that has not been started again yet."""
    total: int | None
    """None while it is unknown."""
    parallel: int = 1
    """How many parts may be open at a time."""
    next_index: int = 0
    settled: Bitmap = field(default_factory=Bitmap)
    open: dict[int, Any] = field(default_factory=dict)
    """Index -> the part: a pipeline, or a scope."""
    waiting: int = 0
    """The number of open parts that have finished but must not close before earlier ones."""
    ok: int = 0
    failed: int = 0
    first_failed: int | None = None
    first_error: Json = None
    """The error of the failed part with the lowest index."""
    is_elsewhere: bool = False
    """Its parts are opened and closed by others. For a loop: no runner here has given its elements yet."""
    items: Sequence[Any] | None = field(default=None, compare=False, repr=False)
    """The elements. Those of a loop are not in the log; each holder renders them from the document."""

    def begin(self, opened_at: int) -> None:
        """The fan is started, for the first time or again."""
        self.opened_at, self.next_index = opened_at, self.settled.low

    def add_part(self, index: int, part: Pipeline | Scope) -> None:
        self.open[index] = part
        if index >= self.next_index:
            self.next_index = index + 1

    def first_unopened(self) -> int:
        """The index of the first part that is neither open nor closed."""
        index = self.next_index
        while index in self.open or (index < self.settled.top and index in self.settled):
            index += 1
        return index

    def close_part(self, index: int, error: Json, *, is_ok: bool) -> None:
        self.open.pop(index, None)
        self.settled.add(index)
        if is_ok:
            self.ok += 1
            return
        self.failed += 1
        if self.first_failed is None or index < self.first_failed:
            self.first_failed, self.first_error = index, error


@frozen
class Claimed:
    """Elements that were claimed together, from index `lo` on, and their keys; each a list or a reference to one."""

    lo: int
    items: Json
    keys: Json

    def alone(self, index: int) -> Claimed:
        """What has to be kept if only the element `index` of it is still wanted."""
        if not isinstance(self.items, list) or not isinstance(self.keys, list):
            return self
        at = slice(index - self.lo, index - self.lo + 1)
        return Claimed(index, self.items[at], self.keys[at])


@dataclass(slots=True)
class Loop(Fan):
    """The iterations of a loop step, each a pipeline."""

    total: int = 0
    """If elements are claimed: how many have been so far."""
    is_elsewhere: bool = True
    claims: bool = False
    """The elements are claimed bit by bit, and nobody knows how many there will be."""
    claimed: dict[int, Claimed] = field(default_factory=dict)
    """Index -> the claim it came with: of elements that have not ended well, as long as they may still run."""
    isolated: bool = False
    """Iterations do not see each other's writes, which must not conflict."""
    failed_open: dict[int, Pipeline] = field(default_factory=dict)
    """Failed iterations, kept while a resume may run them again; bounded by KEPT_FAILURES."""
    ctx: JsonMap = field(default_factory=dict)
    staged: Gathered = field(default_factory=Gathered)
    writers: dict[str, int] = field(default_factory=dict)
    reducers: dict[str, str] = field(default_factory=dict)
    shared: JsonMap = field(default_factory=dict)
    """Key -> the reduced value of the iterations so far."""
    collection: Json = None
    """The elements, if they were read page by page: reading them again might give others."""
    results: object = field(default=None, compare=False, repr=False)
    """The results a worker has gathered. The kernel does not read this; it is stored here so that it moves with the loop."""

    def take(self, index: int, writes: JsonMap, *, is_ok: bool = False) -> bool:
        """Gather the writes of iteration `index`. True if they replace those of an earlier, failed run of it."""
        if is_ok and self.reducers:
            fold_parts(self.reducers, self.shared, writes)
        again = self.staged.gather(index, writes)
        if self.isolated:
            for claim, _ in claims(writes):
                self.writers.setdefault(claim, index)
        return again


@dataclass(slots=True)
class Iterations(Fan):
    """The iterations of an iterator of a job, each a scope."""

    items: Sequence[Any] | None = None
    mode: str = "accumulate"
    failures: dict[int, Json] = field(default_factory=dict)
    """Index -> error of the first failed iterations, at most TOLD_FAILURES."""
    not_ok: Bitmap = field(default_factory=Bitmap)
    """All failed iterations; a resume runs them again."""
    mishandled: dict[int, Scope] = field(default_factory=dict)
    """The failed iterations whose body ended OK but a handler failed: a resume runs only their handlers."""
    partial: dict[int, Scope] = field(default_factory=dict)
    """Iterations that ended OK although nested iterations failed; `resume --failed` reopens them. At most KEPT_PARTIAL are
    kept."""
    reopened: dict[int, Scope] = field(default_factory=dict)
    """Iterations that a resume has reopened and that have not been started again yet."""
    death: tuple[LogicalClock, int | None, Json] | None = None
    """The component in one of its iterations that makes the job die: its clock, exit code and error."""
    base: View = field(default_factory=View)
    """The globals the first iteration sees."""
    gathered: dict[int, dict[str, Written]] = field(default_factory=dict)
    """Index -> the writes of an iteration that has ended OK and is not merged yet."""
    merged: dict[str, Json] = field(default_factory=dict)
    sets: set[str] = field(default_factory=set)
    """The keys in `merged` whose values stand for sets."""
    merged_up_to: int = 0
    top: int = 0
    """One more than the highest event number used in a closed iteration."""
    sound: tuple[dict[str, Json], set[str]] | None = None
    """`merged` and `sets` as they were before the first failed iteration: a resume continues from them."""
    later: dict[int, dict[str, Written]] = field(default_factory=dict)
    """Index -> the writes of a later iteration that ended OK: a resume merges these and its reruns in index order."""
    failed_inside: int = 0
    """Number of failed iterations of nested iterators that did not fail this one."""
    marks: JsonMap = field(default_factory=dict)
    """Watermarks from iterations that ended OK."""
    rows_out: dict[str, dict[str, int]] = field(default_factory=dict)
    """Component, with 0 for the number of every iteration -> port -> its rows in all iterations that ended OK."""

    def held(self) -> list[Scope]:
        """The iterations whose state is still kept."""
        return [*self.open.values(), *self.reopened.values(), *self.partial.values()]


# ---- one run of a node


@dataclass(slots=True)
class Run:
    """One run of a node in its scope: a step run, a component."""

    place: Place
    subjob: Subjob = field(compare=False, repr=False)
    status: str = RUNNING
    counter: int = 0
    """The number of its next fact."""
    started_at: float = 0.0
    error: Json = None
    node: str = field(default="", compare=False, repr=False)
    """The name of its node, cached by `Decision.name_of`."""
    fan: Fan | None = None
    """Its parts, once it has opened them; before that, the parts of an earlier run that a resume has kept."""
    fired: set[int] = field(default_factory=set)
    """The indexes of the edges it has fired."""
    inside: Scope | None = None
    """The scope inside a joblet call."""

    @property
    def is_fanning(self) -> bool:
        """Whether it has opened its parts. After a resume `fan` may be set earlier, with the parts of an earlier run."""
        return self.fan is not None and self.fan.opened_at != NOT_OPENED


@dataclass(slots=True)
class StepRun(Run):
    step: str = ""
    path: Path = ()
    visit: int = 1
    args: JsonMap = field(default_factory=dict)
    ctx: JsonMap = field(default_factory=dict)
    scheduled_at: float = 0.0
    pipeline: Pipeline | None = None
    ended: RunEnded | None = None
    outcome: JsonMap | None = None
    """What its arcs see as `output` once it has ended."""
    selected: int = 0
    """How many arcs were selected; some may not have been recorded as fired yet."""
    continued: Path | None = None
    """The path of the failed run that this one continues. Its writes include those of that run, and replace them."""
    loop_name: str = ""
    """The name of its loop and of the loop's elements. Taken from the first run in the chain of runs it continues, so that
    effects keep their keys."""


def last_outcome(run: StepRun, end: RunEnded) -> JsonMap:
    """The outcome of the step's last task. A loop, and a step without tasks, have an outcome of their own."""
    if run.pipeline is not None and run.pipeline.outcome is not None:
        return run.pipeline.outcome
    if end.status == "done":
        return {"status": "ok", "result": end.result}
    return {"status": "error", "result": end.result, "error": end.error}


@dataclass(slots=True)
class ComponentRun(Run):
    fan: Iterations | None = None
    type: str = ""
    view: View = field(default_factory=View)
    """The globals it sees while it runs; includes its own writes once it has ended."""
    rows_in: JsonMap = field(default_factory=dict)
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    dies: bool = False
    exit_code: int | None = None
    children: dict[str, Execution] = field(default_factory=dict)
    """The executions it runs, by the id of their task run."""
    kept: bool = False
    """A resume has kept it as it was, although its sub-job started over to rerun failed iterations."""
    written: list[str] = field(default_factory=list)

    def opened(self) -> list[Scope]:
        """The scopes it has open: the inside of a joblet call, the iterations of an iterator."""
        if self.inside is not None:
            return [self.inside]
        return list(self.fan.open.values()) if self.fan is not None and self.is_fanning else []


@dataclass(slots=True)
class Subjob:
    name: str
    index: int
    place: Place
    scope: Scope = field(compare=False, repr=False)
    status: str = PENDING
    counter: int = 0
    members: dict[str, Any] = field(default_factory=dict)
    """In a job, all components; in a playbook, the step runs under way."""
    error: Json = None
    handles: bool = False
    """It handles the end of an iteration."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its readers; they count if it ends OK."""
    ended: int = 0
    """How many of its members have ended or were skipped."""
    aborts: bool = False
    """It ended in ERROR, and the job's policy is to start nothing else."""
    owner: str = ""
    """The sub-job that owns the globals created here. An iteration, and the joblets it calls, create them for the sub-job of
    the iterator; otherwise the next iteration would take them for keys of another sub-job."""

    def __post_init__(self) -> None:
        self.owner = self.place.id
        opener = self.scope.opener
        if opener is not None and (self.scope.index is not None or opener.subjob.owner != opener.subjob.place.id):
            self.owner = opener.subjob.owner

    def out(self) -> View:
        return joined(member.view for member in self.members.values() if member.status in (OK, ERROR))


def with_inside(call: ComponentRun) -> View:
    """The globals seen after a joblet call: those seen before it, and those written inside it."""
    assert call.inside is not None
    return View((joined(exported(subjob.out()) for subjob in call.inside.subjobs.values()), call.view))


# ---- scopes


@dataclass(slots=True)
class Scope:
    """A scope contains sub-jobs: an execution, the inside of a joblet call, an iteration."""

    id: str
    prefix: str
    """The prefix of its members' names."""
    place: Place
    view: View = field(default_factory=View)
    """The globals seen by the components that come first in it."""
    subjobs: dict[str, Subjob] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    """By scope id: in a job, all components of its sub-jobs; in a playbook, the step runs under way."""
    opener: ComponentRun | None = field(default=None, compare=False, repr=False)
    index: int | None = None
    """In an iteration: the number of its element."""
    status: str = RUNNING
    counter: int = 0
    """The number of the next fact of the scope itself."""
    handlers: int = 0
    """In an iteration: how many handlers of its end have not ended yet."""
    body: str = ""
    """In an iteration: the status of its body, however its handlers end."""
    is_reopened: bool = False
    """In an iteration: it had ended OK, and was reopened because nested iterations had failed."""
    fired: set[int] = field(default_factory=set)
    """In an iteration: the indexes of the links that its end has fired."""
    closed: int = 0
    """How many of its sub-jobs have closed, not counting handlers of an iteration's end."""
    deaths: list[Death] = field(default_factory=list)
    """In an execution: what makes it die, in the order it happened."""
    key: str | None = field(default=None, compare=False, repr=False)
    """The key of its container in the net, cached by `ScopeView`."""
    error: Json = None
    rules: int = 1
    """In an execution: the revision of the language rules that applies."""
    kept_iterators: dict[str, Iterations] = field(default_factory=dict)
    """Scope id of an iterator -> the state of its earlier run that a resume has kept."""
    kept_insides: dict[str, Scope] = field(default_factory=dict)
    """Scope id of a joblet call -> likewise."""
    marks: JsonMap = field(default_factory=dict)
    """Watermarks from sub-jobs that ended OK."""


@dataclass(slots=True)
class Token:
    step: str
    path: Path
    args: JsonMap
    origin: str | None
    counter: int = 1


@dataclass(slots=True)
class Unhandled:
    """A failure that no arc handled: it fails the execution, and a resume runs its step again."""

    step: str
    run: StepRun | None
    error: Json


@dataclass(slots=True)
class Execution(Scope):
    """One running document: the root of a run, or a child that a task or a component runs."""

    id: str = ""
    prefix: str = ""
    place: Place = ROOT
    status: str = "new"
    name: str = ""
    digest: str = ""
    workload: Json = None
    started_at: float = 0.0
    resumed_at: float = 0.0
    """When the run was last resumed; 0 if never."""
    ended_at: float | None = None
    ctx: SharedContext = field(default_factory=SharedContext)
    results: dict[str, Json] = field(default_factory=dict)
    result: Json = None
    result_path: Path = ()
    tokens: dict[Path, Token] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    unhandled: list[Unhandled] = field(default_factory=list)
    ending: dict[str, StepRun] = field(default_factory=dict)
    """Step runs that have ended but whose arcs have not all fired yet."""
    cancelling: bool = False
    top: int = 0
    document: Json = None
    trace_id: str | None = None
    kind: str = "playbook"
    exit_code: int | None = None
    continues: str | None = None
    """The task run or component whose failed child this execution continues."""
    failed_iterations: int = 0
    """How many iterations failed; set when a job has ended."""
    kept: Json = None
    """The values and watermarks the document had kept from earlier runs."""

    def __post_init__(self) -> None:
        self.id = self.prefix = self.place.id

    @property
    def is_stopping(self) -> bool:
        """It is being cancelled or is dying: running work is ended, and almost nothing may start."""
        return self.cancelling or bool(self.deaths)


@dataclass(slots=True)
class State:
    """The whole tree of one run, with indexes by scope id, so that a fact finds what it changes directly."""

    root: Execution = field(default_factory=Execution)
    executions: dict[str, Execution] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    """Includes the executions."""
    subjobs: dict[str, Subjob] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    """Step runs under way, and all components."""
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    """The open pipelines of step runs and of loop iterations."""
    counters: dict[str, int] = field(default_factory=dict)
    """The next event number of scopes that are not in the state (any more): no event name is used twice."""
    floors: dict[str, int] = field(default_factory=dict)
    """Iterator -> lowest event number for scopes in its iterations after a restart; closed iterations leave only their highest
    number behind."""
    joined: dict[str, LogicalClock] = field(default_factory=dict)
    """Joins that have been reached but not started: scope id -> the clock of the join."""
    on_iteration_closed: Callable[[StepRun, int, Pipeline], None] | None = None
    on_shards: Callable[[StepRun, Body], None] | None = None
    """Called after every fact of a fanned-out loop has been applied."""

    def __post_init__(self) -> None:
        self.executions.setdefault("", self.root)
        self.scopes.setdefault("", self.root)

    def counter(self, scope: str) -> int:
        """The number of the next event of a scope."""
        counter, known = self.counters.get(scope, 0), self.runs.get(scope)
        if known is not None and known.counter > counter:
            counter = known.counter
        if self.floors:
            at = scope.find("[#")
            while at >= 0:
                counter = max(counter, self.floors.get(scope[:at], 0))
                at = scope.find("[#", at + 1)
        return counter

    def component(self, scope: str) -> ComponentRun | None:
        run = self.runs.get(scope)
        return run if isinstance(run, ComponentRun) else None

    def step_run(self, scope: str) -> StepRun | None:
        run = self.runs.get(scope)
        return run if isinstance(run, StepRun) else None


PREVIOUS = "previous"


def next_fact(
    owner: Run | Pipeline | Subjob | Scope,
    body: Body,
    cause: str | None = PREVIOUS,
    *,
    task: str | None = None,
    clock: LogicalClock | None = None,
) -> Fact:
    """The next fact of a run, a pipeline, a sub-job or an iteration. By default its cause is the owner's previous fact."""
    place, counter = owner.place, owner.counter
    if cause is PREVIOUS:
        cause = f"{place.id}:{counter - 1}"
    return as_fact((place.id, (*(clock or place.clock), counter), body, cause, task))


def number_after(fact: Fact) -> int:
    """The number of the next fact in the scope of this one."""
    return fact.clock[-1] + 1  # type: ignore[operator]


def add_rows(into: dict[str, dict[str, int]], scope: Scope, times: int = 1) -> None:
    """Add the rows of all components in `scope` to those in `into`, as in `Iterations.rows_out`; with -1, subtract them."""
    run: ComponentRun
    for name, run in scope.runs.items():
        counts: list[tuple[str, JsonMap | dict[str, int]]] = [(name, run.rows_out)] if run.rows_out else []
        if run.fan is not None:
            counts += run.fan.rows_out.items()
        for component, ports in counts:
            total = into.setdefault(_NUMBER.sub("[#0]", component), {})
            for port, rows in ports.items():
                total[port] = total.get(port, 0) + times * int(rows)  # type: ignore[arg-type]
        if run.inside is not None:
            add_rows(into, run.inside, times)


_NUMBER = re.compile(r"\[#\d+\]")


# ---- questions about the tree


DEAD = "`{}` ended in ERROR and the job dies with it"
ABORTED = "sub-job `{}` ended in ERROR and `on_subjob_error` is abort"
FAILED_FAST = "step `{}` failed and the run is fail_fast"


def root_of(scope: Scope) -> Execution:
    """The execution that a scope lies in."""
    while scope.opener is not None:
        scope = scope.opener.subjob.scope
    return scope  # type: ignore[return-value]


def root_subjob(run: Run) -> Subjob:
    """The sub-job of the execution itself that a run lies in, however deep."""
    subjob = run.subjob
    while subjob.scope.opener is not None:
        subjob = subjob.scope.opener.subjob
    return subjob


def deaths_in(scope: Scope) -> list[Death]:
    """Everything in a scope that makes the job die; used to restore `deaths` from what a resume has kept."""
    found = [Death(one.place.id, ABORTED.format(one.name)) for one in scope.subjobs.values() if one.aborts]
    for component in sorted(scope.runs.values(), key=lambda run: run.place.clock):
        if component.dies:
            found.append(Death(component.place.id, DEAD.format(component.place.id)))
        if component.inside is not None:
            found += deaths_in(component.inside)
    return found


def dying(scope: Scope) -> ComponentRun | None:
    """The component that makes the job die, if any; if there are several, the first by place."""
    component: ComponentRun
    for component in sorted(scope.runs.values(), key=lambda run: run.place.clock):
        if component.dies:
            return component
        if component.inside is not None and (inner := dying(component.inside)) is not None:
            return inner
    return None


def failed_iterations(scope: Scope) -> int:
    """How many iterations in a scope failed, nested ones included."""
    failed = 0
    for component in scope.runs.values():
        if component.fan is not None:
            failed += component.fan.failed + component.fan.failed_inside
        if component.inside is not None:
            failed += failed_iterations(component.inside)
    return failed


def values_of(execution: Execution) -> JsonMap:
    """The ctx of a playbook; for a job, all globals, merged from everything that has closed so far."""
    if execution.kind == "playbook":
        return execution.ctx.values
    return joined(exported(subjob.out()) for subjob in execution.subjobs.values()).values(is_shared=True)
