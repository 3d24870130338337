"""The payloads of events, each read no further than a view looks: large values beside are skipped, not built."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from penstock.ports.log import Entry

P = TypeVar("P", bound="Payload")


class Payload(msgspec.Struct):
    @classmethod
    def of(cls: type[P], entry: Entry) -> P:
        found: P = _decoder(cls)(entry.payload)
        return found


@cache
def _decoder(struct: type[Payload]) -> Callable[[bytes], Any]:
    """Made when the first payload of its kind is read: a short run sees few of them."""
    return msgspec.json.Decoder(struct).decode


class ExecutionStarted(Payload):
    name: str = ""
    entry: str = ""
    workload: Any = None
    parent: str | None = None
    document: Any = None
    continues: str | None = None
    resumed: bool = False
    kept: list[str] = []
    kept_components: list[str] = []
    reopened: list[str] = []
    lost: str | None = None
    state: Any = None


class ExecutionEnded(Payload):
    status: str
    error: Any = None
    exit_code: int | None = None
    failed_iterations: int = 0


class Reason(Payload):
    reason: str = ""


# ---- playbooks


class TokenCreated(Payload):
    step: str
    parent_step_run_id: str | None = None
    origin: str | None = None
    arc: int | None = None


class TokenRefused(Payload):
    rule: int | None = None
    error: Any = None


class TokenStranded(Payload):
    missing: list[str] = []


class RunScheduled(Payload):
    visit: int
    rule: int | None = None
    tokens: list[list[int]] = []
    continues: str | None = None


class RunEnded(Payload):
    step: str
    status: str
    result: Any = None
    error: Any = None
    writes: dict[str, Any] = {}


class ArcsSelected(Payload):
    on: str
    arcs: list[int] = []
    steps: list[str] = []
    writes: dict[str, Any] = {}
    unhandled: bool = False
    abort: bool = False
    error: Any = None


class TaskStarted(Payload):
    task: str
    kind: str
    attempt: int


class Outcome(Payload):
    status: str | None = None
    error: Any = None


class TaskEnded(Payload):
    task: str
    attempt: int
    outcome: Outcome
    do: str
    next: int
    rule: int | None = None
    delay: float = 0.0
    error: Any = None


class LoopStarted(Payload):
    total: int
    mode: str = "sequential"


class FanoutStarted(Payload):
    loop_id: str
    total: int | None
    is_paged: bool = False


class ShardsEnqueued(Payload):
    range: int
    lo: int
    hi: int | None
    attempt: int = 0


class ShardsStarted(Payload):
    range: int
    hi: int | None = None
    is_end: bool = False


class ShardsReported(Payload):
    range: int
    lo: int
    hi: int
    failed: list[int] = []


class ShardsDone(Payload):
    range: int
    hi: int
    done: int
    failed: int = 0
    at_fanin: bool = False


class ShardFailed(Payload):
    iter_index: int
    iter_key: str
    attempt: int
    error: Any = None
    again: bool = False
    range: int = -1
    at_fanin: bool = False
    up_to: int | None = None


class ShardsReturned(Payload):
    range: int
    lo: int
    hi: int | None
    reason: str
    worker: str | None = None


class FaninCompleted(Payload):
    status: str
    total: int
    succeeded: int
    failed: int
    skipped: int = 0
    retried: int = 0
    refs: Any = None
    shared: dict[str, Any] = {}


# ---- jobs


class SubjobStarted(Payload):
    index: int = 0
    container: str = ""


class SubjobEnded(Payload):
    status: str
    index: int = 0
    container: str = ""
    error: Any = None


class CheckpointSaved(Payload):
    bytes: int = 0


class ComponentStarted(Payload):
    type: str
    subjob: str
    sees: list[str] = []
    rows_in: dict[str, int] = {}
    opens: str | None = None


class ComponentEnded(Payload):
    status: str
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    outputs: dict[str, msgspec.Raw] = {}
    after: msgspec.Raw = msgspec.Raw(b"{}")
    error: Any = None
    ms: float = 0.0
    dies: bool = False
    exit_code: int | None = None


class ComponentSkipped(Payload):
    subjob: str
    cause: str = ""
    upstream: str | None = None
    link: str | None = None
    index: int = 0
    container: str = ""


class LinkFired(Payload):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    on: str = ""
    order: int = 0
    link: int = -1


class GlobalSet(Payload):
    key: str
    scope: str
    new: Any = None
    writer: str = ""
    local: bool = False
    deleted: bool = False


class GlobalScope(Payload):
    scope: str


class IteratorStarted(Payload):
    total: int | None = None
    parallel: int = 1


class IteratorCompleted(Payload):
    ok: int = 0
    failed: int = 0
    failures: list[int] = []


class ElementStarted(Payload):
    index: int
    item: Any = None


class ElementEnded(Payload):
    index: int
    status: str
    error: Any = None
    handlers: int = 0
