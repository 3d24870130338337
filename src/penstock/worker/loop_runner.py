"""Runs a loop on one lease: its iterations as child scopes, so many at a time, each with a pipeline of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from penstock.expr.template import ExpressionError, render
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.facts import Fact, IterationEnded, IterationStarted, LoopStarted, RunEnded
from penstock.kernel.loop import closing, failure_of, given_up, is_stopping, may_close, next_index, summary
from penstock.kernel.net import Fan, LoopMode
from penstock.kernel.places import ROOT, event_name, iteration_place
from penstock.kernel.reducers import settled
from penstock.kernel.state import NOT_OPENED, LoopState, PipelineState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Described, described, elements, pinned
from penstock.ports.leases import LeaseLost, Memory
from penstock.ports.loop_results import LoopResults, keep_result
from penstock.tools.base import ToolFailure
from penstock.worker.pages import all_pages
from penstock.worker.pipeline_runner import PipelineRunner
from penstock.worker.scopes import TaskScope, element

# Iterations that have run and wait for an earlier one before they may close; more than this and new ones wait too.
MAX_HELD = 1_000
SHOWN_ITEM = 100


class _Unopened(Exception):
    """In a replay: the collection could not be read."""

    def __init__(self, failure: JsonMap) -> None:
        super().__init__()
        self.failure = failure


class LoopRunner:
    def __init__(self, pipelines: PipelineRunner, fan: Fan) -> None:
        self.pipelines = pipelines
        self.lease = pipelines.lease
        self.reports = pipelines.reports
        self.fan = fan
        self._held: dict[int, PipelineState] = {}
        self._room = asyncio.Event()
        self._resumed: list[int] = []
        self._items: Sequence[Any] = ()
        self._keys: Sequence[str] | None = None
        self._collected: Json = None
        self._lost: LeaseLost | None = None

    @property
    def memory(self) -> Memory | None:
        return self.pipelines.desk.memory

    @property
    def loop(self) -> LoopState:
        loop = self.lease.run.loop
        assert loop is not None
        return loop

    async def run(self) -> RunEnded:
        run, fan = self.lease.run, self.fan
        try:
            await self._collect()
        except (ExpressionError, TypeError, ToolFailure, PenstockError) as error:
            return RunEnded(run.step, "failed", error=_bad_collection(run.step, error), looped=True)
        except _Unopened as recalled:
            return RunEnded(run.step, "failed", error=recalled.failure, looped=True)
        if run.loop is None or run.loop.opened_at == NOT_OPENED:
            if self.memory is not None and not self.memory.looped(run.place.id):
                raise self._as_recalled(self.memory)
            self._open(len(self._items))
        self._resumed = sorted(self.loop.open)
        lanes = fan.max_in_flight if fan.mode is LoopMode.PARALLEL else 1
        await self._lanes(min(lanes, max(1, len(self._items))))
        if not self._is_whole():  # Stopped between two tasks, or the replay of a loop that was.
            raise self._lost or asyncio.CancelledError
        return self._end()

    def _is_whole(self) -> bool:
        loop = self.loop
        return not loop.open and (loop.done + loop.failed == loop.total or is_stopping(loop, self.fan.failure))

    async def _collect(self) -> None:
        scope = TaskScope(self.pipelines.names, _bare(self.lease.run.ctx), None)
        scope.tool_side = False
        found = described(render(self.fan.collection, scope), self.fan.collection)
        if not isinstance(found, Described):
            self._items = found
        elif found.is_paged:
            self._collected = self._collected_before() or await self._read(found)
            assert isinstance(self._collected, dict)
            load = self.pipelines.desk.load
            self._items = elements({"kind": "list", "items": self._collected["items"]}, load)
            if self._collected["keys"] is not None:
                self._keys = elements({"kind": "list", "items": self._collected["keys"]}, load)
        else:
            self._items = elements(found.collection, self.pipelines.desk.load)

    def _collected_before(self) -> Json:
        """What was read page by page is not read again: it may have changed, and indexes stand for elements."""
        run, memory = self.lease.run, self.memory
        if run.loop is not None:
            return run.loop.collection
        if memory is None:
            return None
        failure = memory.unopened_loop(run.place.id)
        if failure is not None:
            raise _Unopened(failure)
        if not memory.looped(run.place.id):
            raise self._as_recalled(memory)
        return memory.collection(run.place.id)

    async def _read(self, found: Described) -> JsonMap:
        desk = self.pipelines.desk
        page = await all_pages(desk.pages(found.collection, self.lease.setting))
        items = pinned(page.items, desk.blobs, desk.load).collection["items"]
        keys = None if page.keys is None else pinned(page.keys, desk.blobs, desk.load).collection["items"]
        return {"items": items, "keys": keys}

    def _open(self, total: int) -> None:
        run, fan = self.lease.run, self.fan
        body = LoopStarted(total, fan.mode.value, fan.max_in_flight, dict(fan.reducers), self._collected)
        clock = (*run.place.clock, run.counter)
        self.reports.record(Fact(run.place.id, clock, body, event_name(run.place.id, run.counter - 1)))

    async def _lanes(self, count: int) -> None:
        if count == 1:
            await self._lane()
            return
        self.pipelines.share_turns(count)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(self._lane())
        except BaseExceptionGroup as errors:  # What went wrong in the engine must reach its owner as what it is.
            raise errors.exceptions[0] from None

    async def _lane(self) -> None:
        open_ones = self.loop.open
        while (index := await self._take()) is not None:
            pipeline = open_ones.get(index) or self._start(index)
            try:
                await self.pipelines.run(pipeline, self._element(index))
            except LeaseLost as lost:
                self._lost = lost
                return
            self._close(index, pipeline)

    async def _take(self) -> int | None:
        while len(self._held) >= MAX_HELD and self.memory is None:
            self._room.clear()
            await self._room.wait()
        if self.lease.stop_reason is not None:
            return None
        if self._resumed:
            return self._resumed.pop(0)
        if self.memory is not None:
            return self._recalled_index(self.memory)
        loop = self.loop
        return None if is_stopping(loop, self.fan.failure) else next_index(loop)

    def _as_recalled(self, memory: Memory) -> BaseException:
        """The recorded loop never began: it was given up before, or the record ends there."""
        failure = memory.given_up(self.lease.run.place.id)
        return LeaseLost(failure) if failure is not None else asyncio.CancelledError()

    def _recalled_index(self, memory: Memory) -> int | None:
        """In a replay an iteration starts if it did in the record: how many ran before a failure stopped the loop was chance."""
        index = next_index(self.loop)
        if index is None or memory.iterated(f"{self.lease.run.place.id}[{index}]"):
            return index
        failure = memory.given_up(self.lease.run.place.id)
        if failure is not None and self._lost is None:
            self._lost = LeaseLost(failure)
        return None

    def _element(self, index: int) -> dict[str, Any]:
        key = None if self._keys is None else self._keys[index]
        return element(self.fan.iterator, self.lease.run.loop_name, index, self._items[index], key)

    def _start(self, index: int) -> PipelineState:
        run, loop = self.lease.run, self.loop
        place = iteration_place(run.place, loop.opened_at, index)
        body = IterationStarted(index, _shown(self._items[index]))
        cause = event_name(run.place.id, loop.opened_at)
        self.reports.record(Fact(place.id, (*place.clock, 0), body, cause))
        return loop.open[index]

    def _close(self, index: int, pipeline: PipelineState) -> None:
        loop = self.loop
        if not may_close(loop, index, pipeline):
            self._held[index] = pipeline
            return
        self._record_end(index, pipeline)
        while self._held and (ready := loop.settled.low) in self._held:
            self._record_end(ready, self._held.pop(ready))
            self._room.set()

    def _record_end(self, index: int, pipeline: PipelineState) -> None:
        self._record(pipeline, closing(self.loop, index, pipeline))

    def _record(self, pipeline: PipelineState, body: IterationEnded) -> None:
        place, counter = pipeline.place, pipeline.counter
        self.reports.record(Fact(place.id, (*place.clock, counter), body, event_name(place.id, counter - 1)))
        keep_result(self.lease.run, body, pipeline)

    def _end(self) -> RunEnded:
        run, loop = self.lease.run, self.loop
        desk = self.pipelines.desk
        kept = loop.results if isinstance(loop.results, LoopResults) else LoopResults()
        results = kept.value(desk.blobs, desk.load, self.lease.setting.net.limits.max_payload_bytes)
        total = summary(loop, results)
        writes, shared = loop.as_writes(), settled(loop.reducers, loop.shared)
        if is_stopping(loop, self.fan.failure):
            failure = failure_of(run.step, loop.first_failed, loop.first_error, loop.failed)
            return RunEnded(run.step, "failed", total, failure, writes, looped=True, shared=shared)
        return RunEnded(run.step, "done", total, None, writes, looped=True, shared=shared)

    def abandon(self, failure: JsonMap) -> None:
        """The lease is being given up: iterations under way end as failed, so that every start in the log has its end."""
        if self.lease.run.loop is None:
            return
        for index, pipeline in sorted(self.loop.open.items()):
            self.pipelines.abandon(pipeline, failure)
            self._record(pipeline, given_up(self.loop, index, pipeline, failure))


def _bare(ctx: JsonMap) -> PipelineState:
    """A pipeline that has not begun: what `loop.in` may look at is ctx, workload, args and earlier results."""
    return PipelineState(place=ROOT, ctx=ctx)


def _shown(item: Any) -> Json:
    """A scalar element is worth seeing in the log; anything larger can be found in the collection."""
    if isinstance(item, str):
        return item if len(item) <= SHOWN_ITEM else None
    return item if isinstance(item, (int, float, bool)) else None


def _bad_collection(step: str, error: Exception) -> JsonMap:
    kind, is_retryable = "collection", isinstance(error, Unavailable)
    if isinstance(error, ToolFailure):
        kind, is_retryable = error.kind, error.retryable
    return {"kind": kind, "message": f"`loop.in` of step `{step}`: {error}", "retryable": is_retryable}
