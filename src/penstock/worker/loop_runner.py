"""Runs a loop on one lease: its iterations as pipelines, a limited number at a time. The kernel decides which open and may
close.

Of a loop over claimed rows, a lane that finds no iteration to run claims some. What it claims is on disk before any of it is
worked on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from penstock.expr.template import ExpressionError, render
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.facts import Fact, IterationStarted, RunEnded
from penstock.kernel.fans import Claim, Elements, PartOver
from penstock.kernel.loop import failure_of
from penstock.kernel.net import FailureMode, Fan, LoopMode
from penstock.kernel.places import ROOT
from penstock.kernel.reducers import final_values, with_reduced
from penstock.kernel.state import Loop, Pipeline
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import FRAME_ROWS, Described, described, elements, pinned, rows_of_claim
from penstock.ports.leases import Reports
from penstock.ports.loop_results import LoopResults
from penstock.tools.base import ToolFailure
from penstock.worker.claims import ClaimedValues, Source
from penstock.worker.pages import PAGE, CollectionPages, all_pages
from penstock.worker.pipeline_runner import PipelineRunner
from penstock.worker.scopes import TaskScope, element


class LoopRunner:
    def __init__(self, pipelines: PipelineRunner, fan: Fan, reports: Reports) -> None:
        self.pipelines = pipelines
        self.lease = pipelines.lease
        self.run = self.lease.run
        self.reports = reports
        self.fan = fan
        self._ready: deque[int] = deque()
        """Iterations that have been opened, but not yet taken by a lane."""
        self._idle = 0
        self._changed = asyncio.Event()
        self._items: Sequence[Any] = ()
        self._keys: Sequence[str] | None = None
        self._claims: JsonMap | None = None
        """The description of the claim, if the elements are claimed."""
        self._source: Source | None = None
        self._kept = 0
        """Of claimed elements: those below it are known to be on disk."""
        self.refused: Json = None
        """The error of a claim that failed: no more are made, and the loop fails with it when what it has is done."""

    @property
    def loop(self) -> Loop:
        loop = self.run.fan
        assert isinstance(loop, Loop)
        return loop

    async def perform(self) -> RunEnded:
        """Run until the loop ends or is stopped."""
        try:
            collected = await self._collect()
        except (ExpressionError, TypeError, ToolFailure, PenstockError) as error:
            return RunEnded(self.run.step, "failed", error=bad_collection(self.run.step, error), looped=True)
        before = sorted(self.loop.open) if self.run.fan is not None else []
        self._opened(self.reports.decide(self.elements(collected)))
        if not self.run.is_fanning:
            raise asyncio.CancelledError  # The run was stopped before it began.
        self._ready.extendleft(reversed(before))  # Iterations that were under way when the run stopped come first.
        lanes = self.fan.max_in_flight if self.fan.mode is LoopMode.PARALLEL else 1
        if self._claims is None:
            lanes = min(lanes, max(1, len(self._items)))
        else:
            self._source, self._kept = Source(self.loop), self.loop.total
        await self._lanes(lanes)
        if not self._is_whole():
            raise asyncio.CancelledError  # Stopped between two tasks.
        return self.ended()

    def over(self, collected: Json) -> Elements | RunEnded | None:
        """For a replay. None if the elements were to be read page by page and never were; they are not read again."""
        try:
            found = self.described()
            if not isinstance(found, Described):
                self._items = found
            elif found.claims:
                self._take_claims(found)
            elif not found.is_paged:
                self._items = elements(found.collection, self.pipelines.services.load)
            elif collected is None:
                return None
            else:
                self.take(collected)
        except (ExpressionError, TypeError, PenstockError) as error:
            return RunEnded(self.run.step, "failed", error=bad_collection(self.run.step, error), looped=True)
        return self.elements(collected)

    def elements(self, collected: Json) -> Elements:
        total = None if self._claims is not None else len(self._items)
        return Elements(self.run, total, self._items, collection=collected)

    def _is_whole(self) -> bool:
        loop, source = self.loop, self._source
        if loop.open or is_stopped(loop, self.fan):
            return not loop.open
        is_end = source is None or source.is_dry or self.refused is not None
        return is_end and loop.ok + loop.failed == loop.total

    async def _collect(self) -> Json:
        """Return what was read of a paged collection. It is not read again: it may have changed, and indexes stand for
        elements."""
        found = self.described()
        if not isinstance(found, Described):
            self._items = found
            return None
        if found.claims:
            self._take_claims(found)
            return None
        if not found.is_paged:
            self._items = elements(found.collection, self.pipelines.services.load)
            return None
        collected = self.loop.collection if self.run.fan is not None else await self._read(found)
        self.take(collected)
        return collected

    def described(self) -> Any:
        """`loop.in` sees ctx, workload, args and earlier results."""
        scope = TaskScope(self.pipelines.names, Pipeline(ROOT, self.run.ctx), None)
        scope.tool_side = False
        if (rows := rows_of_claim(self.fan.collection)) is not None:
            scope.names = scope.names.with_name(FRAME_ROWS, render(rows, scope))
        return described(render(self.fan.collection, scope), self.fan.collection)

    def _take_claims(self, found: Described) -> None:
        load = self.pipelines.services.load
        self._claims = found.collection
        self._items, self._keys = ClaimedValues(self.run, "items", load), ClaimedValues(self.run, "keys", load)

    def take(self, collected: Json) -> None:
        assert isinstance(collected, dict)
        load = self.pipelines.services.load
        self._items = elements({"kind": "list", "items": collected["items"]}, load)
        if collected["keys"] is not None:
            self._keys = elements({"kind": "list", "items": collected["keys"]}, load)

    async def _read(self, found: Described) -> JsonMap:
        services = self.pipelines.services
        page = await all_pages(CollectionPages(services, found.collection, self.lease.context))
        items = pinned(page.items, services.blobs, services.load).collection["items"]
        keys = None if page.keys is None else pinned(page.keys, services.blobs, services.load).collection["items"]
        return {"items": items, "keys": keys}

    # ---- claims

    def _may_claim(self) -> bool:
        """Not while there are elements that have not been opened yet: they wait for others to close, or none opens any more."""
        loop, source = self.loop, self._source
        if source is None or source.is_dry or self.refused is not None or is_stopped(loop, self.fan):
            return False
        return loop.first_unopened() >= loop.total

    async def _claim(self, claimer: CollectionPages) -> None:
        source, services = self._source, self.pipelines.services
        assert source is not None
        since = source.ended
        try:
            page = await claimer.page(None, PAGE)
        except (ToolFailure, PenstockError) as error:
            self.refused = self.refused or bad_collection(self.run.step, error)
            return
        if not page.items:
            source.found_nothing(since)
            return
        items, keys = (
            pinned(values, services.blobs, services.load).collection["items"]
            for values in (page.items, page.keys or ())
        )
        self._opened(self.reports.decide(Claim(self.run, len(page.items), items, keys)))
        source.found()
        self._changed.set()  # There may be more for others to claim.

    async def _keep(self, index: int) -> None:
        """Return when the claim of an element is on disk."""
        if self._source is not None and index >= self._kept:
            known = self.loop.total
            await self.reports.durable()
            self._kept = max(self._kept, known)

    # ---- lanes

    async def _lanes(self, count: int) -> None:
        if count == 1:
            await self._lane(1)
            return
        self.pipelines.share_turns(count)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(self._lane(count))
        except BaseExceptionGroup as errors:  # An error of the engine must reach its owner as such.
            raise errors.exceptions[0] from None

    async def _lane(self, count: int) -> None:
        open_ones = self.loop.open
        claimer = None
        if self._claims is not None:
            claimer = CollectionPages(self.pipelines.services, self._claims, self.lease.context, once=True)
        try:
            while (index := await self._take(count, claimer)) is not None:
                await self._keep(index)
                pipeline = open_ones.get(index)
                # It had run before the run was stopped, and has closed together with an earlier one.
                if pipeline is None:
                    continue
                await self.pipelines.run(pipeline, self.element(index))
                self._opened(self.reports.decide(PartOver(self.run, index)))
        finally:
            self._idle = count  # Nobody waits for what this lane would have opened.
            self._changed.set()

    def _opened(self, facts: list[Fact]) -> None:
        for fact in facts:
            if type(fact.body) is IterationStarted:
                self._ready.append(fact.body.index)
        if self._idle and self._ready:
            self._changed.set()

    async def _take(self, count: int, claimer: CollectionPages | None) -> int | None:
        """None if nothing is left to run, or the run is to stop."""
        while self.lease.stop_reason is None:
            if self._ready:
                return self._ready.popleft()
            if claimer is not None and self._may_claim():
                await self._claim(claimer)
                continue
            if self._idle + 1 >= count:  # All other lanes wait: none of them will open anything any more.
                return None
            self._idle += 1
            self._changed.clear()
            await self._changed.wait()
            if self._idle >= count:
                return None
            self._idle -= 1
        return None

    def element(self, index: int) -> dict[str, Any]:
        key = None if self._keys is None else self._keys[index]
        return element(self.fan.iterator, self.run.loop_name, index, self._items[index], key)

    # ---- the end

    def ended(self) -> RunEnded:
        run, loop, services = self.run, self.loop, self.pipelines.services
        kept = loop.results if isinstance(loop.results, LoopResults) else LoopResults()
        results = kept.value(services.blobs, services.load, self.lease.context.net.limits.max_payload_bytes)
        total: JsonMap = {"total": loop.total, "done": loop.ok, "failed": loop.failed, "results": results}
        writes, shared = loop.staged.as_writes(), dict[str, Json]()
        if loop.reducers:
            shared = final_values(loop.reducers, loop.shared)
            writes = with_reduced(writes, shared)
        if is_stopped(loop, self.fan):
            failure = failure_of(run.step, loop.first_failed, loop.first_error, loop.failed)
            return RunEnded(run.step, "failed", total, failure, writes, looped=True, shared=shared)
        if self.refused is not None:
            return RunEnded(run.step, "failed", total, self.refused, writes, looped=True, shared=shared)
        return RunEnded(run.step, "done", total, None, writes, looped=True, shared=shared)


def is_stopped(loop: Loop, fan: Fan) -> bool:
    """Whether an iteration failed and that fails the loop."""
    return loop.failed > 0 and fan.failure is FailureMode.FAIL_FAST


def bad_collection(step: str, error: Exception) -> JsonMap:
    kind, is_retryable = "collection", isinstance(error, Unavailable)
    if isinstance(error, ToolFailure):
        kind, is_retryable = error.kind, error.retryable
    return {"kind": kind, "message": f"`loop.in` of step `{step}`: {error}", "retryable": is_retryable}
