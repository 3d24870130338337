"""What code and commands write, taken in with a bound: a flood costs no more memory than its limit, and is never a deadlock."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable

MAX_LINE = 64 * 1024
TRUNCATED = "… output truncated"


class Lines:
    """Hands complete lines to `say`; after `limit` bytes says so once and drops the rest."""

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
        """Drop all that comes from now on: nobody waits for it any more."""
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
    def is_whole(self) -> bool:
        return self.size <= self._head_limit + self._tail_limit

    def text(self) -> str:
        tail = b"".join(self._tail)
        if self.is_whole:
            return (self._head + tail).decode("utf-8", "replace")
        last = tail[len(tail) - self._tail_limit :] if self._tail_limit else b""
        dropped = self.size - len(self._head) - len(last)
        return (
            f"{self._head.decode('utf-8', 'replace')}\n… {dropped} bytes left out …\n{last.decode('utf-8', 'replace')}"
        )
