"""A secret is a value that cannot be written down.

Law: nothing that prints, formats, encodes, pickles or copies a `Secret` gives its text; what it gives instead is a marker
that says nothing. `reveal` is the only way out. It is a function and not a method on purpose: templates can call the public
methods of what they are given, and a template must never hold plain text.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, NoReturn, final

# Digits only: no filter that changes the case of a text can touch it, so a changed marker is still recognised.
NONCE = str(10**19 + secrets.randbelow(9 * 10**19))
"""Stands in every marker of this process and, being chance, in nothing else."""


def marker(number: str) -> str:
    # `<`, the control character and `'` are there to be changed: an encoder for URLs, JSON, HTML or a shell leaves its
    # trace on them, so that the plain text can later be inserted in the same encoding (see penstock.keychain.resolved).
    return f"<pnsk\x02'{NONCE}:{number}>"


NO_PARTS: Mapping[str, str | None] = MappingProxyType({})


@final
class Secret:
    """Equal to a secret with the same text, compared in constant time; never equal to anything else."""

    __slots__ = ("_marker", "_parts", "_text")

    def __init__(self, text: str, parts: Mapping[str, str | None] = NO_PARTS) -> None:
        """`parts`: the fields that it also has as a mapping; None is the text itself."""
        if not isinstance(text, str):
            raise TypeError("a secret is made of text")
        self._text = text
        self._parts = parts
        self._marker = marker(str(10**19 + secrets.randbelow(9 * 10**19)))

    def __str__(self) -> str:
        return self._marker

    def __repr__(self) -> str:
        return "Secret(***)"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __part__(self, name: str) -> Secret | str | None:
        """A field of it, for templates; None when it has none of that name."""
        return (self._parts[name] or self) if name in self._parts else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._text.encode("utf-8", "surrogatepass"), other._text.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        # Salted with the nonce, so that a hash which is printed somewhere cannot be used to test guesses.
        return hash((NONCE, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialised or copied")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialised or copied")


def reveal(secret: Secret) -> str:
    """The plain text. Call it only where the text is used at once, such as in the call of a tool."""
    return secret._text


def marker_of(secret: Secret) -> str:
    return secret._marker


# ---- The ways a secret may be spelled in what comes out of tools, logs and errors.
# The text itself is one spelling: as it is, percent-encoded by any library (they differ in which characters they leave
# alone), escaped for JSON, HTML or a Python string; and control characters in it as those show them who would not send them
# to a terminal: as a blank, a mark, `^X`, or not at all. Base64 gives three, by where in a group of three bytes the secret
# begins; hexadecimal two, by case. Each spelling has a needle, the longest part that is the same in all its variants: that
# is what a text is searched for, and only where it stands the rest is compared.

SHORT = 4
"""A secret with fewer characters than this is hidden only where it stands alone: else half of every text would be `***`."""

_UNIT = 256
_LINE = 4
_REACH = 24
_SAME_EVERYWHERE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")
_NAMED = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": b"amp", "<": b"lt", ">": b"gt", '"': b"quot", "'": b"apos"}
# A short secret stands alone between these, or at an end of the text.
_EDGE = rb"\s\"'=:;,&?/@()\[\]{}<>\\"


_IN_SHELL = rb"'(?:\"'\"|\\+')'"
"""A single quote inside of single quotes: as Python writes it for a shell, and as shells do."""

_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x1f\x7f-\x9f]")


class _Varied(NamedTuple):
    """A part of a spelling that libraries write in different ways."""

    source: bytes


_PLUS = _Varied(rb"(?:\+|-|%(?:25)?2[Bb])")
_SLASH = _Varied(rb"(?:\\*/|_|%(?:25)?2[Ff])")


@dataclass(frozen=True)
class Spelling:
    """Patterns for what stands before the needle and from the needle on. `reach`: how many bytes the former can take."""

    needle: bytes
    before: bytes
    after: bytes
    reach: int = 0

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        return re.compile(rb"(?:%s)\Z" % self.before), re.compile(self.after)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where it stands in `data`."""
        before, after = self._patterns
        position = 0
        # A pattern that begins with a fixed text is found at the speed of a plain search; hence not one pattern for the whole.
        while (found := after.search(data, position)) is not None:
            start, position = found.start(), found.start() + 1
            if self.before:
                head = before.search(data, max(0, start - self.reach), start)
                if head is None:
                    continue
                start = head.start()
            position = found.end()
            yield start, position


def spellings(text: str) -> Iterator[Spelling]:
    """All spellings of a secret. None for a blank text, which cannot be hidden."""
    if not text.strip():
        return
    if is_short(text):
        raw = re.escape(_bytes(text))
        yield Spelling(_bytes(text), b"", raw + rb"(?<![^%s]%s)(?![^%s])" % (_EDGE, raw, _EDGE))
        return
    for unit in dict.fromkeys(_units(text)):
        data = _bytes(unit)
        yield _spelling(_text_items(unit))
        for core in base64_cores(data):
            yield _spelling(_base64_items(core))
        for digits in dict.fromkeys((data.hex().encode(), data.hex().upper().encode())):
            yield Spelling(digits, b"", digits)


