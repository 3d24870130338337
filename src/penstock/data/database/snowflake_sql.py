"""A query in DuckDB's dialect, as one that means the same in Snowflake.

Names are compared as DuckDB does, whatever their case: inside a query all of them are written in lower case and in quotes,
because Snowflake puts others in upper case; the columns that come out are named by their places. Only functions that are known
to mean the same are in the table; all others are refused, before the run.

Rows of a table have no order there, so each has its place in a column that no query of an author's sees: what takes rows as they
come goes by it, and a query that sorts numbers the rows that it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.errors import SqlglotError, UnsupportedError
from sqlglot.generators.snowflake import SnowflakeGenerator
from sqlglot.parsers.snowflake import SnowflakeParser

from penstock.data.select import DIALECT, SqlMistake, column, name, read
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
    match_names,
    names_its_own,
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
    "BOOLEAN": "BOOLEAN", "TINYINT": "NUMBER(38,0)", "SMALLINT": "NUMBER(38,0)", "UTINYINT": "NUMBER(38,0)",
    "INT": "NUMBER(38,0)", "USMALLINT": "NUMBER(38,0)", "BIGINT": "NUMBER(38,0)", "UINT": "NUMBER(38,0)",
    "UBIGINT": "NUMBER(38,0)", "INT128": "NUMBER(38,0)", "FLOAT": "FLOAT", "DOUBLE": "FLOAT", "VARCHAR": "VARCHAR",
    "TEXT": "VARCHAR", "JSON": "VARCHAR", "ENUM": "VARCHAR", "NULL": "VARCHAR", "UUID": "VARCHAR", "VARBINARY": "BINARY",
    "BINARY": "BINARY", "BLOB": "BINARY", "DATE": "DATE", "TIME": "TIME(6)", "TIMESTAMP": "TIMESTAMP_NTZ(6)",
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ(6)", "DATETIME": "TIMESTAMP_NTZ(6)", "TIMESTAMP_S": "TIMESTAMP_NTZ(6)",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ(6)", "TIMESTAMPTZ": "TIMESTAMP_TZ(6)", "TIMESTAMPLTZ": "TIMESTAMP_TZ(6)",
}  # fmt: skip
PLACE: Final = "#place"
LONGEST_NAME: Final = 255
"""Characters of a column's name."""


@lru_cache(maxsize=4096)
def snowflake_type(type: str) -> str:
    """The type in which Snowflake holds a column of a type of DuckDB's. Raises SqlMistake."""
    return _snowflake_type(exp.DataType.build(type.replace('"NULL"', "NULL"), dialect=DIALECT, udt=True))


def _snowflake_type(type: exp.DataType) -> str:
    kind = type.this.value if isinstance(type.this, exp.DType) else str(type.this)
    if kind == "DECIMAL":
        return f"NUMBER({','.join(str(one.this) for one in type.expressions)})" if type.expressions else "NUMBER(18,3)"
    found = _SAME.get(kind)
    if found is None:
        raise SqlMistake(f"Snowflake keeps no `{type.sql(DIALECT)}` here", kind="type", hint=INSTEAD)
    return found


def kept_column(expression: str, type: str) -> str:
    """An expression as a column of that type is kept."""
    return f"CAST({expression} AS {snowflake_type(type)})"


def columns_of_table(schema: Schema) -> str:
    for one in schema:
        if len(one.name) > LONGEST_NAME:
            raise SqlMistake(
                f"`{one.name}` is longer than the {LONGEST_NAME} characters of a name in Snowflake", hint=INSTEAD
            )
    return ", ".join(f"{quoted(one.name)} {snowflake_type(one.type)}" for one in schema)


# ---- Functions: DuckDB's name -> the same in Snowflake


