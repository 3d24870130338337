"""Drives one execution scope, the root or a child, of either dialect: decides, makes the decision durable, then lets it take
effect.

Law: nothing a run depends on may be lost. What the holder of a lease does under it is lost together with the lease and done
again, so the holder goes on without waiting for the disk; what starts under a new lease is on disk first. One append carries
a whole decision, so a crash leaves either all of it or none.
"""

from __future__ import annotations

import asyncio

from penstock.kernel.decide import Begin, Cancel, Decider, GiveUp, GoOn, Interrupt, Resume, RunOver
from penstock.kernel.facts import ComponentStarted, ElementEnded, Fact, RunEnded, RunStarted, SubjobEnded
from penstock.kernel.fans import PartOver
from penstock.kernel.judge import stopped
from penstock.kernel.net import Durability
from penstock.kernel.ranges import RangeReport
from penstock.kernel.state import (
    RUNNING,
    ComponentRun,
    Execution,
    Run,
    StepRun,
    Subjob,
    root_subjob,
    values_of,
)
from penstock.kernel.values import JsonMap
from penstock.ports.leases import Caller, FanRange, Lease, ScopeContext
from penstock.ports.log import Status
from penstock.server.child_execution import Played
from penstock.server.fanout import FannedLoop
from penstock.server.host import Host
from penstock.server.judge import TemplateJudge

FINAL: dict[str, Status] = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}
FLUSH_S = 0.05
"""Upper bound on the time before the facts of a lease holder are handed to the log, so that others can watch."""
_ENDS = frozenset({ElementEnded, SubjobEnded, RunEnded})


