"""Files as Spark reads and writes them: what a scan of DuckDB's says, in the words of Spark's readers; a COPY in those of its
writers. An option without a counterpart is refused.

What Spark writes is a folder of parts, one for each task that wrote; it takes the place of the file that DuckDB would write,
when it is complete.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlglot import exp

from penstock.data import select
from penstock.data.spark.sql import cast_columns, date_format, spark_query, spark_type, ticked, written
from penstock.data.sql_rules import SqlMistake
from penstock.data.translation import INSTEAD, SCANS
from penstock.ports.rows import Column, Copy, RowsFailed, Schema, SqlText

MARK = "_SUCCESS"
"""The file that Spark writes last: a folder that has it is whole."""

# ---- Reading

_LEFT_ALONE = frozenset({
    "auto_detect", "sample_size", "hive_partitioning", "union_by_name", "columns", "filename", "parallel", "max_line_size",
    "strict_mode", "maximum_object_size", "maximum_sample_files", "allow_quoted_nulls", "buffer_size", "new_line", "records",
    "all_varchar", "normalize_names", "store_rejects", "names", "types", "null_padding", "ignore_errors", "format",
    "convert_strings_to_integers", "field_appearance_threshold", "map_inference_threshold", "maximum_depth", "encoding",
})  # fmt: skip
"""They say how DuckDB is to look, which has been done; or are dealt with below."""
_CSV = {"delim": "sep", "quote": "quote", "escape": "escape", "header": "header", "comment": "comment"}


def values_of(scan: exp.Anonymous) -> tuple[list[str], dict[str, Any]]:
    """The files of a scan, and its options."""
    paths = [_unescaped(str(one.this)) for one in scan.expressions[0].expressions]
    options = {str(one.this.name): _value(one.expression) for one in scan.expressions[1:]}
    return paths, options


def _unescaped(path: str) -> str:
    for mark in "*?[":
        path = path.replace(f"[{mark}]", mark)
    return path


def _value(node: exp.Expr) -> Any:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else int(node.this)
        case exp.Array():
            return [_value(one) for one in node.expressions]
        case exp.Struct():
            return {one.this.name: _value(one.expression) for one in node.expressions}
        case exp.Neg():
            return -_value(node.this)
    return None


def refuse_scan(scan: exp.Anonymous) -> None:
    """Raises SqlMistake for what Spark's readers cannot do."""
    _, options = values_of(scan)
    known = _LEFT_ALONE | (
        set(_CSV) | {"nullstr", "dateformat", "timestampformat", "skip", "decimal_separator", "thousands"}
    )
    for name, value in options.items():
        if name not in known and value not in (None, False, ""):
            raise SqlMistake(f"Spark cannot read a file with `{name}`", hint=INSTEAD)
    if options.get("skip"):
        raise SqlMistake("Spark cannot skip lines before the header", hint=INSTEAD)
    if options.get("decimal_separator") not in (None, ".") or options.get("thousands"):
        raise SqlMistake("Spark reads numbers with a decimal point and no separator of thousands", hint=INSTEAD)
    nulls = options.get("nullstr")
    if isinstance(nulls, list) and len(nulls) > 1:
        raise SqlMistake("Spark knows one text for a missing value", hint=INSTEAD)


def check(query: SqlText, inputs: Mapping[str, Schema], columns_of: Callable[[SqlText], Schema]) -> None:
    """Raises SqlMistake when there is no query for Spark that means the same, or a file that only DuckDB reads so."""
    tree = spark_query(query, inputs, columns_of)
    written(tree)
    for node in tree.find_all(exp.Anonymous):
        if str(node.this).lower() in SCANS:
            refuse_scan(node)
    for one in columns_of(query):
        spark_type(one.type)


def scanned(spark: Any, scan: exp.Anonymous, columns_of: Callable[[SqlText, Mapping[str, Schema]], Schema]) -> Any:
    """The rows of a scan as a frame, with the columns that DuckDB finds in it."""
    refuse_scan(scan)
    paths, options = values_of(scan)
    found = columns_of(select.sql(exp.select(exp.Star()).from_(exp.Table(this=scan.copy()))), {})
    reader = spark.read
    function = str(scan.this).lower()
    own = tuple(column for column in found if column.name != options.get("filename"))
    match function:
        case "read_parquet":
            if options.get("union_by_name"):
                reader = reader.option("mergeSchema", "true")
            if options.get("hive_partitioning"):
                reader = reader.option("basePath", _base(paths[0]))
            frame = reader.parquet(*paths)
            names = {name.lower(): name for name in frame.columns}
            given = [names[column.name.lower()] for column in own]
        case "read_csv":
            frame = _csv(reader, options, own).csv(paths)
            given = [column.name for column in own]
        case _:
            is_list = options.get("format") == "array"
            reader = reader.option("multiLine", str(is_list).lower()).option("mode", "FAILFAST")
            frame = _formats(reader, options).schema(_json_schema(own)).json(paths)
            given = [column.name for column in own]
    chosen = cast_columns(given, own)
    if (name := options.get("filename")) is not None:
        # A path comes as a URL.
        plain = "url_decode(replace(regexp_replace(_metadata.file_path, '^file:(//)?', ''), '+', '%2B'))"
        chosen.append(f"{plain} AS {ticked(str(name))}")
    return frame.selectExpr(*chosen)


