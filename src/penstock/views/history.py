"""Pages of a run's events, and of what its tools said, filtered.

Law: an answer looks at no more than `MOST_SCANNED` of them. A page that found little says how far it looked, and the next request
goes on there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry, Header
from penstock.ports.results import decode
from penstock.ports.wire import envelope, name_of
from penstock.views.names import node_of

MOST_SCANNED = 20_000
LOOKED_BACK, MOST_LOOKED_BACK = 2_000, 200_000
"""Where a cause is looked for: so many events at a time, and in all."""
LINES_AT_ONCE = 1_000
_NAMED = re.compile(r"(?P<node>[^/@\[\]]+?)(?P<path>@[\d.]+)?(?P<index>\[#?\d+\])?")


class Readable(Protocol):
    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]: ...


def node_at(scope: str) -> str | None:
    """The step or component that a scope lies in, as its own document calls it; None for an execution."""
    last = scope[scope.rfind("/") + 1 :]
    if not last or last.endswith(">"):
        return None
    if "@" in last:
        return last.partition("@")[0]
    last = last.partition("#")[0] if "#" in last and "[#" not in last else last
    return node_of(last[: last.rindex("[#")]) if last.endswith("]") and "[#" in last else node_of(last)


@dataclass(frozen=True, slots=True)
class Place:
    """A node by its name (`fetch`, `load`), one of its runs (`fetch@2`), an iteration (`fetch[5]`), or any scope."""

    text: str
    node: str | None = None
    index: str | None = None

    @staticmethod
    def read(text: str | None) -> Place | None:
        if not text:
            return None
        match = _NAMED.fullmatch(text)
        if match is None or match["path"] is not None:
            return Place(text)
        return Place(text, match["node"], match["index"])

    def holds(self, scope: str) -> bool:
        if scope.startswith(self.text) and (self.text.endswith("/") or scope[len(self.text) :][:1] in ("", *"/[.@")):
            return True
        if self.node is None or node_at(scope) != self.node:
            return False
        return self.index is None or f"{self.index}/" in f"{scope}/" or f"{self.index}." in scope


@dataclass(frozen=True, slots=True)
class Filter:
    types: frozenset[str] = frozenset()
    place: Place | None = None
    text: str | None = None

    def takes(self, entry: Entry, needle: bytes | None) -> bool:
        if self.types and entry.type not in self.types:
            return False
        if self.place is not None and not self.place.holds(entry.scope):
            return False
        if needle is None:
            return True
        around = f"{entry.type} {entry.scope} {entry.task or ''} {entry.worker or ''}".encode()
        return needle in entry.payload.lower() or needle in around.lower()


def event_page_of(log: Readable, header: Header, after: int, limit: int, wanted: Filter) -> JsonMap:
    needle = wanted.text.lower().encode() if wanted.text else None
    found: list[Any] = []
    scanned, last = 0, after
    for entry in log.read(header.execution_id, after):
        scanned, last = scanned + 1, entry.seq
        if wanted.takes(entry, needle):
            found.append(envelope(entry, header))
        if len(found) >= limit or scanned >= MOST_SCANNED:
            break
    end = max(header.last_seq, last)
    return {"events": found, "last_seq": end, "next": last if last < end else None, "scanned": scanned}


def cause_page_of(log: Readable, header: Header, seq: int) -> JsonMap:
    """The event that caused another one: it lies before it, mostly not far."""
    run = header.execution_id
    effect = next(iter(log.read(run, seq - 1)), None)
    found: list[Any] = []
    scanned, upto = 0, seq
    while effect is not None and effect.cause is not None and upto > 1 and not found and scanned < MOST_LOOKED_BACK:
        after = max(0, upto - 1 - LOOKED_BACK)
        scope = effect.cause.rpartition(":")[0]
        for entry in islice(log.read(run, after), upto - 1 - after):
            scanned += 1
            if entry.scope == scope and name_of(entry, decode(entry.clock.encode())) == effect.cause:
                found.append(envelope(entry, header))
        upto = after + 1
    return {"events": found[-1:], "last_seq": header.last_seq, "next": None, "scanned": scanned}


def line_page_of(
    read: Callable[[int, int], list[JsonMap]], after: int, limit: int, place: Place | None, until: float | None
) -> JsonMap:
    """`read(after, limit)` gives lines behind a number."""
    found: list[Any] = []
    number, is_over = after, False
    while len(found) < limit and number - after < MOST_SCANNED and not is_over:
        lines = read(number, LINES_AT_ONCE)
        is_over = len(lines) < LINES_AT_ONCE
        for line in lines:
            said: Any = line
            if until is not None and said["ts"] > until:
                return {"lines": found, "next": None}
            number += 1
            scope = str(said["scope"] or "")
            if place is None or place.holds(scope):
                found.append({"number": number, **said, "scope": scope, "node": node_at(scope)})
                if len(found) >= limit:
                    is_over = is_over and said is lines[-1]
                    break
    return {"lines": found, "next": None if is_over else number}
