"""Which tools there are. Nothing is imported before it is asked for.

Built-in kinds are a table; plug-ins in a folder beside the document come next (`plugin_folder`), then what code registers;
installed packages offer more through the entry-point group `penstock.tools` (name = kind, value = the class), which is looked at
only for a kind that is none of these.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec
from msgspec import inspect as types

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.folders import CatalogFolder, is_address
from penstock.ports.plugins import ParamInfo, ToolDescription, offered
from penstock.tools.base import Tool
from penstock.tools.parameters import bare, choices_of, convert, similar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# ---- How plug-ins are loaded, be they tools or components: one of ours from its table, another's from its entry point.


def built_in(what: str, name: str, target: str) -> Any:
    """The class at `target`, written `module:Class`. `what` is what messages call it: a tool, a component."""
    module, _, found = target.partition(":")
    try:
        return getattr(import_module(module), found)
    except ImportError as error:
        hint = "install penstock again; a package is missing"
        raise Refused(f"the {what} `{name}` cannot be loaded: {error}", hint) from error


def plugged_in(offer: EntryPoint, what: str, word: str, check: Callable[[Any, str], None]) -> Any:
    """The class that an installed package offers. `word` is the attribute that must bear the name it is offered under."""
    package = f"the package `{offer.dist.name}`" if offer.dist is not None else f"`{offer.value}`"
    hint = "fix or uninstall that package"
    try:
        found = offer.load()
    except Exception as error:  # another author's module may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise Refused(f"the {what} `{offer.name}` of {package} cannot be loaded: {reason}", hint) from error
    check(found, f"`{offer.value}` of {package}")
    own = getattr(found, word)
    if own != offer.name:
        raise Refused(f"`{offer.value}` of {package} is offered as `{offer.name}`, and its {word} is `{own}`", hint)
    return found


# ---- Plug-ins without packaging: Python files in a folder `plugins` beside a document, or at the root of its project.
# Law: a file is imported when a document uses something of it, or somebody asks for it by name, and not before. What each
# file offers is read from its text: `@tool("kind")` and `@component("type")`, and classes that name their `kind` or `type`.
# So a file that is broken breaks only the documents that use it. The files of a folder make one package of its own, whatever
# others are called alike elsewhere: they see each other by relative imports.
# The root of a project is the nearest folder above the document that has a `.penstockignore`, a `.git` or a
# `pyproject.toml`.

NAME = "plugins"
ROOT_MARKS = (".penstockignore", ".git", "pyproject.toml")
What = Literal["tool", "component"]
_WORDS: dict[str, What] = {"kind": "tool", "type": "component"}
_HINT = "correct the file; `penstock doctor` looks at all of them"


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that a file says it defines."""

    what: What
    name: str
    file: Path
    line: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that cannot be read as Python, or defines what another one has defined."""

    file: Path
    line: int
    reason: str
    is_syntax: bool = True

    @property
    def message(self) -> str:
        return f"plug-in {self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class PluginFolder:
    folder: Path
    offers: dict[tuple[What, str], Offer] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    _made: dict[tuple[What, str], Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def names(self, what: What) -> list[str]:
        return [name for kind, name in self.offers if kind == what]

    def find(self, what: What, name: str, check: Callable[[Any, str], None]) -> Any:
        """The class of that name, or None. Refused, naming file and line, when its file cannot be imported."""
        offer = self.offers.get((what, name))
        if offer is None:
            self._check_unread(name)
            return None
        with self._lock:
            if (what, name) not in self._made:
                self._made.update(_imported(offer, self._package()))
            found = self._made.get((what, name))
        whose = f"`{name}` in `{offer.file}`, line {offer.line},"
        if found is None:
            raise Refused(f"the {what} {whose} is not there once the file has been imported", _HINT)
        check(found, whose)
        return found

    def _check_unread(self, name: str) -> None:
        """A file that cannot be read as Python may be where it is defined: then that is what is wrong."""
        for one in self.broken:
            if one.is_syntax and re.search(rf"""['"]{re.escape(name)}['"]""", one.file.read_text("utf-8", "replace")):
                raise Refused(one.message, _HINT)

    def _package(self) -> str:
        """The files as a package that no other folder shares."""
        name = f"penstock_plugins_{hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(self.folder)]
            sys.modules[name] = package
        return name


# ---- what a registration goes to while a file is being imported

_collecting: ContextVar[dict[tuple[What, str], Any] | None] = ContextVar("collecting", default=None)


