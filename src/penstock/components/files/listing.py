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
from penstock.tools.places.base import Entry, Place, translated

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
    address: str
    """A path, or a URL."""
    relative: str
    """Its path from the folder that was searched, with `/`."""
    is_folder: bool
    size: int
    modified_ns: int

    @property
    def path(self) -> Path:
        """Of a file of this machine."""
        return Path(self.address)

    @property
    def modified(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(microseconds=self.modified_ns // 1000)

    def as_json(self) -> JsonMap:
        row = dict(zip((column.name for column in COLUMNS), self.as_row(), strict=True))
        del row["type"]
        return {**row, "modified": self.modified.isoformat(timespec="milliseconds").replace("+00:00", "Z")}

    def as_row(self) -> tuple[Any, ...]:
        folder, _, name = self.address.rpartition("/")
        return (
            self.address,
            name,
            Path(name).stem,
            Path(name).suffix.removeprefix("."),
            folder or "/",
            "folder" if self.is_folder else "file",
            self.size,
            self.modified.replace(tzinfo=None),
        )


def facts(path: Path, relative: str = "") -> Found:
    """What is known of one file or folder; a link is what it leads to."""
    about = path.stat()
    return Found(str(path), relative or path.name, stat.S_ISDIR(about.st_mode), about.st_size, about.st_mtime_ns)


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
    return _ordered(found.values(), sort, order)


def _ordered(found: Iterable[Found], sort: Sort, order: Order) -> list[Found]:
    ordered = sorted(found, key=lambda each: each.relative)
    if sort != "name":
        ordered.sort(key=_KEYS[sort], reverse=order == "descending")
    elif order == "descending":
        ordered.reverse()
    return ordered


def found_at(place: Place, entry: Entry) -> Found:
    """A file or folder elsewhere. What a place does not say is 0, and the beginning of 1970."""
    modified = entry.modified.replace(tzinfo=datetime.UTC) if entry.modified is not None else EPOCH
    age = (modified - EPOCH) // datetime.timedelta(microseconds=1) * 1000
    return Found(place.location.url(entry.path), entry.relative, entry.is_folder, entry.size or 0, age)


def entries_at(
    place: Place,
    folder: str,
    patterns: str | list[str] = "*",
    *,
    recursive: bool = False,
    what: What = "files",
    exclude: str | list[str] | None = None,
    missing_ok: bool = False,
) -> list[Entry]:
    """The same of a folder elsewhere, by name. An object store knows no empty folders: one without files is not there."""
    there = place.look(folder)
    if there is None or not there.is_folder:
        if there is None and missing_ok:
            return []
        url = place.location.url(folder)
        raise ToolFailure("not_found", f"there is no folder `{url}`", path=url)
    rules = [translated(f"**/{pattern}" if recursive else pattern) for pattern in listed(patterns)]
    deep = recursive or any("/" in pattern for pattern in listed(patterns))
    found = []
    for each in place.entries(folder.rstrip("/") or folder, recursive=deep):
        name = each.relative.rpartition("/")[2]
        left_out = any(fnmatchcase(name, one) or fnmatchcase(each.relative, one) for one in listed(exclude or []))
        wanted = what == "both" or each.is_folder == (what == "folders")
        if wanted and not left_out and any(rule.fullmatch(each.relative) for rule in rules):
            found.append(each)
    return sorted(found, key=lambda each: each.relative)


def find_at(
    place: Place, folder: str, patterns: str | list[str], *, sort: Sort, order: Order, **asked: Any
) -> list[Found]:
    return _ordered((found_at(place, each) for each in entries_at(place, folder, patterns, **asked)), sort, order)


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
    return Found(str(path), relative, is_folder, about.st_size, about.st_mtime_ns)
