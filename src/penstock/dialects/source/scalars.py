"""The YAML 1.2 core schema: which plain texts are not text.

`on`, `no`, `yes`, `2024-01-01` and `1:30` stay text; only null, true/false, integers and floats are anything else.
"""

from __future__ import annotations

import math
import re

from penstock.kernel.values import Json

CORE = "tag:yaml.org,2002:"

_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST = frozenset("+-.0123456789")
_INTEGER = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
# More digits than any number that means something; Python itself refuses to read integers of over 4,300.
_MOST_DIGITS = 400


class NotJson(ValueError):
    """A number that JSON cannot say."""


def resolve(text: str) -> Json:
    """The value of a plain scalar. Raises NotJson for infinities, `.nan`, and numbers of absurd size."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST:
        return text
    if _INTEGER.match(text):
        return _integer(text)
    if _FLOAT.match(text):
        number = float(text)
        if math.isinf(number):
            raise NotJson(text)
        return number
    if _NOT_FINITE.match(text):
        raise NotJson(text)
    return text


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise NotJson(text)
    if text.startswith("0x"):
        return int(text[2:], 16)
    if text.startswith("0o"):
        return int(text[2:], 8)
    return int(text)


SCALAR_TAGS = frozenset({"!", *(CORE + name for name in ("str", "null", "bool", "int", "float"))})


def tagged(tag: str, text: str) -> Json:
    """The value of a scalar with one of `SCALAR_TAGS`. Raises ValueError when the text does not fit the tag."""
    if tag in ("!", CORE + "str"):
        return text
    value = resolve(text)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        CORE + "null": value is None,
        CORE + "bool": isinstance(value, bool),
        CORE + "int": number and isinstance(value, int),
        CORE + "float": number,
    }[tag]
    if not fits:
        raise ValueError(text)
    # Read again as a fraction, which also finds an integer that no float can hold.
    return resolve(f"{value}.0") if tag == CORE + "float" and isinstance(value, int) else value


def names_something(text: str) -> bool:
    """Integers are names too (`404:`), and keep the spelling they have in the file. So is `null:`, a parameter of CSV files."""
    if text == "null":
        return True
    try:
        value = resolve(text)
    except NotJson:
        return False
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_text(text: str) -> bool:
    """Only the pure parser lets half a surrogate pair through."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def tag_text(tag: str | None) -> str:
    tag = tag or ""
    return "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
