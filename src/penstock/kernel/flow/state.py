"""State of a component net: what the facts so far amount to. Only `penstock.kernel.flow.evolve` and its parts write it.

    ContainerState ── RegionState ── ComponentState ── ContainerState     a joblet call: one inside it
                                                    └─ IteratorState ── ContainerState …   one per open iteration

An iteration that has closed is dropped and lives on in counters and in the globals it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.flow.views import View, Written, exported, joined
from penstock.kernel.frozen import frozen
from penstock.kernel.places import LogicalClock, Place
from penstock.kernel.state import NOT_OPENED, Bitmap
from penstock.kernel.values import Json, JsonMap

WAIT, RUNNING, OK, ERROR, SKIPPED = "WAIT", "RUNNING", "OK", "ERROR", "SKIPPED"
PENDING = "PENDING"
SETTLED = frozenset({OK, ERROR, SKIPPED})
STATUSES = {"ok": OK, "error": ERROR, "skipped": SKIPPED}
"""How a fact calls the end of something -> its state."""


@frozen
class Death:
    """From here on nothing starts but the error path of this component or sub-job, and what runs always."""

    scope: str
    why: str


@dataclass(slots=True)
class ComponentState:
    name: str
    """As it is called in this run: `load[#3].write`."""
    place: Place
    region: RegionState = field(compare=False, repr=False)
    status: str = WAIT
    type: str = ""
    counter: int = 0
    view: View = field(default_factory=View)
    """What it sees while it runs; with its own writes once it has ended."""
    rows_in: JsonMap = field(default_factory=dict)
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    error: Json = None
    dies: bool = False
    exit_code: int | None = None
    fired: set[int] = field(default_factory=set)
    """The links that it fired, by index."""
    inside: ContainerState | None = None
    iterator: IteratorState | None = None
    started_at: float = 0.0
    children: dict[str, Any] = field(default_factory=dict)
    """Executions that it runs, by the id of their task run."""
    kept: bool = False
    """It stays as it is in a sub-job that started over for the sake of its failed iterations."""
    written: list[str] = field(default_factory=list)

    @property
    def is_iterating(self) -> bool:
        """Has it opened its iterations? Of one that a resume starts anew the earlier ones are known before that."""
        return self.iterator is not None and self.iterator.opened_at != NOT_OPENED

    def opened(self) -> list[ContainerState]:
        """The scopes that it has open: the inside of a joblet call, the iterations of an iterator."""
        if self.inside is not None:
            return [self.inside]
        return list(self.iterator.open.values()) if self.iterator is not None and self.is_iterating else []


@dataclass(slots=True)
class RegionState:
    """A sub-job."""

    name: str
    index: int
    place: Place
    container: ContainerState = field(compare=False, repr=False)
    status: str = PENDING
    counter: int = 0
    members: dict[str, ComponentState] = field(default_factory=dict)
    error: Json = None
    kept: bool = False
    handles: bool = False
    """The end of an iteration led to it."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its readers, which count if it ends OK."""
    ended: int = 0
    """How many of its members have ended or were skipped."""
    aborts: bool = False
    """It ended in ERROR, and the job's policy lets nothing else start."""

    def out(self) -> View:
        return joined(member.view for member in self.members.values() if member.status in (OK, ERROR))


def with_inside(call: ComponentState) -> View:
    """What is seen after a joblet call: what was seen before it, and what its inside wrote."""
    assert call.inside is not None
    return View((joined(exported(region.out()) for region in call.inside.regions.values()), call.view))


@dataclass(slots=True)
class ContainerState:
    """The inside of a job, of a joblet call or of an iteration."""

    id: str
    prefix: str
    """What the names of its members begin with."""
    place: Place
    view: View = field(default_factory=View)
    """What is seen where nothing has run yet."""
    regions: dict[str, RegionState] = field(default_factory=dict)
    components: dict[str, ComponentState] = field(default_factory=dict)
    """Scope id -> component, of all its regions."""
    opener: ComponentState | None = field(default=None, compare=False, repr=False)
    index: int | None = None
    """In an iteration: the number of its element."""
    status: str = RUNNING
    counter: int = 0
    """In an iteration: how many facts its own scope has."""
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
    """Of a job: what makes it die, in the order in which that happened."""
    key: str | None = field(default=None, compare=False, repr=False)
    """The container of the net that it is an instance of, once somebody has asked."""
    error: Json = None
    rules: int = 1
    """Of a job: the revision of the rules that it is decided by (`rules_of`)."""
    kept_iterators: dict[str, IteratorState] = field(default_factory=dict)
    """Scope id of an iterator -> what a resume keeps of its earlier run."""
    kept_insides: dict[str, ContainerState] = field(default_factory=dict)
    """Scope id of a joblet call -> likewise."""
    marks: JsonMap = field(default_factory=dict)
    """The watermarks of its sub-jobs that ended OK."""


