"""Web servers: files are read from them, in parts where the server gives parts.

Law: sockets are opened to judged addresses only, those of redirects included, and no credential travels to another origin. The
query of a URL may be a signature: it is sent, and shown nowhere.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.http.exchange import TROUBLE, Client, Exchange, Request, url_of
from penstock.tools.places.base import CHUNK, Credential, Entry, Location, Place, again, missing

T = TypeVar("T")
_CONNECT_S = 10.0
_READ_S = 60.0
_KINDS = {"connect": "connection", "protocol": "connection"}
"""What the kinds of failures of requests are called for files."""


class _Loop:
    """An event loop in a thread of its own, for those who block until their request is done."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="web", daemon=True)
        self._thread.start()

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass(slots=True)
class _Exchange(Exchange):
    def shown(self, url: URL) -> str:
        return f"`{url.with_user(None).with_query(None).with_fragment(None)}`"

    def _named(self, request: Request) -> str:
        return self.shown(request.url)


async def _made(verify: bool | str, allowed: Addresses) -> Client:
    return Client(verify, allowed)


class WebPlace(Place):
    def __init__(self, location: Location, credential: Credential, allowed: Addresses) -> None:
        super().__init__(location)
        login = {**location.login, **credential}
        given = {str(name).lower(): str(value) for name, value in dict(login.get("headers") or {}).items()}
        # Sizes and parts are those of the file, so it must not be packed on the way.
        self._headers = {"accept-encoding": "identity", **_authorization(login), **given}
        self._exchange = _Exchange(secret_headers=frozenset(given))
        self._loop = _Loop()
        self._client = self._loop.result(_made(login.get("verify", True), allowed))
        self._whole: set[str] = set()
        """The files that come whole or not at all."""
        self._unread: set[aiohttp.ClientResponse] = set()
        """Answers that somebody reads, or has stopped reading without saying so."""

    def look(self, path: str) -> Entry | None:
        """A request for the first byte says more than one for the head: whether there are parts, and it may be signed."""
        entry: Entry | None = again(lambda: self._looked(path))
        return entry

    def _looked(self, path: str) -> Entry | None:
        with self._answer(path, {"range": "bytes=0-0"}) as (answer, _):
            if answer.status in (404, 410):
                return None
            _, _, total = answer.headers.get("content-range", "").rpartition("/")
            size = int(total) if answer.status in (206, 416) and total.isdecimal() else None
            if answer.status == 416 and size is None:
                size = 0
            elif answer.status == 416 and size:
                raise ToolFailure("protocol", f"`{self.location.url(path)}`: the server refuses its first byte")
            elif answer.status == 200:
                self._whole.add(path)
                length = answer.headers.get("content-length", "")
                size = int(length) if length.isdecimal() and not _is_packed(answer) else None
            return Entry(path, path.rpartition("/")[2], size, _modified(answer), version=_version(answer))

    def has_parts(self, entry: Entry) -> bool:
        return entry.size is not None and entry.path not in self._whole

    def read(self, entry: Entry, start: int = 0) -> Iterator[bytes]:
        if entry.size is not None and start >= entry.size:
            return
        with self._answer(entry.path, {"range": f"bytes={start}-"} if start else {}) as (answer, request):
            self._require_same(entry, answer)
            # A server that gives no parts begins at the beginning.
            left = start if answer.status == 200 else 0
            while chunk := self._read(answer.content.read(CHUNK), request):
                kept, left = chunk[left:], max(0, left - len(chunk))
                if kept:
                    yield kept

    def part(self, entry: Entry, start: int, length: int) -> bytes:
        end = min(start + length, entry.size if entry.size is not None else start + length)
        found: bytes = again(lambda: self._part(entry, start, end)) if end > start else b""
        return found

    def _part(self, entry: Entry, start: int, end: int) -> bytes:
        with self._answer(entry.path, {"range": f"bytes={start}-{end - 1}"}) as (answer, request):
            self._require_same(entry, answer)
            found = self._read(answer.read(), request)
        if answer.status != 206 or len(found) != end - start:
            url = self.location.url(entry.path)
            words = f"`{url}`: {end - start:,} bytes were asked for, and {len(found):,} came"
            raise ToolFailure("connection", words, retryable=True, path=url)
        return found

    def _require_same(self, entry: Entry, answer: aiohttp.ClientResponse) -> None:
        if answer.status in (404, 410):
            raise missing(self.location, entry.path)
        if entry.version is not None and _version(answer) not in (None, entry.version):
            url = self.location.url(entry.path)
            raise ToolFailure("changed", f"`{url}` changed while it was read", path=url)

    @contextmanager
    def _answer(self, path: str, headers: dict[str, str]) -> Iterator[tuple[aiohttp.ClientResponse, Request]]:
        query = f"?{self.location.query}" if self.location.query and path == self.location.path else ""
        try:
            url = url_of(f"{self.location.root}{path if path.startswith('/') else f'/{path}'}{query}")
        except ValueError as error:
            raise ToolFailure(
                "parameters", f"`{self.location.url(path)}` is not a URL that can be requested"
            ) from error
        request = Request("GET", url, {**self._headers, **headers}, connect=_CONNECT_S, read=_READ_S)
        with _as_of_files():
            answer, request = self._loop.result(self._exchange.send(self._client, request))
        self._unread.add(answer)
        try:
            self._judge(answer, path)
            yield answer, request
        finally:
            if answer in self._unread:  # Otherwise the place was closed meanwhile.
                self._unread.discard(answer)
                self._loop.result(_let_go(answer))

    def _read(self, work: Coroutine[Any, Any, bytes], request: Request) -> bytes:
        with _as_of_files():
            try:
                return self._loop.result(work)
            except TROUBLE as error:
                raise self._exchange.failure(error, request) from error

    def _judge(self, answer: aiohttp.ClientResponse, path: str) -> None:
        status, url = answer.status, self.location.url(path)
        if status in (200, 206, 404, 410, 416):
            return
        if status in (401, 403):
            hint = "hint: name a keychain entry in `credentials`, with `username` and `password`, or a `token`"
            raise ToolFailure("permission", f"no permission for `{url}`: the server says {status}; {hint}", path=url)
        passes = status in (408, 425, 429) or status >= 500
        words = f"`{url}`: the server says {status} {answer.reason or ''}".rstrip()
        raise ToolFailure("http_status", words, retryable=passes, path=url, status=status)

    def close(self) -> None:
        while self._unread:
            self._loop.result(_let_go(self._unread.pop()))
        self._loop.result(self._client.close())
        self._loop.close()


@contextmanager
def _as_of_files() -> Iterator[None]:
    try:
        yield
    except ToolFailure as failure:
        failure.kind = _KINDS.get(failure.kind, failure.kind)
        raise


async def _let_go(answer: aiohttp.ClientResponse) -> None:
    """What was not read of it is not waited for."""
    answer.release() if answer.content.at_eof() else answer.close()


def _authorization(login: dict[str, Any]) -> dict[str, str]:
    token, user = login.get("token") or login.get("value"), login.get("username", login.get("user"))
    if user is not None:
        known = f"{user}:{login.get('password') or ''}"
        return {"authorization": f"Basic {base64.b64encode(known.encode()).decode()}"}
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _is_packed(answer: aiohttp.ClientResponse) -> bool:
    return answer.headers.get("content-encoding", "identity").lower() not in ("", "identity")


def _version(answer: aiohttp.ClientResponse) -> str | None:
    return answer.headers.get("etag") or answer.headers.get("last-modified")


def _modified(answer: aiohttp.ClientResponse) -> Any:
    try:
        found = email.utils.parsedate_to_datetime(answer.headers.get("last-modified", ""))
    except ValueError:
        return None
    return found.replace(tzinfo=None)
