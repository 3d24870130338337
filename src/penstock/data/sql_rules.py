"""What an author's SQL may not do: name anything but its inputs, or reach past the rows it is given.

A query sees its input tables, its own CTEs, and rows it makes up itself (`range`, `generate_series`, `unnest`, `VALUES`). A
file is read by a component that says so, so that a job shows what it reads; the same holds for the network, settings and
secrets.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from sqlglot import exp

from penstock.data.types import MissingColumn

MADE_UP_ROWS = frozenset({"generate_series", "range", "unnest", "repeat", "json_each", "json_tree"})
_PLAIN_NAME = re.compile(r"\w+\Z")
_REACHING = frozenset({
    "add_parquet_key", "current_query", "current_setting", "currval", "duckdb_secrets", "getenv", "getvariable",
    "json_deserialize_sql", "json_execute_serialized_sql", "json_serialize_plan", "load_aws_credentials", "nextval",
    "parse_duckdb_log_message", "query", "query_table", "setval", "which_secret", "write_log",
})  # fmt: skip
_NOT_FOR_AUTHORS = (
    exp.DDL,
    exp.DML,
    exp.Command,
    exp.Copy,
    exp.Describe,
    exp.Drop,
    exp.Into,
    exp.Pragma,
    exp.Set,
    exp.Summarize,
)


MistakeKind = Literal["column", "type", "syntax", "value"]


class SqlMistake(Exception):
    """Something wrong with an author's SQL; `offset` and `length` lead into the text as it was written."""

    def __init__(
        self,
        message: str,
        offset: int | None = None,
        length: int = 1,
        hint: str = "",
        kind: MistakeKind = "syntax",
        *,
        missing: MissingColumn | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.hint = hint
        self.kind = kind
        self.missing = missing


def refuse_what_is_no_value(node: exp.Expr) -> None:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        raise SqlMistake("`*` stands for many columns: one value is needed here", *span(node))
    if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
        raise SqlMistake("this is a query: one value is needed here", 0, 1, "put it in parentheses")


def refuse_what_reaches_outside(tree: exp.Expr, tables: Collection[str] | None) -> None:
    known = None if tables is None else {table.lower() for table in tables}
    if known is not None:
        known |= {cte.alias.lower() for cte in tree.find_all(exp.CTE) if _PLAIN_NAME.match(cte.alias)}
    for node in tree.walk():
        match node:
            case exp.Placeholder() | exp.Parameter():
                raise SqlMistake(
                    f"`{node.sql(dialect='duckdb')}` is a parameter, and there is nothing to fill it with", *span(node)
                )
            case exp.Table():
                _check_table(node, known, tables or ())
            case exp.Func():
                _check_function(node)
            case _ if isinstance(node, _NOT_FOR_AUTHORS) and not isinstance(node, exp.Query):
                raise SqlMistake(
                    f"`{node.key.upper()}` is not allowed here: a query only reads its inputs", *span(node)
                )


def _check_table(node: exp.Table, known: Collection[str] | None, tables: Collection[str]) -> None:
    made = node.this
    if isinstance(made, exp.Func):
        called = _name_of(made)
        if called not in MADE_UP_ROWS:
            raise SqlMistake(
                f"`{called}` cannot be called here: a query reads its inputs only",
                *span(made),
                hint="read files and databases with a component of their own, such as `read_csv`",
            )
        return
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        named = node.sql(dialect="duckdb", comments=False)
        raise SqlMistake(f"`{named}` is not an input of this component", *span(node), _inputs(tables), "column")
    if known is not None and node.name.lower() in known:
        return
    # DuckDB opens a file when a table's name looks like one; no plain name does.
    if known is not None or not _PLAIN_NAME.match(node.name):
        raise SqlMistake(f"`{node.name}` is not an input of this component", *span(node), _inputs(tables), "column")


def _inputs(tables: Collection[str]) -> str:
    return f"its inputs are {', '.join(f'`{table}`' for table in sorted(tables))}" if tables else ""


def _check_function(node: exp.Func) -> None:
    called = _name_of(node)
    if called in _REACHING or called.startswith(("__internal", "read_", "pragma_", "duckdb_")):
        raise SqlMistake(
            f"`{called}` cannot be called here: an expression sees the columns of its row, and nothing else",
            *span(node),
        )


def _name_of(node: exp.Func) -> str:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.this).lower()
    return node.sql_name().lower()


def span(node: exp.Expr) -> tuple[int | None, int]:
    """Where a node was written: offset and length, as far as the parser kept them."""
    spans = [(part.meta["start"], part.meta["end"]) for part in node.walk() if "start" in part.meta]
    if not spans:
        return None, 1
    own = node.meta if "start" in node.meta else None
    if own is not None:
        return int(own["start"]), int(own["end"]) - int(own["start"]) + 1
    start, end = min(span[0] for span in spans), max(span[1] for span in spans)
    return int(start), int(end - start + 1)
