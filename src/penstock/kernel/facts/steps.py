"""Facts of playbooks: tokens, step runs with their tasks and loops, and arcs."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.values import Json, JsonMap, frozen


@frozen
class TokenCreated:
    step: str
    path: list[int]
    args: JsonMap
    parent_step_run_id: str | None = None
    origin: str | None = None
    arc: int | None = None


@frozen
class TokenRefused:
    step: str
    path: list[int]
    rule: int | None = None
    error: Json = None


@frozen
class TokenStranded:
    step: str
    path: list[int]
    missing: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)


@frozen
class RunScheduled:
    step: str
    path: list[int]
    visit: int
    args: JsonMap
    rule: int | None = None
    tokens: list[list[int]] = field(default_factory=list)
    continues: str | None = None


@frozen
class RunStarted:
    step: str


@frozen
class ArcsSelected:
    """`unhandled`: the run failed and no arc handled the failure. `abort`: so the execution stops its other runs."""

    on: str
    arcs: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    writes: JsonMap = field(default_factory=dict)
    unhandled: bool = False
    abort: bool = False
    error: Json = None


@frozen
class ArcEnqueued:
    step: str
    token: list[int]
    arc: int


@frozen
class TaskStarted:
    task: str
    kind: str
    attempt: int


@frozen
class TaskEnded:
    """`next` is where the cursor goes; -1 ends the pipeline. `writes` has the keys iter, ctx and append, each optional."""

    task: str
    attempt: int
    outcome: JsonMap
    do: str
    next: int
    rule: int | None = None
    delay: float = 0.0
    writes: JsonMap = field(default_factory=dict)
    error: Json = None
    given_up: bool = False


@frozen
class LoopStarted:
    """`collection`: the elements and their keys, if they were read page by page; otherwise they are in the document or in ctx.
    `total` is None if they are claimed bit by bit: each claim is recorded by itself."""

    total: int | None
    mode: str
    max_in_flight: int
    reducers: JsonMap = field(default_factory=dict)
    collection: Json = None


@frozen
class ElementsClaimed:
    """Elements `lo` to `hi` of a loop have been claimed: a list of them, or a reference to one; and of their keys."""

    lo: int
    hi: int
    items: Json
    keys: Json


@frozen
class IterationStarted:
    index: int
    item: Json = None


@frozen
class IterationEnded:
    index: int
    status: Literal["done", "failed"]
    error: Json = None
    writes: JsonMap = field(default_factory=dict)


@frozen
class RunEnded:
    """The end of a step run, which makes its writes to ctx visible to everyone.

    `given_up`: it did not end by itself; a time limit, a cancel or another step's failure ended it.
    """

    step: str
    status: Literal["done", "failed"]
    result: Json = None
    error: Json = None
    writes: JsonMap = field(default_factory=dict)
    looped: bool = False
    given_up: bool = False
    fanned_out: bool = False
    """The loop was handed out to many workers: its end is recorded by the server, not by a worker (D26)."""
    shared: JsonMap = field(default_factory=dict)
    """For a loop: the reduced values. They are among `writes`, unless the step overwrote them."""
