"""Words that work on text. Each is pure, bounded in what it makes, and refuses values that are not text or numbers."""

from __future__ import annotations

import re
from typing import Any

from penstock.expr.budget import MAX_WIDTH, check_text, check_width
from penstock.expr.errors import Misuse
from penstock.expr.values import elements, item, kind, shown, to_text


def text_of(word: str, value: Any) -> str:
    """Text, or a number written as text. Opaque objects are refused: their text only stands for something else."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return to_text(value)
    raise Misuse(f"`{word}` takes text, not {kind(value)}")


def whole_of(word: str, value: Any) -> int:
    if type(value) is not int:
        raise Misuse(f"`{word}` takes a whole number here, not {kind(value)}")
    return value


def upper(value: Any) -> str:
    return text_of("upper", value).upper()


def lower(value: Any) -> str:
    return text_of("lower", value).lower()


def title(value: Any) -> str:
    return text_of("title", value).title()


def capitalize(value: Any) -> str:
    return text_of("capitalize", value).capitalize()


def trim(value: Any, chars: Any = None) -> str:
    return text_of("trim", value).strip(None if chars is None else text_of("trim", chars))


def replace(value: Any, old: Any, new: Any, count: Any = None) -> str:
    text, gone, come = (text_of("replace", part) for part in (value, old, new))
    most = -1 if count is None else whole_of("replace", count)
    hits = text.count(gone) if most < 0 else min(most, text.count(gone))
    check_text(len(text) + hits * max(0, len(come) - len(gone)))
    return text.replace(gone, come, most)


def split(value: Any, sep: Any = None, maxsplit: Any = -1) -> list[str]:
    if sep == "":
        raise Misuse("`split` needs a separator that is not empty")
    return text_of("split", value).split(None if sep is None else text_of("split", sep), whole_of("split", maxsplit))


def lines(value: Any) -> list[str]:
    return text_of("lines", value).splitlines()


def join(value: Any, d: Any = "", attribute: Any = None) -> str:
    separator = text_of("join", d)
    chosen = elements(value) if attribute is None else [item(element, attribute) for element in elements(value)]
    parts = [to_text(part) for part in chosen]
    check_text(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1))
    return separator.join(parts)


def truncate(value: Any, length: Any = 255, killwords: Any = False, end: Any = "...") -> str:
    text, tail, most = text_of("truncate", value), text_of("truncate", end), whole_of("truncate", length)
    if most < len(tail):
        raise Misuse(f"`truncate` needs a length of at least {len(tail)}, that of its ending")
    if len(text) <= most:
        return text
    cut = text[: most - len(tail)]
    return (cut if killwords or " " not in cut else cut.rsplit(" ", 1)[0]) + tail


def indent(value: Any, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    text = text_of("indent", value)
    if isinstance(width, str):
        margin = width
    else:
        check_width(whole_of("indent", width))
        margin = " " * width
    check_text(len(text) + (text.count("\n") + 1) * len(margin))
    rows = text.split("\n")
    kept = [row if (index == 0 and not first) or not (row or blank) else margin + row for index, row in enumerate(rows)]
    return "\n".join(kept)


def center(value: Any, width: Any = 80) -> str:
    check_width(whole_of("center", width))
    return text_of("center", value).center(width)


def ljust(value: Any, width: Any, fill: Any = " ") -> str:
    check_width(whole_of("ljust", width))
    return text_of("ljust", value).ljust(width, _one_character("ljust", fill))


def rjust(value: Any, width: Any, fill: Any = " ") -> str:
    check_width(whole_of("rjust", width))
    return text_of("rjust", value).rjust(width, _one_character("rjust", fill))


def _one_character(word: str, fill: Any) -> str:
    if not (isinstance(fill, str) and len(fill) == 1):
        raise Misuse(f"`{word}` fills with one character, not {shown(fill)}")
    return fill


_SPEC = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<type>.?)", re.DOTALL
)


def format_(value: Any, *arguments: Any, **named: Any) -> str:
    """The printf way: `%s`, `%d`, `%05.2f`, `%(name)s`."""
    template = text_of("format", value)
    length = len(template)
    for spec in _SPEC.finditer(template):
        if spec["type"] not in tuple("sdifeEgGxXo%"):
            raise Misuse(f"`{spec.group()}` is not a format this language knows; use `%s`, `%d`, `%.2f` …")
        for width in (spec["width"], spec["precision"]):
            check_width(int(width) if width and len(width) < 9 else MAX_WIDTH + 1 if width else 0)
            length += int(width or 0)
    written = [argument if isinstance(argument, (int, float)) else to_text(argument) for argument in arguments]
    pairs = {key: inner if isinstance(inner, (int, float)) else to_text(inner) for key, inner in named.items()}
    check_text(length + sum(len(part) for part in (*written, *pairs.values()) if isinstance(part, str)))
    try:
        return template % (pairs or tuple(written))
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise Misuse(f"the values do not fit the format {shown(template)}: {error}") from None


def quote(value: Any) -> str:
    """One word of a shell command, whatever is in it; of a list one word for each element."""
    from shlex import quote as quoted

    if isinstance(value, (str, bool, int, float)):
        text = text_of("quote", value)
        check_text(len(text) * 5 + 2)  # A single quote becomes five characters.
        return quoted(text)
    parts = [text_of("quote", part) for part in elements(value)]
    check_text(sum(len(part) * 5 + 3 for part in parts))
    return " ".join(map(quoted, parts))


def urlencode(value: Any) -> str:
    """A text is quoted; a mapping or a list of pairs becomes a query string."""
    from collections.abc import Mapping
    from urllib.parse import quote

    if isinstance(value, Mapping):
        pairs = [(key, inner) for key, inner in value.items() if inner is not None]
    elif isinstance(value, (str, int, float)):
        text = text_of("urlencode", value)
        check_text(len(text) * 3)
        return quote(text, safe="/")
    else:
        pairs = [_pair(element) for element in elements(value)]
    parts = [f"{quote(to_text(key), safe='')}={quote(to_text(inner), safe='')}" for key, inner in pairs]
    check_text(sum(map(len, parts)))
    return "&".join(parts)


def _pair(element: Any) -> tuple[Any, Any]:
    if isinstance(element, str) or len(elements(element)) != 2:
        raise Misuse("`urlencode` takes text, a mapping or a list of pairs")
    first, second = element
    return first, second


def b64encode(value: Any) -> str:
    from binascii import b2a_base64

    data = value if isinstance(value, bytes) else text_of("b64encode", value).encode("utf-8", "surrogatepass")
    check_text(len(data) * 2)
    return b2a_base64(data, newline=False).decode("ascii")


def b64decode(value: Any) -> str:
    from binascii import Error, a2b_base64

    text = text_of("b64decode", value).strip()
    try:
        # Both alphabets are read, and padding may be left out, as web tokens do.
        padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
        return a2b_base64(padded, strict_mode=True).decode("utf-8")
    except (Error, ValueError):
        raise Misuse("`b64decode` was given something that is not base64 of UTF-8 text") from None


def sha256(value: Any) -> str:
    from hashlib import sha256 as digest

    data = value if isinstance(value, bytes) else text_of("sha256", value).encode("utf-8", "surrogatepass")
    return digest(data, usedforsecurity=False).hexdigest()


def startswith(value: Any, prefix: Any) -> bool:
    return text_of("startswith", value).startswith(text_of("startswith", prefix))


def endswith(value: Any, suffix: Any) -> bool:
    return text_of("endswith", value).endswith(text_of("endswith", suffix))


def lstrip(value: Any, chars: Any = None) -> str:
    return text_of("lstrip", value).lstrip(None if chars is None else text_of("lstrip", chars))


def rstrip(value: Any, chars: Any = None) -> str:
    return text_of("rstrip", value).rstrip(None if chars is None else text_of("rstrip", chars))
