"""The payloads of a job's events, each read no further than the projections look: large values beside are skipped, not built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

S = TypeVar("S")


class Started(msgspec.Struct):
    name: str = ""
    resumed: bool = False
    kept: list[str] = []
    kept_components: list[str] = []
    reopened: list[str] = []
    lost: str | None = None
    workload: Any = None


class Ended(msgspec.Struct):
    status: str
    error: Any = None
    exit_code: int | None = None
    failed_iterations: int = 0


class Reason(msgspec.Struct):
    reason: str = ""


class SubjobStarted(msgspec.Struct):
    index: int = 0
    container: str = ""


class SubjobEnded(msgspec.Struct):
    status: str
    index: int = 0
    container: str = ""
    error: Any = None


class Checkpoint(msgspec.Struct):
    bytes: int = 0


class ComponentStarted(msgspec.Struct):
    type: str
    subjob: str
    rows_in: dict[str, int] = {}
    opens: str | None = None


class ComponentEnded(msgspec.Struct):
    status: str
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    outputs: dict[str, msgspec.Raw] = {}
    after: msgspec.Raw = msgspec.Raw(b"{}")
    error: Any = None
    ms: float = 0.0
    dies: bool = False
    exit_code: int | None = None


class ComponentSkipped(msgspec.Struct):
    subjob: str
    cause: str = ""
    upstream: str | None = None
    link: str | None = None
    index: int = 0
    container: str = ""


class LinkFired(msgspec.Struct):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    on: str = ""
    order: int = 0
    link: int = -1


class GlobalSet(msgspec.Struct):
    scope: str


class IteratorStarted(msgspec.Struct):
    total: int | None = None
    parallel: int = 1


class IteratorCompleted(msgspec.Struct):
    ok: int = 0
    failed: int = 0
    failures: list[int] = []


class ElementStarted(msgspec.Struct):
    index: int
    item: Any = None


class ElementEnded(msgspec.Struct):
    index: int
    status: str
    error: Any = None
    handlers: int = 0


def _reader(struct: type[S]) -> Callable[[bytes], S]:
    return msgspec.json.Decoder(struct).decode


read_started = _reader(Started)
read_ended = _reader(Ended)
read_reason = _reader(Reason)
read_subjob_started = _reader(SubjobStarted)
read_subjob_ended = _reader(SubjobEnded)
read_checkpoint = _reader(Checkpoint)
read_component_started = _reader(ComponentStarted)
read_component_ended = _reader(ComponentEnded)
read_component_skipped = _reader(ComponentSkipped)
read_link_fired = _reader(LinkFired)
read_global_set = _reader(GlobalSet)
read_iterator_started = _reader(IteratorStarted)
read_iterator_completed = _reader(IteratorCompleted)
read_element_started = _reader(ElementStarted)
read_element_ended = _reader(ElementEnded)
