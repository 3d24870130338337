"""A query in DuckDB's dialect, as one that means the same in PostgreSQL.

Names are compared as DuckDB does, whatever their case: inside a query all of them are written in lower case, and the columns
that come out are named by their places. Text is compared by its bytes, as DuckDB does: every column of text that is kept has the
collation `C`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError, UnsupportedError
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser

from penstock.data.select import DIALECT, SqlMistake, name, read
from penstock.data.statements import quoted
from penstock.data.translation import (
    INSTEAD,
    TRANSLATED,
    Args,
    Make,
    Translation,
    call,
    closed,
    in_order,
    is_modified,
    match_names,
    names_its_own,
    reads_files,
    renamed,
    spell_using,
    spelled_out,
    templates,
    tree_of,
    written_text,
)
from penstock.ports.rows import Schema, SqlText

# ---- Types

_SAME: Final = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "UTINYINT": "smallint", "INT": "integer",
    "USMALLINT": "integer", "BIGINT": "bigint", "UINT": "bigint", "UBIGINT": "numeric(20,0)", "INT128": "numeric(39,0)",
    "UINT128": "numeric(39,0)", "BIGNUM": "numeric", "FLOAT": "real", "DOUBLE": "double precision", "VARCHAR": "text",
    "TEXT": "text", "JSON": "text", "ENUM": "text", "NULL": "text", "UUID": "uuid", "VARBINARY": "bytea", "BINARY": "bytea",
    "BLOB": "bytea", "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp",
    "DATETIME": "timestamp",
    "TIMESTAMP_S": "timestamp", "TIMESTAMP_MS": "timestamp", "TIMESTAMP_NS": "timestamp", "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMPLTZ": "timestamptz", "INTERVAL": "interval",
}  # fmt: skip
LONGEST_NAME: Final = 63
"""Bytes of a column's name: PostgreSQL cuts what is longer."""


@lru_cache(maxsize=4096)
def postgres_type(type: str) -> str:
    """The type in which PostgreSQL holds a column of a type of DuckDB's. Raises SqlMistake."""
    return _postgres_type(exp.DataType.build(type.replace('"NULL"', "NULL"), dialect=DIALECT, udt=True))


def _postgres_type(type: exp.DataType) -> str:
    kind = type.this.value if isinstance(type.this, exp.DType) else str(type.this)
    inner = type.expressions
    if kind == "DECIMAL":
        return f"numeric({','.join(str(one.this) for one in inner)})" if inner else "numeric(18,3)"
    if kind in ("LIST", "ARRAY") and is_plain(inner[0].sql(dialect=DIALECT)):
        return f"{_postgres_type(inner[0])}[]"
    if kind in ("LIST", "ARRAY", "STRUCT", "MAP", "UNION"):
        return "text"
    found = _SAME.get(kind)
    if found is None:
        raise SqlMistake(f"PostgreSQL has no type for `{type.sql(DIALECT)}`", kind="type", hint=INSTEAD)
    return found


def is_plain(type: str) -> bool:
    """Has it a type of its own in PostgreSQL? Structures, and lists of lists, are carried as text that is JSON."""
    return re.search(r"\[\d*\]|^(?:STRUCT|MAP|UNION)\b", type) is None


def is_carried(type: str) -> bool:
    found = re.fullmatch(r"(?P<element>.*)\[\d*\]", type, re.DOTALL)
    return not is_plain(found["element"] if found is not None else type)


def kept_column(expression: str, type: str) -> str:
    """An expression as a column of that type is kept."""
    wanted = postgres_type(type)
    return f"CAST({expression} AS {wanted})" + (' COLLATE "C"' if wanted in ("text", "text[]") else "")


def columns_of_table(schema: Schema) -> str:
    for one in schema:
        if len(one.name.encode()) > LONGEST_NAME:
            raise SqlMistake(
                f"`{one.name}` is longer than the {LONGEST_NAME} bytes of a name in PostgreSQL", hint=INSTEAD
            )
    return ", ".join(
        f"{quoted(one.name)} {postgres_type(one.type)}{_collation(postgres_type(one.type))}" for one in schema
    )


def _collation(type: str) -> str:
    return ' COLLATE "C"' if type in ("text", "text[]") else ""


# ---- Functions: DuckDB's name -> the same in PostgreSQL


class _ReadingPostgres(Postgres):
    """PostgreSQL's grammar, with every function as it was written."""

    class Parser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {name: PostgresParser.FUNCTION_PARSERS[name] for name in ("CAST",)}  # noqa: RUF012


_as = templates(_ReadingPostgres())


def _written(node: exp.Expr, what: str) -> str:
    return written_text(node, what, "PostgreSQL")


