"""What code and commands write, taken in with a bound: a flood costs no more memory than its limit, and is never a deadlock."""

from __future__ import annotations

import codecs
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_LINE = 64 * 1024
TRUNCATED = "… output truncated"


class Lines:
    """Passes complete lines to `say`; after `limit` bytes it reports that once and drops the rest."""

    def __init__(self, say: Callable[[str], None], limit: int) -> None:
        self._say = say
        self._left = limit
        self._stopped = False
        self._partial: list[str] = []
        self._partial_size = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        self.write(self._decoder.decode(data))

    def write(self, text: str) -> None:
        if self._stopped:
            return
        *complete, rest = text.split("\n")
        for line in complete:
            self._end_line(line)
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
            if self._partial_size > MAX_LINE:
                self._end_line("")

    def close(self) -> None:
        """Hand over a last line that has no end."""
        self.write(self._decoder.decode(b"", final=True))
        if self._partial:
            self._end_line("")

    def stop(self) -> None:
        """Drop all further output: it has no reader any more."""
        self._stopped = True

    def _end_line(self, text: str) -> None:
        line = "".join([*self._partial, text])
        self._partial, self._partial_size = [], 0
        if self._stopped:
            return
        size = len(line.encode("utf-8", "replace")) + 1
        if size > self._left:
            self._stopped = True
            self._say(TRUNCATED)
            return
        self._left -= size
        # A progress bar rewrites its line: what a terminal would show at the end is what counts.
        self._say(line.rstrip("\r").rpartition("\r")[2])


class Kept:
    """The first and the last bytes of a stream, together at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())

    @property
    def limit(self) -> int:
        return self._head_limit + self._tail_limit

    @property
    def is_whole(self) -> bool:
        return self.size <= self.limit

    def text(self) -> str:
        tail = b"".join(self._tail)
        if self.is_whole:
            return (self._head + tail).decode("utf-8", "replace")
        last = tail[len(tail) - self._tail_limit :] if self._tail_limit else b""
        dropped = self.size - len(self._head) - len(last)
        return (
            f"{self._head.decode('utf-8', 'replace')}\n… {dropped} bytes left out …\n{last.decode('utf-8', 'replace')}"
        )


# ---- What user code prints in its own thread goes to its task's log, and nobody else's output does.
# `sys.stdout` and `sys.stderr` are the process's: while at least one capture is open they are stand-ins that look, at every
# write, whose context they are in. Threads that user code starts itself have no such context and write to the real streams.
# Law: a stand-in outlives its removal. `print` borrows `sys.stdout` without holding it (CPython before 3.14), so a stand-in
# freed while another thread prints through it crashes the process.

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
def captured_lines(say: Callable[[str], None], limit: int) -> Iterator[None]:
    """Passes what is printed inside the block to `say`, line by line."""
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


# ---- An author's code in a thread of this process, and the way to stop it from another thread.


class Stopped(BaseException):
    """Raised in code whose time is over. Not an Exception, so that `except Exception` lets it through."""


class StoppableCode:
    """Law: `Stopped` is raised in the author's code only, between `enter(thread)` and `enter(None)`, and never while the thread
    is in the engine's `say`: the lock sees to that."""

    def __init__(self, say: Callable[[str], None], max_output_bytes: int) -> None:
        self._engine_say = say
        self._lines = Lines(self._say, max_output_bytes)
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_stopped = False

    def enter(self, thread: int | None) -> None:
        with self._lock:
            self._thread = thread
        if thread is not None and self._is_stopped:
            raise Stopped  # Its time was over before it began.

    def _say(self, line: str) -> None:
        with self._lock:
            self._engine_say(line)

    def drop_output(self) -> None:
        self._is_stopped = True
        self._lines.stop()

    def raise_stopped(self) -> None:
        """In the code, at its next instruction if it has one."""
        import ctypes  # Only code that does not end by itself needs it.

        if self._lock.acquire(timeout=0.05):
            try:
                if self._thread is not None:
                    thread, error = ctypes.c_ulong(self._thread), ctypes.py_object(Stopped)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
            finally:
                self._lock.release()
