"""A dispatch in its shortest form: what each call must give, worked out the slow way and by nobody's clock but its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from penstock.ports.dispatch import MessageKind, Offer

Grant = tuple[str, str, int]
"""Worker, key, attempt."""
Word = tuple[str, int, str, MessageKind, bytes]
"""Key, attempt, worker, kind, body."""


@dataclass(frozen=True)
class Row:
    offer: Offer
    number: int
    attempt: int
    state: str
    since: float
    worker: str = ""
    renewed: float = 0.0
    moved: float = 0.0
    progress: int = 0
    cursor: bytes = b""

    def is_over(self, now: float) -> bool:
        stall_s = self.offer.stall_s
        return now >= self.renewed + self.offer.lease_s or (stall_s is not None and now >= self.moved + stall_s)

    def is_stale(self, now: float) -> bool:
        return self.offer.ttl_s is not None and now >= self.since + self.offer.ttl_s


@dataclass
class Model:
    now: float = 0.0
    count: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)
    told: list[tuple[Grant, int, bytes]] = field(default_factory=list)

    def offer(self, offers: Iterable[Offer]) -> None:
        for offer in offers:
            row = self.rows.get(offer.key)
            if row is None or row.state == "back":
                self.count += 1
                attempt = row.attempt + 1 if row else 1
                self.rows[offer.key] = Row(offer, self.count, attempt, "waiting", self.now)

    def take(self, worker: str, room: int, ranges: int) -> list[tuple[str, int, bytes]]:
        granted = []
        while room > 0 and (row := self._next(ranges)) is not None:
            room, ranges = room - 1, ranges - row.offer.is_range
            self.rows[row.offer.key] = replace(
                row, state="held", worker=worker, renewed=self.now, moved=self.now, progress=0, cursor=b""
            )
            granted.append((row.offer.key, row.attempt, row.offer.payload))
        return granted

    def _next(self, ranges: int) -> Row | None:
        free = [
            row
            for row in self._in("waiting")
            if (ranges > 0 or not row.offer.is_range)
            and all(self._named(name) < most for name, most in row.offer.limits)
        ]
        # Of each execution its first; of these the one whose execution holds the fewest.
        firsts = [min((r for r in free if r.offer.execution_id == run), key=_order) for run in _runs(free)]
        return min(firsts, key=lambda row: (self._held(row.offer.execution_id), *_order(row)), default=None)

    def beat(self, worker: str, pulses: Iterable[tuple[Grant, int, bytes | None]]) -> set[str]:
        lost = set()
        for grant, progress, cursor in pulses:
            row = self._of(grant)
            if row is None:
                lost.add(grant[1])
                continue
            moved = self.now if progress != row.progress else row.moved
            self.rows[grant[1]] = replace(
                row, renewed=self.now, moved=moved, progress=progress, cursor=row.cursor if cursor is None else cursor
            )
        return lost

    def say(self, grant: Grant, kind: MessageKind, bodies: list[bytes]) -> bool:
        row = self._of(grant)
        if row is None:
            return False
        self.words += [(row.offer.key, row.attempt, row.worker, kind, body) for body in bodies]
        if kind is MessageKind.DONE:
            self.rows[row.offer.key] = replace(row, state="done")
        elif kind is MessageKind.RETURNED:
            self.rows[row.offer.key] = replace(row, state="back")
        return True

    def receive(self, words: list[Word]) -> None:
        for word in words:
            self.words.remove(word)
            row = self.rows.get(word[0])
            if word[3] is MessageKind.DONE and row and row.state == "done" and row.attempt == word[1]:
                del self.rows[word[0]]

    def reap(self) -> int:
        lost = [row for row in self._in("held") if row.is_over(self.now)]
        stale = [row for row in self._in("waiting") if row.is_stale(self.now)]
        self._come_back(lost, MessageKind.LOST)
        self._come_back(stale, MessageKind.STALE)
        return len(lost) + len(stale)

    def retire(self, worker: str) -> None:
        self._come_back([row for row in self._in("held") if row.worker == worker], MessageKind.LOST)

    def withdraw(self, keys: Iterable[str]) -> set[str]:
        taken = {row.offer.key for row in self._in("waiting")} & set(keys)
        for key in taken:
            self.rows[key] = replace(self.rows[key], state="back")
        return taken

    def missing(self, keys: Iterable[str]) -> set[str]:
        there = {row.offer.key for row in [*self._in("waiting"), *self._in("held")]} | {word[0] for word in self.words}
        return set(keys) - there

    def forget(self, execution_id: str) -> None:
        gone = {key for key, row in self.rows.items() if row.offer.execution_id == execution_id}
        self.rows = {key: row for key, row in self.rows.items() if key not in gone}
        self.words = [word for word in self.words if not word[0].startswith(execution_id)]

    def send(self, key: str, body: bytes) -> bool:
        row = self.rows.get(key)
        if row is None or row.state != "held":
            return False
        self.told.append(((row.worker, key, row.attempt), row.number, body))
        return True

    def told_to(self, worker: str) -> list[tuple[str, int, bytes]]:
        return [
            (grant[1], grant[2], body)
            for grant, number, body in self.told
            if grant[0] == worker and (row := self._of(grant)) is not None and row.number == number
        ]

    def seen(self, worker: str) -> None:
        self.told = [one for one in self.told if one[0][0] != worker]

    def leases(self) -> list[tuple[str, int, str | None]]:
        rows = sorted([*self._in("waiting"), *self._in("held")], key=lambda row: row.number)
        return [(row.offer.key, row.attempt, row.worker if row.state == "held" else None) for row in rows]

    def _come_back(self, rows: list[Row], kind: MessageKind) -> None:
        for row in rows:
            worker, cursor = (row.worker, row.cursor) if kind is MessageKind.LOST else ("", b"")
            self.words.append((row.offer.key, row.attempt, worker, kind, cursor))
            self.rows[row.offer.key] = replace(row, state="back")

    def _in(self, state: str) -> list[Row]:
        return [row for row in self.rows.values() if row.state == state]

    def _of(self, grant: Grant) -> Row | None:
        worker, key, attempt = grant
        row = self.rows.get(key)
        return row if row and (row.state, row.worker, row.attempt) == ("held", worker, attempt) else None

    def _held(self, execution_id: str) -> int:
        return sum(row.offer.execution_id == execution_id for row in self._in("held"))

    def _named(self, name: str) -> int:
        return sum(name in dict(row.offer.limits) for row in self._in("held"))


def _order(row: Row) -> tuple[bool, int]:
    return row.offer.is_range, row.number


def _runs(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row.offer.execution_id for row in rows))
