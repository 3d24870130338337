"""What is wrong with code and with declared columns before a row is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.components.base import Mistake
from penstock.components.shape.types import sql_type, wrong_type
from penstock.ports.rows import Column, Schema

_UNREADABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


def mistakes(code: str, setup: str | None, output_schema: Mapping[str, str] | None) -> list[Mistake]:
    found = [*_unreadable("code", code), *(_unreadable("setup", setup) if setup is not None else ())]
    for name, type in (output_schema or {}).items():
        found += wrong_type(("output_schema", name), type)
    return found


def columns(output_schema: Mapping[str, str]) -> Schema:
    return tuple(Column(name, sql_type(type)) for name, type in output_schema.items())


def _unreadable(parameter: str, text: str) -> Iterable[Mistake]:
    """Python's own complaint, with its place in the text."""
    try:
        compile(text, f"<{parameter}>", "exec", dont_inherit=True)
    except _UNREADABLE as error:
        reason = str(getattr(error, "msg", "") or error) or "the code is too complex to compile"
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        before = text.splitlines(keepends=True)[: line - 1]
        offset = min(sum(map(len, before)) + column - 1, max(len(text) - 1, 0))
        hint = "set `output`, `result` or `reject`; code here returns nothing" if "'return' outside" in reason else ""
        yield Mistake((parameter,), f"{type(error).__name__}: {reason}", offset=offset, kind="syntax", hint=hint)
