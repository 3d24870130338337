"""Running the http tool in tests: to its result, to its failure, against a server that speaks no HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import Success, ToolFailure
from penstock.tools.http.tool import HttpTool

from .support import Reply, Request, make_call, run, serve


def fetch(tmp_path: Path, params: dict[str, Any], **overrides: Any) -> Success:
    return run(HttpTool(), params, make_call(tmp_path, **overrides))


def failed(tmp_path: Path, params: dict[str, Any], **overrides: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        fetch(tmp_path, params, **overrides)
    return caught.value


def body_of(tmp_path: Path, reply: Reply, **params: Any) -> Any:
    with serve(lambda request: reply) as server:
        return fetch(tmp_path, {"url": server.url, **params}).result["data"]


class TicklessClock:
    """Time that passes only when something sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return 1000.0 + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@contextmanager
def speaks(script: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server below HTTP: `script` has each accepted connection to itself, one at a time."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    closing = threading.Event()

    def loop() -> None:
        while not closing.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(10)
                script(connection)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        closing.set()
        thread.join()
        listener.close()


def sent(tmp_path: Path, params: dict[str, Any], **overrides: Any) -> Request:
    with serve(lambda request: Reply()) as server:
        fetch(tmp_path, {"url": server.url, **params}, **overrides)
        return server.requests[0]
