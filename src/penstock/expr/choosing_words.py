"""Words that apply another word to every element: `map`, `select`, `reject` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.expr.budget import Frame, deep_cost_of
from penstock.expr.errors import Misuse
from penstock.expr.item_words import looked_up, pluck
from penstock.expr.scope import MISSING
from penstock.expr.table import FILTERS, TESTS, Entry, call
from penstock.expr.values import elements, is_sequence


def _entry(table: dict[str, Entry], name: Any) -> Entry:
    # The plan-time check has already seen to it that the name is written out and known.
    entry = table.get(name) if isinstance(name, str) else None
    if entry is None:
        raise Misuse(f"`{name}` is not a word that can be applied to elements")
    return entry


def map_(frame: Frame, value: Any, filter: Any = None, *arguments: Any, **named: Any) -> list[Any]:
    found = elements(value)
    if filter is None:
        if "attribute" not in named or not named.keys() <= {"attribute", "default"}:
            raise Misuse("`map` takes the name of a filter, or `attribute=` (and `default=`)")
        return pluck(found, **named)
    entry = _entry(FILTERS, filter)
    for argument in (*arguments, *named.values()):
        if isinstance(argument, Mapping) or is_sequence(argument):
            # The same list may end up in every element, so it is paid for every time.
            frame.spend(len(found) * deep_cost_of(argument))
    results = (call(entry, frame, [element, *arguments], named) for element in found)
    return [None if result is MISSING else result for result in results]


def _choice(frame: Frame, look: Callable[[Any], Any], test: Any, arguments: tuple[Any, ...]) -> Callable[[Any], bool]:
    if test is None:
        return lambda element: bool(look(element))
    entry = _entry(TESTS, test)
    return lambda element: call(entry, frame, [look(element), *arguments], {}) is True


def select(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    chosen = _choice(frame, looked_up(None), test, arguments)
    return [element for element in elements(value) if chosen(element)]


def reject(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    chosen = _choice(frame, looked_up(None), test, arguments)
    return [element for element in elements(value) if not chosen(element)]


def selectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    chosen = _choice(frame, looked_up(attribute), test, arguments)
    return [element for element in elements(value) if chosen(element)]


def rejectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    chosen = _choice(frame, looked_up(attribute), test, arguments)
    return [element for element in elements(value) if not chosen(element)]
