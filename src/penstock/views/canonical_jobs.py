"""A job that was resumed, as if it had never stopped.

A resume is a new start that keeps some sub-jobs and some iterations and does the rest anew, under the same names and with
counters that go on. Here what was done anew is taken out where it stood first, and what is left is counted from one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from penstock.kernel.places import LogicalClock, event_name
from penstock.ports.log import Entry
from penstock.ports.results import decode, encode
from penstock.ports.wire import is_of_job, to_clock


def without_restarts(entries: list[Entry]) -> list[Entry]:
    """The same entries when nothing was resumed."""
    starts = [entry for entry in entries if entry.type == "job.started" and b'"resumed":true' in entry.payload]
    gone: dict[str, int] = {}
    for start in starts:
        left = _without_one(entries, start)
        standing = {entry.seq for entry in left}
        gone.update(_counters(entry for entry in entries if entry.seq not in standing and not _is_mark(entry)))
        entries = left
    return _renumbered(entries, gone) if starts else entries


def _without_one(entries: list[Entry], start: Entry) -> list[Entry]:
    data = _payload(start)
    kept, lost = {*data["kept"], *data.get("kept_components", ())}, data.get("lost")
    reopened = {*data.get("reopened", ())}
    mine = [entry for entry in entries if _is_of(entry, start.scope)]
    homes = {entry.scope: str(_payload(entry)["subjob"]) for entry in mine if entry.type in _PLACED}
    holders = {entry.scope: _holder(entry) for entry in mine if entry.type in _OF_SUBJOB}
    ends = _IterationEnds((entry for entry in mine if entry.seq < start.seq), reopened)
    stays: dict[str, bool] = {}

    def is_kept(scope: str) -> bool:
        if scope not in stays:
            stays[scope] = _stays(scope)
        return stays[scope]

    def _stays(scope: str) -> bool:
        if scope in reopened:
            return False
        iteration = _outermost(scope, reopened)
        around = homes.get(scope) or holders.get(scope)  # What a joblet call holds is kept with the call.
        if iteration is None and lost is not None and around is None:
            return bool(scope != lost)
        if iteration is None:
            return scope in kept or (around is not None and is_kept(around))
        if iteration in ends.over or is_kept(_iterator(iteration)):
            return True
        if scope == iteration or scope in ends.redone:
            return scope in ends.with_body
        if scope.endswith("]"):
            around = _iterator(scope)
        return around is not None and is_kept(around)

    return [
        entry
        for entry in entries
        if entry is not start
        and not (
            entry.seq < start.seq and _is_of(entry, start.scope) and not _is_mark(entry) and not is_kept(entry.scope)
        )
        and not (entry.seq < start.seq and entry.scope == start.scope and entry.type in _STOPS)
    ]


class _IterationEnds:
    """What became of iterations whose body has ended; of nested ones the outermost, with which the others are kept or not."""

    def __init__(self, entries: Iterable[Entry], reopened: Set[str]) -> None:
        self.over: set[str] = set()
        """They ended OK, with all that their end led to."""
        self.with_body: set[str] = set()
        """Of these the body is kept. Some of what handles its end has not ended, or not well, and is done anew."""
        self.redone: set[str] = set()
        """The sub-jobs that are done anew."""
        ends: dict[str, Entry] = {}
        handlers: dict[str, dict[str, str]] = {}
        for entry in entries:
            if entry.type in _BODY_ENDS and _outermost(entry.scope, reopened) == entry.scope:
                ends[entry.scope], handlers[entry.scope] = entry, {}
            elif entry.type in _IN_SUBJOB:
                data = _payload(entry)
                found = handlers.get(str(data["container"]).removesuffix("."))
                if found is not None:
                    scope = str(data["subjob"]) if entry.type == "component.skipped" else entry.scope
                    found[scope] = entry.type
        for scope, end in ends.items():
            self._sort(scope, end, handlers[scope])

    def _sort(self, scope: str, end: Entry, handlers: dict[str, str]) -> None:
        left = int(_payload(end)["handlers"]) - sum(last in _ENDS for last in handlers.values())
        is_ok = end.type == "iteration.ok"
        if left or (is_ok and "subjob.error" in handlers.values()):
            self.with_body.add(scope)
            self.redone.update(handler for handler, last in handlers.items() if last != "subjob.ok")
        elif is_ok:
            self.over.add(scope)


_BODY_ENDS = frozenset({"iteration.ok", "iteration.error"})
_ENDS = frozenset({"subjob.ok", "subjob.error", "subjob.skipped"})
_OF_SUBJOB = frozenset({"subjob.started", *_ENDS})
_IN_SUBJOB = frozenset({"component.skipped", *_OF_SUBJOB})
_PLACED = frozenset({"component.started", "component.skipped"})
_STOPS = frozenset({"job.interrupted", "job.failed", "job.completed"})


def _holder(entry: Entry) -> str | None:
    """The component whose joblet call a sub-job lies in, or the iteration."""
    container = str(_payload(entry)["container"])
    if container.endswith("]."):
        return container[:-1]
    return container.removesuffix(".__") if container.endswith(".__") else None


def _iterator(iteration: str) -> str:
    return iteration[: iteration.rindex("[#")]


def _is_of(entry: Entry, execution: str) -> bool:
    """Does the event belong to this job, and not to one that a component of it runs?"""
    return is_of_job(entry.type) and entry.scope.startswith(execution) and "/" not in entry.scope[len(execution) :]


def _is_mark(entry: Entry) -> bool:
    return entry.type.startswith("job.")


def _outermost(scope: str, reopened: Set[str] = frozenset()) -> str | None:
    """The iteration that a scope is or lies in; of nested ones the outermost, which is kept or not with all that it holds. One
    that was opened again is not: what lies in it is looked at by itself."""
    begin = scope.find("[#", scope.rfind("/") + 1)
    while begin >= 0:
        iteration = scope[: scope.index("]", begin) + 1]
        if iteration not in reopened:
            return iteration
        begin = scope.find("[#", len(iteration))
    return None


def _payload(entry: Entry) -> Any:
    return decode(entry.payload)


# ---- counting again


def _renumbered(entries: list[Entry], gone: dict[str, int]) -> list[Entry]:
    """`gone`: the numbers of events that were taken out. What is kept may name one as its cause; its like stands there anew."""
    counters = _counters(entries)
    clocks = {entry.seq: to_clock(decode(entry.clock.encode())) for entry in entries}
    lasting = _openings(entries, clocks, counters)
    causes = {**gone, **counters}
    return [_moved(entry, clocks[entry.seq], counters, causes, lasting) for entry in entries]


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
    """Where a component opens others, by its clock: the new number of the event that opened them, whichever start that was of.

    A joblet call and what runs another execution open by their start, an iterator by beginning to iterate.
    """
    found: dict[LogicalClock, int] = {}
    opening = [entry for entry in entries if entry.type in ("component.started", "iterator.started")]
    for entry in sorted(opening, key=lambda one: (len(clocks[one.seq]), one.seq)):  # What lies around comes first.
        clock = clocks[entry.seq]
        found[_opened_anew(clock, found)[:-1]] = counters[event_name(entry.scope, _last(clock))]
    return found


def _opened_anew(clock: LogicalClock, openings: dict[LogicalClock, int]) -> LogicalClock:
    """The clock with the new numbers of all that it lies in."""
    parts = list(clock)
    for at in range(1, len(parts) - 1):
        known = openings.get(tuple(parts[:at])) if isinstance(parts[at], int) else None
        if known is not None:
            parts[at] = known
    return tuple(parts)


def _moved(
    entry: Entry,
    clock: LogicalClock,
    counters: dict[str, int],
    causes: dict[str, int],
    openings: dict[LogicalClock, int],
) -> Entry:
    moved = _opened_anew(clock, openings)
    if not is_of_job(entry.type):  # Of a playbook that a component runs: nothing of it is done anew.
        return entry if moved == clock else entry._replace(clock=encode(moved).decode())
    cause = entry.cause
    if cause is not None and cause in causes:
        cause = event_name(cause.rpartition(":")[0], causes[cause])
    number = counters[event_name(entry.scope, _last(clock))]
    return entry._replace(clock=encode((*moved[:-1], number)).decode(), cause=cause)


def _last(clock: LogicalClock) -> int:
    counter = clock[-1]
    assert isinstance(counter, int)
    return counter