class _ReadingSnowflake(Snowflake):
    """Snowflake's grammar, with every function as it was written."""

    class Parser(SnowflakeParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {name: SnowflakeParser.FUNCTION_PARSERS[name] for name in ("CAST",)}  # noqa: RUF012


_as = templates(_ReadingSnowflake())


def _type(kind: str) -> exp.DataType:
    return exp.DataType(this=exp.DType.USERDEFINED, kind=kind)


def _written(node: exp.Expr, what: str) -> str:
    return written_text(node, what, "Snowflake")


def _text(value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=_type("VARCHAR"))


def _joined(a: Args) -> exp.Expr:
    values, order = in_order(a)
    value, separator = values[0], values[1] if len(values) > 1 else exp.Literal.string(",")
    if isinstance(value, exp.Distinct):
        raise SqlMistake("Snowflake joins distinct values in an order of its own", hint=INSTEAD)
    # Of no text at all it makes an empty one.
    made: exp.Expr = call("LISTAGG", _text(value.copy()), separator)
    if order:
        made = exp.WithinGroup(this=made, expression=exp.Order(expressions=order))
    return exp.Case(ifs=[exp.If(this=exp.GT(this=call("COUNT", value), expression=tree_of(0)), true=made)])


def _quantile(at: exp.Expr | None = None) -> Make:
    def make(a: Args) -> exp.Expr:
        value = exp.Cast(this=a[0], to=_type("FLOAT"))
        order = exp.Order(expressions=[exp.Ordered(this=value, nulls_first=False)])
        return exp.WithinGroup(this=call("PERCENTILE_CONT", at.copy() if at is not None else a[1]), expression=order)

    return make


def _best(name: str) -> Make:
    def make(a: Args) -> exp.Expr:
        if len(a) != 2:
            raise SqlMistake("Snowflake gives the one value where a key is greatest", hint=INSTEAD)
        there = "{0} IS NOT NULL AND {1} IS NOT NULL"
        return _as(f"{name}({{0}}, CASE WHEN {there} THEN {{1}} END)")(a)

    return make


def _unit(node: exp.Expr) -> str:
    unit = _written(node, "the unit of time").lower().removesuffix("s")
    if unit not in ("year", "quarter", "month", "day", "hour", "minute", "second"):
        raise SqlMistake(f"Snowflake has no unit `{unit}` that does the same", hint=INSTEAD)
    return unit


def _concatenated(a: Args) -> exp.Expr:
    """NULL is nothing here, and everything in Snowflake."""
    return call("CONCAT", *(call("COALESCE", _text(one), "") for one in a))


def _sub(a: Args) -> exp.Expr:
    start = a[1]
    if not (isinstance(start, exp.Literal) and start.is_int and int(str(start.this)) > 0):
        raise SqlMistake("in Snowflake a part of a text begins at a place that is written out, from 1", hint=INSTEAD)
    return call("SUBSTR", *a)


def _end(function: str) -> Make:
    def make(a: Args) -> exp.Expr:
        if not (isinstance(a[1], exp.Literal) and a[1].is_int):
            raise SqlMistake(f"`{function.lower()}` takes a number that is written out in Snowflake", hint=INSTEAD)
        return call(function, *a)

    return make


_BLANKS: Final = "`{}` takes only blanks away in Snowflake here"


def _trimmed(function: str) -> Make:
    def make(a: Args) -> exp.Expr:
        if len(a) > 1:
            raise SqlMistake(_BLANKS.format(function.lower()), hint=INSTEAD)
        return call(function, *a)

    return make


def _extreme(condition: str) -> Make:
    """Of several values, those that are there."""

    def make(a: Args) -> exp.Expr:
        made = a[0]
        for other in a[1:]:
            build = f"CASE WHEN {{1}} IS NULL OR {{0}} {condition} {{1}} THEN {{0}} ELSE {{1}} END"
            made = exp.Coalesce(this=_as(build)([made, other]), expressions=[made.copy(), other.copy()])
        return made

    return make


_ALIKE: Final = (
    "abs", "acos", "asin", "atan", "atan2", "cos", "sin", "tan", "degrees", "radians", "exp", "ln", "sqrt", "sign", "pi",
    "reverse", "repeat", "lpad", "rpad", "replace", "translate", "md5", "coalesce", "nullif", "floor", "ceil",
    "lower", "upper", "sum", "count", "min", "max", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist",
    "ntile", "lag", "lead", "first_value", "contains", "split_part", "length",
    "stddev_samp", "stddev_pop", "var_samp", "var_pop", "corr", "covar_pop", "covar_samp", "any_value",
)  # fmt: skip
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "quarter")

