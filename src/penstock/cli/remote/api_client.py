"""The client of the commands that look after a server: its API over the network, or in this process over its stores."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.app.state_folder import running_servers
from penstock.cli.output import answer, say
from penstock.cli.targets import locations_of, server_of
from penstock.kernel.errors import Refused
from penstock.remote.client import Client, at, decoded, error_of

if TYPE_CHECKING:
    from penstock.app.stores import StoreLocations


def client_of(options: Namespace, *, for_servers: bool = True) -> Client:
    """`for_servers`: what is kept is of use to a server only."""
    url = server_of(options)
    if url is not None:
        return Client(url)
    locations = locations_of(options)
    return LocalClient(locations if locations.database is not None else _in_use(locations, for_servers))


def _in_use(locations: StoreLocations, for_servers: bool) -> StoreLocations:
    """The stores of the server that runs on this state folder. Without one, a store that no server would read is refused."""
    from penstock.app.stores import POSTGRES_FOLDER, has_control_store  # Only fleets need it.

    running = running_servers(locations.home)
    if running:
        server = next((one for one in running if one.database is not None), running[0])
        if server.database is not None:
            say(f"in the database of the server {server.url} (process {server.pid}), which runs on `{locations.home}`")
        return replace(locations, database=server.database)
    if (locations.home / POSTGRES_FOLDER).exists() and not has_control_store(locations.home):
        raise Refused(
            f"`{locations.home}` belongs to `penstock up`, which has a database of its own, and it is not running",
            "start it again (`penstock up`), or name another place: `--server URL`, `--database URL`",
        )
    if for_servers and not has_control_store(locations.home):
        say(f"no server runs on `{locations.home}`; `penstock serve --store {locations.home}` uses what is kept there")
    return locations


def remove_named(client: Client, options: Namespace, kind: str) -> int:
    """Delete the schedule, hook or alert of a name."""
    client.ask("DELETE", at(f"{kind}s", options.name))
    return answer(
        options, {"name": options.name, "status": "removed", "exit_code": 0}, f"{kind} `{options.name}` is gone"
    )


class LocalClient(Client):
    """The same requests, without a network."""

    def __init__(self, locations: StoreLocations) -> None:
        super().__init__("http://localhost", "")
        self._locations = locations

    def _once(self, method: str, path: str, sent: Mapping[str, Any], *, is_safe: bool) -> bytes:
        if find_spec("fastapi") is None:
            raise Refused(
                "this needs `fastapi`, which this installation does not have",
                "`pip install penstock` installs all that a server needs",
            )
        from penstock.app.in_process_api import answered  # Only this needs FastAPI.

        status, body = asyncio.run(answered(self._locations, method, path, sent))
        if status < 400:
            return body
        raise error_of(status, decoded(body), str(self._locations.home))
