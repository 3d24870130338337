"""One execution's stream into the log: every fact is evolved into the state, numbered, encoded and handed over, in that order.

Law: the times of an execution's events never go back, whatever the clocks of its machines do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ExecutionEnded, Fact, ShardFailed, ShardsDone
from penstock.kernel.shards import SHARDS, shards_settled
from penstock.kernel.state import State
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.kept_state import Change, changes_of
from penstock.ports.log import Entry, EventLog, Status
from penstock.ports.results import Load
from penstock.ports.wire import to_entry, to_fact

Observer: TypeAlias = Callable[[Entry], None]

# How many facts of inline tasks are gathered before they are handed to the log's writer.
GATHER = 256
_TALLIED = frozenset({ExecutionEnded, ShardsDone, ShardFailed})


class Stream:
    def __init__(self, log: EventLog, clock: Clock, execution_id: str, epoch: int, worker: str) -> None:
        self.tree = State()
        self.counts: Counter[str] = Counter()
        self.seq = 0
        self.observers: list[Observer] = []
        self._log = log
        self._clock = clock.now
        self._latest = 0.0
        """Time of the last event."""
        self.now = self._now
        self._execution_id = execution_id
        self._epoch = epoch
        self._worker = worker
        self._gathered: list[Entry] = []
        self._changes: dict[str, Json] = {}
        """Scope -> what the end of the execution in it asks to be kept, once the run as a whole has completed."""
        self._ticket = 0

    @property
    def is_new(self) -> bool:
        """Nobody has owned the execution before, so there is nothing in its log."""
        return self._epoch == 1

    def fold(self, load: Load) -> None:
        """Rebuild the state from the log."""
        tree, entry = self.tree, None
        for entry in self._log.read(self._execution_id):
            fact = to_fact(entry, load)
            evolve(tree, fact, entry.ts)
            self.counts[entry.type] += 1
            if type(fact.body) in _TALLIED:
                self._tally(fact)
            self._latest = max(self._latest, entry.ts)
        if entry is not None:
            self.seq = entry.seq

    def _now(self) -> float:
        """The current time, but never before the last event: a clock may be set back."""
        now = self._clock()
        return now if now > self._latest else self._latest

    def record(self, fact: Fact, ts: float | None = None) -> None:
        """Record a fact. `ts`: when it happened, if that was elsewhere; a clock there that is fast is disregarded."""
        now = self.now()
        if ts is None or ts > now:
            ts = now
        elif ts < self._latest:
            ts = self._latest
        evolve(self.tree, fact, ts)
        self.append((fact,), ts)

    def append(self, facts: Iterable[Fact], ts: float) -> None:
        """Append facts that were decided and are in the state already. `ts` is what `now` returned."""
        if ts > self._latest:
            self._latest = ts
        for fact in facts:
            self.seq += 1
            entry = to_entry(fact, self.seq, ts, self._worker)
            self.counts[entry.type] += 1
            if type(fact.body) in _TALLIED:
                self._tally(fact)
            self._gathered.append(entry)
            for observer in self.observers:
                observer(entry)

    def _tally(self, fact: Fact) -> None:
        if isinstance(fact.body, ExecutionEnded):
            self._changes[fact.scope] = fact.body.state
        else:
            self.counts[SHARDS] += shards_settled(fact.body)

    @contextmanager
    def attributed_to(self, worker: str) -> Iterator[None]:
        """Whatever is recorded within this context is attributed to that worker."""
        before, self._worker = self._worker, worker
        try:
            yield
        finally:
            self._worker = before

    def gathered_enough(self) -> bool:
        return len(self._gathered) >= GATHER

    def flush(self, status: Status | None = None, *, is_last: bool = False) -> None:
        """`is_last`: the run has ended, and nothing more will be recorded."""
        if self._gathered or status is not None:
            entries, self._gathered = self._gathered, []
            changes = self.changes() if status == "completed" else []
            self._ticket = self._log.append(self._execution_id, self._epoch, entries, status, changes, is_last)

    def changes(self) -> list[Change]:
        """What documents keep of this run, those of its children first. Successive changes of one document are merged into
        one."""
        found: dict[tuple[str, str, str], Change] = {}
        for state in self._changes.values():
            for change in changes_of(state):
                key = (change.document, change.kind, change.key)
                before = found[key].before if key in found else change.before
                found[key] = replace(change, before=before)
        return list(found.values())

    def kept(self, document: str) -> tuple[JsonMap, JsonMap]:
        """What a document keeps: values and watermarks. Includes what an earlier child of this run has set."""
        values: JsonMap = {}
        watermarks: JsonMap = {}
        for one in self._log.kept(document):
            (values if one.kind == "value" else watermarks)[one.key] = one.value
        for change in self.changes():
            if change.document == document:
                (values if change.kind == "value" else watermarks)[change.key] = change.after
        return values, watermarks

    async def durable(self) -> None:
        self.flush()
        await self._log.durable(self._ticket)

    async def confirm(self) -> None:
        """Return once the log has confirmed that this is still the owner: an append of nothing is refused like any other."""
        entries, self._gathered = self._gathered, []
        self._ticket = self._log.append(self._execution_id, self._epoch, entries)
        await self._log.durable(self._ticket)

    @property
    def backlog(self) -> int:
        return self._log.backlog
