"""The reference of a result as one text, which can be handed on and read again with the tool `artifact`.

    penstock:file/sha256/ab/cdef…?size=5120&media=application/json&type=object     a result in the result store
    penstock:inline/{"a":1}                                                        one in the log: the text carries it

Law: a text is resolved from itself and the result store alone, so every worker can do it, and making a text stores nothing.
Keys, and the secrets that are to be hidden, stand in it as they stand in JSON: a sweep keeps what a text in the log refers to.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote

import msgspec

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json
from penstock.ports.blobs import KEY, ResultRef, checksum_of
from penstock.ports.results import LazyResult, decode, encode

SCHEME = "penstock:"
_INLINE = f"{SCHEME}inline/"
_STORED = re.compile(rf"{SCHEME}([a-z]+)/({KEY.pattern})\?(.+)")
_TYPES = ("object", "array", "string")


def reference(value: Any) -> str:
    """The text for a result as expressions see it: the view of a stored one, or the value itself."""
    if isinstance(value, LazyResult):
        return reference_to(value.ref)
    return _INLINE + encode(value).decode()


def reference_to(ref: ResultRef) -> str:
    hint = ref.schema_hint
    kind = hint.get("type") if isinstance(hint, dict) else None
    told = f"size={ref.size}&media={quote(ref.media)}" + (f"&type={kind}" if kind in _TYPES else "")
    return f"{SCHEME}{ref.store}/{ref.key}?{told}"


def resolved(text: str) -> ResultRef | tuple[Json]:
    """What the text refers to, or in a tuple the value that it carries. Refused if it is no reference."""
    if text.startswith(_INLINE):
        return (_carried(text),)
    found = _STORED.fullmatch(text)
    told = parse_qs(found[5], max_num_fields=8) if found is not None else {}
    size, media, kind = (told.get(name, [""])[-1] for name in ("size", "media", "type"))
    if found is None or not (size.isascii() and size.isdigit()) or not media:
        raise _no_reference(text)
    return ResultRef(found[1], found[2], int(size), checksum_of(found[2]), media, {"type": kind} if kind else None)


def _carried(text: str) -> Json:
    try:
        return decode(text.removeprefix(_INLINE).encode())
    except (UnicodeEncodeError, msgspec.DecodeError, RecursionError):
        raise _no_reference(text) from None


def _no_reference(text: str) -> Refused:
    # A part of it is not shown: it may be a part of a secret, which nothing would find and hide.
    shown = f"`{text}`" if len(text) <= 80 else f"a text of {len(text)} characters"
    return Refused(f"{shown} is not the reference of a result", "`{{ NAME._ref }}` gives that of a step or task")
