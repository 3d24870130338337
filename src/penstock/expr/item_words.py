"""Words that work on lists and mappings, and on JSON text. They look into elements by item access only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.expr.budget import MAX_RANGE, check_items, check_text
from penstock.expr.errors import Misuse
from penstock.expr.number_words import sum_
from penstock.expr.scope import MISSING
from penstock.expr.text_words import text_of, whole_of
from penstock.expr.values import elements, is_sequence, item, kind, shown


def default(value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    return default_value if value is MISSING or (boolean and not value) else value


def length(value: Any) -> int:
    if isinstance(value, (str, Mapping)) or is_sequence(value):
        return len(value)
    raise Misuse(f"{kind(value)} has no length")


def first(value: Any) -> Any:
    if isinstance(value, Mapping):
        return next(iter(value), MISSING)
    found = value if isinstance(value, str) else elements(value)
    return found[0] if found else MISSING


def last(value: Any) -> Any:
    if isinstance(value, Mapping):
        raise Misuse("a mapping has no last element")
    found = value if isinstance(value, str) else elements(value)
    return found[-1] if found else MISSING


def list_(value: Any) -> list[Any]:
    return list(elements(value))


def reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else list(reversed(elements(value)))


def looked_up(attribute: Any) -> Callable[[Any], Any]:
    """A function that follows a path such as `address.city` or `0`; none at all gives the element itself."""
    if attribute is None:
        return lambda element: element
    keys = [attribute]
    if isinstance(attribute, str):
        keys = [int(part) if part.isdecimal() else part for part in attribute.split(".")]

    def look(element: Any) -> Any:
        for key in keys:
            element = item(element, key)
        return element

    return look


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _sort_key(attribute: Any, case_sensitive: Any) -> Callable[[Any], Any]:
    look = looked_up(attribute)
    return look if case_sensitive else lambda element: _folded(look(element))


def _in_order(word: str, value: Iterable[Any], key: Callable[[Any], Any], reverse: Any) -> list[Any]:
    try:
        return sorted(value, key=key, reverse=bool(reverse))
    except TypeError:
        raise Misuse(
            f"`{word}` cannot bring these values in order: they are of different kinds, or null, or missing"
        ) from None


def sort(value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    return _in_order("sort", elements(value), _sort_key(attribute, case_sensitive), reverse)


def dictsort(value: Any, case_sensitive: Any = False, by: Any = "key", reverse: Any = False) -> list[Any]:
    if by not in ("key", "value"):
        raise Misuse("`dictsort` sorts by `key` or by `value`")
    return _in_order("dictsort", items(value), _sort_key(0 if by == "key" else 1, case_sensitive), reverse)


def _extreme(word: str, choose: Callable[..., Any], value: Any, key: Callable[[Any], Any]) -> Any:
    try:
        return choose(elements(value), key=key, default=MISSING)
    except TypeError:
        raise Misuse(
            f"`{word}` cannot compare these values: they are of different kinds, or null, or missing"
        ) from None


def min_(value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
    return _extreme("min", min, value, _sort_key(attribute, case_sensitive))


def max_(value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
    return _extreme("max", max, value, _sort_key(attribute, case_sensitive))


def min_function(*values: Any) -> Any:
    return _extreme("min", min, values[0] if len(values) == 1 else values, looked_up(None))


def max_function(*values: Any) -> Any:
    return _extreme("max", max, values[0] if len(values) == 1 else values, looked_up(None))


def sum_filter(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    return sum_([looked_up(attribute)(element) for element in elements(value)], start)


def _identity(value: Any) -> Any:
    """Something hashable that is equal for equal values."""
    if isinstance(value, Mapping):
        return ("mapping", frozenset((key, _identity(inner)) for key, inner in value.items()))
    if is_sequence(value):
        return ("list", tuple(_identity(inner) for inner in value))
    return value


def unique(value: Any, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    key = _sort_key(attribute, case_sensitive)
    seen: dict[Any, Any] = {}
    for element in elements(value):
        seen.setdefault(_identity(key(element)), element)
    return list(seen.values())


def groupby(value: Any, attribute: Any, default: Any = None) -> list[Any]:
    """Pairs of what the group has in common and the list of its elements."""
    look = looked_up(attribute)
    groups: dict[Any, list[Any]] = {}
    heads: dict[Any, Any] = {}
    for element in elements(value):
        head = look(element)
        head = default if head is MISSING else head
        groups.setdefault(_identity(head), []).append(element)
        heads.setdefault(_identity(head), head)
    return _in_order(
        "groupby", [[heads[key], found] for key, found in groups.items()], lambda pair: _folded(pair[0]), False
    )


def pluck(value: Any, attribute: Any, default: Any = None) -> list[Any]:
    look = looked_up(attribute)
    return [default if (found := look(element)) is MISSING else found for element in elements(value)]


def flatten(value: Any, levels: Any = None) -> list[Any]:
    most = 100 if levels is None else whole_of("flatten", levels)
    found = list(elements(value))
    for _ in range(max(0, min(most, 100))):
        if not any(is_sequence(element) for element in found):
            break
        check_items(sum(len(element) if is_sequence(element) else 1 for element in found))
        found = [inner for element in found for inner in (element if is_sequence(element) else (element,))]
    return found


def batch(value: Any, linecount: Any, fill_with: Any = None) -> list[list[Any]]:
    size = whole_of("batch", linecount)
    if size < 1:
        raise Misuse("`batch` needs a size of at least 1")
    found = elements(value)
    rows = [list(found[start : start + size]) for start in range(0, len(found), size)]
    if rows and fill_with is not None:
        check_items(size)
        rows[-1].extend([fill_with] * (size - len(rows[-1])))
    return rows


def _mapping(word: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise Misuse(f"`{word}` takes a mapping, not {kind(value)}")
    return value


def items(value: Any) -> list[Any]:
    return [[key, inner] for key, inner in _mapping("items", value).items()]


def keys(value: Any) -> list[Any]:
    return list(_mapping("keys", value))


def values(value: Any) -> list[Any]:
    return list(_mapping("values", value).values())


def get(value: Any, key: Any, default: Any = None) -> Any:
    found = item(_mapping("get", value), key)
    return default if found is MISSING else found


def count(value: Any, element: Any) -> int:
    return (
        text_of("count", value).count(text_of("count", element))
        if isinstance(value, str)
        else elements(value).count(element)
    )


def index(value: Any, element: Any) -> int:
    try:
        if isinstance(value, str):
            return value.index(text_of("index", element))
        return elements(value).index(element)
    except ValueError:
        raise Misuse(f"{shown(element)} is not in it") from None


def combine(value: Any, *others: Any) -> dict[Any, Any]:
    """One mapping of several; later ones win."""
    merged = dict(_mapping("combine", value))
    for other in others:
        merged.update(_mapping("combine", other))
    return merged


def dict_(value: Any = None, **named: Any) -> dict[Any, Any]:
    """A mapping of a mapping or of pairs, with more keys by name."""
    if value is None or isinstance(value, Mapping):
        return {**(value or {}), **named}
    pairs = [elements(pair) for pair in elements(value)]
    if any(len(pair) != 2 or not isinstance(pair[0], (str, int, float)) for pair in pairs):
        raise Misuse("`dict` takes a mapping, or pairs of a key and a value")
    return {**{pair[0]: pair[1] for pair in pairs}, **named}


def zip_(*lists: Any) -> list[list[Any]]:
    return [list(row) for row in zip(*(elements(value) for value in lists), strict=False)]


def range_(*bounds: Any) -> range:
    """Lazy, so that a loop over a billion numbers costs nothing to describe."""
    if not 1 <= len(bounds) <= 3:
        raise Misuse("`range` takes a stop, or start and stop, or start, stop and step")
    numbers = [whole_of("range", bound) for bound in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        raise Misuse("the step of `range` cannot be 0")
    if any(abs(number) > MAX_RANGE for number in numbers):
        raise Misuse(f"`range` takes numbers up to {MAX_RANGE:,}")
    return range(*numbers)


def any_(value: Any) -> bool:
    return any(elements(value))


def all_(value: Any) -> bool:
    return all(elements(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if is_sequence(value):
        return list(value)
    return str(value)


def tojson(value: Any, indent: Any = None) -> str:
    """JSON text; opaque objects write themselves as text."""
    if indent is not None and not (type(indent) is int and 0 <= indent <= 16):
        raise Misuse("`tojson` takes an indent from 0 to 16")
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise Misuse(f"the value cannot be written as JSON: {error}") from None
    check_text(len(text))
    return text


def fromjson(value: Any) -> Any:
    text = text_of("fromjson", value)
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"this is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
