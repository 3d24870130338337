"""Words that work on text. Each is pure, bounded in what it makes, and refuses values that are not text or numbers."""

from __future__ import annotations

import hashlib
import re
import shlex
import urllib.parse
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any

from penstock.expr.budget import HEADER, MAX_TEXT, MAX_WIDTH, SLOT, Frame, check_width, cost_of, search_cost
from penstock.expr.errors import Misuse
from penstock.expr.values import Missing, elements, is_sequence, item, kind, scalar_text, shown, to_text


def text_of(word: str, value: Any) -> str:
    """Text, or a number written as text. Opaque objects are refused: their text is not their value."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return scalar_text(value)
    raise Misuse(f"`{word}` takes text, not {kind(value)}")


def _inserted(frame: Frame, value: Any) -> Any:
    """An opaque object as the text that it writes for itself, for a word that encodes text and changes nothing of it; any other
    value as it is."""
    known = (str, bool, int, float, bytes, Missing, Mapping)
    return value if value is None or isinstance(value, known) or is_sequence(value) else to_text(frame, value)


def _paid_text(frame: Frame, word: str, value: Any) -> str:
    """The same of a value that stands inside an argument, where the call has not paid for it yet."""
    frame.numbers(value)
    text = text_of(word, value)
    if text is not value:
        frame.hold(HEADER + len(text))
    return text


def whole_of(word: str, value: Any) -> int:
    if type(value) is not int:
        raise Misuse(f"`{word}` takes a whole number here, not {kind(value)}")
    return value


def _converted(frame: Frame, word: str, value: Any) -> str:
    """The text, paid for by the character, of which up to three may come."""
    text = text_of(word, value)
    frame.spend(len(text) >> 4)
    frame.hold(HEADER + len(text) * (1 if text.isascii() else 12))
    return text


def upper(frame: Frame, value: Any) -> str:
    return _converted(frame, "upper", value).upper()


def lower(frame: Frame, value: Any) -> str:
    return _converted(frame, "lower", value).lower()


def title(frame: Frame, value: Any) -> str:
    return _converted(frame, "title", value).title()


def capitalize(frame: Frame, value: Any) -> str:
    return _converted(frame, "capitalize", value).capitalize()


def _stripped(frame: Frame, word: str, value: Any, chars: Any) -> tuple[str, str | None]:
    text = text_of(word, value)
    if chars is None:
        return text, None
    gone = text_of(word, chars)
    frame.spend(len(text) * len(gone) >> 7)
    return text, gone


def trim(frame: Frame, value: Any, chars: Any = None) -> str:
    text, gone = _stripped(frame, "trim", value, chars)
    return text.strip(gone)


def lstrip(frame: Frame, value: Any, chars: Any = None) -> str:
    text, gone = _stripped(frame, "lstrip", value, chars)
    return text.lstrip(gone)


def rstrip(frame: Frame, value: Any, chars: Any = None) -> str:
    text, gone = _stripped(frame, "rstrip", value, chars)
    return text.rstrip(gone)


def replace(frame: Frame, value: Any, old: Any, new: Any, count: Any = None) -> str:
    text, gone, come = (text_of("replace", part) for part in (value, old, new))
    most = MAX_TEXT if count is None or whole_of("replace", count) < 0 else min(count, MAX_TEXT)
    frame.spend(search_cost(text, gone) * 2)
    hits = min(most, text.count(gone))
    frame.spend(hits >> 2)
    frame.text(len(text) + hits * max(0, len(come) - len(gone)), text, come)
    return text.replace(gone, come, most)


def split(frame: Frame, value: Any, sep: Any = None, maxsplit: Any = -1) -> list[str]:
    if sep == "":
        raise Misuse("`split` needs a separator that is not empty")
    text, most = text_of("split", value), whole_of("split", maxsplit)
    if most < 0 or most > len(text):
        most = len(text)
    if sep is None:
        # How many words there are is known only behind them; so many at most can be paid for.
        most = min(most, frame.steps)
        parts = text.split(None, most)
        _pay_parts(frame, text, len(parts))
        return parts
    separator = text_of("split", sep)
    frame.spend(search_cost(text, separator) * 2)
    _pay_parts(frame, text, min(most, text.count(separator)) + 1)
    return text.split(separator, most)


def _pay_parts(frame: Frame, text: str, count: int) -> None:
    frame.items(count, SLOT + HEADER)
    frame.hold(len(text) * (1 if text.isascii() else 4))


_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def lines(frame: Frame, value: Any) -> list[str]:
    text = text_of("lines", value)
    frame.spend(len(text) >> 4)
    _pay_parts(frame, text, 1 + sum(map(text.count, _BREAKS)))
    return text.splitlines()


def join(frame: Frame, value: Any, d: Any = "", attribute: Any = None) -> str:
    separator = text_of("join", d)
    chosen = elements(frame, value)
    # Numbers become texts, which are held all at once.
    frame.items(len(chosen), SLOT + HEADER)
    if attribute is not None:
        chosen = [item(element, attribute) for element in chosen]
    parts = [to_text(frame, part) for part in chosen]
    frame.text(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1), separator, *parts)
    return separator.join(parts)


def join_method(frame: Frame, value: Any, parts: Any) -> str:
    return join(frame, parts, value)


def truncate(value: Any, length: Any = 255, killwords: Any = False, end: Any = "...") -> str:
    text, tail, most = text_of("truncate", value), text_of("truncate", end), whole_of("truncate", length)
    if most < len(tail):
        raise Misuse(f"`truncate` needs a length of at least {len(tail)}, that of its ending")
    if len(text) <= most:
        return text
    cut = text[: most - len(tail)]
    return (cut if killwords or " " not in cut else cut.rsplit(" ", 1)[0]) + tail


def indent(frame: Frame, value: Any, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    text = text_of("indent", value)
    if isinstance(width, str):
        margin = width
    else:
        check_width(whole_of("indent", width))
        margin = " " * width
    count = text.count("\n") + 1
    frame.items(count, SLOT + HEADER)
    frame.text(len(text) + count * len(margin), text, margin)
    rows = text.split("\n")
    kept = [row if (index == 0 and not first) or not (row or blank) else margin + row for index, row in enumerate(rows)]
    return "\n".join(kept)


def _padded(frame: Frame, word: str, value: Any, width: Any, fill: str = " ") -> str:
    check_width(whole_of(word, width))
    text = text_of(word, value)
    frame.text(max(width, len(text)), text, fill)
    return text


def center(frame: Frame, value: Any, width: Any = 80) -> str:
    return _padded(frame, "center", value, width).center(max(width, 0))


def ljust(frame: Frame, value: Any, width: Any, fill: Any = " ") -> str:
    with_ = _one_character("ljust", fill)
    return _padded(frame, "ljust", value, width, with_).ljust(max(width, 0), with_)


def rjust(frame: Frame, value: Any, width: Any, fill: Any = " ") -> str:
    with_ = _one_character("rjust", fill)
    return _padded(frame, "rjust", value, width, with_).rjust(max(width, 0), with_)


def _one_character(word: str, fill: Any) -> str:
    if not (isinstance(fill, str) and len(fill) == 1):
        raise Misuse(f"`{word}` fills with one character, not {shown(fill)}")
    return fill


# A whole number has at most as many digits as Python writes.
_LONGEST_NUMBER = 4300
_SPEC = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<type>.?)", re.DOTALL
)


def format_(frame: Frame, value: Any, *arguments: Any, **named: Any) -> str:
    """The printf way: `%s`, `%d`, `%05.2f`, `%(name)s`."""
    template = text_of("format", value)
    length = len(template)
    # Each `%` may take a value of its own, or the same one by name.
    count = template.count("%")
    frame.spend(count * 8 + len(template) // 16)
    for spec in _SPEC.finditer(template):
        if spec["type"] not in tuple("sdifeEgGxXo%"):
            raise Misuse(f"`{spec.group()}` is not a format this language knows; use `%s`, `%d`, `%.2f` …")
        for width in (spec["width"], spec["precision"]):
            check_width(int(width) if width and len(width) < 9 else MAX_WIDTH + 1 if width else 0)
            length += int(width or 0)
    written = [argument if isinstance(argument, (int, float)) else to_text(frame, argument) for argument in arguments]
    pairs = {key: inner if isinstance(inner, (int, float)) else to_text(frame, inner) for key, inner in named.items()}
    texts = [part for part in (*written, *pairs.values()) if isinstance(part, str)]
    numbers = count if pairs else len(written) - len(texts)
    frame.spend(sum(map(cost_of, pairs.values())) * count)
    length += sum(map(len, texts)) * (count if pairs else 1) + _LONGEST_NUMBER * numbers
    frame.text(length, template, *texts)
    try:
        return template % (pairs or tuple(written))
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise Misuse(f"the values do not fit the format {shown(template)}: {error}") from None


def quote(frame: Frame, value: Any) -> str:
    """One word of a shell command, whatever is in it; of a list one word for each element."""
    parts = elements(frame, value) if isinstance(value, Mapping) or is_sequence(value) else [value]
    texts = [_paid_text(frame, "quote", _inserted(frame, part)) for part in parts]
    frame.text(sum(len(text) * 5 + 3 for text in texts), *texts)  # A single quote becomes five characters.
    return " ".join(map(shlex.quote, texts))


def urlencode(frame: Frame, value: Any) -> str:
    """A text is quoted; a mapping or a list of pairs becomes a query string."""
    value = _inserted(frame, value)
    if isinstance(value, Mapping):
        pairs = [(key, inner) for key, inner in value.items() if inner is not None]
    elif isinstance(value, (str, int, float)):
        return _quoted(frame, text_of("urlencode", value), "/")
    else:
        pairs = [_pair(frame, element) for element in elements(frame, value)]
    parts = [f"{_quoted(frame, to_text(frame, key))}={_quoted(frame, to_text(frame, inner))}" for key, inner in pairs]
    frame.text(sum(map(len, parts)))
    return "&".join(parts)


def _quoted(frame: Frame, text: str, safe: str = "") -> str:
    frame.spend(8 + (len(text) >> 1 if not text.isalnum() or not text.isascii() else len(text) >> 7))
    frame.text(len(text) * (3 if text.isascii() else 12))
    try:
        return urllib.parse.quote(text, safe=safe)
    except UnicodeEncodeError:
        raise Misuse("`urlencode` cannot write half of a surrogate pair") from None


def _pair(frame: Frame, element: Any) -> tuple[Any, Any]:
    if isinstance(element, str) or len(elements(frame, element)) != 2:
        raise Misuse("`urlencode` takes text, a mapping or a list of pairs")
    first, second = elements(frame, element)
    return first, second


def b64encode(frame: Frame, value: Any) -> str:
    data = _encoded(frame, "b64encode", _inserted(frame, value))
    frame.text(len(data) * 2)
    return b2a_base64(data, newline=False).decode("ascii")


def _encoded(frame: Frame, word: str, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    text = text_of(word, value)
    frame.hold(HEADER + len(text) * (1 if text.isascii() else 4))
    return text.encode("utf-8", "surrogatepass")


def b64decode(value: Any) -> str:
    text = text_of("b64decode", value).strip()
    try:
        # Both alphabets are read, and padding may be left out, as web tokens do.
        padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
        return a2b_base64(padded, strict_mode=True).decode("utf-8")
    except ValueError:
        raise Misuse("`b64decode` was given something that is not base64 of UTF-8 text") from None


def sha256(frame: Frame, value: Any) -> str:
    frame.spend(8 + (len(value) >> 4 if isinstance(value, (str, bytes)) else 0))
    data = _encoded(frame, "sha256", value)
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def startswith(value: Any, prefix: Any) -> bool:
    return text_of("startswith", value).startswith(text_of("startswith", prefix))


def endswith(value: Any, suffix: Any) -> bool:
    return text_of("endswith", value).endswith(text_of("endswith", suffix))
