"""The canonical timeline: the log sorted by its logical clock, without anything that depends on the wall clock or the machine.

Law: two runs that decided the same have the same canonical timeline, whatever ran faster (D22), and so has a run that was
interrupted or killed and then resumed. What only says that the process stopped or came back is therefore left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from penstock.kernel.places import LogicalClock, event_name
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.ports.wire import component_of, is_of_job, step_of, step_run_of, to_clock
from penstock.views.canonical_jobs import without_restarts

# Wall-clock figures and trace ids that the engine and its tools write, wherever they stand in a payload.
WALL_CLOCK = frozenset({"started_at", "ended_at", "duration_ms", "elapsed_ms", "trace_id"})
# Of a reference, which store it lies in: what lies there is the same.
PLACED = WALL_CLOCK | {"store"}
STOPS = frozenset({"playbook.interrupted", "playbook.resumed", "job.interrupted"})
MARKS = frozenset(
    f"{kind}.{mark}"
    for kind in ("playbook", "job")
    for mark in ("started", "cancelling", "completed", "failed", "cancelled")
)
STARTS = frozenset({"playbook.started", "job.started"})
TIMED = frozenset({"component.ok", "component.error"})
# Which elements of a fanned-out loop went to whom, and in what pieces, is chance: what became of each is not.
DISPATCH = frozenset(f"loop.shard.{what}" for what in ("enqueued", "started", "reported", "done", "returned"))
ITERATION = frozenset({"iteration.started", "iteration.ok", "iteration.error"})
EXECUTION = "EXECUTION"
# Of a response, what says when it was given.
CLOCK_HEADERS = frozenset({"date", "age"})

# What later releases say as well. It follows from the rest, and what an earlier one recorded is the same without it.
ADDED = {
    "job.started": ("kept_components", "reopened", "rules"),
    "playbook.started": ("kept_components", "reopened", "rules"),
    **{
        f"{kind}.{end}": ("failed_iterations",)
        for kind in ("job", "playbook")
        for end in ("completed", "failed", "cancelled")
    },
}

Placed: TypeAlias = "tuple[LogicalClock, Entry]"

_sorted_encoder = msgspec.json.Encoder(order="sorted")


def canonical(entries: Iterable[Entry], execution_id: str) -> Iterator[JsonMap]:
    kept = without_restarts(list(entries))
    resumed_at = {entry.scope: entry.seq for entry in kept if entry.type == "playbook.resumed"}
    fanned_out = {entry.scope for entry in kept if entry.type == "loop.fanout.started"}
    standing = (entry for entry in kept if not _is_left_out(entry, resumed_at, fanned_out))
    placed = sorted(((_clock(entry), entry) for entry in standing), key=_by_clock)
    marks = _renumbered(placed, kept)
    visits: Counter[tuple[str, str]] = Counter()
    needle = execution_id.encode()
    for clock, entry in placed:
        payload: Any = decode(entry.payload)
        shown: Any = clock
        if entry.type == "step.scheduled":
            step = (entry.scope[: entry.scope.rfind("/") + 1], str(payload["step"]))
            visits[step] += 1
            payload["visit"] = visits[step]
        elif entry.type in STARTS:  # Release 0.1.0 did not say by which rules it decided: there was one set of them.
            payload.setdefault("rules", 1)
        elif entry.type in TIMED:
            del payload["ms"]
            payload["after"].pop("DURATION_MS", None)
        elif entry.type == "loop.shard.failed":
            del payload["range"], payload["attempt"]
            payload.pop("at_fanin", None)
            payload.pop("up_to", None)
            shown = (*_of_element(clock), 0)
        elif entry.type == "iterator.started":
            payload.pop("spread", None)
        elif entry.type == "global.set" and not payload.get("deleted"):
            payload.pop("deleted", None)
        for added in ADDED.get(entry.type, ()):
            payload.pop(added, None)
        is_job = is_of_job(entry.type)
        if entry.type in MARKS:
            shown = (*clock[:-1], marks[event_name(entry.scope, _last(clock))])
        yield {
            "clock": shown,
            "event_type": entry.type,
            "source": entry.source,
            "scope": entry.scope,
            "step": component_of(entry) if is_job else step_of(entry.scope),
            "step_run_id": (entry.scope or None) if is_job else step_run_of(entry.scope),
            "task_run_id": entry.task,
            "cause": _cause(entry.cause, marks),
            "payload": _timeless(payload, execution_id if needle in entry.payload else None),
        }


def canonical_hash(entries: Iterable[Entry], execution_id: str) -> str:
    """One value for the whole timeline: equal runs have equal ones."""
    digest = sha256()
    for event in canonical(entries, execution_id):
        digest.update(_sorted_encoder.encode(event))
        digest.update(b"\n")
    return digest.hexdigest()


def _is_left_out(entry: Entry, resumed_at: dict[str, int], fanned_out: set[str]) -> bool:
    """A failure that a later resume took up again is not how the run ended. The tasks of an element belong to a try of it."""
    if entry.type.startswith("task.") and entry.scope.endswith("]"):
        return entry.scope[: entry.scope.rfind("[")] in fanned_out
    if entry.type == "playbook.failed":
        return entry.seq < resumed_at.get(entry.scope, 0)
    if entry.type == "loop.shard.failed":
        payload = decode(entry.payload)
        return isinstance(payload, dict) and bool(payload["again"])
    return entry.type in STOPS or entry.type in DISPATCH


def _clock(entry: Entry) -> LogicalClock:
    """As the first release had it, so that its runs have the timelines they had: there the end of an execution had the path of a
    run that might follow, and an iteration those of the sub-jobs in its body."""
    clock = to_clock(decode(entry.clock.encode()))
    path: Any = clock[-2] if len(clock) > 1 else None
    if entry.type in MARKS and isinstance(path, tuple):
        return (*clock[:-2], path[:1], clock[-1])
    if entry.type in ITERATION:
        return (*clock[:-2], (path or (0,))[:2], clock[-1])
    return clock


def _by_clock(placed: Placed) -> LogicalClock:
    return placed[0]


def _of_element(clock: LogicalClock) -> LogicalClock:
    """The clock of an element: what follows it says which try of it this is about."""
    path = max(at for at, part in enumerate(clock) if isinstance(part, tuple))
    return clock[: path + 3]


def _last(clock: LogicalClock) -> int:
    counter = clock[-1]
    assert isinstance(counter, int)
    return counter


def _renumbered(placed: list[Placed], kept: list[Entry]) -> dict[str, int]:
    """The marks of an execution scope are counted one by one, so one that is left out would leave a gap.

    What names a mark that was left out, such as the cause of a token that a resume made, names the one before it.
    """
    standing = {entry.seq for _, entry in placed}
    numbers: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for entry in kept:
        if entry.type in MARKS or entry.type in STOPS:
            if entry.seq in standing:
                counts[entry.scope] += 1
            numbers[event_name(entry.scope, _last(_clock(entry)))] = max(0, counts[entry.scope] - 1)
    return numbers


def _cause(cause: str | None, marks: dict[str, int]) -> str | None:
    if cause is None or cause not in marks:
        return cause
    return event_name(cause.rpartition(":")[0], marks[cause])


def _timeless(value: Json, execution_id: str | None) -> Json:
    if isinstance(value, dict):
        left_out = PLACED if "checksum" in value and "store" in value else WALL_CLOCK
        return {key: _timeless_field(key, inner, execution_id) for key, inner in value.items() if key not in left_out}
    if isinstance(value, list):
        return [_timeless(inner, execution_id) for inner in value]
    if execution_id is not None and isinstance(value, str):
        return value.replace(execution_id, EXECUTION)
    return value


def _timeless_field(key: str, value: Json, execution_id: str | None) -> Json:
    if key == "headers" and isinstance(value, dict):
        value = {name: inner for name, inner in value.items() if name not in CLOCK_HEADERS}
    return _timeless(value, execution_id)
