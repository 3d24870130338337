"""What the tests of tools share: a real Call over real threads and files, and a real HTTP server on loopback.

call = make_call(tmp_path, spec={"timeout": 5}, credentials={"api": {"token": "t"}})
result = run(HttpTool(), {"url": server.url}, call)          # closes what the run shared, such as connection pools

with serve(lambda request: Reply(200, {"ok": True})) as server:
    ...                                                      # server.url, server.requests
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from penstock.kernel.values import Json
from penstock.ports.ambient import SystemClock
from penstock.ports.blobs import ResultRef
from penstock.tools.base import Call, Settings, Source, Tool, ToolFailure


class SharedResources:
    def __init__(self) -> None:
        self._made: dict[object, tuple[Any, Callable[[], Awaitable[None]]]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def get(self, key: object, make: Callable[[], Awaitable[tuple[Any, Callable[[], Awaitable[None]]]]]) -> Any:
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._made:
                self._made[key] = await make()
        return self._made[key][0]

    async def close(self) -> None:
        while self._made:
            _, (_, close) = self._made.popitem()
            await close()
        self._locks.clear()


class RealThreads:
    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)


class FileBlobs:
    """Content-addressed files in one folder; atomic, so that a `put` that fails leaves nothing behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        digest, size = hashlib.sha256(), 0
        descriptor, temporary = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    file.write(chunk)
            os.replace(temporary, self.folder / digest.hexdigest())
        except BaseException:
            os.unlink(temporary)
            raise
        return ResultRef("file", digest.hexdigest(), size, f"sha256:{digest.hexdigest()}", media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        return (self.folder / ref.key).read_bytes()

    def path(self, ref: ResultRef) -> str:
        return str(self.folder / ref.key)


async def _no_play(*arguments: object, **named: object) -> Any:
    raise ToolFailure("playbook", "this call has no sub-playbooks")


def make_call(tmp_path: Path, *, credentials: dict[str, dict[str, Any]] | None = None, **overrides: Any) -> Call:
    """A Call as the worker would give it. `call.folder` is `tmp_path`; any field can be overridden by name."""
    blobs = FileBlobs(tmp_path / ".blobs")
    known = credentials or {}

    def credential(name: str) -> dict[str, Any]:
        if name not in known:
            raise ToolFailure("credential", f"there is no keychain entry `{name}`")
        return known[name]

    fields: dict[str, Any] = {
        "task": "task",
        "task_run_id": "run-1/start.1/task.1",
        "attempt": 1,
        "execution_id": "run-1",
        "idempotency_key": "key-1",
        "folder": tmp_path,
        "spec": {},
        "clock": SystemClock(),
        "blobs": blobs,
        "resources": SharedResources(),
        "threads": RealThreads(),
        "settings": Settings(),
        "source": Source(),
        "credential": credential,
        "say": lambda line: None,
        "play": _no_play,
        "load": lambda ref: json.loads(blobs.get(ref)),
    }
    return Call(**(fields | overrides))


async def run_async(tool: Tool[Any], params: dict[str, Any], call: Call) -> Any:
    """One task run on a loop of the caller's, which also closes `call.resources` (`SharedResources.close`)."""
    model = msgspec.convert(params, type(tool).Params)
    return tool.run_inline(model, call) if type(tool).inline else await tool.run(model, call)


def run(tool: Tool[Any], params: dict[str, Any], call: Call) -> Any:
    """One task run on a loop of its own, with everything shared closed at the end."""

    async def whole() -> Any:
        try:
            return await run_async(tool, params, call)
        finally:
            if isinstance(call.resources, SharedResources):
                await call.resources.close()

    return asyncio.run(whole())


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = b""
    """bytes and text go as they are, an iterator of bytes as chunks, anything else as JSON."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Server:
    url: str
    port: int
    requests: list[Request] = field(default_factory=list)


def _handler(server: Server, answer: Callable[[Request], Reply]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self.rfile.read(length))
            server.requests.append(request)
            try:
                self.send(answer(request))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def send(self, reply: Reply) -> None:
            body, headers = reply.body, dict(reply.headers)
            if isinstance(body, str):
                body, headers = body.encode(), {"content-type": "text/plain; charset=utf-8"} | headers
            elif not isinstance(body, (bytes, Iterator)):
                body, headers = json.dumps(body).encode(), {"content-type": "application/json"} | headers
            self.send_response(reply.status)
            for name, value in headers.items():
                self.send_header(name, value)
            if isinstance(body, bytes):
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in body:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_any

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    return Handler


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is part of some tests."""


class _QuietServer6(_QuietServer):
    address_family = socket.AF_INET6


@contextmanager
def serve(
    answer: Callable[[Request], Reply], *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[Server]:
    """A real HTTP/1.1 server on loopback and a free port; `answer` runs in one thread per connection."""
    server = Server("", 0)
    http = (_QuietServer6 if ":" in host else _QuietServer)((host, 0), _handler(server, answer))
    server.port = http.server_address[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
