"""The payload of an event, decoded only as far as a view needs: large values beside it are skipped, not built.

One type serves all events: each has some of these fields, and the others are as they are here. The fields are documented with the
facts (`penstock.kernel.facts`); a log of any release has them under these names.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from penstock.ports.log import Entry


class Meta(msgspec.Struct):
    started_at: float | None = None


class Outcome(msgspec.Struct):
    status: str = ""
    error: Any = None
    meta: Meta | None = None


class Payload(msgspec.Struct):
    status: str = ""
    error: Any = None
    reason: str = ""
    result: Any = None
    writes: Any = None

    # ---- executions
    name: str = ""
    entry: str = ""
    workload: Any = None
    parent: str | None = None
    document: Any = None
    continues: str | None = None
    state: Any = None
    kept: tuple[str, ...] = ()
    kept_components: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    lost: str | None = None
    exit_code: int | None = None
    failed_iterations: int = 0

    # ---- step runs, tasks and loops
    step: str = ""
    parent_step_run_id: str | None = None
    origin: str | None = None
    arc: int | None = None
    rule: int | None = None
    missing: list[str] = []
    visit: int = 1
    tokens: tuple[list[int], ...] = ()
    on: str = ""
    arcs: list[int] = []
    steps: list[str] = []
    unhandled: bool = False
    abort: bool = False
    task: str = ""
    kind: str = ""
    attempt: int = 0
    outcome: Outcome | None = None
    given_up: bool = False
    do: str = ""
    next: Any = -1
    delay: float = 0.0
    total: int | None = None
    mode: str = "sequential"

    # ---- ranges
    loop_id: str = ""
    is_paged: bool = False
    range: int = -1
    lo: int = 0
    hi: int | None = None
    is_end: bool = False
    done: int = 0
    failed: Any = 0
    at_fanin: bool = False
    iter_index: int = 0
    iter_key: str | None = None
    again: bool = False
    up_to: int | None = None
    worker: str | None = None
    succeeded: int = 0
    skipped: int = 0
    retried: int = 0
    refs: Any = None
    shared: dict[str, Any] = {}

    # ---- components, links, globals and iterators
    subjob: str = ""
    index: int = 0
    container: str = ""
    bytes: int = 0
    type: str = ""
    sees: tuple[str, ...] = ()
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    outputs: dict[str, Raw] = {}
    opens: str | None = None
    after: Raw = Raw(b"{}")
    ms: float = 0.0
    dies: bool = False
    cause: str = ""
    upstream: str | None = None
    link: Any = None
    source: str = msgspec.field(name="from", default="")
    target: str = msgspec.field(name="to", default="")
    order: int = 0
    key: str = ""
    scope: str = ""
    new: Any = None
    writer: str = ""
    local: bool = False
    deleted: bool = False
    parallel: int = 1
    spread: bool = False
    ok: int = 0
    failures: tuple[int, ...] = ()
    item: Any = None
    handlers: int = 0


NOTHING = Payload()
"""Of an event whose payload is not looked at."""

_read = msgspec.json.Decoder(Payload).decode


def payload_of(entry: Entry) -> Payload:
    return _read(entry.payload)
