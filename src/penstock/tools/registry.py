"""Which tools there are. Nothing is imported before it is asked for.

Built-in kinds are a table; plug-ins in a folder beside the document come next (`plugin_folder`), then what code registers;
installed packages offer more through the entry-point group `penstock.tools` (name = kind, value = the class), which is looked at
only for a kind that is none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import inspect as types

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ParamInfo, ToolDescription, offered
from penstock.tools.base import Tool
from penstock.tools.loading import built_in, plugged_in
from penstock.tools.parameters import bare, choices_of, convert, similar
from penstock.tools.plugin_folder import PluginFolder, collected, plugin_folders

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "penstock.tools"

BUILT_IN = {
    "http": "penstock.tools.http.tool:HttpTool",
    "python": "penstock.tools.python.tool:PythonTool",
    "postgres": "penstock.tools.sql.postgres:PostgresTool",
    "mysql": "penstock.tools.sql.mysql:MysqlTool",
    "sqlite": "penstock.tools.sql.sqlite:SqliteTool",
    "duckdb": "penstock.tools.sql.duckdb:DuckdbTool",
    "shell": "penstock.tools.shell:ShellTool",
    "transfer": "penstock.tools.transfer.tool:TransferTool",
    "files": "penstock.tools.files:FilesTool",
    "playbook": "penstock.tools.playbook:PlaybookTool",
    "job": "penstock.tools.job:JobTool",
    "noop": "penstock.tools.small:NoopTool",
    "sleep": "penstock.tools.small:SleepTool",
    "log": "penstock.tools.small:LogTool",
    "notify": "penstock.tools.notify:NotifyTool",
}

_JSON_TYPES: dict[Any, str] = {
    types.StrType: "string",
    types.IntType: "integer",
    types.FloatType: "number",
    types.BoolType: "boolean",
    types.NoneType: "null",
    types.ListType: "array",
    types.DictType: "object",
    types.StructType: "object",
}

MOST_SCOPED = 200
"""So many folders' plug-ins are kept apart; which are needed again are read again."""

_registered: dict[str, type[Tool[Any]]] = {}
T = TypeVar("T", bound=type[Tool[Any]])


def register(tool_class: T) -> T:
    """Make a tool known to this process, for code and notebooks. The same kind again replaces the earlier one."""
    _checked(tool_class, f"`{getattr(tool_class, '__name__', tool_class)}`")
    if tool_class.kind in BUILT_IN:
        raise Refused(f"the kind `{tool_class.kind}` is built in", "give the tool a kind of its own")
    if not collected("tool", tool_class.kind, tool_class):
        _registered[tool_class.kind] = tool_class
    return tool_class


class Registry:
    """The tools of one process, each made once. Answers `penstock.ports.plugins.ToolCatalog`."""

    def __init__(self, plugins: tuple[PluginFolder, ...] = ()) -> None:
        """`plugins`: folders with tools for some documents only; see `at`."""
        self.plugins = plugins
        self._made: dict[str, Tool[Any]] = {}
        self._scoped: dict[tuple[int, ...], Registry] = {}

    def at(self, folder: Path) -> Registry:
        """The tools that documents in that folder have: all of these, and those of its plug-ins."""
        plugins = plugin_folders(folder)
        if not plugins:
            return self
        key = tuple(map(id, plugins))
        if key not in self._scoped:
            if len(self._scoped) >= MOST_SCOPED:
                self._scoped.clear()
            self._scoped[key] = Registry(plugins)
        return self._scoped[key]

    def get(self, kind: str) -> Tool[Any]:
        """Raises Refused when there is no such kind, or its plug-in is broken."""
        made = self._made.get(kind)
        if made is None or (kind in _registered and not self._is_own(kind) and type(made) is not _registered[kind]):
            tool_class = self._find(kind)
            if tool_class is None:
                known = self.kinds()
                hint = "the kinds are " + ", ".join(f"`{each}`" for each in known)
                raise Refused(f"there is no tool of kind `{kind}`{similar(kind, known)}", hint)
            made = self._made[kind] = tool_class()
        return made

    def kinds(self) -> list[str]:
        """Built-in ones first, then the others by name."""
        own = {name for folder in self.plugins for name in folder.names("tool")}
        return [*BUILT_IN, *sorted({*_registered, *own, *self._offers()} - {*BUILT_IN})]

    def convert(self, kind: str, values: Mapping[str, Any]) -> msgspec.Struct:
        """Rendered values as the tool's parameters. Raises ToolFailure of kind `parameters` that lists all mistakes."""
        return convert(kind, type(self.get(kind)).Params, values)

    def describe(self, kind: str) -> ToolDescription | None:
        tool_class = self._find(kind)
        return None if tool_class is None else describe(tool_class)

    def _find(self, kind: str) -> type[Tool[Any]] | None:
        if kind in BUILT_IN:
            return cast("type[Tool[Any]]", built_in("tool", kind, BUILT_IN[kind]))
        for folder in self.plugins:
            if (found := folder.find("tool", kind, _checked)) is not None:
                return cast("type[Tool[Any]]", found)
        if kind in _registered:
            return _registered[kind]
        offer = self._offers().get(kind)
        return None if offer is None else cast("type[Tool[Any]]", plugged_in(offer, "tool", "kind", _checked))

    def _is_own(self, kind: str) -> bool:
        return any(kind in folder.names("tool") for folder in self.plugins)

    def _offers(self) -> Mapping[str, EntryPoint]:
        return offered(GROUP)


def _checked(tool_class: Any, whose: str) -> None:
    """A class that would fail later, in the middle of a run, is refused here."""
    if not (isinstance(tool_class, type) and issubclass(tool_class, Tool)):
        raise Refused(f"{whose} is not a tool", "a tool is a subclass of `Tool`, or a function under `@tool`")
    if not isinstance(getattr(tool_class, "kind", None), str) or not tool_class.kind:
        raise Refused(f"{whose} has no `kind`")
    params = getattr(tool_class, "Params", None)
    if not (isinstance(params, type) and issubclass(params, msgspec.Struct)):
        raise Refused(f"{whose} has no `Params`", "`Params` is a subclass of `msgspec.Struct`")
    try:
        types.type_info(params)
    except (TypeError, NameError) as error:
        raise Refused(f"the `Params` of {whose} cannot be used: {error}") from error


def describe(tool_class: type[Tool[Any]]) -> ToolDescription:
    """What a document is checked against, the reference page shows and an editor offers."""
    told = described(tool_class.kind, tool_class.Params, tool_class.__doc__, dict(tool_class.defaults))
    return replace(told, makes_files=tool_class.makes_files)


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
