"""State: what the facts so far amount to. Only `penstock.kernel.evolve` and its parts write it.

    State ── Execution ── Subjob ── Run ── Pipeline                  a step run: one task after another
                                        ├─ Fan ── Pipeline …         a step run with a loop: one pipeline per open iteration
                                        ├─ Fan ── Scope ── Subjob …  an iterator of a job: one scope per open iteration
                                        ├─ Fan ── ElementRange …     a loop that is fanned out: the ranges that are out
                                        ├─ Scope ── Subjob …         a joblet call: one inside it
                                        └─ Execution                 a task or a component that runs another document

A playbook's steps are one sub-job, of which no fact tells. State is mutable and owned by its decider; what has closed is dropped
and lives on in counters, and in what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.facts import Body, Fact, RunEnded
from penstock.kernel.frozen import frozen
from penstock.kernel.patches import Gathered, SharedContext, Staged, claims
from penstock.kernel.places import ROOT, LogicalClock, Path, Place
from penstock.kernel.reducers import fold_parts
from penstock.kernel.values import Json, JsonMap
from penstock.kernel.views import View, Written, exported, joined

WAIT, RUNNING, OK, ERROR, SKIPPED = "WAIT", "RUNNING", "OK", "ERROR", "SKIPPED"
PENDING = "PENDING"
SETTLED = frozenset({OK, ERROR, SKIPPED})
STATUSES = {"ok": OK, "error": ERROR, "skipped": SKIPPED, "done": OK, "failed": ERROR}
"""How a fact calls the end of something -> its status."""
NOT_OPENED = -1
KEPT_FAILURES = 10_000
"""So many failed parts of a fan are kept, for a resume to run again."""
TOLD_FAILURES = 1_000
KEPT_WRITES = 100_000
KEPT_PARTIAL = 10_000


@frozen
class Death:
    """From here on nothing starts but the error path of this run or sub-job, and what runs always."""

    scope: str
    why: str


# ---- one pipeline


@dataclass(slots=True)
class Pipeline:
    """The program counter of one pipeline and all that its templates can see."""

    place: Place
    ctx: JsonMap
    opener: StepRun | None = field(default=None, compare=False, repr=False)
    """Of an iteration: the run whose loop it is a part of."""
    iter: JsonMap = field(default_factory=dict)
    counter: int = 0
    cursor: int = 0
    attempt: int = 1
    prev: Json = None
    outcome: JsonMap | None = None
    """Of the last task run whose outcome was not merely tried again."""
    results: dict[str, Json] = field(default_factory=dict)
    staged: Staged = field(default_factory=Staged)
    task_runs: int = 0
    ordinals: dict[str, int] = field(default_factory=dict)
    under_way: str | None = None
    effect: str | None = None
    """The first run of the task at the cursor: the name of its effect, the same over retries and over a resume."""
    due: float | None = None
    """Not before this time may the next attempt start: a retry that waits keeps waiting across a restart."""
    ended: str | None = None
    status: str = RUNNING
    """Of an iteration that has closed: also one that ended well may be in ERROR, if what it wrote conflicts."""
    error: Json = None
    before_end: tuple[JsonMap, JsonMap, Staged] | None = None
    """Of an iteration whose last task wrote: its `iter`, ctx and writes as that task found them."""
    children: dict[str, Execution] = field(default_factory=dict)

    def next_task_run(self, label: str) -> str:
        return f"{self.place.id}/{label}#{self.ordinals.get(label, 0) + 1}"


# ---- one node as many parts


@dataclass(slots=True)
class Bitmap:
    """Which indexes have settled, at one bit each, with the lowest one that has not."""

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
        """A new one, with what is in this one and not in the other."""
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
    """One run opened as many parts: a loop, an iterator, a fan-out. A part that has closed is a bit and a count."""

    opened_at: int
    """The counter of the fact that started it; NOT_OPENED in one that a resume goes on with, before it has recorded its own."""
    total: int | None
    """None while nobody knows it."""
    parallel: int = 1
    """So many parts are open at a time."""
    next_index: int = 0
    settled: Bitmap = field(default_factory=Bitmap)
    open: dict[int, Any] = field(default_factory=dict)
    """Index -> the part: a pipeline, or a scope."""
    waiting: int = 0
    """Open parts that have run, and may not close before earlier ones."""
    ok: int = 0
    failed: int = 0
    first_failed: int | None = None
    first_error: Json = None
    """Of the failed ones, that of the lowest element."""
    is_elsewhere: bool = False
    """Its parts are opened and closed by others."""

    def goes_on(self, opened_at: int) -> None:
        """It is started: for the first time, or once more."""
        self.opened_at, self.next_index = opened_at, self.settled.low

    def opens(self, index: int, part: Pipeline | Scope) -> None:
        self.open[index] = part
        if index >= self.next_index:
            self.next_index = index + 1

    def closes(self, index: int, error: Json, *, is_ok: bool) -> None:
        self.open.pop(index, None)
        self.settled.add(index)
        if is_ok:
            self.ok += 1
            return
        self.failed += 1
        if self.first_failed is None or index < self.first_failed:
            self.first_failed, self.first_error = index, error


@dataclass(slots=True)
class Loop(Fan):
    """The iterations of a loop step, each a pipeline."""

    total: int = 0
    is_elsewhere: bool = True
    isolated: bool = False
    """Iterations do not see each other's writes, and those of two must not conflict."""
    failed_open: dict[int, Pipeline] = field(default_factory=dict)
    """Failed iterations, kept while a resume may run them again; bounded by KEPT_FAILURES."""
    ctx: JsonMap = field(default_factory=dict)
    staged: Gathered = field(default_factory=Gathered)
    writers: dict[str, int] = field(default_factory=dict)
    reducers: dict[str, str] = field(default_factory=dict)
    shared: JsonMap = field(default_factory=dict)
    """Key -> what its reducer has made of the iterations so far."""
    collection: Json = None
    """What it runs over, where that was read page by page and would not be the same if it were read again."""
    results: object = field(default=None, compare=False, repr=False)
    """What a worker has gathered of the iterations' results. No state of the kernel's: it only lives and moves with the loop."""
    items: Sequence[Any] | None = field(default=None, compare=False, repr=False)
    """The elements, while somebody holds the run: they are rendered from the document anew, and not in the log."""

    def take(self, index: int, writes: JsonMap, *, is_ok: bool = False) -> bool:
        """Gather what iteration `index` wrote. True when it takes the place of what a failed run of it had left."""
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
    """The first of the failed ones, to be told of: index -> error."""
    not_ok: Bitmap = field(default_factory=Bitmap)
    """All of the failed ones, which a resume runs again."""
    mishandled: dict[int, Scope] = field(default_factory=dict)
    """Of these, the ones whose body ended OK and a handler did not: a resume runs only what handles them."""
    partial: dict[int, Scope] = field(default_factory=dict)
    """Those that ended OK although iterations inside of them failed, which `resume --failed` opens again; so many are kept."""
    reopened: dict[int, Scope] = field(default_factory=dict)
    """Of these, the ones that are to go on and have not been started again."""
    death: tuple[LogicalClock, int | None, Json] | None = None
    """A component in one of its iterations with which the job dies: where it stands, its exit code, its error."""
    base: View = field(default_factory=View)
    """What the first iteration sees."""
    gathered: dict[int, dict[str, Written]] = field(default_factory=dict)
    """What iterations wrote that have ended OK and are not merged yet, by index."""
    merged: dict[str, Json] = field(default_factory=dict)
    sets: set[str] = field(default_factory=set)
    """Keys among these whose values stand for sets."""
    merged_up_to: int = 0
    top: int = 0
    """One past the highest number that was given to an event in an iteration that has closed."""
    sound: tuple[dict[str, Json], set[str]] | None = None
    """`merged` and `sets` as they were before the first iteration that failed: what a resume goes on from."""
    later: dict[int, dict[str, Written]] = field(default_factory=dict)
    """What iterations after that one wrote that ended OK: a resume merges it in its order, with what runs again in between."""
    failed_inside: int = 0
    """Iterations of iterators inside its own that failed and were gone on from."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its iterations that ended OK."""

    def held(self) -> list[Scope]:
        """The iterations that are still known as more than a number."""
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
    """What it is a run of, once somebody has asked."""
    fan: Fan | None = None
    """Its parts, once it has opened them; before that, what a resume has kept of those of an earlier run."""
    fired: set[int] = field(default_factory=set)
    """The edges that it fired, by index."""
    inside: Scope | None = None
    """Of a joblet call."""

    @property
    def is_fanning(self) -> bool:
        """Has it opened its parts? Of one that a resume goes on with the earlier ones are known before that."""
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
    """What its arcs see as `output`, once it has ended."""
    selected: int = 0
    """So many of its arcs fire; the tokens of some may not be recorded yet."""
    continued: Path | None = None
    """The path of the failed run that this one goes on from: its writes include, and take the place of, what that one wrote."""
    loop_name: str = ""
    """What its loop and the elements of it are called: after the first of the runs that this one goes on from, so that effects
    keep their keys."""


