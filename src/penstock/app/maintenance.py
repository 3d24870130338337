"""Maintenance of a store: pruning old runs, and checking every event and result against its checksum.

Law of pruning: only runs that have ended are deleted, with the output of their tools, and a result stays for as long as
anything that stays refers to it. What was stored within the last day stays in any case: the entry that refers to it may not be
written yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.adapters.blob_stores import sweep, would_sweep
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.values import Json
from penstock.ports.blobs import KeptBlobs, ResultRef, is_ref
from penstock.ports.control import ControlStore
from penstock.ports.log import ENDED, EventLog, Header
from penstock.ports.projects import KIND as PROJECT
from penstock.ports.results import decode
from penstock.ports.wire import REF_BYTES

GRACE_S = 24 * 3600.0
PAGE = 1000


# ---- pruning


class Pruned(NamedTuple):
    runs: int
    results: int
    size: int | None = None
    """Of these results, in bytes; counted by dry runs only."""


async def prune(
    log: EventLog,
    blobs: KeptBlobs,
    drop_lines: Callable[[Iterable[str]], None],
    before: float,
    *,
    keep_failed: bool = False,
    dry_run: bool = False,
    grace_s: float = GRACE_S,
    catalog: ControlStore | None = None,
) -> Pruned:
    """Deletes runs that ended before that time. A dry run counts what would be deleted and changes nothing. `catalog` has the
    projects, whose files are kept like results."""
    if dry_run:
        return await asyncio.to_thread(lambda: _counted(log, blobs, before, keep_failed, grace_s, catalog))
    gone = 0
    async for page in _forgotten(log, before, keep_failed):
        await asyncio.to_thread(drop_lines, page)
        gone += len(page)
    swept = await asyncio.to_thread(lambda: sweep(blobs, _mentioning(log, catalog), grace_s))
    return Pruned(gone, swept.deleted)


def _counted(
    log: EventLog, blobs: KeptBlobs, before: float, keep_failed: bool, grace_s: float, catalog: ControlStore | None
) -> Pruned:
    going = {header.execution_id for header in _ended(log, before, keep_failed)}
    results, size = would_sweep(blobs, _mentioning(log, catalog, going), time.time() - grace_s)
    return Pruned(len(going), results, size)


async def _forgotten(log: EventLog, before: float, keep_failed: bool) -> AsyncIterator[list[str]]:
    if not keep_failed:
        while page := await log.prune(before, PAGE):
            yield page
        return
    old = await asyncio.to_thread(lambda: [one.execution_id for one in _ended(log, before, keep_failed)])
    for start in range(0, len(old), PAGE):
        page = []
        for execution_id in old[start : start + PAGE]:
            try:
                await log.forget(execution_id)
            except Refused:  # Resumed in the meantime, or gone.
                continue
            page.append(execution_id)
        yield page


def _ended(log: EventLog, before: float, keep_failed: bool) -> Iterator[Header]:
    for header in _all(log):
        is_old = header.status in ENDED and header.ended_at is not None and header.ended_at < before
        if is_old and not (keep_failed and header.status == "failed"):
            yield header


def _all(log: EventLog) -> Iterator[Header]:
    """Reads page by page, in constant memory. If the last run of a page is deleted meanwhile, reading goes on from the one
    before."""
    after: list[str] = []
    while True:
        page = log.headers(PAGE, after=after[-1] if after else None)
        if page:
            yield from page
            after = [header.execution_id for header in page]
        elif after and log.header(after[-1]) is None:
            after.pop()
        else:
            return


def _mentioning(log: EventLog, catalog: ControlStore | None, going: Collection[str] = ()) -> Iterator[bytes]:
    """Everything that stays and may refer to a result."""
    if catalog is not None:
        yield from _projects(catalog)
    for header in _all(log):
        run = header.execution_id
        if run in going:
            continue
        try:
            yield log.document(run)
            for entry in log.read(run):
                yield entry.payload
        except PenstockError:
            if log.header(run) is not None:  # Else it was deleted while it was read, and refers to nothing.
                raise
    for request in log.asked():
        if request.execution_id not in going:
            yield request.payload


def _projects(catalog: ControlStore) -> Iterator[bytes]:
    """Every version of every project; each refers to its archive."""
    after = ""
    while page := catalog.documents(limit=PAGE, after=after):
        for newest in page:
            for one in catalog.versions(newest.path) if newest.kind == PROJECT else ():
                if (kept := catalog.document(one.path, one.version)) is not None:
                    yield kept.text.encode()
        after = page[-1].path


# ---- damage


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
        """All damage in a store. The events after a damaged one are not read: they cannot be folded."""
        seen: set[str] = set()
        for header in _all(log):
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
