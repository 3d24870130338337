"""What SQLite says, told to people: what is wrong, with which file, and what can be done."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from penstock.adapters.files.folders import SAFE, full_disk, unavailable_file
from penstock.kernel.errors import Unavailable


def is_busy(error: sqlite3.Error) -> bool:
    return _family(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def unavailable(error: sqlite3.Error | OSError | MemoryError, path: Path) -> Unavailable:
    """The trouble with the world behind `error`, which came up while `path` was used."""
    if isinstance(error, OSError):
        return unavailable_file(error, path)
    if isinstance(error, MemoryError):
        return Unavailable(f"there was no memory left to work on `{path}`", f"{SAFE}; resume the run with more memory")
    match _family(error):
        case sqlite3.SQLITE_FULL:
            return full_disk(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return Unavailable(
                f"`{path}` is locked by another program",
                f"{SAFE}; end the program that holds it (a database shell, a backup) and resume the run",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return Unavailable(
                f"`{path}` is damaged: {error}",
                f"put a backup in its place, or save what can be read with `sqlite3 {path} .recover` and move "
                "the file away; the next run makes a new one",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return Unavailable(
                f"`{path}` cannot be written: {error}",
                "make the file and its folder writable, or choose another folder with `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_CANTOPEN if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
            return Unavailable(
                f"`{path}` cannot be opened: its folder is read-only",
                "make the folder writable, or choose another with `--store` or `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_CANTOPEN:
            return Unavailable(
                f"`{path}` cannot be opened: {error}",
                "see that it is a file and that its folder can be read and written, "
                "or choose another folder with `PENSTOCK_HOME`",
            )
        case sqlite3.SQLITE_IOERR:
            return Unavailable(
                f"the disk under `{path}` failed: {error} ({_name(error)})",
                f"{SAFE}; see that the disk is healthy and has room, then resume the run",
            )
    return Unavailable(f"`{path}` could not be used: {error} ({_name(error)})", SAFE)


def _family(error: sqlite3.Error) -> int:
    """Extended codes keep their family in the low byte."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _name(error: sqlite3.Error) -> str:
    name: str = getattr(error, "sqlite_errorname", "no code")
    return name
