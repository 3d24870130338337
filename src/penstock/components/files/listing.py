"""Which files a folder has: by pattern, in a stated order, with what is known of each.

Law: the same folder gives the same list. Whatever the order asked for, equals are ordered by path. Names that begin with a dot
are found only by a pattern that says so, as in a shell: half-written files are called that.
"""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from penstock.kernel.values import JsonMap
from penstock.ports.rows import Column, Schema
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import about

Patterns = Annotated[str | list[str], about("Which names: `*.csv`, `2024-*/*.json`; a list for several patterns.")]
OptionalPatterns = Annotated[
    str | list[str] | None,
    about("Which files of the folder `path`: `*.csv`, `2024-*/*.json`; a list for several patterns."),
]
Exclude = Annotated[str | list[str] | None, about("Names to leave out; patterns as well.")]
Recursive = Annotated[bool, about("Also in folders below.")]
What = Literal["files", "folders", "both"]
Sort = Literal["name", "modified", "size"]
Order = Literal["ascending", "descending"]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

COLUMNS: Schema = (
    Column("path", "VARCHAR"),
    Column("name", "VARCHAR"),
    Column("stem", "VARCHAR"),
    Column("extension", "VARCHAR"),
    Column("folder", "VARCHAR"),
    Column("type", "VARCHAR"),
    Column("size", "BIGINT"),
    Column("modified", "TIMESTAMP"),
)


@dataclass(frozen=True, slots=True)
class Found:
    path: Path
    relative: str
    """Its path from the folder that was searched, with `/`."""
    is_folder: bool
    size: int
    modified_ns: int

    @property
    def modified(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(microseconds=self.modified_ns // 1000)

    def as_json(self) -> JsonMap:
        row = dict(zip((column.name for column in COLUMNS), self.as_row(), strict=True))
        del row["type"]
        return {**row, "modified": self.modified.isoformat(timespec="milliseconds").replace("+00:00", "Z")}

    def as_row(self) -> tuple[Any, ...]:
        path = self.path
        return (
            str(path),
            path.name,
            path.stem,
            path.suffix.removeprefix("."),
            str(path.parent),
            "folder" if self.is_folder else "file",
            self.size,
            self.modified.replace(tzinfo=None),
        )


def facts(path: Path, relative: str = "") -> Found:
    """What is known of one file or folder; a link is what it leads to."""
    about = path.stat()
    return Found(path, relative or path.name, stat.S_ISDIR(about.st_mode), about.st_size, about.st_mtime_ns)


def listed(patterns: str | list[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def find(
    folder: Path,
    patterns: str | list[str] = "*",
    *,
    recursive: bool = False,
    what: What = "files",
    exclude: str | list[str] | None = None,
    sort: Sort = "name",
    order: Order = "ascending",
) -> list[Found]:
    """What lies in the folder. Raises OSError when it is not there, or is no folder."""
    # `glob` is silent about a folder that is not there or may not be read; this is not.
    with os.scandir(folder):
        pass
    found: dict[Path, Found] = {}
    for pattern in listed(patterns):
        for path in _globbed(folder, pattern, recursive):
            each = _wanted(folder, path, pattern, what, listed(exclude or []))
            if each is not None:
                found[path] = each
    ordered = sorted(found.values(), key=lambda each: each.relative)
    if sort != "name":
        ordered.sort(key=_KEYS[sort], reverse=order == "descending")
    elif order == "descending":
        ordered.reverse()
    return ordered


_KEYS: dict[str, Callable[[Found], Any]] = {
    "modified": lambda each: each.modified_ns,
    "size": lambda each: each.size,
}


def _globbed(folder: Path, pattern: str, recursive: bool) -> Iterable[Path]:
    if not pattern.strip() or ".." in pattern.split("/"):
        raise ToolFailure("parameters", f"`pattern` is `{pattern}`: it names what lies in `path`, such as `*.csv`")
    try:
        return list(folder.rglob(pattern) if recursive else folder.glob(pattern))
    except (NotImplementedError, ValueError) as error:
        raise ToolFailure("parameters", f"`pattern` is `{pattern}`: {error}") from error


def _wanted(folder: Path, path: Path, pattern: str, what: What, exclude: list[str]) -> Found | None:
    relative = path.relative_to(folder).as_posix()
    if relative == "." or any(fnmatchcase(path.name, each) or fnmatchcase(relative, each) for each in exclude):
        return None
    dotted = any(part.startswith(".") for part in pattern.split("/"))
    if not dotted and any(part.startswith(".") for part in relative.split("/")):
        return None
    try:
        about = path.stat()
    except OSError:
        return None  # gone since it was listed, or a link that leads nowhere
    is_folder = stat.S_ISDIR(about.st_mode)
    # A pipe or a device is neither: reading it could block for ever.
    if not is_folder and not stat.S_ISREG(about.st_mode):
        return None
    if (what == "files" and is_folder) or (what == "folders" and not is_folder):
        return None
    return Found(path, relative, is_folder, about.st_size, about.st_mtime_ns)