def last_outcome(run: StepRun, end: RunEnded) -> JsonMap:
    """What a step came to, as the outcome of its last task; of a loop, and of a step without tasks, as an outcome of its own."""
    if run.pipeline is not None and run.pipeline.outcome is not None:
        return run.pipeline.outcome
    if end.status == "done":
        return {"status": "ok", "result": end.result}
    return {"status": "error", "result": end.result, "error": end.error}


@dataclass(slots=True)
class ComponentRun(Run):
    fan: Iterations | None = None
    status: str = WAIT
    type: str = ""
    view: View = field(default_factory=View)
    """What it sees while it runs; with its own writes once it has ended."""
    rows_in: JsonMap = field(default_factory=dict)
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    dies: bool = False
    exit_code: int | None = None
    children: dict[str, Execution] = field(default_factory=dict)
    """Executions that it runs, by the id of their task run."""
    kept: bool = False
    """It stays as it is in a sub-job that started over for the sake of its failed iterations."""
    written: list[str] = field(default_factory=list)

    def opened(self) -> list[Scope]:
        """The scopes that it has open: the inside of a joblet call, the iterations of an iterator."""
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
    """Of a job its components, of a playbook the step runs that are under way."""
    error: Json = None
    kept: bool = False
    handles: bool = False
    """The end of an iteration led to it."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its readers, which count if it ends OK."""
    ended: int = 0
    """How many of its members have ended or were skipped."""
    fired: set[int] = field(default_factory=set)
    """The links that its end has fired, by index."""
    aborts: bool = False
    """It ended in ERROR, and the job's policy lets nothing else start."""
    owner: str = ""
    """The sub-job that a global belongs to which is made here. An iteration, with the joblets that it calls, writes on behalf of
    the sub-job that its iterator is in: else the next one would find the keys of this one to be another's."""

    def __post_init__(self) -> None:
        self.owner = self.place.id
        opener = self.scope.opener
        if opener is not None and (self.scope.index is not None or opener.subjob.owner != opener.subjob.place.id):
            self.owner = opener.subjob.owner

    def out(self) -> View:
        return joined(member.view for member in self.members.values() if member.status in (OK, ERROR))


