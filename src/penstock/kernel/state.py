"""State: what the facts so far amount to. Only `penstock.kernel.evolve` writes it.

    ExecutionState ── RunState ── PipelineState                  a step run
                              ├── LoopState ── PipelineState …   a step run with a loop: one pipeline per open iteration
                              └── FanoutState ── ShardRange …    a step run whose loop is fanned out: the ranges that are out
                   PipelineState ── ExecutionState               a task that runs a playbook of its own

It is mutable and owned by its decider; a closed scope is dropped and lives on in counters only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kernel.facts import RunEnded
from penstock.kernel.patches import Gathered, SharedContext, Staged, claims
from penstock.kernel.places import ROOT, Path, Place
from penstock.kernel.reducers import fold_parts, with_reduced
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.kernel.fanout import FanoutState
    from penstock.kernel.flow.state import ContainerState


@dataclass(slots=True)
class PipelineState:
    """The program counter of one pipeline and all that its templates can see."""

    place: Place
    ctx: JsonMap
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
    error: Json = None
    before_end: tuple[JsonMap, JsonMap, Staged] | None = None
    """Of an iteration whose last task wrote: its `iter`, ctx and writes as that task found them."""
    children: dict[str, ExecutionState] = field(default_factory=dict)

    def next_task_run(self, label: str) -> str:
        return f"{self.place.id}/{label}#{self.ordinals.get(label, 0) + 1}"


@dataclass(slots=True)
class Bitmap:
    """Which indexes have settled, at one bit each, with the lowest one that has not."""

    bits: bytearray = field(default_factory=bytearray)
    low: int = 0

    def add(self, index: int) -> None:
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
class LoopState:
    opened_at: int
    """The counter of the `loop.started` of this run; NOT_OPENED in a reopened run that has not recorded its own yet."""
    total: int
    parallel: bool
    next_index: int = 0
    settled: Bitmap = field(default_factory=Bitmap)
    open: dict[int, PipelineState] = field(default_factory=dict)
    failed_open: dict[int, PipelineState] = field(default_factory=dict)
    """Failed iterations, kept while a resume may run them again; bounded by KEPT_FAILURES."""
    done: int = 0
    failed: int = 0
    first_error: Json = None
    first_failed: int | None = None
    ctx: JsonMap = field(default_factory=dict)
    staged: Gathered = field(default_factory=Gathered)
    writers: dict[str, int] = field(default_factory=dict)
    results: object = field(default=None, compare=False, repr=False)
    """What a worker has gathered of the iterations' results. No state of the kernel's: it only lives and moves with the loop."""
    reducers: dict[str, str] = field(default_factory=dict)
    shared: JsonMap = field(default_factory=dict)
    """Key -> what its reducer has made of the iterations so far."""
    collection: Json = None
    """What it runs over, where that was read page by page and would not be the same if it were read again."""

    def reduce(self, writes: JsonMap) -> None:
        fold_parts(self.reducers, self.shared, writes)

    def as_writes(self) -> JsonMap:
        """What the iterations wrote together, and what the reducers came to."""
        return with_reduced(self.staged.as_writes(), self.reducers, self.shared)

    def take(self, index: int, writes: JsonMap) -> bool:
        """Gather what iteration `index` wrote. True when it takes the place of what a failed run of it had left."""
        again = self.staged.gather(index, writes)
        if self.parallel:
            for claim, _ in claims(writes):
                self.writers.setdefault(claim, index)
        return again


@dataclass(slots=True)
class RunState:
    step: str
    path: Path
    visit: int
    place: Place
    args: JsonMap
    ctx: JsonMap
    scheduled_at: float
    counter: int = 0
    started_at: float | None = None
    pipeline: PipelineState | None = None
    loop: LoopState | None = None
    fanout: FanoutState | None = None
    ended: RunEnded | None = None
    outcome: JsonMap | None = None
    """What its arcs see as `output`, once it has ended."""
    awaiting: int = 0
    """Fired arcs whose tokens have not been recorded yet."""
    continued: Path | None = None
    """The path of the failed run that this one goes on from: its writes include, and take the place of, what that one wrote."""
    loop_id: str | None = None
    """The first of the runs that this one goes on from, whose loop it goes on with."""

    @property
    def loop_name(self) -> str:
        """What its loop and the elements of it are called: the same in all runs of that loop, so that effects keep their keys."""
        return self.loop_id or self.place.id


def last_outcome(run: RunState, end: RunEnded) -> JsonMap:
    """What a step came to, as the outcome of its last task; of a loop, and of a step without tasks, as an outcome of its own."""
    if run.pipeline is not None and run.pipeline.outcome is not None:
        return run.pipeline.outcome
    if end.status == "done":
        return {"status": "ok", "result": end.result}
    return {"status": "error", "result": end.result, "error": end.error}


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
    run: RunState | None
    error: Json


@dataclass(slots=True)
class ExecutionState:
    place: Place = ROOT
    name: str = ""
    digest: str = ""
    workload: Json = None
    status: str = "new"
    counter: int = 0
    started_at: float = 0.0
    resumed_at: float = 0.0
    """When the run was last taken up by a resume; 0 when it never was."""
    ended_at: float | None = None
    ctx: SharedContext = field(default_factory=SharedContext)
    results: dict[str, Json] = field(default_factory=dict)
    result: Json = None
    result_path: Path = ()
    error: Json = None
    runs: dict[str, RunState] = field(default_factory=dict)
    tokens: dict[Path, Token] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    unhandled: list[Unhandled] = field(default_factory=list)
    ending: dict[str, RunState] = field(default_factory=dict)
    """Runs that have ended and whose arcs have not been decided yet."""
    aborting: bool = False
    cancelling: bool = False
    top: int = 0
    document: Json = None
    trace_id: str | None = None
    kind: str = "playbook"
    exit_code: int | None = None
    flow: ContainerState | None = None
    """The inside of a job."""
    rules: int = 1
    """The revision of the language's rules that decides here."""
    continues: str | None = None
    """The task run, or the component, whose failed child this one goes on from."""
    failed_iterations: int = 0
    """Of a job that has ended."""
    kept: Json = None
    """What the document had kept from earlier runs."""


@dataclass(slots=True)
class Counts:
    """What `show` and `run` report of an execution, children included."""

    steps: int = 0
    tasks: int = 0
    iterations: int = 0
    events: int = 0


KEPT_FAILURES = 10_000
NOT_OPENED = -1
