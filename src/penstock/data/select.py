"""SQL is a tree here, never a pasted text.

An author's SQL comes in through `expression` and `query`, which take exactly one of each and nothing that could reach a
file, the network or the engine's own settings; queries leave through `sql`. Everything between is sqlglot. The module
brings sqlglot with it, so import it where it is needed and not at start-up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError, UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from penstock.data.sql_rules import SqlMistake, refuse_what_is_no_value, refuse_what_reaches_outside

_WITH_A_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
_KNOWN = ("COALESCE", "COLUMNS", "MAP", "STRUCT_PACK", "UNNEST")


class PlainDuckDB(DuckDB):
    class Parser(DuckDBParser):
        FUNCTIONS = {name: make for name, make in DuckDBParser.FUNCTIONS.items() if name in _KNOWN}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name in _WITH_A_GRAMMAR
        }

        def _warn_unsupported(self) -> None:
            """A statement that sqlglot keeps only as text is refused later, where the mistake can be reported."""

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


def expression(text: str, tables: Collection[str] = ()) -> exp.Expr:
    """The one expression that the text is. Subqueries in it may name `tables`."""
    node = _one(text, exp.Condition, "an expression")
    refuse_what_is_no_value(node)
    refuse_what_reaches_outside(node, tables)
    return node


def query(text: str, tables: Collection[str] | None = None) -> exp.Query:
    """The one SELECT that the text is (or WITH, VALUES, UNION …). It may name `tables`; None for any plain name."""
    node = _one(text, None, "a query")
    if isinstance(node, exp.Subquery | exp.Values):
        node = exp.select("*").from_(node.unnest() if isinstance(node, exp.Values) else node)
    if not isinstance(node, exp.Query):
        offset, length = _first_word(text)
        raise SqlMistake("this is not a query: it must be one `SELECT` over the inputs", offset, length)
    refuse_what_reaches_outside(node, tables)
    return node


def sql(node: exp.Expr) -> str:
    """The tree as text for DuckDB."""
    try:
        return write(node)
    except UnsupportedError as unwritable:
        raise SqlMistake(f"this cannot be said in DuckDB's SQL: {unwritable}") from unwritable


def name(text: str) -> exp.Identifier:
    return exp.Identifier(this=text, quoted=True)


def column(text: str, table: str | None = None) -> exp.Column:
    return exp.Column(this=name(text), table=name(table) if table is not None else None)


def table(text: str) -> exp.Table:
    return exp.Table(this=name(text))


def data_type(text: str) -> exp.DataType:
    """A type as DuckDB spells it, to cast to."""
    try:
        # Of types that it does not know, sqlglot is to let only names pass.
        return exp.DataType.build(text, dialect=DIALECT, udt=text.isidentifier())
    except (ParseError, TokenError) as broken:
        raise SqlMistake(f"`{text}` is not a type", 0, len(text), kind="type") from broken


def cast(node: exp.Expr, type: str) -> exp.Cast:
    return exp.Cast(this=node, to=data_type(type))


def literal(value: Any) -> exp.Expr:
    """The value as a constant. Floats are DOUBLE, as they were in Python, and not the DECIMAL that DuckDB reads `1.5` as."""
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _signed(str(abs(value)), value < 0)
        case float():
            return _float(value)
        case Decimal():
            return _decimal(value)
        case str():
            return _text(value)
        case bytes() | bytearray() | memoryview():
            return _blob(bytes(value))
        case datetime():
            return cast(exp.Literal.string(value.isoformat(" ")), "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP")
        case date():
            return cast(exp.Literal.string(value.isoformat()), "DATE")
        case time():
            return cast(exp.Literal.string(value.isoformat()), "TIMETZ" if value.tzinfo else "TIME")
        case timedelta():
            micros = value // timedelta(microseconds=1)
            return exp.Anonymous(this="to_microseconds", expressions=[_signed(str(abs(micros)), micros < 0)])
        case UUID():
            return cast(exp.Literal.string(str(value)), "UUID")
        case Mapping():
            return _struct(value)
        case Sequence() | set() | frozenset():
            return exp.Array(expressions=[literal(element) for element in value])
        case _:
            raise SqlMistake(f"a value of type `{type(value).__name__}` has no spelling in SQL")


def _signed(digits: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(digits)
    return exp.Neg(this=number) if negative else number


def _float(value: float) -> exp.Expr:
    if not math.isfinite(value):
        return cast(exp.Literal.string(str(value)), "DOUBLE")
    digits = repr(abs(value))
    return _signed(digits if "e" in digits else f"{digits}e0", math.copysign(1.0, value) < 0)


def _decimal(value: Decimal) -> exp.Expr:
    if not value.is_finite():
        return _float(float(value))
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    width = max(len(digits) + max(0, int(exponent)), scale, 1)
    if width > 38:
        return _float(float(value))
    return cast(exp.Literal.string(f"{value:f}"), f"DECIMAL({width},{scale})")


def _text(value: str) -> exp.Expr:
    # DuckDB's parser ends a statement at a zero byte.
    if "\0" in value:
        return exp.Anonymous(this="decode", expressions=[_blob(value.encode())])
    return exp.Literal.string(value)


def _blob(value: bytes) -> exp.Expr:
    return exp.Anonymous(this="from_hex", expressions=[exp.Literal.string(value.hex())])


def _struct(value: Mapping[Any, Any]) -> exp.Expr:
    if not value:
        return cast(exp.Literal.string("{}"), "JSON")
    fields = [exp.PropertyEQ(this=name(str(key)), expression=literal(element)) for key, element in value.items()]
    return exp.Struct(expressions=fields)


def _one(text: str, into: type[exp.Expr] | None, what: str) -> exp.Expr:
    if not text.strip():
        raise SqlMistake(f"this is empty: {what} is needed", 0, max(1, len(text)))
    if "\0" in text:
        raise SqlMistake("a zero byte cannot stand in SQL", text.index("\0"), 1)
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError as broken:
        raise _unfinished(text) from broken
    # One at the very end is what many tools want to see there, and says nothing more.
    if tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    semicolon = next((token for token in tokens if token.token_type is TokenType.SEMICOLON), None)
    if semicolon is not None:
        raise SqlMistake(f"`;` cannot stand here: {what} is needed, and nothing after it", semicolon.start, 1)
    try:
        # The whole text as context, so that the length of what stands before an error is its offset.
        parser = DIALECT.parser(error_message_context=len(text) + 1)
        found = parser.parse_into(into, tokens, text) if into else parser.parse(tokens, text)
    except ParseError as broken:
        raise _unreadable(text, broken) from broken
    except RecursionError as broken:
        raise SqlMistake("this is nested too deeply to be read", 0, len(text)) from broken
    node = found[0] if found else None
    if node is None:
        raise SqlMistake(f"this is empty: {what} is needed", 0, len(text))
    return node


def _unreadable(text: str, broken: ParseError) -> SqlMistake:
    error = broken.errors[0] if broken.errors else {}
    word = str(error.get("highlight") or "")
    offset = min(len(str(error.get("start_context") or "")), len(text))
    description = str(error.get("description") or "")
    rest = text[offset + len(word) :].strip()
    if not rest and "Unexpected token" not in description:
        return SqlMistake(f"the SQL ends too early, after `{word}`", offset, max(1, len(word)))
    if word:
        return SqlMistake(f"`{word}` is not expected here", offset, len(word))
    return SqlMistake("this is not SQL", 0, len(text))


def _unfinished(text: str) -> SqlMistake:
    """The tokenizer only stops at a quote or a comment that never ends; it is the last one that opens outside another."""
    closers = {"'": "'", '"': '"', "/*": "*/", "$$": "$$"}
    at = 0
    while at < len(text):
        opener = next((mark for mark in closers if text.startswith(mark, at)), None)
        if opener is None:
            at = text.find("\n", at) + 1 or len(text) if text.startswith("--", at) else at + 1
            continue
        end = text.find(closers[opener], at + len(opener))
        if end < 0:
            return SqlMistake(f"`{opener}` is opened here and never closed", at, len(text) - at)
        at = end + len(closers[opener])
    return SqlMistake("this is not SQL", 0, len(text))


def _first_word(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip())
    return start, max(1, len(text[start:].split(maxsplit=1)[0]))


__all__ = [
    "SqlMistake",
    "cast",
    "column",
    "data_type",
    "expression",
    "literal",
    "name",
    "query",
    "sql",
    "table",
]