def collected(what: What, name: str, found: Any) -> bool:
    """Was it taken by the folder that is being imported? Otherwise it is the whole process's."""
    into = _collecting.get()
    if into is None:
        return False
    into[what, name] = found
    return True


@contextmanager
def _collector() -> Iterator[dict[tuple[What, str], Any]]:
    found: dict[tuple[What, str], Any] = {}
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def _imported(offer: Offer, package: str) -> dict[tuple[What, str], Any]:
    stem = offer.file.parent.name if offer.file.name == "__init__.py" else offer.file.stem
    name = f"{package}.{stem}"
    with _collector() as found:
        try:
            importlib.invalidate_caches()
            module = importlib.import_module(name)
        except Exception as error:  # The author's module may raise anything while it is imported.
            sys.modules.pop(name, None)
            raise Refused(_reason(offer, error), _HINT) from error
    for one in vars(module).values():
        if isinstance(one, type) and one.__module__ == name:
            for word, what in _WORDS.items():
                if isinstance(said := one.__dict__.get(word), str):
                    found.setdefault((what, said), one)
    return found


def _reason(offer: Offer, error: BaseException) -> str:
    folder = str(offer.file.parent) + os.sep
    file, line = str(offer.file), getattr(error, "lineno", None) or offer.line
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(folder) and frame.lineno:
            file, line = frame.filename, frame.lineno
    return f"plug-in {file}:{line}: {type(error).__name__}: {error}"


# ---- finding them


def plugin_folders(folder: Path) -> tuple[PluginFolder, ...]:
    """Those of a document in that folder: beside it, then at the root of its project."""
    if is_address(folder):  # Nobody runs it here.
        return ()
    places = [Path(folder)]
    if isinstance(folder, CatalogFolder):
        places = [Path(folder), folder.around.files] if folder.around.files is not None else []
    elif (root := _root(places[0])) is not None:
        places.append(root)
    found = (read_folder(place / NAME) for place in dict.fromkeys(places))
    return tuple(one for one in found if one is not None)


def _root(folder: Path) -> Path | None:
    folder = Path(os.path.abspath(folder))
    for place in (folder, *folder.parents):
        if any((place / mark).exists() for mark in ROOT_MARKS):
            return place
    return None


def read_folder(folder: Path) -> PluginFolder | None:
    try:
        files = _files(folder)
        stamp = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:
        return None
    return _read(Path(os.path.realpath(folder)), stamp) if files else None


def _files(folder: Path) -> list[Path]:
    found = []
    for one in sorted(folder.iterdir()):
        if one.name.startswith(("_", ".")):
            continue
        if one.suffix == ".py" and one.is_file():
            found.append(one)
        elif (one / "__init__.py").is_file():
            found.append(one / "__init__.py")
    return found


@lru_cache(maxsize=256)
def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> PluginFolder:
    """Read again when a file has changed; what was imported before stays as it was in runs that have it."""
    made = PluginFolder(folder)
    package = made._package()
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        del sys.modules[name]
    for file, _, _ in stamp:
        path = folder / Path(file).relative_to(
            Path(file).parent.parent if file.endswith("__init__.py") else Path(file).parent
        )
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError, OSError) as error:
            reason = getattr(error, "msg", None) or str(error)
            made.broken.append(Broken(path, getattr(error, "lineno", None) or 1, f"{type(error).__name__}: {reason}"))
            continue
        for offer in _offers(tree, path):
            there = made.offers.setdefault((offer.what, offer.name), offer)
            if there is not offer:
                said = f"the {offer.what} `{offer.name}` is defined in `{there.file.name}` already"
                made.broken.append(Broken(path, offer.line, said, is_syntax=False))
    return made


def _offers(tree: ast.Module, file: Path) -> Iterator[Offer]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and (what := _decorator(one.func)) and (name := _name(one)):
                    yield Offer(what, name, file, node.lineno)
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                target = _assigned(statement)
                said = getattr(getattr(statement, "value", None), "value", None)
                if target in _WORDS and isinstance(said, str):
                    yield Offer(_WORDS[target], said, file, node.lineno)


def _decorator(node: ast.expr) -> What | None:
    word = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "tool" if word == "tool" else "component" if word == "component" else None


def _name(call: ast.Call) -> str:
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in _WORDS)]
    values = [one.value for one in given if isinstance(one, ast.Constant)]
    return values[0] if values and isinstance(values[0], str) else ""


def _assigned(statement: ast.stmt) -> str:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


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
    "playbook": "penstock.tools.children:PlaybookTool",
    "job": "penstock.tools.children:JobTool",
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
