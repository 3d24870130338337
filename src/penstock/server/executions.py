"""Executions under way. The server side of one: it decides, makes the decision durable, and only then lets anything follow.

A `ScopeDriver` drives one execution scope, the root or a sub-playbook; an `ExecutionHost` owns the stream they share. Nothing a
run depends on may be lost, so a run is dispatched only when the facts that scheduled it are on disk; and one append carries a
whole decision, so a crash leaves either all of it or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.kernel.decide import Decider, opening
from penstock.kernel.errors import Bug, PenstockError, Refused
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.flow.decide import Flow
from penstock.kernel.net import Net
from penstock.kernel.places import ROOT, Place, child_place
from penstock.kernel.state import ExecutionState, PipelineState, RunState
from penstock.kernel.values import Json, JsonMap, merge_deeply
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Caller, Keys, Lease, Setting, Workforce
from penstock.ports.log import Status
from penstock.ports.results import loader, view
from penstock.server.abandon import forsake, give_up
from penstock.server.documents import Documents, Pinned
from penstock.server.job_judge import JobJudge
from penstock.server.jobs import JobDriver, Played, asked_for
from penstock.server.judge import TemplateJudge
from penstock.server.stream import Stream

MAX_DEPTH = 32
FINAL: dict[str, Status] = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}


class Driver(Protocol):
    """Whoever drives one execution scope: a playbook's or a job's."""

    setting: Setting
    finished: asyncio.Event

    @property
    def state(self) -> ExecutionState: ...

    async def begin(self) -> None: ...

    async def go_on(self) -> None:
        """Take up a scope whose state was folded from the log."""
        ...

    async def resume(self) -> None:
        """Take up the root of an execution that stopped or failed, and say so in the log."""
        ...

    async def cancel(self, reason: str) -> None: ...

    async def halt(self, grace_s: float) -> None:
        """Stop where we are, recording nothing: what is under way will be taken up by a resume."""
        ...

    def interrupt(self, reason: str) -> None: ...

    async def played(self, return_step: str | None) -> Played:
        """What the caller of a child scope gets, once that has ended."""
        ...


class ScopeDriver:
    def __init__(self, host: ExecutionHost, decider: Decider, setting: Setting) -> None:
        self.host = host
        self.decider = decider
        self.setting = setting
        self.leases: dict[str, Lease] = {}
        self.finished = asyncio.Event()
        self._stopping = False

    @property
    def state(self) -> ExecutionState:
        return self.decider.state

    async def begin(self) -> None:
        self.decider.begin()
        await self.advance()

    async def resume(self) -> None:
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
        scope = lease.run.place.id
        self.leases.pop(scope, None)
        self.decider.end_run(scope, body, counter)
        await self.advance()

    async def advance(self) -> None:
        """Make what was decided durable, then let it take effect."""
        fresh = [run for run in self.state.runs.values() if run.place.id not in self.leases]
        granted = [self._grant(run) for run in fresh]
        is_root = self.setting.depth == 0
        self.host.stream.flush(FINAL.get(self.state.status) if is_root else None)
        try:
            await self.host.durable()
        except BaseException:
            # Nobody has them yet: whoever goes on from here grants these runs anew, be it to have them stopped.
            for lease in granted:
                self.leases.pop(lease.run.place.id, None)
            raise
        if self.host.halted:
            return
        for lease in granted:
            self.host.workforce.start(lease, self.host)
        is_to_stop = (self.state.aborting or self.state.cancelling) and self.host.stops_holders
        if is_to_stop and self.leases and not self._stopping:
            self._stopping = True
            self.host.background(self._stop_leases("cancel" if self.state.cancelling else "abort"))
        if self.state.status in FINAL:
            self.finished.set()

    def _grant(self, run: RunState) -> Lease:
        lease = Lease(self.setting, self.decider.net.nodes[run.step], run)
        self.leases[run.place.id] = lease
        return lease

    async def _stop_leases(self, reason: str, grace_s: float = 0.0) -> None:
        held = list(self.leases.values())
        await asyncio.gather(*(self.host.workforce.stop(lease, reason, grace_s) for lease in held))
        self._stopping = False

    async def cancel(self, reason: str) -> None:
        if self.state.status == "running" and not self.state.cancelling:
            self.decider.cancel(reason)
            await self.advance()

    async def halt(self, grace_s: float) -> None:
        """Stop where we are, recording nothing: what is under way will be taken up by a resume."""
        await self._stop_leases("interrupt", grace_s)


class ExecutionHost:
    """One execution tree under way, and what its lease holders report to."""

    stops_holders = True
    """Are holders told to stop when the execution is cancelled or aborted?"""

    def __init__(
        self,
        execution_id: str,
        stream: Stream,
        workforce: Workforce,
        documents: Documents,
        blobs: BlobStore,
        unlock: Callable[[Net, Any, Pinned], Awaitable[Keys]],
    ) -> None:
        self.execution_id = execution_id
        self.stream = stream
        self.workforce = workforce
        self.documents = documents
        self.blobs = blobs
        self._halt = asyncio.Event()
        self.error: BaseException | None = None
        self._unlock = unlock
        self._drivers: dict[str, Driver] = {}
        self._keychains: list[Keys] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    @property
    def halted(self) -> bool:
        """Nothing is recorded any more: the run was interrupted, or the engine broke."""
        return self._halt.is_set()

    # ---- opening

    async def begin_root(
        self,
        document: Pinned,
        workload: JsonMap,
        trace_id: str | None = None,
        *,
        outputs: tuple[str, ...] = (),
        sample: int | None = None,
    ) -> Driver:
        net, _ = self.documents.compile(document)
        keys = await self._unlock(net, workload, document)
        workload = self._hidden(workload, keys)
        self.record(opening(net, ROOT, workload, trace_id=trace_id))
        root = self._driver(document, net, workload, keys, self.stream.tree.root, None, 0, outputs, sample)
        await root.begin()
        return root

    async def take_up_root(self, document: Pinned) -> Driver:
        """The root of an execution whose state was folded from the log."""
        net, _ = self.documents.compile(document)
        state = self.stream.tree.root
        keys = await self._unlock(net, state.workload, document)
        return self._driver(document, net, state.workload, keys, state, None, 0)

    def _driver(
        self,
        document: Pinned,
        net: Net,
        workload: Any,
        keys: Keys,
        state: ExecutionState,
        iter_parent: Any,
        depth: int,
        outputs: tuple[str, ...] = (),
        sample: int | None = None,
    ) -> Driver:
        _, compiled = self.documents.compile(document)
        self._keychains.append(keys)
        setting = Setting(
            self.execution_id,
            net,
            state,
            workload,
            keys,
            document.folder,
            document.file,
            compiled.places.lines,
            iter_parent,
            depth,
            asked_for(net, outputs) if net.kind == "job" else frozenset(),
            sample,
            _files(compiled) if net.kind == "job" else {},
        )
        driver: Driver
        if net.kind == "job":
            flow = Flow(self.stream.tree, state, net, JobJudge(setting, self.stream.now), self.stream.record)
            driver = JobDriver(self, flow, setting)
        else:
            decider = Decider(self.stream.tree, state, net, TemplateJudge(setting), self.stream.record)
            driver = ScopeDriver(self, decider, setting)
        self._drivers[state.place.id] = driver
        return driver

    def net_of(self, document: Json) -> Net:
        return self.documents.compile(Pinned.from_mapping(document))[0]

    def _hidden(self, workload: Any, keys: Keys) -> Any:
        """Inputs are recorded as they are, so a secret among them is taken out before anything sees them."""
        for known in [*self._keychains, keys]:
            workload = known.hide_tree(workload)
        return workload

    def hide(self, text: str) -> str:
        for keys in self._keychains:
            text = keys.hide(text)
        return text

    # ---- running

    async def until_over(self, driver: Driver) -> None:
        """Wait for the root's end, an interruption, or an error of the engine, which is raised here."""
        await _first_of(driver.finished, self._over)
        if self.error is not None:
            raise self.error

    def background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.broke(cast(BaseException, task.exception()))

    def broke(self, error: BaseException) -> None:
        """The engine cannot go on: the first reason counts, and everything under way is let go."""
        if self.error is None:
            self.error = error
        self._halt.set()
        self._over.set()

    async def interrupt(self, reason: str, grace_s: float) -> None:
        if self.halted:
            return
        self._halt.set()
        root = self._drivers[""]
        await asyncio.gather(*(driver.halt(grace_s) for driver in list(self._drivers.values())))
        if root.state.status == "running":
            root.interrupt(reason)
            self.stream.flush("interrupted")
            await self.stream.durable()
        self._over.set()

    async def let_go(self) -> None:
        """After an error of the engine: stop all holders without recording anything."""
        self._halt.set()
        await asyncio.gather(*(driver.halt(0.0) for driver in list(self._drivers.values())))

    # ---- Reports

    def record(self, fact: Fact) -> None:
        self.stream.record(fact)

    def flush(self) -> None:
        self.stream.flush()

    async def durable(self) -> None:
        """What cannot be made durable stops the whole execution, whoever it was that waited for it."""
        try:
            await self.stream.durable()
        except PenstockError as error:
            self.broke(error)
            raise

    @property
    def backlog(self) -> int:
        return self.stream.backlog

    def gathered_enough(self) -> bool:
        return self.stream.gathered_enough()

    def now(self) -> float:
        return self.stream.now()

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None:
        driver = self._drivers[lease.setting.scope.place.id]
        assert isinstance(driver, ScopeDriver)
        await driver.end(lease, body, counter)

    def forsake(self, pipeline: PipelineState) -> None:
        forsake(self.stream.tree, pipeline, self.stream.record, self._net_of)

    def _net_of(self, document: Json) -> Net:
        return self.documents.compile(Pinned.from_mapping(document))[0]

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        driver, is_new = await self._child(caller, path, values, outputs)
        try:
            await (driver.begin() if is_new else driver.go_on())
            await driver.finished.wait()
        except asyncio.CancelledError:
            await _undisturbed(self._let_child_go(caller, driver))
            raise
        finally:
            self._drivers.pop(driver.state.place.id, None)
        return await driver.played(return_step)

    async def _child(self, caller: Caller, path: str, values: JsonMap, outputs: tuple[str, ...]) -> tuple[Driver, bool]:
        """The child scope of the caller, and whether it is new: a resume may find it in any state, ended too."""
        depth = caller.setting.depth + 1
        if depth > MAX_DEPTH:
            raise Refused(f"executions are nested deeper than {MAX_DEPTH}", hint="does this document call itself?")
        if not caller.run_id:
            raise Bug("a child execution was asked for while nothing is under way")
        place = child_place(caller.run_id, caller.clock)
        known = self.stream.tree.executions.get(place.id)
        document = Pinned.from_mapping(known.document) if known else self._document(place, path, caller.setting.folder)
        net, _ = self.documents.compile(document)
        given = known.workload if known else merge_deeply(net.workload, values)
        keys = await self._unlock(net, given, document)
        if known is None:
            given = self._hidden(given, keys)
            pinned = self.blobs.put([document.as_kept().to_bytes()], schema_hint={"type": "object"})
            kept = cast(Json, view(pinned, loader(self.blobs)))
            failed = next((name for name, child in caller.children.items() if child.unhandled), None)
            self.record(opening(net, place, given, parent=caller.run_id, document=kept, continues=failed))
        state = self.stream.tree.executions[place.id]
        return self._driver(document, net, given, keys, state, caller.iteration, depth, outputs), known is None

    def _document(self, place: Place, path: str, folder: Path) -> Pinned:
        """The document that a sub-playbook is pinned to when it starts."""
        return self.documents.find(path, folder)

    async def _let_child_go(self, caller: Caller, driver: Driver) -> None:
        reason = caller.stop_reason()
        if self.halted or reason == "interrupt":
            await driver.halt(0.0)
            return
        try:
            await driver.cancel(f"what runs it was stopped ({reason or 'time-out'})")
            await _first_of(driver.finished, self._halt)
        except PenstockError:
            await driver.halt(0.0)
        if (
            not driver.finished.is_set()
        ):  # The whole run is being let go: nothing more is recorded, so nothing will finish.
            await driver.halt(0.0)


def _files(compiled: Any) -> dict[str, str]:
    return {name: place.file for name, place in compiled.places.steps.items() if place.file != compiled.file}


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Wait to the end, however often the waiting is cancelled: the caller is being stopped already, and will stop."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


async def _first_of(*events: asyncio.Event) -> None:
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()


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
