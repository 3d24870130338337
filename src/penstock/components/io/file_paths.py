"""Which files a parameter means, and what is wrong with them when it is not the files' contents.

A path is relative to the document's folder. A path with `*`, `?` or `[` in it is a pattern, unless a file is really
called so.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import glob
import gzip
import io
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol, cast

from penstock.components.base import ComponentFailure
from penstock.components.flow.tool_calls import file_failures, place_failures, tool_failures
from penstock.data.atomic_file import AtomicFile
from penstock.ports.folders import require_writable
from penstock.tools import base as tools
from penstock.tools.base import local_path, require_regular
from penstock.tools.places.base import Place, is_elsewhere
from penstock.tools.places.local import LocalPlace
from penstock.tools.places.mirror import Credentials, Mirror

PARTS_WRITTEN = "_SUCCESS"
"""Is in a folder that Spark has written in place of a file: the files in it are its parts."""
Stamp = tuple[str, int, int]
"""A file as it was at one moment: path, time of change, size."""


class Resolving(Protocol):
    """Whoever knows the document's folder, and in a run the files elsewhere: a Call or a PlanCall."""

    @property
    def mirror(self) -> Mirror | None: ...

    def resolve(self, path: str) -> Path: ...


def resolved(path: str, call: Resolving) -> Path:
    with tool_failures():
        # Of a tool's call only `resolve` is asked for.
        return local_path(path, cast("tools.Call", call))


def mirror(path: str, call: Resolving) -> Mirror:
    """Raises ComponentFailure before the run: no network is needed to check a document."""
    if call.mirror is None:
        raise ComponentFailure("elsewhere", f"`{path}` is not on this machine, and looked at only in a run")
    return call.mirror


def target(path: str, call: Resolving, credentials: Credentials, *, append: bool = False) -> Path:
    """The file to write; of one elsewhere, the one that will be sent there."""
    if not is_elsewhere(path):
        return resolved(path, call)
    with place_failures():
        return mirror(path, call).target(path, credentials, begun=append)


def place_at(path: str, call: Resolving, credentials: Credentials) -> tuple[Place, str]:
    """The place of a path or URL, and the path there. Raises ToolFailure."""
    if not is_elsewhere(path):
        return LocalPlace(), str(resolved(path, call))
    place, location = mirror(path, call).at(path, credentials)
    return place, location.path


def shown(path: Path, call: Resolving) -> str:
    """The path or URL as the author knows it."""
    return str(path) if call.mirror is None else call.mirror.shown(str(path))


def is_pattern(path: Path) -> bool:
    return any(mark in str(path) for mark in "*?[") and not path.exists()


def one_file(path: str, call: Resolving, credentials: Credentials = None) -> Path:
    """The file itself, or its copy. Raises ComponentFailure when it is not there or is no file."""
    if is_elsewhere(path):
        found, *others = all_files(path, call, credentials)
        if others:
            raise ComponentFailure("file", f"`{path}` matches {len(others) + 1} files, and one is wanted")
        return found
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


def all_files(path: str, call: Resolving, credentials: Credentials = None) -> list[Path]:
    """The file, or those that match the pattern, by name; copies of files elsewhere. Raises ComponentFailure when there is
    none."""
    if is_elsewhere(path):
        with place_failures():
            return mirror(path, call).copies(path, credentials)
    found = resolved(path, call)
    if (found / PARTS_WRITTEN).exists():
        found /= "part-*"
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


PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
"""The endings of packed files."""
BY_THE_ENGINE = {".gz": "gzip", ".zst": "zstd"}
"""Those that DuckDB packs and unpacks itself, with its names for them."""


def _zstd() -> ModuleType:
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def open_bytes(path: Path) -> IO[bytes]:
    """A file for reading, unpacked when its name says that it is packed."""
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.open(path))
        case ".bz2":
            return cast("IO[bytes]", bz2.open(path))
        case ".xz":
            return cast("IO[bytes]", lzma.open(path))
        case ".zst" | ".zstd":
            return cast("IO[bytes]", _zstd().open(path))
    return path.open("rb")


