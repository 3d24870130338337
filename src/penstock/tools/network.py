"""Opening connections to hosts that a document names, when the operator has not opened every address.

Law: a name is resolved once, every address it has is judged, and the connection goes to an address that was judged.
Judging happens where the socket is opened, so no spelling of a URL, no redirect and no second look-up can slip past it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence

from penstock.tools.addresses import OPTION, VARIABLE, Addresses
from penstock.tools.base import ToolFailure

HOW_TO_OPEN = f"who runs this worker or server opens more with `{OPTION}`, or `{VARIABLE}`"

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions keep the certificates of the authorities they trust."""

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port -> its addresses as text, in order of preference. Raises `socket.gaierror` when there is none."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: libraries wrap the one that says what happened."""
    waiting: list[BaseException] = [error]
    known: set[int] = set()
    while waiting:
        seen = waiting.pop(0)
        if id(seen) in known:
            continue
        known.add(id(seen))
        yield seen
        waiting += seen.exceptions if isinstance(seen, BaseExceptionGroup) else ()
        led = seen.__cause__ or seen.__context__
        waiting += [] if led is None else [led]


_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})


def connect_words(error: BaseException, host: str, port: int | str | None) -> str:
    """Why there is no connection, in words that say what to look at."""
    at = f"`{host}:{port}`" if port else f"`{host}`"
    for cause in causes(error):
        number = cause.errno if isinstance(cause, OSError) else None
        if number == errno.ECONNREFUSED or "connection refused" in str(cause).casefold():
            return f"connection refused by {at}; is a server listening there?"
        if isinstance(cause, TimeoutError) or number == errno.ETIMEDOUT:
            return f"no answer from {at} in time; is the address right, and does a firewall let it through?"
        if number in _UNREACHABLE:
            return f"there is no way to {at} from here: {cause.strerror if isinstance(cause, OSError) else cause}"
    return " ".join(str(error).split()) or type(error).__name__


def tls_reason(error: ssl.SSLError) -> str:
    return str(getattr(error, "verify_message", None) or error.reason or error)


def trusting_context() -> ssl.SSLContext:
    """Trusts the authorities that the machine trusts, or those that `SSL_CERT_FILE` or `SSL_CERT_DIR` name."""
    if sys.platform == "darwin" and not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
        import truststore  # Its authorities are not in a file.

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    if not any(ssl.get_default_verify_paths()[:2]):
        # A Python that was built elsewhere looks where that machine had them.
        for file in filter(os.path.isfile, AUTHORITIES):
            context.load_verify_locations(file)
            break
    return context


def tls_context(verify: bool | str) -> ssl.SSLContext:
    """`verify`: whether certificates are verified, or the file of those to trust."""
    if verify is True:
        return trusting_context()
    if verify is False:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=verify)
    except FileNotFoundError as error:
        raise ToolFailure("tls", f"`verify`: there is no file `{verify}`") from error
    except (OSError, ssl.SSLError) as error:
        raise ToolFailure("tls", f"`verify`: `{verify}` is not a file of certificates in PEM form: {error}") from error


def dns_failure(host: str, error: OSError | UnicodeError) -> ToolFailure:
    temporary = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ToolFailure("dns", f"the host `{host}` cannot be resolved: {reason}", retryable=temporary, host=host)


def not_resolved(host: str, seconds: float | None) -> ToolFailure:
    return ToolFailure("dns", f"the host `{host}` was not resolved within {seconds:g} s", retryable=True, host=host)


async def addresses_of(host: str, port: int, resolve: Resolver, seconds: float | None) -> list[str]:
    """All addresses of `host`, at least one."""
    try:
        async with asyncio.timeout(seconds):
            addresses = list(await resolve(host, port))
    except TimeoutError as error:
        raise not_resolved(host, seconds) from error
    except (socket.gaierror, UnicodeError) as error:
        raise dns_failure(host, error) from error
    if not addresses:
        raise ToolFailure("dns", f"the host `{host}` has no address", host=host)
    return addresses


def require_allowed(host: str, addresses: Sequence[str], allowed: Addresses) -> None:
    """One address that is out of bounds refuses the whole name."""
    if allowed.trusts(host):
        return
    for address in addresses:
        word = allowed.refusal(address.partition("%")[0])
        if word is not None:
            spelled = f"`{host}` is" if host == address else f"`{host}` is `{address}`,"
            raise address_refused(f"{spelled} {word}", host=host, address=address)


def address_refused(what: str, **detail: str) -> ToolFailure:
    words = f"{what}, and only public ones may be reached from here; hint: {HOW_TO_OPEN}"
    return ToolFailure("address_refused", words, retryable=False, helpers=None, **detail)


def allowed_addresses(host: str, port: int, allowed: Addresses) -> list[str]:
    """The addresses of a host, each of which was judged; for code that opens sockets in a thread."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise dns_failure(host, error) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    require_allowed(host, addresses, allowed)
    return addresses
