"""The event log in memory, for tests and simulation: the same law, durable for as long as its `MemoryStore` lives.

Several `MemoryLog`s on one store stand for several processes: each has its own claims, and closing one gives them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, islice, zip_longest

from penstock.adapters.log_queue import Standing, refusal, unknown
from penstock.kernel.errors import Bug, Refused
from penstock.ports.checksums import checksum, seed, verified
from penstock.ports.kept_state import Change, Kept, Kind, settled
from penstock.ports.log import ENDED, Entry, Header, NotOwner, Request, Status, lowered, partition_of


@dataclass(slots=True)
class Execution:
    header: Header
    document: bytes
    standing: Standing
    entries: list[Entry] = field(default_factory=list)
    checksums: list[int | None] = field(default_factory=list)
    """One for each entry; fewer, if entries were put there by hand."""
    holder: MemoryLog | None = None
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)


class MemoryStore:
    """What outlives a log that is closed."""

    def __init__(self) -> None:
        self.executions: dict[str, Execution] = {}
        self.submissions: dict[str, str] = {}
        self.requests: dict[int, Request] = {}
        self.requests_made = 0
        self.kept: dict[tuple[str, Kind, str], Kept] = {}

    def change(self, change: Change, run: str, at: float) -> None:
        key = (change.document, change.kind, change.key)
        found = settled(self.kept.get(key), change, run, at)
        if found.value is None:
            self.kept.pop(key, None)
        else:
            self.kept[key] = found


class MemoryLog:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = store or MemoryStore()
        self._given = 0
        self._refused: dict[int, Refused] = {}
        self._broken: dict[tuple[str, int], Refused] = {}
        self._closed = False

    async def create(self, header: Header, document: bytes, key: str | None = None, owner: str | None = None) -> str:
        self._check_open()
        if key is not None and (made := self._store.submissions.get(key)):
            return made
        if header.execution_id in self._store.executions:
            raise Refused(f"there is already an execution `{header.execution_id}`", "choose another id")
        new = Execution(replace(header, last_seq=0), document, Standing(epoch=0, owner=None, last_seq=0))
        self._store.executions[header.execution_id] = new
        if key is not None:
            self._store.submissions[key] = header.execution_id
        return header.execution_id

    async def claim(self, execution_id: str, owner: str) -> int:
        self._check_open()
        execution = self._find(execution_id)
        self._check_free(execution)
        execution.holder = self
        execution.standing.epoch += 1
        execution.standing.owner = owner
        self._broken.pop((execution_id, execution.standing.epoch), None)
        return execution.standing.epoch

    async def release(self, execution_id: str) -> None:
        execution = self._store.executions.get(execution_id)
        if execution and execution.holder is self:
            execution.holder = None
            execution.standing.owner = None

    async def forget(self, execution_id: str) -> None:
        self._check_open()
        self._check_free(self._find(execution_id))
        self._delete(execution_id)

    async def prune(self, before: float, limit: int = 1000) -> list[str]:
        self._check_open()
        ended = [
            (execution.header.ended_at, name)
            for name, execution in self._store.executions.items()
            if execution.header.status in ENDED and execution.header.ended_at is not None and not execution.holder
        ]
        early = sorted((one for one in ended if one[0] < before), key=lambda one: one[0])
        pruned = [name for _, name in early[: max(limit, 0)]]
        for name in pruned:
            self._delete(name)
        return pruned

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None = None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        self._check_open()
        self._given += 1
        execution = self._store.executions.get(execution_id)
        standing = execution.standing if execution else None
        reason = self._broken.get((execution_id, epoch)) or refusal(execution_id, standing, epoch, entries)
        if reason is not None:
            self._refused[self._given] = self._broken[execution_id, epoch] = reason
        elif execution:
            start = seed(execution_id)
            unchecked = len(execution.entries) - len(execution.checksums)
            execution.checksums += [None] * unchecked
            execution.checksums += [checksum(start, entry) for entry in entries]
            execution.entries.extend(entries)
            execution.standing.last_seq += len(entries)
            if status is not None:
                execution.header = _with_status(execution, status)
            for change in changes:
                self._store.change(change, execution_id, execution.entries[-1].ts if execution.entries else 0.0)
        return self._given

    async def durable(self, ticket: int) -> None:
        if ticket > self._given:
            raise Bug(f"ticket {ticket} was never given: the last one is {self._given}")
        await asyncio.sleep(0)
        if refused := self._refused.get(ticket):
            raise type(refused)(refused.message, refused.hint)

    @property
    def backlog(self) -> int:
        return 0

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        execution = self._find(execution_id)
        rows = ((*entry, kept) for entry, kept in zip_longest(execution.entries, execution.checksums))
        page = islice(rows, max(after, 0), execution.standing.last_seq)
        return verified(execution_id, page, "memory")

    def header(self, execution_id: str) -> Header | None:
        execution = self._store.executions.get(execution_id)
        return replace(execution.header, last_seq=execution.standing.last_seq) if execution else None

    def headers(
        self,
        limit: int = 100,
        *,
        after: str | None = None,
        status: Status | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> list[Header]:
        newest = self._newest()
        if after is not None:
            older = dropwhile(lambda header: header.execution_id != after, newest)
            newest = islice(older, 1, None)
        wanted = (
            one
            for one in newest
            if status in (None, one.status)
            and name in (None, one.name, one.label)
            and (since is None or one.started_at >= since)
            and (until is None or one.started_at <= until)
            and kind in (None, one.kind)
            and label in (None, one.label)
            and (not text or any(lowered(text) in lowered(each or "") for each in _texts(one)))
        )
        return list(islice(wanted, max(limit, 0)))

    def named(self, name: str, limit: int = 10) -> list[Header]:
        meant = (one for one in self._newest() if one.label == name or one.execution_id.startswith(name))
        return list(islice(meant, max(limit, 0)))

    def _newest(self) -> Iterator[Header]:
        for one in list(self._store.executions.values())[::-1]:
            yield replace(one.header, last_seq=one.standing.last_seq)

    def submitted(self, key: str) -> str | None:
        return self._store.submissions.get(key)

    def unfinished(self, partitions: Collection[int] | None = None) -> list[str]:
        return [
            name
            for name, execution in list(self._store.executions.items())
            if execution.header.status == "running" and (partitions is None or partition_of(name) in partitions)
        ]

    def document(self, execution_id: str) -> bytes:
        return self._find(execution_id).document

    def kept(self, document: str | None = None) -> list[Kept]:
        return [one for _, one in sorted(self._store.kept.items()) if document in (None, one.document)]

    def keep(self, kept: Kept) -> None:
        self._store.kept[kept.document, kept.kind, kept.key] = kept

    def drop_kept(self, document: str, kind: Kind | None = None, key: str | None = None) -> int:
        gone = [
            one for one in self._store.kept if one[0] == document and kind in (None, one[1]) and key in (None, one[2])
        ]
        for one in gone:
            del self._store.kept[one]
        return len(gone)

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        execution = self._store.executions.get(execution_id)
        kept = execution.snapshots if execution else {}
        seq = max((seq for made, seq in kept if made == format and seq <= upto), default=None)
        return None if seq is None else (seq, kept[format, seq])

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        execution = self._store.executions.get(execution_id)
        if execution:
            execution.snapshots[format, seq] = data

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None:
        self._find(execution_id)
        self._store.requests_made += 1
        number = self._store.requests_made
        self._store.requests[number] = Request(number, execution_id, what, payload)

    def asked(self, execution_id: str | None = None) -> list[Request]:
        requests = list(self._store.requests.values())
        return [request for request in requests if execution_id in (None, request.execution_id)]

    def answered(self, number: int) -> None:
        self._store.requests.pop(number, None)

    def has_owner(self, execution_id: str) -> bool:
        execution = self._store.executions.get(execution_id)
        return execution is not None and execution.holder is not None

    async def close(self) -> None:
        self._closed = True
        for execution in self._store.executions.values():
            if execution.holder is self:
                execution.holder = None
                execution.standing.owner = None

    def _delete(self, execution_id: str) -> None:
        del self._store.executions[execution_id]
        for request in self.asked(execution_id):
            self.answered(request.number)
        for key in [key for key, made in self._store.submissions.items() if made == execution_id]:
            del self._store.submissions[key]

    def _find(self, execution_id: str) -> Execution:
        execution = self._store.executions.get(execution_id)
        if execution is None:
            raise unknown(execution_id)
        return execution

    def _check_free(self, execution: Execution) -> None:
        if execution.holder:
            raise NotOwner(
                f"`{execution.header.execution_id}` is already being worked on by `{execution.standing.owner}`",
                "wait for it to end; a run can be resumed once nobody works on it",
            )

    def _check_open(self) -> None:
        if self._closed:
            raise Refused("the log is closed", "open it again first")


def _with_status(execution: Execution, status: Status) -> Header:
    last_time = execution.entries[-1].ts if execution.entries else execution.header.started_at
    return replace(execution.header, status=status, ended_at=None if status == "running" else last_time)


def _texts(header: Header) -> tuple[str | None, ...]:
    return header.name, header.label, header.execution_id, header.path
