"""Describes JSON errors for people: line and column, and the line itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_WIDEST = 80


def json_mistake(data: str | bytes, error: Exception, *, quoted: bool = True) -> str:
    """`line 3, column 7: expecting ',' delimiter: `"a": 1 "b"``. `error` is what a faster decoder said, which counts bytes;
    without `quoted` the text, which may be a secret, is not shown."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        json.loads(text, parse_constant=_refused)
    except json.JSONDecodeError as found:
        where, reason = found, found.msg[:1].lower() + found.msg[1:]
    except UnicodeDecodeError as found:
        return f"it is not UTF-8: byte {found.start} is 0x{found.object[found.start]:02x}"
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as found:
        return str(found)
    else:
        return str(error)
    place = f"line {where.lineno}, column {where.colno}: {reason}"
    line = text.split("\n")[where.lineno - 1].rstrip("\r")
    begin = max(0, min(where.colno - 1 - _WIDEST // 2, len(line) - _WIDEST))
    shown = line[begin : begin + _WIDEST].strip()
    return (
        f"{place}: `{'…' if begin else ''}{shown}{'…' if begin + _WIDEST < len(line) else ''}`"
        if quoted and shown
        else place
    )


def unwritable(value: object, root: str, error: Exception) -> str:
    """Why a value cannot be written as JSON, and where in it: `result.files[3]: …`. `error` is what the encoder said."""
    if isinstance(error, RecursionError):
        return f"`{root}`: it is nested too deeply"
    place = _half_character(value, root)
    if place is None:
        return f"`{root}`: {error}"
    where, text = place
    at = next(index for index, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    shown = text[max(0, at - 20) : at + 20].encode("ascii", "backslashreplace").decode()
    return (
        f"`{where}`: character {at + 1} of the text `{shown}` is half of a surrogate pair, which is no character; "
        "hint: a file name or output that is not UTF-8 has such; decode it with its own encoding, or replace what is broken"
    )


def _half_character(value: object, root: str) -> tuple[str, str] | None:
    stack: list[tuple[object, str]] = [(value, root)]
    while stack:
        current, place = stack.pop()
        if isinstance(current, str):
            if not current.isascii() and any("\ud800" <= character <= "\udfff" for character in current):
                return place, current
        elif isinstance(current, Mapping):
            for key, inner in current.items():
                named = str(key).encode("utf-8", "backslashreplace").decode()
                stack += [(inner, f"{place}.{named}"), (key, f"a key of {place}")]
        elif isinstance(current, Sequence) and not isinstance(current, (bytes, bytearray)):
            stack += [(inner, f"{place}[{index}]") for index, inner in enumerate(current)]
    return None


def _refused(name: str) -> None:
    raise ValueError(f"`{name}` is not a value of JSON")
