"""A network between clients and NATS that can fail: it can be cut, and it can swallow what it is given."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Network:
    """Passes bytes on, on a port of its own."""

    def __init__(self, url: str) -> None:
        there = urlsplit(url)
        self._target = (there.hostname or "127.0.0.1", there.port or 4222)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._is_closed = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """Every connection breaks; others can be made."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            _close(end)

    def swallow(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        self._flows.clear()

    def heal(self) -> None:
        """What was swallowed comes late."""
        self._flows.set()

    def close(self) -> None:
        self._is_closed = True
        self._flows.set()
        _close(self._listener)
        self.cut()
        self._accepting.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._ends += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._flows.wait()
                target.sendall(data)
        _close(source)
        _close(target)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def network(url: str) -> Iterator[Network]:
    between = Network(url)
    try:
        yield between
    finally:
        between.close()