def with_inside(call: ComponentRun) -> View:
    """What is seen after a joblet call: what was seen before it, and what its inside wrote."""
    assert call.inside is not None
    return View((joined(exported(subjob.out()) for subjob in call.inside.subjobs.values()), call.view))


# ---- scopes


@dataclass(slots=True)
class Scope:
    """What holds sub-jobs: an execution, the inside of a joblet call, an iteration."""

    id: str
    prefix: str
    """What the names of its members begin with."""
    place: Place
    view: View = field(default_factory=View)
    """What is seen where nothing has run yet."""
    subjobs: dict[str, Subjob] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    """By scope id: of a job all components of its sub-jobs, of a playbook the step runs that are under way."""
    opener: ComponentRun | None = field(default=None, compare=False, repr=False)
    index: int | None = None
    """In an iteration: the number of its element."""
    status: str = RUNNING
    counter: int = 0
    """The number of the next fact of the scope itself."""
    handlers: int = 0
    """In an iteration: handlers of its end that have not ended themselves."""
    body: str = ""
    """In an iteration: how its body ended, whatever its handlers came to."""
    is_reopened: bool = False
    """In an iteration: it had ended OK, and goes on because iterations inside of it had failed."""
    fired: set[int] = field(default_factory=set)
    """In an iteration: the links that its end has fired, by index."""
    closed: int = 0
    """How many of its sub-jobs have closed, those apart that the end of an iteration led to."""
    deaths: list[Death] = field(default_factory=list)
    """Of an execution: what makes it die, in the order in which that happened."""
    key: str | None = field(default=None, compare=False, repr=False)
    """The container of the net that it is an instance of, once somebody has asked."""
    error: Json = None
    rules: int = 1
    """Of an execution: the revision of the language's rules that decides there ."""
    kept_iterators: dict[str, Iterations] = field(default_factory=dict)
    """Scope id of an iterator -> what a resume keeps of its earlier run."""
    kept_insides: dict[str, Scope] = field(default_factory=dict)
    """Scope id of a joblet call -> likewise."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its sub-jobs that ended OK."""


@dataclass(slots=True)
class Token:
    step: str
    path: Path
    args: JsonMap
    origin: str | None
    parent: str | None
    counter: int = 1


@dataclass(slots=True)
class Unhandled:
    """A failure that no arc took: it fails the execution, and a resume runs its step again."""

    step: str
    run: StepRun | None
    error: Json


