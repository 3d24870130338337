"""What a log amounts to, in one set of types for playbooks and jobs.

    RunView ── Execution ── Run ── Fan                 a step or a component that ran, and the parts it was opened as
                        ├── Group                      a sub-job, or one iteration of an iterator
                        └── Fire                       a control link of a job that fired

Law: a large value is not kept here but named by the number of the entry that holds it, and what has closed may become a counter,
so that memory depends on what is open and recent, never on the number of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from penstock.ports.wire import read_clock
from penstock.views.bars import (
    MOST_WORKERS,
    OF_CHILD,
    OF_RUN,
    OF_WORKERS,
    OTHERS,
    Bar,
    Lane,
    Mark,
    MarkKind,
    Marks,
    lane_of,
)
from penstock.views.names import lane_title

if TYPE_CHECKING:
    from penstock.ports.log import Entry
    from penstock.views.payload import Payload

WAITING, RUNNING, OK, FAILED, SKIPPED = "waiting", "running", "ok", "failed", "skipped"
REFUSED, STRANDED, JOINED = "refused", "stranded", "joined"
SETTLED = frozenset({OK, FAILED, SKIPPED})

GONE, NOT_ENDED = "lost or given back", "not ended"
"""How a lease came to an end: the log says no more than that another one followed, or that the run stopped."""

KEPT_ATTEMPTS = 50
KEPT_FAILURES = 200
"""Of the parts of one fan that failed, and of executions that failed inside a run."""

_WORDS = {
    "playbook": {OK: "done"},
    "job": {WAITING: "WAIT", RUNNING: "RUNNING", OK: "OK", FAILED: "ERROR", SKIPPED: "SKIPPED"},
}


def word(status: str, kind: str) -> str:
    """A status as the people who write that kind of document call it."""
    return _WORDS[kind].get(status, status)


class Model(msgspec.Struct, omit_defaults=True):
    """Everything here is data that a snapshot holds."""


class Attempt(Model):
    """One task run. `do` is what its policy made of the outcome; None while it is under way."""

    task_run_id: str
    task: str
    kind: str
    number: int
    started_at: float
    ended_at: float | None = None
    status: str | None = None
    error: Any = None
    do: str | None = None
    next: int = -1
    rule: int | None = None
    delay: float = 0.0
    failure: Any = None
    """Why the pipeline failed here, when it did."""
    seq: int = 0
    """The entries of its start and of its end."""
    end_seq: int = 0

    def end(self, data: Payload, ts: float, seq: int = 0) -> None:
        self.ended_at, self.end_seq = ts, seq
        if data.outcome is not None:
            self.status, self.error = data.outcome.status, data.outcome.error
        self.do, self.next, self.rule = data.do, data.next, data.rule
        self.delay, self.failure = data.delay, data.error


class Task(Model):
    """All runs of one task in a step run."""

    name: str
    kind: str = ""
    runs: int = 0
    attempts: int = 0
    status: str = RUNNING
    error: Any = None


class Retry(Model):
    """An attempt that has failed and is to be made again. `at`: when."""

    task: str
    attempt: int
    since: float
    at: float
    seq: int


class Failure(Model):
    """A part of a fan that failed."""

    index: int
    error: Any = None
    key: str = ""
    attempt: int = 0
    seq: int = 0


class Range(Model):
    """Elements that are leased out. `lo` moves up as the holder reports; `worker` is None until one has taken the range."""

    number: int
    lo: int
    hi: int | None
    attempt: int
    worker: str | None = None
    at: float = 0.0
    """When it was handed out, and when a worker took it."""
    taken_at: float | None = None
    seq: int = 0


class Ranges(Model):
    """How a fan is handed out in ranges. `status`: running, then complete, partial or failed."""

    loop_id: str
    is_paged: bool = False
    status: str = RUNNING
    next: int = 0
    """Elements below it have been handed out at least once."""
    count: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0
    """How many ranges were returned because their worker was lost."""
    out: dict[int, Range] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    """Worker -> how many elements ended there."""
    refs: Any = None
    shared: dict[str, Any] = field(default_factory=dict)


class Lease(Model):
    """A step run, a sub-job or some iterations in the hands of a worker, as far as the log tells: it has what holders say, and
    that a sub-job was lost, but not who takes a lease and when."""

    lane: str
    scope: str
    since: float
    """Of a step run, when its holder was first heard of; of a sub-job, when it was handed out."""
    seq: int
    worker: str | None = None
    """Until one is heard of, nobody knows."""
    heard: float = 0.0
    """When its holder was last heard of."""


class Last(Model):
    """The latest of some runs."""

    run: str
    seq: int
    status: str
    started_at: float | None = None
    ended_at: float | None = None
    worker: str | None = None


class Totals(Model):
    """Runs of one node that are no longer kept one by one."""

    runs: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    """Status -> how many ended so."""
    timed: int = 0
    ms: float = 0.0
    longest: float = 0.0
    rows_in: dict[str, list[int]] = field(default_factory=dict)
    """Port -> how often rows came in there, and how many in all."""
    rows_out: dict[str, list[int]] = field(default_factory=dict)
    """Port -> how often rows were handed over there, and how many in all."""
    depth: int = 0
    last: Last | None = None

    def add(self, run: Run) -> None:
        self.runs += 1
        self.depth = run.name.count("].")
        if self.last is None or run.created_seq > self.last.seq:
            self.last = Last(run.id, run.created_seq, run.status, run.started_at, run.ended_at, run.worker)
        if run.ended_at is not None:
            self.ended[run.status] = self.ended.get(run.status, 0) + 1
            if run.started_at is not None:
                self.timed, self.ms, self.longest = self.timed + 1, self.ms + run.ms, max(self.longest, run.ms)
        for port, rows in run.rows_in.items():
            _count(self.rows_in, port, 1, rows)
        for port in run.outputs if run.status == OK else ():
            _count(self.rows_out, port, 1, run.rows_out.get(port, 0))

    def merge(self, other: Totals) -> None:
        self.runs, self.depth = self.runs + other.runs, other.depth or self.depth
        if other.last is not None and (self.last is None or other.last.seq > self.last.seq):
            self.last = other.last
        for status, number in other.ended.items():
            self.ended[status] = self.ended.get(status, 0) + number
        self.timed, self.ms, self.longest = (
            self.timed + other.timed,
            self.ms + other.ms,
            max(self.longest, other.longest),
        )
        for mine, theirs in ((self.rows_in, other.rows_in), (self.rows_out, other.rows_out)):
            for port, (times, rows) in theirs.items():
                _count(mine, port, times, rows)


def _count(ports: dict[str, list[int]], port: str, times: int, rows: int) -> None:
    known = ports.get(port)
    if known is None:
        ports[port] = [times, rows]
    else:
        known[0] += times
        known[1] += rows


class Fan(Model):
    """One node opened as many parts: a loop, an iterator, a fan-out. Parts that have closed are counted, failed ones listed.

    `mode`: sequential, parallel or fan-out of a loop; iterator of a job's.
    """

    total: int | None = None
    mode: str = "sequential"
    parallel: int = 1
    ok: int = 0
    failed: int = 0
    open: set[int] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)
    """The first that failed, in the order in which they did."""
    ranges: Ranges | None = None
    """Of one that is handed out in ranges."""
    known: int = 0
    """Of a loop over claimed rows: how many have been claimed so far."""
    seq: int = 0
    """The entry that opened it."""
    held: dict[str, Lease] = field(default_factory=dict)
    """Of an iterator that is spread over workers: the worker and the element that it would go on with -> what it has had."""
    spread: bool = False
    fallen: dict[str, Totals] = field(default_factory=dict)
    """Of an iterator: what ran in failed iterations that are not kept; a resume that opens it anew forgets it."""

    @property
    def settled(self) -> int:
        return self.ok + self.failed

    @property
    def size(self) -> int:
        """How many parts there are, as far as that is known."""
        return self.total if self.total is not None else self.ranges.next if self.ranges is not None else self.known

    def fail(self, failure: Failure) -> None:
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            self.failures.append(failure)


class Selected(Model):
    """What was decided about the arcs when a step run had ended."""

    seq: int
    on: str
    arcs: list[int]
    steps: list[str]
    unhandled: bool
    was_stopped: bool
    """The execution was being cancelled or aborted, so that no arc was evaluated."""
    error: Any = None


class Run(Model):
    """One run of a node: a step's token and the step run it became, or a component.

    `status`: waiting, running, ok, failed; skipped of a component; of a token also refused, stranded, or joined: consumed
    together with others.
    """

    id: str
    """Its scope in the log."""
    node: str
    """What the document calls it."""
    clock: str
    created_seq: int
    created_at: float
    status: str = WAITING
    error: Any = None
    started_at: float | None = None
    ended_at: float | None = None
    end_seq: int | None = None
    fan: Fan | None = None

    # ---- of a step run: how it came to be, what its tasks did, where it led
    origin: str | None = None
    arc: int | None = None
    parent: str | None = None
    cause: str | None = None
    visit: int | None = None
    rule: int | None = None
    tokens: list[str] = field(default_factory=list)
    """Of a join: the places of all tokens it consumed."""
    missing: list[str] = field(default_factory=list)
    joined: str | None = None
    continues: str | None = None
    continued_by: str | None = None
    scheduled_seq: int | None = None
    worker_at: float | None = None
    """When a worker began with it; before that it waited for one."""
    worker: str | None = None
    last_task: str = ""
    """The task that runs, or ran last, and its attempt."""
    last_attempt: int = 0
    retries: dict[str, Retry] = field(default_factory=dict)
    """Scope, of the run or of one of its iterations, in which a retry is waited for -> that retry."""
    tasks: dict[str, Task] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    under_way: dict[str, Attempt] = field(default_factory=dict)
    selected: Selected | None = None
    lease: Lease | None = None
    """The one that is out."""

    # ---- of a component
    type: str = ""
    group: str = ""
    """The sub-job or iteration that it lies in."""
    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    """The ports that rows were handed over on."""
    ms: float = 0.0
    dies: bool = False
    exit_code: int | None = None
    after: str = "{}"
    """Its after-variables, as JSON."""
    reason: str = ""
    """Why it was skipped, and which of its links decided that."""
    upstream: str | None = None
    link: str | None = None
    opens: str | None = None
    kept: bool = False
    """It ran before the last resume, which kept it."""
    sees: dict[str, int] = field(default_factory=dict)
    """Global -> the write that it sees, by its number among those of the execution."""
    sees_local: dict[str, int] = field(default_factory=dict)

    @property
    def execution(self) -> str:
        return self.id[: self.id.rfind("/") + 1]

    @property
    def name(self) -> str:
        """Its scope within its execution."""
        return self.id[self.id.rfind("/") + 1 :]

    @property
    def took(self) -> float:
        """Seconds from its start to its end, or 0 when it has had neither."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return max(0.0, self.ended_at - self.started_at)

    def try_out(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        if len(self.attempts) > KEPT_ATTEMPTS:
            del self.attempts[0]


class Group(Model):
    """A sub-job; also an iteration, which is one. `members` in the order in which they first appeared."""

    scope: str
    """Within its execution."""
    name: str
    container: str
    clock: str
    index: int = 0
    status: str = WAITING
    members: dict[str, None] = field(default_factory=dict)
    error: Any = None
    started_at: float | None = None
    ended_at: float | None = None
    start_seq: int = 0
    end_seq: int = 0
    checkpoint: int | None = None
    """The size of its checkpoint in bytes."""
    kept: bool = False
    iterator: str | None = None
    item: Any = None
    body: str = ""
    """Of an iteration: how its body ended, whatever became of what its end led to."""
    handlers: int = 0
    """Of an iteration: what its end led to and has not ended itself."""
    unwell: int = 0
    """Of an iteration: what its end led to and has ended, but not OK."""
    handles: bool = False
    """The end of an iteration led to it."""
    inner: list[str] = field(default_factory=list)
    """Of an iteration whose body is several sub-jobs: these, and those that its end led to."""
    lease: Lease | None = None
    """Of a sub-job outside of any iteration and joblet: the one that is out."""

    @property
    def is_half_over(self) -> bool:
        """Its body has ended, and a resume would only run what handles its end: that is open, or has failed."""
        return bool(self.handlers) or (self.body == OK and self.status == FAILED)


class Fire(Model):
    """A control link that fired. `source` and `target` are scopes within the execution."""

    link: int
    source: str
    target: str
    on: str
    order: int
    at: float
    seq: int = 0


class Start(Model):
    """A start of an execution; the first, or a resume."""

    at: float
    resumed: bool = False
    kept: int = 0
    first_component_at: float | None = None
    seq: int = 0


class Stop(Model):
    at: float
    reason: str
    seq: int = 0


class Written(Model):
    """A value of a global. `before` is the write that it replaced, by number; -1 when it made the key."""

    value: Any
    clock: str
    writer: str
    before: int = -1
    deleted: bool = False
    run: str = ""


class Context(Model):
    """The current ctx: of concurrent branches the later place wins, never the later wall clock."""

    values: dict[str, Any] = field(default_factory=dict)
    written_at: dict[str, list[int]] = field(default_factory=dict)
    appended_at: dict[str, list[list[int]]] = field(default_factory=dict)


class Checkpoints(Model):
    count: int = 0
    bytes: int = 0
    largest: int = 0


class Execution(Model):
    """The run itself, or a playbook or job that one of its tasks or components runs."""

    scope: str
    kind: str
    name: str
    entry: str
    started_at: float
    document: Any = None
    parent: str | None = None
    workload: Any = None
    status: str = RUNNING
    """running, interrupted, completed, failed, cancelled"""
    error: Any = None
    exit_code: int | None = None
    failed_iterations: int = 0
    """Of a job that has ended: those that were gone on from, also inside of other iterations."""
    ended_at: float | None = None
    end_seq: int | None = None
    cancel_reason: str | None = None
    cancel_seq: int = 0
    stopped_seq: int | None = None
    """The entry from which on no arc is looked at: a cancel, or a failure in a fail_fast execution."""
    starts: list[Start] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    continues: str | None = None
    """The task run whose failed child this one goes on from."""
    counts: dict[str, int] = field(default_factory=dict)
    """Type of event -> how many, without those of executions inside."""
    events: int = 0
    """Also of executions inside."""
    runs: dict[str, Run] = field(default_factory=dict)
    """By their names within the execution."""
    gone: dict[str, Totals] = field(default_factory=dict)
    """Node -> what is known of its runs that are no longer kept."""
    closed: list[str] = field(default_factory=list)
    """Step runs that have ended and are still kept, the earliest first."""
    arcs: dict[str, dict[int, int]] = field(default_factory=dict)
    """Step -> arc -> how often it fired."""
    lanes: dict[str, Lane] = field(default_factory=dict)
    """Node -> when it ran and waited."""

    # ---- of a playbook
    ctx: Context = field(default_factory=Context)
    results: dict[str, Any] = field(default_factory=dict)
    """Step -> the result of its last run that was done."""
    result: Any = None
    result_path: list[int] = field(default_factory=list)

    # ---- of a job
    groups: dict[str, Group] = field(default_factory=dict)
    """By their scopes within the execution."""
    fires: dict[str, list[Fire]] = field(default_factory=dict)
    """Scope that a fact of it lies in -> the links that fired there."""
    fired: dict[int, int] = field(default_factory=dict)
    """Link -> how often it fired in iterations that are no longer kept."""
    opened: dict[str, int] = field(default_factory=dict)
    """Iterator's node -> how many of its iterations are no longer kept."""
    inside: dict[str, list[str]] = field(default_factory=dict)
    """Iteration outside of any other -> the scopes in it, until it is let go."""
    kept_fans: dict[str, Fan] = field(default_factory=dict)
    """Iterators that are to start over -> what a resume keeps of them."""
    writes: list[Written] = field(default_factory=list)
    """Of globals, outside of iterations."""
    global_writes: dict[str, int] = field(default_factory=dict)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def every_fire(self) -> Iterator[Fire]:
        return (fire for fires in self.fires.values() for fire in fires)

    def of_node(self, node: str) -> list[Run]:
        """The runs of a step in canonical order; tokens that were consumed together with others are left out."""
        runs = (run for run in self.runs.values() if run.node == node and run.joined is None)
        return sorted(runs, key=lambda run: read_clock(run.clock))

    def leases(self) -> list[Lease]:
        """Of step runs and sub-jobs that are out."""
        found = [run.lease for run in self.runs.values() if run.lease is not None]
        return found + [group.lease for group in self.groups.values() if group.lease is not None]

    def leases_of_iterations(self) -> list[Lease]:
        """Which of them are over, and not only silent, is not known until the iterator has ended."""
        return [lease for _, fan in self.iterators() for lease in fan.held.values()]

    def leave_leases(self) -> None:
        for run in self.runs.values():
            run.lease = None
            if run.fan is not None:
                run.fan.held.clear()
        for group in self.groups.values():
            group.lease = None

    def iterators(self) -> Iterator[tuple[str, Fan]]:
        return ((name, run.fan) for name, run in self.runs.items() if run.fan is not None)

    def totals(self) -> dict[str, Totals]:
        """Node -> what all of its runs came to, kept or not."""
        found: dict[str, Totals] = {}
        parts = [
            self.gone,
            *(fan.fallen for _, fan in self.iterators()),
            *(one.fallen for one in self.kept_fans.values()),
        ]
        for node, totals in ((node, one) for part in parts for node, one in part.items()):
            found.setdefault(node, Totals()).merge(totals)
        for run in self.runs.values():
            found.setdefault(run.node, Totals()).add(run)
        return found


class View(Model):
    """What a log amounts to up to one entry.

    `whole`: every step run and every execution is kept. `listed`: jobs of which every iteration is kept, by their scopes.
    """

    whole: bool = False
    listed: list[str] = field(default_factory=list)
    seq: int = 0
    ts: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    """Type of event -> how many, of all executions; and elements of fan-outs that have ended."""
    executions: dict[str, Execution] = field(default_factory=dict)
    """By their scopes; the run itself has none."""
    closed: list[str] = field(default_factory=list)
    """Executions inside the run that have ended, the earliest first."""
    gone: dict[str, int] = field(default_factory=dict)
    """Status -> how many executions inside the run ended so and are no longer kept."""
    first_ts: float = 0.0
    first_error: int | None = None
    """The entry of the first failure."""
    marks: dict[str, Marks] = field(default_factory=dict)
    """Kind -> what is worth stopping at on a slider."""
    workers: dict[str, Lane] = field(default_factory=dict)
    """Worker -> when it had what to do."""

    @property
    def root(self) -> Execution | None:
        return self.executions.get("")

    @property
    def is_complete(self) -> bool:
        """Has no step run and no execution been let go?"""
        return not self.gone and not any(one.gone for one in self.executions.values() if one.kind == "playbook")

    def run(self, scope: str | None) -> Run | None:
        """A run by its scope in the log."""
        if scope is None:
            return None
        cut = scope.rfind("/") + 1
        execution = self.executions.get(scope[:cut])
        return execution.runs.get(scope[cut:]) if execution is not None else None

    def lists(self, execution: Execution) -> bool:
        return execution.scope in self.listed

    # ---- what is thinned as it grows

    def mark(self, kind: MarkKind, entry: Entry, text: str, node: str | None = None) -> None:
        if kind == "failure" and self.first_error is None:
            self.first_error = entry.seq
        marks = self.marks.get(kind)
        if marks is None:
            marks = self.marks[kind] = Marks()
        if marks.is_wanted():
            marks.add(Mark(entry.seq, entry.ts, kind, text, node))

    def draw(self, execution: Execution, node: str, bar: Bar) -> None:
        """Adds a bar to the lane of its node and, if it is known who did that, to that of the worker."""
        lane = execution.lanes.get(node) or lane_of(execution.lanes, node, OF_CHILD if execution.scope else OF_RUN)
        lane.add(bar)
        if bar.worker is not None and (bar.kind == "run" or bar.kind == "lease"):
            name = bar.worker if bar.worker in self.workers or len(self.workers) < MOST_WORKERS else OTHERS
            lane_of(self.workers, name, OF_WORKERS).add(copy(bar))

    # ---- leases

    def hear(self, execution: Execution, run: Run, entry: Entry, began: float) -> None:
        """The holder of a step run has told what it had begun at `began`. If another one was heard of before, that one has lost
        the lease, or gave it back."""
        lease = run.lease
        if lease is None or lease.worker != entry.worker:
            if lease is not None:
                self.end_lease(execution, lease, entry.seq, max(lease.heard, began), GONE)
                text = f"worker `{lease.worker}` lost `{run.id}` or gave it back, and worker `{entry.worker}` went on"
                self.mark("lost", entry, text, run.node)
            lease = run.lease = Lease(run.node, run.id, began, entry.seq, entry.worker)
        lease.heard = entry.ts

    def end_lease(self, execution: Execution, lease: Lease, last: int, until: float, how: str = "") -> None:
        """`how` says why nobody holds it any more, unless what it was for has ended."""
        bar = Bar(lease.since, max(until, lease.since), "lease", FAILED if how else OK, failed=int(bool(how)))
        bar.scope, bar.seq, bar.last, bar.worker = lease.scope, lease.seq, last, lease.worker
        bar.label = f"{lane_title(lease.lane)}, {how}" if how else lane_title(lease.lane)
        self.draw(execution, lease.lane, bar)

    def end_leases(self, execution: Execution, last: int) -> None:
        """Nobody works on the execution any more; when each holder stopped is not known, but for when it was last heard of."""
        for lease in execution.leases():
            self.end_lease(execution, lease, last, lease.heard, NOT_ENDED)
        for lease in execution.leases_of_iterations():
            self.end_lease(execution, lease, last, lease.heard)
        execution.leave_leases()
