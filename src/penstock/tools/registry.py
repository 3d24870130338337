"""Which tools there are, and how they are described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import inspect as types

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ParamInfo, ToolDescription
from penstock.tools.base import Tool
from penstock.tools.parameters import bare, choices_of, convert
from penstock.tools.plugins import PluginRegistry, check_params, shipped_example

BUILT_IN = {
    "http": "http.tool:HttpTool",
    "python": "python.tool:PythonTool",
    "postgres": "sql.postgres:PostgresTool",
    "mysql": "sql.mysql:MysqlTool",
    "sqlite": "sql.sqlite:SqliteTool",
    "duckdb": "sql.duckdb:DuckdbTool",
    "shell": "shell:ShellTool",
    "transfer": "transfer.tool:TransferTool",
    "files": "files:FilesTool",
    "playbook": "flow:PlaybookTool",
    "job": "flow:JobTool",
    "noop": "flow:NoopTool",
    "sleep": "flow:SleepTool",
    "log": "flow:LogTool",
    "notify": "notify:NotifyTool",
    "nats": "nats.tool:NatsTool",
    "artifact": "artifact:ArtifactTool",
    "container": "container.tool:ContainerTool",
}

_JSON_TYPES: dict[Any, str] = {
    types.StrType: "string", types.IntType: "integer", types.FloatType: "number", types.BoolType: "boolean",
    types.NoneType: "null", types.ListType: "array", types.DictType: "object", types.StructType: "object",
}  # fmt: skip

T = TypeVar("T", bound=type[Tool[Any]])


class Registry(PluginRegistry[Tool[Any]]):
    """The tools of one process. Answers `penstock.ports.plugins.ToolCatalog`."""

    what = "tool"
    word = "kind"
    group = "penstock.tools"
    built_in = BUILT_IN
    package = "penstock.tools"
    registered: ClassVar[dict[str, type[Tool[Any]]]] = {}

    def hint(self) -> str:
        return "the kinds are " + ", ".join(f"`{each}`" for each in self.names())

    def kinds(self) -> list[str]:
        return self.names()

    def convert(self, kind: str, values: Mapping[str, Any]) -> msgspec.Struct:
        """Rendered values as the tool's parameters. Raises ToolFailure of kind `parameters` that lists all mistakes."""
        return convert(kind, type(self.get(kind)).Params, values)

    def describe(self, kind: str) -> ToolDescription | None:
        tool_class = self.find(kind)
        return None if tool_class is None else describe(tool_class)

    @classmethod
    def check(cls, found: Any, whose: str) -> None:
        if not (isinstance(found, type) and issubclass(found, Tool)):
            raise Refused(f"{whose} is not a tool", "a tool is a subclass of `Tool`, or a function under `@tool`")
        if not isinstance(getattr(found, "kind", None), str) or not found.kind:
            raise Refused(f"{whose} has no `kind`")
        check_params(getattr(found, "Params", None), whose)


def register(tool_class: T) -> T:
    """Make a tool known to this process, for code and notebooks. The same kind again replaces the earlier one."""
    Registry.register(tool_class)
    return tool_class


def describe(tool_class: type[Tool[Any]]) -> ToolDescription:
    """What a document is checked against, the reference page shows and an editor offers."""
    description = described(tool_class.kind, tool_class.Params, tool_class.__doc__, dict(tool_class.defaults))
    return replace(description, makes_files=tool_class.makes_files, one_of=tool_class.one_of, gives=tool_class.gives)


def example_of(tool_class: type[Tool[Any]]) -> str:
    """A task in YAML that uses the tool. A built-in kind has its own in `examples/`."""
    return shipped_example(tool_class.kind) if tool_class.kind in BUILT_IN else tool_class.example


def described(kind: str, params: type[msgspec.Struct], doc: str | None, defaults: JsonMap) -> ToolDescription:
    """The same of anything that has typed parameters and a page of its own."""
    summary = " ".join((doc or "").strip().partition("\n\n")[0].split())
    fields, schema = _fields(params)
    return ToolDescription(kind=kind, summary=summary, params=dict(fields), schema=schema, defaults=defaults)


@lru_cache(maxsize=1024)
def _fields(params: type[msgspec.Struct]) -> tuple[Mapping[str, ParamInfo], JsonMap]:
    """Working them out takes milliseconds, and a process may have many registries."""
    info = types.type_info(params)
    assert isinstance(info, types.StructType)
    return {field.encode_name: _param(field) for field in info.fields}, _schema(params)


def _param(field: types.Field) -> ParamInfo:
    extra = getattr(field.type, "extra_json_schema", None) or {}
    return ParamInfo(
        name=field.encode_name,
        required=field.required,
        types=_json_types(field.type),
        enum=choices_of(field.type),
        description=str(extra.get("description", "")),
    )


def _json_types(type_: types.Type) -> tuple[str, ...]:
    type_ = bare(type_)
    if isinstance(type_, types.UnionType):
        members = [name for member in type_.types for name in _json_types(member)]
        return ("any",) if "any" in members else tuple(dict.fromkeys(members))
    if isinstance(type_, types.LiteralType):
        return ("string",) if all(isinstance(value, str) for value in type_.values) else ("any",)
    return (_JSON_TYPES.get(type(type_), "any"),)


def _schema(model: type[msgspec.Struct]) -> JsonMap:
    """The model's schema as one object, with only what it refers to left under `$defs`."""
    schema = msgspec.json.schema(model)
    definitions = dict(schema.get("$defs", {}))
    root = definitions.pop(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return {**root, "$defs": definitions} if definitions else dict(root)
