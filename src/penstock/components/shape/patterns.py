"""Patterns, paths and time formats are DuckDB's, which is asked before a row is read: a wrong one is the author's mistake."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from penstock.components.base import Mistake
from penstock.expr.regex import groups_of

if TYPE_CHECKING:
    import duckdb

_lock = threading.Lock()
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")


def problem(pattern: str) -> str | None:
    """What is wrong with a regular expression, or None."""
    return _complaint("SELECT regexp_matches('', ?)", pattern)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all questions: opening it takes far longer than an answer."""
    import duckdb  # It takes 0.1 s to import.

    return duckdb.connect(config={"threads": 1})


@lru_cache(maxsize=512)
def _complaint(query: str, value: str) -> str | None:
    import duckdb  # It takes 0.1 s to import.

    with _lock:
        cursor = _database().cursor()
    with cursor:
        try:
            cursor.execute(query, [value])
        except (duckdb.InvalidInputException, duckdb.BinderException) as error:
            return str(error).partition(": ")[2].partition("\n")[0]
    return None


def wrong_pattern(path: tuple[str | int, ...], pattern: str) -> Iterable[Mistake]:
    """A mistake if the pattern cannot be used."""
    reason = problem(pattern)
    if reason is not None:
        hint = (
            "patterns are RE2: look-ahead and back-references do not exist there" if "perl operator" in reason else ""
        )
        yield Mistake(path, f"`{pattern}` is not a regular expression: {reason}", hint=hint, kind="syntax")


def group_names(pattern: str) -> list[str]:
    """The names of its named groups, in order."""
    return _NAMED.findall(pattern)


def group_count(pattern: str) -> int | None:
    """How many groups it has; None when it cannot be read and DuckDB must be the judge."""
    return groups_of(pattern)


def wrong_path(param: tuple[str | int, ...], path: str) -> Iterable[Mistake]:
    """A mistake if the text is no path into JSON."""
    if not path.startswith("$"):
        yield Mistake(
            param, f"`{path}` is not a path: it must begin with `$`", hint=f"perhaps `$.{path}`", kind="syntax"
        )
        return
    reason = _complaint("SELECT json_extract_string('{}', ?)", path)
    if reason is not None:
        yield Mistake(param, f"`{path}` is not a path: {reason}", kind="syntax")


def wrong_time_format(param: tuple[str | int, ...], format: str) -> Iterable[Mistake]:
    """A mistake if the text is no format of dates and times."""
    reason = _complaint("SELECT strftime(TIMESTAMP '2000-01-01', ?)", format)
    if reason is not None:
        yield Mistake(param, f"`{format}` is not a format: {reason}", hint="such as `%Y-%m-%d %H:%M:%S`", kind="syntax")
