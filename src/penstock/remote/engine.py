"""The runs of a server, as commands look at runs: the log is read over the network, and the server computes what it can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from penstock.kernel.values import JsonMap
from penstock.ports.log import EventLog, Header
from penstock.remote.client import Client, at
from penstock.remote.log import RemoteBlobs, RemoteLog
from penstock.server.documents import Documents
from penstock.server.views import Views
from penstock.tools.base import Settings
from penstock.tools.registry import Registry

if TYPE_CHECKING:
    from penstock.server.replay import Difference


class RemoteViews(Views):
    """Large logs are folded by the server."""

    def shown(self, header: Header) -> JsonMap:
        return cast(JsonMap, self._client.get(at("executions", header.execution_id)))

    def explained(self, header: Header, node: str) -> JsonMap:
        return cast(JsonMap, self._client.get(at("executions", header.execution_id, "explain"), node=node))

    @property
    def _client(self) -> Client:
        assert isinstance(self.blobs, RemoteBlobs)
        return self.blobs.client


class RemoteEngine:
    is_remote: ClassVar[Literal[True]] = True

    def __init__(self, client: Client) -> None:
        self.client = client
        self.log = RemoteLog(client)
        self.blobs = RemoteBlobs(client)
        self.tools = Registry()

    @property
    def components(self) -> Any:
        from penstock.components.registry import ComponentRegistry  # Only jobs need it.

        return ComponentRegistry(with_lineage=False)

    @property
    def views(self) -> RemoteViews:
        return RemoteViews(cast(EventLog, self.log), self.blobs, Documents(self.tools, self.components))

    async def replay(self, execution_id: str) -> Difference | None:
        """Reads events and results from the server, and decides again here."""
        from penstock.app.replay import replay  # Only a replay needs its machinery.

        log = cast(EventLog, self.log)
        return await replay(log, self.blobs, self.tools, self.components, Settings(), execution_id)

    def lines(self, execution_id: str, *, follow: bool) -> Iterator[bytes]:
        return self.client.lines(at("executions", execution_id, "logs"), follow=follow)
