"""The files of projects on this machine: each archive is unpacked once, into a folder that is named by its checksum.

Law: a folder is complete or absent: it is unpacked under a temporary name, read-only, and renamed. Before it is used its files
are compared with what was unpacked, so that a folder that was changed is unpacked anew. Folders that were not used for days are
removed.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from uuid import uuid4

from penstock.adapters.files.folders import make_folder, unavailable_file
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.projects import Files, unpacked

BASE = "PENSTOCK_BASE"
FOLDER = "projects"
FILES = "files"
USED = "used"
UNPACKED_AT = 946_684_800
"""The time of every file: one that was written since has another."""
KEPT_S = 14 * 24 * 3600.0
CLEANED_S = 3600.0
COMPARED_S = 5.0
"""Leases of one run come one after the other: files are compared this often at most."""


def base_folder(environ: Mapping[str, str], given: str | None = None) -> Path | None:
    """The folder that relative paths of catalog documents start from, unless they name files of a project: as given, else
    `PENSTOCK_BASE`."""
    setting = given or environ.get(BASE)
    return None if not setting else Path(os.path.abspath(Path(setting).expanduser()))


class UnpackedProjects:
    def __init__(self, home: Path, blobs: BlobStore, kept_s: float = KEPT_S) -> None:
        self._root = home / FOLDER
        self._blobs = blobs
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, int]] = {}
        """Checksum -> path -> size, of what was compared or unpacked here."""
        self._compared_at: dict[str, float] = {}
        self._cleaned_at = 0.0

    def folder(self, archive: ResultRef) -> Path:
        with self._lock:
            folder = self._root / archive.checksum
            now = time.monotonic()
            if now - self._compared_at.get(archive.checksum, -inf) < COMPARED_S and (folder / FILES).is_dir():
                return folder / FILES
            if not self._is_sound(archive, folder):
                self._unpack(archive, folder)
            self._compared_at[archive.checksum] = now
            with suppress(OSError):
                (folder / USED).touch()
            self._clean(archive.checksum)
            return folder / FILES

    def _is_sound(self, archive: ResultRef, folder: Path) -> bool:
        if not (folder / FILES).is_dir():
            return False
        if archive.checksum not in self._known:
            self._known[archive.checksum] = _sizes(unpacked(self._blobs.get(archive)))
        return _found(folder / FILES) == self._known[archive.checksum]

    def _unpack(self, archive: ResultRef, folder: Path) -> None:
        files = unpacked(self._blobs.get(archive))  # Checked against its checksum by the store.
        make_folder(self._root)
        new = self._root / f".{archive.checksum}-{uuid4().hex}"
        try:
            _write(files, new / FILES)
            for _ in range(3):  # Another process may do the same at the same time.
                with suppress(OSError):
                    new.rename(folder)
                    break
                if _found(folder / FILES) == _sizes(files):
                    break
                with suppress(
                    OSError
                ):  # Processes keep the files they have open; the folder is removed when it is old.
                    folder.rename(self._root / f".{archive.checksum}-{uuid4().hex}")
        except OSError as error:
            raise unavailable_file(error, folder) from error
        finally:
            _remove(new)
        self._known[archive.checksum] = _sizes(files)

    def _clean(self, current: str) -> None:
        """Now and then: what has not been used for long, and what a process that died has left."""
        now = time.time()
        if now - self._cleaned_at < CLEANED_S:
            return
        self._cleaned_at = now
        with suppress(OSError):
            for one in list(self._root.iterdir()):
                mark = one / USED if (one / USED).exists() else one
                if one.name != current and now - mark.stat().st_mtime > self._kept_s:
                    _remove(one)
                    self._known.pop(one.name, None)


def _write(files: Files, folder: Path) -> None:
    folder.mkdir(parents=True)
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        os.utime(target, (UNPACKED_AT, UNPACKED_AT))
        target.chmod(0o555 if file.is_executable else 0o444)
    for root, _, _ in os.walk(folder, topdown=False):
        os.chmod(root, 0o555)


def _sizes(files: Files) -> dict[str, int]:
    return {path: len(file.data) for path, file in files.items()}


def _found(folder: Path) -> dict[str, int]:
    """What lies there as it was unpacked; a file that has been changed has the size -1. Caches of Python do not count."""
    found: dict[str, int] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = Path(root, name)
            try:
                seen = path.lstat()
            except OSError:
                continue
            found[path.relative_to(folder).as_posix()] = seen.st_size if seen.st_mtime == UNPACKED_AT else -1
    return found


def _remove(folder: Path) -> None:
    if not folder.exists():
        return
    for root, _, _ in os.walk(folder):
        with suppress(OSError):
            os.chmod(root, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