def _text(value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=_type("text"))


def _type(kind: str) -> exp.DataType:
    return exp.DataType(this=exp.DType.USERDEFINED, kind=kind)


def _collated(value: exp.Expr, collation: str) -> exp.Expr:
    return exp.Paren(this=exp.Collate(this=closed(value), expression=exp.var(f'"{collation}"')))


def _lettered(function: str) -> Make:
    """What a letter's other case is, the server's own collation knows."""
    return lambda a: _collated(call(function, _collated(a[0], "default")), "C")


def _literally(text: str) -> str:
    """A text as a pattern that only finds itself."""
    return re.sub(r"(\W)", r"\\\1", text)


def _pattern(node: exp.Expr, options: exp.Expr | None = None, around: tuple[str, str] = ("", "")) -> exp.Expr:
    flags = "" if options is None else _written(options, "the option of a pattern").replace("g", "").replace("c", "")
    if not set(flags) <= {"i", "s"}:
        raise SqlMistake(f"PostgreSQL has no option `{flags}` for patterns that does the same", hint=INSTEAD)
    # In DuckDB `.` finds no end of a line, unless `s` says so; nor do brackets and `^` change.
    before = f"(?{'i' if 'i' in flags else ''}{'s' if 's' in flags else 'p'})"
    if isinstance(node, exp.Literal) and node.is_string:
        said = re.sub(r"\\Q(.*?)\\E", lambda m: _literally(m[1]), str(node.this))
        inline = re.match(r"\(\?([is]+)\)", said)
        if inline:
            said, before = said[inline.end() :], f"(?{inline[1].replace('s', '')}{'s' if 's' in inline[1] else 'p'})"
        if re.search(r"\\p\{|\\P\{|\(\?P<|\\Q|\(\?[a-zA-Z-]+[:)]", said):
            raise SqlMistake(f"PostgreSQL has no patterns such as `{said}`", hint=INSTEAD)
        return exp.Literal.string(f"{before}{around[0]}{said}{around[1]}")
    return call("concat", before + around[0], node, around[1])


def _matches(a: Args) -> exp.Expr:
    return exp.Paren(this=exp.RegexpLike(this=closed(a[0]), expression=_pattern(a[1], a[2] if len(a) > 2 else None)))


def _matches_fully(a: Args) -> exp.Expr:
    whole = _pattern(a[1], a[2] if len(a) > 2 else None, (r"\A(?:", r")\Z"))
    return exp.Paren(this=exp.RegexpLike(this=closed(a[0]), expression=whole))


def _extracted(a: Args) -> exp.Expr:
    group = a[2] if len(a) > 2 else exp.Literal.number(0)
    if not isinstance(group, exp.Literal) or group.is_string:
        raise SqlMistake("PostgreSQL gives a group of a pattern by its number", hint=INSTEAD)
    pattern = _pattern(a[1], a[3] if len(a) > 3 else None)
    found = call("regexp_substr", a[0], pattern, 1, 1, "", group)
    there: exp.Expr = exp.Not(this=exp.Is(this=closed(a[0].copy()), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=there, true=exp.Coalesce(this=found, expressions=[exp.Literal.string("")]))])


def _extracted_all(a: Args) -> exp.Expr:
    if len(a) > 2:
        raise SqlMistake("PostgreSQL finds all occurrences of a pattern, not of a group of it", hint=INSTEAD)
    pattern = _pattern(a[1], None, ("(", ")"))
    made = _as("CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT m[1] FROM regexp_matches({0}, {1}, 'g') AS m) END")
    return made([a[0], pattern])


def _replaced(a: Args) -> exp.Expr:
    options = a[3] if len(a) > 3 else None
    with_ = _written(a[2], "what a pattern is replaced with").replace("\\0", "\\&")
    is_all = options is not None and "g" in _written(options, "the option of a pattern")
    return call("regexp_replace", a[0], _pattern(a[1], options), with_, *(["g"] if is_all else []))


_FORMATS: Final = {
    "Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "y": "YY", "b": "Mon", "B": "FMMonth", "f": "US",
    "p": "AM", "I": "HH12", "j": "DDD", "a": "Dy", "A": "FMDay", "-d": "FMDD", "-m": "FMMM", "-H": "FMHH24", "-M": "FMMI",
    "-S": "FMSS", "-I": "FMHH12", "g": "MS", "F": "YYYY-MM-DD", "T": "HH24:MI:SS",
}  # fmt: skip


