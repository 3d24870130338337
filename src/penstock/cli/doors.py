"""Where a command that looks after a server's things sends its requests: to the server, or to the stores themselves."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli.remote import server_of
from penstock.kernel.errors import Refused
from penstock.remote.client import Client, decoded, error_of

if TYPE_CHECKING:
    from penstock.fleet_stores import Places


def door_of(options: Namespace) -> Client:
    url = server_of(options)
    if url is not None:
        return Client(url)
    from penstock.cli.places import places_of

    return LocalClient(places_of(options))


class LocalClient(Client):
    """The same requests, without a network."""

    def __init__(self, places: Places) -> None:
        super().__init__("http://localhost", "")
        self._places = places

    def _once(self, method: str, path: str, sent: Mapping[str, Any], *, is_safe: bool) -> bytes:
        from importlib.util import find_spec

        if find_spec("fastapi") is None:
            raise Refused(
                "this needs `fastapi`, which this installation does not have",
                "`pip install penstock` installs all that a server needs",
            )
        from penstock.local_door import answered

        status, body = asyncio.run(answered(self._places, method, path, sent))
        if status < 400:
            return body
        raise error_of(status, decoded(body), str(self._places.home))
