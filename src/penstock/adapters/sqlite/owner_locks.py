"""Who owns an execution on this machine: the process that holds an exclusive lock on its lock file.

Law: the operating system gives a lock back when its holder dies, however it dies, so an owner is alive or there is none.
The lock is on a file of its own and says nothing about the data; the epoch in the log is what fences out a late writer.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.adapters.files.folders import make_folder, unavailable_file
from penstock.ports.log import NotOwner
from penstock.ports.state_folder import PRIVATE_FOLDER, opener

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
# How long a claim goes on while somebody merely looks whether there is an owner.
GLANCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder of a lock wrote about itself."""

    owner: str
    pid: int
    host: str
    since: float

    def describe(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} (`{self.owner}`), since {since}"


class OwnerLocks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, execution_id: str, owner: str) -> None:
        """Hold the lock until `give_back` or the death of this process. Refused when somebody else does."""
        if execution_id in self._held:
            raise self._refusal(execution_id)
        path = self._path(execution_id)
        make_folder(self._folder, PRIVATE_FOLDER)
        try:
            descriptor = self._lock(path)
            if descriptor is None:
                raise self._refusal(execution_id)
            self._held[execution_id] = descriptor
            _introduce(descriptor, owner)
        except OSError as error:
            self.give_back(execution_id)
            raise unavailable_file(error, path) from error

    def give_back(self, execution_id: str) -> None:
        descriptor = self._held.pop(execution_id, None)
        if descriptor is None:
            return
        # While the lock is still held: a claim that opened the old file sees that it is no longer the one under the name.
        self._path(execution_id).unlink(missing_ok=True)
        os.close(descriptor)

    def give_all_back(self) -> None:
        for execution_id in list(self._held):
            self.give_back(execution_id)

    def is_held(self, execution_id: str) -> bool:
        """Asked with a shared lock for a moment, which a claim knows from a real one."""
        if execution_id in self._held:
            return True
        path = self._path(execution_id)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unavailable_file(error, path) from error
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _lock(self, path: Path) -> int | None:
        """A descriptor with the lock, or None when it is held for good."""
        deadline = time.monotonic() + GLANCE_SECONDS
        while True:
            descriptor = opener(str(path), os.O_RDWR | os.O_CREAT)
            if _try_lock(descriptor, fcntl.LOCK_EX):
                if _is_named(descriptor, path):
                    return descriptor
                os.close(descriptor)
                continue
            only_a_glance = _try_lock(descriptor, fcntl.LOCK_SH)
            os.close(descriptor)
            if not only_a_glance or time.monotonic() > deadline:
                return None
            time.sleep(0.001)

    def _path(self, execution_id: str) -> Path:
        plain = PLAIN_NAME.fullmatch(execution_id) is not None
        name = execution_id if plain else hashlib.sha256(execution_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{name}.lock"

    def _refusal(self, execution_id: str) -> NotOwner:
        holder = _read_holder(self._path(execution_id))
        who = holder.describe() if holder else "another process"
        return NotOwner(
            f"`{execution_id}` is already being worked on by {who}",
            "wait for it to end, or stop that process; a run can be resumed once nobody works on it",
        )


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(descriptor: int, path: Path) -> bool:
    """Is the file we locked still the one under this name? Its last holder may have removed it in between."""
    mine = os.fstat(descriptor)
    try:
        named = os.stat(path)
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def _introduce(descriptor: int, owner: str) -> None:
    holder = {"owner": owner, "pid": os.getpid(), "host": os.uname().nodename, "since": time.time()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _read_holder(path: Path) -> Holder | None:
    try:
        data = json.loads(path.read_bytes())
        return Holder(str(data["owner"]), int(data["pid"]), str(data["host"]), float(data["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
