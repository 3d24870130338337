"""A whole store is read once, to see what of it is damaged: every event against its checksum, every result against its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json
from penstock.ports.blobs import KeptBlobs, ResultRef, is_ref
from penstock.ports.log import EventLog, Header
from penstock.ports.results import decode
from penstock.ports.wire import REF_BYTES

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Damage:
    execution_id: str
    text: str
    hint: str | None = None


@dataclass(slots=True)
class Scan:
    """What has been read so far."""

    runs: int = 0
    events: int = 0
    results: int = 0

    def damages(self, log: EventLog, blobs: KeptBlobs) -> Iterator[Damage]:
        """All damage of a store. Of one run the events behind a damaged one are not looked at: nobody can fold them."""
        seen: set[str] = set()
        for header in _headers(log):
            self.runs += 1
            refs: list[ResultRef] = []
            try:
                for entry in log.read(header.execution_id):
                    self.events += 1
                    if REF_BYTES in entry.payload:
                        refs += _refs(decode(entry.payload))
            except PenstockError as error:
                yield Damage(header.execution_id, error.message, error.hint)
            for ref in refs:
                if ref.key not in seen:
                    seen.add(ref.key)
                    yield from self._result(header.execution_id, blobs, ref)

    def _result(self, execution_id: str, blobs: KeptBlobs, ref: ResultRef) -> Iterator[Damage]:
        self.results += 1
        try:
            for _ in blobs.read(ref):
                pass
        except PenstockError as error:
            yield Damage(execution_id, f"a result of run `{execution_id}`: {error.message}", error.hint)


def _headers(log: EventLog) -> Iterator[Header]:
    after = None
    while page := log.headers(PAGE, after=after):
        yield from page
        after = page[-1].execution_id


def _refs(value: Json) -> Iterator[ResultRef]:
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        if is_ref(one):
            yield ResultRef.from_json(one)
        elif isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
