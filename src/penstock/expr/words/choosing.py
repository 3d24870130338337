"""Words that apply another word to every element: `map`, `select`, `reject` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.expr.budget import Frame
from penstock.expr.errors import Misuse
from penstock.expr.scope import MISSING
from penstock.expr.values import elements
from penstock.expr.words.entry import FILTERS, TESTS, Entry, call
from penstock.expr.words.items import chosen_part, pluck


def _entry(table: dict[str, Entry], name: Any) -> Entry:
    # The plan-time check has already seen to it that the name is written out and known.
    entry = table.get(name) if isinstance(name, str) else None
    if entry is None:
        raise Misuse(f"`{name}` is not a word that can be applied to elements")
    return entry


def map_(frame: Frame, value: Any, filter: Any = None, *arguments: Any, **named: Any) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found))
    if filter is None:
        if "attribute" not in named or not named.keys() <= {"attribute", "default"}:
            raise Misuse("`map` takes the name of a filter, or `attribute=` (and `default=`)")
        return pluck(frame, found, **named)
    entry = _entry(FILTERS, filter)
    for argument in (*arguments, *named.values()):
        # The same list may end up in every element, so it is paid for every time.
        frame.copies(argument, len(found))
    results = (call(entry, frame, [element, *arguments], named) for element in found)
    return [None if result is MISSING else result for result in results]


def _chosen(frame: Frame, value: Any, attribute: Any, test: Any, arguments: tuple[Any, ...], wanted: bool) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found))
    look = chosen_part(frame, attribute, len(found))
    holds: Callable[[Any], bool] = bool
    if test is not None:
        entry = _entry(TESTS, test)

        def holds(part: Any) -> bool:
            return call(entry, frame, [part, *arguments], {}) is True

    return [element for element in found if holds(look(element)) is wanted]


def select(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, None, test, arguments, True)


def reject(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, None, test, arguments, False)


def selectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, attribute, test, arguments, True)


def rejectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, attribute, test, arguments, False)
