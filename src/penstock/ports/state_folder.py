"""The state folder holds whatever runs have read, written and said, and the key of the keychain: only its owner may read it.

Law: this does not depend on the umask, and a folder made by an earlier release is made private when it is opened again. A
folder that holds other things as well (`--store .`) is not ours to close: there only our files are private.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER = ".penstock"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
PASSABLE_FOLDER = 0o711
OTHERS = 0o077
IGNORED = ".gitignore"
POSTGRES = "postgres"
OURS = (
    IGNORED,
    POSTGRES,
    "blobs",
    "control.db",
    "keychain",
    "lines",
    "locks",
    "logs",
    "objects",
    "penstock.db",
    "running",
    "server",
    "spool",
    "work",
)
"""How the names of what lies in a state folder begin."""


def make_state_folder(home: Path) -> None:
    """The folder, private, with a `.gitignore` in it: it must not end up in a repository."""
    is_new = not home.exists()
    home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if is_new or is_ours(home):
        make_private(home)
    if is_new or home.name == FOLDER:
        _write_ignore(home / IGNORED)


def is_ours(home: Path) -> bool:
    """Whether the folder is the engine's alone."""
    if home.name == FOLDER:
        return True
    try:
        return all(name.startswith(OURS) for name in os.listdir(home))
    except OSError:
        return False


def make_private(path: Path) -> None:
    """Deny others access to the folder, if it is ours. On a read-only disk it stays as it is."""
    with suppress(OSError):
        found = path.stat()
        wanted = stat.S_IMODE(found.st_mode) & ~OTHERS
        if stat.S_ISDIR(found.st_mode) and _has_lodger(path):
            wanted |= PASSABLE_FOLDER
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != wanted:
            path.chmod(wanted)


def make_private_file(path: Path) -> None:
    """The file, created empty if it is new, readable by its owner only from the first moment on. Raises OSError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    except FileExistsError:
        make_private(path)


def opener(path: str, flags: int) -> int:
    """An opener for `open` that creates private files."""
    return os.open(path, flags, PRIVATE_FILE)


def _has_lodger(home: Path) -> bool:
    """PostgreSQL does not run as root: started by root it runs as another user, who has to get through to its own folder."""
    try:
        return (home / POSTGRES).stat().st_uid != home.stat().st_uid
    except OSError:
        return False


def _write_ignore(path: Path) -> None:
    with suppress(OSError), open(path, "x", encoding="utf-8", opener=opener) as file:
        file.write("# State of penstock, with the key of its keychain: not for a repository.\n*\n")
