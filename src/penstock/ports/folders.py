"""What relative paths in parameters are relative to: the folder of the document they are written in (D56).

A component of a joblet is written in the joblet's file, and so are its paths; but a text that the caller passed to the joblet is
written in the caller's. So one component may have paths of several documents. Components need not know: they ask for
`folder / path`.

A document of the catalog has an address instead of a file: `catalog:/sales/orders@2`, or, in a project that was added as a
folder, `catalog:/shop@3/jobs/load.yaml`. An address is never a path on a disk: the process that runs the document has a
`CatalogFolder` for it, which leads into the files of the project, otherwise into the base folder of this machine, where the
catalog's root is the folder itself. Paths that lead out of both are refused.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.values import frozen

if sys.platform == "win32":
    from pathlib import WindowsPath as _Native
else:
    from pathlib import PosixPath as _Native

CATALOG = "catalog:"
_ADDRESS = re.compile(rf"{CATALOG}/(?P<name>[^@]+)@(?P<version>\d+)(?:/(?P<inner>.*))?\Z", re.DOTALL)


@frozen
class Base:
    """For one component: the folder of its own document, and the texts in its parameters that come from another one."""

    folder: Path
    borrowed: tuple[tuple[str, Path], ...] = ()
    """Template -> the folder of the document it was given in."""

    def rendered(self, render: Callable[[str], Any]) -> Path:
        """The folder once templates have a value."""
        if not self.borrowed:
            return self.folder
        found: dict[str, Path] = {}
        for text, folder in self.borrowed:
            value = render(text)
            if isinstance(value, str):
                # Of the URL of a database only the file in it is looked for.
                found.update({str(Path(path)): folder for path in (value, value.partition(":///")[2]) if path})
        return DocumentFolder.with_borrowed(self.folder, found)

    def located(self, locate: Callable[[Path], Path]) -> Base:
        """The same with folders in which files can be looked for."""
        return Base(locate(self.folder), tuple((text, locate(folder)) for text, folder in self.borrowed))


class DocumentFolder(_Native):
    """A folder from which texts that another document supplied lead elsewhere."""

    borrowed: Mapping[str, Path] = MappingProxyType({})

    @staticmethod
    def with_borrowed(folder: Path, borrowed: Mapping[str, Path]) -> DocumentFolder:
        made = folder.copied() if isinstance(folder, CatalogFolder) else DocumentFolder(folder)
        made.borrowed = borrowed
        return made

    @property
    def own(self) -> Path:
        """The folder for texts of the document itself."""
        return Path(self)

    def __truediv__(self, key: str | PathLike[str]) -> Path:  # type: ignore[override]
        return base_of(self, key) / key


@frozen
class Surroundings:
    """For a document of the catalog, on this machine. `files`: the root of the project's own files, None for a document that
    was added on its own. `base`: where the root of the project, or the folder of the document, is in the base folder; None
    if there is no base. `top`: the base folder."""

    address: str
    """The address of the document's folder."""
    inner: str
    """That folder within the project; empty for its root, and outside projects."""
    files: Path | None
    base: Path | None
    top: Path | None


