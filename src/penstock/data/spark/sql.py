"""A query in DuckDB's dialect, as one that means the same on Spark.

Structure goes through sqlglot; functions through the one table below. What is not in it is refused, before the run: a function
that only has the same name would be found when it is too late. Types are DuckDB's everywhere in Penstock: the columns of a
query are those that DuckDB finds, and Spark's are cast to their counterparts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError, UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from penstock.data.select import DIALECT, SqlMistake, column, name, read
from penstock.data.translation import (
    INSTEAD,
    POSITIONS,
    SCANS,
    TRANSLATED,
    Args,
    Make,
    Translation,
    call,
    closed,
    in_order,
    is_modified,
    match_names,
    renamed,
    spelled_out,
    templates,
    tree_of,
    written_text,
)
from penstock.ports.rows import Schema, SqlText

# ---- Types

_SAME: Final = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT",
    "INT128": "DECIMAL(38,0)", "UINT128": "DECIMAL(38,0)", "BIGNUM": "DECIMAL(38,0)", "UTINYINT": "SMALLINT",
    "USMALLINT": "INT", "UINT": "BIGINT", "UBIGINT": "DECIMAL(20,0)", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING", "TEXT": "STRING", "JSON": "STRING", "UUID": "STRING", "ENUM": "STRING", "INTERVAL": "STRING",
    "TIME": "STRING", "TIMETZ": "STRING", "BIT": "STRING", "NULL": "STRING", "VARBINARY": "BINARY", "BINARY": "BINARY",
    "DATE": "DATE", "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMPNTZ": "TIMESTAMP_NTZ", "DATETIME": "TIMESTAMP_NTZ",
    "TIMESTAMP_S": "TIMESTAMP_NTZ", "TIMESTAMP_MS": "TIMESTAMP_NTZ", "TIMESTAMP_NS": "TIMESTAMP_NTZ",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ", "TIMESTAMPLTZ": "TIMESTAMP_LTZ",
}  # fmt: skip
AS_TEXT: Final = frozenset({"INTERVAL", "TIME", "TIMETZ", "BIT"})
"""Types that Spark has not: their values are carried as text, and nothing can be computed with them there."""


@lru_cache(maxsize=4096)
def spark_type(type: str) -> str:
    """The type in which Spark holds a column of a type of DuckDB's. Raises SqlMistake."""
    return _spark_type(exp.DataType.build(type.replace('"NULL"', "NULL"), dialect=DIALECT, udt=True))


def _spark_type(type: exp.DataType) -> str:
    kind = type.this.value if isinstance(type.this, exp.DType) else str(type.this)
    inner = type.expressions
    match kind:
        case "DECIMAL":
            return f"DECIMAL({','.join(str(one.this) for one in inner)})" if inner else "DECIMAL(18,3)"
        case "LIST" | "ARRAY":
            return f"ARRAY<{_spark_type(inner[0])}>"
        case "STRUCT":
            fields = (f"{ticked(one.this.name)}: {_spark_type(one.args['kind'])}" for one in inner)
            return f"STRUCT<{', '.join(fields)}>"
        case "MAP":
            return f"MAP<{_spark_type(inner[0])}, {_spark_type(inner[1])}>"
    found = _SAME.get(kind)
    if found is None:
        raise SqlMistake(f"Spark has no type for `{type.sql(DIALECT)}`", kind="type")
    return found