def _format(node: exp.Expr) -> exp.Expr:
    text = _written(node, "the format of a date")
    made, at = "", 0
    for found in re.finditer(r"%(-?[A-Za-z%])", text):
        made += _plain(text[at : found.start()])
        word = found[1]
        if word != "%" and word not in _FORMATS:
            raise SqlMistake(f"PostgreSQL cannot write `%{word}` in the format of a date", hint=INSTEAD)
        made += "%" if word == "%" else _FORMATS[word]
        at = found.end()
    return exp.Literal.string(made + _plain(text[at:]))


def _plain(text: str) -> str:
    return re.sub(r"[A-Za-z\"\\]+", lambda m: '"' + m[0].replace("\\", "\\\\").replace('"', '\\"') + '"', text)


def _trimmed(side: str) -> Make:
    names = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    return lambda a: call(names[side], *a)


def _ordered(values: Args, order: list[exp.Ordered]) -> Args:
    """The arguments of an aggregate, the last with the order of all."""
    return [*values[:-1], exp.Order(this=values[-1], expressions=order)] if order else values


def _listed(a: Args) -> exp.Expr:
    values, order = in_order(a)
    return call("array_agg", *_ordered(values, order))


def _joined(a: Args) -> exp.Expr:
    values, order = in_order(a)
    value, separator = values[0], values[1] if len(values) > 1 else exp.Literal.string(",")
    if isinstance(value, exp.Distinct):
        if order:
            raise SqlMistake("PostgreSQL joins distinct values in their own order only", hint=INSTEAD)
        text: exp.Expr = exp.Distinct(expressions=[_text(one) for one in value.expressions])
    else:
        text = _text(value)
    return call("string_agg", *_ordered([text, separator], order))


def _there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=closed(value.copy()), expression=exp.null()))


def _one_of(values: exp.Expr, condition: exp.Expr | None = None) -> exp.Expr:
    chosen = values if condition is None else exp.Filter(this=values, expression=exp.Where(this=condition))
    return exp.Bracket(this=exp.Paren(this=chosen), expressions=[exp.Literal.number(1)], offset=1, safe=False)


def _first(is_last: bool) -> Make:
    def make(a: Args) -> exp.Expr:
        values, order = in_order(a)
        if is_last:
            if not order:
                raise SqlMistake("PostgreSQL knows no last of rows in no order", hint=INSTEAD)
            order = [_turned(one) for one in order]
        return _one_of(call("array_agg", *_ordered(values, order)))

    return make


def _turned(one: exp.Ordered) -> exp.Ordered:
    made = one.copy()
    made.set("desc", not one.args.get("desc"))
    made.set("nulls_first", not one.args.get("nulls_first"))
    return made


def _best(is_most: bool) -> Make:
    """The value where a key is greatest or least; rows without either do not count."""

    def make(a: Args) -> exp.Expr:
        if len(a) != 2:
            raise SqlMistake("PostgreSQL gives the one value where a key is greatest", hint=INSTEAD)
        order = [exp.Ordered(this=a[1], desc=is_most, nulls_first=False)]
        return _one_of(call("array_agg", *_ordered([a[0]], order)), exp.and_(_there(a[0]), _there(a[1])))

    return make


def _quantile(kind: str, at: exp.Expr | None = None) -> Make:
    def make(a: Args) -> exp.Expr:
        share = at.copy() if at is not None else a[1]
        value = exp.Cast(this=a[0], to=_type("double precision")) if kind == "percentile_cont" else a[0]
        order = exp.Order(expressions=[exp.Ordered(this=value, nulls_first=False)])
        return exp.WithinGroup(this=call(kind, share), expression=order)

    return make


def _mode(a: Args) -> exp.Expr:
    return exp.WithinGroup(
        this=call("mode"), expression=exp.Order(expressions=[exp.Ordered(this=a[0], nulls_first=False)])
    )


