"""A connection to NATS, shared by all tasks of a run that name the same servers and the same user.

Law: sockets are opened to judged addresses only, and a server is gone to because the document names it, never because another
server told of it. With `tls://` nothing that is secret is said before TLS. A connection that has ended is not repaired behind the
back of whoever waits for an answer: that task fails as retryable, and the next one connects anew.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats import errors
from nats.aio.client import Client
from nats.js import errors as js_errors

from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.network import (
    Resolver,
    addresses_of,
    causes,
    connect_words,
    dns_failure,
    require_allowed,
    tls_context,
    tls_reason,
)

T = TypeVar("T")

PORT = 4222
CLOSING_SECONDS = 2.0
_MARGIN = 2.0
"""How much longer than the library's own limit a request may take before it is given up from outside."""
_ALIASES = {
    "nats_url": "url", "server": "url", "servers": "url", "uri": "url", "username": "user", "nats_user": "user",
    "nats_password": "password", "nats_token": "token", "seed": "nkey", "nkey_seed": "nkey", "credentials": "creds",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Login:
    """One of: user and password, a token, the seed of an nkey, the text of a `.creds` file; or nothing."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    nkey: str | None = field(default=None, repr=False)
    creds: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A server that the document names."""

    host: str
    port: int
    is_tls: bool
    login: Login

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Servers:
    places: tuple[Place, ...]
    verify: bool | str
    connect_s: float

    def __str__(self) -> str:
        return ", ".join(f"`{place}`" for place in self.places)


def servers_of(entry: Mapping[str, Any], verify: bool | str, connect_s: float) -> Servers:
    """What a keychain entry and the parameters laid over it say. Raises ToolFailure."""
    told = {_ALIASES.get(name, name): value for name, value in entry.items() if value is not None}
    only = told.pop("value", None)
    if isinstance(only, str):
        told.setdefault("url" if "://" in only else "token", only)
    urls = told.get("url")
    texts = [str(one) for one in urls] if isinstance(urls, list) else str(urls or "").split(",")
    texts = [text.strip() for text in texts if text.strip()]
    if not texts:
        raise ToolFailure(
            "parameters",
            "no server is named; hint: `auth: <name of a keychain entry with `url`>`, or `url: nats://HOST`",
        )
    known = {name: str(told[name]).strip("\r\n") for name in Login.__dataclass_fields__ if told.get(name) is not None}
    return Servers(tuple(_place(text, Login(**known)) for text in texts), verify, connect_s)


def _place(text: str, login: Login) -> Place:
    refusal = ToolFailure(
        "parameters", "`url` is not the address of a NATS server, such as `nats://HOST:4222` or `tls://HOST`"
    )
    try:
        url = urlsplit(text if "://" in text else f"nats://{text}")
        port = url.port or PORT
    except ValueError:
        raise refusal from None  # The reason quotes a part of it, which may be a part of a password.
    if url.scheme not in ("nats", "tls") or not url.hostname:
        raise refusal
    if login == Login() and url.username:
        user, password = unquote(url.username), None if url.password is None else unquote(url.password)
        login = Login(token=user) if password is None else Login(user, password)
    return Place(url.hostname, port, url.scheme == "tls", login)


class _Client(Client):
    """Knows whether TLS was asked for, and signs for an nkey."""

    def __init__(self, *, is_tls: bool, public_key: str | None) -> None:
        super().__init__()
        self._is_tls = is_tls
        self._public_nkey = public_key

    def _connect_command(self) -> bytes:
        # The last moment before the password is said. A server that is spoken to without TLS says so before.
        if self._is_tls and not self._server_info.get("tls_required"):
            raise errors.SecureConnWantedError
        return super()._connect_command()


class Link:
    def __init__(self, servers: Servers, allowed: Addresses, resolve: Resolver) -> None:
        self.servers = servers
        self._allowed = allowed
        self._resolve = resolve
        self._client: Client | None = None
        self._ended = asyncio.Event()
        self._connecting = asyncio.Lock()
        self.denied: list[str] = []
        """What the server said it does not permit: it says so apart from its answers."""

    async def use(
        self, act: Callable[[Client], Awaitable[T]], seconds: float | None, unanswered: str | None = None
    ) -> T:
        """What `act` gives. Raises ToolFailure when there is no connection, or none any more; any error of `act` as it is.
        `unanswered`: a subject to which `act` says something that no answer comes to, unless it is not permitted."""
        client = await self._connected()
        denied = len(self.denied)
        acting = asyncio.ensure_future(act(client))
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            async with asyncio.timeout(None if seconds is None else seconds + _MARGIN):
                await asyncio.wait({acting, ending}, return_when=asyncio.FIRST_COMPLETED)
            # The library cancels those who wait when a connection ends: that is not the cancelling of this task.
            if not acting.done() or acting.cancelled():
                raise ToolFailure("connect", f"the connection to {self.servers} has ended", retryable=True)
            result = acting.result()
        except (TimeoutError, errors.Error):
            if len(self.denied) > denied:
                raise self._denial(self.denied[-1]) from None
            raise
        finally:
            acting.cancel()
            ending.cancel()
            await asyncio.gather(acting, ending, return_exceptions=True)
        for words in self.denied[denied:]:
            if f'"{unanswered}"' in words:
                raise self._denial(words)
        return result

    def _denial(self, words: str) -> ToolFailure:
        return ToolFailure("permission", f"{self.servers}: {words}")

    async def close(self) -> None:
        if self._client is not None:
            await _close(self._client)

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> Client:
        """The first server that can be reached. One that refuses the user is the answer: the others would, too."""
        failure: ToolFailure | None = None
        for place in self.servers.places:
            _identity(place.login)
            try:
                addresses = await addresses_of(place.host, place.port, self._resolve, self.servers.connect_s)
            except ToolFailure as unknown:
                failure = unknown
                continue
            require_allowed(place.host, addresses, self._allowed)
            for address in addresses:
                try:
                    return await self._dial(place, address)
                except (OSError, errors.Error, UnicodeError) as error:
                    failure = connect_failure(error, place)
                    if failure.kind != "connect":
                        raise failure from error
        assert failure is not None
        raise failure

    async def _dial(self, place: Place, address: str) -> Client:
        public_key, more = _identity(place.login)
        client = _Client(is_tls=place.is_tls, public_key=public_key)
        ended, denied, reported = asyncio.Event(), self.denied, list[Exception]()

        async def on_error(error: Exception) -> None:
            reported.append(error)
            if "permissions violation" in str(error).lower():
                denied.append(_words(error))

        async def on_closed() -> None:
            ended.set()

        try:
            async with asyncio.timeout(self.servers.connect_s):
                context = await asyncio.to_thread(tls_context, self.servers.verify)
                shown = f"[{address}]" if ":" in address else address
                await client.connect(
                    f"nats://{shown}:{place.port}",
                    name="penstock",
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # 0 would be for ever.
                    reconnect_time_wait=0,
                    connect_timeout=self.servers.connect_s,  # type: ignore[arg-type]
                    tls=context,
                    tls_hostname=place.host,
                    error_cb=on_error,
                    closed_cb=on_closed,
                    **more,
                )
        except BaseException as error:
            await _close(client)
            if isinstance(error, errors.NoServersError) and reported:
                raise reported[-1] from None
            raise
        self._ended = ended
        return client


async def _close(client: Client) -> None:
    with suppress(errors.Error, OSError):
        async with asyncio.timeout(CLOSING_SECONDS):
            await client.close()


# ---- who asks


def _identity(login: Login) -> tuple[str | None, dict[str, Any]]:
    """The public key, if it is to be named, and the options of the connection."""
    if login.creds is not None:
        token, seed = (_section(login.creds, title) for title in ("NATS USER JWT", "USER NKEY SEED"))
        _, sign = signer(seed)
        return None, {"user_jwt_cb": token.encode, "signature_cb": sign}
    if login.nkey is not None:
        public_key, sign = signer(login.nkey)
        return public_key, {"signature_cb": sign}
    if login.token is not None:
        return None, {"token": login.token}
    if login.user is not None:
        return None, {"user": login.user, "password": login.password or ""}
    return None, {}


def _section(creds: str, title: str) -> str:
    found = re.search(rf"-----BEGIN {title}-----\s+(\S+)\s+-+END {title}-+", creds)
    if found is None:
        raise ToolFailure("parameters", f"`creds` is the text of a `.creds` file; it has no section `{title}`")
    return found[1]


_USER = 20 << 3
_SEED = 18 << 3


def signer(seed: str) -> tuple[str, Callable[[str], bytes]]:
    """The public key of a user's nkey, and what signs with it. The form: two bytes of prefix, the key, a CRC-16."""
    refusal = ToolFailure("parameters", "the seed of the nkey is not that of a user; it begins with `SU`")
    try:
        raw = base64.b32decode(seed.strip() + "=" * (-len(seed.strip()) % 8))
    except (binascii.Error, ValueError):
        raise refusal from None
    body, checksum = raw[:-2], raw[-2:]
    is_user = len(raw) == 36 and raw[0] & 0xF8 == _SEED and ((raw[0] & 7) << 5 | raw[1] >> 3) == _USER
    if not is_user or _checksum(body) != checksum:
        raise refusal
    key = Ed25519PrivateKey.from_private_bytes(body[2:])
    public = bytes([_USER]) + key.public_key().public_bytes_raw()
    name = base64.b32encode(public + _checksum(public)).decode().rstrip("=")
    return name, lambda nonce: base64.b64encode(key.sign(nonce.encode()))


def _checksum(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0).to_bytes(2, "little")


# ---- errors in words that a policy can test and an author act on


def _words(error: BaseException) -> str:
    text = getattr(error, "description", None) or str(error).removeprefix("nats: ").strip().strip("'")
    return text or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()


def connect_failure(error: BaseException, place: Place) -> ToolFailure:
    for cause in causes(error):
        if isinstance(cause, ToolFailure):
            return cause
        if isinstance(cause, (socket.gaierror, UnicodeError)):
            return dns_failure(place.host, cause)
        if isinstance(cause, ssl.SSLError):
            return ToolFailure("tls", f"no secure connection to `{place}`: {tls_reason(cause)}")
    if isinstance(error, errors.SecureConnWantedError):
        words = "it does not speak TLS; hint: with `nats://` the connection is not encrypted"
        return ToolFailure("tls", f"no secure connection to `{place}`: {words}")
    if isinstance(error, errors.AuthorizationError) or "authorization violation" in str(error).lower():
        return ToolFailure("auth", f"`{place}` does not accept the user")
    return ToolFailure(
        "connect", f"no connection to `{place}`: {connect_words(error, place.host, place.port)}", retryable=True
    )


_KINDS: tuple[tuple[tuple[type[BaseException], ...], str, bool], ...] = (
    ((errors.NoRespondersError,), "no_responders", True),
    ((js_errors.KeyWrongLastSequenceError,), "conflict", False),
    ((js_errors.NotFoundError, js_errors.NoStreamResponseError), "not_found", False),
    ((errors.MaxPayloadError,), "too_large", False),
    ((js_errors.ServiceUnavailableError, js_errors.ServerError), "unavailable", True),
    (
        (js_errors.InvalidKeyError, js_errors.InvalidBucketNameError, js_errors.InvalidObjectNameError),
        "parameters",
        False,
    ),
    ((errors.BadSubjectError, errors.BadHeaderError, ValueError), "parameters", False),
    ((js_errors.Error,), "nats", False),
    ((TimeoutError,), "timeout", True),
    (
        (errors.ConnectionClosedError, errors.ConnectionReconnectingError, errors.ConnectionDrainingError),
        "connect",
        True,
    ),
    ((errors.StaleConnectionError, errors.OutboundBufferLimitError, OSError), "connect", True),
)


def failure_of(error: BaseException, what: str, servers: Servers) -> ToolFailure:
    """`what`: what the operation is about, such as a bucket."""
    for types, kind, is_retryable in _KINDS:
        if isinstance(error, types):
            words = "no answer in time" if kind == "timeout" else _words(error)
            return ToolFailure(kind, f"{what} at {servers}: {words}", retryable=is_retryable)
    return ToolFailure("nats", f"{what} at {servers}: {_words(error)}")
