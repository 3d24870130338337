"""A proxy between the browser and the server: it counts, cuts and buffers, as machines on the way do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STREAM = b"GET /api/stream"
UNBUFFERED = b"x-accel-buffering: no"


class Proxy:
    """One connection of the browser is one to the server. `is_buffering`: an answer is passed on when it is complete, unless it says
    that it must not be buffered, as nginx does it."""

    def __init__(self, server: int, *, is_buffering: bool = False) -> None:
        self._server = server
        self._is_buffering = is_buffering
        self._is_cut = False
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._streams: set[tuple[socket.socket, socket.socket]] = set()
        self.streams_asked = 0
        """How often the stream was asked for."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def streams(self) -> int:
        """How many streams are open."""
        with self._lock:
            return len(self._streams)

    def cut(self) -> None:
        """Everything breaks off, and nothing comes through until `mend`."""
        self._is_cut = True
        self._break(self._pairs)

    def cut_streams(self) -> None:
        """Only the streams break off, and may be asked for again at once."""
        self._break(self._streams)

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _break(self, which: set[tuple[socket.socket, socket.socket]]) -> None:
        with self._lock:
            broken = list(which)
        for pair in broken:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                browser, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                browser.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:  # It is not there just now.
                browser.close()
                continue
            pair = (browser, server)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._ask, args=(pair,), daemon=True).start()
            threading.Thread(target=self._answer, args=(pair,), daemon=True).start()

    def _ask(self, pair: tuple[socket.socket, socket.socket]) -> None:
        browser, server = pair
        with suppress(OSError):
            while piece := browser.recv(65536):
                if piece.startswith(STREAM):  # A request without a body comes in one piece.
                    with self._lock:
                        self.streams_asked += 1
                        self._streams.add(pair)
                server.sendall(piece)
        self._done(pair)

    def _answer(self, pair: tuple[socket.socket, socket.socket]) -> None:
        browser, server = pair
        held = b""
        with suppress(OSError):
            while piece := server.recv(65536):
                held += piece
                if self._is_buffering and not _is_complete(held):
                    continue
                browser.sendall(held)
                held = b""
        self._done(pair)

    def _done(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
            self._streams.discard(pair)
        for end in pair:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _is_complete(answer: bytes) -> bool:
    """Whether what has come ends an answer, or belongs to one that must not be held back. A piece that follows such a one has no
    head, and is not held back either."""
    if not answer.startswith(b"HTTP/"):
        return True
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
    if UNBUFFERED in head.lower() or head.startswith((b"HTTP/1.1 204", b"HTTP/1.1 304")):
        return True
    if fields.get(b"transfer-encoding") == b"chunked":
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(fields.get(b"content-length", b"0"))


@contextmanager
def proxied(server: int, *, is_buffering: bool = False) -> Iterator[Proxy]:
    proxy = Proxy(server, is_buffering=is_buffering)
    try:
        yield proxy
    finally:
        proxy.close()