class CatalogFolder(DocumentFolder):
    """The folder of a document of the catalog. As a path it is the one that commands start in and modules are imported from."""

    around: Surroundings

    @staticmethod
    def made(around: Surroundings, nowhere: Path) -> CatalogFolder:
        """`nowhere`: an empty folder, for a document that has none."""
        if around.files is not None:
            folder = around.files / around.inner
        else:
            folder = around.base or nowhere
            if around.base is not None:
                _make(around.base)
        found = CatalogFolder(folder)
        found.around = around
        return found

    def copied(self) -> CatalogFolder:
        found = CatalogFolder(Path(self))
        found.around = self.around
        return found

    @property
    def own(self) -> Path:
        return self.copied() if self.borrowed else self

    def __truediv__(self, key: str | PathLike[str]) -> Path:  # type: ignore[override]
        lent = self.borrowed.get(str(Path(key)))
        return self._found(os.fspath(key)) if lent is None else lent / key

    def _found(self, path: str) -> Path:
        if os.path.isabs(path):
            return Path(path)
        around = self.around
        inner = os.path.normpath(os.path.join(around.inner, path))
        if around.files is not None:
            if inner.split(os.sep, 1)[0] == os.pardir:
                raise Refused(
                    f"`{path}` leads out of the project",
                    "a project has its files inside of it; write an absolute path for what lies elsewhere",
                )
            own = around.files / inner
            if _is_of_the_project(own) or _is_in_use(own, None if around.base is None else around.base / inner):
                return own
        if around.base is None or around.top is None:
            where = (
                "is no file of the project"
                if around.files is not None
                else "is relative, and the document has no folder"
            )
            raise Refused(
                f"`{path}` {where}, and there is no base folder here",
                "start this worker with `--base DIR`, write an absolute path, or put the file into the project "
                "(`penstock catalog put DIR`)",
            )
        found = Path(os.path.normpath(around.base / inner))
        if not found.is_relative_to(around.top):
            raise Refused(f"`{path}` leads out of the base folder `{around.top}`", "write an absolute path")
        if around.files is not None and (around.files / inner).parent.is_dir():
            _make(found.parent)  # A folder of the project is there to be written into.
        return found


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Refused(f"the folder `{folder}` cannot be made: {reason}", "look at `--base` of this worker") from error


def _is_of_the_project(path: Path) -> bool:
    if glob.has_magic(str(path)):
        return next(glob.iglob(str(path), recursive=True), None) is not None
    return path.is_file()


def _is_in_use(own: Path, other: Path | None) -> bool:
    """Whether the folder has files of the project and does not exist in the base folder."""
    if not own.is_dir() or (other is not None and other.exists()):
        return False
    return any(not one.name.startswith(".") for one in own.iterdir())


_UNPACKED = re.compile(r"[/\\]projects[/\\][0-9a-f]{64}[/\\]files(?:[/\\]|\Z)")


def require_writable(path: Path) -> None:
    """Refused for a file of a project: all runs of its version read it, so it must not change."""
    if _UNPACKED.search(os.path.realpath(path)):
        raise Refused(
            f"`{path.name}` is a file of the project, and these are only read",
            "write to another path: it leads to the worker's `--base DIR`",
        )


def base_of(folder: Path, path: str | PathLike[str]) -> Path:
    """The folder that a path from a parameter is relative to."""
    if not isinstance(folder, DocumentFolder):
        return folder
    return folder.borrowed.get(str(Path(path)), folder.own)


# ---- addresses


@frozen
class InProject:
    """An address in a project, taken apart. `inner`: a file or folder of it."""

    name: str
    version: int
    inner: str

    @property
    def root(self) -> str:
        return f"{CATALOG}/{self.name}@{self.version}"


def is_address(file: str | PathLike[str]) -> bool:
    return os.fspath(file).startswith(CATALOG)


def in_project(address: str | PathLike[str]) -> InProject | None:
    """None for anything but the address of a file or folder of a project."""
    found = _ADDRESS.match(os.path.normpath(os.fspath(address)))
    return None if found is None else InProject(found["name"], int(found["version"]), found["inner"] or "")


def address_of(folder: Path) -> str:
    """The folder as another machine knows it."""
    return folder.around.address if isinstance(folder, CatalogFolder) else str(folder)


def searched(folder: Path) -> list[str]:
    """Where programs that search for files with relative names themselves do so, in this order."""
    if not isinstance(folder, CatalogFolder) or folder.around.base is None:
        return [str(folder)]
    return list(dict.fromkeys([str(folder), os.path.normpath(folder.around.base / folder.around.inner)]))


def whole_folder(folder: str | PathLike[str]) -> str:
    """One name for a folder, however it was reached: links are followed, except in an address."""
    return os.path.normpath(folder) if is_address(folder) else os.path.realpath(folder)
