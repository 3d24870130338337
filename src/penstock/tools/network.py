"""Which addresses a task may reach when the operator has closed the private network.

Law: a name is resolved once, every address it has is judged, and the connection goes to an address that was judged.
Judging happens where the socket is opened, so no spelling of a URL, no redirect and no second look-up can slip past it.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence

from penstock.tools.base import ToolFailure

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port -> its addresses as text, in order of preference. Raises `socket.gaierror` when there is none."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST_6 = ipaddress.ip_network("2000::/3")
# Public by number and still local: clouds answer here only from inside, with secrets of the machine.
_METADATA = {ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")}
# Set aside by the registries; releases of Python differ in which of these they know.
_SET_ASIDE = tuple(
    ipaddress.ip_network(text)
    for text in ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "3fff::/20")
)


async def resolve_host(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address is only a wrapping for: a gateway would deliver there."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour


def _word_for(address: _Address) -> str | None:
    tests = {
        "a loopback address": address.is_loopback,
        "an unspecified address": address.is_unspecified,
        "a link-local address": address.is_link_local,
        "a multicast address": address.is_multicast,
        "a cloud metadata address": address in _METADATA,
        "a private address": address.is_private,
        "not a public address": not address.is_global
        or address.is_reserved
        or any(address in net for net in _SET_ASIDE),
    }
    return next((word for word, holds in tests.items() if holds), None)


def refusal(text: str) -> str | None:
    """Why this address is out of bounds (`a loopback address`), or None when it is public."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return _word_for(carried)
        return _word_for(address) or (None if address in _UNICAST_6 else "not a public address")
    return _word_for(address)


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


def dns_failure(host: str, error: OSError | UnicodeError) -> ToolFailure:
    temporary = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ToolFailure("dns", f"the host `{host}` cannot be resolved: {reason}", retryable=temporary, host=host)


async def addresses_of(host: str, port: int, resolve: Resolver, seconds: float | None) -> list[str]:
    """All addresses of `host`, at least one."""
    try:
        async with asyncio.timeout(seconds):
            addresses = list(await resolve(host, port))
    except TimeoutError as error:
        words = f"the host `{host}` was not resolved within {seconds:g} s"
        raise ToolFailure("dns", words, retryable=True, host=host) from error
    except (socket.gaierror, UnicodeError) as error:
        raise dns_failure(host, error) from error
    if not addresses:
        raise ToolFailure("dns", f"the host `{host}` has no address", host=host)
    return addresses


def require_public(host: str, addresses: Sequence[str]) -> None:
    """One address that is out of bounds refuses the whole name."""
    for address in addresses:
        word = refusal(address)
        if word is not None:
            spelled = f"`{host}` is" if host == address else f"`{host}` is `{address}`,"
            words = f"{spelled} {word}, and this installation lets tasks reach only public ones"
            raise ToolFailure("address_refused", words, host=host, address=address)
