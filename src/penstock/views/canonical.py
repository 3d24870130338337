"""The canonical timeline: the log sorted by its logical clock, without anything that depends on the wall clock or the machine.

Law: two runs that decided the same have the same canonical timeline, whatever ran faster (D22), and so has a run that was
interrupted or killed and then resumed. What only says that the process stopped or came back is therefore left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from penstock.kernel.places import LogicalClock, event_name
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import decode, encode
from penstock.ports.wire import component_of, is_of_job, step_of, step_run_of, to_clock

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
# Which worker got which elements of a fanned-out loop, and in what ranges, is chance; the outcome of each is not.
DISPATCH = frozenset(f"loop.shard.{what}" for what in ("enqueued", "started", "reported", "done", "returned"))
ITERATION = frozenset({"iteration.started", "iteration.ok", "iteration.error"})
EXECUTION = "EXECUTION"
# Of a response, what says when it was given.
CLOCK_HEADERS = frozenset({"date", "age"})

# Fields that later releases added. They follow from the others, so that logs of earlier releases compare equal.
ADDED = {
    "loop.fanout.started": ("claims",),
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
    return (event for _, event in canonical_entries(entries, execution_id))


def canonical_entries(entries: Iterable[Entry], execution_id: str) -> Iterator[tuple[Entry, JsonMap]]:
    """The same, each with the entry that it was made from."""
    kept = _without_restarts(list(entries))
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
        elif entry.type in STARTS:  # Release 0.1.0 did not record by which rules it decided: there was only one set.
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
        yield (
            entry,
            {
                "clock": shown,
                "event_type": entry.type,
                "source": entry.source,
                "scope": entry.scope,
                "step": component_of(entry) if is_job else step_of(entry.scope),
                "step_run_id": (entry.scope or None) if is_job else step_run_of(entry.scope),
                "task_run_id": entry.task,
                "cause": _cause(entry.cause, marks),
                "payload": _timeless(payload, execution_id if needle in entry.payload else None),
            },
        )


def canonical_hash(entries: Iterable[Entry], execution_id: str) -> str:
    """One value for the whole timeline: equal runs have equal ones."""
    digest = sha256()
    for event in canonical(entries, execution_id):
        digest.update(_sorted_encoder.encode(event))
        digest.update(b"\n")
    return digest.hexdigest()


def _is_left_out(entry: Entry, resumed_at: dict[str, int], fanned_out: set[str]) -> bool:
    """A failure that a later resume retried is not how the run ended. The tasks of an element belong to one try of it."""
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


# ---- a job that was resumed, as if it had never stopped
#
# A resume is a new start that keeps some sub-jobs and some iterations and does the rest anew, under the same names and with
# counters that go on. What was done anew is taken out where it stood first, and what is left is counted from one again.


def _without_restarts(entries: list[Entry]) -> list[Entry]:
    """The same entries when nothing was resumed."""
    starts = [entry for entry in entries if entry.type == "job.started" and b'"resumed":true' in entry.payload]
    gone: dict[str, int] = {}
    whole = entries
    for start in starts:
        left = _without_one(entries, start)
        standing = {entry.seq for entry in left}
        gone.update(_counters(entry for entry in entries if entry.seq not in standing and not _is_mark(entry)))
        entries = left
    return _counted_again(entries, gone, whole) if starts else entries


def _without_one(entries: list[Entry], start: Entry) -> list[Entry]:
    data = _payload(start)
    kept, lost = {*data["kept"], *data.get("kept_components", ())}, data.get("lost")
    reopened = {*data.get("reopened", ())}
    mine = [entry for entry in entries if _is_of(entry, start.scope)]
    homes = {entry.scope: str(_payload(entry)["subjob"]) for entry in mine if entry.type in _PLACED}
    holders = {entry.scope: _holder(entry) for entry in mine if entry.type in _OF_SUBJOB}
    ends = _IterationEnds(
        (entry for entry in entries if entry.seq < start.seq), _Lineage(entries, start.scope), reopened
    )
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


class _Lineage:
    """A job inside a task, and the jobs that earlier runs of the task ran and it continues: what they have finished is kept under
    its name here."""

    def __init__(self, entries: Iterable[Entry], scope: str) -> None:
        before = {
            entry.scope: f"{continues}/"
            for entry in entries
            if entry.type == "job.started" and (continues := _payload(entry).get("continues")) is not None
        }
        self._scopes = [scope]
        while (scope := before.get(scope, "")) and scope not in self._scopes:
            self._scopes.append(scope)

    def here(self, entry: Entry) -> str | None:
        """The scope of an event of these jobs, as it is called in the last of them; None for an event of others."""
        return self.named(entry, entry.scope) if self._own(entry) is not None else None

    def named(self, entry: Entry, name: str) -> str:
        own = self._own(entry)
        return name if own is None else self._scopes[0] + name.removeprefix(own)

    def _own(self, entry: Entry) -> str | None:
        return next((scope for scope in self._scopes if _is_of(entry, scope)), None)


class _IterationEnds:
    """What became of iterations whose body has ended; of nested ones the outermost, with which the others are kept or not."""

    def __init__(self, entries: Iterable[Entry], lineage: _Lineage, reopened: Set[str]) -> None:
        self.over: set[str] = set()
        """They ended OK, with all that their end led to."""
        self.with_body: set[str] = set()
        """Of these the body is kept. Some of what handles its end has not ended, or not well, and is done anew."""
        self.redone: set[str] = set()
        """The sub-jobs that are done anew."""
        ends: dict[str, Entry] = {}
        handlers: dict[str, dict[str, str]] = {}
        for entry in entries:
            if entry.type not in _OF_ITERATIONS or (scope := lineage.here(entry)) is None:
                continue
            if (
                entry.type == "iteration.started"
            ):  # It is run again, whatever became of it in an earlier run of the task.
                ends.pop(scope, None)
            elif entry.type in _BODY_ENDS:
                if _outermost(scope, reopened) == scope:
                    ends[scope], handlers[scope] = entry, {}
            else:
                data = _payload(entry)
                found = handlers.get(lineage.named(entry, str(data["container"])).removesuffix("."))
                if found is not None:
                    is_skipped = entry.type == "component.skipped"
                    found[lineage.named(entry, str(data["subjob"])) if is_skipped else scope] = entry.type
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
_OF_ITERATIONS = frozenset({"iteration.started", *_BODY_ENDS, *_IN_SUBJOB})
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
    """Whether the event belongs to this job, not to one that a component of it runs."""
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


def _counted_again(entries: list[Entry], gone: dict[str, int], whole: list[Entry]) -> list[Entry]:
    """`gone`: the numbers of events that were taken out of `whole`. What is kept may name one as its cause; its like stands there
    anew."""
    counters = _counters(entries)
    openings = _Openings(whole, {entry.seq for entry in entries}, counters)
    causes = {**gone, **counters}
    return [_moved(entry, counters, causes, openings) for entry in entries]


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


class _Openings:
    """Where components open others, by their clocks. A joblet call and what runs another execution open by their start, an
    iterator by beginning to iterate; iterations that a task's next run takes over lie in the start of their iterator there.

    Law: a number in a clock that stands for one of these events becomes the number of the same kind of event that is left,
    whichever start that is of.
    """

    def __init__(self, whole: list[Entry], standing: Set[int], counters: dict[str, int]) -> None:
        self._kinds: dict[tuple[LogicalClock, int], str] = {}
        """Clock of a component, number of an event -> its type; also of events that were taken out."""
        self._left: dict[tuple[LogicalClock, str], int] = {}
        """Clock of a component, type -> the new number of that event."""
        opening = [(_read(entry), entry) for entry in whole if entry.type in ("component.started", "iterator.started")]
        for clock, entry in sorted(opening, key=lambda one: (len(one[0]), one[1].seq)):  # What lies around comes first.
            around, number = self.moved(clock)[:-1], _last(clock)
            self._kinds[around, number] = entry.type
            if entry.seq in standing:
                self._left[around, entry.type] = counters[event_name(entry.scope, number)]

    def moved(self, clock: LogicalClock) -> LogicalClock:
        """The clock with the new numbers of all that it lies in."""
        parts = list(clock)
        for at in range(1, len(parts) - 1):
            number = parts[at]
            if isinstance(number, int):
                around = tuple(parts[:at])
                kind = self._kinds.get((around, number))
                parts[at] = number if kind is None else self._left.get((around, kind), number)
        return tuple(parts)


def _read(entry: Entry) -> LogicalClock:
    return to_clock(decode(entry.clock.encode()))


def _moved(entry: Entry, counters: dict[str, int], causes: dict[str, int], openings: _Openings) -> Entry:
    clock = _read(entry)
    moved = openings.moved(clock)
    if not is_of_job(entry.type):  # Of a playbook that a component runs: nothing of it is done anew.
        return entry if moved == clock else entry._replace(clock=encode(moved).decode())
    cause = entry.cause
    if cause is not None and cause in causes:
        cause = event_name(cause.rpartition(":")[0], causes[cause])
    number = counters[event_name(entry.scope, _last(clock))]
    return entry._replace(clock=encode((*moved[:-1], number)).decode(), cause=cause)
