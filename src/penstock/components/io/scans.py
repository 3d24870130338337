"""DuckDB's table functions, as trees: `read_csv([…], delim := ',', …)`, and the components that read files with them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Known, Mistake, P, PlanCall, Relational, Schemas
from penstock.components.io.row_types import REJECTED
from penstock.data import select
from penstock.data.types import is_open
from penstock.ports.rows import Column, Schema, SqlText

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Scanned(Protocol):
    """Files that have been looked at: their columns, and the query that reads them."""

    @property
    def schema(self) -> Schema: ...

    def query(self) -> exp.Query: ...


class FileReader(Relational[P]):
    family: ClassVar[str] = "read"

    def settled(self, params: P, call: PlanCall | Call) -> Scanned:
        """What is to be read. Looks at the files; raises ComponentFailure when they are not there or not what was asked
        for."""
        raise NotImplementedError

    def wrong(self, params: P) -> list[Mistake]:
        """Mistakes that show without a look at the files."""
        return []

    def culprit(self, params: P, failure: ComponentFailure) -> str:
        """The parameter that asks for columns which are not there."""
        return "columns"

    def check(self, params: P, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = self.wrong(params)
        if found:
            return found
        try:
            self.settled(params, call)
        except ComponentFailure as failure:
            # A file that is not there yet may be written by the job itself; what is there is held to what is asked of it.
            if failure.kind == "columns":
                return [Mistake((self.culprit(params, failure),), failure.message, kind="column")]
        return []

    def schemas(self, params: P, inputs: Known, call: PlanCall) -> Schemas:
        try:
            found = self.settled(params, call).schema
            main = None if is_open(found) else found
        except ComponentFailure:
            main = call.declared.get("main")
        return {"main": main, "reject": REJECTED} if len(self.outputs) > 1 else {"main": main}

    def prepare(self, params: P, call: PlanCall) -> None:
        self.settled(params, call)

    def selects(self, params: P, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        try:
            return {"main": select.sql(self.settled(params, call).query())}
        except ComponentFailure:
            return {}  # Before the run the file may be missing; in the run `prepare` has said what is wrong.


def scan(function: str, paths: Iterable[Path | str], options: Mapping[str, Any]) -> exp.Table:
    """A table function over files. Options that are None are left out; one that is a tree already is taken as it is."""
    # A pattern has been resolved by now; what is left of it in a name must be taken for the name it is.
    files = select.literal([_literally(path) for path in paths])
    named = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=_option(value))
        for name, value in options.items()
        if value is not None
    ]
    return exp.Table(this=exp.Anonymous(this=function, expressions=[files, *named]))


def _option(value: Any) -> exp.Expr:
    return value if isinstance(value, exp.Expr) else select.literal(value)


def _literally(path: Path | str) -> str:
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(path))


def column_types(columns: Mapping[str, str]) -> exp.Expr | None:
    """`{'id': 'BIGINT', …}` as the option `columns` wants it."""
    return select.literal(dict(columns)) if columns else None


def text_lines(path: Path, column: str = "line", limit: int | None = None) -> exp.Select:
    """The lines of a text file, empty ones as NULL, whatever stands in them."""
    options = {
        "auto_detect": False,
        "header": False,
        # No text has this character: it is not valid in any document a person writes.
        "delim": "\x01",
        "quote": "",
        "escape": "",
        "columns": column_types({column: "VARCHAR"}),
        # Only the first lines are looked at as a rule: no need to read much more than those.
        "buffer_size": 1 << 22 if limit is not None else None,
        # Lines may end in more than one way.
        "strict_mode": False,
        "ignore_errors": True,
    }
    query = exp.select(select.column(column)).from_(scan("read_csv", [path], options))
    return query.limit(limit) if limit is not None else query


def renamed(query: exp.Query, column: str, names: Iterable[tuple[str, str]]) -> exp.Query:
    """The same rows; where the column is the path of a copy, it begins as what was copied."""
    value: exp.Expr = select.column(column)
    for here, there in names:
        value = exp.Anonymous(this="replace", expressions=[value, select.literal(here), select.literal(there)])
    if isinstance(value, exp.Column):
        return query
    picked = exp.Star(replace=[exp.alias_(value, select.name(column))])
    return exp.select(picked).from_(query.subquery("named"))


def all_of(*queries: exp.Query) -> exp.Query:
    """The rows of several queries with the same columns, one after another."""
    first, *others = queries
    for other in others:
        first = exp.Union(this=first, expression=other, distinct=False)
    return first


_lock = threading.Lock()
_opened: list[DuckDBPyConnection] = []


@contextmanager
def _cursor() -> Iterator[DuckDBPyConnection]:
    import duckdb  # It takes 0.1 s to import.

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
    with _cursor() as cursor:
        return cursor.execute(select.sql(query)).fetchall()


def columns(query: exp.Expr) -> Schema:
    """The columns that a query would give."""
    with _cursor() as cursor:
        described = cursor.execute(f"DESCRIBE {select.sql(query)}").fetchall()
    return tuple(Column(str(row[0]), str(row[1])) for row in described)


def _failure_of(error: Exception) -> ComponentFailure:
    words = " ".join(str(error).split("\n\n")[0].split())
    kind, _, rest = words.partition(" Error: ")
    return ComponentFailure("format", rest or kind)
