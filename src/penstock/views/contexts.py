"""The variables of a run at a moment: a playbook's ctx, merged by the places of its writers, and a job's globals.

Law: of two writes to one variable, the one that had seen the other wins; of two concurrent writes, the one at the later place
wins, never the one at the later wall clock (rulebook A5). Large values stay the references that the log has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.kernel.places import LogicalClock
from penstock.ports.wire import read_clock
from penstock.views.model import FAILED, OK, Context, Execution, Group, Run, Written

KEPT = "state"
"""The part of a playbook's ctx that is kept from one run to the next."""


# ---- ctx


def opened_with(kept: Any) -> Context:
    """The ctx that an execution begins with: what its document had kept from earlier runs."""
    if not isinstance(kept, dict):
        return Context()
    values = kept.get("values")
    return Context({KEPT: values if isinstance(values, dict) else {}})


def path_of(run: str) -> list[int]:
    """`fetch@2.0.1`: [2, 0, 1]."""
    return [int(part) for part in run[run.rfind("@") + 1 :].split(".")]


def merge(ctx: Context, writes: dict[str, Any], path: list[int], continued: list[int] | None = None) -> None:
    """`continued`: the place of a failed run which the run at `path` went on from, and whose appends are among its own."""
    if not writes:
        return
    for key, value in _mapping(writes, "ctx").items():
        if ctx.written_at.get(key, []) <= path:
            _assign(ctx.values, key, value)
            ctx.written_at[key] = path
            ctx.appended_at.pop(key, None)
    for key, added in _mapping(writes, "append").items():
        _append(ctx, key, added if isinstance(added, list) else [added], path, continued)


def _append(ctx: Context, key: str, added: list[Any], path: list[int], continued: list[int] | None) -> None:
    items = _items(ctx.values, key)
    places = ctx.appended_at.get(key)
    if places is None or len(places) != len(items):
        places = [[] for _ in items]
    if continued is not None:
        start, end = bisect_left(places, continued), bisect_right(places, continued)
        del items[start:end], places[start:end]
    at = bisect_right(places, path)
    items[at:at] = added
    places[at:at] = [path] * len(added)
    _assign(ctx.values, key, items)
    ctx.appended_at[key] = places


def _assign(target: dict[str, Any], key: str, value: Any) -> None:
    """The dots of a key reach into mappings, which are copied on the way, since others may hold them."""
    head, _, rest = key.partition(".")
    if not rest:
        target[head] = value
        return
    inner = target.get(head)
    fresh = dict(inner) if isinstance(inner, dict) else {}
    _assign(fresh, rest, value)
    target[head] = fresh


def _items(target: dict[str, Any], key: str) -> list[Any]:
    """What an append finds there: a list, and anything else as a list of it."""
    present: Any = target
    for name in key.split("."):
        present = present.get(name) if isinstance(present, dict) else None
    return list(present) if isinstance(present, list) else ([] if present is None else [present])


def _mapping(writes: dict[str, Any], key: str) -> dict[str, Any]:
    value = writes.get(key)
    return value if isinstance(value, dict) else {}


# ---- globals

Seen = dict[str, int]
"""Key -> the write that is seen, by its number among those of the execution."""


def see(execution: Execution, run: Run, sees: Sequence[str]) -> None:
    """A component starts: it finds what the components and sub-jobs before it left."""
    views: list[tuple[Seen, Seen]] = []
    for scope in (one[len(execution.scope) :] for one in sees):
        group, source = execution.groups.get(scope), execution.runs.get(scope)
        if group is not None:
            views.append((_left_by(execution, group), {}))
        elif source is not None:
            views.append((source.sees, source.sees_local if source.group == run.group else {}))
    if not sees:
        around = execution.groups[run.group].container if run.group in execution.groups else ""
        call = execution.runs.get(around.removesuffix(".__")) if around.endswith(".__") else None
        if call is not None:
            views.append((call.sees, call.sees_local))
    run.sees = _joined(execution, (shared for shared, _ in views))
    run.sees_local = _joined(execution, (local for _, local in views))


def close_call(execution: Execution, run: Run) -> None:
    """A joblet call ends: what its inside wrote is seen after it."""
    inside = [_left_by(execution, group) for group in execution.groups.values() if group.container == run.opens]
    run.sees = _joined(execution, (*inside, run.sees))


def write(execution: Execution, run: Run, key: str, written: Written, *, is_local: bool) -> None:
    before = run.sees_local.get(key, run.sees.get(key, -1))
    written.run, written.before = run.name, before
    if before >= 0 and execution.writes[before].run == run.name:  # Nobody else has seen the value that it replaces.
        written.before, number = execution.writes[before].before, before
        execution.writes[before] = written
    else:
        number = len(execution.writes)
        execution.writes.append(written)
    if is_local:
        run.sees_local[key] = number
        return
    run.sees[key] = number
    local = run.sees_local.get(key)
    if (
        local is not None and execution.writes[local].run != run.name
    ):  # What everyone gets takes the place of a local value.
        del run.sees_local[key]


def globals_of(execution: Execution) -> dict[str, Any]:
    """What is everyone's; values that stay local to a sub-job are not. In the order of their names."""
    seen = _joined(execution, (_left_by(execution, one) for one in execution.groups.values() if not one.container))
    writes = execution.writes
    return {key: writes[number].value for key, number in sorted(seen.items()) if not writes[number].deleted}


def _left_by(execution: Execution, group: Group) -> Seen:
    members = (execution.runs[name] for name in group.members if name in execution.runs)
    return _joined(execution, (run.sees for run in members if run.status in (OK, FAILED)))


def _joined(execution: Execution, layers: Iterable[Seen]) -> Seen:
    """What is seen where these histories meet."""
    merged: Seen = {}
    for layer in layers:
        for key, number in layer.items():
            present = merged.get(key)
            merged[key] = number if present is None or present == number else _resolved(execution, present, number)
    return merged


def _resolved(execution: Execution, one: int, other: int) -> int:
    if _knew_of(execution, one, other):
        return one
    if _knew_of(execution, other, one):
        return other
    return max(one, other, key=lambda number: _stamp(execution.writes[number]))


def _knew_of(execution: Execution, one: int, other: int) -> bool:
    before = execution.writes[one].before
    while before > other:  # What a write replaces always has a lower number.
        before = execution.writes[before].before
    return before == other


def _stamp(written: Written) -> tuple[LogicalClock, str]:
    return read_clock(written.clock), written.writer
