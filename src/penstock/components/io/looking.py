"""A look at files before anything runs: what their columns are, said by a small DuckDB of this process.

Nothing here keeps rows. A file that cannot be looked at is a ComponentFailure of kind `format`, `missing_file` or
`file`; whether that matters is for the caller to say, since before the run a file may still have to be written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.components.base import ComponentFailure
from penstock.ports.rows import Column, Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlglot import exp

_lock = threading.Lock()
_opened: list[DuckDBPyConnection] = []


@contextmanager
def _cursor() -> Iterator[DuckDBPyConnection]:
    import duckdb

    with _lock:
        if not _opened:
            # No look at a file may fetch an extension from the network, or take a table's name for a variable of this program.
            config: dict[str, Any] = {
                "autoinstall_known_extensions": "false",
                "python_enable_replacements": "false",
                "threads": "1",
            }
            _opened.append(duckdb.connect(":memory:", config=config))
        cursor = _opened[0].cursor()
    try:
        yield cursor
    except duckdb.Error as error:
        raise _failure_of(error) from None
    finally:
        cursor.close()


def ask(query: exp.Expr) -> list[tuple[Any, ...]]:
    from penstock.data import select

    with _cursor() as cursor:
        return cursor.execute(select.sql(query)).fetchall()


def columns(query: exp.Expr) -> Schema:
    """The columns that a query would give."""
    from penstock.data import select

    with _cursor() as cursor:
        described = cursor.execute(f"DESCRIBE {select.sql(query)}").fetchall()
    return tuple(Column(str(row[0]), str(row[1])) for row in described)


def _failure_of(error: Exception) -> ComponentFailure:
    words = " ".join(str(error).split("\n\n")[0].split())
    kind, _, rest = words.partition(" Error: ")
    return ComponentFailure("format", rest or kind)
