"""Converts facts to stored entries and back, and entries to the envelope that readers get."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, cast

import msgspec

from penstock.kernel.errors import Unavailable
from penstock.kernel.facts import (
    CLASSES,
    WORKER_TYPES,
    Body,
    Fact,
    LinkFired,
    RunEnded,
    ShardFailed,
    ShardsDone,
    event_type,
)
from penstock.kernel.places import LogicalClock, event_name
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry, Header
from penstock.ports.results import Load, decode, encode, thawed

REF_BYTES = b'"$ref"'

# `Entry(…)` without the names of its fields, and so in half the time: one is made for every event.
_entry = cast("Callable[[tuple[object, ...]], Entry]", partial(tuple.__new__, Entry))


def to_entry(fact: Fact, seq: int, ts: float, worker: str) -> Entry:
    scope, clock, body, cause, task = fact
    kind = event_type(body)
    text = encode(clock).decode()
    payload = encode(_link(body)) if isinstance(body, LinkFired) else encode(body)
    if kind in WORKER_TYPES and not (kind in _ENDS_OF_LOOPS and _is_of_server(body)):
        return _entry((seq, ts, kind, scope, task, text, cause, "worker", worker, payload))
    return _entry((seq, ts, kind, scope, task, text, cause, "server", None, payload))


_ENDS_OF_LOOPS = frozenset({"loop.done", "step.failed", "loop.shard.done", "loop.shard.failed"})


def _is_of_server(body: Body) -> bool:
    """Whether a fan-in decides this end: that of the loop, or of elements that waited for it."""
    if type(body) is RunEnded:
        return body.fanned_out
    return (type(body) is ShardsDone or type(body) is ShardFailed) and body.at_fanin


def _link(body: LinkFired) -> JsonMap:
    """`from` is a keyword of Python, and the documents' name for where a link begins."""
    return {"from": body.source, "to": body.target, "on": body.on, "order": body.order, "link": body.link}


def to_fact(entry: Entry, load: Load | None) -> Fact:
    _, _, kind, scope, task, clock, cause, _, _, payload = entry
    data = decode(payload)
    if load is not None and REF_BYTES in payload:
        data = thawed(data, load)
    return Fact(scope, read_clock(clock), read_body(kind, cast(JsonMap, data)), cause, task)


# An entry's clock from its text, straight into tuples.
read_clock: Callable[[str], LogicalClock] = msgspec.json.Decoder(tuple[int | tuple[int, ...], ...]).decode


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


def read_body(kind: str, data: JsonMap) -> Body:
    made, known = _known(kind)
    if made is LinkFired:
        data = {"source": data.pop("from"), "target": data.pop("to"), **data}
    try:
        return made(**data)
    except TypeError:  # Written by a release with more fields than this one reads.
        return made(**{key: value for key, value in data.items() if key in known})


# The first words of the types of events that belong to jobs; their scopes are names, not step runs.
OF_JOBS = frozenset({"job", "subjob", "component", "edge", "global", "iterator", "iteration", "checkpoint"})


def is_of_job(kind: str) -> bool:
    return kind.partition(".")[0] in OF_JOBS


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


def component_of(entry: Entry) -> str | None:
    """The component an event of a job is about, as it is called in this run."""
    if entry.type.startswith(("component.", "edge.", "global.", "iterator.")):
        scope = entry.scope[entry.scope.rfind("/") + 1 :]
        return None if scope.endswith(">") else scope
    return None


def _parent_of(entry: Entry, execution_id: str) -> str:
    """The scope that encloses the event's subject."""
    if entry.task is not None:
        return entry.scope
    scope = entry.scope.removesuffix("/")
    if is_of_job(entry.type):
        last = scope.rfind("/") + 1
        name = scope[last:]
        around = name[: name.rfind("[")] if name.endswith("]") else name[: max(name.rfind("]."), -1) + 1]
        return scope[:last] + around if around else scope[: last - 1] if last else execution_id
    if scope.endswith("]"):
        return scope[: scope.rfind("[")]
    return scope[: scope.rfind("/")] if "/" in scope else execution_id