def is_short(text: str) -> bool:
    return len(text.strip()) < SHORT


def base64_cores(data: bytes) -> list[str]:
    """What `data` looks like inside a longer base64 text, one per alignment, without the edges that its neighbours decide."""
    cores = []
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + data).decode()
        first, last = -(-8 * shift // 6), 8 * (shift + len(data)) // 6
        cores.append(encoded[first:last])
    return cores


def _units(text: str) -> Iterator[str]:
    """The parts that are hidden on their own: a long secret in pieces, and the lines of one that has several,
    because a private key is often shown line by line. Also without its control sequences, which some leave out."""
    yield from _pieces(text)
    plain = _TERMINAL.sub("", text)
    if plain != text and not is_short(plain):
        yield from _pieces(plain)
    lines = text.splitlines()
    if len(lines) > 1:
        for line in lines:
            if len(line.strip()) >= _LINE and _has_substance(line) and not line.startswith("-----"):
                yield from _pieces(line.strip())


def _pieces(text: str) -> Iterator[str]:
    count = -(-len(text) // _UNIT)
    size = -(-len(text) // count)
    for start in range(0, len(text), size):
        if text[start : start + size].strip():
            yield text[start : start + size]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _spelling(items: list[bytes | _Varied]) -> Spelling:
    """Out of the parts in order: bytes are the same in all variants."""
    first, last, start = 0, 0, 0
    for end in range(len(items) + 1):
        if end == len(items) or isinstance(items[end], _Varied):
            if end - start > last - first:
                first, last = start, end
            start = end + 1
    needle = b"".join(item for item in items[first:last] if isinstance(item, bytes))
    sources = [item.source if isinstance(item, _Varied) else re.escape(item) for item in items]
    return Spelling(needle, b"".join(sources[:first]), b"".join(sources[first:]), _REACH * first)


def _has_substance(line: str) -> bool:
    """A line of brackets or dashes is in many texts, and says nothing."""
    return any(each.isalnum() for each in line)


def _text_items(text: str) -> list[bytes | _Varied]:
    # A run of backslashes is one item: a quantifier for each of them would make the pattern explode.
    parts = re.findall(r"\\+|[^\\]", text, re.DOTALL)
    is_visible = sum(not _is_control(part) for part in parts) >= SHORT
    return [
        part.encode() if part in _SAME_EVERYWHERE else _Varied(_shown(part) if is_visible else _variants(part))
        for part in parts
    ]


def _is_control(item: str) -> bool:
    return unicodedata.category(item[0]) in ("Cc", "Cf", "Zl", "Zp")


def _shown(item: str) -> bytes:
    """Also as what is put in the place of a control character, if anything is."""
    if not _is_control(item):
        return _variants(item)
    ways = [_variants(item), rb" ", rb"\?", rb"\.", "\N{REPLACEMENT CHARACTER}".encode(), "\N{MIDDLE DOT}".encode()]
    if ord(item) < 0x20 or ord(item) == 0x7F:
        picture = 0x2421 if ord(item) == 0x7F else 0x2400 + ord(item)
        ways += [re.escape(b"^" + bytes([ord(item) ^ 0x40])), chr(picture).encode()]
    return rb"(?:%s)?" % b"|".join(ways)


def _base64_items(core: str) -> list[bytes | _Varied]:
    return [{"+": _PLUS, "/": _SLASH}.get(each) or each.encode() for each in core]


def _variants(item: str) -> bytes:
    if item[0] == "\\":
        count = len(item)
        return rb"(?:\\{%d,}|(?:%%(?:25)?5[Cc]){%d}|(?:\\+x5c){%d})" % (count, count, count)
    raw = _bytes(item)
    point = ord(item)
    ways = [
        rb"\\*" + re.escape(raw),
        b"".join(rb"%%(?:25)?%s" % _hex(b"%02x" % byte) for byte in raw),
        b"".join(rb"\\+x%s" % _hex(b"%02x" % byte) for byte in raw),
        b"".join(rb"\\+u%s" % _hex(b"%04x" % unit) for unit in _utf16(item)),
        rb"&#(?:%d|[xX]0*%s);" % (point, _hex(b"%x" % point)),
    ]
    if point > 0xFFFF:
        ways.append(rb"\\+U%s" % _hex(b"%08x" % point))
    elif 0x7F < point < 0x100:
        ways.append(rb"\\+x%s" % _hex(b"%02x" % point))
    if item == " ":
        ways.append(rb"\+")
    if item == "\n":
        ways.append(rb"\r\n")
    if item in _NAMED:
        ways.append(rb"\\+" + _NAMED[item].encode())
    if item in _ENTITIES:
        ways.append(rb"&%s;" % _ENTITIES[item])
    if item == "'":
        ways.append(_IN_SHELL)
    return rb"(?:%s)" % b"|".join(ways)


def _hex(digits: bytes) -> bytes:
    return rb"(?i:%s)" % digits


def _utf16(item: str) -> Iterator[int]:
    data = item.encode("utf-16-be", "surrogatepass")
    for start in range(0, len(data), 2):
        yield int.from_bytes(data[start : start + 2], "big")
