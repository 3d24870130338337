"""The globals of a job as they stand: what its sub-jobs wrote, joined by the kernel's own rules.

An iterator writes what its iterations left behind when it ends, so nothing inside an iteration has to be looked at: this costs
by the size of the job, not by the number of its iterations.
"""

from __future__ import annotations

from penstock.kernel.evolve import evolve
from penstock.kernel.evolve.restart import continue_in, restart
from penstock.kernel.places import Place
from penstock.kernel.state import Execution, State, final_globals
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.ports.wire import read_clock, to_fact

# Facts without which no view changes.
_IGNORED = frozenset({"checkpoint.saved", "iterator.completed", "iterator.started"})


class GlobalsFold:
    def __init__(self, load: Load | None = None) -> None:
        self._load = load
        self._state = State()
        self._root: Execution | None = None

    def start(self, entry: Entry, kept: list[str]) -> None:
        before = self._root
        if before is not None and before.id == entry.scope:
            restart(self._state, before, frozenset(kept))
            return
        self._root = Execution(place=Place(entry.scope, read_clock(entry.clock)[:-2]))
        self._state.scopes[self._root.id] = self._root
        if before is not None:
            continue_in(self._state, before, self._root, kept)

    def add(self, entry: Entry) -> None:
        """A fact of the job's inside, and of none of its iterations."""
        if self._root is not None and entry.type not in _IGNORED:
            evolve(self._state, to_fact(entry, self._load), entry.ts)

    def values(self) -> JsonMap:
        """What is everyone's; values that stay local to a sub-job are not."""
        return final_globals(self._root) if self._root is not None else {}
