"""Which files a parameter means, and what is wrong with them when it is not the files' contents.

A path is relative to the document's folder. A path with `*`, `?` or `[` in it is a pattern, unless a file is really
called so.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import os
from pathlib import Path
from typing import IO, Protocol, cast

from penstock.components.base import ComponentFailure
from penstock.components.flow.tool_calls import file_failures, tool_failures
from penstock.ports.folders import require_writable
from penstock.tools import base as tools
from penstock.tools.paths import local_path, require_regular

Stamp = tuple[str, int, int]
"""A file as it was at one moment: path, time of change, size."""


class Resolving(Protocol):
    """Whoever knows the document's folder: a Call or a PlanCall."""

    def resolve(self, path: str) -> Path: ...


def resolved(path: str, call: Resolving) -> Path:
    with tool_failures():
        # Of a tool's call only `resolve` is asked for.
        return local_path(path, cast("tools.Call", call))


def is_pattern(path: Path) -> bool:
    return any(mark in str(path) for mark in "*?[") and not path.exists()


def one_file(path: str, call: Resolving) -> Path:
    """The file itself. Raises ComponentFailure when it is not there or is no file."""
    found = resolved(path, call)
    if found.is_dir():
        raise ComponentFailure(
            "file", f"`{found}` is a folder; hint: name a file, or a pattern such as `{found}/*`", path=str(found)
        )
    if not found.exists():
        raise ComponentFailure("missing_file", f"there is no file `{found}`", path=str(found))
    with file_failures(found):
        require_regular(found)
    _require_access(found)
    return found


def _require_access(path: Path) -> None:
    if not os.access(path, os.R_OK):
        raise ComponentFailure("permission", f"no permission to read `{path}`", path=str(path))


def all_files(path: str, call: Resolving) -> list[Path]:
    """The file, or those that match the pattern, by name. Raises ComponentFailure when there is none."""
    found = resolved(path, call)
    if not is_pattern(found):
        return [one_file(path, call)]
    matches = [Path(each) for each in sorted(glob.glob(str(found), recursive=True))]
    files = [each for each in matches if each.is_file()]
    if not files:
        raise ComponentFailure("missing_file", f"no file matches `{found}`", path=str(found))
    for each in files:
        _require_access(each)
    return files


def stamp(path: Path) -> Stamp:
    about = path.stat()
    return str(path), about.st_mtime_ns, about.st_size


def stamps(paths: list[Path]) -> tuple[Stamp, ...]:
    return tuple(stamp(path) for path in paths)


def open_bytes(path: Path) -> IO[bytes]:
    """A file for reading, unpacked when its name says that it is packed with gzip."""
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def codec(encoding: str) -> str:
    """Python's own name of an encoding: `UTF8`, `utf-8` and `utf_8` are one."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ComponentFailure(
            "parameters", f"there is no encoding `{encoding}`; hint: `utf-8`, `latin-1`, `cp1252`, `utf-16`"
        ) from None


def is_utf8(encoding: str) -> bool:
    # A byte order mark is skipped by whoever reads the file, so `utf-8-sig` is the same here.
    return codec(encoding) in ("utf-8", "utf-8-sig", "ascii")


def make_room(path: Path) -> None:
    """The folder of a file that will be written. Raises ComponentFailure when the file could not be put there."""
    require_writable(path)
    if path.is_dir():
        raise ComponentFailure("file", f"`{path}` is a folder, and a file is to be written", path=str(path))
    try:
        with file_failures(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
    except ComponentFailure as failure:
        if failure.kind in ("file_exists", "missing_file"):
            raise ComponentFailure(
                "file", f"a part of `{path.parent}` is a file, not a folder", path=str(path)
            ) from None
        raise
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ComponentFailure("permission", f"no permission to write in the folder `{path.parent}`", path=str(path))
