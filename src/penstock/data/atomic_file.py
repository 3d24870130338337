"""Atomic writes: a file appears whole or not at all.

It is written under a temporary name in the same folder and renamed when everything that belongs to it has succeeded. Pipes and
devices are written directly. Temporary files of killed processes are removed by the next process that writes the same file.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from contextlib import suppress
from itertools import count
from pathlib import Path

from penstock.ports.folders import require_writable
from penstock.ports.rows import RowsFailed

_numbers = count(1)
_under_way: set[Path] = set()
"""The files that this process is writing: another file with its process id is from an earlier process."""


class AtomicFile:
    def __init__(self, path: Path) -> None:
        # A link stays a link to the file that is replaced.
        self.path = Path(os.path.realpath(path))
        require_writable(self.path)
        if (self.path / "_SUCCESS").exists():
            shutil.rmtree(self.path)  # What Spark has written here in place of a file, which is to be replaced.
        if self.path.is_dir():
            raise RowsFailed("io", f"`{path}` is a folder, not a file")
        if not self.path.parent.is_dir():
            raise RowsFailed(
                "missing_file", f"there is no folder `{self.path.parent}` to write `{self.path.name}` into"
            )
        is_plain = not self.path.exists() or self.path.is_file()
        unfinished = f".{self.path.name}.{socket.gethostname()}-{os.getpid()}-{next(_numbers)}.part"
        self.written = self.path.with_name(unfinished) if is_plain else self.path
        if is_plain:
            _sweep(self.path)
            _under_way.add(self.written)

    @property
    def is_beside(self) -> bool:
        """Whether it is an ordinary file, written under a temporary name until it is complete."""
        return self.written != self.path

    def land(self) -> None:
        if not self.is_beside:
            return
        try:
            if self.path.exists():
                os.chmod(self.written, self.path.stat().st_mode)
            os.replace(self.written, self.path)
        except OSError as error:
            raise RowsFailed("io", f"`{self.path}` cannot be written: {error.strerror}") from error

    def discard(self) -> None:
        if self.is_beside:
            if self.written.is_dir():  # The files of partitions.
                shutil.rmtree(self.written, ignore_errors=True)
            self.written.unlink(missing_ok=True)
            _under_way.discard(self.written)


def _sweep(path: Path) -> None:
    """Only files of this machine: whether a process of another machine still writes is unknown."""
    name = re.compile(rf"\.{re.escape(path.name)}\.{re.escape(socket.gethostname())}-(\d+)-\d+\.part")
    for one in os.listdir(path.parent):
        found = name.fullmatch(one)
        if found is not None and not _is_written(path.with_name(one), int(found[1])):
            with suppress(OSError):
                path.with_name(one).unlink()


def _is_written(unfinished: Path, process: int) -> bool:
    # In a container process ids start over, and the killed process often had this one's.
    if process == os.getpid():
        return unfinished in _under_way
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # Another user's.
    return True
