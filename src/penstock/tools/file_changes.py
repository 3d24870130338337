"""Changes to files that are whole or not at all.

Law: new content is written beside its place, made durable, and only then put there, so a reader, a crash or a full disk never
sees half a file. All of this blocks, and is called from a thread. Errors of the operating system pass through.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from penstock.ports.folders import require_writable
from penstock.ports.undoing import unless_done
from penstock.tools.base import ToolFailure, require_regular

CHUNK = 1024 * 1024


def chunks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _beside(destination: Path) -> Path:
    return destination.parent / f".{secrets.token_hex(8)}.tmp"


def _sync_folder(folder: Path) -> None:
    """A rename is durable only when its folder is. Some network file systems cannot say so, and need not."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _current_mode(destination: Path) -> int | None:
    """The permissions of what is there now. Only a regular file may be replaced: a device would be lost."""
    try:
        return stat.S_IMODE(require_regular(destination).st_mode)
    except FileNotFoundError:
        return None


def replace(target: Path, chunks: Iterable[bytes], *, overwrite: bool) -> int:
    """Write a whole file and give its size. A link is written through, and permissions stay as they were."""
    destination = Path(os.path.realpath(target))
    require_writable(destination)
    mode = _current_mode(destination)
    if mode is not None and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(destination)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with unless_done(lambda: temporary.unlink(missing_ok=True)):
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
        _put(temporary, destination, overwrite=overwrite)
    _sync_folder(destination.parent)
    return size


def _put(temporary: Path, destination: Path, *, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, destination)
        return
    try:
        # Unlike a rename, a link fails when another process was faster.
        os.link(temporary, destination)
    except FileExistsError:
        raise
    except OSError:
        os.replace(temporary, destination)
    else:
        temporary.unlink()


def append(target: Path, data: bytes, *, on_new_line: bool) -> int:
    """Add to the end of a file in one write; begin a new line first when the last one was left open."""
    require_writable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        require_regular(target)
    with target.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if on_new_line and end:
            file.seek(end - 1)
            data = data if file.read(1) == b"\n" else b"\n" + data
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) or 0 :]
        os.fsync(file.fileno())
    return len(data)


def _is_same(source: Path, target: Path) -> bool:
    return target.exists() and os.path.samefile(source, target)


def _check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    require_writable(target)
    if source.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(source)):
        raise ToolFailure("parameters", f"`{source}` cannot be put into itself")
    if target.is_dir():
        raise ToolFailure("exists", f"`{target}` is a folder that exists already; delete it first", path=str(target))
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))


def copy(source: Path, target: Path, *, overwrite: bool) -> None:
    """Copy a file, or a folder with all that is in it. Times and permissions come along."""
    if _is_same(source, target):
        return
    _check_target(source, target, overwrite=overwrite)
    if not source.is_dir():
        require_regular(source)
        replace(target, chunks_of(source), overwrite=overwrite)
        shutil.copystat(source, target)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(target)
    with unless_done(lambda: shutil.rmtree(temporary, ignore_errors=True)):
        shutil.copytree(source, temporary, symlinks=True)
        os.rename(temporary, target)
    _sync_folder(target.parent)


def move(source: Path, target: Path, *, overwrite: bool) -> None:
    """Rename; between file systems copy first, and delete only what has been copied whole."""
    if _is_same(source, target):
        return
    require_writable(source)
    _check_target(source, target, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, target, overwrite=overwrite)
        delete(source)
    _sync_folder(target.parent)


def delete(path: Path) -> None:
    """Delete a file, a link (never what it leads to), or a folder with all that is in it."""
    require_writable(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
