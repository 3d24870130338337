"""Facts of jobs: sub-jobs, components and their links, globals, iterators."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.values import Json, JsonMap, frozen


@frozen
class SubjobStarted:
    subjob: str
    index: int
    container: str = ""
    """The scope it lies in: a joblet call, an iteration, or the execution."""


@frozen
class SubjobEnded:
    """`aborts`: the job's policy is to start nothing else after this error."""

    subjob: str
    status: Literal["ok", "error", "skipped"]
    index: int = 0
    container: str = ""
    error: Json = None
    aborts: bool = False


@frozen
class CheckpointSaved:
    """What a resume can rely on. `outputs`: component -> port -> hash of its rows."""

    subjob: str
    bytes: int
    status: str = "ok"
    globals: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    context: Json = None


@frozen
class ComponentStarted:
    """`sees`: the scopes whose globals it sees. `opens`: for a joblet call, the scope inside it."""

    component: str
    type: str
    subjob: str
    sees: list[str] = field(default_factory=list)
    rows_in: JsonMap = field(default_factory=dict)
    opens: str | None = None


@frozen
class ComponentEnded:
    """`dies`: the job ends once its error path has run (D18, D38)."""

    component: str
    status: Literal["ok", "error"]
    rows_in: JsonMap = field(default_factory=dict)
    rows_out: JsonMap = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    after: JsonMap = field(default_factory=dict)
    result: Json = None
    error: Json = None
    ms: float = 0.0
    dies: bool = False
    exit_code: int | None = None


@frozen
class ComponentSkipped:
    """`cause` is the reason in prose, not an event name; `upstream` and `link` name the link that decided it."""

    component: str
    subjob: str
    cause: str
    upstream: str | None = None
    link: str | None = None
    subjob_name: str = ""
    index: int = 0
    container: str = ""


@frozen
class LinkFired:
    """In the log the source is called `from`, the target `to`."""

    source: str
    target: str
    on: str
    order: int
    link: int


@frozen
class GlobalSet:
    """`local`: the key was created by another sub-job and the writer may not export it, so only its own sub-job sees it."""

    key: str
    old: Json
    new: Json
    writer: str
    scope: str
    local: bool = False
    creator: str = ""
    is_set: bool = False
    deleted: bool = False
    """The key no longer exists from here on (D62, rulebook 13.4)."""


@frozen
class IteratorStarted:
    """`items` pins the elements: a resume continues over the same ones, whatever the source contains by then. `spread`: its
    iterations are run by several workers of a fleet."""

    iterator: str
    total: int | None
    items: Json = None
    parallel: int = 1
    mode: str = "accumulate"
    spread: bool = False


@frozen
class ElementStarted:
    """`subjobs`: how many sub-jobs the body has. If it has one, the iteration itself is that sub-job."""

    iterator: str
    index: int
    item: Json = None
    subjobs: int = 1


@frozen
class ElementEnded:
    """`handlers`: how many sub-jobs of the iteration still follow, through iteration_ok or iteration_error."""

    iterator: str
    index: int
    status: Literal["ok", "error"]
    error: Json = None
    handlers: int = 0


@frozen
class IteratorCompleted:
    iterator: str
    status: Literal["ok", "error"]
    total: int
    ok: int
    failed: int
    failures: list[int] = field(default_factory=list)
    """The indexes of the first failed iterations."""