FUNCTIONS: Final[dict[str, Make]] = {name: renamed(name.upper()) for name in _ALIKE} | {
    "ltrim": _trimmed("LTRIM"), "rtrim": _trimmed("RTRIM"),
    "left": _end("LEFT"), "right": _end("RIGHT"), "ifnull": renamed("COALESCE"), "ceiling": renamed("CEIL"),
    "len": renamed("LENGTH"), "char_length": renamed("LENGTH"),
    "lcase": renamed("LOWER"), "ucase": renamed("UPPER"), "starts_with": renamed("STARTSWITH"),
    "prefix": renamed("STARTSWITH"), "ends_with": renamed("ENDSWITH"), "suffix": renamed("ENDSWITH"),
    "strpos": lambda a: call("CHARINDEX", a[1], a[0]), "instr": lambda a: call("CHARINDEX", a[1], a[0]),
    "sha256": lambda a: call("SHA2", a[0], 256), "concat": _concatenated, "substr": _sub, "substring": _sub,
    "pow": _as("POWER(CAST({0} AS FLOAT), {1})"), "power": _as("POWER(CAST({0} AS FLOAT), {1})"),
    "log10": lambda a: call("LOG", 10, a[0]), "log2": lambda a: call("LOG", 2, a[0]),
    "greatest": _extreme(">="), "least": _extreme("<="),
    # Aggregates
    "avg": _as("AVG(CAST({0} AS FLOAT))"), "mean": _as("AVG(CAST({0} AS FLOAT))"),
    "stddev": _as("STDDEV_SAMP(CAST({0} AS FLOAT))"), "variance": _as("VAR_SAMP(CAST({0} AS FLOAT))"),
    "bool_or": renamed("BOOLOR_AGG"), "bool_and": renamed("BOOLAND_AGG"), "count_star": lambda a: call("COUNT", exp.Star()),
    "count_if": _as("SUM(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    "countif": _as("SUM(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    "median": _quantile(exp.Literal.number("0.5")), "quantile_cont": _quantile(),
    "string_agg": _joined, "group_concat": _joined, "listagg": _joined,
    "arg_max": _best("MAX_BY"), "argmax": _best("MAX_BY"), "max_by": _best("MAX_BY"),
    "arg_min": _best("MIN_BY"), "argmin": _best("MIN_BY"), "min_by": _best("MIN_BY"),
    "approx_count_distinct": _as("COUNT(DISTINCT {0})"),
    # Dates
    **{unit: renamed(unit.upper()) for unit in _PARTS}, "last_day": renamed("LAST_DAY"),
    "date_trunc": lambda a: call("DATE_TRUNC", _unit(a[0]), exp.Cast(this=a[1], to=_type("TIMESTAMP_NTZ"))),
    "datetrunc": lambda a: call("DATE_TRUNC", _unit(a[0]), exp.Cast(this=a[1], to=_type("TIMESTAMP_NTZ"))),
    "date_diff": lambda a: call("DATEDIFF", _unit(a[0]), a[1], a[2]),
    "datediff": lambda a: call("DATEDIFF", _unit(a[0]), a[1], a[2]),
    "today": lambda a: call("CURRENT_DATE"), "current_date": lambda a: call("CURRENT_DATE"),
}  # fmt: skip


# ---- Queries


def snowflake_query(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> str:
    """The query for Snowflake, over tables named like its inputs in lower case, whose last column is the place of a row; so is
    its own. `columns_of` gives the columns of a part of it. Raises SqlMistake."""
    try:
        tree = read(query)
        match_names(tree, columns_of)
        has_stars = any(isinstance(star.parent, exp.Select | exp.Column) for star in tree.find_all(exp.Star))
        if has_stars or tree.find(exp.Columns) or names_its_own(tree, inputs):
            tree = spelled_out(tree, inputs)
        tree = _placed(_query(tree), {name.lower() for name in inputs})
        return _text_of(_Translation(inputs).whole(tree))
    except SqlglotError as broken:
        raise SqlMistake(f"this cannot be said in Snowflake's SQL: {broken}", hint=INSTEAD) from broken


# ---- The places of rows


_BY_PLACES: Final = frozenset(
    {"row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "percent_rank", "cume_dist"}
)
_AGGREGATES: Final = frozenset(
    {
        *(
            "sum",
            "count",
            "count_star",
            "min",
            "max",
            "avg",
            "mean",
            "median",
            "variance",
            "bool_or",
            "bool_and",
            "corr",
        ),
        *("stddev", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "covar_pop", "covar_samp", "any_value"),
        *("count_if", "countif", "quantile_cont", "string_agg", "group_concat", "listagg", "approx_count_distinct"),
        *("arg_max", "argmax", "max_by", "arg_min", "argmin", "min_by"),
    }
)


def _placed(tree: exp.Query, inputs: set[str]) -> exp.Expr:
    for select in list(tree.find_all(exp.Select)):
        _go_by_places(select, inputs)
    if not isinstance(tree, exp.Select):
        return _around(tree)
    order = tree.args.get("order")
    if order is not None:
        keys = [_key(one, tree.selects) for one in order.expressions]
        if tree.args.get("distinct") or any(key.find(exp.Window) for key in keys):
            return _around(tree)
        return tree.select(_numbered(keys), copy=False)
    if tree.args.get("distinct"):
        return _around(tree)
    source = _source(tree, inputs)
    is_plain = source is not None and not (tree.args.get("group") or _aggregates(tree))
    place = column(PLACE, source) if is_plain else tree_of(0)
    return tree.select(exp.alias_(place, name(PLACE)), copy=False)


def _query(tree: exp.Expr) -> exp.Query:
    if not isinstance(tree, exp.Query):
        raise SqlMistake("this is no query that Snowflake knows", hint=INSTEAD)
    return tree


def _around(tree: exp.Query) -> exp.Expr:
    """Rows that are numbered when there are no more to come, by columns that the query gives."""
    named = [one.alias_or_name for one in tree.selects]
    made = exp.Select(
        expressions=[column(one) for one in named],
        from_=exp.From(this=exp.Subquery(this=tree, alias=exp.TableAlias(this=name("all_rows")))),
    )
    order = tree.args.get("order")
    if order is None:
        return made.select(exp.alias_(tree_of(0), name(PLACE)), copy=False)
    keys = [one.copy() for one in order.expressions]
    for key in keys:
        if not isinstance(key.this, exp.Column) or key.this.name.lower() not in {one.lower() for one in named}:
            raise SqlMistake("in Snowflake such rows are sorted by columns that the query gives", hint=INSTEAD)
        key.this.set("table", None)
    return made.select(_numbered(keys), copy=False)


def _source(select: exp.Select, inputs: set[str]) -> str | None:
    """The one input that a SELECT reads, as it calls it."""
    read_from = select.args.get("from_")
    table = read_from.this if read_from is not None else None
    if not isinstance(table, exp.Table) or table.name.lower() not in inputs or select.args.get("joins"):
        return None
    return table.alias_or_name


def _go_by_places(select: exp.Select, inputs: set[str]) -> None:
    source = _source(select, inputs)

    def order() -> exp.Order:
        if source is None or select.args.get("group") or select.args.get("distinct"):
            raise SqlMistake("rows have no order in Snowflake, so none is the first of these", hint=INSTEAD)
        return exp.Order(expressions=[exp.Ordered(this=column(PLACE, source), nulls_first=False)])

    for window in select.find_all(exp.Window):
        called = str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else ""
        if called in _BY_PLACES and not window.args.get("order") and window.find_ancestor(exp.Select) is select:
            window.set("order", order())
    if (select.args.get("limit") or select.args.get("offset")) and not select.args.get("order"):
        select.set("order", order())


def _key(one: exp.Ordered, chosen: list[exp.Expr]) -> exp.Ordered:
    """A key by which a query sorts, without the names that it gives itself: a window does not know them."""
    made, key = one.copy(), one.this
    if isinstance(key, exp.Literal) and key.is_int:
        made.set("this", chosen[int(str(key.this)) - 1].unalias().copy())
    elif isinstance(key, exp.Column) and not key.table:
        own = [each.this for each in chosen if isinstance(each, exp.Alias) and each.alias.lower() == key.name.lower()]
        if own:
            made.set("this", own[0].copy())
    return made


def _numbered(keys: list[exp.Ordered]) -> exp.Expr:
    window = exp.Window(this=exp.Anonymous(this="row_number"), order=exp.Order(expressions=keys), over="OVER")
    return exp.alias_(window, name(PLACE))


def _aggregates(select: exp.Select) -> bool:
    for node in select.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        around = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        is_one = str(node.this).lower() in _AGGREGATES and not isinstance(around, exp.Window)
        if is_one and node.find_ancestor(exp.Select) is select:
            return True
    return False


def _text_of(tree: exp.Expr) -> str:
    for node in tree.find_all(exp.Identifier):
        node.set("this", str(node.this).lower())
        node.set("quoted", True)
    try:
        return tree.sql(dialect=_DIALECT, normalize_functions=False, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as broken:
        raise SqlMistake(f"this cannot be said in Snowflake's SQL: {broken}", hint=INSTEAD) from broken


_REFUSED = (
    exp.SimilarTo, exp.Glob, exp.Struct, exp.Map, exp.Dot, exp.Lambda, exp.JSONExtract, exp.JSONExtractScalar, exp.Array,
    exp.Bracket, exp.Explode, exp.Unnest, exp.Pivot, exp.TableSample, exp.Slice,
)  # fmt: skip
_CASTS_OF_TEXT: Final = ("BOOLEAN", "DATE", "FLOAT")


class _Translation(Translation):
    def prepare(self, tree: exp.Expr) -> None:
        for join in list(tree.find_all(exp.Join)):
            if str(join.args.get("kind", "")).upper() in ("SEMI", "ANTI"):
                if join.args.get("using"):
                    spell_using(join)
                _spell_asking(join)
        for ordered in tree.find_all(exp.Ordered):
            # Said in every case: NULL is last here however the order goes, and the greatest value there.
            ordered.set("nulls_first", bool(ordered.args.get("nulls_first")))
        if any(node.args.get("all") for node in tree.find_all(exp.Group)):
            raise SqlMistake("a GROUP BY ALL is not carried to Snowflake; name the columns", hint=INSTEAD)

    def node(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Anonymous() if TRANSLATED in node.meta:
                return node
            case exp.Anonymous() | exp.AnonymousAggFunc():
                return self._called(node)
            case exp.Div():
                double = exp.Cast(this=node.this, to=_type("FLOAT"))
                return exp.Div(
                    this=double, expression=call("NULLIF", closed(node.expression), 0), typed=True, safe=False
                )
            case exp.IntDiv():
                if "float" in (self.family(node.this), self.family(node.expression)):
                    raise SqlMistake("Snowflake divides whole numbers only with `//`", hint=INSTEAD)
                # By the rest, because the quotient of two numbers has no more than six digits more there.
                build = "CAST(({0} - MOD({0}, NULLIF({1}, 0))) / NULLIF({1}, 0) AS NUMBER(38,0))"
                return _as(build)([node.this, node.expression])
            case exp.Mod():
                return call("MOD", node.this, call("NULLIF", node.expression, 0))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.IgnoreNulls() | exp.RespectNulls():
                raise SqlMistake("`IGNORE NULLS` is not carried to Snowflake", hint=INSTEAD)
            case exp.Trim() if node.args.get("expression") or node.args.get("position"):
                raise SqlMistake(_BLANKS.format("trim"), hint=INSTEAD)
            case exp.Interval():
                raise SqlMistake("intervals are not carried to Snowflake; `d + 3` adds days", hint=INSTEAD)
            case exp.Filter():
                return _filtered(node)
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                build = (
                    "CASE WHEN {0} THEN TRUE ELSE FALSE END"
                    if node.expression.this
                    else "CASE WHEN NOT {0} THEN TRUE ELSE FALSE END"
                )
                return _as(build)([node.this])
            case exp.Window() if node.this.find(exp.WithinGroup):
                raise SqlMistake("Snowflake has no such aggregate over a window", hint=INSTEAD)
            case exp.Extract():
                unit = str(node.this).lower()
                if unit not in _PARTS:
                    raise SqlMistake(f"Snowflake has no part `{unit}` that does the same", hint=INSTEAD)
                return call(unit.upper(), node.expression)
            case exp.Table() if isinstance(node.this, exp.Func):
                raise SqlMistake(f"there is no table `{node.this.sql(dialect=DIALECT)}` in Snowflake", hint=INSTEAD)
            case exp.Join() if str(node.args.get("method", "")).upper() in ("ASOF", "POSITIONAL"):
                raise SqlMistake(f"Snowflake has no {node.args['method']} join that does the same", hint=INSTEAD)
            case _ if isinstance(node, _REFUSED):
                raise SqlMistake(f"this is not carried to Snowflake: `{node.sql(dialect=DIALECT)}`", hint=INSTEAD)
        return node

    def _called(self, node: exp.Anonymous | exp.AnonymousAggFunc) -> exp.Expr:
        called, given = str(node.this).lower(), list(node.expressions)
        kind = self.family(given[0]) if given else None
        if called in ("length", "len", "contains") and kind == "list":
            raise SqlMistake("lists are not carried to Snowflake", hint=INSTEAD)
        if called in ("min", "max", "any_value") and (kind == "boolean" or len(given) > 1):
            raise SqlMistake(f"this `{called}` is not carried to Snowflake", hint=INSTEAD)
        if called == "sum" and kind == "boolean":
            return call("SUM", exp.Cast(this=given[0], to=_type("NUMBER(38,0)")))
        if called in ("round", "trunc"):
            # Both halve away from zero.
            return call(called.upper(), *given)
        make = FUNCTIONS.get(called)
        if make is None:
            raise SqlMistake(f"there is no `{called}` for Snowflake here that does the same", hint=INSTEAD)
        return make(given)

    def _cast(self, node: exp.Cast) -> exp.Expr:
        wanted = _snowflake_type(exp.DataType.build(node.to.sql(dialect=DIALECT), dialect=DIALECT, udt=True))
        if wanted.startswith("NUMBER") and self.family(node.this) == "float" and wanted == "NUMBER(38,0)":
            # DuckDB takes the even neighbour of a half.
            build = "CAST(CASE WHEN ABS({0} - TRUNC({0})) = 0.5 THEN 2 * ROUND({0} / 2) ELSE ROUND({0}) END AS NUMBER(38,0))"
            if isinstance(node, exp.TryCast):
                raise SqlMistake("a DOUBLE is tried as no whole number in Snowflake", hint=INSTEAD)
            return _as(build)([closed(node.this)])
        if wanted == "VARCHAR" and self.family(node.this) == "date":
            return call("TO_VARCHAR", node.this, "YYYY-MM-DD")
        if wanted == "VARCHAR" and self._may_be_odd(node.this):
            raise SqlMistake("Snowflake writes such numbers and times otherwise as text", hint=INSTEAD)
        if not isinstance(node, exp.TryCast):
            return exp.Cast(this=node.this, to=_type(wanted))
        if self.family(node.this) not in ("text", None):
            return exp.Cast(this=node.this, to=_type(wanted))
        return exp.TryCast(this=_text(node.this), to=_type(wanted))

    def _may_be_odd(self, node: exp.Expr) -> bool:
        """Is it perhaps a value that is written otherwise there?"""
        odd, found = ("float", "timestamp", "time"), self.family(node)
        return (
            found in odd
            if found is not None
            else any(self.family(one) in (*odd, None) for one in node.find_all(exp.Column))
        )


def _filtered(node: exp.Filter) -> exp.Expr:
    """Rows that do not count give NULL to the aggregate."""
    aggregate, asked = node.this, node.expression.this
    if not isinstance(aggregate, exp.Anonymous) or len(aggregate.expressions) != 1:
        raise SqlMistake("a FILTER of such an aggregate is not carried to Snowflake", hint=INSTEAD)
    (value,) = aggregate.expressions
    if isinstance(value, exp.Star):
        value = tree_of(1)
    if isinstance(value, exp.Distinct):
        inner = exp.Case(ifs=[exp.If(this=asked.copy(), true=value.expressions[0].copy())])
        return call(str(aggregate.this), exp.Distinct(expressions=[inner]))
    return call(str(aggregate.this), exp.Case(ifs=[exp.If(this=asked.copy(), true=value.copy())]))


def _spell_asking(join: exp.Join) -> None:
    """A join that only asks whether there is a row, as a question."""
    select = join.find_ancestor(exp.Select)
    assert select is not None
    inner = exp.Select(expressions=[tree_of(1)], from_=exp.From(this=join.this.copy()))
    if join.args.get("on") is not None:
        inner = inner.where(join.args["on"].copy())
    found: exp.Expr = exp.Exists(this=inner)
    if str(join.args["kind"]).upper() == "ANTI":
        found = exp.Not(this=found)
    join.pop()
    select.where(found, copy=False)


class _Generator(SnowflakeGenerator):
    TRANSFORMS = {  # noqa: RUF012
        kind: make for kind, make in SnowflakeGenerator.TRANSFORMS.items() if kind not in (exp.Select, exp.TryCast)
    }

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        return f"{expression.this}({self.format_args(*expression.expressions)})"

    def trycast_sql(self, expression: exp.TryCast) -> str:
        return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"


class _WritingSnowflake(Snowflake):
    Generator = _Generator


_DIALECT = _WritingSnowflake()


def check(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> None:
    """Raises SqlMistake when no query there means the same. Rows that come of no others are made here, and go there."""
    if inputs:
        snowflake_query(query, inputs, columns_of)
    for schema in (*inputs.values(), columns_of(query)):
        columns_of_table(schema)
