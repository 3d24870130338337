"""What is remembered of a job's log: components, sub-jobs, iterations, the links that fired, and the starts of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from penstock.kernel.values import Json

WAIT, RUNNING, OK, ERROR, SKIPPED = "WAIT", "RUNNING", "OK", "ERROR", "SKIPPED"
PENDING = "PENDING"
SETTLED = frozenset({OK, ERROR, SKIPPED})
KEPT_FAILURES = 1_000


class Fire(NamedTuple):
    """A control link that fired. `source` and `target` are scopes, without that of the execution."""

    link: int
    source: str
    target: str
    on: str
    order: int
    at: float


@dataclass(slots=True)
class ComponentSeen:
    name: str
    node: str
    """What it is called in the document."""
    subjob: str
    clock: str
    state: str = WAIT
    type: str = ""
    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    """The ports that rows were handed over on."""
    ms: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    error: Json = None
    dies: bool = False
    exit_code: int | None = None
    after: bytes | msgspec.Raw = b"{}"
    """Its after-variables, as JSON."""
    reason: str = ""
    """Why it was skipped, and which of its links said so."""
    upstream: str | None = None
    link: str | None = None
    opens: str | None = None
    iterator: IteratorSeen | None = None
    kept: bool = False


@dataclass(slots=True)
class SubjobSeen:
    """A sub-job; also an iteration, which is one. `members` in the order in which they were first heard of."""

    scope: str
    name: str
    container: str
    clock: str
    index: int = 0
    state: str = PENDING
    members: dict[str, None] = field(default_factory=dict)
    error: Json = None
    started_at: float | None = None
    ended_at: float | None = None
    checkpoint: int | None = None
    """The size of what a resume would stand on."""
    kept: bool = False
    iterator: str | None = None
    item: Json = None
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

    @property
    def is_half_over(self) -> bool:
        """Its body has ended, and a resume would only run what handles its end: that is open, or has failed."""
        return bool(self.handlers) or (self.body == OK and self.state == ERROR)


@dataclass(slots=True)
class IteratorSeen:
    total: int | None = None
    parallel: int = 1
    ok: int = 0
    failed: int = 0
    running: int = 0
    failures: list[int] = field(default_factory=list)
    is_over: bool = False

    @property
    def settled(self) -> int:
        return self.ok + self.failed


@dataclass(slots=True)
class StartSeen:
    at: float
    resumed: bool = False
    kept: int = 0
    first_component_at: float | None = None
    name: str = ""
    context: Json = None


@dataclass(slots=True)
class JobSeen:
    """All that a job's log says, as far as somebody asks for it."""

    execution: str = ""
    """The scope of the execution, which the names below go without."""
    lists_iterations: bool = True
    components: dict[str, ComponentSeen] = field(default_factory=dict)
    subjobs: dict[str, SubjobSeen] = field(default_factory=dict)
    fires: dict[str, dict[tuple[int, str], Fire]] = field(default_factory=dict)
    """Scope that a fact of it lies in -> the links that fired there. In one scope a link fires at most once."""
    starts: list[StartSeen] = field(default_factory=list)
    status: str = "running"
    error: Json = None
    exit_code: int | None = None
    ended_at: float | None = None
    failed_iterations: int = 0
    """Of a job that has ended: those that were gone on from, also inside of other iterations."""
    cancel_reason: str | None = None
    stops: list[tuple[float, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    global_writes: Counter[str] = field(default_factory=Counter)
    checkpoints: int = 0
    checkpoint_bytes: int = 0
    largest_checkpoint: int = 0
    events: int = 0
    last_ts: float = 0.0
    kept_iterators: dict[str, IteratorSeen] = field(default_factory=dict)
    """Iterators that are to start over -> what a resume keeps of them."""

    def iterations(self) -> list[SubjobSeen]:
        return [subjob for subjob in self.subjobs.values() if subjob.iterator is not None]

    def fired(self) -> list[Fire]:
        return [fire for fires in self.fires.values() for fire in fires.values()]
