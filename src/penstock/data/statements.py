"""Whole queries are put together here, by name and between parentheses, and nowhere else.

A query arrives as a text that sqlglot wrote over tables named like its inputs. It is never taken apart: each input becomes
a CTE of that name around it, which DuckDB then looks through as if it were not there. Before that, DuckDB's own parser has
to agree that the text is exactly one SELECT, so that nothing can leave its parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from penstock.data.select import read
from penstock.kernel.values import Json
from penstock.ports.rows import Copy, RowsFailed, Schema, SqlText

_FRUGAL_GROUP = 8192
_OPTION = re.compile(r"[A-Za-z_]+\Z")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def stored(name: str) -> str:
    """A table of the engine's own. The schema in front keeps it apart from any CTE of the same name."""
    return f"main.{quoted(name)}"


def over(query: SqlText, sources: Mapping[str, str]) -> str:
    """The query with its input names bound to sources."""
    if not sources:
        return query
    inputs = ", ".join(
        f"{quoted(name)} AS NOT MATERIALIZED (SELECT * FROM {source})" for name, source in sources.items()
    )
    return f"WITH {inputs} SELECT * FROM (\n{query}\n)"


def columns(schema: Schema) -> str:
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in schema)


def copy_statement(query: SqlText, copy: Copy, path: str, *, frugal: bool = False) -> str:
    """`frugal` keeps the groups of rows small that a writer of Parquet collects in memory."""
    options = [f"FORMAT {copy.format}", *(_option(name, value) for name, value in copy.options.items())]
    if frugal and copy.format == "parquet" and "row_group_size" not in {name.lower() for name in copy.options}:
        options.append(f"ROW_GROUP_SIZE {_FRUGAL_GROUP}")
    return f"COPY (\n{query}\n) TO {text(path)} ({', '.join(options)})"


def _option(name: str, value: Json) -> str:
    if not _OPTION.match(name):
        raise RowsFailed("sql", f"`{name}` is not an option of COPY")
    return f"{name.upper()} {_option_value(value)}"


def _option_value(value: Json) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return text(value)
        case list():
            return f"({', '.join(_option_value(element) for element in value)})"
        case dict():
            return "{" + ", ".join(f"{text(key)}: {_option_value(element)}" for key, element in value.items()) + "}"
        case None:
            return "NULL"


@lru_cache(maxsize=2048)
def uses(query: SqlText, table: str) -> int:
    """How many times a run of the query may read one of its inputs; 2 stands for any number above one."""
    if table.lower() not in query.lower():
        return 0
    if not re.search(r"\bwith\b", query, re.IGNORECASE):
        mentions = len(re.findall(rf"(?<!\w){re.escape(table)}(?!\w)", query, re.IGNORECASE))
        if mentions == 1:
            return 1

    return times_read(query, table)


_CHANCE = re.compile(
    r"\b(random|uuid\w*|gen_random_uuid|sample|tablesample|nextval|now|current_timestamp|current_time|current_date|today|"
    r"get_current_\w+|transaction_timestamp|localtime\w*|setseed)\b",
    re.IGNORECASE,
)


def may_differ(query: SqlText) -> bool:
    """Could a second run over the same rows give other rows?"""
    return _CHANCE.search(query) is not None


def times_read(query: str, table: str) -> int:
    """0, 1, or 2 for any number above one. Unknown counts as more than one, which is slower but never wrong."""
    try:
        tree = read(query)
    except (ParseError, TokenError, RecursionError):
        return 2
    ctes = list(tree.find_all(exp.CTE))
    names = [cte.alias.lower() for cte in ctes]
    if len(set(names)) < len(names) or table.lower() in names or any(_is_recursive(cte) for cte in ctes):
        return 2
    return min(2, _times(tree, table.lower(), dict(zip(names, ctes, strict=True))))


def _is_recursive(cte: exp.CTE) -> bool:
    parent = cte.parent
    return isinstance(parent, exp.With) and bool(parent.args.get("recursive"))


def _times(tree: exp.Expr, table: str, ctes: Mapping[str, exp.CTE], within: exp.CTE | None = None) -> int:
    count = 0
    for node in tree.find_all(exp.Table):
        if node.find_ancestor(exp.CTE) is not within:
            continue
        name = node.name.lower()
        if name == table:
            count += 1
        elif name in ctes and ctes[name] is not within:
            count += _times(ctes[name], table, ctes, ctes[name])
    return count


# A type ends where its list or field ends; the name of a field is followed by its type.
_LOSSY = re.compile(
    r"\b(?:U?HUGEINT|BIGNUM|BIT|INTERVAL|TIME WITH TIME ZONE|TIME|TIMESTAMP_S|TIMESTAMP_MS|TIMESTAMP_NS|UUID)(?=\s*(?:[,)\[]|\Z))"
)
_QUOTED = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')""")


def portable(type: str) -> str:
    """The type that a column has inside the file."""
    # Names of fields and values of enums stand in quotes, and are not types.
    parts = _QUOTED.split(type)
    return "".join(part if at % 2 else _LOSSY.sub("VARCHAR", part) for at, part in enumerate(parts))


def export_statement(name: str, schema: Schema, path: Path) -> str:
    chosen = ", ".join(_as(column.name, column.type, portable(column.type)) for column in schema)
    return f"COPY (SELECT {chosen} FROM {stored(name)}) TO {text(str(path))} (FORMAT parquet, COMPRESSION zstd)"


def view_statement(name: str, schema: Schema, path: Path) -> str:
    chosen = ", ".join(f"CAST({quoted(column.name)} AS {column.type}) AS {quoted(column.name)}" for column in schema)
    files = f"{_literally(path)}/*.parquet" if path.is_dir() else _literally(path)
    source = f"read_parquet({text(files)}, hive_partitioning = false)"
    return f"CREATE VIEW {stored(name)} AS SELECT {chosen} FROM {source}"


def _as(name: str, type: str, wanted: str) -> str:
    return quoted(name) if type == wanted else f"CAST({quoted(name)} AS {wanted}) AS {quoted(name)}"


def _literally(path: Path) -> str:
    """The path with glob characters escaped by brackets."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))
