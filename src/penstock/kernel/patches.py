"""Staged writes: what a run is going to change in ctx or iter, and how such changes are merged.

A patch is recorded in the fact that ends a task or a scope and nowhere else. Within its own scope a write is visible at once;
for everyone else, when the scope has closed. Where branches ran in parallel the later place wins, never the later wall clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import field

from penstock.kernel.places import Path
from penstock.kernel.values import Json, JsonMap, mutable


def assign(target: JsonMap, key: str, value: Json) -> None:
    """Set `key`; dots reach into nested mappings. Mappings on the way are copied, since others may be reading them."""
    head, _, rest = key.partition(".")
    if not rest:
        target[head] = value
        return
    inner = target.get(head)
    fresh: JsonMap = dict(inner) if isinstance(inner, dict) else {}
    assign(fresh, rest, value)
    target[head] = fresh


def extend(target: JsonMap, key: str, values: list[Json]) -> None:
    assign(target, key, _items(target, key) + values)


def _items(target: JsonMap, key: str) -> list[Json]:
    """The list that an append to `key` extends; a value that is not a list becomes a list of one."""
    present: Json = target
    for name in key.split("."):
        present = present.get(name) if isinstance(present, dict) else None
    return list(present) if isinstance(present, list) else ([] if present is None else [present])


def claims(writes: JsonMap) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The claim that each write of an iteration makes, with the claims of others that it conflicts with.

    A key is claimed as `k`, anything below it as `k.`, and an append to it as `k[]`: one iteration must not replace a mapping
    that another writes into, nor a list that another appends to.
    """
    for key in _mapping(writes, "ctx"):
        above = _above(key)
        yield key, (*above, f"{key}.", f"{key}[]")
        for outer in above:
            yield f"{outer}.", ()
    for key in _mapping(writes, "append"):
        yield f"{key}[]", (*_above(key), key, f"{key}.")
        for outer in _above(key):
            yield f"{outer}.", ()


def _above(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


@mutable
class Staged:
    """Writes gathered in a scope that has not closed yet."""

    ctx: JsonMap = field(default_factory=dict)
    append: dict[str, list[Json]] = field(default_factory=dict)
    shared: dict[str, list[Json]] = field(default_factory=dict)
    """Values for reducers. They take effect when the loop has ended, and not at all if the iteration fails."""

    def __bool__(self) -> bool:
        return bool(self.ctx or self.append)

    def add(self, writes: JsonMap) -> None:
        for key, value in _mapping(writes, "ctx").items():
            self.ctx.pop(key, None)  # Writes are applied in order, so a repeated key moves to the end.
            self.ctx[key] = value
        for key, values in _mapping(writes, "append").items():
            self.append.setdefault(key, []).extend(values if isinstance(values, list) else [values])
        if "shared" in writes:
            for key, values in _mapping(writes, "shared").items():
                self.shared.setdefault(key, []).extend(values if isinstance(values, list) else [values])

    def applied_to(self, ctx: JsonMap) -> JsonMap:
        if not self:
            return ctx
        fresh = dict(ctx)
        for key, value in self.ctx.items():
            assign(fresh, key, value)
        for key, values in self.append.items():
            extend(fresh, key, values)
        return fresh

    def as_writes(self) -> JsonMap:
        writes: JsonMap = {}
        if self.ctx:
            writes["ctx"] = dict(self.ctx)
        if self.append:
            writes["append"] = {key: list(values) for key, values in self.append.items()}
        if self.shared:
            writes["shared"] = {key: list(values) for key, values in self.shared.items()}
        return writes


@mutable
class Gathered(Staged):
    """The writes of a loop's iterations. Appends are kept in index order, whichever iteration closed first (D9)."""

    indexes: dict[str, list[int]] = field(default_factory=dict)

    def gather(self, index: int, writes: JsonMap) -> bool:
        """Take in the writes of iteration `index`. True if they replace those of an earlier, failed run of it."""
        self.add({"ctx": writes.get("ctx", {})})
        was_there = False
        for key, values in _mapping(writes, "append").items():
            added: list[Json] = values if isinstance(values, list) else [values]
            was_there |= self._place(key, index, added)
        return was_there

    def _place(self, key: str, index: int, added: list[Json]) -> bool:
        items, indexes = self.append.setdefault(key, []), self.indexes.setdefault(key, [])
        if not indexes or indexes[-1] < index:
            items.extend(added)
            indexes.extend([index] * len(added))
            return False
        start, end = bisect_left(indexes, index), bisect_right(indexes, index)
        items[start:end] = added
        indexes[start:end] = [index] * len(added)
        return end > start


def applied(ctx: JsonMap, writes: JsonMap) -> JsonMap:
    """`ctx` with one patch applied; the argument is left alone."""
    staged = Staged()
    staged.add(writes)
    return staged.applied_to(ctx)


@mutable
class SharedContext:
    """The execution's ctx, merged from closed scopes by their places."""

    values: JsonMap = field(default_factory=dict)
    written_at: dict[str, Path] = field(default_factory=dict)
    appended_at: dict[str, list[Path]] = field(default_factory=dict)

    def merge(self, writes: JsonMap, path: Path, continued: Path | None = None) -> None:
        """`continued`: the path of the failed run that the run at `path` continues; `writes` repeats the appends of that run."""
        if not writes:
            return
        values = dict(self.values)
        for key, value in _mapping(writes, "ctx").items():
            if self.written_at.get(key, ()) <= path:
                assign(values, key, value)
                self.written_at[key] = path
                self.appended_at.pop(key, None)
        for key, added in _mapping(writes, "append").items():
            self._append(values, key, added if isinstance(added, list) else [added], path, continued)
        self.values = values

    def _append(self, values: JsonMap, key: str, added: list[Json], path: Path, continued: Path | None) -> None:
        items = _items(values, key)
        places = self.appended_at.get(key)
        if places is None or len(places) != len(items):
            places = [()] * len(items)
        if continued is not None:
            start, end = bisect_left(places, continued), bisect_right(places, continued)
            del items[start:end], places[start:end]
        at = bisect_right(places, path)
        items[at:at] = added
        places[at:at] = [path] * len(added)
        assign(values, key, items)
        self.appended_at[key] = places


def _mapping(writes: JsonMap, key: str) -> JsonMap:
    value = writes.get(key)
    return value if isinstance(value, dict) else {}
