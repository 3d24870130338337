"""What the tests of the keychain share: a clock that only moves when told, a real HTTP server, and a short way to resolve."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from penstock.keychain import Inputs, Keychain, KeychainError, Redaction, resolve


class HandClock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def resolved(
    folder: Path,
    *entries: dict[str, Any],
    environ: Mapping[str, str] | None = None,
    clock: HandClock | None = None,
    redaction: Redaction | None = None,
    workload: Mapping[str, Any] | None = None,
) -> Keychain:
    return asyncio.run(
        resolve(
            list(entries),
            inputs=Inputs(workload or {}),
            folder=folder,
            home=folder / ".penstock",
            environ=environ or {},
            clock=clock or HandClock(),
            redaction=redaction,
        )
    )


def refused(
    folder: Path,
    *entries: dict[str, Any],
    environ: Mapping[str, str] | None = None,
    workload: Mapping[str, Any] | None = None,
) -> KeychainError:
    with pytest.raises(KeychainError) as caught:
        resolved(folder, *entries, environ=environ, workload=workload)
    return caught.value


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass
class Server:
    url: str
    asked: list[Asked] = field(default_factory=list)


Reply = tuple[int, Any]


@contextmanager
def serving(answer: Callable[[Asked], Reply]) -> Iterator[Server]:
    """A server whose answers are JSON; a text is sent as it is."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Asked(self.command, self.path, headers, dict(parse_qsl(body)))
            server.asked.append(request)
            status, content = answer(request)
            data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _respond

        def log_message(self, *arguments: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
