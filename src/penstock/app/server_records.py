"""Which servers run on a state folder: so that a command in that folder finds what they use, and not an empty database beside it.

Law: each server process keeps one file here, `servers/PID.json`, and holds a lock on it for as long as it lives. A file that
nobody holds is of a server that died, and counts for nothing. The files are for their owner alone: a database URL may hold a
password.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

FOLDER = "servers"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    pid: int
    url: str
    database: str | None
    """None: it keeps everything in the state folder itself."""


@contextmanager
def recorded(home: Path, url: str, database: str | None) -> Iterator[None]:
    """A server of this process, for as long as the block lasts."""
    record = ServerRecord(os.getpid(), url, database)
    file = home / FOLDER / f"{record.pid}.json"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.write(handle, msgspec.json.encode(record))
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(handle)


def running_servers(home: Path) -> list[ServerRecord]:
    """Those that are alive. What others left behind is removed."""
    found = []
    try:
        files = sorted((home / FOLDER).glob("*.json"))
    except OSError:
        return []
    for file in files:
        with suppress(OSError):
            handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _is_held(handle):
                    with suppress(msgspec.MsgspecError):  # It is just being written.
                        found.append(msgspec.json.decode(os.read(handle, 1 << 16), type=ServerRecord))
                else:
                    file.unlink()
            finally:
                os.close(handle)
    return found


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
