"""Replay: a recorded run is decided again in memory, from its recorded outcomes and with a frozen clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

from penstock.components.registry import ComponentRegistry
from penstock.kernel.errors import Refused
from penstock.kernel.places import LogicalClock
from penstock.kernel.values import JsonMap
from penstock.keychain import resolve
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Lease
from penstock.ports.log import Entry, EventLog
from penstock.ports.projects import ProjectFolders
from penstock.ports.results import decode, loader
from penstock.ports.wire import to_clock, to_entry, to_fact
from penstock.server.documents import Documents, Pinned
from penstock.server.replay import Difference, Replay, first_difference
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from penstock.views.canonical import canonical
from penstock.worker.services import SharedResources, WorkerServices
from penstock.worker.threads import DaemonThreads
from penstock.worker.workforce import StepWork

_WORDS = frozenset({"cause", "upstream", "link"})


async def replay(
    source: EventLog,
    blobs: BlobStore,
    tools: Registry,
    components: ComponentRegistry,
    settings: Settings,
    execution_id: str,
    projects: ProjectFolders | None = None,
    documents: Documents | None = None,
) -> Difference | None:
    """`documents`: the compiler of a process that must not read files of this machine."""
    if source.header(execution_id) is None:
        raise Refused(f"there is no run `{execution_id}`")

    load = loader(blobs)
    entries = list(source.read(execution_id))
    recorded = [(to_fact(entry, load), entry.ts) for entry in entries]
    if not recorded:
        raise Refused(f"run `{execution_id}` was registered and never started")
    document = Pinned.from_bytes(source.document(execution_id))
    clock = StillClock()
    services = WorkerServices(
        tools=tools,
        clock=clock,
        blobs=blobs,
        resources=SharedResources(),
        threads=DaemonThreads(),
        settings=settings,
        say=lambda *_: None,
    )
    # A replay calls no tool, so it needs no secret.
    keys = await resolve([], folder=document.folder, home=document.folder, environ={}, clock=clock)
    documents = documents or Documents(tools, components, projects=projects)
    await documents.prepared(document)

    def work(lease: Lease) -> StepWork:
        return StepWork(lease, services, cast(Any, None))  # Nobody observes a replay.

    decided = Replay(execution_id, recorded, documents, blobs, keys, work).run(document)
    again = [to_entry(fact, seq, 0.0, "replay") for seq, fact in enumerate(decided, 1)]
    if not _has_ended(entries):
        again = _as_far_as(entries, again)
    is_resumed = any(entry.type == "job.started" and b'"resumed":true' in entry.payload for entry in entries)
    return first_difference(
        _decided(entries, execution_id, is_resumed=is_resumed), _decided(again, execution_id, is_resumed=is_resumed)
    )


def _decided(entries: list[Entry], execution_id: str, *, is_resumed: bool) -> Iterator[JsonMap]:
    """That something was skipped is a decision; the wording of the reason, and which of several links gave it, are not."""
    for event in canonical(entries, execution_id):
        payload = event["payload"]
        if (
            is_resumed
            and event["event_type"] == "global.set"
            and isinstance(payload, dict)
            and "[#" in str(event["scope"])
        ):
            # An iteration that ran before another one was repeated saw less than it would have seen after it.
            yield {**event, "payload": {key: payload[key] for key in payload if key != "old"}}
        elif event["event_type"] == "component.skipped" and isinstance(payload, dict):
            compared = {key: payload[key] for key in payload if key not in _WORDS}
            yield {**event, "cause": None, "payload": compared}
        else:
            yield event


def _has_ended(entries: list[Entry]) -> bool:
    marks = [entry.type for entry in entries if entry.scope == "" and not entry.type.endswith(".cancelling")]
    return marks[-1].partition(".")[2] in ("completed", "failed", "cancelled")


def _as_far_as(entries: list[Entry], again: list[Entry]) -> list[Entry]:
    """A replay of a run that was cut off goes further than the log: only what the log has is compared."""
    reach: dict[str, LogicalClock] = {}
    for entry in entries:
        reach[entry.scope] = max(_clock(entry), reach.get(entry.scope, ()))
    return [entry for entry in again if _clock(entry) <= reach.get(entry.scope, ())]


def _clock(entry: Entry) -> LogicalClock:
    return to_clock(decode(entry.clock.encode()))


class StillClock:
    """Nothing waits and nothing times out."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
