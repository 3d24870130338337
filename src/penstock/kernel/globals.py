"""Globals as they are seen from one place.

Law: a component sees what the components before it wrote, and nothing else; so what it sees does not depend on what happened
to run faster. Where two histories meet, a write that knew of another replaces it; of two that did not know of each other the one
with the higher logical clock wins, then the one by the component whose name sorts last (rulebook A5).

A view is created for every component and read by few, so it only links to the views before it until it is first read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from penstock.kernel.places import LogicalClock
from penstock.kernel.values import Json, JsonMap, frozen

Stamp: TypeAlias = "tuple[LogicalClock, str]"


@frozen
class Written:
    """A value of a global, and its position among the other values the key has had."""

    value: Json
    stamp: Stamp
    creator: str
    """The sub-job that created the key."""
    past: frozenset[Stamp] = frozenset()
    """The writes that this one knew of and replaced."""
    is_set: bool = False
    """The value stands for a set: when iterations are merged, it is united with the others."""
    deleted: bool = False
    """The key was deleted. A deletion is a write like any other: it wins or loses against others where histories meet."""


def resolved(one: Written, other: Written) -> Written:
    """The write that wins where two histories meet (rulebook A5)."""
    if one.stamp == other.stamp or other.stamp in one.past:
        return one
    if one.stamp in other.past:
        return other
    return max(one, other, key=lambda written: written.stamp)


class Seen(NamedTuple):
    shared: dict[str, Written]
    """The values everyone sees, without those local to a sub-job."""
    local: dict[str, Written]
    after: dict[str, JsonMap]
    """Component -> its after-variables."""


class View:
    __slots__ = ("_own", "_parents", "_seen")

    def __init__(self, parents: tuple[View, ...] = (), seen: Seen | None = None) -> None:
        self._parents = parents
        self._own = Seen({}, {}, {})
        self._seen = seen

    def __eq__(self, other: object) -> bool:
        return self.seen() == other.seen() if isinstance(other, View) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def write(self, key: str, written: Written, *, local: bool = False) -> None:
        """Only for the owner of the view, before it has been passed to anyone else."""
        if self._seen is not None:
            self._parents, self._seen = (View((), self._seen),), None
        (self._own.local if local else self._own.shared)[key] = written

    def set_after(self, component: str, values: JsonMap) -> None:
        if self._seen is not None:
            self._parents, self._seen = (View((), self._seen),), None
        self._own.after[component] = values

    def get(self, key: str) -> Written | None:
        """The last write to a key, which may be a deletion."""
        seen = self.seen()
        return seen.local.get(key) or seen.shared.get(key)

    def values(self, *, is_shared: bool = False) -> JsonMap:
        """Every visible global by its full name; with `is_shared`, only those everyone sees, sorted by name."""
        seen = self.seen()
        found = sorted(seen.shared.items()) if is_shared else {**seen.shared, **seen.local}.items()
        return {key: written.value for key, written in found if not written.deleted}

    def seen(self) -> Seen:
        """What is visible here. Not recursive, because chains of views can be long."""
        known: set[int] = set()
        stack = [self] if self._seen is None else []
        while stack:
            view = stack[-1]
            unseen = [one for one in view._parents if one._seen is None] if id(view) not in known else ()
            known.add(id(view))
            if unseen:
                stack += unseen
                continue
            stack.pop()
            if view._seen is None:
                view._seen = _joined([one._seen for one in view._parents if one._seen is not None], view._own)
                view._parents = ()
        assert self._seen is not None
        return self._seen


def _joined(layers: list[Seen], own: Seen) -> Seen:
    shared = _merged([layer.shared for layer in layers], own.shared)
    local = _merged([layer.local for layer in layers], own.local)
    if own.shared and local:  # A shared write replaces a local value.
        local = {key: value for key, value in local.items() if key not in own.shared or key in own.local}
    after = layers[0].after if layers else {}
    for layer in layers[1:]:
        if layer.after is not after:
            after = {**after, **layer.after}
    return Seen(shared, local, {**after, **own.after} if own.after else after)


def _merged(layers: list[dict[str, Written]], own: dict[str, Written]) -> dict[str, Written]:
    merged = layers[0] if layers else {}
    is_mine = False
    for layer in layers[1:]:
        if layer is merged or not layer:
            continue
        if not is_mine:
            merged, is_mine = dict(merged), True
        for key, written in layer.items():
            present = merged.get(key)
            merged[key] = written if present is None else resolved(present, written)
    return {**merged, **own} if own else merged


def joined(views: Iterable[View]) -> View:
    """The view where these histories meet."""
    different = list({id(view): view for view in views}.values())
    if not different:
        return View()
    return different[0] if len(different) == 1 else View(tuple(different))


def exported(view: View) -> View:
    """What another sub-job sees of this view: everything except local values."""
    seen = view.seen()
    return View((), seen._replace(local={})) if seen.local else view
