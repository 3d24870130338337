"""The rows of JSON files as they stand there: each with its file and number, whatever it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlglot import exp

from penstock.components.io.json_shape import Manner, steps
from penstock.components.io.scans import all_of, column_types, scan, text_lines
from penstock.components.io.text_types import call as function
from penstock.components.queries import row_number
from penstock.data import select


def named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(node, select.name(name))


def rows_in(paths: Iterable[Path], manner: Manner) -> exp.Query:
    """(file, line, raw) of every row, as text that may or may not be JSON."""
    return all_of(*(_of_file(path, manner) for path in paths))


def is_object() -> exp.Expr:
    """Of a row of `rows_in`. DuckDB stops at text that is not JSON, so that is asked first."""
    kind = function("json_type", select.column("raw"))
    asked = exp.case().when(function("json_valid", select.column("raw")), kind).else_(exp.null())
    return asked.eq(select.literal("OBJECT"))


def _of_file(path: Path, manner: Manner) -> exp.Query:
    if manner.form == "newline_delimited":
        lines = text_lines(path, "raw")
    else:
        options = {"format": manner.form, "maximum_object_size": manner.max_object_bytes}
        documents = scan("read_json_objects", [path], options | {"columns": column_types({})})
        found: exp.Expr = select.column("json")
        if manner.rows is not None:
            way = "".join(f"[{step}]" if step.isdecimal() else f'."{step}"' for step in steps(manner.rows))
            there = function("json_extract", found, f"${way}")
            is_list = function("json_type", there).eq(select.literal("ARRAY"))
            several = function("json_extract", there.copy(), "$[*]")
            found = function("unnest", exp.case().when(is_list, several).else_(exp.Array(expressions=[there.copy()])))
        lines = exp.select(named(select.cast(found, "VARCHAR"), "raw")).from_(documents)
    numbered = exp.select(named(row_number(), "line"), select.column("raw")).from_(lines.subquery("lines"))
    wanted = [named(select.literal(str(path)), "file"), select.column("line"), select.column("raw")]
    filled = function("trim", function("coalesce", select.column("raw"), "")).neq(select.literal(""))
    return exp.select(*wanted).from_(numbered.subquery("numbered")).where(filled)
