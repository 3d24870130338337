"""A small real web server on loopback that serves files, in parts if it is told to, and has bad days."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class WebSite:
    files: dict[str, bytes]
    port: int = 0
    has_parts: bool = True
    packs: bool = False
    """It packs what it sends, whatever it is asked for."""
    faults: list[str] = field(default_factory=list)
    """What happens to the next requests, one each: `500`, `503`, `reset` in the middle, `short` (fewer bytes than announced)."""
    needs: str | None = None
    """The `Authorization` that is wanted."""
    signed: str | None = None
    """The query that is wanted."""
    leads_to: str | None = None
    pause: float = 0.0
    """Seconds between two pieces."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and `Range` of each request."""
    authorizations: list[str | None] = field(default_factory=list)
    sent: int = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: WebSite

    def log_message(self, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        site = self.site
        path, _, query = self.path.partition("?")
        site.asked.append((path, self.headers.get("Range")))
        site.authorizations.append(self.headers.get("Authorization"))
        fault = site.faults.pop(0) if site.faults else ""
        if fault.isdecimal():
            return self._say(int(fault))
        if site.leads_to is not None:
            return self._say(302, {"Location": site.leads_to})
        if site.needs is not None and self.headers.get("Authorization") != site.needs:
            return self._say(401)
        if site.signed is not None and query != site.signed:
            return self._say(403)
        data = site.files.get(path.removeprefix("/"))
        if data is None:
            return self._say(404)
        headers = {"ETag": f'"{hashlib.md5(data).hexdigest()}"', "Last-Modified": "Tue, 02 Jan 2024 03:04:05 GMT"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if site.packs:
            return self._send(200, gzip.compress(data), {**headers, "Content-Encoding": "gzip"}, fault)
        if asked is None or not site.has_parts:
            return self._send(200, data, headers, fault)
        start, end = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
        if start >= len(data):
            return self._say(416, {"Content-Range": f"bytes */{len(data)}"})
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        return self._send(206, data[start : end + 1], headers, fault)

    def _say(self, status: int, headers: dict[str, str] | None = None) -> None:
        self._send(status, b"no", headers or {}, "")

    def _send(self, status: int, data: bytes, headers: dict[str, str], fault: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault in ("reset", "short"):
            data = data[: len(data) // 2]
        piece = 1 << 16
        for start in range(0, len(data), piece):
            self.wfile.write(data[start : start + piece])
            self.site.sent += len(data[start : start + piece])
            time.sleep(self.site.pause)
        if fault:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has enough hangs up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def web_site(files: dict[str, bytes], **options: object) -> Iterator[WebSite]:
    site = WebSite(files, **options)  # type: ignore[arg-type]
    handler = type("Handler", (_Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
