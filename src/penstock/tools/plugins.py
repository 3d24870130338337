"""Plug-ins, be they tools or components: where they are looked for, and how they are loaded.

Law: nothing is imported before it is asked for. Built-in names are a table; plug-ins in a folder beside the document come next,
then what code registers; installed packages offer more through entry points, which are looked at only for a name that is none
of these.
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
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import msgspec
from msgspec import inspect as types

from penstock.kernel.errors import Refused
from penstock.ports.folders import CatalogFolder, is_address
from penstock.ports.plugins import offered
from penstock.tools.parameters import similar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

# ---- One of ours from its table, another's from its entry point.


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
                if isinstance(named := one.__dict__.get(word), str):
                    found.setdefault((what, named), one)
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
                message = f"the {offer.what} `{offer.name}` is defined in `{there.file.name}` already"
                made.broken.append(Broken(path, offer.line, message, is_syntax=False))
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
                value = getattr(getattr(statement, "value", None), "value", None)
                if target in _WORDS and isinstance(value, str):
                    yield Offer(_WORDS[target], value, file, node.lineno)


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


# ---- The plug-ins of one sort in one process

MOST_SCOPED = 200
"""So many folders' plug-ins are kept apart; which are needed again are read again."""


class PluginRegistry(Generic[T]):
    """The plug-ins of one sort, each made once."""

    what: ClassVar[What]
    word: ClassVar[str]
    """The attribute that bears the name of one: `kind`, `type`."""
    group: ClassVar[str]
    """The entry points of installed packages: name = its name, value = the class."""
    built_in: ClassVar[Mapping[str, str]]
    """Name -> `module:Class`, the module in `package`."""
    package: ClassVar[str]
    registered: ClassVar[dict[str, Any]]
    """What code has registered."""

    def __init__(self, plugins: tuple[PluginFolder, ...] = ()) -> None:
        """`plugins`: folders with plug-ins for some documents only; see `at`."""
        self.plugins = plugins
        self._made: dict[str, T] = {}
        self._scoped: dict[tuple[int, ...], Self] = {}

    @classmethod
    def check(cls, found: Any, whose: str) -> None:
        """Raises Refused for a class that would fail later, in the middle of a run."""
        raise NotImplementedError

    @classmethod
    def register(cls, found: Any) -> None:
        """Make one known to this process. The same name again replaces the earlier one."""
        cls.check(found, f"`{getattr(found, '__name__', found)}`")
        name = getattr(found, cls.word)
        if name in cls.built_in:
            raise Refused(f"the {cls.word} `{name}` is built in", f"give the {cls.what} a {cls.word} of its own")
        if not collected(cls.what, name, found):
            cls.registered[name] = found

    def hint(self) -> str:
        """What helps who asked for a name that there is not."""
        raise NotImplementedError

    def at(self, folder: Path) -> Self:
        """What documents in that folder have: all of these, and those of its plug-ins."""
        plugins = plugin_folders(folder)
        if not plugins:
            return self
        key = tuple(map(id, plugins))
        if key not in self._scoped:
            if len(self._scoped) >= MOST_SCOPED:
                self._scoped.clear()
            self._scoped[key] = self.with_plugins(plugins)
        return self._scoped[key]

    def with_plugins(self, plugins: tuple[PluginFolder, ...]) -> Self:
        return self.__class__(plugins)

    def get(self, name: str) -> T:
        """Raises Refused when there is none of that name, or its plug-in is broken."""
        made = self._made.get(name)
        if made is None or (name in self.registered and self._is_replaced(name, made)):
            found = self.find(name)
            if found is None:
                near = similar(name, self.names())
                raise Refused(f"there is no {self.what} of {self.word} `{name}`{near}", self.hint())
            made = self._made[name] = found()
        return made

    def names(self) -> list[str]:
        """Built-in ones first, then the others by name."""
        own = {name for folder in self.plugins for name in folder.names(self.what)}
        return [*self.built_in, *sorted({*self.registered, *own, *offered(self.group)} - {*self.built_in})]

    def find(self, name: str) -> type[T] | None:
        if name in self.built_in:
            return cast("type[T]", built_in(self.what, name, f"{self.package}.{self.built_in[name]}"))
        for folder in self.plugins:
            if (found := folder.find(self.what, name, self.check)) is not None:
                return cast("type[T]", found)
        if name in self.registered:
            return cast("type[T]", self.registered[name])
        offer = offered(self.group).get(name)
        return None if offer is None else cast("type[T]", plugged_in(offer, self.what, self.word, self.check))

    def _is_replaced(self, name: str, made: T) -> bool:
        """Has code registered another class since? What a folder of plug-ins has goes before it."""
        is_own = any(name in folder.names(self.what) for folder in self.plugins)
        return not is_own and type(made) is not self.registered[name]


def shipped_example(name: str) -> str:
    from importlib.resources import files  # Only pages need it: it takes some milliseconds to import.

    return files("penstock.tools").joinpath("examples", f"{name}.yaml").read_text("utf-8")


def check_params(params: Any, whose: str) -> None:
    """Raises Refused for a model of parameters that cannot be used."""
    if not (isinstance(params, type) and issubclass(params, msgspec.Struct)):
        raise Refused(f"{whose} has no `Params`", "`Params` is a subclass of `msgspec.Struct`")
    try:
        types.type_info(params)
    except (TypeError, NameError) as error:
        raise Refused(f"the `Params` of {whose} cannot be used: {error}") from error
