"""Where a run stands: its state folded from the log, and the history of its step runs, in one pass over the entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.kernel.evolve import Execution, evolve
from penstock.kernel.state import ExecutionState
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.ports.wire import to_fact
from penstock.views.history import History, add


@dataclass(frozen=True, slots=True)
class Standing:
    state: ExecutionState
    history: History
    events: int


def standing_of(entries: Iterable[Entry], load: Load) -> Standing:
    """Closed scopes are dropped as they close, so this needs little more memory than what is still open."""
    tree, seen, events = Execution(), History(), 0
    for entry in entries:
        evolve(tree, to_fact(entry, load), entry.ts)
        add(seen, entry)
        events = entry.seq
    return Standing(tree.root, seen, events)


def state_at(entries: Iterable[Entry], load: Load, last: int) -> Execution:
    """The state as it was right after entry number `last`."""
    tree = Execution()
    for entry in entries:
        if entry.seq > last:
            break
        evolve(tree, to_fact(entry, load), entry.ts)
    return tree
