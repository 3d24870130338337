"""What the holder of a lease reports: facts with their times, a question, the results of elements, its last report."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, cast

import msgspec

from penstock.kernel.facts import Fact, TaskEnded, TaskStarted
from penstock.kernel.ranges import ElementsEnded, Failed, RangeFailed, RangeOpened, RangeReport, TaskReport
from penstock.kernel.values import Json, JsonMap
from penstock.ports.dispatch import MessageKind
from penstock.ports.log import Entry
from penstock.ports.results import Load, decode, encode, thawed
from penstock.ports.wire import REF_BYTES, read_body, to_fact


@dataclass(frozen=True, slots=True)
class Report:
    """One report of a lease holder. `facts` come with the times at which they happened."""

    facts: list[tuple[Fact, float]]
    ask: JsonMap | None = None
    range: RangeReport | None = None
    reason: str | None = None
    """Why this worker could not do it."""
    refusal: JsonMap | None = None
    """Why this worker cannot do it now or later: a secret that it lacks."""
    lines: list[Json] | None = None


def is_loss(kind: MessageKind, report: Report) -> bool:
    """Whether this counts against the attempts of what came back. A worker that lacks something does not count."""
    return kind is MessageKind.LOST or (report.reason is not None and report.refusal is None)


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def report_of_facts(entries: list[Entry]) -> bytes:
    return _pack({"facts": [list(entry) for entry in entries]})


def report_of_question(ask: JsonMap) -> bytes:
    return _pack({"ask": encode(ask)})


def report_of_lines(lines: list[Json]) -> bytes:
    return _pack({"lines": encode(lines)})


def report_of_range(report: RangeReport) -> bytes:
    if isinstance(report, RangeFailed):
        return _pack({"failed": encode(report.error)})
    name = "opened" if isinstance(report, RangeOpened) else "report"
    return _pack({name: encode({one.name: getattr(report, one.name) for one in fields(report)})})


def report_of_failure(reason: str, refusal: JsonMap | None) -> bytes:
    data = {"reason": encode(reason)}
    return _pack(data if refusal is None else {**data, "refusal": encode(refusal)})


def decoded(body: bytes, load: Load) -> Report:
    data = _unpack(body) if body else {}
    facts = [_fact(one, load) for one in data.get("facts", ())]
    if "end" in data:  # The form in which workers of the first release report it.
        facts.append(_fact(data["end"], load))
    return Report(
        facts,
        ask=_value(data.get("ask"), load),
        range=_range(data, load),
        reason=cast("str | None", _value(data.get("reason"), load)),
        refusal=_value(data.get("refusal"), load),
        lines=_value(data.get("lines"), load),
    )


def _fact(values: list[Any], load: Load) -> tuple[Fact, float]:
    entry = Entry(*values)
    return to_fact(entry, load), entry.ts


def _value(data: bytes | None, load: Load) -> Any:
    if data is None:
        return None
    value = decode(data)
    return thawed(value, load) if REF_BYTES in data else value


def _range(data: Any, load: Load) -> RangeReport | None:
    if "opened" in data:
        return RangeOpened(**_value(data["opened"], load))
    if "failed" in data:
        return RangeFailed(_value(data["failed"], load))
    if "report" not in data:
        return None
    ended = _value(data["report"], load)
    tasks = [
        TaskReport(element, task, kind, cast("TaskStarted | TaskEnded", read_body(kind, body)))
        for element, task, kind, body in ended.get("tasks", ())
    ]
    return ElementsEnded(**{**ended, "failures": [Failed(*one) for one in ended["failures"]], "tasks": tasks})
