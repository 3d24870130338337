"""A row as one piece of text that a server reads: a line of PostgreSQL's COPY, the values of a row for MySQL.

DuckDB writes it, all columns of a row at once, so no value of a row is ever one of Python's, and the server makes of each what
the type of its own column is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

from sqlglot import exp

from penstock.data import select
from penstock.data.types import NOTHING
from penstock.ports.rows import Column, Schema

Text: TypeAlias = exp.Expr


def function(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


_NUMBER = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(\d+,\d+\)|FLOAT|DOUBLE|BOOLEAN|BIGNUM)\Z")
_TIME = re.compile(r"(DATE|TIME(STAMP)?(_S|_MS|_NS)?( WITH TIME ZONE)?)\Z")
_LIST = re.compile(r"(?P<element>.*)\[\d*\]\Z", re.DOTALL)
_NESTED = re.compile(r"(STRUCT|MAP|UNION)\b")


def _joined(*parts: exp.Expr) -> exp.Expr:
    """NULL when one of them is."""
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.DPipe(this=whole, expression=part)
    return whole


def _replaced(text: Text, *pairs: tuple[str, str]) -> Text:
    for old, new in pairs:
        text = function("replace", text, select.literal(old), select.literal(new))
    return text


def _as_text(value: exp.Expr) -> Text:
    return select.cast(value, "VARCHAR")


def _is_list(type: str) -> bool:
    return _LIST.match(type) is not None and not type.startswith(("ENUM", '"'))


def _as_json(value: exp.Expr, type: str) -> Text:
    return _as_text(value if type == "JSON" else function("to_json", value))


# ---- PostgreSQL


def csv_line(columns: Schema, json_columns: Collection[str]) -> Text:
    """Of COPY … (FORMAT csv): every text in quotes, and nothing at all for NULL. `json_columns` of the table hold JSON."""
    parts: list[exp.Expr] = []
    for index, column in enumerate(columns):
        parts += [select.literal(",")] if index else []
        parts.append(_field(column, as_json=column.name in json_columns))
    # `concat` leaves NULL out.
    return function("concat", *parts, select.literal("\n"))


def _field(column: Column, *, as_json: bool) -> Text:
    value, type = select.column(column.name), column.type
    nested = _is_list(type) or _NESTED.match(type) is not None
    text = _as_json(value, type) if as_json and nested else _postgres_text(value, type)
    return text if _NUMBER.match(type) or _TIME.match(type) else _quoted_with('"', _replaced(text, ('"', '""')))


def _quoted_with(quote: str, text: Text) -> Text:
    return _joined(select.literal(quote), text, select.literal(quote))


def _postgres_text(value: exp.Expr, type: str) -> Text:
    if type == NOTHING:
        return select.cast(exp.null(), "VARCHAR")
    if type == "BLOB":
        return _joined(select.literal("\\x"), function("hex", value))
    if type == "INTERVAL":
        return _iso_interval(value)
    if _TIME.match(type):
        return _replaced(_as_text(value), ("(BC)", "BC"))
    if _NESTED.match(type):
        return _as_json(value, type)
    return _array(value, type) if _is_list(type) else _as_text(value)


def _array(value: exp.Expr, type: str) -> Text:
    found = _LIST.match(type)
    assert found is not None
    element = found["element"]
    inner = _postgres_text(exp.column("element"), element)
    if not (_NUMBER.match(element) or _is_list(element)):
        inner = _quoted_with('"', _replaced(inner, ("\\", "\\\\"), ('"', '\\"')))
    each = exp.Lambda(
        this=function("coalesce", inner, select.literal("NULL")), expressions=[exp.to_identifier("element")], colon=True
    )
    texts = function("array_to_string", function("list_transform", value, each), select.literal(","))
    return _joined(select.literal("{"), texts, select.literal("}"))


def _iso_interval(value: exp.Expr) -> Text:
    """Each part with its own sign: what a sign in front of all means, the server's settings decide."""

    def part(name: str) -> exp.Expr:
        return function("datepart", select.literal(name), value.copy())

    seconds = exp.Mul(
        this=select.cast(part("microsecond"), "DECIMAL(18,0)"),
        expression=select.cast(select.literal("0.000001"), "DECIMAL(6,6)"),
    )
    pieces: list[exp.Expr] = [select.literal("P")]
    for name, unit in (("year", "Y"), ("month", "M"), ("day", "DT"), ("hour", "H"), ("minute", "M")):
        pieces += [_as_text(part(name)), select.literal(unit)]
    return _joined(*pieces, _as_text(seconds), select.literal("S"))


