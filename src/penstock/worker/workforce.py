"""The workers of one process: each lease is an asyncio task that runs to the end of its step run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.expr.template import ExpressionError, rendered
from penstock.kernel.deadlines import out_of_time, time_left
from penstock.kernel.decide import stopped
from penstock.kernel.errors import Refused
from penstock.kernel.facts import IterationEnded, RunEnded
from penstock.kernel.net import Node
from penstock.kernel.patches import Staged
from penstock.kernel.state import PipelineState, RunState, last_outcome
from penstock.kernel.values import JsonMap
from penstock.ports.leases import JobReports, Lease, LeaseLost, Reports, Setting, SubjobLease
from penstock.ports.loop_results import keep_result
from penstock.ports.ranges import RangeLease, RangeReports
from penstock.worker.desk import Desk
from penstock.worker.loop_runner import LoopRunner
from penstock.worker.pipeline_runner import PipelineRunner
from penstock.worker.policy import PolicyError
from penstock.worker.range_runner import RangeRunner
from penstock.worker.scopes import TaskScope

if TYPE_CHECKING:
    from penstock.kernel.flow.state import ComponentState
    from penstock.worker.job_crew import JobCrew

RANGES = 4
"""So many ranges of one fanned-out loop are worked on at a time in this process."""


class LocalWorkforce:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._held: dict[str, tuple[asyncio.Task[None], _LeaseRun]] = {}
        self._ranges: dict[str, asyncio.Task[None]] = {}
        self._crews: dict[str, JobCrew] = {}

    def start(self, lease: Lease, reports: Reports) -> None:
        run = _LeaseRun(lease, self.desk, reports)
        self._held[lease.run.place.id] = (asyncio.ensure_future(self._run(run)), run)

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        lease.stop_reason = reason
        held = self._held.get(lease.run.place.id)
        if held is None:
            return
        task, run = held
        # At least one turn of the loop: a task that is cancelled before its first step could report nothing.
        await asyncio.wait({task}, timeout=max(0.0, grace_s))
        if not run.is_reporting:
            task.cancel()
        await asyncio.wait({task})

    def say(self, scope: str, line: str) -> None:
        self.desk.say(scope, None, line)

    async def settled(self, lease: Lease) -> None:
        """Return when nobody works on the lease any more; to be cancelled is to have it let go."""
        held = self._held.get(lease.run.place.id)
        if held is None:
            return
        try:
            await asyncio.wait({held[0]})
        except asyncio.CancelledError:
            held[0].cancel()
            await asyncio.wait({held[0]})
            raise

    # ---- jobs

    def start_component(self, lease: SubjobLease, component: ComponentState, reports: JobReports) -> None:
        self._crew(lease).start(lease, component, reports)

    async def stop_subjob(self, lease: SubjobLease, reason: str, grace_s: float = 0.0) -> None:
        await self._crew(lease).stop(lease, reason, grace_s)

    async def close_job(self, setting: Setting, *, is_over: bool) -> None:
        crew = self._crews.pop(setting.scope.place.id, None)
        if crew is not None:
            await crew.close()

    # ---- ranges

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        run = RangeRunner(lease, self.desk, reports)
        self._ranges[lease.key] = asyncio.ensure_future(self._run_range(run))

    async def stop_range(self, lease: RangeLease, reason: str) -> None:
        lease.stop_reason = reason
        task = self._ranges.get(lease.key)
        if task is not None:
            await asyncio.sleep(0)  # A task that is cancelled before its first step could report nothing.
            task.cancel()
            await asyncio.wait({task})

    def slots(self, node: Node) -> int:
        return RANGES

    def ahead(self) -> int:
        return 1

    async def _run_range(self, run: RangeRunner) -> None:
        try:
            await run.run()
        except asyncio.CancelledError:
            if run.lease.stop_reason is None:
                raise
        except Exception as error:  # Not an element's failure but ours: the whole execution must stop and say so.
            run.reports.broke(error)
        finally:
            self._ranges.pop(run.lease.key, None)

    async def close(self) -> None:
        for crew in self._crews.values():
            await crew.close()
        self._crews.clear()

    def _crew(self, lease: SubjobLease) -> JobCrew:
        scope = lease.setting.scope.place.id
        crew = self._crews.get(scope)
        if crew is None:
            from penstock.worker.job_crew import JobCrew  # Playbooks need none of the data plane.

            crew = self._crews[scope] = JobCrew(self.desk, lease.setting, lease.flow)
        return crew

    # ---- step runs

    def iteration_closed(self, run: RunState, body: IterationEnded, pipeline: PipelineState) -> None:
        """While a log is folded: keep the results of loops, in case one of them is still to be finished."""
        keep_result(run, body, pipeline)

    async def _run(self, run: _LeaseRun) -> None:
        lease, reports = run.lease, run.reports
        try:
            await run.run()
        except asyncio.CancelledError:
            if lease.stop_reason is None and self.desk.memory is None:
                raise
        except Refused:
            return  # The server has given the run up already: a late report changes nothing.
        except Exception as error:  # Not the task's failure but ours: the whole execution must stop and say so.
            reports.broke(error)
        finally:
            self._held.pop(lease.run.place.id, None)


class _LeaseRun:
    def __init__(self, lease: Lease, desk: Desk, reports: Reports) -> None:
        self.lease = lease
        self.desk = desk
        self.reports = reports
        self.pipelines = PipelineRunner(lease, desk, reports)
        node = lease.node
        self.loop = LoopRunner(self.pipelines, node.fan) if node.fan is not None else None
        self.is_reporting = False
        """It has ended and is telling the server, which decides what follows: nothing can stop it any more."""

    async def run(self) -> None:
        lease, node = self.lease, self.lease.node
        left = None
        if self.desk.memory is None:
            left = time_left(node, lease.run, lease.setting.scope.resumed_at, self.reports.now())
        try:
            async with asyncio.timeout(left.seconds if left is not None else None) as timer:
                body = await self._body()
                self._recall_loss()
        except TimeoutError:
            if left is None or not timer.expired():
                raise
            body = self._given_up(out_of_time(node, left))
        except asyncio.CancelledError:
            if lease.stop_reason not in ("cancel", "abort"):
                raise
            body = self._given_up(stopped(node.name, lease.stop_reason))
        except LeaseLost as lost:
            body = self._given_up(lost.failure)
        self.is_reporting = True
        await self.reports.end(lease, body, self._counter())

    def _recall_loss(self) -> None:
        """In a replay: its holder may have come to the end and been lost before it could say so."""
        memory = self.desk.memory
        failure = memory.given_up(self.lease.run.place.id) if memory is not None else None
        if failure is not None:
            raise LeaseLost(failure)

    async def _body(self) -> RunEnded:
        if self.loop is not None:
            body = await self.loop.run()
        else:
            pipeline = self.lease.run.pipeline
            assert pipeline is not None
            await self.pipelines.run(pipeline)
            body = _ended(self.lease.run.step, pipeline)
        if body.status == "done" and self.lease.node.on_done:
            body = self._with_step_writes(body)
        return body

    def _with_step_writes(self, body: RunEnded) -> RunEnded:
        """`set` on a step applies when it is done, and sees its result."""
        run = self.lease.run
        last = run.pipeline
        ctx = last.ctx if last else run.loop.ctx if run.loop else run.ctx
        results = {run.step: body.result, **(last.results if last else {})}
        pipeline = PipelineState(run.place, ctx, prev=body.result, results=results)
        scope = TaskScope(self.pipelines.names, pipeline, None)
        scope.tool_side = False
        scope.outcome = last_outcome(run, body)
        try:
            made = rendered(self.lease.node.on_done, scope, self.pipelines.undefined, f"`set` of step `{run.step}`")
            writes = self.pipelines.normaliser.writes(made)
        except (ExpressionError, TypeError) as error:
            failure = PolicyError(
                f"`set` of step `{run.step}`", error if isinstance(error, ExpressionError) else str(error)
            )
            return replace(body, status="failed", error=failure.as_json())
        staged = Staged()
        staged.add(body.writes)
        staged.add(writes)
        return replace(body, writes=staged.as_writes())

    def _given_up(self, failure: JsonMap) -> RunEnded:
        run = self.lease.run
        if self.loop is not None:
            self.loop.abandon(failure)
            writes = run.loop.staged.as_writes() if run.loop is not None else {}
            return RunEnded(run.step, "failed", None, failure, writes, looped=True, given_up=True)
        pipeline = run.pipeline
        assert pipeline is not None
        self.pipelines.abandon(pipeline, failure)
        return RunEnded(run.step, "failed", None, failure, pipeline.staged.as_writes(), given_up=True)

    def _counter(self) -> int:
        run = self.lease.run
        return run.counter if run.loop is not None or run.pipeline is None else run.pipeline.counter


def _ended(step: str, pipeline: PipelineState) -> RunEnded:
    writes = pipeline.staged.as_writes()
    if pipeline.ended == "failed":
        return RunEnded(step, "failed", None, pipeline.error, writes)
    return RunEnded(step, "done", pipeline.prev, None, writes)
