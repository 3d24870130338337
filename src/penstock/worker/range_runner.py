"""Runs a range of a fanned-out loop: its elements one after another, or some at a time, each with a pipeline of its own.

Nothing about an element is recorded while it runs. The results of consecutive elements are reported together: at intervals,
when an element fails, and at the end. A worker that is lost therefore loses what it did since its last report, and that is
done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from penstock.expr.template import ExpressionError, roots
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.evolve import pipelines as progress
from penstock.kernel.facts import TaskEnded, TaskStarted, event_type
from penstock.kernel.loop import of_row
from penstock.kernel.net import Fan
from penstock.kernel.places import Place
from penstock.kernel.ranges import ElementsEnded, Failed, RangeFailed, RangeOpened, TaskReport
from penstock.kernel.reducers import fold_parts
from penstock.kernel.state import Pipeline
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import CLAIM, LARGEST_INLINE, elements
from penstock.ports.leases import Caller, Lease, Reports
from penstock.ports.results import encode, view
from penstock.tools.base import Call, ToolFailure
from penstock.worker.pages import CollectionPages
from penstock.worker.pipeline_runner import PipelineRunner
from penstock.worker.preparation import Prepared, parameters
from penstock.worker.scopes import TaskScope, element
from penstock.worker.services import WorkerServices

HOLD_S = 20.0
"""A range that takes longer than this is given back after the current element: other workers may be free by then."""
MOST_HELD = 4_096
"""Maximum number of elements whose results are held back, if the results are more than a number."""
MOST_TASKS = 512
"""The same limit for events of tasks, which may be large."""
SMALL = (type(None), bool, int, float)
_NONE = object()
CEREMONIAL = {"_task", "_effect"}
"""Names that exist only for a task that is recorded as such."""
EXPECTED = (ToolFailure, ExpressionError, PenstockError, TypeError, ValueError, msgspec.MsgspecError)


class ShardPipelines(PipelineRunner):
    """Pipelines that record none of their steps, unless each element is reported by itself (`events`)."""

    events: dict[str, list[tuple[str | None, TaskStarted | TaskEnded]]] | None = None
    """What has happened so far, by the place of the element."""

    def _record(self, pipeline: Pipeline, body: TaskStarted | TaskEnded, task_run_id: str | None) -> None:
        if self.events is not None:
            self.events.setdefault(pipeline.place.id, []).append((task_run_id, body))
        if isinstance(body, TaskStarted):
            progress.task_started(pipeline, body, task_run_id)
        else:
            progress.task_ended(pipeline, body, self._now())

    def quick(self) -> list[Prepared]:
        """The tasks, if they only compute and have nothing to decide: an element then needs no pipeline state. Otherwise
        nothing."""
        found: list[Prepared] = []
        if self.events is not None:
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
        """Run such a pipeline to its end. Any error is raised, and the element is run again with the full pipeline."""
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
        """The same if nothing depends on the element: only the tools are called."""
        result: Json = None
        for prepared in quick:
            result = self.normaliser.result(prepared.tool.run_inline(prepared.constant, call))
        return result

    def context(self, pipeline: Pipeline, quick: list[Prepared]) -> Call:
        return self._context(quick[0], pipeline, TaskScope(self.names, pipeline, {}))


class _Quiet:
    """Receives the reports of a pipeline when nothing is sent before its range is reported."""

    backlog = 0

    def __init__(self, reports: Reports) -> None:
        self.now = reports.now
        self.broke = reports.broke

    def record(self, fact: object) -> None: ...

    def flush(self) -> None: ...

    def gathered_enough(self) -> bool:
        return False

    async def durable(self) -> None: ...

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any:
        raise Refused(
            "a shard cannot run a playbook or a job of its own",
            hint="use a local loop (`loop_mode: local`) for this step",
        )


class _Pending:
    """Elements that have ended since the last report, from `lo` on without a gap."""

    def __init__(self, lo: int, since: float) -> None:
        self.lo = self.hi = lo
        self.since = since
        self.results: list[Json] = []
        self.failures: list[Failed] = []
        self.writes: list[Json] = []
        self.shared: JsonMap = {}
        self.tasks: list[TaskReport] = []
        self.is_same = True
        self.is_small = True


class RangeRunner:
    def __init__(self, lease: Lease, services: WorkerServices, reports: Reports) -> None:
        fan = lease.node.fan
        assert fan is not None
        self.lease = lease
        self.part = lease.range
        self.run = lease.run
        self.services = services
        self.reports = reports
        self.fan: Fan = fan
        self.at = self.part.elements.lo
        """All elements below this index have been reported."""
        self._reducers = dict(fan.reducers)
        self._items: Sequence[Any] = ()
        self._keys: Sequence[str] | None = None
        self._base = 0
        self._claims = False
        self._hi = 0
        self._next = self.at
        self._ahead: dict[int, Pipeline] = {}
        self._pending = _Pending(self.at, 0.0)
        self._pipelines: ShardPipelines | None = None
        self._begun = 0.0
        self._is_slow = True
        """Whether an element may take so long that the clock has to be read after each."""

    async def perform(self) -> None:
        lease = self.lease
        try:
            await self._open()
        except asyncio.CancelledError:
            if lease.stop_reason is None or lease.stop_reason == "interrupt":
                raise
            self.reports.give_back(lease)  # A page that was not opened is still the next one.
            return
        except ToolFailure as error:
            failure: JsonMap = {"kind": error.kind, "message": error.message, "retryable": error.retryable}
            self.reports.report(lease, RangeFailed(failure))
            return
        except (PenstockError, TypeError) as error:
            self.reports.report(lease, RangeFailed({"kind": "collection", "message": str(error), "retryable": False}))
            return
        self._begun = self._now()
        self._pending.since = self._begun
        try:
            await self._run()
        except asyncio.CancelledError:
            if lease.stop_reason is None or lease.stop_reason == "interrupt":
                raise
        self._report()
        if self.at < self._hi:
            self.reports.give_back(lease)

    async def _open(self) -> None:
        lease, collection, held = self.lease, self.part.collection, self.part.elements
        assert isinstance(collection, dict)
        if collection["kind"] in ("range", "list"):
            self._items = elements(collection, self.services.load)
            self._hi = held.hi if held.hi is not None else len(self._items)
            self.reports.report(lease, RangeOpened())
            return
        self._claims = collection["kind"] == CLAIM
        pages = CollectionPages(self.services, collection, lease.context)
        if held.hi is None:
            page = await pages.page(held.token, held.most)
        else:
            page = await pages.page(held.token, max(held.most, held.hi - held.base), held.until)
        self._items, self._keys, self._base = page.items, page.keys, held.base
        self._hi = held.base + len(page.items) if held.hi is None else held.hi
        if self._hi - held.base > len(page.items):
            raise ToolFailure("collection", "the page has fewer elements than when it was first read", retryable=False)
        self.reports.report(lease, RangeOpened(self._hi, page.next, page.is_end))
        # Otherwise the next holder would read the page afresh, and count its elements again.
        await self.reports.durable()

    async def _run(self) -> None:
        lease = self.lease
        self._pipelines = ShardPipelines(lease, self.services, _Quiet(self.reports))
        if self.part.emits:
            self._pipelines.events = {}
        lanes = min(self.part.lanes, self._hi - self._next)
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
        pipelines, lease, part = self._pipelines, self.lease, self.part
        assert pipelines is not None
        run, ctx = self.run, self.run.ctx
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
            part.progress += 1
            if is_due and self._lets_go():
                return

    async def _pipeline(
        self, index: int, pipelines: ShardPipelines, quick: list[Prepared], call: Call | None
    ) -> Pipeline:
        run, at = self.run, index - self._base
        loop_id = run.loop_name
        place = Place(f"{loop_id}[{index}]", (*run.place.clock, self.part.opened_at, index))
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
        """Close an element that only had a result to give."""
        pending = self._pending
        if index != pending.hi or self._ahead:
            done = Pipeline(self.run.place, self.run.ctx, prev=result, ended="done")
            return self._closes(index, done)
        self._keep(pending, index, result)
        return not index & 63

    def _closes(self, index: int, pipeline: Pipeline) -> bool:
        """Add the element to those before it. True if a report may be due: time has passed, or something failed."""
        pending = self._pending
        if index != pending.hi:
            self._ahead[index] = pipeline
            return True
        self._add(pending, index, pipeline)
        while self._ahead and (waiting := self._ahead.pop(pending.hi, None)) is not None:
            self._add(pending, pending.hi, waiting)
        return (
            bool(pending.failures)
            or not index & 63
            or len(pending.tasks) >= MOST_TASKS
            or not pending.is_small
            or (self._is_slow and self._now() - pending.since > self.part.report_s)
        )

    def _add(self, pending: _Pending, index: int, pipeline: Pipeline) -> None:
        result: Json = None
        staged = pipeline.staged
        writes = staged.as_writes()
        if pipeline.ended == "failed":
            at, error = index - self._base, pipeline.error
            if self._claims:
                error = of_row(error, self._items[at])
            pending.failures.append(Failed(index, str(index) if self._keys is None else self._keys[at], error))
            writes.pop("shared", None)
        else:
            result = pipeline.prev
            if not staged:  # It may still fail, when its writes are compared with those of others.
                fold_parts(self._reducers, pending.shared, writes)
        if staged:
            pending.writes.append([index, writes])
        events = self._pipelines.events if self._pipelines is not None else None
        for task, body in events.pop(pipeline.place.id, ()) if events is not None else ():
            pending.tasks.append(TaskReport(index, task, event_type(body), body))
        self._keep(pending, index, result)

    def _keep(self, pending: _Pending, index: int, result: Json) -> None:
        results = pending.results
        if results and result is not results[0]:
            pending.is_same = pending.is_same and type(result) is type(results[0]) and result == results[0]
        if type(result) not in SMALL:
            pending.is_small = pending.is_same = False
        results.append(result)
        pending.hi = index + 1

    def _lets_go(self) -> bool:
        """Report what is due. True if the rest is to be given back."""
        now, pending = self._now(), self._pending
        is_failing = bool(pending.failures) and self._is_fail_fast()
        if (
            is_failing
            or now - pending.since > self.part.report_s
            or (not pending.is_small and len(pending.results) >= MOST_HELD)
            or len(pending.tasks) >= MOST_TASKS
        ):
            self._report()
        if is_failing:
            return True
        return self._next < self._hi and (now - self._begun > HOLD_S or self.reports.gives_way())

    def _is_fail_fast(self) -> bool:
        policy = self.fan.fanout
        return policy is not None and policy.fail_fast and self.part.elements.attempt >= policy.retries

    def _report(self) -> None:
        pending = self._pending
        if pending.hi == pending.lo and pending.hi < self._hi:
            return
        now, lo, hi = self._now(), pending.lo - self._base, pending.hi - self._base
        is_named = self.part.emits or bool(pending.writes)
        keys = list(self._keys[lo:hi]) if is_named and self._keys is not None else None
        report = ElementsEnded(
            pending.lo,
            pending.hi,
            pending.failures,
            results=self._results(pending),
            same=pending.is_same,
            writes=pending.writes,
            shared=pending.shared,
            ms=round((now - pending.since) * 1000, 3),
            keys=keys,
            tasks=pending.tasks,
        )
        self.at = pending.hi
        self._pending = _Pending(pending.hi, now)
        self.reports.report(self.lease, report)

    def _results(self, pending: _Pending) -> Any:
        if pending.is_same:
            return pending.results[0] if pending.results else None
        if pending.is_small and len(pending.results) < MOST_HELD:
            return pending.results
        try:
            data = encode(pending.results)
        except msgspec.MsgspecError as error:
            raise TypeError(str(error)) from error
        if len(data) <= LARGEST_INLINE:
            return pending.results
        hint: JsonMap = {"type": "array", "length": len(pending.results)}
        return view(self.services.blobs.put([data], schema_hint=hint), self.services.load)

    def _now(self) -> float:
        """By a monotonic clock: only durations are measured."""
        return asyncio.get_running_loop().time()