@contextmanager
def packed_into(target: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """What to write to, so that it arrives in `target` packed as the name of the file says."""
    match path.suffix:
        case ".gz":
            # Without the time, so that the same rows make the same file.
            opened: Any = gzip.GzipFile(fileobj=target, mode="wb", mtime=0)
        case ".bz2":
            opened = bz2.BZ2File(target, "wb")
        case ".xz":
            opened = lzma.LZMAFile(target, "wb")  # noqa: SIM115  (it is closed below)
        case ".zst" | ".zstd":
            opened = _zstd().open(target, "wb")
        case _:
            yield target
            return
    with opened as file:
        yield file


def unpacking_failures() -> tuple[type[Exception], ...]:
    """What is raised of a file that cannot be read, is not packed as its name says, or is cut off."""
    return (OSError, lzma.LZMAError, zlib.error, EOFError, _zstd().ZstdError)


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except unpacking_failures() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ComponentFailure(
            "format", f"`{path}` is cut off, or not packed as its name says: {error}", path=str(path)
        ) from None


def readable_files(path: str, call: Resolving, credentials: Credentials = None) -> list[Path]:
    """As `all_files`, for readers that stand on DuckDB: what that cannot unpack is unpacked in the run's folder."""
    found = all_files(path, call, credentials)
    return [_unpacked(each, call) if each.suffix in PACKED and each.suffix != ".gz" else each for each in found]


def _unpacked(path: Path, call: Resolving) -> Path:
    if call.mirror is None and path.suffix in BY_THE_ENGINE:
        return path  # To look at it. DuckDB takes a Zstandard file that is cut off for one that ends there.
    if call.mirror is None:
        raise ComponentFailure("elsewhere", f"`{path}` is packed, and unpacked only in a run")

    def unpack(copy: Path) -> None:
        with _unpacking(path), open_bytes(path) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    return call.mirror.derived(path, path.with_suffix("").name, unpack)


def codec(encoding: str) -> str:
    """Python's own name of an encoding: `UTF8`, `utf-8` and `utf_8` are one."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ComponentFailure(
            "parameters", f"there is no encoding `{encoding}`; hint: `utf-8`, `latin-1`, `cp1252`, `utf-16`"
        ) from None


def is_utf8(encoding: str) -> bool:
    # Readers skip a byte order mark, so `utf-8-sig` is the same here.
    return codec(encoding) in ("utf-8", "utf-8-sig", "ascii")


def make_room(path: Path) -> None:
    """The folder of a file that will be written. Raises ComponentFailure when the file could not be put there."""
    require_writable(path)
    if path.is_dir() and not (path / PARTS_WRITTEN).exists():
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


def open_text(path: Path, encoding: str) -> IO[str]:
    # A byte order mark at the beginning is none of the text.
    chosen = "utf-8-sig" if codec(encoding) == "utf-8" else encoding
    return io.TextIOWrapper(cast("io.BytesIO", open_bytes(path)), encoding=chosen, errors="surrogateescape")


def lines(path: Path, encoding: str, skip: int = 0) -> Iterator[tuple[int, str, str | None]]:
    """(number, text, flaw) of each line, without its end; the number counts from 1. Raises ComponentFailure."""
    try:
        with _unpacking(path), open_text(path, encoding) as file:
            for number, line in enumerate(file, 1):
                if number > skip:
                    yield number, *_sound(line.rstrip("\r\n"), encoding)
    except UnicodeError as error:
        raise ComponentFailure(
            "encoding", f"`{path}` is not written in `{encoding}`: {error}; hint: `encoding: utf-8`", path=str(path)
        ) from None


def _sound(line: str, encoding: str) -> tuple[str, str | None]:
    try:
        line.encode()
    except UnicodeEncodeError:
        return line.encode("utf-8", "replace").decode(), f"these bytes are not `{encoding}`"
    return line, None


def in_batches(rows: Iterator[tuple[Any, ...]], size: int = 5_000) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


@contextmanager
def _write_failures(path: Path) -> Iterator[None]:
    try:
        with file_failures(path):
            yield
    except ComponentFailure as failure:
        cause = failure.__cause__
        if isinstance(cause, OSError) and cause.errno == errno.EFBIG:
            raise ComponentFailure("disk", f"there is no room for all of `{path}`", path=str(path)) from cause
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to. It takes its place, replacing what is there, when the block ends well."""
    make_room(path)
    with _write_failures(path):
        landing = AtomicFile(path)
        try:
            with landing.written.open("wb") as file:
                yield file
                file.flush()
                if landing.is_beside:
                    os.fsync(file.fileno())
            landing.land()
        finally:
            landing.discard()


@contextmanager
def appended_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to add to. It is as long as before when the block fails."""
    make_room(path)
    with _write_failures(path):
        before = path.stat().st_size if path.exists() else None
        done = False
        try:
            with path.open("ab") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            done = True
        finally:
            if not done:
                with suppress(OSError):
                    if before is None:
                        path.unlink(missing_ok=True)
                    else:
                        os.truncate(path, before)


def is_begun(path: Path) -> bool:
    """Is there something in the file already, so that what is added needs no header?"""
    return path.is_file() and path.stat().st_size > 0


@contextmanager
def target_file(path: Path, *, append: bool) -> Iterator[IO[bytes]]:
    with appended_file(path) if append else whole_file(path) as file:
        yield file


def pour(source: Path, target: IO[bytes], encoding: str = "utf-8") -> None:
    """Bytes of a file in UTF-8 into another, in another encoding when that is asked for."""
    if encoding == "utf-8":
        with source.open("rb") as file:
            shutil.copyfileobj(file, target, 1 << 20)
        return
    at_the_start = target.tell() == 0
    # What is added to a file must not begin with another byte order mark.
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
    chosen = encoding if at_the_start else plain.get(encoding, encoding)
    with source.open(encoding="utf-8", newline="") as text:
        for number, line in enumerate(text, 1):
            try:
                target.write(line.encode(chosen))
            except UnicodeEncodeError as error:
                wrong = error.object[error.start : error.end]
                raise ComponentFailure(
                    "encoding",
                    f"line {number}: `{wrong}` cannot be written in `{encoding}`; hint: `encoding: utf-8`",
                    line=number,
                ) from None
            chosen = plain.get(chosen, chosen)


def import_module_or_fail(name: str, message: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ComponentFailure("missing_package", message) from None
