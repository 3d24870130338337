"""A small catalog of components in memory, just clever enough to say what flows out of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.components import UNKNOWN, ComponentDescription, Inferred, Mistake, Port, Ports
from penstock.ports.meanings import DATABASE, KEYCHAIN_ENTRY, PYTHON, READS_FILE, WEB
from penstock.ports.rows import Column, Schema

_IN = (Port("input"),)
_OUT = (Port("main"),)
_REJECT = Port("reject", reject=True)
_TEXT: JsonMap = {"type": "string"}
_ITERATOR: JsonMap = {
    "parallel": {"type": "integer", "minimum": 1},
    "globals": _TEXT,
    "body": {"type": ["string", "null"]},
}


def _type(
    name: str,
    family: str,
    properties: JsonMap | None = None,
    required: tuple[str, ...] = (),
    inputs: tuple[Port, ...] = (),
    outputs: tuple[Port, ...] = (),
    **more: Any,
) -> ComponentDescription:
    schema: JsonMap = {
        "type": "object",
        "properties": properties or {},
        "required": list(required),
        "additionalProperties": False,
        "$defs": more.pop("defs", {}),
    }
    return ComponentDescription(name, family, f"The {name}.", schema=schema, ports=Ports(inputs, outputs), **more)


_CHECK: JsonMap = {
    "type": "object",
    "properties": {"not_null": {"type": "array", "items": _TEXT}, "name": _TEXT},
    "required": ["not_null"],
    "additionalProperties": False,
}

_SQL: JsonMap = {"connection": _TEXT, "table": _TEXT, "sql": _TEXT, "transaction": _TEXT}
TYPES = (
    _type(
        "fixed_rows",
        "read",
        {"columns": {"type": "array", "minItems": 1}, "rows": {"type": "array", "items": {"type": "array"}}},
        ("columns",),
        outputs=_OUT,
        is_relational=True,
    ),
    _type("read_csv", "read", {"path": {**_TEXT, **READS_FILE, "description": "The file."}}, ("path",), outputs=(*_OUT, _REJECT), is_relational=True),
    _type("filter", "transform", {"where": _TEXT}, ("where",), _IN, (*_OUT, _REJECT), is_relational=True),
    _type("derive", "transform", {"columns": {"type": "object", "additionalProperties": {"anyOf": [_TEXT, {"type": "number"}]}}}, ("columns",), _IN, _OUT, is_relational=True),
    _type("join", "transform", {"on": {"type": "array"}, "how": {"enum": ["inner", "left"]}}, (), (Port("main"), Port("lookup")), (*_OUT, _REJECT), is_relational=True),
    _type("union", "transform", {}, (), (Port("input_*"),), _OUT, is_relational=True),
    _type("replicate", "transform", {}, (), _IN, (Port("output_*"),), is_relational=True),
    _type("gather", "transform", {}, (), (Port("input", many=True),), _OUT),
    _type("check", "quality", {"checks": {"type": "array", "items": {"$ref": "#/$defs/Check"}}}, (), _IN, _OUT, defs={"Check": _CHECK}),
    _type("write_csv", "write", {"path": _TEXT}, ("path",), _IN, (Port("main", reject=True),), is_relational=True),
    _type("log_rows", "write", {"limit": {"type": "integer", "minimum": 1}}, (), _IN, (Port("main", reject=True),)),
    _type("read_sql", "read", _SQL, ("connection",), (), _OUT),
    _type("write_sql", "write", _SQL, ("connection",), _IN, (Port("main", reject=True), _REJECT)),
    _type("run_sql", "write", _SQL, ("connection",), (), (Port("main", reject=True),)),
    _type("shared_commit", "write"),
    _type("python", "code", {"code": {**_TEXT, **PYTHON}, "mode": {"enum": ["once", "row"]}}, ("code",), (Port("input", required=False), Port("input_*", required=False)), (*_OUT, _REJECT, Port("output_*"))),
    _type("sleep", "orchestrate", {"seconds": {"type": "number", "minimum": 0, "description": "How long."}}, ("seconds",)),
    _type("warn", "orchestrate", {"message": {}, "code": {"type": ["integer", "null"]}}, ("message",), makes_files=False),
    _type("noop", "orchestrate", makes_files=False),
    _type("call", "orchestrate", {"url": {**_TEXT, **WEB}, "connection": {**_TEXT, **DATABASE}, "auth": {**_TEXT, **KEYCHAIN_ENTRY}}),
    _type("timer", "orchestrate", startable=True),
    _type("set_global", "orchestrate", {"values": {"type": ["object", "string"]}}, ("values",)),
    _type("pre_job", "orchestrate"),
    _type("post_job", "orchestrate"),
    _type("iterate_list", "iterate", {"items": {}, **_ITERATOR}, ("items",), (), (Port("item", reject=True),), is_iterator=True),
    _type("iterate_rows", "iterate", _ITERATOR, (), _IN, (Port("item", reject=True),), is_iterator=True),
    _type("iterate_while", "iterate", {"while": _TEXT, **_ITERATOR}, ("while",), (), (Port("item", reject=True),), is_iterator=True),
)  # fmt: skip


class SmallCatalog:
    def __init__(self, *types: ComponentDescription) -> None:
        self._types = {each.type: each for each in types}

    def types(self) -> list[str]:
        return sorted(self._types)

    def describe(self, type: str) -> ComponentDescription | None:
        if type == "broken":
            raise Refused("the component `broken` needs `pyspark`", "install it")
        return self._types.get(type)

    def ports(self, type: str, params: Mapping[str, Any]) -> Ports:
        return self._types[type].ports

    def infer(
        self,
        type: str,
        params: Mapping[str, Any],
        inputs: Mapping[str, Schema | None],
        outputs: tuple[str, ...],
        folder: Path,
        declared: Mapping[str, Schema] = MappingProxyType({}),
        engine: str = "duckdb",
    ) -> Inferred:
        first = next(iter(inputs.values())) if inputs else ()
        mistakes: list[Mistake] = []
        schema = first
        match type:
            case "fixed_rows" if UNKNOWN in params.get("columns", [UNKNOWN]):
                schema = None
            case "fixed_rows":
                schema = tuple(Column(str(name), "BIGINT") for name in params["columns"])
            case "iterate_list" | "iterate_rows" | "iterate_while" | "python":
                schema = None
            case "read_csv":
                schema = None
            case "filter":
                mistakes += _looked_over(("where",), params.get("where"), first)
            case "derive" if isinstance(params.get("columns"), dict):
                for name, text in params["columns"].items():
                    mistakes += _looked_over(("columns", name), text, first)
                known = {column.name for column in first or ()}
                more = tuple(Column(name, "DOUBLE") for name in params["columns"] if name not in known)
                schema = None if first is None else (*first, *more)
        return Inferred(dict.fromkeys(outputs, schema), tuple(mistakes), _lineage(inputs, outputs, schema))


_SQL_WORDS = frozenset(("and", "or", "not", "date", "cast", "as", "null", "is"))


def _looked_over(path: tuple[str | int, ...], text: Any, schema: Schema | None) -> list[Mistake]:
    if text is UNKNOWN or not isinstance(text, str):
        return []
    if re.search(r"[<>=+]\s*\Z", text):
        return [Mistake(path, "the expression ends too early", offset=len(text.rstrip()) - 1, kind="syntax")]
    if "DATE" in text:
        return [Mistake(path, "a date and a number cannot be added", offset=text.index("DATE"), length=4, kind="type")]
    if schema is None:
        return []
    names = {column.name for column in schema}
    bare = re.sub(r"'[^']*'", lambda quoted: " " * len(quoted[0]), text)
    found = []
    for word in re.finditer(r"[A-Za-z_]\w*", bare):
        if word[0] not in names and word[0].lower() not in _SQL_WORDS:
            found.append(Mistake(path, f"there is no column `{word[0]}`", hint="there is " + ", ".join(sorted(names)),
                                 offset=word.start(), length=len(word[0]), kind="column"))  # fmt: skip
    return found


def _lineage(
    inputs: Mapping[str, Schema | None], outputs: tuple[str, ...], schema: Schema | None
) -> dict[str, dict[str, tuple[tuple[str, str], ...]]]:
    columns = {
        column.name: tuple((port, column.name) for port, known in inputs.items() if known and column in known)
        for column in schema or ()
    }
    return dict.fromkeys(outputs, columns)


CATALOG = SmallCatalog(*TYPES)