def _base(path: str) -> str:
    parts = Path(path).parts
    first = next((at for at, part in enumerate(parts) if "=" in part), len(parts) - 1)
    return str(Path(*parts[:first]))


def _csv(reader: Any, options: Mapping[str, Any], columns: Schema) -> Any:
    for name, word in _CSV.items():
        if options.get(name) is not None:
            value = options[name]
            reader = reader.option(word, str(value).lower() if isinstance(value, bool) else value)
    nulls = options.get("nullstr")
    reader = reader.option("nullValue", (nulls[0] if isinstance(nulls, list) else nulls) or "")
    reader = reader.option("mode", "FAILFAST").option("enforceSchema", "false" if options.get("header") else "true")
    reader = reader.option("multiLine", "false").option("maxCharsPerColumn", "-1")
    return _formats(reader, options).schema(", ".join(f"{ticked(one.name)} {spark_type(one.type)}" for one in columns))


def _formats(reader: Any, options: Mapping[str, Any]) -> Any:
    date, moment = options.get("dateformat"), options.get("timestampformat")
    reader = reader.option("dateFormat", date_format(date, reads=True) if date else "yyyy-M-d")
    moments = date_format(moment, reads=True) if moment else "yyyy-M-d[ ]['T']H:m[:s][.SSSSSS][.SSS]"
    return reader.option("timestampNTZFormat", moments).option("timestampFormat", moments)


def _json_schema(columns: Schema) -> str:
    return ", ".join(f"{ticked(one.name)} {spark_type(one.type)}" for one in columns)


# ---- Writing


def refuse_copy(copy: Copy, schema: Schema) -> None:
    """Raises SqlMistake for what Spark's writers cannot do."""
    if copy.format == "json" and copy.options.get("array"):
        raise SqlMistake("Spark writes JSON as one object a line", hint=f"`format: lines`, or {INSTEAD}")
    if copy.format == "csv":
        nested = next((one for one in schema if _is_nested(one)), None)
        if nested is not None:
            raise SqlMistake(f"Spark cannot write `{nested.name}` as CSV: it is {nested.type}", hint=INSTEAD)


def _is_nested(column: Column) -> bool:
    return spark_type(column.type).startswith(("ARRAY", "STRUCT", "MAP", "BINARY"))


def saved(frame: Any, writer: Any, path: str | None = None) -> Any:
    """The frame, written."""
    writer.save(path)
    return frame


class Target:
    """A folder of parts that takes its place when all is written."""

    def __init__(self, copy: Copy, schema: Schema) -> None:
        self._copy = copy
        self._schema = schema
        self._path = Path(os.path.realpath(copy.path))
        self._written = self._path.with_name(f".{self._path.name}.{uuid4().hex}.part")

    def write(self, frame: Any) -> Any:
        options = self._copy.options
        match self._copy.format:
            case "parquet":
                writer = frame.write.option("compression", options.get("compression", "zstd"))
            case "csv":
                frame = frame.selectExpr(*(_text(one, options) for one in self._schema))
                writer = _csv_writer(frame.write, options)
            case _:
                frame = frame.selectExpr(*(_as_json(one, options) for one in self._schema))
                writer = frame.write.option("ignoreNullFields", "false")
        if self._copy.format != "parquet" and (packed := options.get("compression")):
            writer = writer.option("compression", packed)
        return saved(frame, writer.format(self._copy.format), str(self._written))

    def land(self) -> None:
        if not (self._written / MARK).exists():
            raise RowsFailed(
                "io",
                f"`{self._path}` was written where this process does not see it: Spark and Penstock need a file system in common",
            )
        old = self._path.with_name(f".{self._path.name}.{uuid4().hex}.old")
        is_there = self._path.exists()
        if is_there:
            os.rename(self._path, old)
        os.rename(self._written, self._path)
        if is_there:
            shutil.rmtree(old) if old.is_dir() else old.unlink()

    def discard(self) -> None:
        shutil.rmtree(self._written, ignore_errors=True)


def target_of(copy: Copy, schema: Schema) -> Target:
    refuse_copy(copy, schema)
    return Target(copy, schema)


def _text(column: Column, options: Mapping[str, Any]) -> str:
    name = ticked(column.name)
    word = "dateformat" if column.type == "DATE" else "timestampformat" if column.type.startswith("TIMESTAMP") else ""
    if word and options.get(word):
        quoted = date_format(str(options[word]), reads=False).replace("\\", "\\\\").replace("'", "\\'")
        return f"date_format({name}, '{quoted}') AS {name}"
    return f"CAST({name} AS STRING) AS {name}"


def _as_json(column: Column, options: Mapping[str, Any]) -> str:
    is_moment = column.type == "DATE" or column.type.startswith("TIMESTAMP")
    return _text(column, options) if is_moment else ticked(column.name)


def _csv_writer(writer: Any, options: Mapping[str, Any]) -> Any:
    words = {
        "header": str(bool(options.get("header", True))).lower(),
        "sep": options.get("delimiter", ","),
        "quote": options.get("quote", '"'),
        "escape": options.get("escape", '"'),
        "nullValue": options.get("nullstr", ""),
        "quoteAll": str(options.get("force_quote") == "*").lower(),
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    }
    for name, value in words.items():
        writer = writer.option(name, value)
    return writer