# The innermost iteration that a scope lies in. An iterator of a job numbers with `#`, and is none of a step's loops.
_ITERATION = re.compile(r"(.*@[\d.]+)\[(\d+)\]")
_NO_ELEMENT: JsonMap = {"loop_id": None, "shard_id": None, "iter_index": None, "iter_key": None}


def element_of(entry: Entry, payload: Json) -> JsonMap:
    """The names of the element that an event is about, and of its loop; null if it is about none. An event of a whole loop
    has only the loop's name; one of several elements names them like a slice, `fetch@2[0:256]`."""
    data: Any = payload if isinstance(payload, dict) else {}
    # A task of an element that is tried again after a resume is known by the name that the element had.
    place = entry.task if entry.task is not None and not is_of_job(entry.type) else entry.scope
    found = _ITERATION.match(place) if "[" in place else None
    is_of_loop = entry.type.startswith("loop.")
    if is_of_loop and (found is None or found.end() < len(entry.scope)):
        lo, hi = data.get("lo"), data.get("hi")
        loop_id = str(data.get("loop_id") or entry.scope)
        if not isinstance(lo, int):
            return {**_NO_ELEMENT, "loop_id": loop_id}
        if hi != lo + 1:
            several = f"{loop_id}[{lo}:{'' if hi is None else hi}]"
            return {**_NO_ELEMENT, "loop_id": loop_id, "shard_id": several}
        index = lo
    elif found is None:
        return _NO_ELEMENT
    else:
        # An element that is tried again after a resume keeps the name it had.
        loop_id, index = str(data.get("loop_id") or found[1]), int(found[2])
    key = data.get("iter_key")
    if key is None and entry.type == "task.done":
        key = data["outcome"].get("meta", {}).get("iter_key")
    return {
        "loop_id": loop_id,
        "shard_id": f"{loop_id}[{index}]",
        "iter_index": index,
        "iter_key": str(index) if key is None else key,
    }


# How many counters the clock of a scope has; an event in it has one more. Any further ones tell the events of a shard apart.
_IN_RUN, _IN_ITERATION = 1, 3


def name_of(entry: Entry, clock: Json) -> str:
    """The name of an event within its execution: what `cause` refers to. It is unique."""
    frames = cast("list[Any]", clock)
    if not entry.type.startswith(("loop.shard.", "task.")):
        return event_name(entry.scope, frames[-1])
    tail = frames[_after_last_path(frames) :]
    own = _IN_ITERATION if entry.scope.endswith("]") else _IN_RUN
    name = f"{entry.scope}:{'.'.join(map(str, tail[own - 1 :]))}"
    is_old = entry.type.startswith("loop.shard.") and len(tail) == _IN_ITERATION
    # In logs of the first release the events of a range share their clocks with those of its other tries.
    return f"{name}#{entry.seq}" if is_old else name


def _after_last_path(frames: list[Any]) -> int:
    return next((at for at in range(len(frames), 0, -1) if isinstance(frames[at - 1], list)), 0)


def iso(ts: float) -> str:
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def envelope(entry: Entry, header: Header) -> JsonMap:
    clock = decode(entry.clock.encode())
    payload = decode(entry.payload)
    return {
        "event_id": f"{header.execution_id}/{name_of(entry, clock)}",
        "event_type": entry.type,
        "ts": iso(entry.ts),
        "execution_id": header.execution_id,
        "seq": entry.seq,
        "source": entry.source,
        "worker_id": entry.worker,
        "step": component_of(entry) if is_of_job(entry.type) else step_of(entry.scope),
        "step_run_id": (entry.scope or None) if is_of_job(entry.type) else step_run_of(entry.scope),
        "task_run_id": entry.task,
        "scope": entry.scope,
        **element_of(entry, payload),
        "trace_id": header.trace_id,
        "parent_id": _parent_of(entry, header.execution_id),
        "cause": None if entry.cause is None else f"{header.execution_id}/{entry.cause}",
        "clock": clock,
        "payload": payload,
    }
