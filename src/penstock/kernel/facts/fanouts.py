"""Facts of a fan-out: a loop whose elements (shards) are handed out in ranges, each on a lease of its own.

A shard is one element, and its id is derived: `fetch@2[5]`. Facts record ranges of shards, and the shards that failed.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.values import Json, JsonMap, frozen


@frozen
class FanoutStarted:
    """`total` is None while it is unknown, because the collection is read page by page. `claims`: a page is a claim, so a page
    without elements means that there are none now, not that there will be none."""

    step: str
    loop_id: str
    total: int | None
    collection: Json
    policy: JsonMap = field(default_factory=dict)
    is_paged: bool = False
    claims: bool = False


@frozen
class ShardsEnqueued:
    """Elements `lo` to `hi` (exclusive) wait for a worker. For an unopened page, `hi` is None and `most` its bound."""

    loop_id: str
    range: int
    lo: int
    hi: int | None
    attempt: int = 0
    """How often these elements have been handed out before and failed or were lost."""
    most: int = 0
    base: int = 0
    """For a page: the index of its first element."""
    token: Json = None
    """For a page: where it begins."""
    until: Json = None
    """For a page that has been opened before: where it ended."""


@frozen
class ShardsStarted:
    """A worker has begun with elements `lo` to `hi`. For a page, `next` is where the next begins; `is_end` if it is the last."""

    loop_id: str
    range: int
    hi: int | None = None
    next: Json = None
    is_end: bool = False
    lo: int | None = None


@frozen
class ShardsReported:
    """A worker has reported elements `lo` to `hi` of its range, some of which wrote to ctx.

    Whether their writes conflict with those of earlier elements is decided at the fan-in; only then each is done or has failed.
    `failed` lists those that failed on the worker and have already ended.

    `results`, `writes` and `shared` are as in `ShardsDone`; the values that an element which wrote to ctx gives to reducers are
    among its writes, and count when the element is done.
    """

    loop_id: str
    range: int
    lo: int
    hi: int
    failed: list[int] = field(default_factory=list)
    results: Json = None
    writes: list[Json] = field(default_factory=list)
    shared: JsonMap = field(default_factory=dict)
    ms: float = 0.0
    keys: list[str] | None = None


@frozen
class ShardsDone:
    """Elements `lo` to `hi` of a range have ended, including those that failed.

    `results`: `{"same": value}`, a list, or a reference to one. `writes`: [index, writes to ctx] for those that wrote.
    `shared`: key -> the reduced part of these elements.
    """

    loop_id: str
    range: int
    lo: int
    hi: int
    done: int
    failed: int = 0
    results: Json = None
    writes: list[Json] = field(default_factory=list)
    shared: JsonMap = field(default_factory=dict)
    ms: float = 0.0
    iter_key: str | None = None
    """The key of the element, if the end of each is recorded by itself."""
    at_fanin: bool = False
    """They were reported before, and their writes to ctx did not conflict at the fan-in."""


@frozen
class ShardFailed:
    """One element failed. `again`: it will be handed out once more."""

    loop_id: str
    shard_id: str
    iter_index: int
    iter_key: str
    attempt: int
    error: Json
    again: bool = False
    range: int = -1
    at_fanin: bool = False
    """It was reported before, and its writes to ctx conflicted at the fan-in."""
    up_to: int | None = None
    """How far its range has been reported, if no other fact says so."""


@frozen
class ShardsReturned:
    """A range came back unfinished from `lo` on: its worker was lost or gave it back, or no worker took it."""

    loop_id: str
    range: int
    lo: int
    hi: int | None
    reason: Literal["lost", "returned", "stale", "stopped"]
    worker: str | None = None
    counts: bool = True
    """Whether it counts as one of the attempts of these elements."""


@frozen
class FaninCompleted:
    loop_id: str
    status: Literal["complete", "partial", "failed"]
    total: int
    succeeded: int
    failed: int
    skipped: int = 0
    retried: int = 0
    refs: Json = None
    shared: JsonMap = field(default_factory=dict)
