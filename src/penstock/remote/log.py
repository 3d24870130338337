"""The log and the results of a server, read over the network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef, key_of
from penstock.ports.log import Entry, Header
from penstock.ports.results import decode, encode
from penstock.ports.wire import iso
from penstock.remote.client import Client, at
from penstock.views.headers import CRASHED, RunFilter

PAGE = 1000


class RemoteLog:
    """The reading half of an event log."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def header(self, name: str) -> Header:
        """Finds a run by id, beginning of an id, label or `@last`; the server refuses a name that fits none or several."""
        return header_of(self.client.get(at("executions", name, "header")))

    def runs(self, wanted: RunFilter, limit: int) -> list[tuple[Header, str]]:
        """Runs, the newest first, with their status as the server reads it."""
        found: list[tuple[Header, str]] = []
        after = None
        asked = {
            "status": wanted.status,
            "name": wanted.name,
            "label": wanted.label,
            "kind": wanted.kind,
            "q": wanted.text,
            "since": None if wanted.since is None else iso(wanted.since),
            "until": None if wanted.until is None else iso(wanted.until),
        }
        while len(found) < limit:
            page = self.client.get(at("executions"), limit=min(PAGE, limit - len(found)), after=after, **asked)
            found += [(header_of(one), CRASHED if one["crashed"] else one["status"]) for one in page["runs"]]
            after = page["next"]
            if after is None:
                break
        return found

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        for line in self.client.lines(at("executions", execution_id, "events"), after=after):
            yield entry_of(decode(line))

    def follow(self, execution_id: str) -> Iterator[Entry | None]:
        """Entries as they arrive, until the run is over; None whenever there are no more for now."""
        for page in self.client.pages(at("executions", execution_id, "events"), follow=True):
            yield from (entry_of(decode(line)) for line in page)
            yield None

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        """Always None: snapshots stay on the server."""
        return None

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        """Does nothing: snapshots stay on the server."""

    def document(self, execution_id: str) -> bytes:
        return encode(self.client.get(at("executions", execution_id, "document")))

    def has_owner(self, execution_id: str) -> bool:
        """Always true: the fleet owns all of its runs."""
        return True


class RemoteBlobs:
    """Results of a server, each fetched once. What is put stays in memory."""

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
