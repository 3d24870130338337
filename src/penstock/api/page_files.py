"""The web page: files that were built into the package, served to everybody, since they hold nothing of anybody.

Law: what is served is what the folder listed when the page was built, by exact name; a path of a request is looked up among these
names and never joined to a folder, so no path leads out of it. Every other path that a person may have in the address bar is a
view of the page, and gets `index.html`.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from penstock.api.backend import apart
from penstock.api.compression import SMALL, takes_gzip

FOLDER: Final = Path(__file__).parents[1] / "web"
INDEX: Final = "index.html"
ASSETS: Final = "assets/"
NOT_OURS: Final = re.compile(r"/(?:api|hooks|health|ready|metrics)(?:/.*)?", re.DOTALL)
"""Paths of the API. The page has no view there, so a mistyped path of the API gets an error in JSON."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""No inline script. The graph places its nodes with `style` attributes, which is all that `'unsafe-inline'` is for."""

ASSET_POLICY: Final = "default-src 'self'"
"""Short, because it comes with every file; it allows workers to ask this server, and nothing else."""

# By hand: the tables of the machine differ, and a script with another type is refused by browsers (`nosniff`).
MEDIA: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}
COMPRESSED: Final = (".html", ".js", ".mjs", ".css", ".json", ".map", ".webmanifest", ".svg", ".txt", ".wasm", ".ico")
FOR_EVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"
_HASHED = re.compile(r"[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+\Z")

NOT_BUILT: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Penstock: the page is not built</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>
<h1>The page is not built</h1>
<p>This server works, and its API answers at <code>/api</code>. Its web page is missing: the npm registry could not be reached
when Penstock was installed from its sources.</p>
<ul>
<li>In a clone: <code>make web</code> builds it. It needs the npm registry, and brings its own Node if there is none.</li>
<li>Otherwise: <code>pip install penstock --force-reinstall</code>. The wheel has the page in it.</li>
</ul>
<p>Then start the server again.</p>
</html>
"""


@dataclass(frozen=True)
class PageFile:
    path: Path

    @cached_property
    def plain(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def compressed(self) -> bytes | None:
        """None where it saves nothing."""
        if self.path.suffix not in COMPRESSED or len(self.plain) < SMALL:
            return None
        return gzip.compress(self.plain, 9, mtime=0)

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.plain).hexdigest()[:32]}"'


class PageFiles:
    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._built_at: int | None = None
        self._files: Mapping[str, PageFile] = {}

    def answer(self, path: str, headers: Headers) -> Response:
        """Reads files, so it must be called from a thread."""
        built_at = self._when_built()
        if built_at != self._built_at:  # The first request, or the page was built anew while this server runs.
            self._built_at, self._files = built_at, _listed(self._folder)
        name = path.removeprefix("/")
        found = self._files.get(name)
        if found is None:
            if name.startswith(ASSETS):
                # A script of another build: `index.html` in its place would be a mistake that is hard to see.
                return Response("there is no such file here\n", 404, {"cache-control": "no-store"}, "text/plain")
            found = self._files.get(INDEX)
        if found is None:
            return Response(NOT_BUILT, 200, {"cache-control": "no-store"}, MEDIA[".html"])
        try:
            return _answered(found, headers)
        except OSError:  # It is being built anew: the names change.
            self._built_at = None
            return Response("the page was built anew; load it again\n", 503, {"retry-after": "1"}, "text/plain")

    def _when_built(self) -> int | None:
        try:
            return (self._folder / INDEX).stat().st_mtime_ns
        except OSError:
            return None


def _listed(folder: Path) -> Mapping[str, PageFile]:
    if not (folder / INDEX).is_file():
        return {}
    return {
        path.relative_to(folder).as_posix(): PageFile(path)
        for path in folder.rglob("*")
        if path.suffix in MEDIA and path.is_file() and not path.is_symlink()
    }


def _answered(file: PageFile, asked: Headers) -> Response:
    is_hashed = file.path.name != INDEX and _HASHED.search(file.path.name) is not None
    # Every file has a policy: a worker gets the one that its own file came with, and not that of the page.
    headers = {
        "content-security-policy": POLICY if file.path.name == INDEX else ASSET_POLICY,
        "vary": "accept-encoding",
    }
    headers |= {"cache-control": FOR_EVER} if is_hashed else {"cache-control": ASK_AGAIN, "etag": file.tag}
    if not is_hashed and file.tag in asked.get("if-none-match", ""):
        return Response(None, 304, headers)
    body = file.plain
    if takes_gzip(asked) and file.compressed is not None:
        headers["content-encoding"], body = "gzip", file.compressed
    return Response(body, 200, headers, MEDIA[file.path.suffix])


class PageRoute(BaseRoute):
    """The last route: whatever a person may ask for that is no part of the API."""

    def __init__(self, files: PageFiles) -> None:
        self.files = files

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_page = (
            scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and NOT_OURS.fullmatch(scope["path"]) is None
        )
        return (Match.FULL if is_page else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await apart(lambda: self.files.answer(scope["path"], Headers(scope=scope)))
        await response(scope, receive, send)
