"""The workforce of one execution whose workers are other processes: leases go out as offers, and messages come back.

A server that shuts down leaves its leases as they are: the next owner of the execution adopts them, and the messages of
their holders wait for it. Child executions are driven here: the holder of a task or component asks for one, and is told how
it ended.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.net import Node
from penstock.kernel.state import Run, StepRun
from penstock.kernel.values import JsonMap
from penstock.ports.dispatch import Message
from penstock.ports.leases import Caller, FanRange, Lease, Reports, ScopeContext
from penstock.ports.results import encode
from penstock.ports.wire import to_clock
from penstock.server.child_execution import Played
from penstock.server.driver import Driver
from penstock.server.fleet_jobs import SubjobOut, iterations_of, subjob_around
from penstock.server.leases_out import LeaseOut, LeasesOut, RangeOut, StepOut
from penstock.server.terms import needs_of, pool_of

AHEAD = 4
"""How many ranges are handed out per slot, so that no worker waits for the next one."""


@dataclass(slots=True)
class Child:
    """A child execution that a holder asked for. `asked`: who waits for its end, and the request each of them sent."""

    caller: Caller
    driver: Driver
    asked: tuple[str, JsonMap] | None = None
    task: asyncio.Task[None] | None = None


class FleetForce(LeasesOut):
    is_adopting = False
    """True while the execution is taken over from another server: leases that are out according to the log may really be
    out."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._children: dict[str, Child] = {}

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        """Hand out the lease of the run. A sub-job goes out as a whole, with the first of its components."""
        assert isinstance(reports, Driver)
        if isinstance(lease.part, FanRange):
            out: LeaseOut = RangeOut(self, lease, reports)
        elif isinstance(lease.part, StepRun):
            out = StepOut(self, lease, reports)
        elif self.key(lease.key) in self.out:
            return
        else:
            out = SubjobOut(self, lease, reports)
        self.add(out, is_adopted=self.is_adopting)

    def say(self, scope: str, line: str) -> None:
        self.say_lines([[time.time(), scope, None, line]])

    def slots(self, context: ScopeContext, node: Node) -> int:
        return self.dispatch_loop.roster.slots(pool_of(node, context.net.executor), needs_of(node, context.brought))

    def ahead(self) -> int:
        return AHEAD

    async def close_job(self, context: ScopeContext, *, is_over: bool) -> None: ...

    async def close(self) -> None:
        tasks = self.child_tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().close()

    def unlisted(self, key: str) -> LeaseOut | None:
        return iterations_of(self, key, self.host.stream.tree)

    # ---- executions within the execution

    @property
    def child_tasks(self) -> list[asyncio.Task[None]]:
        return [child.task for child in self._children.values() if child.task is not None]

    async def adopt_children(self) -> None:
        """Continue the child executions that were under way, before anybody asks for them again."""
        executions = self.host.stream.tree.executions
        known: set[str] = set()
        while True:  # Children that are continued may have such children themselves.
            fresh = [scope for scope in executions if scope and scope not in known]
            if not fresh:
                return
            known.update(fresh)
            for scope in sorted(fresh):
                run_id, state = scope.removesuffix("/"), executions[scope]
                lease = self._lease_around(run_id)
                if state.status == "running" and lease is not None:
                    await self._open(run_id, lease, {"clock": list(state.place.clock)})

    def _lease_around(self, run_id: str) -> Lease | None:
        """The lease under which a task or component runs."""
        component = self.host.stream.tree.component(run_id)
        if component is not None:
            out: LeaseOut | None = subjob_around(self, component)
        else:
            place = run_id.rpartition("/")[0]
            out = self.out.get(self.key(place)) or self.out.get(self.key(place.rpartition("[")[0]))
        return out.lease if out is not None else None

    async def asked(self, message: Message, lease: Lease, ask: JsonMap) -> None:
        """A holder that asks again, or a new holder that asks for the same, waits for the same child."""
        run_id = str(ask["run_id"])
        child = self._children.get(run_id)
        if child is None:
            try:
                child = await self._open(run_id, lease, ask)
            except Refused as error:
                if self.host.halted:  # The refusal is about this server, not about the child.
                    raise
                shown: JsonMap = {"kind": "refused", "message": error.message, "retryable": False, "hint": error.hint}
                await self._answer(message.key, ask, Played("failed", error=shown))
                return
        child.asked = (message.key, ask)
        if child.driver.finished.is_set():
            await self._answer_child(child)

    async def _open(self, run_id: str, lease: Lease, ask: Any) -> Child:
        tree, folder = self.host.stream.tree, ask.get("folder")
        runner = tree.component(run_id) or tree.pipelines[run_id.rpartition("/")[0]]
        caller = Caller(
            lease.context,
            run_id,
            to_clock(ask["clock"]),
            children=runner.children,
            stop_reason=lambda: lease.stop_reason,
            iteration=ask.get("iteration"),
            folder=Path(folder) if folder else None,
            context_group=ask.get("context"),
        )
        path, values, outputs = ask.get("path", ""), ask.get("values", {}), tuple(ask.get("outputs", ()))
        driver = await self.host.open_child(caller, path, values, ask.get("return_step"), outputs)
        child = self._children[run_id] = Child(caller, driver)
        child.task = asyncio.ensure_future(self._finish(child))
        return child

    async def _finish(self, child: Child) -> None:
        await self.host.finish_child(child.caller, child.driver)
        if child.asked is not None and child.driver.finished.is_set():
            await self._answer_child(child)

    async def _answer_child(self, child: Child) -> None:
        assert child.asked is not None
        key, ask = child.asked
        self._children.pop(child.caller.run_id, None)
        return_step = ask.get("return_step")
        await self._answer(key, ask, await child.driver.played(None if return_step is None else str(return_step)))

    async def _answer(self, key: str, ask: JsonMap, played: Played) -> None:
        answer: JsonMap = {
            "answer": ask["number"],
            "status": played.status,
            "result": played.result,
            "error": played.error,
            "kind": played.kind,
            "exit_code": played.exit_code,
        }
        await self.dispatch_loop.dispatch.send(key, encode(answer))