class Driver:
    """Drives one scope. Lease holders in this process report to it."""

    def __init__(self, host: Host, decider: Decider, context: ScopeContext, judge: TemplateJudge) -> None:
        self.host = host
        self.decider = decider
        self.context = context
        self.judge = judge
        # Called for every task of every step, so no call in between.
        self.record, self.now = host.stream.record, host.stream.now
        self.leases: dict[str, Lease] = {}
        """Every lease of this scope that is out: step runs, sub-jobs, ranges of loops."""
        self.fanouts: dict[str, FannedLoop] = {}
        self.finished = asyncio.Event()
        self._is_strict = context.net.durability is Durability.STRICT
        self._is_playbook = decider.plan.moves_tokens
        self._flush_due: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._is_ending = False
        self.is_handed_over = False
        """Whether its end has been handed to the log."""
        self._is_draining = False
        """True between a signal and the end of its grace period: running work may still end, but nothing starts."""
        self._late: list[object] = []
        """Ends that were reported after the signal and before the grace period began."""

    @property
    def state(self) -> Execution:
        return self.decider.execution

    # ---- from the first fact to the last

    def begin(self) -> None:
        self.decide(Begin())

    async def resume(self, *, failed_only: bool = False) -> None:
        """Resume the root of an execution that stopped or failed, and record that. `failed_only`: resume even a completed
        job, to rerun its failed iterations."""
        facts = self.record_decision(Resume(restarted(self.state), failed_only))
        self.host.stream.flush("running")
        self.act_on(facts)
        await self._take_up()

    async def go_on(self) -> None:
        """Continue a scope whose state was folded from the log. If it was being stopped, it is ended without calling any
        tool."""
        if self.state.status in ("completed", "cancelled"):
            self._finish()
        elif self._is_playbook:
            self.decide(Resume([]) if self.state.status == "failed" and self.context.depth else GoOn())
            await self._take_up()
        elif self.host.adopts and self.state.status == "running":
            self._adopt()
        else:
            self.decide(Resume([]))

    async def _take_up(self) -> None:
        """Continue step runs that were under way. If the execution is being stopped, end them instead."""
        if not self._is_playbook or self.state.status != "running":
            return
        if self.state.is_stopping:
            self.decide(GiveUp(self.host.end_child))
            return
        await self._grant([run for run in self.state.runs.values() if not self._is_known(run)])

    def _adopt(self) -> None:
        """Take over from another server: sub-jobs that are out are left to their holders."""
        held = {scope: subjob for scope, subjob in self.state.subjobs.items() if subjob.status == RUNNING}
        self.decider.mandate.elsewhere = set(held)
        self.decide(GoOn())
        for subjob in held.values():  # This includes sub-jobs that only wait for others: their holders still exist.
            self._start(next(iter(subjob.members.values())))
        if self.state.cancelling:
            self.host.background(self._stop("cancel"))

    async def cancel(self, reason: str) -> None:
        """Cancel the scope; returns when the holders have stopped."""
        if self.state.status != "running" or self.state.cancelling:
            return
        self.decide(Cancel(reason))
        # Make the cancel durable first: holders report that they were stopped, and a server that had lost the cancel would
        # take that for a failure.
        self.host.flush()
        await self.host.durable()
        await self._stop("cancel")

    async def halt(self, grace_s: float) -> None:
        """Stop at once; a resume continues what was under way. Work that ends within the grace period is recorded and not
        run again (rulebook 8)."""
        self.decider.mandate.starts_nothing = True
        self._is_draining = grace_s > 0
        while self._is_draining and self._late:
            self.record_decision(self._late.pop(0))
        await self._stop("interrupt", grace_s)
        self._is_draining = False
        if self.state.status not in FINAL:
            await self.host.workforce.close_job(self.context, is_over=False)
        elif not self._is_ending:
            self._is_ending = True
            await self._end()

    def interrupt(self, reason: str) -> None:
        self.record_decision(Interrupt(reason))

    async def played(self, return_step: str | None) -> Played:
        """What the caller of a child scope receives once the scope has ended."""
        state = self.state
        if state.status != "completed":
            return Played(state.status, error=state.error, kind=state.kind, exit_code=state.exit_code)
        if state.kind == "job":
            return Played("completed", summary(state), kind="job")
        return Played("completed", state.result if return_step is None else state.results.get(return_step))

    # ---- deciding

    def decide(self, stimulus: object, *, is_durable_first: bool = False) -> list[Fact]:
        if self.host.halted and not self._is_draining:
            if isinstance(stimulus, RunOver | PartOver):
                self._late.append(stimulus)
            return []
        facts = self.record_decision(stimulus)
        if type(stimulus) is PartOver:  # The runner of the loop acts on these facts.
            if self._flush_due is None:
                self._flush_soon()
            return facts
        if not self.host.halted:
            self.act_on(facts, is_durable_first=is_durable_first)
        return facts

    async def end_run(self, run: StepRun, end: RunEnded) -> None:
        """What follows is started in the task of the step that has ended: another task for every step would cost a turn of the
        event loop."""
        over = RunOver(run, end)
        if self.host.halted and not self._is_draining:
            self._late.append(over)
            return
        facts = self.record_decision(over)
        if not self.host.halted and (fresh := self._to_start(facts)):
            await self._grant(fresh)

    def record_decision(self, stimulus: object) -> list[Fact]:
        """Decide, and append the facts to the log; whoever asked acts on them."""
        now = self.now()
        facts = self.decider.decide(stimulus, now)
        self.host.stream.append(facts, now)
        if type(stimulus) is RunOver and isinstance(stimulus.run, StepRun):
            self.leases.pop(stimulus.run.place.id, None)
        return facts

    def give_up(self, run: StepRun, failure: JsonMap) -> None:
        """End a step run whose holder is gone, or that never had one."""
        self.leases.pop(run.place.id, None)
        if self.decider.state.runs.get(run.place.id) is run:
            self.decide(GiveUp(self.host.end_child, run=run, error=failure))

    # ---- loops that are fanned out

    def hand_out(self, part: FanRange) -> None:
        lease = Lease(self.context, self.decider, part)
        self.leases[lease.key] = lease
        self.host.workforce.start(lease, part.run, self)

    def ranges_of(self, run: StepRun) -> list[Lease]:
        return [one for one in self.leases.values() if isinstance(one.part, FanRange) and one.part.run is run]

    def report(self, lease: Lease, report: RangeReport) -> None:
        loop = self._loop_of(lease)
        if loop is not None and not loop.report(lease.range.elements.number, report):
            self.leases.pop(lease.key, None)

    def give_back(self, lease: Lease, reason: str = "returned") -> None:
        loop = self._loop_of(lease)
        if loop is not None:
            del self.leases[lease.key]
            loop.came_back(lease.range.elements.number, reason)

    def _loop_of(self, lease: Lease) -> FannedLoop | None:
        """None if the lease is no longer current; reports under it are then ignored."""
        loop = self.fanouts.get(lease.run.place.id)
        is_current = loop is not None and not loop.is_ending and not self.host.halted
        return loop if is_current and self.leases.get(lease.key) is lease else None

    def gives_way(self) -> bool:
        return False

    def fanout_ended(self, loop: FannedLoop, body: RunEnded) -> None:
        for lease in self.ranges_of(loop.run):
            del self.leases[lease.key]
        if self.fanouts.pop(loop.run.place.id, None) is not None:
            self.decide(RunOver(loop.run, body))

    # ---- what follows

    def act_on(self, facts: list[Fact], *, is_durable_first: bool = False) -> None:
        """Act on new facts. Components of a sub-job that is held go to its holder at once; whatever starts under a lease of
        its own waits for the disk."""
        if fresh := self._to_start(facts, is_durable_first=is_durable_first):
            self.host.background(self._grant(fresh))

    def _to_start(self, facts: list[Fact], *, is_durable_first: bool = False) -> list[Run]:
        """Act on new facts, except that what starts under a lease of its own is returned: `_grant` starts it."""
        fresh: list[Run] = []
        has_ended = False
        for fact in facts:
            body = fact.body
            has_ended = has_ended or type(body) in _ENDS
            if type(body) is RunStarted:
                fresh.append(self.decider.state.runs[fact.scope])
            elif type(body) is ComponentStarted and body.opens is None:
                run = self.decider.state.runs[fact.scope]
                lease = self.leases.get(root_subjob(run).place.id)
                if lease is None or self._is_strict or is_durable_first:
                    fresh.append(run)
                else:
                    self.host.workforce.start(lease, run, self)
        if self.state.status in FINAL:
            if not self._is_ending:
                self._is_ending = True
                self.host.background(self._end())
            return []
        if fresh:
            self.host.flush()
        elif has_ended or self.host.gathered_enough():
            # Finished work must not run again, so its end goes to the disk at once, although nobody waits for it.
            self.host.flush()
        elif facts and self._flush_due is None:
            self._flush_soon()
        if self._is_playbook and self.state.is_stopping and (self.leases or self.fanouts) and not self._is_stopping:
            self._is_stopping = True
            self.host.background(self._stop_once_kept("cancel" if self.state.cancelling else "abort"))
        return fresh

    def _flush_soon(self) -> None:
        self._flush_due = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

    def _flush_now(self) -> None:
        self._flush_due = None
        if not self.host.halted:
            self.host.flush()

    async def _grant(self, fresh: list[Run]) -> None:
        await self.host.durable()
        if not self.host.halted:
            for run in fresh:
                self._start(run)

    def _is_known(self, run: StepRun) -> bool:
        return run.place.id in self.leases or run.place.id in self.fanouts

    def _start(self, run: Run) -> None:
        if isinstance(run, StepRun):
            if self._is_known(run) or self.decider.state.runs.get(run.place.id) is not run:
                return
            if self.state.is_stopping:  # Nobody holds it yet.
                self.give_up(run, stopped(run.step, "cancel" if self.state.cancelling else "abort"))
                return
            fan = self.context.net.nodes[run.step].fan
            if fan is not None and fan.fanout is not None:
                fanout = self.fanouts[run.place.id] = FannedLoop(self, self.context.net.nodes[run.step], run)
                fanout.open()
                return
            part: StepRun | Subjob = run
        else:
            part = root_subjob(run)
        lease = self.leases.get(part.place.id)
        if lease is None or lease.part is not part:
            lease = self.leases[part.place.id] = Lease(self.context, self.decider, part)
        if self.state.cancelling:
            lease.stop_reason = "cancel"
        self.host.workforce.start(lease, run, self)

    async def _stop_once_kept(self, reason: str) -> None:
        await self.host.durable()
        await self._stop(reason)

    async def _stop(self, reason: str, grace_s: float = 0.0) -> None:
        whole = [lease for lease in self.leases.values() if not isinstance(lease.part, FanRange)]
        await asyncio.gather(
            *(self.host.workforce.stop(lease, reason, grace_s) for lease in whole),
            *(fanout.stop(reason) for fanout in list(self.fanouts.values())),
        )
        self._is_stopping = False

    async def _end(self) -> None:
        is_root = self.context.depth == 0
        self.host.stream.flush(FINAL[self.state.status] if is_root else None, is_last=is_root)
        self.is_handed_over = True
        await self.host.durable()
        is_over = self.state.status != "failed" and not self.state.failed_iterations
        await self.host.workforce.close_job(self.context, is_over=is_over)
        self._finish()

    def _finish(self) -> None:
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        self.finished.set()

    # ---- the rest of what holders ask of their server

    def flush(self) -> None:
        self.host.flush()

    def gathered_enough(self) -> bool:
        return self.host.gathered_enough()

    async def durable(self) -> None:
        await self.host.durable()

    @property
    def backlog(self) -> int:
        return self.host.backlog

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        return await self.host.play(caller, path, values, return_step, outputs)

    def broke(self, error: BaseException) -> None:
        self.host.broke(error)


