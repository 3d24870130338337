"""A job that was resumed, as if it had never stopped.

A resume is a new start that keeps some sub-jobs and some iterations and does the rest anew, under the same names and with
counters that go on. Here what was done anew is taken out where it stood first, and what is left is counted from one again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.kernel.places import LogicalClock, event_name
from penstock.ports.log import Entry
from penstock.ports.results import decode, encode
from penstock.ports.wire import is_of_job, to_clock


def without_restarts(entries: list[Entry]) -> list[Entry]:
    """The same entries when nothing was resumed."""
    starts = [entry for entry in entries if entry.type == "job.started" and b'"resumed":true' in entry.payload]
    for start in starts:
        entries = _without_one(entries, start)
    return _renumbered(entries) if starts else entries


def _without_one(entries: list[Entry], start: Entry) -> list[Entry]:
    kept = set(_payload(start)["kept"])
    mine = [entry for entry in entries if _is_of(entry, start.scope)]
    homes = {entry.scope: str(_payload(entry)["subjob"]) for entry in mine if entry.type in _PLACED}
    callers = {entry.scope: _caller(entry) for entry in mine if entry.type in _OF_SUBJOB}
    over = _over(entry for entry in mine if entry.seq < start.seq)
    stays: dict[str, bool] = {}

    def is_kept(scope: str) -> bool:
        if scope not in stays:
            stays[scope] = _stays(scope)
        return stays[scope]

    def _stays(scope: str) -> bool:
        iteration = _outermost(scope)
        if iteration is not None:
            return iteration in over or is_kept(iteration[: iteration.rindex("[#")])
        around = homes.get(scope) or callers.get(scope)  # What a joblet call holds is kept with the call.
        return scope in kept or (around is not None and is_kept(around))

    return [
        entry
        for entry in entries
        if entry is not start
        and not (
            entry.seq < start.seq and _is_of(entry, start.scope) and not _is_mark(entry) and not is_kept(entry.scope)
        )
        and not (entry.seq < start.seq and entry.scope == start.scope and entry.type in _STOPS)
    ]


def _over(entries: Iterable[Entry]) -> set[str]:
    """The iterations that have ended OK, with all that their end led to."""
    handlers: dict[str, int] = {}
    failed: set[str] = set()
    for entry in entries:
        if entry.type == "iteration.ok":
            handlers[entry.scope] = int(_payload(entry)["handlers"])
        elif entry.type in _ENDS:
            container = str(_payload(entry)["container"]).removesuffix(".")
            if container in handlers:
                handlers[container] -= 1
                if entry.type == "subjob.error":
                    failed.add(container)
    return {scope for scope, left in handlers.items() if not left} - failed


_ENDS = frozenset({"subjob.ok", "subjob.error", "subjob.skipped"})
_OF_SUBJOB = frozenset({"subjob.started", *_ENDS})
_PLACED = frozenset({"component.started", "component.skipped"})
_STOPS = frozenset({"job.interrupted", "job.failed"})


def _caller(entry: Entry) -> str | None:
    """The component whose joblet call a sub-job lies in."""
    container = str(_payload(entry)["container"])
    return container.removesuffix(".__") if container.endswith(".__") else None


def _is_of(entry: Entry, execution: str) -> bool:
    """Does the event belong to this job, and not to one that a component of it runs?"""
    return is_of_job(entry.type) and entry.scope.startswith(execution) and "/" not in entry.scope[len(execution) :]


def _is_mark(entry: Entry) -> bool:
    return entry.type.startswith("job.")


def _outermost(scope: str) -> str | None:
    """The iteration that a scope is or lies in; of nested ones the outermost, which is kept or not with all that it holds."""
    begin = scope.find("[#", scope.rfind("/") + 1)
    return None if begin < 0 else scope[: scope.index("]", begin) + 1]


def _payload(entry: Entry) -> Any:
    return decode(entry.payload)


# ---- counting again


def _renumbered(entries: list[Entry]) -> list[Entry]:
    counters = _counters(entries)
    clocks = {entry.seq: to_clock(decode(entry.clock.encode())) for entry in entries}
    lasting = _openings(entries, clocks, counters)
    return [_moved(entry, clocks[entry.seq], counters, lasting) for entry in entries]


def _counters(entries: Iterable[Entry]) -> dict[str, int]:
    """Name of an event -> its number among the events of its scope that are left."""
    seen: dict[str, list[int]] = {}
    for entry in entries:
        if is_of_job(entry.type):
            seen.setdefault(entry.scope, []).append(_last(to_clock(decode(entry.clock.encode()))))
    return {
        event_name(scope, counter): number
        for scope, found in seen.items()
        for number, counter in enumerate(sorted(found))
    }


def _openings(
    entries: list[Entry], clocks: dict[int, LogicalClock], counters: dict[str, int]
) -> dict[LogicalClock, int]:
    """Where a scope opens others, by its clock: the new number of the event that opened them, whichever start that was of."""
    found: dict[LogicalClock, int] = {}
    for entry in entries:
        is_call = entry.type == "component.started" and _payload(entry).get("opens") is not None
        if is_call or entry.type == "iterator.started":
            clock = clocks[entry.seq]
            found[clock[:-1]] = counters[event_name(entry.scope, _last(clock))]
    return found


def _moved(entry: Entry, clock: LogicalClock, counters: dict[str, int], openings: dict[LogicalClock, int]) -> Entry:
    if not is_of_job(entry.type):
        return entry
    number = counters[event_name(entry.scope, _last(clock))]
    parts = list(clock)
    opening: int | None = None
    for at in range(1, len(parts) - 1):
        prefix = clock[:at]
        if prefix in openings and isinstance(parts[at], int):
            parts[at] = opening = openings[prefix]
    parts[-1] = number
    cause = entry.cause
    if cause is not None and cause in counters:
        cause = event_name(cause.rpartition(":")[0], counters[cause])
    elif cause is not None and entry.type == "iteration.started" and opening is not None:
        cause = event_name(cause.rpartition(":")[0], opening)  # A start in between, which is left out, had opened it.
    return entry._replace(clock=encode(tuple(parts)).decode(), cause=cause)


def _last(clock: LogicalClock) -> int:
    counter = clock[-1]
    assert isinstance(counter, int)
    return counter
