"""The globals of a job as they stand: what its sub-jobs wrote, joined by the kernel's own rules.

An iterator writes what its iterations left behind when it ends, so nothing inside an iteration has to be looked at: this costs
by the size of the job, not by the number of its iterations.
"""

from __future__ import annotations

from penstock.kernel.flow.evolve import FlowIndex, continue_in, evolve, open_root
from penstock.kernel.flow.restarting import restart
from penstock.kernel.flow.state import ContainerState
from penstock.kernel.flow.views import exported, joined
from penstock.kernel.places import Place
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.ports.wire import read_clock, to_fact

# Facts without which no view changes.
_IGNORED = frozenset({"checkpoint.saved", "iterator.completed", "iterator.started"})


class GlobalsFold:
    def __init__(self, load: Load | None = None) -> None:
        self._load = load
        self._index = FlowIndex()
        self._root: ContainerState | None = None

    def start(self, entry: Entry, kept: list[str]) -> None:
        before = self._root
        if before is not None and before.id == entry.scope:
            restart(self._index, before, frozenset(kept))
            return
        self._root = open_root(self._index, Place(entry.scope, read_clock(entry.clock)[:-2]))
        if before is not None:
            continue_in(self._index, before, self._root, kept)

    def add(self, entry: Entry) -> None:
        """A fact of the job's inside, and of none of its iterations."""
        if self._root is not None and entry.type not in _IGNORED:
            evolve(self._index, to_fact(entry, self._load), entry.ts)

    def values(self) -> JsonMap:
        """What is everyone's; values that stay local to a sub-job are not."""
        if self._root is None:
            return {}
        return joined(exported(region.out()) for region in self._root.regions.values()).shared_values()
