"""Files anywhere: on this machine, in object stores, on web servers and on file servers."""

from __future__ import annotations

from penstock.ports.meanings import OBJECT_STORES, WEB_SCHEMES
from penstock.tools.addresses import OPEN, Addresses
from penstock.tools.places.base import Credential, Location, Place, fields


def opened(location: Location, credential: Credential, allowed: Addresses = OPEN) -> Place:
    """The place of a URL. Nothing is asked of it yet."""
    credential = fields(credential)
    if location.scheme in OBJECT_STORES:
        from penstock.tools.places.objects import ObjectPlace  # Each of these loads a library of its own.

        return ObjectPlace(location, credential, allowed)
    if location.scheme in WEB_SCHEMES:
        from penstock.tools.places.web import WebPlace  # As above.

        return WebPlace(location, credential, allowed)
    from penstock.tools.places.servers import ServerPlace  # As above.

    return ServerPlace(location, credential, allowed)
