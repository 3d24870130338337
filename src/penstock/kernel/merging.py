"""How an iterator merges what its iterations wrote to globals (rulebook 12.4, A4).

    accumulate   lists are concatenated, sets united, anything else is replaced by the later iteration
    reset        an iteration starts without what earlier ones wrote; only what the last one wrote survives
    override     the later iteration wins

Iterations that ended OK are merged in index order, whichever ended first. For a failed iteration, the writes of its body are
discarded, and only those of the handlers of its end are merged (D60).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final, NamedTuple, cast

from penstock.kernel.globals import Stamp, View, Written
from penstock.kernel.net import GlobalsMode
from penstock.kernel.state import KEPT_WRITES, Iterations, Subjob
from penstock.kernel.values import Json

DELETED: Final = cast(Json, object())
"""The merged value of a key if the last iteration that wrote it deleted it."""


def last_values(subjobs: Collection[Subjob]) -> dict[str, Written]:
    """For each key that members of these sub-jobs of an iteration wrote, its last value."""
    keys = {key for subjob in subjobs for key in _written(subjob)}
    if not keys:
        return {}
    views = [subjob.out() for subjob in subjobs]
    found: dict[str, Written] = {}
    for key in sorted(keys):
        present = [written for view in views if (written := view.seen().shared.get(key)) is not None]
        if present:
            found[key] = max(present, key=lambda written: written.stamp)
    return found


def _written(subjob: Subjob) -> Iterator[str]:
    """The keys written in a sub-job and in the joblets it calls."""
    for component in subjob.members.values():
        yield from component.written
        for inner in component.inside.subjobs.values() if component.inside is not None else ():
            yield from _written(inner)


def gather(iterator: Iterations, index: int, writes: dict[str, Written]) -> None:
    """Take in the writes of one iteration, and merge those of all iterations whose predecessors have settled."""
    if writes:
        iterator.gathered[index] = writes
    low = iterator.settled.low
    for ready in sorted(one for one in iterator.gathered if one < low):
        _merge_next(iterator, ready, iterator.gathered.pop(ready))
    iterator.merged_up_to = low


def _merge_next(iterator: Iterations, index: int, writes: dict[str, Written]) -> None:
    """Merge one iteration. From the first one that a resume may rerun, also keep the writes apart: the rerun is merged in its
    place, without what the handlers of the failed run wrote."""
    if iterator.sound is None and _may_run_again(iterator, index):
        iterator.sound = (dict(iterator.merged), set(iterator.sets))
    if iterator.sound is not None and index not in iterator.not_ok:
        iterator.later[index] = writes
        if len(iterator.later) > KEPT_WRITES:
            iterator.sound = _with(iterator, iterator.sound, iterator.later)
            iterator.later = {}
    _merge(iterator, writes)


def _may_run_again(iterator: Iterations, index: int) -> bool:
    """Whether a resume may change what this iteration or an earlier one wrote."""
    return index in iterator.partial or (iterator.first_failed is not None and index >= iterator.first_failed)


def _with(
    iterator: Iterations, before: tuple[dict[str, Json], set[str]], writes: dict[int, dict[str, Written]]
) -> tuple[dict[str, Json], set[str]]:
    rest = replace(iterator, merged=dict(before[0]), sets=set(before[1]))
    for index in sorted(writes):
        _merge(rest, writes[index])
    return rest.merged, rest.sets


def reopen(old: Iterations, again: Iterations) -> None:
    """Continue in `again` from what was merged before the first failure; later iterations are merged when their turn comes."""
    again.merged, again.sets = old.sound if old.sound is not None else (old.merged, old.sets)
    stays = {**old.later, **{index: writes for index, writes in old.gathered.items() if index not in old.not_ok}}
    again.gathered = {index: writes for index, writes in stays.items() if index in again.settled}


class Finished(NamedTuple):
    """What an iterator commits when it ends: the merged writes of its iterations."""

    writes: dict[str, Json]
    sets: frozenset[str]
    deletes: tuple[str, ...]


def finish(iterator: Iterations) -> Finished:
    merged, sets = iterator.merged, iterator.sets
    if iterator.gathered:
        merged, sets = _with(iterator, (merged, sets), iterator.gathered)
    gone = tuple(key for key, value in merged.items() if value is DELETED)
    return Finished({key: value for key, value in merged.items() if value is not DELETED}, frozenset(sets), gone)


def _merge(iterator: Iterations, writes: dict[str, Written]) -> None:
    iterator.sets |= {key for key, written in writes.items() if written.is_set}
    if iterator.mode == GlobalsMode.RESET.value:
        iterator.merged = {key: _value(written) for key, written in writes.items()}
        return
    for key, written in writes.items():
        if iterator.mode == GlobalsMode.OVERRIDE.value:
            iterator.merged[key] = _value(written)
        else:
            iterator.merged[key] = _accumulated(iterator, key, written)


def _value(written: Written) -> Json:
    return DELETED if written.deleted else written.value


def _accumulated(iterator: Iterations, key: str, written: Written) -> Json:
    if written.deleted:
        return DELETED
    value = written.value
    before = iterator.base.get(key)
    base = before.value if before is not None else None
    old = iterator.merged.get(key, base)
    if not isinstance(value, list) or not isinstance(old, list):
        return value
    if written.is_set:
        return old + [one for one in value if one not in old]
    # An iteration that saw the list may have written it back with its own elements at the end: only those are new.
    for seen in (old, base):
        if isinstance(seen, list) and len(value) > len(seen) and value[: len(seen)] == seen:
            return old + value[len(seen) :]
    return old + value


def seen_by_next(iterator: Iterations, creator: str, opened: Stamp) -> View:
    """The globals the next iteration sees. If iterations run one at a time, this includes the writes of earlier ones, unless the
    mode is `reset`."""
    if iterator.parallel > 1 or iterator.mode == GlobalsMode.RESET.value or not iterator.merged:
        return iterator.base
    view = View((iterator.base,))
    for key, value in iterator.merged.items():
        before = iterator.base.get(key)
        past = before.past | {before.stamp} if before is not None else frozenset()
        made_by = before.creator if before is not None else creator
        view.write(key, merged_value(value, opened, made_by, past))
    return view


def merged_value(value: Json, stamp: Stamp, creator: str, past: frozenset[Stamp] = frozenset()) -> Written:
    """A merged value as the next reader sees it."""
    deleted = value is DELETED
    return Written(None if deleted else value, stamp, creator, past, deleted=deleted)
