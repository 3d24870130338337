"""Drives one playbook scope, the root or a sub-playbook: what it decides is made durable, and only then do runs start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.kernel.decide import Decider
from penstock.kernel.facts import RunEnded
from penstock.kernel.state import ExecutionState, RunState
from penstock.kernel.values import JsonMap
from penstock.ports.leases import Lease, Setting
from penstock.ports.log import Status
from penstock.ports.undoing import unless_done
from penstock.server.abandon import end_run, give_up
from penstock.server.fanouts import FanoutDriver
from penstock.server.judge import TemplateJudge
from penstock.server.played import Played

if TYPE_CHECKING:
    from penstock.server.executions import ExecutionHost

FINAL: dict[str, Status] = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}


class ScopeDriver:
    def __init__(self, host: ExecutionHost, decider: Decider, setting: Setting, judge: TemplateJudge) -> None:
        self.host = host
        self.decider = decider
        self.setting = setting
        self.judge = judge
        self.leases: dict[str, Lease] = {}
        self.fanouts: dict[str, FanoutDriver] = {}
        self.finished = asyncio.Event()
        self._stopping = False

    @property
    def state(self) -> ExecutionState:
        return self.decider.state

    async def begin(self) -> None:
        self.decider.begin()
        await self.advance()

    async def resume(self, *, failed_only: bool = False) -> None:
        self.decider.resume(restarted(self.state))
        self.host.stream.flush("running")
        await self.go_on()

    def interrupt(self, reason: str) -> None:
        self.decider.interrupt(reason)

    async def played(self, return_step: str | None) -> Played:
        state = self.state
        if state.status != "completed":
            return Played(state.status, error=state.error)
        return Played("completed", state.result if return_step is None else state.results.get(return_step))

    async def go_on(self) -> None:
        """Take up a scope whose state was folded from the log. One that was being stopped is ended; no tool is called for it."""
        if self.state.status == "failed" and self.setting.depth:  # Its caller runs again, and so does what failed here.
            self.decider.resume([])
        self.decider.react()
        if self.state.status == "running" and (self.state.cancelling or self.state.aborting):
            give_up(self.decider, self.host.net_of)
        await self.advance()

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None:
        self.ended(lease, body, counter)
        await self.advance()

    def ended(self, lease: Lease, body: RunEnded, counter: int) -> None:
        """Record the end of a run and what follows from it; `advance` lets that take effect."""
        scope = lease.run.place.id
        self.leases.pop(scope, None)
        self.decider.end_run(scope, body, counter)

    async def end_fanout(self, fanout: FanoutDriver, body: RunEnded) -> None:
        scope = fanout.run.place.id
        if self.fanouts.pop(scope, None) is not None:
            self.decider.end_run(scope, body, fanout.run.counter)
            await self.advance()

    async def give_up(self, lease: Lease, failure: JsonMap) -> None:
        """End a run whose holder is gone, or never was."""
        run = lease.run
        if self.leases.pop(run.place.id, None) is not None:
            end_run(self.decider, run, failure, self.host.net_of)
            await self.advance()

    async def advance(self) -> None:
        """Make what was decided durable, then let it take effect."""
        known = self.leases.keys() | self.fanouts.keys()
        fresh = [run for run in self.state.runs.values() if run.place.id not in known]
        fanned = [self._fan_out(run) for run in fresh if self._is_fanned_out(run)]
        granted = [self._grant(run) for run in fresh if not self._is_fanned_out(run)]
        is_root = self.setting.depth == 0
        self.host.stream.flush(FINAL.get(self.state.status) if is_root else None)

        def take_back() -> None:
            """Nobody has them yet: whoever goes on from here grants these runs anew, be it to have them stopped."""
            for lease in granted:
                self.leases.pop(lease.run.place.id, None)
            for fanout in fanned:
                self.fanouts.pop(fanout.run.place.id, None)

        with unless_done(take_back):
            await self.host.durable()
        if self.host.halted:
            return
        for lease in granted:
            self.host.workforce.start(lease, self.host)
        for fanout in fanned:
            fanout.open()
        is_to_stop = (self.state.aborting or self.state.cancelling) and self.host.stops_holders
        if is_to_stop and (self.leases or self.fanouts) and not self._stopping:
            self._stopping = True
            self.host.background(self._stop_leases("cancel" if self.state.cancelling else "abort"))
        if self.state.status in FINAL:
            self.finished.set()

    def _is_fanned_out(self, run: RunState) -> bool:
        fan = self.decider.net.nodes[run.step].fan
        return fan is not None and fan.fanout is not None

    def _fan_out(self, run: RunState) -> FanoutDriver:
        fanout = FanoutDriver(self, self.decider.net.nodes[run.step], run)
        self.fanouts[run.place.id] = fanout
        return fanout

    def _grant(self, run: RunState) -> Lease:
        lease = Lease(self.setting, self.decider.net.nodes[run.step], run)
        self.leases[run.place.id] = lease
        return lease

    async def _stop_leases(self, reason: str, grace_s: float = 0.0) -> None:
        held = list(self.leases.values())
        await asyncio.gather(
            *(self.host.workforce.stop(lease, reason, grace_s) for lease in held),
            *(fanout.stop(reason) for fanout in list(self.fanouts.values())),
        )
        self._stopping = False

    async def cancel(self, reason: str) -> None:
        if self.state.status == "running" and not self.state.cancelling:
            self.decider.cancel(reason)
            await self.advance()

    async def halt(self, grace_s: float) -> None:
        """Stop where we are, recording nothing: what is under way will be taken up by a resume."""
        await self._stop_leases("interrupt", grace_s)


def restarted(state: ExecutionState) -> list[str]:
    """Task runs that were under way, in this scope and below."""
    found: list[str] = []
    for run in state.runs.values():
        pipelines = list(run.loop.open.values()) if run.loop is not None else []
        if run.pipeline is not None:
            pipelines.append(run.pipeline)
        for pipeline in pipelines:
            if pipeline.under_way is not None:
                found.append(pipeline.under_way)
            for child in pipeline.children.values():
                found.extend(restarted(child))
    return found
