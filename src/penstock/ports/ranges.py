"""Ranges: the right to run some of the elements of a fanned-out loop, and how its holder reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from penstock.kernel.facts import TaskEnded, TaskStarted
from penstock.kernel.net import Node
from penstock.kernel.places import iteration_place
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import StepRun
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import Caller, Setting


@dataclass(slots=True)
class RangeLease:
    """`shards` is as the range stood when the lease was made: its holder keeps count of its own."""

    setting: Setting
    node: Node
    run: StepRun
    shards: ElementRange
    collection: Json
    opened_at: int
    lanes: int = 1
    """So many elements at a time."""
    emits: bool = False
    """Is each element's end to be told by itself?"""
    reducers: dict[str, str] = field(default_factory=dict)
    report_s: float = 3.0
    losses: int = 0
    """So often some of its elements were lost with their worker."""
    stop_reason: str | None = None

    @property
    def key(self) -> str:
        return range_key(self.run.place.id, self.shards.number)

    def shard_id(self, index: int) -> str:
        return iteration_place(self.run.place, self.opened_at, index).id


def range_key(run: str, number: int) -> str:
    return f"{run}#{number}"


class Failed(NamedTuple):
    element: int
    key: str
    error: Json


class TaskTold(NamedTuple):
    """An event of a task of one element. `kind` is its type."""

    element: int
    task: str | None
    kind: str
    body: TaskStarted | TaskEnded


@dataclass(frozen=True, slots=True)
class RangeReport:
    """What came of elements `lo` to `hi`. `results` has one value for each, `same` the one they all have."""

    lo: int
    hi: int
    failures: list[Failed] = field(default_factory=list)
    results: Json = None
    same: bool = False
    writes: list[Json] = field(default_factory=list)
    shared: JsonMap = field(default_factory=dict)
    ms: float = 0.0
    keys: list[str] | None = None
    """One for each, where they have keys of their own and each one's end is told by itself."""
    tasks: list[TaskTold] = field(default_factory=list)
    """What their tasks did, in order for each element; told only where each element is told of by itself."""


class RangeReports(Protocol):
    """Where the holder of a range says what happened."""

    def opened(self, lease: RangeLease, hi: int | None, next: Json, is_end: bool) -> None:
        """Work on it begins. Of a page: how far it goes and where the next one begins."""
        ...

    def reported(self, lease: RangeLease, report: RangeReport) -> None:
        """More of its elements have come to their ends. The lease is over when all have."""
        ...

    def gave_back(self, lease: RangeLease, reason: str) -> None:
        """The holder lets go of what it has not reported: it was told to stop, or has to make room."""
        ...

    def failed(self, lease: RangeLease, error: JsonMap) -> None:
        """The collection could not be opened, so that none of its elements can be had."""
        ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any: ...

    async def durable(self) -> None:
        """Return when all that was said is kept."""
        ...

    def now(self) -> float: ...

    def broke(self, error: BaseException) -> None: ...


@dataclass(frozen=True, slots=True)
class Page:
    """Some elements of a collection that is read in order. `next` opens what follows; `keys` name the elements for good."""

    items: Sequence[Any]
    next: Json = None
    is_end: bool = False
    keys: Sequence[str] | None = None


class Pages(Protocol):
    """A collection that nobody has wholly: it is read page by page, each from where the one before it ended."""

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """At most `most` elements from `token` on (None: from the beginning). With `until`, the same page as before: it ends
        where that one ended, whatever has been added since."""
        ...
