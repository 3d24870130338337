"""Plug-ins without packaging: Python files in a folder `plugins` beside a document, or at the root of its project.

Law: a file is imported when a document uses something of it, or somebody asks for it by name, and not before. What each file
offers is read from its text: `@tool("kind")` and `@component("type")`, and classes that name their `kind` or `type`. So a file
that is broken breaks only the documents that use it. The files of a folder make one package of its own, whatever others are
called alike elsewhere: they see each other by relative imports.

The root of a project is the nearest folder above the document that has a `.penstockignore`, a `.git` or a `pyproject.toml`.
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
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from penstock.kernel.errors import Refused
from penstock.ports.folders import CatalogFolder, is_address

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
            package = types.ModuleType(name)
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
