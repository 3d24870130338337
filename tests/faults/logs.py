"""What must be true of the log of every run that has ended."""

from __future__ import annotations

import asyncio

from penstock.app.library import lazy_components
from penstock.app.replay import replay
from penstock.ports.blobs import BlobStore
from penstock.ports.log import Entry, EventLog
from penstock.ports.results import decode
from penstock.tools.base import Settings
from penstock.tools.registry import Registry
from tests.envelopes import checked_events

ENDS = frozenset(
    f"{kind}.{end}" for kind in ("playbook", "job") for end in ("completed", "failed", "cancelled", "interrupted")
)


def check_log(log: EventLog, blobs: BlobStore, run: str, status: str = "completed") -> list[Entry]:
    """The log of a run that has ended: it has no gap and one end, and a replay of it decides the same."""
    entries = list(log.read(run))
    header = log.header(run)
    assert header is not None
    assert header.status == status, (header, decode(entries[-1].payload))
    assert [entry.seq for entry in entries] == list(range(1, header.last_seq + 1))
    assert [entry.type for entry in entries if entry.type in ENDS and not entry.scope] == [entries[-1].type]
    checked_events(log, run)
    difference = asyncio.run(replay(log, blobs, Registry(), lazy_components(), Settings(), run))
    assert difference is None, difference.describe()
    return entries
