"""Facts of a fan-out: a loop whose elements (shards) are handed out in ranges, each on a lease of its own.

A shard is one element and its id is derived, `fetch@2[5]`; what is written down is ranges of them, and those that failed.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.frozen import frozen
from penstock.kernel.values import Json, JsonMap


@frozen
class FanoutStarted:
    """`total` is None while nobody knows it: then the collection is read page by page."""

    step: str
    loop_id: str
    total: int | None
    collection: Json
    policy: JsonMap = field(default_factory=dict)
    is_paged: bool = False


@frozen
class ShardsEnqueued:
    """Elements `lo` to `hi` (exclusive) wait for a worker. Of a page that nobody has opened `hi` is None and `most` its bound."""

    loop_id: str
    range: int
    lo: int
    hi: int | None
    attempt: int = 0
    """How often these elements have been handed out before, and failed or were lost."""
    most: int = 0
    base: int = 0
    """Of a page: the index of its first element."""
    token: Json = None
    """Of a page: where it begins."""
    until: Json = None
    """Of a page that has been opened before: where it ended."""


@frozen
class ShardsStarted:
    """A worker has begun with elements `lo` to `hi`. Of a page: where the next one begins; `is_end` when there is none."""

    loop_id: str
    range: int
    hi: int | None = None
    next: Json = None
    is_end: bool = False
    lo: int | None = None


@frozen
class ShardsReported:
    """A worker has reported elements `lo` to `hi` of its range, some of which wrote to ctx.

    Whether their writes can stand beside those of earlier elements is decided at the fan-in: only then each is done, or has
    failed. `failed` lists those that failed on the worker, and have had their ends.

    `results`, `writes` and `shared` are as in `ShardsDone`; what a reducer gets of an element that wrote to ctx is among its
    writes, and counts when the element is done.
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
    """Elements `lo` to `hi` of a range have come to their ends, those that failed included.

    `results`: `{"same": value}`, a list, or a reference to one. `writes`: [index, writes to ctx] of those that wrote.
    `shared`: key -> what the reducer has made of these elements.
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
    """Where each element's end is told by itself: its key."""
    at_fanin: bool = False
    """Reported before; their writes to ctx could stand when all elements had come in."""


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
    """Reported before; its writes to ctx could not stand when all elements had come in."""
    up_to: int | None = None
    """Where no other fact says it: its range has been reported as far as this."""


@frozen
class ShardsReturned:
    """A range came back unfinished from `lo` on: its worker was lost, or gave it back, or nobody took it."""

    loop_id: str
    range: int
    lo: int
    hi: int | None
    reason: Literal["lost", "returned", "stale", "stopped"]
    worker: str | None = None
    counts: bool = True
    """Does it count as one of the attempts these elements have?"""


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
