"""The printed lines of tools, in files of a server: one JSON line each, numbered in order."""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, TypeAlias

from msgspec import DecodeError

from penstock.kernel.values import JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.lines import Line, lost_lines
from penstock.ports.results import decode, encodable, encode
from penstock.ports.state_folder import PRIVATE_FOLDER, make_state_folder, opener

REMEMBERED = 1000
CHUNK = 1 << 20


class FileLines:
    """`logs/EXECUTION.ndjson` in the state folder, as an embedded run writes them too.

    The offset where a reader stopped is remembered, so that it does not start at the first line again.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "logs"
        self._offsets: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = Lock()
        self._lost: Counter[str] = Counter()

    def append(self, execution_id: str, lines: Sequence[Line]) -> None:
        path = self._path(execution_id)
        if path is None or not lines:
            return
        with self._lock:
            lost = self._lost.pop(execution_id, 0)
            written = [lost_lines(lost, lines[0].ts), *lines] if lost else lines
            try:
                _write(path, b"".join(_raw(line) for line in written))
            except OSError:
                # A full disk must not fail a task because it printed; the event log will say what is wrong.
                self._lost[execution_id] = lost + len(lines)

    def flush(self) -> None:
        """What was handed over has been written."""

    def close(self) -> None:
        """No file is kept open."""

    def read(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[JsonMap]:
        path = self._path(execution_id)
        if path is None or limit <= 0:
            return []
        lines: list[JsonMap] = []
        number, offset = self._known(execution_id, after)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                for raw in file:
                    if not raw.endswith(b"\n"):  # Still being written.
                        break
                    number, offset = number + 1, offset + len(raw)
                    if number > after:
                        lines.append(_record(raw))
                    if len(lines) >= limit:
                        break
        except FileNotFoundError:
            return []
        self._remember(execution_id, number, offset)
        return lines

    def count(self, execution_id: str, after: int = 0) -> int:
        path = self._path(execution_id)
        if path is None:
            return 0
        number, offset = self._known(execution_id, after)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                while data := file.read(CHUNK):
                    # What stands behind the last line break is the beginning of a line, or still being written.
                    ended = data.count(b"\n")
                    if ended:
                        number, offset = number + ended, file.tell() - len(data) + data.rindex(b"\n") + 1
        except FileNotFoundError:
            return 0
        self._remember(execution_id, number, offset)
        return number

    def drop(self, executions: Iterable[str]) -> None:
        for execution_id in executions:
            path = self._path(execution_id)
            if path is not None:
                path.unlink(missing_ok=True)

    def _path(self, execution_id: str) -> Path | None:
        is_name = (
            execution_id and not execution_id.startswith(".") and "/" not in execution_id and "\0" not in execution_id
        )
        return self._folder / f"{execution_id}.ndjson" if is_name else None

    def _known(self, execution_id: str, after: int) -> tuple[int, int]:
        with self._lock:
            offset = self._offsets.get((execution_id, after))
        return (after, offset) if offset is not None else (0, 0)

    def _remember(self, execution_id: str, number: int, offset: int) -> None:
        with self._lock:
            self._offsets[execution_id, number] = offset
            while len(self._offsets) > REMEMBERED:
                self._offsets.popitem(last=False)


def _raw(line: Line) -> bytes:
    return encode(line._replace(text=line.text.encode("utf-8", "replace").decode()).record()) + b"\n"


def _write(path: Path, data: bytes) -> None:
    if not path.parent.exists():
        make_state_folder(path.parent.parent)
        path.parent.mkdir(PRIVATE_FOLDER, exist_ok=True)
    descriptor = opener(str(path), os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        # The last line of a killed process may be incomplete: new output starts on a line of its own.
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _record(raw: bytes) -> JsonMap:
    """A line that a crash cut off is shown as it is, so that line numbers do not change."""
    try:
        record = decode(raw)
    except DecodeError:
        record = None
    if isinstance(record, dict):
        return record
    return {"ts": 0.0, "scope": "", "task_run_id": None, "line": raw.decode("utf-8", "replace").rstrip("\n")}


# ---- the lines of a run in this process: redacted, and not durable


LineObserver: TypeAlias = Callable[[str, "str | None", str], None]


class LineLog:
    """Opened by the first line; `say` may be called from any thread."""

    def __init__(self, path: Path, clock: Clock, hide: Callable[[str], str], observers: list[LineObserver]) -> None:
        self._path = path
        self._clock = clock
        self._hide = hide
        self._observers = observers
        self._lock = Lock()
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
