"""Folders and files as the adapters need them: durable with their own entry, and errors that name the file and the way out."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from penstock.kernel.errors import Unavailable
from penstock.ports.state_folder import make_state_folder

SAFE = "nothing that was acknowledged is lost"
FULL_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
READ_ONLY_CODES = (errno.EROFS, errno.EACCES, errno.EPERM)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """The folder, with its own entry on disk: a durable file in a folder that is not durable would be lost with it."""
    try:
        if folder.is_dir():
            return
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise unavailable_file(error, folder) from error


def make_home(home: Path) -> None:
    """The state folder, private and durable."""
    try:
        make_folder(home.parent)
        make_state_folder(home)
        sync_folder(home.parent)
    except OSError as error:
        raise unavailable_file(error, home) from error


def sync_folder(folder: Path) -> None:
    """Names in `folder` are durable. A folder that may be written but not read cannot be synchronised: that is let pass."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unavailable_file(error: OSError, path: Path) -> Unavailable:
    where = error.filename or path
    if error.errno in FULL_CODES:
        return full_disk(where)
    if error.errno in READ_ONLY_CODES:
        return Unavailable(
            f"`{where}` cannot be written: {_reason(error)}",
            "make the folder writable, or choose another one with `PENSTOCK_HOME`",
        )
    return Unavailable(
        f"`{where}` cannot be used: {_reason(error)}", "choose another folder with `PENSTOCK_HOME`, or free this one"
    )


def full_disk(where: object) -> Unavailable:
    return Unavailable(f"the disk is full: `{where}` could not be written", f"{SAFE}; make room and resume the run")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