def restarted(state: Execution) -> list[str]:
    """Task runs that were under way in this scope and its children."""
    found: list[str] = []
    for run in state.runs.values():
        if not isinstance(run, StepRun):
            continue
        pipelines = list(run.fan.open.values()) if run.fan is not None else []
        if run.pipeline is not None:
            pipelines.append(run.pipeline)
        for pipeline in pipelines:
            if pipeline.under_way is not None:
                found.append(pipeline.under_way)
            for child in pipeline.children.values():
                found.extend(restarted(child))
    return found


def summary(state: Execution) -> JsonMap:
    """The outcome of a job for its caller: small outputs by value, large ones by reference."""
    components: JsonMap = {}
    outputs: JsonMap = {}
    component: ComponentRun
    # Uses the state only, since the job may have ended in an earlier process.
    for scope, component in state.runs.items():
        name = scope.removeprefix(state.prefix)
        components[name] = {
            "state": component.status,
            "rows_in": component.rows_in,
            "rows_out": component.rows_out,
        }
        for port, output in component.outputs.items():
            if isinstance(output, dict) and "wanted" in output:
                outputs[f"{name}.{port}"] = output["wanted"]
    return {
        "status": state.status,
        "failed_iterations": state.failed_iterations,
        "globals": values_of(state),
        "components": components,
        "outputs": outputs,
    }
