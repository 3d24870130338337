"""Runs a range of a fanned-out loop: its elements one after another, or some at a time, each with a pipeline of its own.

Nothing of an element is recorded while it runs. What came of a stretch of them is told together: now and then, when an element
fails, and at the end. So a worker that is lost takes with it what it did since it last told, and that is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.expr.template import ExpressionError, roots
from penstock.kernel.errors import PenstockError
from penstock.kernel.evolve import pipelines as progress
from penstock.kernel.facts import TaskEnded, TaskStarted, event_type
from penstock.kernel.net import Fan
from penstock.kernel.places import Place
from penstock.kernel.reducers import fold_parts
from penstock.kernel.state import Pipeline
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import LARGEST_INLINE, elements
from penstock.ports.leases import Caller, Failed, RangeLease, RangeReport, RangeReports, TaskTold
from penstock.ports.results import encode, view
from penstock.tools.base import Call, ToolFailure
from penstock.worker.pages import CollectionPages
from penstock.worker.pipeline_runner import PipelineRunner
from penstock.worker.preparing import Prepared, parameters
from penstock.worker.scopes import TaskScope, element
from penstock.worker.services import WorkerServices

HOLD_S = 20.0
"""A range that takes longer than this is given back after the element at hand: others may be free by then."""
MOST_HELD = 4_096
"""Results that are more than a number are not held back for longer than so many elements."""
MOST_TASKS = 512
"""Nor are events of tasks, which may be large."""
SMALL = (type(None), bool, int, float)
_NONE = object()
CEREMONIAL = {"_task", "_effect"}
"""Names that are known only to a task that is recorded as such."""
EXPECTED = (ToolFailure, ExpressionError, PenstockError, TypeError, ValueError, msgspec.MsgspecError)


class ShardPipelines(PipelineRunner):
    """Pipelines whose every step is known to themselves alone, unless each element is told of by itself (`told`)."""

    told: dict[str, list[tuple[str | None, TaskStarted | TaskEnded]]] | None = None
    """What happened so far, by the place of the element."""

    def _record(self, pipeline: Pipeline, body: TaskStarted | TaskEnded, task_run_id: str | None) -> None:
        if self.told is not None:
            self.told.setdefault(pipeline.place.id, []).append((task_run_id, body))
        if isinstance(body, TaskStarted):
            progress.task_started(pipeline, body, task_run_id)
        else:
            progress.task_ended(pipeline, body, self._now())

    def quick(self) -> list[Prepared]:
        """The tasks, where they only compute and have nothing to decide: then an element needs no ceremony. Else nothing."""
        found: list[Prepared] = []
        if self.told is not None:
            return found
        for cursor, task in enumerate(self.tasks):
            if task.rules is not None or task.on_ok or self._may_need_keys or roots(task.params) & CEREMONIAL:
                return []
            prepared = self.preparation.task(cursor)
            if not prepared.tool.pure:
                return []
            found.append(prepared)
        return found

    def compute(self, quick: list[Prepared], pipeline: Pipeline, around: dict[str, Any], call: Call) -> None:
        """Run such a pipeline to its end. Whatever goes wrong is raised, and the element is run again with all ceremony."""
        scope: TaskScope | None = None
        for prepared in quick:
            params = prepared.constant
            if params is None:
                scope = scope or TaskScope(self.names, pipeline, around)
                values = parameters(prepared, scope)
                params = self.preparation.tools.convert(prepared.task.kind, values)
            result = self.normaliser.result(prepared.tool.run_inline(params, call))
            pipeline.prev = pipeline.results[prepared.task.label] = result
        pipeline.ended = "done"

    def constant(self, quick: list[Prepared], call: Call) -> Json:
        """The same where nothing depends on the element: only the tools are called."""
        result: Json = None
        for prepared in quick:
            result = self.normaliser.result(prepared.tool.run_inline(prepared.constant, call))
        return result

    def context(self, pipeline: Pipeline, quick: list[Prepared]) -> Call:
        return self._context(quick[0], pipeline, TaskScope(self.names, pipeline, {}))


class _Quiet:
    """What a pipeline reports to when nobody listens before its range is told."""

    def __init__(self, reports: RangeReports) -> None:
        self.now = reports.now
        self.broke = reports.broke
        self._reports = reports

    def record(self, fact: object) -> None: ...

    def flush(self) -> None: ...

    def gathered_enough(self) -> bool:
        return False

    async def durable(self) -> None: ...

    @property
    def backlog(self) -> int:
        return 0

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any:
        return await self._reports.play(caller, path, values, return_step, outputs)


class _Stretch:
    """Elements that have come to their ends since the last report, from `lo` on without a gap."""

    def __init__(self, lo: int, since: float) -> None:
        self.lo = self.hi = lo
        self.since = since
        self.results: list[Json] = []
        self.failures: list[Failed] = []
        self.writes: list[Json] = []
        self.shared: JsonMap = {}
        self.tasks: list[TaskTold] = []
        self.is_same = True
        self.is_small = True


class RangeRunner:
    def __init__(
        self,
        lease: RangeLease,
        services: WorkerServices,
        reports: RangeReports,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        fan = lease.node.fan
        assert fan is not None
        self.lease = lease
        self.services = services
        self.reports = reports
        self.fan: Fan = fan
        self.gives_way = gives_way
        self.at = lease.shards.lo
        """All below have been told of."""
        self.progress = 0
        """So many elements have come to their ends: a sign that work goes on."""
        self._items: Sequence[Any] = ()
        self._keys: Sequence[str] | None = None
        self._base = 0
        self._hi = 0
        self._next = lease.shards.lo
        self._ahead: dict[int, Pipeline] = {}
        self._stretch = _Stretch(lease.shards.lo, 0.0)
        self._pipelines: ShardPipelines | None = None
        self._begun = 0.0
        self._is_slow = True
        """An element may take long enough for the clock to be looked at after each."""

    async def run(self) -> None:
        lease = self.lease
        try:
            await self._open()
        except ToolFailure as error:
            self.reports.failed(lease, {"kind": error.kind, "message": error.message, "retryable": error.retryable})
            return
        except (PenstockError, TypeError) as error:
            self.reports.failed(lease, {"kind": "collection", "message": str(error), "retryable": False})
            return
        self._begun = self._now()
        self._stretch.since = self._begun
        try:
            await self._run()
        except asyncio.CancelledError:
            if lease.stop_reason is None or lease.stop_reason == "interrupt":
                raise
        self._tell()
        if self.at < self._hi:
            self.reports.gave_back(lease, "returned")

    async def _open(self) -> None:
        lease, shards = self.lease, self.lease.shards
        assert isinstance(lease.collection, dict)
        if lease.collection["kind"] in ("range", "list"):
            self._items = elements(lease.collection, self.services.load)
            self._hi = shards.hi if shards.hi is not None else len(self._items)
            self.reports.opened(lease, None, None, False)
            return
        pages = CollectionPages(self.services, lease.collection, lease.setting)
        if shards.hi is None:
            page = await pages.page(shards.token, shards.most)
        else:
            page = await pages.page(shards.token, max(shards.most, shards.hi - shards.base), shards.until)
        self._items, self._keys, self._base = page.items, page.keys, shards.base
        self._hi = shards.base + len(page.items) if shards.hi is None else shards.hi
        if self._hi - shards.base > len(page.items):
            raise ToolFailure("collection", "the page has fewer elements than when it was first read", retryable=False)
        self.reports.opened(lease, self._hi, page.next, page.is_end)
        await self.reports.durable()  # Else whoever takes over would read the page afresh, and count its elements anew.

    async def _run(self) -> None:
        lease = self.lease
        self._pipelines = ShardPipelines(lease, self.services, _Quiet(self.reports))
        if lease.emits:
            self._pipelines.told = {}
        lanes = min(lease.lanes, self._hi - self._next)
        if lanes <= 1:
            await self._lane()
            return
        self._pipelines.share_turns(lanes)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(lanes):
                    group.create_task(self._lane())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _lane(self) -> None:
        pipelines, lease = self._pipelines, self.lease
        assert pipelines is not None
        run, ctx = lease.run, lease.run.ctx
        quick = pipelines.quick()
        call = pipelines.context(Pipeline(run.place, ctx), quick) if quick else None
        self._is_slow = call is None
        is_constant = all(prepared.constant is not None for prepared in quick)
        while self._next < self._hi and lease.stop_reason is None:
            index = self._next
            self._next += 1
            if not index & 255:
                await asyncio.sleep(0)
            result: Any = _NONE
            if call is not None and is_constant:
                with suppress(*EXPECTED):
                    result = pipelines.constant(quick, call)
            if result is _NONE:
                pipeline = await self._pipeline(index, pipelines, quick, call)
                is_due = self._closes(index, pipeline)
            else:
                is_due = self._closes_ok(index, result)
            self.progress += 1
            if is_due and self._lets_go():
                return

    async def _pipeline(
        self, index: int, pipelines: ShardPipelines, quick: list[Prepared], call: Call | None
    ) -> Pipeline:
        lease, at = self.lease, index - self._base
        run = lease.run
        loop_id = run.loop_name
        place = Place(f"{loop_id}[{index}]", (*run.place.clock, lease.opened_at, index))
        pipeline = Pipeline(place, run.ctx)
        key = None if self._keys is None else self._keys[at]
        around = element(self.fan.iterator, loop_id, index, self._items[at], key)
        if call is not None:
            with suppress(*EXPECTED):
                pipelines.compute(quick, pipeline, around, call)
        if pipeline.ended is None:
            await pipelines.run(pipeline, around)
        return pipeline

    # ---- what came of elements

    def _closes_ok(self, index: int, result: Json) -> bool:
        """An element that only had a result to give."""
        stretch = self._stretch
        if index != stretch.hi or self._ahead:
            done = Pipeline(self.lease.run.place, self.lease.run.ctx, prev=result, ended="done")
            return self._closes(index, done)
        self._keep(stretch, index, result)
        return not index & 63

    def _closes(self, index: int, pipeline: Pipeline) -> bool:
        """Put the element beside those before it. True when somebody should look up: time has passed, or something failed."""
        stretch = self._stretch
        if index != stretch.hi:
            self._ahead[index] = pipeline
            return True
        self._add(stretch, index, pipeline)
        while self._ahead and (waiting := self._ahead.pop(stretch.hi, None)) is not None:
            self._add(stretch, stretch.hi, waiting)
        return (
            bool(stretch.failures)
            or not index & 63
            or len(stretch.tasks) >= MOST_TASKS
            or not stretch.is_small
            or (self._is_slow and self._now() - stretch.since > self.lease.report_s)
        )

    def _add(self, stretch: _Stretch, index: int, pipeline: Pipeline) -> None:
        result: Json = None
        staged = pipeline.staged
        writes = staged.as_writes()
        if pipeline.ended == "failed":
            key = str(index) if self._keys is None else self._keys[index - self._base]
            stretch.failures.append(Failed(index, key, pipeline.error))
            writes.pop("shared", None)
        else:
            result = pipeline.prev
            if not staged:  # Else it may still fail, when its writes are compared with those of others.
                fold_parts(self.lease.reducers, stretch.shared, writes)
        if staged:
            stretch.writes.append([index, writes])
        told = self._pipelines.told if self._pipelines is not None else None
        for task, body in told.pop(pipeline.place.id, ()) if told is not None else ():
            stretch.tasks.append(TaskTold(index, task, event_type(body), body))
        self._keep(stretch, index, result)

    def _keep(self, stretch: _Stretch, index: int, result: Json) -> None:
        results = stretch.results
        if results and result is not results[0]:
            stretch.is_same = stretch.is_same and type(result) is type(results[0]) and result == results[0]
        if type(result) not in SMALL:
            stretch.is_small = stretch.is_same = False
        results.append(result)
        stretch.hi = index + 1

    def _lets_go(self) -> bool:
        """Tell what is due. True when the rest is to be given back."""
        now, stretch = self._now(), self._stretch
        is_failing = bool(stretch.failures) and self._is_fail_fast()
        if (
            is_failing
            or now - stretch.since > self.lease.report_s
            or (not stretch.is_small and len(stretch.results) >= MOST_HELD)
            or len(stretch.tasks) >= MOST_TASKS
        ):
            self._tell()
        if is_failing:
            return True
        return self._next < self._hi and (now - self._begun > HOLD_S or self.gives_way())

    def _is_fail_fast(self) -> bool:
        policy = self.fan.fanout
        return policy is not None and policy.fail_fast and self.lease.shards.attempt >= policy.retries

    def _tell(self) -> None:
        stretch = self._stretch
        if stretch.hi == stretch.lo and stretch.hi < self._hi:
            return
        now, lo, hi = self._now(), stretch.lo - self._base, stretch.hi - self._base
        is_named = self.lease.emits or bool(stretch.writes)
        keys = list(self._keys[lo:hi]) if is_named and self._keys is not None else None
        report = RangeReport(
            stretch.lo,
            stretch.hi,
            stretch.failures,
            results=self._results(stretch),
            same=stretch.is_same,
            writes=stretch.writes,
            shared=stretch.shared,
            ms=round((now - stretch.since) * 1000, 3),
            keys=keys,
            tasks=stretch.tasks,
        )
        self.at = stretch.hi
        self._stretch = _Stretch(stretch.hi, now)
        self.reports.reported(self.lease, report)

    def _results(self, stretch: _Stretch) -> Any:
        if stretch.is_same:
            return stretch.results[0] if stretch.results else None
        if stretch.is_small and len(stretch.results) < MOST_HELD:
            return stretch.results
        try:
            data = encode(stretch.results)
        except msgspec.MsgspecError as error:
            raise TypeError(str(error)) from error
        if len(data) <= LARGEST_INLINE:
            return stretch.results
        hint: JsonMap = {"type": "array", "length": len(stretch.results)}
        return view(self.services.blobs.put([data], schema_hint=hint), self.services.load)

    def _now(self) -> float:
        """By a clock that only goes on: nothing but spans of time is asked of it."""
        return asyncio.get_running_loop().time()
