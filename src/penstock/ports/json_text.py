"""Where JSON goes wrong, in words for people: line and column, and the line itself."""

from __future__ import annotations

import json

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


def _refused(name: str) -> None:
    raise ValueError(f"`{name}` is not a value of JSON")