def ticked(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def spark_schema(schema: Schema) -> str:
    return ", ".join(f"{ticked(column.name)} {spark_type(column.type)}" for column in schema)


def cast_columns(found: Sequence[str], schema: Schema) -> list[str]:
    """Expressions that give the columns of a schema, by position, out of columns that Spark calls `found`."""
    return [
        f"CAST({ticked(old)} AS {spark_type(new.type)}) AS {ticked(new.name)}"
        for old, new in zip(found, schema, strict=True)
    ]


# ---- Functions: DuckDB's name -> the same on Spark


def _written(node: exp.Expr, what: str) -> str:
    return written_text(node, what, "Spark")


def _quoted_pattern(node: exp.Expr) -> exp.Expr:
    """A text as a pattern that only finds itself."""
    if isinstance(node, exp.Literal) and node.is_string:
        return exp.Literal.string(re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", str(node.this)))
    return call("concat", "\\Q", node, "\\E")


def _pattern(node: exp.Expr, options: exp.Expr | None = None, around: tuple[str, str] = ("", "")) -> exp.Expr:
    flags = "" if options is None else _written(options, "the option of a pattern").replace("g", "").replace("c", "")
    if not set(flags) <= {"i", "s", "m"}:
        raise SqlMistake(f"Spark has no option `{flags}` for patterns")
    before, after = (f"(?{flags})" if flags else "") + around[0], around[1]
    if isinstance(node, exp.Literal) and node.is_string:
        return exp.Literal.string(f"{before}{str(node.this).replace('(?P<', '(?<')}{after}")
    return call("concat", before, node, after) if before or after else node


def _replaced(a: Args) -> exp.Expr:
    options = a[3] if len(a) > 3 else None
    with_ = _written(a[2], "what a pattern is replaced with")
    is_all = options is not None and "g" in _written(options, "the option of a pattern")
    shift = 0 if is_all else 2
    java = re.sub(r"\\(\d)|([$\\])", lambda m: f"${int(m[1]) + shift}" if m[1] else f"\\{m[2]}", with_)
    if is_all:
        return call("regexp_replace", a[0], _pattern(a[1], options), java)
    return call("regexp_replace", a[0], _pattern(a[1], options, ("\\A((?s:.*?))(", ")")), f"$1{java}")


_FORMATS: Final = {
    "Y": ("yyyy", "yyyy"), "m": ("MM", "M"), "d": ("dd", "d"), "H": ("HH", "H"), "M": ("mm", "m"), "S": ("ss", "s"),
    "y": ("yy", "yy"), "b": ("MMM", "MMM"), "B": ("MMMM", "MMMM"), "f": ("SSSSSS", "SSSSSS"), "p": ("a", "a"),
    "I": ("hh", "h"), "j": ("DDD", "D"), "a": ("EEE", "EEE"), "A": ("EEEE", "EEEE"), "-d": ("d", "d"),
    "-m": ("M", "M"), "-H": ("H", "H"), "-M": ("m", "m"), "-S": ("s", "s"), "-I": ("h", "h"), "g": ("SSS", "SSS"),
    "F": ("yyyy-MM-dd", "yyyy-M-d"), "T": ("HH:mm:ss", "H:m:s"), "z": ("xx", "xx"),
}  # fmt: skip


def _format(node: exp.Expr, *, reads: bool) -> exp.Expr:
    return exp.Literal.string(date_format(_written(node, "the format of a date"), reads=reads))


def date_format(text: str, *, reads: bool) -> str:
    """A format such as `%d.%m.%Y`, as Java writes it. Raises SqlMistake."""
    made, at = "", 0
    for found in re.finditer(r"%(-?[A-Za-z%])", text):
        made += _plain(text[at : found.start()])
        word = found[1]
        if word == "%":
            made += "%"
        elif word not in _FORMATS:
            raise SqlMistake(f"Spark cannot read or write `%{word}` in the format of a date")
        else:
            made += _FORMATS[word][reads]
        at = found.end()
    return made + _plain(text[at:])


def _plain(text: str) -> str:
    return re.sub(r"[A-Za-z']+", lambda m: "'" + m[0].replace("'", "''") + "'", text)


def _concat(a: Args) -> exp.Expr:
    return call("concat", *(call("coalesce", call("string", one), "") for one in a))


def _trimmed(side: str) -> Make:
    def make(a: Args) -> exp.Expr:
        return exp.Trim(this=a[0], expression=a[1], position=side) if len(a) > 1 else call(_TRIMS[side], a[0])

    return make


_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _listed(a: Args) -> exp.Expr:
    (value,), order = in_order(a)
    if isinstance(value, exp.Distinct):
        if order:
            raise SqlMistake("Spark cannot put distinct values of a list in another order")
        return _unwrapped(call("collect_set", call("named_struct", "v", value.expressions[0])))
    if not order:
        return _unwrapped(call("collect_list", call("named_struct", "v", value)))
    is_down = bool(order[0].args.get("desc"))
    if any(bool(one.args.get("desc")) != is_down for one in order):
        raise SqlMistake("Spark orders a list either upwards or downwards by all its keys")
    fields: list[exp.Expr | str] = []
    for number, one in enumerate(order):
        empty: exp.Expr = exp.Is(this=one.this.copy(), expression=exp.null())
        # NULL is the least there; a flag in front of each key puts it where it was asked for.
        is_last = bool(one.args.get("nulls_first")) == is_down
        fields += [f"n{number}", exp.Paren(this=empty if is_last else exp.Not(this=empty)), f"k{number}", one.this]
    ordered = call(
        "sort_array", call("collect_list", call("named_struct", *fields, "v", value)), exp.Boolean(this=not is_down)
    )
    return _unwrapped(ordered)


def _unwrapped(list_: exp.Expr) -> exp.Expr:
    """Values travel in a struct, because Spark leaves NULLs out of a list of values. A list of nothing is NULL."""

    def over(function: str, values: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        variable = exp.Identifier(this="v", quoted=False)
        return call(function, values, exp.Lambda(this=body(variable.copy()), expressions=[variable]))

    plain = over("transform", list_, lambda v: exp.Dot(this=v, expression=exp.to_identifier("v")))
    there = over(
        "transform",
        call("array", plain),
        lambda v: exp.Case(ifs=[exp.If(this=exp.GT(this=call("size", v), expression=tree_of(0)), true=v.copy())]),
    )
    return call("get", there, 0)


def _joined(a: Args) -> exp.Expr:
    given, order = in_order(a)
    made: exp.Expr = call("listagg", _text(given[0]), given[1] if len(given) > 1 else ",")
    return exp.WithinGroup(this=made, expression=exp.Order(expressions=order)) if order else made


def _text(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Distinct):
        return exp.Distinct(expressions=[call("string", one) for one in value.expressions])
    return call("string", value)


def _first(picks: str, whole: str) -> Make:
    def make(a: Args) -> exp.Expr:
        (value,), order = in_order(a)
        if not order:
            return call(whole, value, exp.Boolean(this=whole == "any_value"))
        if len(order) != 1:
            raise SqlMistake("Spark takes the first of several by one key")
        chosen = picks if not order[0].args.get("desc") else {"min_by": "max_by", "max_by": "min_by"}[picks]
        return call(chosen, value, order[0].this)

    return make


def _difference(a: Args) -> exp.Expr:
    """DuckDB counts the boundaries between two moments, Spark the whole units."""
    unit = _written(a[0], "the unit of time").upper()
    ends = [call("date_trunc", unit, one) for one in a[1:]]
    return call("timestampdiff", exp.var(unit.removesuffix("S")), *ends)


def _get_json(a: Args) -> exp.Expr:
    return call("get_json_object", a[0], _json_path(a[1]))


def _json_path(node: exp.Expr) -> str:
    path = _written(node, "the path into JSON")
    if path.startswith("/"):
        raise SqlMistake(f"Spark knows paths into JSON such as `$.name`, not `{path}`")
    return path if path.startswith("$") else f"$.{path}"


def _json_type(a: Args) -> exp.Expr:
    value = a[0] if len(a) == 1 else call("variant_get", call("try_parse_json", a[0]), _json_path(a[1]), "variant")
    found = call("schema_of_variant", value if len(a) > 1 else call("try_parse_json", value))
    names = (
        ("OBJECT%", "OBJECT"),
        ("ARRAY%", "ARRAY"),
        ("STRING", "VARCHAR"),
        ("VOID", "NULL"),
        ("DECIMAL%", "DOUBLE"),
    )
    ifs = [
        exp.If(this=exp.Like(this=found.copy(), expression=tree_of(one)), true=tree_of(other)) for one, other in names
    ]
    return exp.Case(ifs=ifs, default=found)


class _ReadingSpark(Spark):
    """Spark's grammar, with every function as it was written."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}  # noqa: RUF012


_as = templates(_ReadingSpark())

_ALIKE: Final = [
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cos",
    "sin",
    "tan",
    "cot",
    "degrees",
    "radians",
    "exp",
    "ln",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "sign",
    "pi",
    "lower",
    "upper",
    "replace",
    "reverse",
    "repeat",
    "substring",
    "substr",
    "lpad",
    "rpad",
    "translate",
    "concat_ws",
    "md5",
    "sha1",
    "ascii",
    "greatest",
    "least",
    "coalesce",
    "nullif",
    "ifnull",
    "isnan",
    "round",
    "floor",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "quarter",
    "last_day",
    "make_date",
    "date_trunc",
    "min",
    "max",
    "sum",
    "count",
    "stddev_samp",
    "stddev_pop",
    "var_samp",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
    "median",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "max_by",
    "min_by",
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
    "split_part",
    "levenshtein",
    "flatten",
    "mode",
    "approx_count_distinct",
    "factorial",
    "gcd",
]

_CONTAINS = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN coalesce(array_contains({0}, {1}), FALSE) END"
FUNCTIONS: Final[dict[str, Make]] = {name: renamed(name) for name in _ALIKE} | {
    "ceil": renamed("ceil"), "ceiling": renamed("ceil"), "pow": renamed("power"), "power": renamed("power"),
    "log": lambda a: call("log10", *a) if len(a) == 1 else call("log", *a), "mean": _as("avg(double({0}))"),
    "trunc": _as("CASE WHEN {0} < 0 THEN ceil({0}) ELSE floor({0}) END"), "rand": renamed("rand"),
    "random": lambda a: call("rand"), "uuid": lambda a: call("uuid"), "gen_random_uuid": lambda a: call("uuid"),
    "avg": _as("avg(double({0}))"), "stddev": renamed("stddev_samp"), "variance": renamed("var_samp"),
    "any_value": lambda a: call("any_value", a[0], exp.true()), "arbitrary": lambda a: call("first", a[0]),
    "first": _first("min_by", "first"), "last": _first("max_by", "last"),
    "arg_max": renamed("max_by"), "arg_min": renamed("min_by"), "argmax": renamed("max_by"), "argmin": renamed("min_by"),
    "quantile_cont": renamed("percentile"), "list": _listed, "array_agg": _listed, "string_agg": _joined,
    "group_concat": _joined, "listagg": _joined, "count_star": lambda a: call("count", exp.Star()),
    "count_if": _as("sum(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    "countif": _as("sum(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"),
    # Text
    "lcase": renamed("lower"), "ucase": renamed("upper"), "concat": _concat, "trim": _trimmed("BOTH"),
    "ltrim": _trimmed("LEADING"), "rtrim": _trimmed("TRAILING"), "char_length": renamed("char_length"),
    "strlen": renamed("octet_length"), "instr": renamed("instr"), "strpos": renamed("instr"),
    "contains": renamed("contains"), "starts_with": renamed("startswith"), "prefix": renamed("startswith"),
    "ends_with": renamed("endswith"), "suffix": renamed("endswith"), "chr": renamed("char"),
    "left": lambda a: call("left", *a), "right": lambda a: call("right", *a), "sha256": _as("sha2({0}, 256)"),
    "string_split": lambda a: call("split", a[0], _quoted_pattern(a[1])),
    "str_split": lambda a: call("split", a[0], _quoted_pattern(a[1])),
    "split": lambda a: call("split", a[0], _quoted_pattern(a[1])),
    "regexp_split_to_array": lambda a: call("split", a[0], _pattern(a[1])),
    "regexp_matches": lambda a: call("regexp_like", a[0], _pattern(a[1], a[2] if len(a) > 2 else None)),
    "regexp_full_match": lambda a: call(
        "regexp_like", a[0], _pattern(a[1], a[2] if len(a) > 2 else None, ("\\A(?:", ")\\z"))
    ),
    "regexp_extract": lambda a: call(
        "regexp_extract", a[0], _pattern(a[1], a[3] if len(a) > 3 else None), a[2] if len(a) > 2 else 0
    ),
    "regexp_extract_all": lambda a: call("regexp_extract_all", a[0], _pattern(a[1]), a[2] if len(a) > 2 else 0),
    "regexp_replace": _replaced, "editdist3": renamed("levenshtein"), "to_hex": renamed("hex"),
    "hex": renamed("hex"), "from_hex": renamed("unhex"), "unhex": renamed("unhex"), "to_base64": renamed("base64"),
    "base64": renamed("base64"), "from_base64": renamed("unbase64"), "decode": lambda a: call("decode", a[0], "utf-8"),
    "encode": lambda a: call("encode", a[0], "utf-8"), "unicode": renamed("ascii"), "error": renamed("raise_error"),
    # Dates
    "dayofmonth": renamed("day"), "dayofyear": renamed("dayofyear"), "week": renamed("weekofyear"),
    "weekofyear": renamed("weekofyear"), "dayofweek": _as("dayofweek({0}) - 1"), "weekday": _as("dayofweek({0}) - 1"),
    "isodow": _as("weekday({0}) + 1"), "dayname": _as("date_format({0}, 'EEEE')"),
    "monthname": _as("date_format({0}, 'MMMM')"), "today": lambda a: call("current_date"),
    "current_date": lambda a: call("current_date"), "now": lambda a: call("current_timestamp"),
    "get_current_timestamp": lambda a: call("current_timestamp"), "datetrunc": renamed("date_trunc"),
    "date_diff": _difference, "datediff": _difference, "make_timestamp": renamed("make_timestamp_ntz"),
    "date_part": lambda a: call("date_part", *a), "datepart": lambda a: call("date_part", *a),
    "date_add": _as("{0} + {1}"), "epoch": _as("double(unix_micros(timestamp_ltz({0}))) / 1000000"),
    "epoch_ms": _as("unix_millis(timestamp_ltz({0}))"), "to_timestamp": renamed("timestamp_seconds"),
    "strftime": lambda a: call("date_format", a[0], _format(a[1], reads=False)),
    "strptime": lambda a: call("to_timestamp_ntz", a[0], _format(a[1], reads=True)),
    "try_strptime": lambda a: call("try_to_timestamp", a[0], _format(a[1], reads=True)),
    "to_days": _as("make_interval(0, 0, 0, {0})"), "to_hours": _as("make_interval(0, 0, 0, 0, {0})"),
    "to_minutes": _as("make_interval(0, 0, 0, 0, 0, {0})"), "to_seconds": _as("make_interval(0, 0, 0, 0, 0, 0, {0})"),
    "to_months": _as("make_interval(0, {0})"), "to_years": _as("make_interval({0})"),
    # Lists, structs, JSON
    "list_transform": renamed("transform"), "array_transform": renamed("transform"), "apply": renamed("transform"),
    "list_filter": renamed("filter"), "array_filter": renamed("filter"), "list_contains": _as(_CONTAINS),
    "array_contains": _as(_CONTAINS), "list_has": _as(_CONTAINS),
    "list_position": _as("nullif(array_position({0}, {1}), 0)"), "list_extract": renamed("try_element_at"),
    "array_extract": renamed("try_element_at"), "list_element": renamed("try_element_at"),
    "list_distinct": _as("array_distinct(filter({0}, x -> x IS NOT NULL))"), "array_to_string": renamed("array_join"),
    "list_value": renamed("array"), "list_concat": renamed("concat"), "array_length": renamed("size"),
    "list_max": renamed("array_max"), "list_min": renamed("array_min"), "list_reverse": renamed("reverse"),
    "range": lambda a: call("range", *a), "json_extract_string": _get_json, "json_extract_path_text": _get_json,
    "json_valid": _as("CASE WHEN {0} IS NOT NULL THEN try_parse_json({0}) IS NOT NULL END"), "json_type": _json_type,
    "json_extract": lambda a: call(
        "to_json", call("variant_get", call("try_parse_json", a[0]), _json_path(a[1]), "variant")
    ),
    "map_keys": renamed("map_keys"), "map_values": renamed("map_values"), "cardinality": renamed("size"),
    "element_at": renamed("try_element_at"), "map_extract_value": renamed("try_element_at"),
}  # fmt: skip


# ---- Queries


def spark_query(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> exp.Expr:
    """The query as a tree for Spark. `columns_of` gives the columns of a part of it. Raises SqlMistake."""
    try:
        tree = read(query)
        # A star may leave columns out here; it must not take in those that are added to say QUALIFY in another way.
        if any(is_modified(star) for star in tree.find_all(exp.Star)) or tree.find(exp.Columns, exp.Qualify):
            tree = spelled_out(tree, inputs)
        match_names(tree, columns_of)
        return _Translation(inputs).whole(tree)
    except SqlglotError as broken:
        raise SqlMistake(f"this cannot be said in Spark's SQL: {broken}", hint=INSTEAD) from broken


def written(tree: exp.Expr) -> str:
    try:
        return tree.sql(dialect=_DIALECT, normalize_functions=False, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as broken:
        raise SqlMistake(f"this cannot be said in Spark's SQL: {broken}", hint=INSTEAD) from broken


class _Translation(Translation):
    def prepare(self, tree: exp.Expr) -> None:
        self._number_rows(tree)
        for select in list(tree.find_all(exp.Select)):
            self._unnest_together(select)

    def _unnest_together(self, select: exp.Select) -> None:
        """Lists that are unnested side by side give one row for each place; Spark can explode one list at a time."""
        found = [node for one in select.expressions if isinstance(node := one.unalias(), exp.Explode | exp.Unnest)]
        if len(found) < 2:
            return
        lists = [node.expressions[0] if isinstance(node, exp.Unnest) else node.this for node in found]
        most = call("greatest", *(call("coalesce", call("size", one.copy()), 0) for one in lists))
        places = call("slice", call("sequence", 0, most), 1, most.copy())
        for node, one in zip(found, lists, strict=True):
            node.replace(call("get", one.copy(), column("__place")))
        inner = exp.Select(
            expressions=[exp.Star(), exp.alias_(call("explode", places), "__place", quoted=True)],
            from_=select.args["from_"].copy(),
        )
        for part in ("joins", "where"):
            if select.args.get(part):
                kept = select.args[part]
                inner.set(part, [one.copy() for one in kept] if isinstance(kept, list) else kept.copy())
                select.set(part, None)
        source = select.args["from_"].this
        select.set(
            "from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=name(source.alias_or_name))))
        )

    def _number_rows(self, tree: exp.Expr) -> None:
        """`row_number() OVER ()` numbers rows as they come, which on Spark is in no order. Where only the order is asked for,
        any rising number will do, and needs no rows to be moved."""
        for window in list(tree.find_all(exp.Window)):
            if not _is_row_number(window.this) or window.args.get("order") or window.args.get("partition_by"):
                continue
            alias = window.parent.alias if isinstance(window.parent, exp.Alias) else ""
            rising = exp.Add(this=call("monotonically_increasing_id"), expression=exp.Literal.number(1))
            if alias.startswith(POSITIONS) and _is_only_ordered_by(tree, alias):
                window.replace(rising)
                for order in [one for one in tree.find_all(exp.Order) if isinstance(one.parent, exp.Query)]:
                    _leave_out(order, alias)
            else:
                window.set("order", exp.Order(expressions=[exp.Ordered(this=call("monotonically_increasing_id"))]))

    def node(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Anonymous() if TRANSLATED in node.meta:
                return node
            case exp.Anonymous() | exp.AnonymousAggFunc():
                return self._called(node)
            case exp.Div():
                divisor = call("nullif", closed(node.expression), 0)
                return exp.Div(this=call("double", node.this), expression=divisor, typed=True, safe=False)
            case exp.IntDiv():
                return exp.IntDiv(this=closed(node.this), expression=call("nullif", closed(node.expression), 0))
            case exp.Mod():
                return exp.Mod(this=closed(node.this), expression=call("nullif", closed(node.expression), 0))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Sub() if self.family(node.this) == self.family(node.expression) == "date":
                return call("datediff", node.this, node.expression)
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                return self._like(node)
            case exp.SimilarTo() | exp.Glob():
                raise SqlMistake(f"Spark has no `{node.key.upper()}`", hint=INSTEAD)
            case exp.Bracket() if len(node.expressions) == 1 and not isinstance(node.expressions[0], exp.Slice):
                return self._element(node)
            case exp.Filter() if str(node.this.this) == "get":
                # Only the aggregate inside can leave rows out.
                inner = next(one for one in node.this.find_all(exp.Anonymous) if str(one.this).startswith("collect_"))
                inner.replace(exp.Filter(this=inner.copy(), expression=node.expression))
                listed: exp.Expr = node.this
                return listed
            case exp.Explode() | exp.Unnest() if not isinstance(node.parent, exp.From | exp.Join):
                return call("explode", node.expressions[0] if isinstance(node, exp.Unnest) else node.this)
            case exp.Table() if isinstance(node.this, exp.Func):
                return self._source(node)
            case exp.Join() if str(node.args.get("method", "")).upper() in ("ASOF", "POSITIONAL"):
                raise SqlMistake(f"Spark has no {node.args['method']} join", hint=INSTEAD)
            case exp.Pivot():
                raise SqlMistake("Spark has no PIVOT of this kind", hint=INSTEAD)
        return node

    def _called(self, node: exp.Anonymous | exp.AnonymousAggFunc) -> exp.Expr:
        called = str(node.this).lower()
        if isinstance(node.parent, exp.Table):
            return node
        given = list(node.expressions)
        if given and isinstance(given[0], exp.IgnoreNulls):
            return call(called, given[0].this, *given[1:], exp.true())
        if called == "round" and len(given) == 2 and self.family(given[0]) == "float":
            # As DuckDB does it: Spark looks at the digits of the number as it would be written.
            scale = call("power", 10, given[1])
            return exp.Div(
                this=call("round", exp.Mul(this=closed(given[0]), expression=scale)), expression=scale.copy()
            )
        if called == "regexp_extract" and len(given) > 2 and isinstance(given[2], exp.Array):
            groups = [_written(one, "the name of a group") for one in given[2].expressions]
            fields: list[exp.Expr | str] = []
            for number, group in enumerate(groups, 1):
                fields += [group, call("regexp_extract", given[0].copy(), _pattern(given[1]), number)]
            return call("named_struct", *fields)
        if called == "range" and not isinstance(node.parent, exp.Table):
            start, end = (given[0], given[1]) if len(given) > 1 else (tree_of(0), given[0])
            size = call("greatest", exp.Sub(this=closed(end.copy()), expression=closed(start.copy())), 0)
            return call("slice", call("sequence", start, end), 1, call("int", size))
        if called in ("length", "len"):
            of = self.family(given[0])
            return call("size" if of == "list" or (called == "len" and of is None) else "length", *given)
        if called in ("struct_extract", "array_extract") and isinstance(given[1], exp.Literal) and given[1].is_string:
            return exp.Dot(this=closed(given[0]), expression=name(str(given[1].this)))
        if called == "contains" and self.family(given[0]) == "list":
            return call("array_contains", *given)
        if called == "row":
            return call("struct", *given)
        make = FUNCTIONS.get(called)
        if make is None:
            raise SqlMistake(f"there is no `{called}` on Spark that does the same", hint=INSTEAD)
        return make(given)

    def _cast(self, node: exp.Cast) -> exp.Expr:
        wanted = exp.DataType.build(node.to.sql(dialect=DIALECT), dialect=DIALECT, udt=True)
        kind = wanted.this.value if isinstance(wanted.this, exp.DType) else ""
        value = node.this
        if kind in _WHOLE_KINDS:
            of = self.family(value)
            # DuckDB rounds where Spark cuts off: an exact half goes away from zero, of a float to the even number.
            value = call("rint", value) if of == "float" else call("round", value) if of == "decimal" else value
        made = exp.TryCast if isinstance(node, exp.TryCast) else exp.Cast
        return made(this=value, to=exp.DataType(this=exp.DType.USERDEFINED, kind=_spark_type(wanted)))

    def _like(self, node: exp.Binary) -> exp.Expr:
        pattern = node.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string:
            # A backslash is only a backslash in DuckDB, and an escape there.
            node.set("expression", exp.Literal.string(str(pattern.this).replace("\\", "\\\\")))
        return node

    def _element(self, node: exp.Bracket) -> exp.Expr:
        (index,) = node.expressions
        if isinstance(index, exp.Literal) and index.is_string and self.family(node.this) != "map":
            return exp.Dot(this=closed(node.this), expression=name(str(index.this)))
        # sqlglot has counted from zero in the tree.
        offset = node.args.get("offset") or 0
        shifted = (
            index
            if offset == 1
            else exp.Literal.number(int(index.this) + 1)
            if index.is_int
            else exp.Add(this=index, expression=exp.Literal.number(1))
        )
        return call("try_element_at", node.this, shifted)

    def _source(self, node: exp.Table) -> exp.Expr:
        made = node.this
        called = str(made.this).lower() if isinstance(made, exp.Anonymous) else made.sql_name().lower()
        if called in SCANS:
            return node
        if called not in ("range", "generate_series", "unnest"):
            raise SqlMistake(f"there is no `{called}` on Spark that does the same", hint=INSTEAD)
        given = list(made.expressions)
        alias = node.args.get("alias")
        if alias is None or not alias.args.get("columns"):
            shown = alias.this if alias is not None else name(called)
            node.set("alias", exp.TableAlias(this=shown, columns=[name(called)]))
        if called == "unnest":
            node.set("this", call("explode", *given))
        elif called == "generate_series":
            node.set("this", call("explode", call("sequence", *given)))
        else:
            node.set("this", call("range", *given))
        return node


_WHOLE_KINDS = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "UTINYINT", "USMALLINT", "UINT", "UBIGINT", "UINT128"}
)


def _is_row_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.RowNumber) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() == "row_number"
    )


def _is_only_ordered_by(tree: exp.Expr, alias: str) -> bool:
    for node in tree.find_all(exp.Column):
        if node.name == alias:
            is_key = node.find_ancestor(exp.Ordered) is not None
            is_passed = isinstance(node.parent, exp.Select) or (
                isinstance(node.parent, exp.Alias)
                and isinstance(node.parent.parent, exp.Select)
                and node.parent.alias == alias
            )
            is_asked = isinstance(node.parent, exp.Is) or (
                isinstance(node.parent, exp.Anonymous) and str(node.parent.this).lower() in ("min", "max")
            )
            if not is_key and not is_passed and not is_asked:
                return False
    return True


def _leave_out(order: exp.Order, alias: str) -> None:
    """The place of a row says nothing more about the order of rows that have none."""
    kept = [one for one in order.expressions if not (isinstance(one.this, exp.Column) and one.this.name == alias)]
    if kept:
        order.set("expressions", kept)
    else:
        order.pop()


class _Generator(SparkGenerator):
    TRANSFORMS = {kind: make for kind, make in SparkGenerator.TRANSFORMS.items() if kind is not exp.TryCast}  # noqa: RUF012

    def trycast_sql(self, expression: exp.TryCast) -> str:
        return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        return f"{expression.this}({self.format_args(*expression.expressions)})"


class _WritingSpark(Spark):
    Generator = _Generator


_DIALECT = _WritingSpark()