@dataclass(slots=True)
class IteratorState:
    opened_at: int
    """The counter of its `iterator.started`; NOT_OPENED in one that a resume starts anew, before it has recorded its own."""
    total: int | None
    items: Sequence[Any] | None
    parallel: int
    mode: str
    spread: bool = False
    next_index: int = 0
    settled: Bitmap = field(default_factory=Bitmap)
    open: dict[int, ContainerState] = field(default_factory=dict)
    ok: int = 0
    failed: int = 0
    failures: dict[int, Json] = field(default_factory=dict)
    """The first of the failed ones, to be told of: index -> error."""
    not_ok: Bitmap = field(default_factory=Bitmap)
    """All of the failed ones, which a resume runs again."""
    mishandled: dict[int, ContainerState] = field(default_factory=dict)
    """Of these, the ones whose body ended OK and a handler did not: a resume runs only what handles them."""
    partial: dict[int, ContainerState] = field(default_factory=dict)
    """Those that ended OK although iterations inside of them failed, which `resume --failed` opens again; so many are kept."""
    reopened: dict[int, ContainerState] = field(default_factory=dict)
    """Of these, the ones that are to go on and have not been started again."""
    first_error: Json = None
    """Of the failed ones, that of the lowest element."""
    first_failed: int | None = None
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

    def held(self) -> list[ContainerState]:
        """The iterations that are still known as more than a number."""
        return [*self.open.values(), *self.reopened.values(), *self.partial.values()]


DEAD = "`{}` ended in ERROR and the job dies with it"
ABORTED = "sub-job `{}` ended in ERROR and `on_subjob_error` is abort"


def deaths_in(container: ContainerState) -> list[Death]:
    """What makes the job die, of all that a scope holds: what a resume has kept of it."""
    found = [Death(one.place.id, ABORTED.format(one.name)) for one in container.regions.values() if one.aborts]
    for component in sorted(container.components.values(), key=lambda one: one.place.clock):
        if component.dies:
            found.append(Death(component.place.id, DEAD.format(component.name)))
        if component.inside is not None:
            found += deaths_in(component.inside)
    return found


def root_of(container: ContainerState) -> ContainerState:
    """The job that a scope lies in."""
    while container.opener is not None:
        container = container.opener.region.container
    return container


def dying(container: ContainerState) -> ComponentState | None:
    """The component with which the job dies, if one has ended so: the first by place."""
    for component in sorted(container.components.values(), key=lambda one: one.place.clock):
        if component.dies:
            return component
        if component.inside is not None and (inner := dying(component.inside)) is not None:
            return inner
    return None


KEPT_FAILURES = 1_000
KEPT_WRITES = 100_000
KEPT_PARTIAL = 10_000


def rules_of(container: ContainerState) -> int:
    """The revision of the rules that the job around a scope is decided by."""
    return root_of(container).rules


def failed_iterations(container: ContainerState) -> int:
    """Iterations in a scope that failed, also those inside of others."""
    failed = 0
    for component in container.components.values():
        if component.iterator is not None:
            failed += component.iterator.failed + component.iterator.failed_inside
        if component.inside is not None:
            failed += failed_iterations(component.inside)
    return failed


def owner(region: RegionState) -> str:
    """The sub-job that a new global belongs to.

    An iteration, with the joblets that it calls, writes on behalf of the sub-job that its iterator is in: else the next one
    would find the keys of this one to be another's.
    """
    owning = around = region
    while around.container.opener is not None:
        is_iteration = around.container.index is not None
        around = around.container.opener.region
        if is_iteration:
            owning = around
    return owning.place.id
