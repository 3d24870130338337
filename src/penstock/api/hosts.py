"""The `Host` of a request, parsed strictly: a page of another site cannot choose it, its browser does.

Law: an attacker who points a name of theirs at this machine (DNS rebinding) makes browsers send that name. So a request without a
token is answered only under a name that nobody else can have: an address, `localhost`, the name of this machine, or one that the
operator configured. What cannot be parsed as one host is refused, because the next parser may read it differently.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers

from penstock.api.errors import ApiError

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]{1,253}))(?::(?P<port>[0-9]{1,5}))?\Z")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    """In lower case, without the brackets of an IPv6 address."""
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None

    @staticmethod
    def read(text: str) -> Host | None:
        """None when it is not one host, with or without a port."""
        found = _HOST.match(text)
        if found is None or int(found["port"] or 0) > 65535:
            return None
        if found["six"] is not None:
            try:
                return Host(found["six"].lower(), ipaddress.IPv6Address(found["six"]))
            except ValueError:
                return None
        name = found["name"].lower().removesuffix(".")
        try:
            return Host(name, ipaddress.IPv4Address(name))
        except ValueError:
            # Parsers disagree whether a name whose last part is a number is an address.
            last = name.rpartition(".")[2]
            is_odd = last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last)
            return None if is_odd or not _NAME.match(name) else Host(name, None)


def own_names() -> frozenset[str]:
    return frozenset({"localhost", socket.gethostname().lower()})


def is_known(host: Host, named: Sequence[str] | frozenset[str], *, is_loopback: bool) -> bool:
    """`named`: the names that the operator configured. A server on the loopback must be addressed as such; others by any of their
    addresses."""
    if host.name in named or host.name in own_names():
        return True
    return host.address is not None and (host.address.is_loopback if is_loopback else True)


def is_own_origin(headers: Headers, *, is_tls: bool = False) -> bool:
    """Whether the page that makes a request is one of this server, as far as the browser names it in `Origin`; `null` is none of
    ours. Under TLS a page that came without it is not ours either: anybody on its way may have written it."""
    host = headers.get("host", "").lower()
    for origin in headers.getlist("origin"):
        scheme, _, where = origin.lower().partition("://")
        if not host or where != host or (is_tls and scheme != "https"):
            return False
    return True


def other_site() -> ApiError:
    return ApiError(403, "a page of another site may not ask this server for anything", code="other_site")
