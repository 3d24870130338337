"""A network between a client and PostgreSQL that can fail at any message.

It speaks the server's protocol so far as to know where one message ends and the next begins.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

Cut = Literal["before", "after", "hang", "leave"]
"""`before` the message, `after` the server has had it; `hang`: from here on nothing passes, and no end is told;
`leave`: the client is told the end, the server is not."""


class Network:
    """Passes messages on until one of a connection whose first message has `who` in it is number `at`."""

    def __init__(self, folder: Path, reach: Callable[[], socket.socket]) -> None:
        self._reach = reach
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen(64)
        self._ends: list[socket.socket] = []
        self._plan: tuple[bytes, int, Cut] | None = None
        self.cuts = 0
        self._passed = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def fail_at(self, at: int, how: Cut, who: bytes = b"") -> None:
        """The messages are counted from here on, over all connections that are `who`."""
        with self._lock:
            self._plan, self._passed = (who, at, how), 0

    def heal(self) -> None:
        with self._lock:
            self._plan = None

    @property
    def passed(self) -> int:
        return self._passed

    def close(self) -> None:
        _close(self._listener)  # a closed socket alone would let one more in
        for end in self._ends:
            _close(end)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = self._reach()
                except OSError:
                    client.close()
                    continue
                self._ends += [client, server]
                threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
                threading.Thread(target=_pump, args=(server, client), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        who = b""
        with suppress(OSError):
            for message in _messages(client):
                who = who or message
                how = self._fate(who)
                if how == "before":
                    break
                if how in ("hang", "leave"):
                    if how == "leave":
                        _close(client)
                    return
                server.sendall(message)
                if how == "after":
                    time.sleep(0.02)  # long enough for the server to have acted on it, mostly; either way must be right
                    break
        _close(client)
        _close(server)

    def _fate(self, who: bytes) -> Cut | None:
        with self._lock:
            if self._plan is None or self._plan[0] not in who:
                return None
            self._passed += 1
            _, at, how = self._plan
            if self._passed != at:
                return None
            self.cuts += 1
            return how


def _messages(client: socket.socket) -> Iterator[bytes]:
    """The first has no type before its length; all others have."""
    buffer = b""
    head = 0
    while data := client.recv(65_536):
        buffer += data
        while len(buffer) >= head + 4:
            size = head + int.from_bytes(buffer[head : head + 4])
            if len(buffer) < size:
                break
            yield buffer[:size]
            buffer, head = buffer[size:], 1


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _close(target)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def network(url: str) -> Iterator[tuple[Network, str]]:
    """The network, and the address of the server behind it."""
    said = conninfo_to_dict(url)
    host, port = str(said.get("host") or "localhost"), int(said.get("port") or 5432)

    def reach() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    with tempfile.TemporaryDirectory(prefix="pn-", dir="/tmp") as name:
        between = Network(Path(name), reach)
        try:
            yield between, make_conninfo(url, host=name, port=5432, sslmode="disable", gssencmode="disable")
        finally:
            between.close()
