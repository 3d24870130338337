"""Running executions: an `ExecutionHost` owns the stream of one run, and the drivers of its root and of all its children."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from penstock.dialects.reader import did_you_mean, listed
from penstock.kernel.decide import Cancel, Decider, opening
from penstock.kernel.errors import Bug, PenstockError, Refused
from penstock.kernel.facts import Fact
from penstock.kernel.judge import Unasked
from penstock.kernel.kept import opened
from penstock.kernel.net import Net
from penstock.kernel.places import ROOT, Place, child_place
from penstock.kernel.state import Execution, State
from penstock.kernel.values import Json, JsonMap, merge_deeply
from penstock.ports.blobs import BlobStore
from penstock.ports.folders import address_of
from penstock.ports.kept_state import document_key
from penstock.ports.leases import Caller, Keys, Lease, ScopeContext, Workforce
from penstock.ports.results import loader, view
from penstock.ports.undoing import unless_done
from penstock.server.child_execution import Played, asked_for, context_group, failed_before, going_on
from penstock.server.documents import Documents, Pinned
from penstock.server.driver import Driver
from penstock.server.inputs import require_known
from penstock.server.judge import TemplateJudge
from penstock.server.stream import Stream

MAX_DEPTH = 32
INCREMENTAL = "incremental"
"""The parameter of readers that continue from where the last run ended."""
FLUSH_S = 0.05


class ExecutionHost:
    """One running execution tree. Its lease holders report to it."""

    adopts = False
    """Whether the execution is being taken over from another server, whose leases may still be out."""

    def __init__(
        self,
        execution_id: str,
        stream: Stream,
        workforce: Workforce,
        documents: Documents,
        blobs: BlobStore,
        resolve_keychain: Callable[[Net, Any, Pinned], Awaitable[Keys]],
    ) -> None:
        self.execution_id = execution_id
        self.stream = stream
        self.workforce = workforce
        self.documents = documents
        self.blobs = blobs
        self._halt = asyncio.Event()
        self.error: BaseException | None = None
        self._resolve_keychain = resolve_keychain
        self._drivers: dict[str, Driver] = {}
        self._pinned: dict[str, Pinned] = {}
        self._keychains: list[Keys] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._flush_due: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()

    @property
    def halted(self) -> bool:
        """Whether the run was interrupted or the engine broke. Nothing new starts; within a grace period, ends are still
        recorded."""
        return self._halt.is_set()

    @property
    def is_handed_over(self) -> bool:
        """Whether the end of the root has been handed to the log: nothing can be recorded after it."""
        return "" in self._drivers and self._drivers[""].is_handed_over

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
        net, _ = await self.documents.prepared(document)
        keys = await self._resolve_keychain(net, workload, document)
        workload = self._hidden(workload, keys)
        state = await self._kept(net, document, ROOT)
        self.record(opening(net, ROOT, workload, trace_id=trace_id, state=state))
        root = self._driver(
            document,
            net,
            workload,
            keys=keys,
            state=self.stream.tree.root,
            iter_parent=None,
            depth=0,
            outputs=outputs,
            sample=sample,
        )
        root.begin()
        return root

    async def _kept(self, net: Net, document: Pinned, place: Place) -> Json:
        """The values the document has kept from earlier runs, laid over its initial values; None if it keeps nothing."""
        if net.state is None and not keeps_watermarks(net):
            return None
        name = document_key(document.file)
        values, watermarks = await asyncio.to_thread(self.stream.kept, name)
        return opened(name, {**(net.state or {}), **values}, watermarks)

    async def take_up_root(self, document: Pinned, outputs: tuple[str, ...] = ()) -> Driver:
        """Continue the root of an execution whose state was folded from the log."""
        net, _ = await self.documents.prepared(document)
        state = self.stream.tree.root
        keys = await self._resolve_keychain(net, state.workload, document)
        return self._driver(
            document, net, state.workload, keys=keys, state=state, iter_parent=None, depth=0, outputs=outputs
        )

    def _driver(
        self,
        document: Pinned,
        net: Net,
        workload: Any,
        keys: Keys,
        state: Execution,
        iter_parent: Any,
        depth: int,
        outputs: tuple[str, ...] = (),
        sample: int | None = None,
    ) -> Driver:
        self._keychains.append(keys)
        context = context_of(
            self.documents,
            document,
            self.execution_id,
            net,
            state,
            workload=workload,
            keychain=keys,
            iter_parent=iter_parent,
            depth=depth,
            outputs=asked_for(net, outputs) if net.kind == "job" else frozenset(),
            sample=sample,
        )
        judge = TemplateJudge(context, self._say)
        driver = Driver(self, Decider(self.stream.tree, state, net, judge), context, judge)
        self._drivers[state.place.id] = driver
        self._pinned[state.place.id] = document
        return driver

    def _say(self, scope: str, line: str) -> None:
        self.workforce.say(scope, self.hide(line))

    def net_of(self, document: Json) -> Net:
        return self.documents.compile(Pinned.from_mapping(document))[0]

    def _hidden(self, workload: Any, keys: Keys) -> Any:
        """Inputs are recorded in clear, so secrets are removed from them before anything else sees them."""
        for known in [*self._keychains, keys]:
            workload = known.hide_tree(workload)
        return workload

    def hide(self, text: str) -> str:
        for keys in self._keychains:
            text = keys.hide(text)
        return text

    # ---- running

    async def until_over(self, driver: Driver) -> None:
        """Wait until the root has ended, or the run was interrupted. Raises the error if the engine broke."""
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
        """The engine cannot go on: keep the first reason, and stop everything that is under way."""
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

    def over(self) -> None:
        """End the wait of `until_over`."""
        self._over.set()

    async def let_go(self) -> None:
        """Stop driving without recording anything: the server shuts down or has lost the execution, or the engine broke."""
        self._halt.set()
        await asyncio.gather(*(driver.halt(0.0) for driver in list(self._drivers.values())))

    # ---- Reports

    def record(self, fact: Fact) -> None:
        self.stream.record(fact)

    def flush(self) -> None:
        self.stream.flush()

    def flush_soon(self) -> None:
        """Hand recorded facts to the log shortly, for those who watch; nobody waits for it."""
        if self.stream.gathered_enough():
            self.flush()
        elif self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

    def _flush_now(self) -> None:
        self._flush_due = None
        if not self.halted:
            self.flush()

    async def durable(self) -> None:
        """Wait until everything recorded is durable. A failure to write stops the whole execution, whoever was waiting."""
        try:
            await self.stream.durable()
        except PenstockError as error:
            self.broke(error)
            raise

    async def confirm(self) -> None:
        """Whether this is still the owner of the execution. If not, the execution stops here."""
        try:
            await self.stream.confirm()
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

    def driver_of(self, lease: Lease) -> Driver | None:
        return self._drivers.get(lease.context.scope.place.id)

    def document_of(self, context: ScopeContext) -> Json:
        """The document that a scope is pinned to, in a form that other machines can read."""
        return self._pinned[context.scope.place.id].as_json()

    def end_child(self, child: Execution) -> list[Fact]:
        return end_child(self.stream.tree, child, self.net_of, self.now())

    def end_child_of(self, run_id: str) -> None:
        """End the child of a task that its holder gave up; holders drive no children themselves."""
        child = self.stream.tree.executions.get(f"{run_id}/")
        if child is not None and child.status == "running":
            now = self.now()
            self.stream.append(self.end_child(child), now)

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        driver = await self.open_child(caller, path, values, return_step, outputs)
        await self.finish_child(caller, driver)
        return await driver.played(return_step)

    async def open_child(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Driver:
        """Start the execution that the caller asks for, or continue the one it asked for before."""
        driver, is_new = await self._child(caller, path, values, return_step, outputs)
        with unless_done(lambda: self._drivers.pop(driver.state.place.id, None)):
            if is_new:
                driver.begin()
            else:
                await driver.go_on()
        return driver

    async def finish_child(self, caller: Caller, driver: Driver) -> None:
        try:
            await self._until_finished(driver)
        except asyncio.CancelledError:
            await _undisturbed(self._let_child_go(caller, driver))
            raise
        finally:
            self._drivers.pop(driver.state.place.id, None)

    async def _until_finished(self, driver: Driver) -> None:
        await driver.finished.wait()

    async def _child(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...]
    ) -> tuple[Driver, bool]:
        """The child scope of the caller, and whether it is new. After a resume an existing one may be in any state, even
        ended."""
        depth = caller.context.depth + 1
        if depth > MAX_DEPTH:
            raise Refused(f"executions are nested deeper than {MAX_DEPTH}", hint="does this document call itself?")
        if not caller.run_id:
            raise Bug("a child execution was asked for while nothing is under way")
        place = child_place(caller.run_id, caller.clock)
        known = self.stream.tree.executions.get(place.id)
        before = failed_before(caller, self.stream.tree) if known is None else None
        folder = caller.folder or caller.context.folder
        pinned_before = known or before
        if pinned_before is not None:
            document = Pinned.from_mapping(pinned_before.document)
        else:
            document = await self._document(place, path, folder, self._pinned.get(caller.context.scope.place.id))
        net, _ = await self.documents.prepared(document)
        if return_step is not None and net.kind == "playbook" and return_step not in net.nodes:
            label = did_you_mean(return_step, net.nodes)
            raise Refused(
                f"`{path}` has no step `{return_step}` to return", hint=label or f"it has {listed(net.nodes)}"
            )
        if pinned_before is None:
            require_known(net, values)
        group = context_group(net, caller.context_group) if pinned_before is None else {}
        given = pinned_before.workload if pinned_before else merge_deeply(merge_deeply(net.workload, group), values)
        keys = await self._resolve_keychain(net, given, document)
        if known is None:
            given = self._hidden(given, keys)
            pinned = self.blobs.put([document.as_kept().to_bytes()], schema_hint={"type": "object"})
            kept = cast(Json, view(pinned, loader(self.blobs)))
            goes_on = going_on(before, net, place)
            state = before.kept if before is not None else await self._kept(net, document, place)
            self.record(opening(net, place, given, parent=caller.run_id, document=kept, state=state, **goes_on))
        scope = self.stream.tree.executions[place.id]
        return self._driver(
            document, net, given, keys=keys, state=scope, iter_parent=caller.iteration, depth=depth, outputs=outputs
        ), known is None

    async def _document(self, place: Place, path: str, folder: Path, calling: Pinned | None) -> Pinned:
        """The document that a sub-playbook is pinned to when it starts."""
        root = self._pinned.get("")
        sent = dict(root.sources) if root is not None else {}
        where = Path(address_of(folder))
        return await self.documents.sought(path, where, sent, calling.project if calling is not None else None)

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
        if not driver.finished.is_set():
            # The whole run is being let go: nothing more is recorded, so nothing will finish.
            await driver.halt(0.0)


def context_of(
    documents: Documents, document: Pinned, execution_id: str, net: Net, state: Execution, **more: Any
) -> ScopeContext:
    """What all leases of one scope share, taken from the document it is pinned to."""
    _, compiled = documents.compile(document)
    is_job = net.kind == "job"
    return ScopeContext(
        execution_id,
        net,
        state,
        folder=documents.folder(document),
        file=document.file,
        lines=compiled.positions.lines,
        files=_files(compiled) if is_job else {},
        bases=documents.bases(document, compiled),
        brought=frozenset() if is_job else documents.brought(document),
        **more,
    )


PART_OF_IT = "the run that it is part of was stopped"


def end_child(state: State, child: Execution, net_of: Callable[[Json], Net], now: float) -> list[Fact]:
    """Cancel a child execution, down to its last fact. The facts are in the state but not in the log yet."""
    decider = Decider(state, child, net_of(child.document), Unasked())
    return decider.decide(Cancel(PART_OF_IT, lambda inner: end_child(state, inner, net_of, now)), now)


def _files(compiled: Any) -> dict[str, str]:
    return {name: one.file for name, one in compiled.positions.steps.items() if one.file != compiled.file}


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Wait to the end, however often the wait is cancelled: the caller is already being stopped, and will stop."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


def keeps_watermarks(net: Net) -> bool:
    return any(INCREMENTAL in task.params for node in net.nodes.values() for task in node.tasks)


async def _first_of(*events: asyncio.Event) -> None:
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
