"""A run as it was at any of its entries.

Law: at most so many entries are folded as lie between two snapshots, and none is held. Snapshots are made on the way, where there
are none yet; one that cannot be read or kept costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol
from zlib import error as NotCompressed

from msgspec import MsgspecError

from penstock.kernel.errors import PenstockError
from penstock.ports.log import Entry
from penstock.ports.snapshots import Snapshots
from penstock.views.run_view import FORMAT, RunView

EVERY = 20_000
"""Entries from one snapshot to the next."""
LATEST = 1 << 62


class Readable(Snapshots, Protocol):
    """A log that entries can be read from, wherever it is."""

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]: ...


def view_at(log: Readable, execution_id: str, seq: int = LATEST, *, every: int = EVERY) -> RunView:
    """The view right after entry `seq`, or after the last one there is."""
    view = _nearest(log, execution_id, seq)
    if view.seq >= seq:
        return view
    for entry in log.read(execution_id, view.seq):
        view.apply(entry)
        if entry.seq % every == 0:
            with suppress(PenstockError):
                log.keep_snapshot(execution_id, FORMAT, entry.seq, view.snapshot())
        if entry.seq >= seq:
            break
    return view


def _nearest(log: Readable, execution_id: str, seq: int) -> RunView:
    with suppress(PenstockError, MsgspecError, NotCompressed):
        found = log.snapshot(execution_id, FORMAT, seq)
        if found is not None:
            return RunView.restore(found[1])
    return RunView()