# ---- MySQL


def mysql_line(columns: Schema) -> Text:
    """The values of a row as an INSERT has them between its brackets. LOAD DATA reads the same, as fields that may be in quotes,
    but for bytes: `x'00ff'` is a text to it, see `mysql_field`."""
    parts: list[exp.Expr] = []
    for index, column in enumerate(columns):
        parts += [select.literal(",")] if index else []
        parts.append(function("coalesce", _mysql_value(column), select.literal("NULL")))
    return function("concat", *parts)


def mysql_field(type: str, variable: str, *, takes_numbers: bool) -> str | None:
    """What LOAD DATA makes of a field that it has put into a variable; None where the column can take the field as it is.

    `takes_numbers`: a number and its text are the same to the column. To others, such as BIT, a text is its bytes.
    """
    if type == "BLOB":
        return f"UNHEX(SUBSTR({variable}, 3, CHAR_LENGTH({variable}) - 3))"
    if takes_numbers or type in _BINARY_NUMBERS or not _NUMBER.match(type):
        return None
    scale = re.search(r",(\d+)\)", type)
    return f"CAST({variable} AS DECIMAL(65,{scale[1] if scale else 0}))"


_BINARY_NUMBERS = ("FLOAT", "DOUBLE")


def _mysql_value(column: Column) -> Text:
    value, type = select.column(column.name), column.type
    if type == NOTHING:
        return select.cast(exp.null(), "VARCHAR")
    if type == "BOOLEAN":
        return _as_text(select.cast(value, "TINYINT"))
    if type == "BLOB":
        return _joined(select.literal("x'"), function("hex", value), select.literal("'"))
    if _NUMBER.match(type) and type not in _BINARY_NUMBERS:
        return _as_text(value)
    # `inf` and `nan` are words to the server unless they are in quotes.
    return _quoted_with("'", _replaced(_mysql_text(value, type), ("\\", "\\\\"), ("'", "\\'")))


def _mysql_text(value: exp.Expr, type: str) -> Text:
    if _is_list(type) or _NESTED.match(type):
        return _as_json(value, type)
    if type.startswith("TIMESTAMP") and type.endswith(("WITH TIME ZONE", "TZ_NS")):
        # The server's times have no zone. Of `infinity` there is no other form.
        in_utc = function("make_timestamp", function("epoch_us", select.cast(value, "TIMESTAMP WITH TIME ZONE")))
        return function("coalesce", _as_text(in_utc), _as_text(value.copy()))
    if type == "TIMESTAMP_NS":
        return _as_text(select.cast(value, "TIMESTAMP"))
    if type == "TIME WITH TIME ZONE":
        return _as_text(select.cast(value, "TIME"))
    return _clock(value) if type == "INTERVAL" else _as_text(value)


def _clock(value: exp.Expr) -> Text:
    """A span of time as `-26:30:00.000000`, with a month of 30 days, as Python has it."""
    whole = function("epoch_us", value)
    size = function("abs", whole)

    def part(unit: int, most: int | None = None) -> exp.Expr:
        found: exp.Expr = exp.IntDiv(this=size.copy(), expression=select.literal(unit))
        return found if most is None else exp.Mod(this=exp.paren(found), expression=select.literal(most))

    sign = exp.Case().when(exp.LT(this=whole.copy(), expression=select.literal(0)), select.literal("-"))
    parts = (part(3_600_000_000), part(60_000_000, 60), part(1_000_000, 60), part(1, 1_000_000))
    clock = function("format", select.literal("{:02d}:{:02d}:{:02d}.{:06d}"), *parts)
    return _joined(sign.else_(select.literal("")), clock)
