"""Between facts and stored entries, and from entries to the envelope that readers get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

from penstock.kernel.errors import Unavailable
from penstock.kernel.facts import CLASSES, WORKER_TYPES, Body, Fact, event_type
from penstock.kernel.places import LogicalClock, event_name
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry, Header
from penstock.ports.results import Load, decode, encode, thawed

REF_BYTES = b'"$ref"'


def to_entry(fact: Fact, seq: int, ts: float, worker: str) -> Entry:
    kind = event_type(fact.body)
    by_worker = kind in WORKER_TYPES
    return Entry(
        seq,
        ts,
        kind,
        fact.scope,
        fact.task,
        encode(fact.clock).decode(),
        fact.cause,
        "worker" if by_worker else "server",
        worker if by_worker else None,
        encode(fact.body),
    )


def to_fact(entry: Entry, load: Load | None) -> Fact:
    data = decode(entry.payload)
    if load is not None and REF_BYTES in entry.payload:
        data = thawed(data, load)
    clock = to_clock(decode(entry.clock.encode()))
    return Fact(entry.scope, clock, _body(entry.type, cast(JsonMap, data)), entry.cause, entry.task)


def to_clock(value: Json) -> LogicalClock:
    assert isinstance(value, list)
    return tuple(tuple(cast("list[int]", part)) if isinstance(part, list) else cast(int, part) for part in value)


@cache
def _known(kind: str) -> tuple[Callable[..., Body], frozenset[str]]:
    made = CLASSES.get(kind)
    if made is None:
        raise Unavailable(
            f"the log holds an event of type `{kind}`, which this version does not know", "upgrade penstock"
        )
    return cast("Callable[..., Body]", made), frozenset(one.name for one in fields(cast(Any, made)))


def _body(kind: str, data: JsonMap) -> Body:
    made, known = _known(kind)
    try:
        return made(**data)
    except TypeError:  # Written by a release that said more than this one reads.
        return made(**{key: value for key, value in data.items() if key in known})


def step_run_of(scope: str) -> str | None:
    """The step run a scope lies in; None for the scope of an execution itself."""
    if not scope or scope.endswith("/"):
        return None
    last = scope.rfind("/") + 1
    bracket = scope.find("[", last)
    return scope if bracket < 0 else scope[:bracket]


def step_of(scope: str) -> str | None:
    run = step_run_of(scope)
    return run[run.rfind("/") + 1 :].partition("@")[0] if run else None


def _parent_of(entry: Entry, execution_id: str) -> str:
    """The scope that encloses the event's subject."""
    if entry.task is not None:
        return entry.scope
    scope = entry.scope.removesuffix("/")
    if scope.endswith("]"):
        return scope[: scope.rfind("[")]
    return scope[: scope.rfind("/")] if "/" in scope else execution_id


def iso(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def envelope(entry: Entry, header: Header) -> JsonMap:
    clock = decode(entry.clock.encode())
    counter = cast("list[int]", clock)[-1]
    return {
        "event_id": f"{header.execution_id}/{event_name(entry.scope, counter)}",
        "event_type": entry.type,
        "ts": iso(entry.ts),
        "execution_id": header.execution_id,
        "seq": entry.seq,
        "source": entry.source,
        "worker_id": entry.worker,
        "step": step_of(entry.scope),
        "step_run_id": step_run_of(entry.scope),
        "task_run_id": entry.task,
        "scope": entry.scope,
        "trace_id": header.trace_id,
        "parent_id": _parent_of(entry, header.execution_id),
        "cause": entry.cause,
        "clock": clock,
        "payload": decode(entry.payload),
    }
