"""One request and its redirects, over a client that all tasks of an execution share.

Law: whatever goes wrong between the task and the server leaves here as a ToolFailure with a kind of its own, and a response
is always let go of, also when the task is cancelled. Imported on first use only: the HTTP stack is slow to load.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import IO, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.http_exceptions import ContentEncodingError, TransferEncodingError
from yarl import URL

from penstock.kernel.values import JsonMap
from penstock.tools import network
from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure

MAX_REDIRECTS = 10
EXCERPT_BYTES = 64 * 1024
MAX_CONNECTIONS = 256
KEPT_OPEN_S = 30.0
_LONGEST_HEADER = 64 * 1024
_BUFFER = 256 * 1024
_PIECE = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# These carry credentials whatever the author or the keychain says of them.
_CREDENTIAL_HEADERS = frozenset([
    "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "apikey", "x-auth-token",
    "x-access-token",
])  # fmt: skip

OpenSocket = Callable[[int, int, int], socket.socket]
"""Family, type and protocol -> a socket that is not connected yet."""


# ---- URLs

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
_ESCAPED = re.compile(r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NUMERIC = re.compile(r"[0-9.]*[0-9]", re.ASCII)


def url_of(text: str) -> URL:
    """Escapes what a URL cannot hold and leaves what is escaped already as it is, as in signed URLs. Raises ValueError."""
    text = text.strip()
    found = _ORIGIN.match(text)
    if found is None:
        return URL(text)
    rest = text[found.end() :].partition("#")[0]
    if not _ESCAPED.fullmatch(rest):
        if _CONTROL.search(rest):
            raise ValueError("the URL has a line break or another control character in it")
        rest = quote(_LONE_PERCENT.sub("%25", rest), safe="/?:@!$&'()*+,;=~[]%")
    return URL(_origin(found[0]) + rest, encoded=True)


@lru_cache
def _origin(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("the URL has a line break or another control character in it")
    url = URL(text)
    if _NUMERIC.fullmatch(url.host or ""):
        url = url.with_host(_address(url.host or ""))
    return str(url)


def _address(host: str) -> str:
    """`127.1` and `2130706433` are addresses too, as browsers and the system's resolver read them."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host


def with_query(url: URL, pairs: Sequence[tuple[str, str]]) -> URL:
    """These parameters stand in the place of those of the same name that the URL has."""
    if not pairs:
        return url
    names = {name for name, _ in pairs}
    kept = [pair for pair in parse_qsl(url.raw_query_string, keep_blank_values=True) if pair[0] not in names]
    return URL(f"{url.with_query(None)}?{urlencode([*kept, *pairs])}", encoded=True)


# ---- what is sent


class _Stalled(TimeoutError):
    """The server took nothing of the body for too long."""


class Body(aiohttp.Payload):
    """Pieces that are sent one after another, again when a redirect asks for it; each has its own time to be taken."""

    _autoclose = True  # Whoever opened the files closes them.

    def __init__(self, pieces: Sequence[bytes | IO[bytes]], text: str | None = None) -> None:
        """`text`: what is said in it beside the content of files, to look for secrets in; of bytes it is known."""
        super().__init__(None)
        self._pieces = pieces
        self._text = text
        self._size = sum(len(one) if isinstance(one, bytes) else os.fstat(one.fileno()).st_size for one in pieces)
        self.seconds: float | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        if self._text is not None:
            return self._text
        return b"".join(one for one in self._pieces if isinstance(one, bytes)).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        try:
            for chunk in self._chunks():
                async with asyncio.timeout(self.seconds):
                    await writer.write(chunk)
        except BaseException as error:
            # Closing alone would go on offering the rest, for as long as the server takes nothing.
            transport = getattr(writer, "transport", None)
            if transport is not None:
                transport.abort()
            if isinstance(error, TimeoutError):
                raise _Stalled from error
            raise

    def _chunks(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))
                continue
            piece.seek(0)
            while chunk := piece.read(_PIECE):
                yield chunk


@dataclass(slots=True)
class Request:
    method: str
    url: URL
    headers: dict[str, str] = field(repr=False)
    """Names in lower case."""
    body: Body | None = None
    connect: float | None = None
    read: float | None = None
    write: float | None = None
    is_resolving: bool = False


@cache
def _timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=None, sock_read=read)


_ASKING: ContextVar[Request] = ContextVar("asking")
"""The request that a name is resolved and a socket opened for."""


