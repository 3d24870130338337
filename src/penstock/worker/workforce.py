"""The workers of one process: each lease is an asyncio task that runs to the end of its step run or range, or one task per
component.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.expr.template import ExpressionError, rendered
from penstock.kernel.errors import Refused
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.fans import Elements
from penstock.kernel.judge import stopped
from penstock.kernel.net import Node
from penstock.kernel.patches import Staged
from penstock.kernel.state import ComponentRun, Loop, Pipeline, Run, last_outcome, next_fact
from penstock.kernel.values import Json
from penstock.ports.leases import FanRange, Lease, Reports, ScopeContext, out_of_time, time_left
from penstock.ports.outcome import Outcome
from penstock.worker.loop_runner import LoopRunner
from penstock.worker.pipeline_runner import PipelineRunner, PolicyError, started
from penstock.worker.range_runner import RangeRunner
from penstock.worker.scopes import TaskScope
from penstock.worker.services import WorkerServices

if TYPE_CHECKING:
    from penstock.worker.subjob_runner import SubjobRunner

RANGES = 4
"""How many ranges of one fanned-out loop are worked on at a time in this process."""


class LocalWorkforce:
    def __init__(self, services: WorkerServices) -> None:
        self.services = services
        self._held: dict[str, asyncio.Task[None]] = {}
        self._subjob_runners: dict[str, SubjobRunner] = {}

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        if isinstance(run, ComponentRun):
            self._subjob_runner(lease).start(lease, run, reports)
            return
        is_range = isinstance(lease.part, FanRange)
        work = (RangeRunner if is_range else StepWork)(lease, self.services, reports)
        self._held[lease.key] = asyncio.ensure_future(self._run(work))

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        job = self._subjob_runners.get(lease.context.scope.place.id)
        if job is not None:
            await job.stop(lease, reason, grace_s)
            return
        lease.stop_reason = reason
        task = self._held.get(lease.key)
        if task is not None:
            # At least one turn of the loop: a task that is cancelled before its first step could report nothing.
            await asyncio.wait({task}, timeout=max(0.0, grace_s))
            task.cancel()
            await asyncio.wait({task})

    def say(self, scope: str, line: str) -> None:
        self.services.say(scope, None, line)

    async def settled(self, lease: Lease) -> None:
        """Return when nobody works on the lease any more. If cancelled, stops the work first."""
        task = self._held.get(lease.key)
        if task is None:
            return
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    async def close_job(self, context: ScopeContext, *, is_over: bool) -> None:
        job = self._subjob_runners.pop(context.scope.place.id, None)
        if job is not None:
            await job.close()

    def slots(self, context: ScopeContext, node: Node) -> int:
        return RANGES

    def ahead(self) -> int:
        return 1

    async def close(self) -> None:
        for job in self._subjob_runners.values():
            await job.close()
        self._subjob_runners.clear()

    def _subjob_runner(self, lease: Lease) -> SubjobRunner:
        scope = lease.context.scope.place.id
        job = self._subjob_runners.get(scope)
        if job is None:
            # Playbooks need none of the data plane: start-up time.
            from penstock.worker.subjob_runner import SubjobRunner

            job = self._subjob_runners[scope] = SubjobRunner(self.services, lease.context, lease.decider)
        return job

    async def _run(self, work: StepWork | RangeRunner) -> None:
        lease, reports = work.lease, work.reports
        try:
            await work.perform()
        except asyncio.CancelledError:
            if lease.stop_reason is None:
                raise
        except Exception as error:  # An error of the engine: the whole execution must stop and say so.
            # If the end of a step run is refused, the run has been given up already: a late report changes nothing.
            if not (isinstance(error, Refused) and isinstance(work, StepWork)):
                reports.broke(error)
        finally:
            self._held.pop(lease.key, None)


class StepWork:
    """One step run, from its first task to its end."""

    def __init__(self, lease: Lease, services: WorkerServices, reports: Reports) -> None:
        self.lease = lease
        self.run = lease.run
        self.node = lease.node
        self.reports = reports
        self.pipelines = PipelineRunner(lease, services, reports)
        self.loop = LoopRunner(self.pipelines, self.node.fan, reports) if self.node.fan is not None else None

    # ---- in a replay

    def begins(self, pipeline: Pipeline) -> Fact:
        """The start of the task at its cursor."""
        task = self.node.tasks[pipeline.cursor]
        return next_fact(pipeline, started(task, pipeline), task=pipeline.next_task_run(task.label))

    def concludes(self, pipeline: Pipeline, index: int | None, outcome: Outcome) -> Fact:
        """The conclusion from the outcome of that task; `index` is that of its iteration."""
        body = self.pipelines.conclusion(pipeline, self._scope(pipeline, index), outcome)
        return next_fact(pipeline, body, task=pipeline.under_way)

    def _scope(self, pipeline: Pipeline, index: int | None) -> TaskScope:
        around = self.loop.element(index) if self.loop is not None and index is not None else None
        return TaskScope(self.pipelines.names, pipeline, around)

    def over(self, collected: Json) -> Elements | RunEnded | None:
        """The elements of its loop; how it ended, if the elements cannot be determined; None if only the record knows."""
        assert self.loop is not None
        return self.loop.over(collected)

    def end(self, refused: Json = None) -> RunEnded:
        """How it ended. `refused`: the error of a claim that failed."""
        if refused is not None:
            assert self.loop is not None
            self.loop.refused = refused
        return self.with_step_writes(self.ended())

    def around(self, pipeline: Pipeline, index: int | None) -> Any:
        """The iteration that a task's child lies in."""
        return self._scope(pipeline, index).iter() if index is not None else self.lease.context.iter_parent

    # ---- live

    async def perform(self) -> None:
        lease, node = self.lease, self.node
        left = time_left(node, self.run, lease.context.scope.resumed_at, self.reports.now())
        try:
            async with asyncio.timeout(left.seconds if left is not None else None) as timer:
                end = self.with_step_writes(await self._body())
        except TimeoutError:
            if left is None or not timer.expired():
                raise
            self.reports.give_up(self.run, out_of_time(node, left))
        except asyncio.CancelledError:
            if lease.stop_reason not in ("cancel", "abort"):
                raise
            self.reports.give_up(self.run, stopped(node.name, lease.stop_reason))
        else:
            await self.reports.end_run(self.run, end)

    async def _body(self) -> RunEnded:
        if self.loop is not None:
            return await self.loop.perform()
        pipeline = self.run.pipeline
        assert pipeline is not None
        await self.pipelines.run(pipeline)
        return self.ended()

    def ended(self) -> RunEnded:
        """How the run ended, according to its pipeline or its loop."""
        if self.loop is not None:
            return self.loop.ended()
        step, pipeline = self.run.step, self.run.pipeline
        assert pipeline is not None
        writes = pipeline.staged.as_writes()
        if pipeline.ended == "failed":
            return RunEnded(step, "failed", None, pipeline.error, writes)
        return RunEnded(step, "done", pipeline.prev, None, writes)

    def with_step_writes(self, end: RunEnded) -> RunEnded:
        """`set` on a step applies when it is done, and sees its result."""
        run, node = self.run, self.node
        if end.status != "done" or not node.on_done:
            return end
        last = run.pipeline
        ctx = last.ctx if last else run.fan.ctx if isinstance(run.fan, Loop) else run.ctx
        results = {run.step: end.result, **(last.results if last else {})}
        scope = TaskScope(self.pipelines.names, Pipeline(run.place, ctx, prev=end.result, results=results), None)
        scope.tool_side = False
        scope.outcome = last_outcome(run, end)
        try:
            made = rendered(node.on_done, scope, self.pipelines.undefined, f"`set` of step `{run.step}`")
            writes = self.pipelines.normaliser.writes(made)
        except (ExpressionError, TypeError) as error:
            failure = PolicyError(
                f"`set` of step `{run.step}`", error if isinstance(error, ExpressionError) else str(error)
            )
            return replace(end, status="failed", error=failure.as_json())
        staged = Staged()
        staged.add(end.writes)
        staged.add(writes)
        return replace(end, writes=staged.as_writes())
