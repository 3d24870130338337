"""One request and its redirects, over a client that all tasks of an execution share.

Law: whatever goes wrong between the task and the server leaves here as a ToolFailure with a kind of its own, and a response
is always closed, also when the task is cancelled. Imported on first use only: the HTTP stack is slow to load.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpcore2
import httpx2

from penstock.kernel.values import JsonMap
from penstock.tools import network
from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure

MAX_REDIRECTS = 10
EXCERPT_BYTES = 64 * 1024
_POOL = httpx2.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=30.0)
# httpx2 takes `Authorization` off when a redirect leaves the origin; these carry credentials just as often.
_CREDENTIAL_HEADERS = frozenset([
    "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "apikey", "x-auth-token",
    "x-access-token",
])  # fmt: skip

Close = Callable[[], Awaitable[None]]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens sockets to judged addresses only. TLS still names and verifies the host, not the address."""

    def __init__(self, allowed: Addresses, resolve: network.Resolver, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        deadline = None if timeout is None else time.monotonic() + timeout
        addresses = await network.addresses_of(host, port, self._resolve, timeout)
        network.require_allowed(host, addresses, self._allowed)
        for left in range(len(addresses), 0, -1):
            # An address that does not answer may use up its share of the time, not that of the others.
            share = None if deadline is None else max(0.0, deadline - time.monotonic()) / left
            try:
                return await self._inner.connect_tcp(addresses[-left], port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if left == 1:
                    raise
        raise AssertionError("there is at least one address")

    async def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Any = None) -> Any:
        raise network.address_refused(f"`{path}` is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


@contextmanager
def _as_httpx() -> Iterator[None]:
    """The two libraries have the same names for the same errors."""
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error


class _GuardedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Built from public parts only, so that a new release of the library cannot quietly leave the guard out."""

    def __init__(self, context: ssl.SSLContext, backend: GuardedBackend) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=_POOL.max_connections,
            max_keepalive_connections=_POOL.max_keepalive_connections,
            keepalive_expiry=_POOL.keepalive_expiry,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        core = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = await self._pool.handle_async_request(core)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_GuardedStream(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def _tls_context(verify: bool | str) -> ssl.SSLContext:
    if isinstance(verify, bool):
        return _usual_context(verify, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    try:
        return ssl.create_default_context(cafile=verify)
    except FileNotFoundError as error:
        raise ToolFailure("tls", f"`verify`: there is no file `{verify}`") from error
    except (OSError, ssl.SSLError) as error:
        raise ToolFailure("tls", f"`verify`: `{verify}` is not a file of certificates in PEM form: {error}") from error


@cache
def _usual_context(verify: bool, *places: str | None) -> ssl.SSLContext:
    """To read all authorities that the machine trusts takes longer than many a request: once is enough, for the same `places`."""
    return httpx2.create_ssl_context(verify=verify)


def open_client(
    verify: bool | str,
    allowed: Addresses,
    resolve: network.Resolver = network.resolve_host,
    backend: httpcore2.AsyncNetworkBackend | None = None,
) -> tuple[httpx2.AsyncClient, Close]:
    """A client and what closes it. Where not every address is open it is guarded, and proxies from the environment are not used:
    they would open the sockets."""
    for name in ("httpx2", "httpcore2"):
        # Their lines show whole URLs and headers, credentials included.
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
    context = _tls_context(verify)
    jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    if allowed.is_open:
        client = httpx2.AsyncClient(verify=context, limits=_POOL, cookies=jar, trust_env=True)
    else:
        guarded = GuardedBackend(allowed, resolve, backend or httpcore2.AnyIOBackend())
        client = httpx2.AsyncClient(transport=GuardedTransport(context, guarded), cookies=jar, trust_env=False)
    return client, client.aclose


@dataclass(frozen=True, slots=True)
class Exchange:
    """What must hold for one request and all hops it leads to."""

    follow: bool = True
    secret_headers: frozenset[str] = frozenset()
    """Headers beside the usual ones that must not travel to another origin."""
    secret_query: str | None = None
    """The query parameter that holds an API key, kept out of results and messages."""
    holds_secret: Callable[[str], bool] = lambda text: False
    """Is a secret of the keychain in this text? Then it does not travel to another origin, in whichever header it stands."""
    form: str = ""
    """The fields of a multipart form, which is sent piece by piece and cannot be read back."""
    origin_only: bool = False
    """Show no more of a URL than its host: for many webhooks the path is the secret."""
    _cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)
    """Cookies live for the hops of one run: shared ones would make a task depend on what ran before it."""

    def shown(self, url: httpx2.URL) -> str:
        """The URL for people and for the log: without user name, password, API key and fragment."""
        if self.origin_only:
            return f"{url.scheme}://{url.netloc.decode()}"
        if url.username or url.password:
            url = url.copy_with(username=None, password=None)
        if self.secret_query is not None and self.secret_query in url.params:
            url = url.copy_set_param(self.secret_query, "***")
        return str(url.copy_with(fragment=None))

    @asynccontextmanager
    async def send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """The last response of the chain, unread and open for as long as the block lasts."""
        response = await self._hop(client, request)
        try:
            hops = 0
            while self.follow and response.next_request is not None:
                hops += 1
                if hops > MAX_REDIRECTS:
                    raise ToolFailure("redirects", f"{self._named(request)}: more than {MAX_REDIRECTS} redirects")
                following = self._next(response)
                with self.failures(response.request):
                    await excerpt(response)
                await response.aclose()
                response = await self._hop(client, following)
            yield response
        finally:
            await response.aclose()

    async def _hop(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        self._check(request.url)
        with self.failures(request):
            response = await client.send(request, stream=True, follow_redirects=False)
        self._cookies.extract_cookies(response)
        return response

    def _check(self, url: httpx2.URL) -> None:
        if url.scheme not in ("", "http", "https"):
            words = f"only `http` and `https` URLs can be requested, not `{url.scheme}`"
            raise ToolFailure("unsupported_scheme", f"`{self.shown(url)}`: {words}")
        if not url.host or (url.port or 0) > 65535:
            raise ToolFailure(
                "parameters", f"`{self.shown(url)}` is not a whole URL such as `https://example.com:8080/path`"
            )

    def _next(self, response: httpx2.Response) -> httpx2.Request:
        request = response.next_request
        assert request is not None
        if _leaves(response.request.url, request.url):
            self._leave_secrets(request)
        self._cookies.set_cookie_header(request)
        return request

    def _leave_secrets(self, request: httpx2.Request) -> None:
        """Another origin gets no credential: no header that has one, and no request at all whose body has one."""
        for name, value in list(request.headers.multi_items()):
            if name in _CREDENTIAL_HEADERS | self.secret_headers or self.holds_secret(f"{name}: {value}"):
                request.headers.pop(name, None)
        # Of what is sent in pieces the fields are looked at, files are not.
        is_whole = isinstance(request.stream, httpx2.ByteStream)
        body = request.read().decode("utf-8", "replace") if is_whole else self.form
        if body and self.holds_secret(body):
            raise ToolFailure(
                "redirects",
                f"{self._named(request)}: the server leads to another origin, and the body holds a secret of the keychain; "
                "hint: name that address as `url` if it is to have it",
            )

    def _named(self, request: httpx2.Request) -> str:
        return f"{request.method} {self.shown(request.url)}"

    @contextmanager
    def failures(self, request: httpx2.Request) -> Iterator[None]:
        """Errors of the network inside the block become the failures a policy can test for."""
        try:
            yield
        except (httpx2.HTTPError, httpx2.StreamError, UnicodeError) as error:
            raise _failure_of(error, self._named(request), request) from error


def _leaves(here: httpx2.URL, there: httpx2.URL) -> bool:
    """Is `there` another party? The same host going from http to https on the usual ports is not."""
    upgraded = here.host == there.host and (here.scheme, there.scheme) == ("http", "https")
    return here.origin != there.origin and not (upgraded and here.port in (None, 80) and there.port in (None, 443))


def _failure_of(error: Exception, named: str, request: httpx2.Request) -> ToolFailure:
    host = request.url.host
    for cause in network.causes(error):
        if isinstance(cause, (socket.gaierror, UnicodeError)):
            return network.dns_failure(host, cause)
        if isinstance(cause, ssl.SSLError):
            return ToolFailure(
                "tls", f"{named}: no secure connection to `{host}`: {network.tls_reason(cause)}", host=host
            )
    if isinstance(error, httpx2.TimeoutException):
        return _timeout_of(error, named, request)
    text = str(error) or type(error).__name__
    if isinstance(error, httpx2.DecodingError):
        return ToolFailure("decode", f"{named}: the body is not in the encoding its headers say: {text}")
    if isinstance(error, httpx2.ConnectError):
        port = request.url.port or {"https": 443, "http": 80}.get(request.url.scheme)
        words = network.connect_words(error, host, port)
        return ToolFailure("connect", f"{named}: no connection to `{host}`: {words}", retryable=True, host=host)
    if isinstance(error, (httpx2.NetworkError, httpx2.ProxyError)):
        return ToolFailure("connect", f"{named}: the connection broke: {text}", retryable=True, host=host)
    retryable = isinstance(error, httpx2.RemoteProtocolError)
    return ToolFailure("protocol", f"{named}: {text}", retryable=retryable, host=host)


def _timeout_of(error: httpx2.TimeoutException, named: str, request: httpx2.Request) -> ToolFailure:
    limits = request.extensions.get("timeout", {})
    phase, words = "read", "nothing came from the server for"
    if isinstance(error, httpx2.ConnectTimeout):
        phase, words = "connect", "no connection within"
    elif isinstance(error, httpx2.WriteTimeout):
        phase, words = "write", "the server took nothing for"
    limit = limits.get(phase)
    return ToolFailure("timeout", f"{named}: {words} {limit:g} s", retryable=True, phase=phase, seconds=limit)


async def excerpt(response: httpx2.Response) -> bytes:
    """The beginning of a body: enough to know what the server wanted to say."""
    data = b""
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) >= EXCERPT_BYTES:
                break
    return data[:EXCERPT_BYTES]


def recorded_headers(response: httpx2.Response) -> JsonMap:
    """Names in lower case. `set-cookie` is left out: it is a credential, and this goes into the log."""
    return {name.lower(): value for name, value in response.headers.items() if name.lower() != "set-cookie"}
