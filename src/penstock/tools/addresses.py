"""Which addresses tasks may reach: a value that the operator writes, and every tool that opens a socket asks.

Law: public addresses can always be reached; any other one only if it was opened. An IPv6 address that merely carries an IPv4
address (mapped, NAT64, 6to4) is judged as that IPv4 address. A host that was opened by its name is trusted wherever it leads.

    any         everything: what a run on one's own machine may reach
    loopback    127.0.0.0/8, ::1, and sockets in the file system
    private     10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7
    link-local  169.254.0.0/16, fe80::/10: the metadata services of clouds are here
    10.1.0.0/16, 10.1.2.3, fd00::/8, warehouse.internal
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.kernel.errors import Refused

OPTION, VARIABLE = "--allow-address", "PENSTOCK_ALLOW_ADDRESS"

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*texts: str) -> tuple[_Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


GROUPS: dict[str, tuple[_Network, ...]] = {
    "loopback": _networks("127.0.0.0/8", "::1/128"),
    "private": _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
    "link-local": _networks("169.254.0.0/16", "fe80::/10"),
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST_6 = ipaddress.ip_network("2000::/3")
# Public by number and still local: clouds answer here only from inside, with secrets of the machine.
_METADATA = {ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")}
# Set aside by the registries; releases of Python differ in which of these they know.
_SET_ASIDE = _networks(
    "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "3fff::/20", "::/96"
)
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\Z")


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
        or any(address in net for net in _SET_ASIDE)
        or (isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST_6),
    }
    return next((word for word, holds in tests.items() if holds), None)


@dataclass(frozen=True, slots=True)
class Addresses:
    is_open: bool = False
    """Everything can be reached: nothing is judged."""
    networks: tuple[_Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @staticmethod
    def parsed(words: Iterable[str]) -> Addresses:
        """What `--allow-address` and its variable say; one word may hold several, with commas between them."""
        networks: list[_Network] = []
        hosts: set[str] = set()
        is_open = False
        for word in (part.strip().lower() for given in words for part in given.split(",")):
            if not word:
                continue
            if word in GROUPS:
                networks += GROUPS[word]
            elif word == "any":
                is_open = True
            elif (network := _network(word)) is not None:
                networks.append(network)
            else:
                hosts.add(word.rstrip("."))
        return Addresses(is_open, tuple(networks), frozenset(hosts))

    def trusts(self, host: str) -> bool:
        """Was this name opened by the operator? Then it is trusted wherever it leads."""
        return self.is_open or host.lower().rstrip(".") in self.hosts

    def refusal(self, text: str) -> str | None:
        """Why this address is out of bounds (`a loopback address`), or None when it may be reached."""
        if self.is_open:
            return None
        found: _Address = ipaddress.ip_address(text)
        carried = _carried(found) if isinstance(found, ipaddress.IPv6Address) else None
        judged = carried or found
        if any(judged in network for network in self.networks):
            return None
        return _word_for(judged)

    def opens(self, host: str) -> bool:
        """Did the operator open this host or address, beyond what is public anyway?"""
        try:
            found = ipaddress.ip_address(host)
        except ValueError:
            return self.trusts(host)
        return self.trusts(host) or any(found in network for network in self.networks)

    @property
    def reaches_sockets(self) -> bool:
        """May sockets in the file system be used? They lead to this machine, as the loopback does."""
        return self.refusal("127.0.0.1") is None


def _network(word: str) -> _Network | None:
    try:
        return ipaddress.ip_network(word.strip("[]"), strict=False)
    except ValueError:
        if _HOST.match(word.rstrip(".")) and not re.fullmatch(r"[0-9.xa-f]+", word):
            return None
        raise Refused(
            f"`{OPTION} {word[:100]}` is neither a network nor a host",
            f"write `loopback`, `private`, `link-local`, `any`, an address or a network such as `10.1.0.0/16`, or a host name; "
            f"`{VARIABLE}` takes several with commas between them",
        ) from None


OPEN = Addresses(is_open=True)
"""Embedded runs: a document on the user's own machine may reach whatever the user can reach."""
PUBLIC_ONLY = Addresses()
LOOPBACK = Addresses(networks=GROUPS["loopback"])