# ---- where it is sent to


class _JudgedNames(AbstractResolver):
    def __init__(self, allowed: Addresses, resolve: network.Resolver) -> None:
        self._allowed = allowed
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        request = _ASKING.get()
        request.is_resolving = True
        addresses = await network.addresses_of(host, port, self._resolve, None)
        request.is_resolving = False
        network.require_allowed(host, addresses, self._allowed)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


class Client:
    """The connections of one execution, to however many servers. Where not every address is open, each is judged as the socket to
    it is opened, and proxies from the environment are not used: they would open the sockets. TLS names and verifies the host."""

    def __init__(
        self,
        verify: bool | str,
        allowed: Addresses,
        resolve: network.Resolver = network.resolve_host,
        open_socket: OpenSocket = socket.socket,
    ) -> None:
        """`verify`: whether certificates are verified, or the file of those to trust."""

        def judged(info: tuple[Any, ...]) -> socket.socket:
            family, kind, protocol, _, address = info
            network.require_allowed(_ASKING.get().url.host or "", [address[0]], allowed)
            return open_socket(family, kind, protocol)

        self.places = asyncio.Semaphore(MAX_CONNECTIONS)
        """One for each exchange. Not counted by the connector, for which waiting for a place is part of connecting."""
        self._verify = verify
        self._context: ssl.SSLContext | None = None
        self._proxies = _proxies() if allowed.is_open else {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEPT_OPEN_S,
                use_dns_cache=False,
                resolver=_JudgedNames(allowed, resolve),
                socket_factory=judged,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": "penstock", "accept": "*/*", "accept-encoding": "gzip, deflate"},
            skip_auto_headers=("content-type",),
            read_bufsize=_BUFFER,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )

    async def ask(self, request: Request) -> aiohttp.ClientResponse:
        """The response, unread; the caller releases it."""
        _ASKING.set(request)
        if request.body is not None:
            request.body.seconds = request.write
        headers = request.headers
        more: dict[str, Any] = {}
        if self._proxies:
            headers, more = self._by_proxy(request)
        if request.url.scheme == "https" or more:
            more["ssl"] = self._context or await self._make_context()
        return await self._session.request(
            request.method,
            request.url,
            headers=headers,
            data=request.body,
            allow_redirects=False,
            timeout=_timeout(request.connect, request.read),
            **more,
        )

    async def _make_context(self) -> ssl.SSLContext:
        """Only when it is needed: to read all authorities that a machine trusts takes longer than many a request."""
        made = await asyncio.to_thread(_tls_context, self._verify)
        self._context = self._context or made
        return self._context

    def _by_proxy(self, request: Request) -> tuple[dict[str, str], dict[str, Any]]:
        proxy = self._proxies.get(request.url.scheme) or self._proxies.get("all")
        if proxy is None or proxy_bypass(request.url.host or ""):
            return request.headers, {}
        if proxy.scheme not in ("http", "https"):
            words = f"the proxy that the environment names begins with `{proxy.scheme}://`"
            raise ToolFailure("parameters", f"{words}; only `http://` and `https://` can be used")
        if (given := _basic(proxy)) is None:
            return request.headers, {"proxy": proxy}
        known, proxy = {"proxy-authorization": given}, proxy.with_user(None)
        if request.url.scheme == "https":
            return request.headers, {"proxy": proxy, "proxy_headers": known}
        return {**request.headers, **known}, {"proxy": proxy}

    async def close(self) -> None:
        await self._session.close()


def _proxies() -> dict[str, URL]:
    found = {scheme: text for scheme, text in getproxies().items() if scheme in ("http", "https", "all") and text}
    return {scheme: URL(text if "://" in text else f"http://{text}") for scheme, text in found.items()}


def _basic(url: URL) -> str | None:
    """User name and password of a URL, as a header says them."""
    if url.raw_user is None and url.raw_password is None:
        return None
    known = f"{unquote(url.raw_user or '')}:{unquote(url.raw_password or '')}"
    return f"Basic {base64.b64encode(known.encode()).decode()}"


def _tls_context(verify: bool | str) -> ssl.SSLContext:
    if isinstance(verify, bool):
        return _usual_context(verify, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    return network.tls_context(verify)


@cache
def _usual_context(verify: bool, *places: str | None) -> ssl.SSLContext:
    """Once is enough, for the same `places`."""
    return network.tls_context(verify)


# ---- one request and where it leads

# Its warnings quote cookies.
logging.getLogger("aiohttp.client").setLevel(logging.ERROR)

TROUBLE = (aiohttp.ClientError, OSError, UnicodeError)
"""What a client and its responses raise."""


@dataclass(slots=True)
class Exchange:
    """What must hold for one request and all hops it leads to."""

    follow: bool = True
    secret_headers: frozenset[str] = frozenset()
    """Headers beside the usual ones that must not travel to another origin."""
    secret_query: str | None = None
    """The query parameter that holds an API key, kept out of results and messages."""
    holds_secret: Callable[[str], bool] = lambda text: False
    """Is a secret of the keychain in this text? Then it does not travel to another origin, in whichever header it stands."""
    origin_only: bool = False
    """Show no more of a URL than its host: for many webhooks the path is the secret."""
    _cookies: aiohttp.CookieJar | None = None
    """Cookies live for the hops of one run: shared ones would make a task depend on what ran before it."""

    def shown(self, url: URL) -> str:
        """The URL for people and for the log: without user name, password, API key and fragment."""
        if self.origin_only:
            return f"{url.scheme}://{url.host_port_subcomponent}"
        if url.raw_user or url.raw_password:
            url = url.with_user(None)
        if self.secret_query is not None and self.secret_query in url.query:
            url = with_query(url, [(self.secret_query, "***")])
        return str(url.with_fragment(None) if url.raw_fragment else url)

    async def send(self, client: Client, request: Request) -> tuple[aiohttp.ClientResponse, Request]:
        """The last response of the chain, unread, and the request that it answers. The caller releases it."""
        response = await self._hop(client, request)
        hops = 0
        while self.follow and response.status in _REDIRECTS and "location" in response.headers:
            try:
                hops += 1
                if hops > MAX_REDIRECTS:
                    raise ToolFailure("redirects", f"{self._named(request)}: more than {MAX_REDIRECTS} redirects")
                following = self._next(response, request)
                await excerpt(response)  # So that its connection can be used again.
            except TROUBLE as error:
                raise self.failure(error, request) from error
            finally:
                response.release()
            request = following
            response = await self._hop(client, request)
        return response, request

    async def _hop(self, client: Client, request: Request) -> aiohttp.ClientResponse:
        self._check(request.url)
        if (known := _basic(request.url)) is not None:
            request.headers.setdefault("authorization", known)
            request.url = request.url.with_user(None)
        try:
            return await client.ask(request)
        except TROUBLE as error:
            raise self.failure(error, request) from error

    def _check(self, url: URL) -> None:
        if url.scheme not in ("", "http", "https"):
            words = f"only `http` and `https` URLs can be requested, not `{url.scheme}`"
            raise ToolFailure("unsupported_scheme", f"`{self.shown(url)}`: {words}")
        if not url.raw_host:
            raise ToolFailure(
                "parameters", f"`{self.shown(url)}` is not a whole URL such as `https://example.com:8080/path`"
            )

    def _next(self, response: aiohttp.ClientResponse, request: Request) -> Request:
        location = _text(response.headers["location"])
        try:
            url = url_of(urljoin(str(request.url), location))
        except ValueError as error:
            words = f"{self._named(request)}: the server leads to what is not a URL"
            raise ToolFailure("protocol", words, retryable=True, host=request.url.host) from error
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "cookie")}
        method, body = request.method, request.body
        if (response.status in (302, 303) and method != "HEAD") or (response.status == 301 and method == "POST"):
            method, body = "GET", None
            headers = {name: value for name, value in headers.items() if not name.startswith("content-")}
            headers.pop("transfer-encoding", None)
        following = Request(method, url, headers, body, request.connect, request.read, request.write)
        if _leaves(request.url, url):
            self._leave_secrets(following)
        self._carry_cookies(response, following)
        return following

    def _leave_secrets(self, request: Request) -> None:
        """Another origin gets no credential: no header that has one, and no request at all whose body has one."""
        for name, value in list(request.headers.items()):
            if name in _CREDENTIAL_HEADERS | self.secret_headers or self.holds_secret(f"{name}: {value}"):
                del request.headers[name]
        if request.body is not None and self.holds_secret(request.body.decode()):
            raise ToolFailure(
                "redirects",
                f"{self._named(request)}: the server leads to another origin, and the body holds a secret of the keychain; "
                "hint: name that address as `url` if it is to have it",
            )

    def _carry_cookies(self, response: aiohttp.ClientResponse, request: Request) -> None:
        if self._cookies is None:
            if "set-cookie" not in response.headers:
                return
            self._cookies = aiohttp.CookieJar(unsafe=True)  # Servers may have no name but an address.
        self._cookies.update_cookies(response.cookies, response.url)
        known = self._cookies.filter_cookies(request.url).values()
        if known:
            request.headers["cookie"] = "; ".join(f"{one.key}={one.coded_value}" for one in known)

    def _named(self, request: Request) -> str:
        return f"{request.method} {self.shown(request.url)}"

    def failure(self, error: Exception, request: Request) -> ToolFailure:
        """Trouble of the network as the failure that a policy can test for. The client's own words may quote the whole URL."""
        named, host = self._named(request), request.url.host or ""
        for cause in network.causes(error):
            if isinstance(cause, (socket.gaierror, UnicodeError)):
                return network.dns_failure(host, cause)
            if isinstance(cause, ssl.SSLError) and not isinstance(cause, aiohttp.ClientError):
                words = f"{named}: no secure connection to `{host}`: {network.tls_reason(cause)}"
                return ToolFailure("tls", words, host=host)
            if isinstance(cause, ContentEncodingError):
                return ToolFailure(
                    "decode", f"{named}: the body is not in the encoding its headers say: {cause.message}"
                )
        if isinstance(error, TimeoutError):
            return _timeout_of(error, named, request)
        if isinstance(error, aiohttp.InvalidURL):
            return ToolFailure("parameters", f"{named}: this is not a URL that can be requested")
        if isinstance(error, aiohttp.ClientConnectorError):
            words = network.connect_words(error.os_error, error.host, error.port)
            words = f"{named}: no connection to `{error.host}`: {words}"
            return ToolFailure("connect", words, retryable=True, host=host)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            words = f"{named}: the connection broke: the proxy answered {error.status} {error.message}".rstrip()
            return ToolFailure("connect", words, retryable=True, host=host)
        if isinstance(error, OSError):
            words = f"{named}: the connection broke: {os.strerror(error.errno) if error.errno else 'it was closed'}"
            return ToolFailure("connect", words, retryable=True, host=host)
        return ToolFailure("protocol", f"{named}: {_protocol_words(error)}", retryable=True, host=host)


def _timeout_of(error: Exception, named: str, request: Request) -> ToolFailure:
    phase, words, limit = "read", "nothing came from the server for", request.read
    if any(isinstance(cause, _Stalled) for cause in network.causes(error)):
        phase, words, limit = "write", "the server took nothing for", request.write
    elif isinstance(error, aiohttp.ConnectionTimeoutError):
        if request.is_resolving:
            return network.not_resolved(request.url.host or "", request.connect)
        phase, words, limit = "connect", "no connection within", request.connect
    return ToolFailure("timeout", f"{named}: {words} {limit:g} s", retryable=True, phase=phase, seconds=limit)


def _protocol_words(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        if any(isinstance(cause, TransferEncodingError) for cause in network.causes(error)):
            return "the body broke off, or is not in the chunks that its headers say"
        return "the body broke off before its end"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer is not HTTP: {' '.join(error.message.split())}"
    return "the connection was closed"


def _leaves(here: URL, there: URL) -> bool:
    """Is `there` another party? The same host going from http to https on the usual ports is not."""
    upgraded = here.host == there.host and (here.scheme, there.scheme) == ("http", "https")
    same = (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port)
    return not same and not (upgraded and here.port == 80 and there.port == 443)


async def excerpt(response: aiohttp.ClientResponse) -> bytes:
    """The beginning of a body: enough to know what the server wanted to say."""
    data = b""
    while len(data) < EXCERPT_BYTES and (chunk := await response.content.readany()):
        data += chunk
    return data[:EXCERPT_BYTES]


def _text(value: str) -> str:
    """A header as text: what is not UTF-8 is Latin-1, as it once was for all."""
    if value.isascii():
        return value
    data = value.encode("utf-8", "surrogateescape")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def recorded_headers(headers: Mapping[str, str]) -> JsonMap:
    """Names in lower case. `set-cookie` is left out: it is a credential, and this goes into the log."""
    recorded: dict[str, Any] = {}
    for given, value in headers.items():
        name = given.lower()
        if name != "set-cookie":
            recorded[name] = f"{recorded[name]}, {_text(value)}" if name in recorded else _text(value)
    return recorded
