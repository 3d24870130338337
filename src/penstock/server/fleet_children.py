"""Executions within an execution whose tasks are run by other processes: a holder asks for one, and is told how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.dispatch import Note
from penstock.ports.leases import Caller, Lease
from penstock.ports.results import encode
from penstock.ports.wire import to_clock
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.driver import Driver
from penstock.server.played import Played

if TYPE_CHECKING:
    from penstock.server.executions import ExecutionHost


@dataclass(slots=True)
class Child:
    """An execution that a holder asked for. `asked`: who waits for its end, and in which words he asked."""

    caller: Caller
    driver: Driver
    asked: tuple[str, JsonMap] | None = None
    task: asyncio.Task[None] | None = None


class ChildrenOut:
    def __init__(
        self,
        dispatch_loop: DispatchLoop,
        host: Callable[[], ExecutionHost],
        lease_around: Callable[[str], Lease | None],
    ) -> None:
        """`lease_around`: the lease within which a task or component runs."""
        self._office = dispatch_loop
        self._host = host
        self._lease_around = lease_around
        self._children: dict[str, Child] = {}

    async def close(self) -> None:
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [child.task for child in self._children.values() if child.task is not None]

    async def adopt(self) -> None:
        """Go on with the executions within this one that were under way, before anybody asks for them again."""
        host = self._host()
        known: set[str] = set()
        while True:  # Those that are taken up may have such children of their own.
            fresh = [scope for scope, state in host.stream.tree.executions.items() if scope and scope not in known]
            if not fresh:
                return
            known.update(fresh)
            for scope in sorted(fresh):
                run_id = scope.removesuffix("/")
                state = host.stream.tree.executions[scope]
                lease = self._lease_around(run_id)
                if state.status == "running" and lease is not None:
                    await self._open(run_id, lease, {"clock": list(state.place.clock)})

    async def play(self, note: Note, lease: Lease, ask: JsonMap) -> None:
        """A holder asks for a child execution. One that asks again, or takes over from one who asked, waits for the same one."""
        run_id = str(ask["run_id"])
        child = self._children.get(run_id)
        if child is None:
            try:
                child = await self._open(run_id, lease, ask)
            except Refused as error:
                if self._host().halted:  # It is this server that was refused, and not the child.
                    raise
                shown: JsonMap = {"kind": "refused", "message": error.message, "retryable": False, "hint": error.hint}
                await self._answer(note.key, ask, Played("failed", error=shown))
                return
        child.asked = (note.key, ask)
        if child.driver.finished.is_set():
            await self._tell(child)

    async def _open(self, run_id: str, lease: Lease, ask: Any) -> Child:
        host = self._host()
        tree, folder = host.stream.tree, ask.get("folder")
        component = tree.component(run_id)
        caller = Caller(
            lease.setting,
            run_id,
            to_clock(ask["clock"]),
            children=(component or tree.pipelines[run_id.rpartition("/")[0]]).children,
            stop_reason=lambda: lease.stop_reason,
            iteration=ask.get("iteration"),
            folder=Path(folder) if folder else None,
            context=ask.get("context"),
        )
        outputs = tuple(ask.get("outputs", ()))
        driver = await host.open_child(
            caller, ask.get("path", ""), ask.get("values", {}), ask.get("return_step"), outputs
        )
        child = Child(caller, driver)
        self._children[run_id] = child
        child.task = asyncio.ensure_future(self._finish(child))
        return child

    async def _finish(self, child: Child) -> None:
        await self._host().finish_child(child.caller, child.driver)
        if child.asked is not None and child.driver.finished.is_set():
            await self._tell(child)

    async def _tell(self, child: Child) -> None:
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
        await self._office.dispatch.tell(key, encode(answer))