_PARTS: Final = {
    "dow": "dow", "dayofweek": "dow", "weekday": "dow", "isodow": "isodow", "doy": "doy", "dayofyear": "doy",
    "weekofyear": "week", "dayofmonth": "day", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip


def _part(unit: str) -> Make:
    return _as(f"CAST(date_part('{_PARTS.get(unit, unit)}', {{0}}) AS bigint)")


def _named_part(a: Args) -> exp.Expr:
    unit = _written(a[0], "the part of a date").lower().removesuffix("s")
    return _part(unit)([a[1]])


_READ: Final = {
    "Y": (r"\d{4}", 0), "m": (r"\d{1,2}", 1), "d": (r"\d{1,2}", 2), "H": (r"\d{1,2}", 3), "M": (r"\d{1,2}", 4),
    "S": (r"\d{1,2}", 5),
    "f": (r"\d{1,6}", 6), "-m": (r"\d{1,2}", 1), "-d": (r"\d{1,2}", 2), "-H": (r"\d{1,2}", 3), "-M": (r"\d{1,2}", 4),
    "-S": (r"\d{1,2}", 5),
}  # fmt: skip
"""A part of a date in a format: what it looks like, and its place in `1900-01-01 00:00:00.0`."""


def _moment(is_try: bool) -> Make:
    """A text in a format is put in order, and read as PostgreSQL writes it: its own readers take what is no date, too."""

    def make(a: Args) -> exp.Expr:
        text = _written(a[1], "the format of a date").replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
        pattern, at, parts = "", 0, ["1900", "01", "01", "00", "00", "00", "0"]
        for group, found in enumerate(re.finditer(r"%(-?[A-Za-z%])", text), 1):
            if found[1] not in _READ:
                raise SqlMistake(f"PostgreSQL cannot read `%{found[1]}` in the format of a date", hint=INSTEAD)
            look, place = _READ[found[1]]
            pattern += _literally(text[at : found.start()]) + f"({look})"
            parts[place] = f"\\{group}"
            at = found.end()
        pattern = f"^{pattern}{_literally(text[at:])}$"
        ordered = "{}-{}-{} {}:{}:{}.{}".format(*parts)
        build = "regexp_replace({0}, {1}, {2})"
        if not is_try:
            return _as(f"CAST({build} AS timestamp)")([a[0], exp.Literal.string(pattern), exp.Literal.string(ordered)])
        valid = f"pg_input_is_valid({build}, 'timestamp')"
        whole = f"CASE WHEN regexp_like({{0}}, {{1}}) AND {valid} THEN CAST({build} AS timestamp) END"
        return _as(whole)([a[0], exp.Literal.string(pattern), exp.Literal.string(ordered)])

    return make


def _difference(a: Args) -> exp.Expr:
    """The boundaries between two moments are counted."""
    unit = _written(a[0], "the unit of time").lower().removesuffix("s")
    start, end = a[1], a[2]
    seconds = {"second": 1, "minute": 60, "hour": 3600, "week": 604_800}
    months = {"month": 1, "quarter": 3, "year": 12}
    if unit == "day":
        return _as("(CAST({1} AS date) - CAST({0} AS date))")([start, end])
    if unit in months:
        each = f"floor((date_part('year', {{}}) * 12 + date_part('month', {{}}) - 1) / {months[unit]})"
        over = f"{each.format('{1}', '{1}')} - {each.format('{0}', '{0}')}"
        return _as(f"CAST({over} AS bigint)")([start, end])
    if unit in seconds:
        each = "date_part('epoch', date_trunc('" + unit + "', CAST({} AS timestamp)))"
        return _as(f"CAST(({each.format('{1}')} - {each.format('{0}')}) / {seconds[unit]} AS bigint)")([start, end])
    raise SqlMistake(f"PostgreSQL counts no `{unit}` between two moments", hint=INSTEAD)


def _truncated(a: Args) -> exp.Expr:
    return call("date_trunc", a[0], exp.Cast(this=a[1], to=_type("timestamp")))


def _sub(a: Args) -> exp.Expr:
    start = a[1]
    if not (isinstance(start, exp.Literal) and start.is_int and int(str(start.this)) > 0):
        start = _as("CASE WHEN {1} < 0 THEN length({0}) + {1} + 1 ELSE {1} END")([a[0], a[1]])
    return call("substr", a[0], start, *a[2:])


def _pieces(a: Args) -> exp.Expr:
    if not _written(a[1], "what a text is split at"):
        raise SqlMistake("PostgreSQL cannot split a text at nothing", hint=INSTEAD)
    return _as("CASE WHEN {0} = '' THEN ARRAY[CAST('' AS text)] ELSE string_to_array({0}, {1}) END")(a)


def _json_path(node: exp.Expr) -> str:
    path = _written(node, "the path into JSON")
    if path.startswith("/"):
        raise SqlMistake(f"PostgreSQL knows paths into JSON such as `$.name`, not `{path}`", hint=INSTEAD)
    return path if path.startswith("$") else f"$.{path}"


def _json_text(a: Args) -> exp.Expr:
    made = _as("(jsonb_path_query_first(CAST({0} AS jsonb), CAST({1} AS jsonpath)) #>> '{{}}')")
    return made([a[0], exp.Literal.string(_json_path(a[1]))])


_ALIKE: Final = (
    "abs", "acos", "asin", "atan", "atan2", "cos", "sin", "tan", "cot", "degrees", "radians", "exp", "ln", "log10", "sqrt",
    "cbrt",
    "sign", "pi", "reverse", "repeat", "lpad", "rpad", "replace", "translate", "concat", "concat_ws", "md5", "ascii", "chr",
    "greatest",
    "least", "coalesce", "nullif", "floor", "ceil", "ceiling", "trunc", "left", "right", "strpos", "starts_with",
    "split_part", "gcd",
    "lcm", "factorial", "make_date", "make_timestamp", "sum", "count", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "corr",
    "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "bool_and", "bool_or", "bit_and",
    "bit_or",
    "bit_xor", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value",
    "last_value",
    "nth_value", "array_to_string", "array_length", "cardinality", "char_length", "random",
)  # fmt: skip

_CONTAINS = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN array_position({0}, {1}) IS NOT NULL END"
_ROUNDED = "trunc({0}) + CASE WHEN abs({0} - trunc({0})) >= 0.5 THEN sign({0}) ELSE 0 END"
FUNCTIONS: Final[dict[str, Make]] = {name: renamed(name) for name in _ALIKE} | {
    "pow": renamed("power"), "power": _as("power(CAST({0} AS double precision), {1})"), "ifnull": renamed("coalesce"),
    "log": lambda a: call("log10", *a) if len(a) == 1 else call("log", *(exp.Cast(this=one, to=_type("numeric")) for one in a)),
    "log2": _as("(ln(CAST({0} AS double precision)) / ln(CAST(2 AS double precision)))"), "isnan": _as("({0} = 'NaN')"),
    "mean": _as("avg(CAST({0} AS double precision))"), "avg": _as("avg(CAST({0} AS double precision))"),
    "uuid": lambda a: call("gen_random_uuid"), "gen_random_uuid": lambda a: call("gen_random_uuid"),
    "stddev": _as("stddev_samp(CAST({0} AS double precision))"), "variance": _as("var_samp(CAST({0} AS double precision))"),
    "any_value": lambda a: _one_of(call("array_agg", a[0]), _there(a[0])), "arbitrary": _first(False),
    "first": _first(False), "last": _first(True), "arg_max": _best(True), "arg_min": _best(False), "argmax": _best(True),
    "argmin": _best(False), "max_by": _best(True), "min_by": _best(False),
    "median": _quantile("percentile_cont", exp.Literal.number("0.5")),
    "quantile_cont": _quantile("percentile_cont"), "quantile_disc": _quantile("percentile_disc"), "mode": _mode,
    "list": _listed, "array_agg": _listed, "string_agg": _joined, "group_concat": _joined, "listagg": _joined,
    "count_star": lambda a: call("count", exp.Star()), "approx_count_distinct": _as("count(DISTINCT {0})"),
    "count_if": _as("sum(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    "countif": _as("sum(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    # Text
    "lower": _lettered("lower"), "lcase": _lettered("lower"), "upper": _lettered("upper"), "ucase": _lettered("upper"),
    "trim": _trimmed("BOTH"), "ltrim": _trimmed("LEADING"), "rtrim": _trimmed("TRAILING"), "strlen": renamed("octet_length"),
    "instr": renamed("strpos"), "contains": _as("(strpos({0}, {1}) > 0)"), "prefix": renamed("starts_with"),
    "ends_with": _as("(right({0}, length({1})) = {1})"), "suffix": _as("(right({0}, length({1})) = {1})"),
    "substring": _sub, "substr": _sub, "sha256": _as("encode(sha256(convert_to({0}, 'UTF8')), 'hex')"),
    "string_split": _pieces, "str_split": _pieces, "split": _pieces, "regexp_matches": _matches,
    "regexp_full_match": _matches_fully, "regexp_extract": _extracted, "regexp_extract_all": _extracted_all,
    "regexp_replace": _replaced, "unicode": renamed("ascii"), "to_base64": _as("encode({0}, 'base64')"),
    "from_base64": _as("decode({0}, 'base64')"), "from_hex": _as("decode({0}, 'hex')"), "unhex": _as("decode({0}, 'hex')"),
    "encode": _as("convert_to({0}, 'UTF8')"), "decode": _as("convert_from({0}, 'UTF8')"),
    # Dates
    **{unit: _part(unit) for unit in ("year", "month", "day", "hour", "minute", "quarter", "week", *_PARTS)},
    "second": _as("CAST(floor(date_part('second', {0})) AS bigint)"), "dayname": _as("to_char({0}, 'FMDay')"),
    "monthname": _as("to_char({0}, 'FMMonth')"), "date_part": _named_part, "datepart": _named_part,
    "today": lambda a: exp.Cast(this=call("now"), to=_type("date")),
    "current_date": lambda a: exp.Cast(this=call("now"), to=_type("date")),
    "now": lambda a: call("now"), "get_current_timestamp": lambda a: call("now"), "date_trunc": _truncated,
    "datetrunc": _truncated, "date_diff": _difference, "datediff": _difference, "date_add": _as("({0} + {1})"),
    "last_day": _as("CAST(date_trunc('month', CAST({0} AS timestamp)) + interval '1 month' - interval '1 day' AS date)"),
    "epoch": _as("date_part('epoch', {0})"), "epoch_ms": _as("CAST(floor(date_part('epoch', {0}) * 1000) AS bigint)"),
    "strptime": _moment(False), "try_strptime": _moment(True),
    "range": lambda a: _as("ARRAY(SELECT generate_series({0}, {1} - 1))")(a if len(a) > 1 else [tree_of(0), *a]),
    "to_timestamp": _as("to_timestamp({0})"), "strftime": lambda a: call("to_char", a[0], _format(a[1])),
    **{f"to_{unit}s": _as(f"({{0}} * interval '1 {unit}')") for unit in ("second", "minute", "hour", "day", "week",
    "month", "year")},
    # Lists, JSON
    "list_contains": _as(_CONTAINS), "array_contains": _as(_CONTAINS), "list_has": _as(_CONTAINS),
    "list_position": renamed("array_position"), "list_concat": renamed("array_cat"),
    "list_value": lambda a: exp.Array(expressions=a), "json_extract_string": _json_text, "json_extract_path_text": _json_text,
    "json_valid": _as("({0} IS JSON)"),
    "list_extract": lambda a: exp.Bracket(this=exp.Paren(this=a[0]), expressions=[a[1]], offset=1, safe=False),
}  # fmt: skip


# ---- Queries


def postgres_query(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> str:
    """The query for PostgreSQL, over tables named like its inputs in lower case. `columns_of` gives the columns of a part of it.
    Raises SqlMistake."""
    try:
        tree = read(query)
        is_short = any(is_modified(star) for star in tree.find_all(exp.Star)) or tree.find(exp.Columns, exp.Qualify)
        if is_short or names_its_own(tree, inputs):
            tree = spelled_out(tree, inputs)
        match_names(tree, columns_of)
        return _text_of(_Translation(inputs).whole(tree))
    except SqlglotError as broken:
        raise SqlMistake(f"this cannot be said in PostgreSQL's SQL: {broken}", hint=INSTEAD) from broken


def _text_of(tree: exp.Expr) -> str:
    for node in tree.find_all(exp.Identifier):
        node.set("this", str(node.this).lower())
        node.set("quoted", True)
    try:
        return tree.sql(dialect=_DIALECT, normalize_functions=False, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as broken:
        raise SqlMistake(f"this cannot be said in PostgreSQL's SQL: {broken}", hint=INSTEAD) from broken


_AGGREGATES_OF_LISTS = ("array_agg",)
_FAMILY = "family"


class _Translation(Translation):
    def __init__(self, inputs: Mapping[str, Schema]) -> None:
        super().__init__(inputs)
        self._carried = {one.name.lower() for schema in inputs.values() for one in schema if is_carried(one.type)}

    def family(self, node: exp.Expr) -> str | None:
        return node.meta.get(_FAMILY) or super().family(node)

    def prepare(self, tree: exp.Expr) -> None:
        for join in list(tree.find_all(exp.Join)):
            if str(join.args.get("kind", "")).upper() in ("SEMI", "ANTI") and join.args.get("using"):
                spell_using(join)
        if any(node.args.get("all") for node in tree.find_all(exp.Group)):
            raise SqlMistake("PostgreSQL has no GROUP BY ALL; name the columns", hint=INSTEAD)

    def node(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Anonymous() if TRANSLATED in node.meta:
                return node
            case exp.Anonymous() | exp.AnonymousAggFunc():
                return self._called(node)
            case exp.Column() if node.name.lower() in self._carried and not _is_passed_on(node):
                raise SqlMistake(
                    f"nothing can be computed with `{node.name}` in PostgreSQL, which carries it as JSON", hint=INSTEAD
                )
            case exp.Div():
                double = exp.Cast(this=node.this, to=_type("double precision"))
                return exp.Div(
                    this=double, expression=call("nullif", closed(node.expression), 0), typed=True, safe=False
                )
            case exp.IntDiv():
                if "float" in (self.family(node.this), self.family(node.expression)):
                    raise SqlMistake("PostgreSQL divides whole numbers only with `//`", hint=INSTEAD)
                divided = exp.Div(
                    this=closed(node.this),
                    expression=call("nullif", closed(node.expression), 0),
                    typed=True,
                    safe=False,
                )
                return call("trunc", divided)
            case exp.Mod():
                return exp.Mod(this=closed(node.this), expression=call("nullif", closed(node.expression), 0))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Coalesce() | exp.Extract() | exp.Case():
                return (
                    exp.Cast(this=node.copy(), to=_type("bigint"))
                    if isinstance(node, exp.Extract) and _is_whole(node)
                    else node
                )
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                if isinstance(node, exp.ILike):
                    node.set("this", _collated(node.this, "default"))
                # A backslash is only a backslash in DuckDB, and an escape there.
                return exp.Escape(this=node.copy(), expression=exp.Literal.string(""))
            case exp.SimilarTo() | exp.Glob():
                raise SqlMistake(f"PostgreSQL has no `{node.key.upper()}` that does the same", hint=INSTEAD)
            case exp.IgnoreNulls() | exp.RespectNulls():
                raise SqlMistake("PostgreSQL has no `IGNORE NULLS`", hint=INSTEAD)
            case exp.Lambda() if _of_list(node.parent):
                return node
            case exp.Struct() | exp.Map() | exp.Dot() | exp.Lambda() | exp.JSONExtract() | exp.JSONExtractScalar():
                raise SqlMistake(f"this has no counterpart in PostgreSQL: `{node.sql(dialect=DIALECT)}`", hint=INSTEAD)
            case exp.Bracket() if TRANSLATED not in node.meta:
                return self._element(node)
            case exp.Filter() if isinstance(node.this, exp.Bracket):
                return _filtered(node)
            case exp.Window() if isinstance(node.this, (exp.Bracket, exp.WithinGroup, exp.Filter)) and node.this.find(
                exp.Bracket, exp.WithinGroup
            ):
                raise SqlMistake("PostgreSQL has no such aggregate over a window", hint=INSTEAD)
            case exp.Explode() | exp.Unnest() if not isinstance(node.parent, exp.From | exp.Join):
                return call("unnest", node.expressions[0] if isinstance(node, exp.Unnest) else node.this)
            case exp.Table() if isinstance(node.this, exp.Func):
                return self._source(node)
            case exp.Join() if str(node.args.get("method", "")).upper() in ("ASOF", "POSITIONAL"):
                raise SqlMistake(f"PostgreSQL has no {node.args['method']} join", hint=INSTEAD)
            case exp.Pivot() | exp.TableSample():
                raise SqlMistake(f"PostgreSQL has no {node.key.upper()} of this kind", hint=INSTEAD)
        return node

    def _called(self, node: exp.Anonymous | exp.AnonymousAggFunc) -> exp.Expr:
        called = str(node.this).lower()
        if isinstance(node.parent, exp.Table):
            return node
        given = list(node.expressions)
        kind = self.family(given[0]) if given else None
        if called == "round":
            return self._rounded(given, kind)
        if called in ("length", "len"):
            return call("cardinality" if kind == "list" else "length", *given)
        if called == "contains" and kind == "list":
            called = "list_contains"
        if kind == "boolean" and called in ("min", "max"):
            return call("bool_and" if called == "min" else "bool_or", *given)
        if called in ("min", "max"):
            if len(given) > 1:
                raise SqlMistake(f"PostgreSQL gives the one {called}, not several", hint=INSTEAD)
            return call(called, *given)
        if kind == "boolean" and called == "sum":
            return call("sum", exp.Cast(this=given[0], to=_type("integer")))
        if called == "array_length" or (called == "cardinality" and kind == "list"):
            return call("cardinality", given[0])
        if called in _TRANSFORMING | _FILTERING:
            return _for_each(given, is_filter=called in _FILTERING)
        make = FUNCTIONS.get(called)
        if make is None:
            raise SqlMistake(f"there is no `{called}` in PostgreSQL that does the same", hint=INSTEAD)
        return make(given)

    def _rounded(self, given: Args, kind: str | None) -> exp.Expr:
        """Half goes away from zero; PostgreSQL takes the even neighbour of a DOUBLE."""
        if kind != "float":
            return call("round", *given)
        if len(given) == 1:
            return _as(f"({_ROUNDED})")(given)
        scale = "power(CAST(10 AS double precision), {1})"
        moved = _ROUNDED.replace("{0}", f"({{0}} * {scale})")
        return _as(f"(({moved}) / {scale})")(given)

    def _cast(self, node: exp.Cast) -> exp.Expr:
        wanted = exp.DataType.build(node.to.sql(dialect=DIALECT), dialect=DIALECT, udt=True)
        spelled = wanted.sql(dialect=DIALECT)
        if is_carried(spelled):
            raise SqlMistake(f"PostgreSQL has no type for `{spelled}`", kind="type", hint=INSTEAD)
        made = exp.Cast(this=node.this, to=_type(_postgres_type(wanted)))
        if not isinstance(node, exp.TryCast):
            return made
        valid = call("pg_input_is_valid", _text(node.this.copy()), _postgres_type(wanted))
        return exp.Case(ifs=[exp.If(this=valid, true=exp.Cast(this=_text(node.this), to=made.to))])

    def _element(self, node: exp.Bracket) -> exp.Expr:
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice) or self.family(node.this) == "map":
            raise SqlMistake("PostgreSQL takes one element of a list", hint=INSTEAD)
        (index,) = node.expressions
        if isinstance(index, exp.Literal) and index.is_string:
            raise SqlMistake("PostgreSQL has no fields of structures", hint=INSTEAD)
        # sqlglot has counted from zero in the tree.
        offset = node.args.get("offset") or 0
        shifted = (
            index
            if offset == 1
            else exp.Literal.number(int(index.this) + 1)
            if index.is_int
            else exp.Add(this=index, expression=exp.Literal.number(1))
        )
        made = exp.Bracket(this=exp.Paren(this=node.this), expressions=[shifted], offset=1, safe=False)
        made.meta[TRANSLATED] = True
        return made

    def _source(self, node: exp.Table) -> exp.Expr:
        made = node.this
        called = str(made.this).lower() if isinstance(made, exp.Anonymous) else made.sql_name().lower()
        if called not in ("range", "generate_series", "unnest"):
            raise SqlMistake(f"there is no `{called}` in PostgreSQL that does the same", hint=INSTEAD)
        given = list(made.expressions)
        alias = node.args.get("alias")
        if alias is None or not alias.args.get("columns"):
            shown = alias.this if alias is not None else name(called)
            node.set("alias", exp.TableAlias(this=shown, columns=[name(called)]))
        if called == "range":
            start, end = (given[0], given[1]) if len(given) > 1 else (tree_of(0), given[0])
            if len(given) > 2:
                raise SqlMistake("PostgreSQL counts with `range` by ones", hint=INSTEAD)
            node.set("this", call("generate_series", start, exp.Sub(this=closed(end), expression=tree_of(1))))
        else:
            node.set("this", call("unnest" if called == "unnest" else "generate_series", *given))
        return node


_TRANSFORMING: Final = frozenset({"list_transform", "array_transform", "apply"})
_FILTERING: Final = frozenset({"list_filter", "array_filter", "filter"})


def _of_list(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in _TRANSFORMING | _FILTERING


def _for_each(given: Args, *, is_filter: bool) -> exp.Expr:
    """A list made of another, element by element, in its order."""
    each = given[1]
    if not isinstance(each, exp.Lambda) or len(each.expressions) != 1:
        raise SqlMistake("PostgreSQL makes a list of another by a lambda of one element", hint=INSTEAD)
    element = str(each.expressions[0].this).lower()
    chosen, where = (f'"{element}"', "WHERE {1} ") if is_filter else ("{1}", "")
    listed = f'SELECT {chosen} FROM unnest({{0}}) WITH ORDINALITY AS listed("{element}", place) {where}ORDER BY place'
    made = _as(f"CASE WHEN {{0}} IS NOT NULL THEN ARRAY({listed}) END")([given[0], each.this])
    made.meta[_FAMILY] = "list"
    return made


def _is_whole(node: exp.Extract) -> bool:
    return str(node.this).lower() not in ("epoch", "second", "seconds")


def _is_passed_on(node: exp.Column) -> bool:
    parent = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    return isinstance(parent, exp.Select)


def _filtered(node: exp.Filter) -> exp.Expr:
    """Only the aggregate inside can leave rows out."""
    inner = next(one for one in node.this.find_all(exp.Anonymous) if str(one.this) in _AGGREGATES_OF_LISTS)
    asked = node.expression.this
    if isinstance(inner.parent, exp.Filter):
        where = inner.parent.expression
        where.set("this", exp.and_(where.this.copy(), asked.copy()))
    else:
        inner.replace(exp.Filter(this=inner.copy(), expression=exp.Where(this=asked.copy())))
    listed: exp.Expr = node.this
    return listed


class _Generator(PostgresGenerator):
    TRANSFORMS = {  # noqa: RUF012
        kind: make for kind, make in PostgresGenerator.TRANSFORMS.items() if kind not in (exp.TryCast, exp.Trim)
    }

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        return f"{expression.this}({self.format_args(*expression.expressions)})"


class _WritingPostgres(Postgres):
    Generator = _Generator


_DIALECT = _WritingPostgres()


def check(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> None:
    """Raises SqlMistake when no query there means the same. Files are read here, and their rows go there."""
    if inputs or not reads_files(query):
        postgres_query(query, inputs, columns_of)
    columns_of_table(columns_of(query))
