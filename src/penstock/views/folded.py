"""Runs that somebody looks at, folded: the latest state of each and some earlier ones, held in memory.

Law: of a run that goes on only what is new is folded. Looking never folds for longer than `PATIENCE_S`: if a long run is looked
at for the first time, the answer is about the farthest event that has been folded, and `go_on` folds the rest, slice by slice,
making snapshots on the way. Whoever looks has the view for themselves until they return.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import TypeVar

from penstock.kernel.errors import PenstockError
from penstock.ports.log import Entry
from penstock.views.run_view import EVERY, FORMAT, Readable, RunView, nearest

T = TypeVar("T")

MOST_RUNS = 16
MOST_PAST = 3
"""Earlier moments of one run that are held."""
PATIENCE_S = 0.2
SLICE_S = 0.1
CHUNK = 1_000
"""Entries between two looks at the clock."""


class _Held:
    def __init__(self) -> None:
        self.lock = Lock()
        self.tip = RunView()
        """The farthest."""
        self.past: list[RunView] = []
        """The latest asked for at the end."""


class FoldedRuns:
    """May be used from any thread."""

    def __init__(self, log: Readable, *, every: int = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._every = every
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()

    def look(self, execution_id: str, seq: int, make: Callable[[RunView], T]) -> T:
        """What `make` gets to see is the run right after entry `seq`, or after the last one there is; or, if that takes too long,
        after the farthest that is known. It must not keep the view."""
        held = self._of(execution_id)
        wanted = max(0, seq)
        with held.lock:
            if wanted < held.tip.seq:
                return make(self._past(held, execution_id, wanted))
            self._advance(held, execution_id, wanted, self._clock() + PATIENCE_S)
            return make(held.tip)

    def go_on(self, execution_id: str, seq: int) -> bool:
        """Folds for a moment what nobody has folded yet, up to entry `seq`. False when there is nothing left."""
        held = self._of(execution_id)
        with held.lock:
            return not self._advance(held, execution_id, seq, self._clock() + SLICE_S)

    def forget(self, execution_id: str) -> None:
        with self._lock:
            self._held.pop(execution_id, None)

    def _of(self, execution_id: str) -> _Held:
        with self._lock:
            held = self._held.setdefault(execution_id, _Held())
            self._held.move_to_end(execution_id)
            while len(self._held) > MOST_RUNS:
                self._held.popitem(last=False)
            return held

    # ---- folding

    def _advance(self, held: _Held, execution_id: str, wanted: int, until: float) -> bool:
        """Whether it came to `wanted`, or to the end."""
        if wanted - held.tip.seq >= self._every:
            held.tip = nearest(self._log, execution_id, wanted, after=held.tip.seq) or held.tip
        return self._fold(held.tip, execution_id, wanted, until)

    def _past(self, held: _Held, execution_id: str, wanted: int) -> RunView:
        """Continues the closest of the earlier moments that are held, else the closest snapshot."""
        before = [view for view in held.past if view.seq <= wanted]
        view = max(before, key=lambda one: one.seq, default=None)
        close: RunView | None = None
        if view is None or wanted - view.seq >= self._every // 2:
            close = nearest(self._log, execution_id, wanted, after=0 if view is None else view.seq)
        if view is None or close is not None:
            view = close or RunView()
        held.past = [one for one in held.past if one is not view]
        self._fold(view, execution_id, wanted, float("inf"))
        held.past = [*held.past[-(MOST_PAST - 1) :], view]
        return view

    def _fold(self, view: RunView, execution_id: str, wanted: int, until: float) -> bool:
        if view.seq >= wanted:
            return True
        entries = self._log.read(execution_id, view.seq)
        while chunk := list(islice(entries, min(CHUNK, wanted - view.seq))):
            for entry in chunk:
                view.apply(entry)
                if entry.seq % self._every == 0:
                    self._keep(view, execution_id)
            if view.seq >= wanted:
                return True
            if self._clock() >= until:
                return not any(True for _ in islice(entries, 1))
        return True

    def _keep(self, view: RunView, execution_id: str) -> None:
        with suppress(PenstockError):
            found = self._log.snapshot(execution_id, FORMAT, view.seq)
            if found is None or found[0] != view.seq:
                self._log.keep_snapshot(execution_id, FORMAT, view.seq, view.snapshot())


def entry_at(log: Readable, execution_id: str, seq: int | None) -> Entry | None:
    """One entry by its number."""
    if not seq:
        return None
    found = next(entries_between(log, execution_id, seq - 1, seq), None)
    return found if found is not None and found.seq == seq else None


def entries_between(log: Readable, execution_id: str, after: int, upto: int) -> Iterator[Entry]:
    """Those behind `after`, up to and with `upto`."""
    for entry in log.read(execution_id, after):
        if entry.seq > upto:
            return
        yield entry
