"""The wire between one process and PostgreSQL, which can be cut, and which can be dead for a while without anybody being told."""

from __future__ import annotations

import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Wire:
    """Passes bytes on. `cut`: all connections end, and no new one is made. `stall`: nothing passes, and no end is told; what was
    sent meanwhile arrives later. `deafen`: what the process says arrives, and it hears no answer. `heal` ends all."""

    def __init__(self, url: str) -> None:
        said = conninfo_to_dict(url)
        self._target = f"{said['host']}/.s.PGSQL.{said.get('port') or 5432}"
        self._folder = tempfile.TemporaryDirectory(prefix="pw-", dir="/tmp")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(Path(self._folder.name) / ".s.PGSQL.5432"))
        self._listener.listen(64)
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self._passes = threading.Event()
        self._answers = threading.Event()
        self._passes.set()
        self._answers.set()
        database = said.get("dbname") or "postgres"
        user = said.get("user") or "postgres"
        self.url = f"postgresql://{user}@/{database}?host={self._folder.name}&sslmode=disable&gssencmode=disable"
        options = said.get("options")
        if options:
            self.url = _as_url(make_conninfo(self.url, options=str(options)))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _end(*pair)

    def stall(self) -> None:
        self._passes.clear()

    def deafen(self) -> None:
        self._answers.clear()

    def heal(self) -> None:
        self._is_cut = False
        self._passes.set()
        self._answers.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a closed socket alone would let one more in
        self._listener.close()
        self.heal()
        self.cut()
        self._folder.cleanup()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    if self._is_cut:
                        raise ConnectionRefusedError
                    server.connect(self._target)
                except OSError:
                    _end(client, server)
                    continue
                pair = (client, server)
                with self._lock:
                    self._pairs.add(pair)
                for source, target in (pair, (server, client)):
                    threading.Thread(target=self._pump, args=(source, target, pair), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, pair: tuple[socket.socket, socket.socket]) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._passes.wait()
                if source is pair[1]:
                    self._answers.wait()
                target.sendall(data)
        self._passes.wait()  # An end is news, too.
        with self._lock:
            self._pairs.discard(pair)
        _end(*pair)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _as_url(conninfo: str) -> str:
    from urllib.parse import quote

    said = conninfo_to_dict(conninfo)
    user, database = said.pop("user", "postgres"), said.pop("dbname", "postgres")
    rest = "&".join(f"{name}={quote(str(value))}" for name, value in said.items())
    return f"postgresql://{user}@/{database}?{rest}"
