"""What a loop runs over: described, never written out.

    {"kind": "range", "start": 0, "stop": 1000000, "step": 1}      counted
    {"kind": "list", "items": […] or a reference}                   at hand
    {"kind": "lines", "path": …}                                    read page by page; see `Pages`
    {"kind": "claim", "sql": …}                                     claimed page by page, and never read again

A description is what the log pins a fanned-out loop to, and what a worker on another machine opens its range by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from penstock.expr.values import kind as kind_of
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.results import LazyResult, LazySequence, Load, encode, thawed, view

LARGEST_INLINE = 64 * 1024
CLAIM = "claim"
PAGED = ("sql", "lines", "row_groups", "objects", "files", "http", CLAIM)


@dataclass(frozen=True, slots=True)
class Described:
    collection: JsonMap
    total: int | None

    @property
    def is_paged(self) -> bool:
        return self.collection["kind"] in PAGED

    @property
    def claims(self) -> bool:
        return self.collection["kind"] == CLAIM


def described(value: Any, template: Json = None) -> Described | Sequence[Any]:
    """The description for what `loop.in` evaluated to: a description already, or the elements themselves. Raises TypeError
    if it is no collection. A paged collection has to be written as such in the document (`template`): a mapping among the
    data is data, whatever its keys are."""
    if isinstance(value, LazyResult) and not isinstance(value, LazySequence):
        value = value.loaded()
    if isinstance(value, range):
        return Described({"kind": "range", "start": value.start, "stop": value.stop, "step": value.step}, len(value))
    if isinstance(value, dict):
        return _of_mapping(value, is_written=isinstance(template, dict))
    if isinstance(value, (LazySequence, list, tuple)):
        return value
    raise TypeError(f"it is {'undefined or null' if value is None else kind_of(value)}, not a list")


def _of_mapping(value: dict[str, Any], *, is_written: bool) -> Described | Sequence[Any]:
    if "range" in value and len(value) == 1:
        return cast(Described, described(counted(value["range"])))
    if len(value) == 1 and is_written:
        (name, given), *_ = value.items()
        if name in PAGED:
            spec = given if isinstance(given, dict) else {_MAIN[name]: given}
            # The `kind` beside a query names the database.
            return Described({"kind": name, **{_RENAMED.get(key, key): inner for key, inner in spec.items()}}, None)
    return [{"key": key, "value": inner} for key, inner in value.items()]


FRAME_ROWS = "__frame_max_rows"
"""What NoETL calls the number of rows that a claim may take."""


def rows_of_claim(template: Json) -> Json:
    """What `loop.in` says of how many rows a claim may take; None if it is no claim."""
    claim = template.get(CLAIM) if isinstance(template, dict) and len(template) == 1 else None
    return claim.get("rows", 1) if isinstance(claim, dict) else None


_RENAMED = {"kind": "engine"}
# The parameter that is meant if the kind is given a plain value.
_MAIN = {
    "sql": "query",
    "lines": "path",
    "row_groups": "path",
    "objects": "url",
    "files": "path",
    "http": "url",
    CLAIM: "sql",
}


def pinned(found: Described | Sequence[Any], blobs: BlobStore, load: Load) -> Described:
    """The description of a collection for the log and for other machines: a long list of elements goes to the result store."""
    if isinstance(found, Described):
        return found
    if isinstance(found, LazySequence):
        hint = found.ref.schema_hint
        length = hint.get("length") if isinstance(hint, dict) else None
        total = length if isinstance(length, int) else len(found)
        return Described({"kind": "list", "items": cast(Json, found)}, total)
    data = encode(list(found))
    items: Any = list(found)
    if len(data) > LARGEST_INLINE:
        items = view(blobs.put([data], schema_hint={"type": "array", "length": len(found)}), load)
    return Described({"kind": "list", "items": items}, len(found))


def elements(collection: JsonMap, load: Load) -> Sequence[Any]:
    """The elements of a described collection that is not paged. A list by reference is loaded when it is read."""
    if collection["kind"] == "range":
        start, stop, step = (cast(int, collection[name]) for name in ("start", "stop", "step"))
        return range(start, stop, step)
    items = collection["items"]
    held = cast("Sequence[Any]", thawed(items, load) if isinstance(items, dict) else items)
    first = collection.get("first", 0)
    return held if not first else Shifted(held, cast(int, first))


class Shifted(Sequence[Any]):
    """Part of a list whose elements keep the indexes they have in the whole list."""

    def __init__(self, items: Sequence[Any], first: int) -> None:
        self._items = items
        self._first = first

    def __getitem__(self, index: Any) -> Any:
        return self._items[index - self._first]

    def __len__(self) -> int:
        return self._first + len(self._items)


def counted(value: Any) -> range:
    try:
        if isinstance(value, dict):
            made = range(int(value.get("start", 0)), int(value["stop"]), int(value.get("step", 1)))
        elif isinstance(value, list):
            made = range(*(int(part) for part in value))
        else:
            made = range(int(value))
        len(made)  # Raises if there are more elements than can be counted.
    except (KeyError, TypeError, ValueError, OverflowError):
        shown = value if isinstance(value, dict | list) else repr(value)
        raise TypeError(f"`range` takes whole numbers: `stop`, or `start`, `stop` and `step`; it is {shown}") from None
    return made


@dataclass(frozen=True, slots=True)
class Page:
    """Some elements of a collection that is read in order. `next` opens the following page; `keys` are the permanent names
    of the elements. A claim without elements is not the end: there may be some later."""

    items: Sequence[Any]
    next: Json = None
    is_end: bool = False
    keys: Sequence[str] | None = None


class Pages(Protocol):
    """A collection that is never held as a whole: it is read page by page, each from where the one before it ended."""

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """At most `most` elements from `token` on (None: from the beginning). With `until`, the same page as before: it ends
        where that one ended, whatever has been added since."""
