"""`read_avro` and `write_avro`: Avro files with the schema they carry. Both need fastavro, an optional package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Port, Writer
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.file_paths import import_module_or_fail
from penstock.components.io.json_shape import fields_of, inner_of
from penstock.data import select
from penstock.ports.rows import Column
from penstock.tools.parameters import about

_PLAIN = {
    "null": "VARCHAR", "boolean": "BOOLEAN", "int": "INTEGER", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "bytes": "BLOB", "string": "VARCHAR", "enum": "VARCHAR", "fixed": "BLOB",
}  # fmt: skip
_LOGICAL = {
    "date": "DATE", "time-millis": "TIME", "time-micros": "TIME", "uuid": "UUID",
    "timestamp-millis": "TIMESTAMP WITH TIME ZONE", "timestamp-micros": "TIMESTAMP WITH TIME ZONE",
    "local-timestamp-millis": "TIMESTAMP", "local-timestamp-micros": "TIMESTAMP",
}  # fmt: skip
_AVRO: dict[str, Any] = {
    "BOOLEAN": "boolean", "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "UTINYINT": "int", "USMALLINT": "int",
    "UINTEGER": "long", "BIGINT": "long", "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string", "BLOB": "bytes",
    "DATE": {"type": "int", "logicalType": "date"}, "TIME": {"type": "long", "logicalType": "time-micros"},
    "UUID": {"type": "string", "logicalType": "uuid"},
    "TIMESTAMP": {"type": "long", "logicalType": "local-timestamp-micros"},
    "TIMESTAMP WITH TIME ZONE": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)\Z")
_BATCH = 5_000


def _fastavro() -> ModuleType:
    return import_module_or_fail(
        "fastavro", "Avro files need the package `fastavro`; hint: `pip install 'penstock[avro]'`"
    )


class ReadAvroParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    columns: Annotated[list[str], about("The columns to read, in this order; all of them when left out.")] = []
    file_column: parameters.FileColumn = None
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadAvro(Action[ReadAvroParams]):
    """Read rows from Avro files, with the types that the schema in them says.

    A union with null is a column that may be NULL; a union of several types is text, in JSON where it is no plain value. The
    files of a pattern have the same columns. Needs the package `fastavro`.
    """

    type = "read_avro"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def run(self, params: ReadAvroParams, call: Call) -> None:
        fastavro = _fastavro()
        found = file_paths.all_files(params.path, call, params.credentials)
        first = _columns(fastavro, found[0])
        wanted = params.columns or [column.name for column in call.declared.get("main", ())]
        problem = parameters.missing(wanted, list(first), f"`{found[0]}`")
        if problem is not None:
            raise ComponentFailure("columns", problem, path=str(found[0]))
        chosen = {name: first[name] for name in wanted or first}
        schema = tuple(Column(name, type) for name, type in chosen.items())
        if params.file_column is not None:
            schema = (*schema, Column(params.file_column, "VARCHAR"))
        rows = (
            (*row, *([file_paths.shown(path, call)] if params.file_column is not None else []))
            for path in found
            for row in _rows(fastavro, path, chosen, first)
        )
        call.put("main", call.engine.load(schema, file_paths.in_batches(rows, _BATCH)))


def _columns(fastavro: ModuleType, path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        try:
            schema: Any = fastavro.reader(file).writer_schema
        except (ValueError, EOFError, KeyError) as error:
            raise ComponentFailure("format", f"`{path}` is not an Avro file: {error}", path=str(path)) from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ComponentFailure("format", f"`{path}` holds no records, so it has no columns", path=str(path))
    return {str(field["name"]): _type(field["type"]) for field in schema["fields"]}


def _type(avro: Any) -> str:
    """DuckDB's type for one of Avro's."""
    if isinstance(avro, list):
        others = [one for one in avro if one != "null"]
        return _type(others[0]) if len(others) == 1 else "VARCHAR"
    if isinstance(avro, str):
        return _PLAIN.get(avro, "VARCHAR")
    logical = avro.get("logicalType")
    if logical == "decimal":
        return f"DECIMAL({min(int(avro['precision']), 38)},{int(avro.get('scale', 0))})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match avro["type"]:
        case "array":
            return f"{_type(avro['items'])}[]"
        case "map":
            return f"MAP(VARCHAR, {_type(avro['values'])})"
        case "record":
            fields = [f"{select.sql(select.column(str(one['name'])))} {_type(one['type'])}" for one in avro["fields"]]
            return f"STRUCT({', '.join(fields)})"
    return _type(avro["type"])


def _rows(fastavro: ModuleType, path: Path, chosen: dict[str, str], first: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    there = _columns(fastavro, path)
    if there != first:
        differ = sorted(set(there.items()) ^ set(first.items()))[0][0]
        raise ComponentFailure("columns", f"`{path}` has another column `{differ}` than the first file", path=str(path))
    texts = {name for name, type in chosen.items() if type == "VARCHAR"}
    with path.open("rb") as file:
        try:
            for record in fastavro.reader(file):
                yield tuple(_text(record[name]) if name in texts else record[name] for name in chosen)
        except (ValueError, EOFError) as error:
            raise ComponentFailure("format", f"`{path}` is cut off or damaged: {error}", path=str(path)) from None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, (dict, list)) else str(value)


class WriteAvroParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    compression: Annotated[Literal["deflate", "null", "bzip2", "xz"], about("How the blocks are packed.")] = "deflate"
    record: Annotated[str, about("The name of the record in the schema.", pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")] = "row"
    credentials: parameters.Credentials = None


class WriteAvro(Writer[WriteAvroParams]):
    """Write rows as an Avro file. It replaces an older one when it is complete.

    Every column may be NULL. What Avro has no type for, such as a HUGEINT, is text. Names of columns are words of ASCII letters,
    digits and `_`. Needs the package `fastavro`. The rows go on through `main` when it is connected.
    """

    type = "write_avro"

    def run(self, params: WriteAvroParams, call: Call) -> None:
        fastavro = _fastavro()
        rows = call.input()
        schema = fastavro.parse_schema(
            {"type": "record", "name": params.record, "fields": [_field(column) for column in rows.schema]}
        )
        query = exp.select(*(_written(column) for column in rows.schema)).from_(select.table("input"))
        names = [column.name for column in rows.schema]
        records = (
            dict(zip(names, row, strict=True))
            for batch in call.engine.rows(select.sql(query), {"input": rows}, _BATCH)
            for row in batch
        )
        with file_paths.whole_file(file_paths.target(params.path, call, params.credentials)) as file:
            fastavro.writer(file, schema, records, codec=params.compression)
        call.put("main", rows)


def _field(column: Column) -> dict[str, Any]:
    if not _NAME.match(column.name):
        raise ComponentFailure(
            "columns", f"Avro takes no column `{column.name}`; hint: rename it with ASCII letters, digits and `_`"
        )
    return {"name": column.name, "type": ["null", _avro(column.type, column.name)], "default": None}


def _avro(type: str, way: str) -> Any:
    """Avro's type for one of DuckDB's; `way` makes the names of records unique."""
    if (inner := inner_of(type)) is not None:
        return {"type": "array", "items": ["null", _avro(inner, f"{way}_item")]}
    if (fields := fields_of(type)) is not None:
        found = [{"name": name, "type": ["null", _avro(kind, f"{way}_{name}")]} for name, kind in fields.items()]
        return {"type": "record", "name": f"{way}_record", "fields": found}
    if (decimal := _DECIMAL.match(type)) is not None:
        return {"type": "bytes", "logicalType": "decimal", "precision": int(decimal[1]), "scale": int(decimal[2])}
    return _AVRO.get(type, "string")


def _written(column: Column) -> exp.Expr:
    value = select.column(column.name)
    is_known = column.type in _AVRO or _DECIMAL.match(column.type) or column.type.endswith("]")
    if is_known or column.type.startswith("STRUCT("):
        return value
    return exp.alias_(select.cast(value, "VARCHAR"), select.name(column.name))
