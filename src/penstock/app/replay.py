"""Replay: a recorded run is decided again in memory, from its recorded outcomes and with a clock that stands still."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.adapters.memory.log import MemoryLog
from penstock.components.registry import ComponentRegistry
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.kernel.places import LogicalClock
from penstock.kernel.values import JsonMap
from penstock.keychain import resolve
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Keys
from penstock.ports.log import Entry, EventLog, Header
from penstock.ports.projects import ProjectFolders
from penstock.ports.results import decode, loader
from penstock.ports.wire import to_clock, to_fact
from penstock.server.documents import Documents, Pinned
from penstock.server.record import Record
from penstock.server.replay import Difference, ReplayHost, decide_again, first_difference
from penstock.server.stream import Stream
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.views.canonical import canonical
from penstock.worker.desk import Desk
from penstock.worker.resources import SharedResources
from penstock.worker.threads import DaemonThreads
from penstock.worker.workforce import LocalWorkforce

_WORDS = frozenset({"cause", "upstream", "link"})


async def replay(
    source: EventLog,
    blobs: BlobStore,
    tools: Registry,
    components: ComponentRegistry,
    settings: Settings,
    execution_id: str,
    projects: ProjectFolders | None = None,
) -> Difference | None:
    if source.header(execution_id) is None:
        raise Refused(f"there is no run `{execution_id}`")

    load = loader(blobs)
    entries, record = list(source.read(execution_id)), Record()
    for entry in entries:
        record.add(to_fact(entry, load), entry.ts)
    record.close()
    if not record.opened(""):
        raise Refused(f"run `{execution_id}` was registered and never started")
    document = Pinned.from_bytes(source.document(execution_id))
    desk = Desk(
        tools=tools,
        clock=StillClock(),
        blobs=blobs,
        resources=SharedResources(),
        threads=DaemonThreads(),
        settings=settings,
        say=lambda *_: None,
        memory=record,
        components=components,
        work=Path(tempfile.gettempdir()) / f"penstock-replay-{execution_id}",  # Nothing is written: no component runs.
    )
    documents = Documents(tools, components, projects=projects)
    again = await _decide_again(desk, documents, execution_id, document)
    if not _has_ended(entries):
        again = _as_far_as(entries, again)
    is_resumed = any(entry.type == "job.started" and b'"resumed":true' in entry.payload for entry in entries)
    return first_difference(
        _decided(entries, execution_id, is_resumed=is_resumed), _decided(again, execution_id, is_resumed=is_resumed)
    )


def _decided(entries: list[Entry], execution_id: str, *, is_resumed: bool) -> Iterator[JsonMap]:
    """That something was skipped is a decision; in which words it is told why, and by which of several links, is not."""
    for event in canonical(entries, execution_id):
        payload = event["payload"]
        if (
            is_resumed
            and event["event_type"] == "global.set"
            and isinstance(payload, dict)
            and "[#" in str(event["scope"])
        ):
            # An iteration that ran before another one did so again found less than it would have found after it.
            yield {**event, "payload": {key: payload[key] for key in payload if key != "old"}}
        elif event["event_type"] == "component.skipped" and isinstance(payload, dict):
            told = {key: payload[key] for key in payload if key not in _WORDS}
            yield {**event, "cause": None, "payload": told}
        else:
            yield event


def _has_ended(entries: list[Entry]) -> bool:
    marks = [entry.type for entry in entries if entry.scope == "" and not entry.type.endswith(".cancelling")]
    return marks[-1].partition(".")[2] in ("completed", "failed", "cancelled")


def _as_far_as(entries: list[Entry], again: list[Entry]) -> list[Entry]:
    """Of a run that was cut off, a replay knows what would have come next; what counts is what came."""
    reach: dict[str, LogicalClock] = {}
    for entry in entries:
        reach[entry.scope] = max(_clock(entry), reach.get(entry.scope, ()))
    return [entry for entry in again if _clock(entry) <= reach.get(entry.scope, ())]


def _clock(entry: Entry) -> LogicalClock:
    return to_clock(decode(entry.clock.encode()))


async def _decide_again(desk: Desk, documents: Documents, execution_id: str, document: Pinned) -> list[Entry]:
    log = MemoryLog()
    header = Header(execution_id, "playbook", "replay", document.file, "", "running", 0.0)
    await log.create(header, document.to_bytes())
    stream = Stream(log, desk.clock, execution_id, await log.claim(execution_id, "replay"), "replay")
    record = desk.memory
    assert isinstance(record, Record)
    host = ReplayHost(record, execution_id, stream, LocalWorkforce(desk), documents, desk.blobs, _no_keys)
    await decide_again(host, document, record)
    await stream.durable()
    return list(log.read(execution_id))


class StillClock:
    """Nothing waits and nothing times out."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def _no_keys(net: Net, workload: Any, document: Pinned) -> Keys:
    """A replay calls no tool, so it needs no secret."""
    return await resolve([], folder=document.folder, home=document.folder, environ={}, clock=StillClock())
