"""Globals as they are seen from one place.

Law: a component sees what the components before it wrote, and nothing else; so what it sees does not depend on what happened
to run faster. Where two histories meet, a write that knew of another replaces it; of two that did not know of each other the one
with the higher logical clock wins, then the one by the component whose name sorts last (rulebook A5).

A view is made for every component and read by few, so it is a link to the views before it until somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.kernel.frozen import frozen
from penstock.kernel.places import LogicalClock
from penstock.kernel.values import Json, JsonMap

Stamp: TypeAlias = "tuple[LogicalClock, str]"


@frozen
class Written:
    """A value of a global, and where it stands among the other values the key has had."""

    value: Json
    stamp: Stamp
    creator: str
    """The sub-job that made the key."""
    past: frozenset[Stamp] = frozenset()
    """The writes that this one knew of and replaced."""
    is_set: bool = False
    """The value stands for a set: where values are gathered it is united with the others."""
    deleted: bool = False
    """The key is gone. That is a write like any other, so that it wins or loses against others where histories meet."""


def resolved(one: Written, other: Written) -> Written:
    if one.stamp == other.stamp or other.stamp in one.past:
        return one
    if one.stamp in other.past:
        return other
    return max(one, other, key=lambda written: written.stamp)


class View:
    __slots__ = ("_entries", "_own", "_own_after", "_own_local", "_parents", "_seen_after", "_seen_local")

    def __init__(self, parents: tuple[View, ...] = ()) -> None:
        self._parents = parents
        self._own: dict[str, Written] = {}
        self._own_local: dict[str, Written] = {}
        self._own_after: dict[str, JsonMap] = {}
        self._entries: dict[str, Written] | None = None
        self._seen_local: dict[str, Written] = {}
        self._seen_after: dict[str, JsonMap] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (self.shared(), self.local(), self.after()) == (other.shared(), other.local(), other.after())

    __hash__ = None  # type: ignore[assignment]

    def write(self, key: str, written: Written, *, local: bool = False) -> None:
        """Only by whoever owns the view, before anyone else has been given it."""
        (self._own_local if local else self._own)[key] = written
        self._forget()

    def set_after(self, component: str, values: JsonMap) -> None:
        self._own_after[component] = values
        self._forget()

    def _forget(self) -> None:
        if self._entries is not None:
            self._parents = (_frozen_copy(self._entries, self._seen_local, self._seen_after),)
            self._entries = None

    def shared(self) -> dict[str, Written]:
        """What is everyone's, without the values that stay local to a sub-job."""
        self._look()
        assert self._entries is not None
        return self._entries

    def local(self) -> dict[str, Written]:
        self._look()
        return self._seen_local

    def after(self) -> dict[str, JsonMap]:
        """Component -> its after-variables."""
        self._look()
        return self._seen_after

    def get(self, key: str) -> Written | None:
        """The last write to a key; also one that deleted it."""
        self._look()
        assert self._entries is not None
        return self._seen_local.get(key) or self._entries.get(key)

    def values(self) -> JsonMap:
        """Every visible global by its full name."""
        found = {**self.shared(), **self._seen_local}
        return {key: written.value for key, written in found.items() if not written.deleted}

    def shared_values(self) -> JsonMap:
        """Every global that is everyone's, in the order of their names."""
        return {key: written.value for key, written in sorted(self.shared().items()) if not written.deleted}

    def _look(self) -> None:
        if self._entries is not None:
            return
        for view in self._unseen():
            view._gather()

    def _unseen(self) -> list[View]:
        """This view and those before it that have not been looked at, the earliest first. Chains can be long: no recursion."""
        order: list[View] = []
        known: set[int] = set()
        stack: list[tuple[View, bool]] = [(self, False)]
        while stack:
            view, is_done = stack.pop()
            if is_done:
                order.append(view)
            elif view._entries is None and id(view) not in known:
                known.add(id(view))
                stack.append((view, True))
                stack.extend((parent, False) for parent in view._parents)
        return order

    def _gather(self) -> None:
        parents = self._parents
        entries = _merged([parent._entries or {} for parent in parents], self._own)
        local = _merged([parent._seen_local for parent in parents], self._own_local)
        if self._own and local:  # A value that everyone gets takes the place of a local one.
            local = {key: value for key, value in local.items() if key not in self._own or key in self._own_local}
        after = parents[0]._seen_after if parents else {}
        for parent in parents[1:]:
            if parent._seen_after is not after:
                after = {**after, **parent._seen_after}
        self._seen_after = {**after, **self._own_after} if self._own_after else after
        self._seen_local = local
        self._entries = entries
        self._parents = ()


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


def _frozen_copy(entries: dict[str, Written], local: dict[str, Written], after: dict[str, JsonMap]) -> View:
    view = View()
    view._entries, view._seen_local, view._seen_after = entries, local, after
    return view


EMPTY = View()


def joined(views: Iterable[View]) -> View:
    """What is seen where these histories meet."""
    different = list({id(view): view for view in views}.values())
    if not different:
        return View()
    return different[0] if len(different) == 1 else View(tuple(different))


def exported(view: View) -> View:
    """What another sub-job sees of this: local values stay behind."""
    if not view.local():
        return view
    return _frozen_copy(view.shared(), {}, view.after())
