"""Servers and workers as processes of their own: started, killed, frozen, thawed, and listened to."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.points import Point

YOUNG_S = 10.0
SKEW_S = 600.0
"""So far are the clocks of some from those of others, and so far do they jump."""
FORWARD, BACK = signal.SIGRTMIN, signal.SIGRTMIN + 1
ROOT = Path(__file__).parents[2]


class Nursery:
    """Starts processes quickly; see `nursery.py`."""

    def __init__(self) -> None:
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lock = threading.Lock()
        assert self._answer() == "ready"

    def start(
        self,
        name: str,
        folder: Path,
        arguments: Sequence[str],
        *,
        skew_s: float = 0.0,
        point: Point | None = None,
    ) -> Process:
        """`penstock ARGUMENTS` in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        said = folder / f"{name}.said"
        order = {
            "said": str(said),
            "folder": str(folder),
            "arguments": list(arguments),
            "skew_s": skew_s,
            "point": point.as_json() if point is not None else None,
        }
        assert self._process.stdin is not None
        said.touch()
        at = said.stat().st_size
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return Process(name, int(self._answer()), said, at)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the nursery has ended"
        return line

    def close(self) -> None:
        self._process.communicate(timeout=60)


class Process:
    """One life of a process. It is known by a handle and not by its number, which the system gives to others later."""

    def __init__(self, name: str, pid: int, said: Path, at: int = 0) -> None:
        self.name = name
        self.pid = pid
        self.is_killed = False
        self.is_frozen = False
        self._said = said
        self._at = at
        self._handle = os.pidfd_open(pid)
        self._born = time.monotonic()

    @property
    def is_alive(self) -> bool:
        return self._handle >= 0 and not select.select([self._handle], [], [], 0)[0]

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """kill -9: from one moment to the next it is gone."""
        self.is_killed = True
        self.send(signal.SIGKILL)
        self.wait()

    def freeze(self) -> None:
        self.is_frozen = True
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.is_frozen = False
        self.send(signal.SIGCONT)

    @property
    def is_stopped(self) -> bool:
        """Has SIGSTOP reached it?"""
        with suppress(FileNotFoundError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        return False

    def stop(self) -> None:
        """SIGTERM: it lets go of everything in order."""
        self.is_killed = True
        self.send(signal.SIGTERM)

    def move_clock(self, seconds: float) -> None:
        self.send(FORWARD if seconds > 0 else BACK)

    def fill_disk(self) -> None:
        """Nothing it writes to a file fits any more. (What it writes to a socket does.)"""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def clear_disk(self) -> None:
        with suppress(ProcessLookupError):
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def wait(self, most_s: float = 30.0) -> None:
        ended, _, _ = select.select([self._handle], [], [], most_s)
        if not ended:
            self.send(signal.SIGUSR1)  # It says what it is at.
            time.sleep(0.5)
        assert ended, f"{self.name} does not end: {self.said()[-6000:]}"

    def close(self) -> None:
        if self._handle >= 0:
            if self.is_alive:
                self.kill()
            os.close(self._handle)
            self._handle = -1

    def said(self) -> str:
        with self._said.open("rb") as file:
            file.seek(self._at)
            return file.read().decode("utf-8", "replace")

    def has_said(self, words: str) -> bool:
        return words in self.said()

    def until_said(self, words: str, most_s: float = 60.0) -> str:
        """The line with these words in it, once it has been said."""
        end = time.monotonic() + most_s
        while time.monotonic() < end:
            for line in self.said().splitlines():
                if words in line:
                    return line
            assert self.is_alive, f"{self.name} has ended: {self.said()[-3000:]}"
            time.sleep(0.01)
        raise AssertionError(f"{self.name} did not say `{words}`: {self.said()[-3000:]}")

    @property
    def is_young(self) -> bool:
        return time.monotonic() - self._born < YOUNG_S

    @property
    def memory_kb(self) -> int:
        """What it keeps in memory now."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))
