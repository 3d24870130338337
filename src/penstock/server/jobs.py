"""The server side of a job: it lets sub-jobs start, each on a lease of its own, once what started them is on disk.

Inside a sub-job the holder of its lease goes from component to component without waiting for the disk: whatever it does is lost
together with it, and done again by a resume. What another sub-job depends on is durable first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.kernel.flow.decide import Ended, Flow
from penstock.kernel.flow.state import RUNNING, ComponentState, ContainerState, RegionState
from penstock.kernel.flow.views import exported, joined
from penstock.kernel.net import Durability
from penstock.kernel.state import ExecutionState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import Caller, Setting, SubjobLease
from penstock.ports.log import Status
from penstock.server.job_judge import JobJudge
from penstock.server.played import Played

if TYPE_CHECKING:
    from penstock.server.executions import ExecutionHost

FINAL: dict[str, Status] = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}
FLUSH_S = 0.05
"""What a sub-job has done is handed to the log after this time at the latest, so that others can watch."""
_ENDS = ("iteration.ok", "iteration.error", "subjob.ok", "subjob.error")


class JobDriver:
    def __init__(self, host: ExecutionHost, flow: Flow, setting: Setting) -> None:
        self.host = host
        self.flow = flow
        self.setting = setting
        self.leases: dict[str, SubjobLease] = {}
        self.finished = asyncio.Event()
        self._is_strict = flow.net.durability is Durability.STRICT
        self._flush_due: asyncio.TimerHandle | None = None
        self._is_ending = False
        self._ended = 0
        self._is_draining = False
        """Between a signal and the end of its grace: what is under way may still end, and nothing starts."""
        self._late: list[tuple[ComponentState, Ended]] = []
        """Ends that were told after the signal and before the grace began."""

    @property
    def state(self) -> ExecutionState:
        return self.flow.state

    # ---- driver

    async def begin(self) -> None:
        self.flow.go_on()
        self.dispatch()

    async def resume(self, *, failed_only: bool = False) -> None:
        self.flow.resume(failed_only=failed_only)
        self.host.stream.flush("running")
        self.dispatch()

    async def go_on(self) -> None:
        if self.state.status in ("completed", "cancelled"):
            self._settle()
            return
        if self.host.adopts and self.state.status == "running":
            self._adopt()
            return
        self.flow.resume()
        self.dispatch()

    def _adopt(self) -> None:
        """Take over from another server: the sub-jobs that are out are left to whoever holds them."""
        held = {scope: region for scope, region in self.flow.root.regions.items() if region.status == RUNNING}
        self.flow.mandate.elsewhere = set(held)
        self.flow.go_on()
        for region in held.values():  # Also one that only waits for others: its holder is still there.
            self._start(next(iter(region.members.values())))
        self.dispatch()
        if self.state.cancelling:
            self.host.background(self._stop("cancel"))

    async def cancel(self, reason: str) -> None:
        if self.state.status != "running" or self.state.cancelling:
            return
        self.flow.cancel(reason)
        self.dispatch()
        if self.host.stops_holders:
            # Who is told to stop says so: to a server that has lost the cancel, that would be a failure.
            self.host.flush()
            await self.host.durable()
            await self._stop("cancel")

    async def halt(self, grace_s: float) -> None:
        """A sub-job that comes to its end within the grace has its checkpoint, and is not run again (rulebook 8)."""
        self.flow.hold()
        self._is_draining = grace_s > 0
        while self._is_draining and self._late:
            self.flow.end(*self._late.pop(0))
        await self._stop("interrupt", grace_s)
        self._is_draining = False
        if self.state.status not in FINAL:
            await self.host.workforce.close_job(self.setting, is_over=False)
        elif not self._is_ending:
            self._is_ending = True
            await self._end()

    def interrupt(self, reason: str) -> None:
        self.flow.interrupt(reason)

    async def played(self, return_step: str | None) -> Played:
        state = self.state
        if state.status != "completed":
            return Played(state.status, error=state.error, kind="job", exit_code=state.exit_code)
        return Played("completed", summary(self.flow), kind="job")

    async def _stop(self, reason: str, grace_s: float = 0.0) -> None:
        held = list(self.leases.values())
        await asyncio.gather(*(self.host.workforce.stop_subjob(lease, reason, grace_s) for lease in held))

    # ---- reports

    def ended(self, lease: SubjobLease, component: ComponentState, end: Ended) -> None:
        if self.host.halted:
            if self._is_draining:
                self.flow.end(component, end)
            else:
                self._late.append((component, end))
            return
        self.flow.end(component, end)
        self.dispatch()

    def iterate(
        self, lease: SubjobLease, component: ComponentState, total: int | None, items: Json, parallel: int, mode: str
    ) -> None:
        if self.host.halted:
            return
        self.flow.iterate(component, total, items, parallel, mode)
        # An iteration may take away what its elements were found by, so a resume needs the list of them. Inside another
        # iteration nothing is kept but its end: there the list is made anew.
        self.dispatch(is_durable_first=items is not None and not _is_iterated(component))

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        return await self.host.play(caller, path, values, return_step, outputs)

    async def durable(self) -> None:
        await self.host.durable()

    @property
    def backlog(self) -> int:
        return self.host.backlog

    def now(self) -> float:
        return self.host.now()

    def broke(self, error: BaseException) -> None:
        self.host.broke(error)

    # ---- what follows

    def dispatch(self, *, is_durable_first: bool = False) -> None:
        """Components of a sub-job that is held go to its holder at once; a sub-job that has just begun waits for the disk."""
        fresh: list[ComponentState] = []
        while self.flow.ready:
            component = self.flow.ready.popleft()
            lease = self.leases.get(root_region(component).place.id)
            if lease is None or self._is_strict or is_durable_first:
                fresh.append(component)
            else:
                self.host.workforce.start_component(lease, component, self)
        if self.state.status in FINAL:
            if not self._is_ending:
                self._is_ending = True
                self.host.background(self._end())
        elif fresh:
            self.host.background(self._grant(fresh))
        else:
            self._flush_soon()

    def _flush_soon(self) -> None:
        counts = self.host.stream.counts
        ended = sum(counts[kind] for kind in _ENDS)
        if ended != self._ended or self.host.gathered_enough():
            # What has ended is not to be run again, so its end goes to the disk at once; nobody waits for it.
            self._ended = ended
            self.host.flush()
        elif self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

    def _flush_now(self) -> None:
        self._flush_due = None
        if not self.host.halted:
            self.host.flush()

    async def _grant(self, fresh: list[ComponentState]) -> None:
        await self.host.durable()
        if self.host.halted:
            return
        for component in fresh:
            self._start(component)

    def _start(self, component: ComponentState) -> None:
        region = root_region(component)
        lease = self.leases.get(region.place.id)
        if lease is None or lease.region is not region:
            lease = self.leases[region.place.id] = SubjobLease(self.setting, self.flow, region)
        if self.state.cancelling:
            lease.stop_reason = "cancel"
        self.host.workforce.start_component(lease, component, self)

    def end_child(self, component: ComponentState) -> None:
        """Nobody drives what the component runs any more: end that, too."""
        self.host.end_child_of(component)

    async def _end(self) -> None:
        is_root = self.setting.depth == 0
        self.host.stream.flush(FINAL[self.state.status] if is_root else None)
        await self.host.durable()
        is_over = self.state.status != "failed" and not self.state.failed_iterations
        await self.host.workforce.close_job(self.setting, is_over=is_over)
        self._settle()

    def _settle(self) -> None:
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        self.finished.set()


def job_driver(host: ExecutionHost, state: ExecutionState, setting: Setting) -> JobDriver:
    stream = host.stream
    flow = Flow(stream.tree, state, setting.net, JobJudge(setting, stream.now), stream.record)
    flow.witness = host.witness
    return JobDriver(host, flow, setting)


def root_region(component: ComponentState) -> RegionState:
    """The sub-job of the job itself that a component lies in, however deep."""
    region = component.region
    while region.container.opener is not None:
        region = region.container.opener.region
    return region


def _is_iterated(component: ComponentState) -> bool:
    """Does it lie in the body of an iterator, however deep?"""
    container: ContainerState | None = component.region.container
    while container is not None:
        if container.index is not None:
            return True
        container = container.opener.region.container if container.opener is not None else None
    return False


def summary(flow: Flow) -> JsonMap:
    """What a job came to, for whoever called it: small outputs as they are, large ones by reference."""
    root = flow.root  # From its state alone: it may have ended in an earlier process.
    components: JsonMap = {}
    outputs: JsonMap = {}
    for scope, component in root.components.items():
        name = scope.removeprefix(root.prefix)
        components[name] = {
            "state": component.status,
            "rows_in": component.rows_in,
            "rows_out": component.rows_out,
        }
        for port, output in component.outputs.items():
            if isinstance(output, dict) and "wanted" in output:
                outputs[f"{name}.{port}"] = output["wanted"]
    return {
        "status": flow.state.status,
        "failed_iterations": flow.state.failed_iterations,
        "globals": final_globals(flow.state),
        "components": components,
        "outputs": outputs,
    }


def final_globals(state: ExecutionState) -> JsonMap:
    """All globals of a job, as they stand when everything that has closed so far is put together."""
    if state.flow is None:
        return {}
    view = joined(exported(region.out()) for region in state.flow.regions.values())
    return view.shared_values()
