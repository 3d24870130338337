"""A server's runs, as commands look at runs: the log is read over the network; what the server can work out, it works out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef, key_of
from penstock.ports.log import Entry, EventLog, Header, Status
from penstock.ports.results import decode, encode
from penstock.ports.wire import iso
from penstock.remote.client import Client, at
from penstock.server.documents import Documents
from penstock.server.views import Views
from penstock.tools.registry import Registry

if TYPE_CHECKING:
    from penstock.server.replay import Difference

PAGE = 1000


class RemoteLog:
    """The reading half of an event log."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def header(self, name: str) -> Header:
        """By anything that names a run; the server refuses what names none, or several."""
        return header_of(self._client.get(at("executions", name, "header")))

    def headers(
        self, limit: int = 100, *, status: Status | None = None, name: str | None = None, since: float | None = None
    ) -> list[Header]:
        found: list[Header] = []
        after = None
        wanted = {"status": status, "name": name, "since": None if since is None else iso(since)}
        while len(found) < limit:
            page = self._client.get(at("executions"), limit=min(PAGE, limit - len(found)), after=after, **wanted)
            found += [header_of(one) for one in page["runs"]]
            after = page["next"]
            if after is None:
                break
        return found

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        for line in self._client.lines(at("executions", execution_id, "events"), after=after):
            yield entry_of(decode(line))

    def follow(self, execution_id: str) -> Iterator[Entry | None]:
        """Entries as they come, until the run is over; None whenever there is nothing more for now."""
        for page in self._client.pages(at("executions", execution_id, "events"), follow=True):
            yield from (entry_of(decode(line)) for line in page)
            yield None

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        """Those of the server stay there."""
        return None

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        """Nothing is kept here."""

    def document(self, execution_id: str) -> bytes:
        return encode(self._client.get(at("executions", execution_id, "document")))

    def has_owner(self, execution_id: str) -> bool:
        """The fleet looks after all of its runs."""
        return True


class RemoteBlobs:
    """Results of a server, each fetched once. What is put stays here."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, bytes] = {}
        self._store: str | None = None

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        data = b"".join(chunks)
        if self._store is None:
            self._store = str(self.client.get("/api/version")["stores"][0])
        checksum = hashlib.sha256(data).hexdigest()
        self._known[checksum] = data
        return ResultRef(self._store, key_of(checksum), len(data), checksum, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        found = self._known.get(ref.checksum)
        if found is None:
            found = self.client.raw("GET", at("results", ref.store, ref.checksum), is_safe=True)
            if hashlib.sha256(found).hexdigest() != ref.checksum:
                raise Unavailable(f"the result `{ref.key}` came damaged from `{self.client.url}`", "try again")
            self._known[ref.checksum] = found
        return found

    def path(self, ref: ResultRef) -> str:
        raise Refused("a result of a server is no file here")

    def delete(self, ref: ResultRef) -> None:
        raise Refused("results of a server are deleted by `penstock prune`")


class RemoteViews(Views):
    """What is large is folded where it lies."""

    def shown(self, header: Header) -> JsonMap:
        return cast(JsonMap, self._client.get(at("executions", header.execution_id)))

    def explained(self, header: Header, node: str) -> JsonMap:
        return cast(JsonMap, self._client.get(at("executions", header.execution_id, "explain"), node=node))

    @property
    def _client(self) -> Client:
        assert isinstance(self.blobs, RemoteBlobs)
        return self.blobs.client


class RemoteEngine:
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
        """The events and results come from the server, and the decisions are made again here."""
        # Only `replay` needs the engine.
        from penstock.app.replay import replay
        from penstock.tools.base import Settings

        log = cast(EventLog, self.log)
        return await replay(log, self.blobs, self.tools, self.components, Settings(), execution_id)

    def lines(self, execution_id: str, *, follow: bool) -> Iterator[bytes]:
        return self.client.lines(at("executions", execution_id, "logs"), follow=follow)


def header_of(data: Any) -> Header:
    ended = data["ended_at"]
    return Header(
        execution_id=data["execution_id"],
        kind=data["kind"],
        name=data["name"],
        path=data["file"],
        digest="",
        status=data["status"],
        started_at=seconds_of(data["started_at"]),
        ended_at=None if ended is None else seconds_of(ended),
        last_seq=data["events"],
        label=data["label"],
        trace_id=data["trace_id"],
        failed_iterations=data.get("failed_iterations"),
    )


def entry_of(data: Any) -> Entry:
    """An event as the log has it, from the envelope that readers get."""
    return Entry(
        seq=data["seq"],
        ts=seconds_of(data["ts"]),
        type=data["event_type"],
        scope=data["scope"],
        task=data["task_run_id"],
        clock=encode(data["clock"]).decode(),
        cause=data["cause"] and data["cause"].removeprefix(f"{data['execution_id']}/"),
        source=data["source"],
        worker=data["worker_id"],
        payload=encode(data["payload"]),
    )


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
