"""SQL is read and written the way DuckDB means it.

sqlglot's own DuckDB dialect turns calls into nodes that mean the same in every database; on the way it renames functions
and now and then loses an argument. Here an author's call stays the call that was written: only functions whose arguments
have a grammar of their own (`CAST(x AS t)`, `EXTRACT(year FROM d)` …) are taken apart.
"""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser

_WITH_A_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
_KNOWN = ("COALESCE", "COLUMNS", "MAP", "STRUCT_PACK", "UNNEST")


class PlainDuckDB(DuckDB):
    class Parser(DuckDBParser):
        FUNCTIONS = {name: make for name, make in DuckDBParser.FUNCTIONS.items() if name in _KNOWN}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name in _WITH_A_GRAMMAR
        }

        def _warn_unsupported(self) -> None:
            """A statement that is only kept as text is refused later, where there is somebody to tell."""

    class Generator(DuckDBGenerator):
        MULTI_ARG_DISTINCT = True

        def withingroup_sql(self, expression: exp.WithinGroup) -> str:
            called = self.sql(expression, "this")
            return f"{called} WITHIN GROUP ({self.sql(expression, 'expression').lstrip()})"

        def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
            return f"{self.sql(expression, 'this')} IGNORE NULLS"

        def respectnulls_sql(self, expression: exp.RespectNulls) -> str:
            return f"{self.sql(expression, 'this')} RESPECT NULLS"


DIALECT = PlainDuckDB()


def write(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT, normalize_functions=False, comments=False, unsupported_level=ErrorLevel.RAISE)


def read(text: str) -> exp.Expr:
    """The one statement that a text is, whatever it does. For the engine's own SQL; an author's comes through `select`."""
    found = DIALECT.parse(text)
    if len(found) != 1 or found[0] is None:
        raise ParseError(f"expected one statement, found {len(found)}")
    return found[0]
