"""Words that work on lists and mappings, and on JSON text. They look into elements by item access only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from penstock.expr.budget import (
    HEADER,
    MAX_NESTING,
    MAX_RANGE,
    MAX_TEXT,
    SLOT,
    SMALL_MAPPING,
    Frame,
    check_items,
    check_nesting,
    check_text,
    cost_of,
    search_cost,
)
from penstock.expr.errors import Misuse
from penstock.expr.values import MISSING, Unordered, before, elements, equal, is_sequence, item, kind, position, shown
from penstock.expr.words.scalars import sum_
from penstock.expr.words.text import text_of, whole_of


def default(value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    return default_value if value is MISSING or (boolean and not value) else value


def length(value: Any) -> int:
    if isinstance(value, (str, Mapping)) or is_sequence(value):
        return len(value)
    raise Misuse(f"{kind(value)} has no length")


def first(frame: Frame, value: Any) -> Any:
    if isinstance(value, Mapping):
        return next(iter(value), MISSING)
    found = value if isinstance(value, str) else elements(frame, value)
    return found[0] if found else MISSING


def last(frame: Frame, value: Any) -> Any:
    if isinstance(value, Mapping):
        raise Misuse("a mapping has no last element")
    found = value if isinstance(value, str) else elements(frame, value)
    return found[-1] if found else MISSING


def list_(frame: Frame, value: Any) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found), SLOT + HEADER if isinstance(value, range) else SLOT)
    return list(found)


def reverse(frame: Frame, value: Any) -> Any:
    if isinstance(value, str):
        frame.text(len(value), value)
        return value[::-1]
    found = elements(frame, value)
    frame.items(len(found))
    return list(reversed(found))


def chosen_part(frame: Frame, attribute: Any, count: int) -> Callable[[Any], Any]:
    """Follows a path such as `address.city` or `0` in so many elements; no attribute at all is the element itself."""
    if attribute is None:
        return lambda element: element
    keys = [attribute]
    if isinstance(attribute, str):
        frame.spend(attribute.count("."))
        keys = [
            int(part) if part.isascii() and part.isdecimal() and len(part) < 19 else part
            for part in attribute.split(".")
        ]
    frame.spend(len(keys) * count)

    def look(element: Any) -> Any:
        for key in keys:
            element = item(element, key)
        return element

    return look


def _keys(frame: Frame, found: Sequence[Any], attribute: Any, case_sensitive: Any) -> list[Any]:
    """What the elements are sorted and compared by."""
    look = chosen_part(frame, attribute, len(found))
    frame.items(len(found))
    keys = [look(element) for element in found]
    if case_sensitive:
        return keys
    for index, key in enumerate(keys):
        if isinstance(key, str):
            frame.spend(len(key) >> 4)
            frame.hold(HEADER + len(key) * (1 if key.isascii() else 12))
            keys[index] = key.lower()
    return keys


class _Ranked:
    """A list among values that are sorted; comparing two of them is paid for."""

    __slots__ = ("frame", "key")

    def __init__(self, frame: Frame, key: Any) -> None:
        self.frame = frame
        self.key = key

    def __lt__(self, other: _Ranked) -> bool:
        self.frame.spend(8)
        return before(self.frame, self.key, other.key)

    def __gt__(self, other: _Ranked) -> bool:
        return other < self


_SCALARS = frozenset({str, int, float, bool, type(None), type(MISSING)})


def _ranks(frame: Frame, keys: list[Any], comparisons: int) -> list[Any]:
    """Keys that can be compared so often; texts and numbers by Python itself, which costs the same however it goes."""
    if all(type(key) in _SCALARS for key in keys):
        frame.spend((comparisons >> 2) + comparisons * max(map(cost_of, keys), default=0))
        return keys
    frame.hold(HEADER * len(keys))
    return [_Ranked(frame, key) for key in keys]


def _in_order(frame: Frame, word: str, found: Sequence[Any], keys: list[Any], reverse: Any) -> list[Any]:
    ranks = _ranks(frame, keys, len(found) * len(found).bit_length())
    frame.items(len(found), 2 * SLOT)
    try:
        return [found[index] for index in sorted(range(len(found)), key=ranks.__getitem__, reverse=bool(reverse))]
    except (TypeError, Unordered):
        raise Misuse(
            f"`{word}` cannot bring these values in order: they are of different kinds, or null, or missing"
        ) from None


def sort(
    frame: Frame, value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None
) -> list[Any]:
    found = elements(frame, value)
    return _in_order(frame, "sort", found, _keys(frame, found, attribute, case_sensitive), reverse)


def dictsort(frame: Frame, value: Any, case_sensitive: Any = False, by: Any = "key", reverse: Any = False) -> list[Any]:
    if by not in ("key", "value"):
        raise Misuse("`dictsort` sorts by `key` or by `value`")
    found = items(frame, value)
    keys = _keys(frame, found, 0 if by == "key" else 1, case_sensitive)
    return _in_order(frame, "dictsort", found, keys, reverse)


def _extreme(frame: Frame, word: str, choose: Callable[..., Any], found: Sequence[Any], keys: list[Any]) -> Any:
    ranks = _ranks(frame, keys, len(found))
    try:
        index = choose(range(len(found)), key=ranks.__getitem__, default=None)
    except (TypeError, Unordered):
        raise Misuse(
            f"`{word}` cannot compare these values: they are of different kinds, or null, or missing"
        ) from None
    return MISSING if index is None else found[index]


def min_(frame: Frame, value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
    found = elements(frame, value)
    return _extreme(frame, "min", min, found, _keys(frame, found, attribute, case_sensitive))


def max_(frame: Frame, value: Any, case_sensitive: Any = False, attribute: Any = None) -> Any:
    found = elements(frame, value)
    return _extreme(frame, "max", max, found, _keys(frame, found, attribute, case_sensitive))


def min_function(frame: Frame, *values: Any) -> Any:
    return min_(frame, values[0] if len(values) == 1 else values, True)


def max_function(frame: Frame, *values: Any) -> Any:
    return max_(frame, values[0] if len(values) == 1 else values, True)


def sum_filter(frame: Frame, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    found = elements(frame, value)
    if attribute is not None:
        look = chosen_part(frame, attribute, len(found))
        frame.items(len(found))
        found = [look(element) for element in found]
    return sum_(frame, found, start)


def _identity(frame: Frame, value: Any, depth: int = 0) -> Any:
    """A hashable key that is equal for equal values, and whose hash cannot be made to collide."""
    check_nesting(depth)
    if isinstance(value, Mapping):
        frame.spend(8 + 8 * len(value))
        frame.hold(4 * HEADER + 4 * HEADER * len(value))
        return (
            "mapping",
            frozenset(
                [(_identity(frame, key, depth + 1), _identity(frame, inner, depth + 1)) for key, inner in value.items()]
            ),
        )
    if is_sequence(value):
        frame.spend(6 + 4 * len(value))
        frame.hold(2 * HEADER + SLOT * len(value))
        return ("list", tuple([_identity(frame, inner, depth + 1) for inner in value]))
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and value.bit_length() > 60:
        # The hash of a large number is its remainder, which many numbers have in common.
        frame.numbers(value)
        return ("number", hex(value))
    if type(value) is str:
        frame.spend(len(value) >> 7)
    try:
        hash(value)
    except TypeError:
        raise Misuse(f"{kind(value)} cannot be compared with others") from None
    return value


def unique(frame: Frame, value: Any, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found), 3 * HEADER)
    seen: dict[Any, Any] = {}
    for element, key in zip(found, _keys(frame, found, attribute, case_sensitive), strict=True):
        seen.setdefault(_identity(frame, key), element)
    return list(seen.values())


def groupby(frame: Frame, value: Any, attribute: Any, default: Any = None) -> list[Any]:
    """Pairs of what the group has in common and the list of its elements."""
    found = elements(frame, value)
    frame.items(len(found), 6 * HEADER)
    groups: dict[Any, list[Any]] = {}
    for element, head in zip(found, _keys(frame, found, attribute, True), strict=True):
        common = default if head is MISSING else head
        groups.setdefault(_identity(frame, common), [common, []])[1].append(element)
    pairs = list(groups.values())
    return _in_order(frame, "groupby", pairs, _keys(frame, pairs, 0, False), False)


def pluck(frame: Frame, value: Any, attribute: Any, default: Any = None) -> list[Any]:
    found = elements(frame, value)
    look = chosen_part(frame, attribute, len(found))
    frame.items(len(found))
    frame.copies(default, len(found))
    return [default if (part := look(element)) is MISSING else part for element in found]


def flatten(frame: Frame, value: Any, levels: Any = None) -> list[Any]:
    most = 100 if levels is None else whole_of("flatten", levels)
    found = list_(frame, value)
    for _ in range(max(0, min(most, 100))):
        if not any(is_sequence(element) for element in found):
            break
        frame.items(len(found) + sum(len(element) if is_sequence(element) else 1 for element in found))
        found = [inner for element in found for inner in (element if is_sequence(element) else (element,))]
    return found


def batch(frame: Frame, value: Any, linecount: Any, fill_with: Any = None) -> list[list[Any]]:
    size = whole_of("batch", linecount)
    if size < 1:
        raise Misuse("`batch` needs a size of at least 1")
    found = elements(frame, value)
    frame.items(len(found), SLOT + HEADER)
    size = min(size, len(found)) if fill_with is None else size
    rows = [list(found[start : start + size]) for start in range(0, len(found), size)] if found else []
    if rows and fill_with is not None:
        missing = size - len(rows[-1])
        frame.items(missing)
        frame.copies(fill_with, missing)
        rows[-1].extend([fill_with] * missing)
    return rows


def _mapping(word: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise Misuse(f"`{word}` takes a mapping, not {kind(value)}")
    return value


def items(frame: Frame, value: Any) -> list[Any]:
    pairs = _mapping("items", value)
    frame.items(len(pairs), SLOT + HEADER + 2 * SLOT)
    return [[key, inner] for key, inner in pairs.items()]


def keys(value: Any) -> list[Any]:
    return list(_mapping("keys", value))


def values(value: Any) -> list[Any]:
    return list(_mapping("values", value).values())


def get(value: Any, key: Any, default: Any = None) -> Any:
    found = item(_mapping("get", value), key)
    return default if found is MISSING else found


def count(frame: Frame, value: Any, element: Any) -> int:
    if isinstance(value, str):
        wanted = text_of("count", element)
        frame.spend(search_cost(value, wanted))
        return value.count(wanted)
    found = elements(frame, value)
    frame.spend(len(found))
    return sum(1 for other in found if equal(frame, other, element))


def index(frame: Frame, value: Any, element: Any) -> int:
    if isinstance(value, str):
        wanted = text_of("index", element)
        frame.spend(search_cost(value, wanted))
        index = value.find(wanted)
        found = index if index >= 0 else None
    else:
        found = position(frame, element, elements(frame, value))
    if found is None:
        raise Misuse(f"{shown(element)} is not in it")
    return found


def combine(frame: Frame, value: Any, *others: Any) -> dict[Any, Any]:
    """One mapping of several; later ones win."""
    merged: dict[Any, Any] = {}
    for other in (value, *others):
        part = _mapping("combine", other)
        frame.hold(SMALL_MAPPING + 3 * HEADER * len(part))
        merged.update(part)
    return merged


def dict_(frame: Frame, value: Any = None, **named: Any) -> dict[Any, Any]:
    """A mapping of a mapping or of pairs, with more keys by name."""
    if value is None or isinstance(value, Mapping):
        frame.hold(SMALL_MAPPING + 3 * HEADER * len(value or ()))
        return {**(value or {}), **named}
    found = elements(frame, value)
    frame.items(len(found), 4 * HEADER)
    pairs = [elements(frame, pair) for pair in found]
    if any(len(pair) != 2 or not _can_be_key(pair[0]) for pair in pairs):
        raise Misuse("`dict` takes a mapping, or pairs of a key and a value; a key is a text or a number")
    return {**{pair[0]: pair[1] for pair in pairs}, **named}


def _can_be_key(value: Any) -> bool:
    """Larger numbers could be chosen so that their hashes collide, which makes a mapping slow."""
    return isinstance(value, (str, float)) or (isinstance(value, int) and value.bit_length() <= 60)


def zip_(frame: Frame, *lists: Any) -> list[list[Any]]:
    columns = [elements(frame, value) for value in lists]
    count = min(map(len, columns), default=0)
    frame.items(count, SLOT + HEADER + SLOT * len(columns))
    frame.spend(count * len(columns))
    return [list(row) for row in zip(*columns, strict=False)]


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


def any_(frame: Frame, value: Any) -> bool:
    return any(elements(frame, value))


def all_(frame: Frame, value: Any) -> bool:
    return all(elements(frame, value))


class _Json:
    """How long the JSON text of a value can become, at most; every value is paid for once it is met."""

    def __init__(self, frame: Frame, indent: int) -> None:
        self.frame = frame
        self.indent = indent
        self.characters = 0
        self.ascii = True

    def measure(self, value: Any) -> int:
        stack: list[tuple[Any, int]] = [(value, 1)]
        while stack:
            current, depth = stack.pop()
            check_nesting(depth)
            inside: list[Any]
            if isinstance(current, str):
                self._text(current)
                continue
            if isinstance(current, Mapping):
                inside = list(current.values())
                for key in current:
                    self._text(key if isinstance(key, str) else "")
            elif is_sequence(current):
                check_items(len(current))
                inside = list(current)
            else:
                # A number of Python has no more digits than this; what is opaque writes its text, which is short.
                self.characters += 40 if type(current) is not int else 8 + current.bit_length() // 3
                self.frame.numbers(current)
                continue
            self.frame.spend(2 + (4 if self.indent else 3) * len(inside))
            self.characters += 2 + (len(inside) + 1) * (2 + self.indent * depth)
            stack += [(part, depth + 1) for part in inside]
        return self.characters

    def _text(self, text: str) -> None:
        self.frame.spend(len(text) >> 4)
        self.characters += 4 + len(text)
        self.ascii = self.ascii and text.isascii()
        if not text.isprintable():
            self.characters += 5 * len(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if is_sequence(value):
        return list(value)
    return str(value)


def tojson(frame: Frame, value: Any, indent: Any = None) -> str:
    """JSON text; opaque objects write themselves as text."""
    if indent is not None and not (type(indent) is int and 0 <= indent <= 16):
        raise Misuse("`tojson` takes an indent from 0 to 16")
    measured = _Json(frame, indent or 0)
    longest = measured.measure(value)
    encoder = json.JSONEncoder(indent=indent, ensure_ascii=False, default=_plain, allow_nan=False)
    try:
        if longest <= MAX_TEXT:
            frame.text(longest, "" if measured.ascii else "\u2028")
            return encoder.encode(value)
        return _in_pieces(frame, encoder, value)
    except (ValueError, TypeError) as error:
        raise Misuse(f"the value cannot be written as JSON: {error}") from None


def _in_pieces(frame: Frame, encoder: json.JSONEncoder, value: Any) -> str:
    """Written piece by piece, because all of it may become too long: a text of control codes grows sixfold."""
    pieces: list[str] = []
    length = 0
    for piece in encoder.iterencode(value):
        length += len(piece)
        check_text(length)
        frame.spend(5 + (len(piece) >> 7))
        frame.hold(HEADER + len(piece) * (1 if piece.isascii() else 4))
        pieces.append(piece)
    return "".join(pieces)


def fromjson(frame: Frame, value: Any) -> Any:
    text = text_of("fromjson", value)
    frame.spend(len(text) >> 2)
    parts = text.count(",") + text.count("[") + 4 * text.count("{") + text.count(":")
    frame.hold(len(text) * (1 if text.isascii() else 4) + parts * (SLOT + HEADER))
    reads: dict[str, Any] = {"parse_float": _finite} if _MAY_BE_ENDLESS.search(text) else {}
    try:
        value = json.loads(text, parse_constant=_no_constant, **reads)
        if _MAY_BE_HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise Misuse(f"this is not JSON: {_where(text, error)}") from None
    except UnicodeEncodeError:
        raise Misuse("this is not JSON: a text in it has half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise Misuse(f"this is not JSON: it is nested more than {MAX_NESTING} levels deep") from None
    except ValueError as error:
        raise Misuse(f"this is not JSON: {error}") from None
    return value


# `1e999` would become infinite, and so would a number of very many digits before its point.
_MAY_BE_ENDLESS = re.compile(r"[0-9.][eE]|[0-9]{300}")
_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _where(text: str, error: json.JSONDecodeError) -> str:
    line = text[max(0, error.pos - 30) : error.pos + 30].replace("\n", " ").strip()
    reason = error.msg[:1].lower() + error.msg[1:]
    return f"line {error.lineno}, column {error.colno}: {reason}" + (f": `{line}`" if line else "")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"the number `{digits[:40]}` is too large")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not a value of JSON")