@dataclass(slots=True)
class Execution(Scope):
    """One document that runs: the root of a run, or a child that a task or a component runs."""

    id: str = ""
    prefix: str = ""
    place: Place = ROOT
    status: str = "new"
    name: str = ""
    digest: str = ""
    workload: Json = None
    started_at: float = 0.0
    resumed_at: float = 0.0
    """When the run was last taken up by a resume; 0 when it never was."""
    ended_at: float | None = None
    ctx: SharedContext = field(default_factory=SharedContext)
    results: dict[str, Json] = field(default_factory=dict)
    result: Json = None
    result_path: Path = ()
    tokens: dict[Path, Token] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    unhandled: list[Unhandled] = field(default_factory=list)
    ending: dict[str, StepRun] = field(default_factory=dict)
    """Step runs that have ended and whose arcs have not been decided yet."""
    cancelling: bool = False
    top: int = 0
    document: Json = None
    trace_id: str | None = None
    kind: str = "playbook"
    exit_code: int | None = None
    continues: str | None = None
    """The task run, or the component, whose failed child this one goes on from."""
    failed_iterations: int = 0
    """Of a job that has ended."""
    kept: Json = None
    """What the document had kept from earlier runs."""

    def __post_init__(self) -> None:
        self.id = self.prefix = self.place.id

    @property
    def is_stopping(self) -> bool:
        """It is being cancelled, or it dies: what is under way comes to an end, and next to nothing starts."""
        return self.cancelling or bool(self.deaths)


@dataclass(slots=True)
class Joined:
    clock: LogicalClock
    """Of the join."""
    links: set[int] = field(default_factory=set)


@dataclass(slots=True)
class State:
    """The whole tree of one run, with indexes from scope ids to states, so that a fact finds what it changes at once."""

    root: Execution = field(default_factory=Execution)
    executions: dict[str, Execution] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    """Executions among them."""
    subjobs: dict[str, Subjob] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)
    """Step runs under way, and components."""
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    """Those that are open: of step runs, and of iterations of loops."""
    counters: dict[str, int] = field(default_factory=dict)
    """Where scopes go on counting that are no longer, or not yet, known: an event's name is never given twice."""
    floors: dict[str, int] = field(default_factory=dict)
    """Iterator -> where all scopes in its iterations begin to count, when what lies around it starts over: those that had closed
    are gone, and have left only the highest number that was given in them."""
    joined: dict[str, Joined] = field(default_factory=dict)
    """Scope of a join that has not started -> its links that have fired."""
    on_iteration_closed: Callable[[StepRun, int, Pipeline], None] | None = None
    on_shards: Callable[[StepRun, Body], None] | None = None
    """Told of every fact of a fanned-out loop, once it is in the state."""

    def __post_init__(self) -> None:
        self.executions.setdefault("", self.root)
        self.scopes.setdefault("", self.root)

    def counter(self, scope: str) -> int:
        """Where a scope begins to count, or goes on."""
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
    holder: Run | Pipeline | Subjob | Scope,
    body: Body,
    cause: str | None = PREVIOUS,
    *,
    task: str | None = None,
    clock: LogicalClock | None = None,
) -> Fact:
    """The next fact of a run, a pipeline, a sub-job or an iteration. Unless another cause is given, the one before it is."""
    place, counter = holder.place, holder.counter
    if cause is PREVIOUS:
        cause = f"{place.id}:{counter - 1}"
    return Fact(place.id, (*(clock or place.clock), counter), body, cause, task)


def number_after(fact: Fact) -> int:
    """The number of the next fact of its scope."""
    return fact.clock[-1] + 1  # type: ignore[operator]


# ---- finding one's way


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
    """What makes the job die, of all that a scope holds: what a resume has kept of it."""
    found = [Death(one.place.id, ABORTED.format(one.name)) for one in scope.subjobs.values() if one.aborts]
    for component in sorted(scope.runs.values(), key=lambda run: run.place.clock):
        if component.dies:
            found.append(Death(component.place.id, DEAD.format(component.place.id)))
        if component.inside is not None:
            found += deaths_in(component.inside)
    return found


def dying(scope: Scope) -> ComponentRun | None:
    """The component with which the job dies, if one has ended so: the first by place."""
    component: ComponentRun
    for component in sorted(scope.runs.values(), key=lambda run: run.place.clock):
        if component.dies:
            return component
        if component.inside is not None and (inner := dying(component.inside)) is not None:
            return inner
    return None


def failed_iterations(scope: Scope) -> int:
    """Iterations in a scope that failed, also those inside of others."""
    failed = 0
    for component in scope.runs.values():
        if component.fan is not None:
            failed += component.fan.failed + component.fan.failed_inside
        if component.inside is not None:
            failed += failed_iterations(component.inside)
    return failed


def values_of(execution: Execution) -> JsonMap:
    """Its ctx; or, of a job, all globals as they stand when everything that has closed so far is put together."""
    if execution.kind == "playbook":
        return execution.ctx.values
    return joined(exported(subjob.out()) for subjob in execution.subjobs.values()).values(is_shared=True)
