"""What tools print while they run: one JSON line each, in a file beside the log. Redacted, and not durable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

from penstock.ports.ambient import Clock
from penstock.ports.results import encodable, encode
from penstock.ports.state_folder import PRIVATE_FOLDER, make_state_folder, opener

LineObserver: TypeAlias = Callable[[str, "str | None", str], None]


class LineLog:
    """Opened by the first line; `say` may be called from any thread."""

    def __init__(self, path: Path, clock: Clock, hide: Callable[[str], str], observers: list[LineObserver]) -> None:
        self._path = path
        self._clock = clock
        self._hide = hide
        self._observers = observers
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._is_lost = False

    def say(self, scope: str, task_run_id: str | None, line: str) -> None:
        text = encodable(self._hide(line))
        record = encode({"ts": self._clock.now(), "scope": scope, "task_run_id": task_run_id, "line": text})
        with self._lock:
            self._write(record + b"\n")
        for observer in self._observers:
            observer(scope, task_run_id, text)

    def _write(self, data: bytes) -> None:
        if self._is_lost:
            return
        try:
            if self._file is None:
                make_state_folder(self._path.parent.parent)
                self._path.parent.mkdir(PRIVATE_FOLDER, exist_ok=True)
                self._file = open(self._path, "ab", buffering=0, opener=opener)  # noqa: SIM115 - closed with the log
            self._file.write(data)
        except OSError:  # A full disk must not fail a task because it printed; the event log will report the problem.
            self._is_lost = True

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
