"""What user code prints in its own thread goes to its task's log, and nobody else's output does.

`sys.stdout` and `sys.stderr` are the process's: while at least one capture is open they are stand-ins that look, at every
write, whose context they are in. Threads that user code starts itself have no such context and write to the real streams.

Law: a stand-in outlives its removal. `print` borrows `sys.stdout` without holding it (CPython before 3.14), so a stand-in freed
while another thread prints through it crashes the process.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from penstock.tools.output import Lines

_sink: ContextVar[Lines | None] = ContextVar("penstock_output", default=None)
_lock = threading.Lock()
_open = 0
_removed: deque[object] = deque(maxlen=16)


class _Bytes:
    """`sys.stdout.buffer` of a captured context."""

    def __init__(self, sink: Lines) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink.feed(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class _StandIn:
    """A text stream that writes to the context's sink, or to the real stream where there is none."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, text: str) -> int:
        sink = _sink.get()
        if sink is None:
            return int(self._real.write(text))
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        sink.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _sink.get() is None:
            self._real.flush()

    def close(self) -> None:
        """User code may close its output; the engine's stays open."""
        if _sink.get() is None:
            self._real.close()

    def isatty(self) -> bool:
        return _sink.get() is None and bool(self._real.isatty())

    @property
    def buffer(self) -> Any:
        sink = _sink.get()
        return self._real.buffer if sink is None else _Bytes(sink)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def captured(sink: Lines) -> Iterator[None]:
    """Everything printed in this context, and in contexts copied from it, goes to `sink`."""
    _install()
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)
        _remove()


@contextmanager
def overheard(say: Callable[[str], None], limit: int) -> Iterator[None]:
    """What is printed in here is said line by line; nothing that comes later."""
    lines = Lines(say, limit)
    try:
        with captured(lines):
            yield
    finally:
        lines.close()
        lines.stop()


def _install() -> None:
    global _open
    with _lock:
        _open += 1
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _StandIn):
                setattr(sys, name, _StandIn(stream))


def _remove() -> None:
    """Give the real streams back with the last capture; a stream that somebody else has put there meanwhile stays."""
    global _open
    with _lock:
        _open -= 1
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if not _open and isinstance(stream, _StandIn):
                _removed.append(stream)
                setattr(sys, name, stream._real)
