"""One run from its first fact to its last: start, resume, interrupt, cancel on request; and its outcome."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.kernel.decide import Cancel, Decider
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.judge import Unasked
from penstock.kernel.net import Net
from penstock.kernel.shards import SHARDS
from penstock.kernel.state import Execution, values_of
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Keys, Workforce
from penstock.ports.log import EventLog, Header
from penstock.ports.loop_results import keep_result
from penstock.ports.results import decode, loader, materialised
from penstock.ports.undoing import unless_done_async
from penstock.server.calls import Look, check_calls, unlocked
from penstock.server.child_execution import ports_to_keep, workload_of
from penstock.server.documents import Documents, Pinned, inputs_of, kept_of
from penstock.server.driver import Driver
from penstock.server.driver import summary as job_summary
from penstock.server.executions import ExecutionHost, end_child
from penstock.server.fanout_results import gather
from penstock.server.stream import Observer, Stream

POLL_S = 0.2
# A larger result is shown as a reference rather than read back from the store.
LARGEST_SHOWN = 16 * 1024 * 1024
EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 1, "interrupted": 3}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The outcome of a run."""

    execution_id: str
    kind: str
    name: str
    status: str
    error: Json
    held_ctx: JsonMap
    """For a job: its globals."""
    held_result: Json
    counts: JsonMap
    duration_ms: float
    own_exit_code: int | None = None

    @property
    def ctx(self) -> JsonMap:
        return cast(JsonMap, materialised(self.held_ctx, LARGEST_SHOWN))

    @property
    def result(self) -> Json:
        """The result, read back from the store only on access."""
        return cast(Json, materialised(self.held_result, LARGEST_SHOWN))

    @property
    def exit_code(self) -> int:
        if self.status == "failed" and self.own_exit_code is not None:
            return self.own_exit_code
        return EXIT_CODES.get(self.status, 4)

    def as_json(self) -> JsonMap:
        return {
            "execution_id": self.execution_id,
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
            "exit_code": self.exit_code,
            "error": self.error,
            **({"globals": self.ctx} if self.kind == "job" else {"ctx": self.ctx, "result": self.result}),
            "counts": self.counts,
            "duration_ms": self.duration_ms,
        }


@dataclass(slots=True)
class RunServices:
    """What a run needs of the world outside the kernel. The composition root fills it in."""

    log: EventLog
    blobs: BlobStore
    clock: Clock
    documents: Documents
    worker: str
    resolve_keychain: Callable[[Net, Any, Pinned], Awaitable[Keys]]
    open_workforce: Callable[[str, Callable[[str], str]], Workforce]
    """`open_workforce(execution_id, hide)` returns the workforce of one run; `hide` removes secrets from what tools say."""
    close_workforce: Callable[[Workforce], Awaitable[None]]
    sweep: Callable[[str], None] = lambda execution_id: None
    """`sweep(execution_id)`: the run has ended, so what its workers left behind can be removed."""
    observers: list[Observer] = field(default_factory=list)
    look: Look | None = None
    """Which keychain entries are missing on this machine; None if the secrets are on other machines."""


class LocalRun:
    """One run in this process."""

    polls = True
    """Whether the run polls for requests of other processes itself."""

    def __init__(self, services: RunServices, execution_id: str) -> None:
        self.services = services
        self.execution_id = execution_id
        self.host: ExecutionHost | None = None
        self.force: Workforce | None = None
        self._root: Driver | None = None
        self._wanted: tuple[str, float] | None = None
        self._hide: Callable[[str], str] = lambda text: text

    # ---- the two ways in

    async def start(
        self,
        document: Pinned,
        payload: Mapping[str, Any],
        *,
        label: str | None,
        trace_id: str,
        context: str | None = None,
        outputs: tuple[str, ...] = (),
        sample: int | None = None,
        keep: tuple[str, ...] = (),
    ) -> RunSummary:
        """`context` names the context group of a job; its values lie between the defaults and the payload. The rows of the
        ports in `keep` are stored; the first `sample` rows of those in `outputs` are returned."""
        services = self.services
        net, compiled = await services.documents.prepared(document)
        kept = ports_to_keep(keep, net, compiled)
        workload = workload_of(net, payload, context)
        # Anything missing, even in called documents, stops the run before it exists.
        called = await check_calls(services.documents, document, net, compiled, workload)
        keys = await unlocked(called, services.look, lambda: services.resolve_keychain(net, workload, document))
        header = Header(
            self.execution_id,
            net.kind,
            net.name,
            document.file,
            net.digest,
            "running",
            services.clock.now(),
            label=label,
            trace_id=trace_id,
        )
        given = keys.hide_tree(dict(payload))
        registered = document.registered(given, context, trace_id, kept)
        await services.log.create(header, registered, owner=services.worker)
        stream = await self._claim()
        try:
            host = self._host(stream, document, keys)
            self._root = await host.begin_root(document, workload, trace_id, outputs=(*outputs, *kept), sample=sample)
            return await self._drive(self._root)
        finally:
            await self._leave()

    async def resume(self, *, failed_only: bool = False) -> RunSummary:
        """`failed_only`: rerun the failed iterations of a job that completed."""
        services = self.services
        header = services.log.header(self.execution_id)
        if header is None:
            raise Refused(f"there is no run `{self.execution_id}`")
        registered = services.log.document(self.execution_id)
        document = Pinned.from_bytes(registered)
        stream = await self._claim()
        try:
            self.force = services.open_workforce(self.execution_id, self.hide)
            stream.fold(loader(services.blobs))
            state = stream.tree.root
            if stream.seq == 0:
                await self._begin(stream, document, inputs_of(registered))
                assert self._root is not None
                return await self._drive(self._root)
            if state.cancelling and state.status in ("running", "interrupted"):
                await self._cancel_folded(stream, document, "it was being cancelled when it stopped")
                return summary_of(self.execution_id, state, stream.counts, stream.seq, services.clock.now())
            net, _ = await services.documents.prepared(document)
            keys = await services.resolve_keychain(net, state.workload, document)
            self._root = await self._host(stream, document, keys).take_up_root(document, kept_of(inputs_of(registered)))
            await self._root.resume(failed_only=failed_only)
            return await self._drive(self._root)
        finally:
            await self._leave()

    async def _begin(self, stream: Stream, document: Pinned, inputs: dict[str, Any] | None) -> None:
        """Start a run whose registering process died before its first event."""
        if inputs is None:
            raise Refused(
                "the run was registered and never started, and its inputs are not known", hint="start it anew"
            )
        net, _ = await self.services.documents.prepared(document)
        workload = workload_of(net, inputs.get("payload") or {}, inputs.get("context"))
        keys = await self.services.resolve_keychain(net, workload, document)
        host = self._host(stream, document, keys)
        self._root = await host.begin_root(document, workload, inputs.get("trace_id"), outputs=kept_of(inputs))

    async def cancel_idle(self, reason: str) -> None:
        """Cancel a run that nobody works on: take it over, close what was under way, and end it. No secret is needed."""
        services = self.services
        document = Pinned.from_bytes(services.log.document(self.execution_id))
        stream = await self._claim()
        try:
            stream.fold(loader(services.blobs))
            await self._cancel_folded(stream, document, reason)
            services.sweep(self.execution_id)
        finally:
            await self._leave()

    async def _cancel_folded(self, stream: Stream, document: Pinned, reason: str) -> None:
        documents = self.services.documents
        if stream.seq > 0:  # Otherwise it was registered and never started.
            tree, (net, _) = stream.tree, await documents.prepared(document)

            def net_of(pinned: Json) -> Net:
                return documents.compile(Pinned.from_mapping(pinned))[0]

            now, decider = stream.now(), Decider(tree, tree.root, net, Unasked())
            facts = decider.decide(Cancel(reason, lambda child: end_child(tree, child, net_of, now)), now)
            stream.append(facts, now)
        stream.flush("cancelled")
        await stream.durable()

    async def _claim(self) -> Stream:
        services = self.services
        epoch = await services.log.claim(self.execution_id, services.worker)
        stream = Stream(services.log, services.clock, self.execution_id, epoch, services.worker)
        # The results of loops lie outside the kernel, and are gathered from the facts, even when these come from the log.
        stream.tree.on_iteration_closed = keep_result
        stream.tree.on_shards = lambda run, body: gather(run, body, services.blobs)
        stream.observers.extend(services.observers)
        return stream

    def _host(self, stream: Stream, document: Pinned, keys: Keys) -> ExecutionHost:
        services = self.services
        if self.force is None:
            self.force = services.open_workforce(self.execution_id, self.hide)

        async def resolve_keychain(net: Net, values: Any, pinned: Pinned) -> Keys:
            return keys if pinned == document else await services.resolve_keychain(net, values, pinned)

        self.host = ExecutionHost(
            self.execution_id, stream, self.force, services.documents, services.blobs, resolve_keychain
        )
        self._hide = self.host.hide
        return self.host

    def hide(self, text: str) -> str:
        return self._hide(text)

    def job_result(self) -> JsonMap:
        """The outcome of a job, with the outputs that were asked for."""
        assert self._root is not None
        return job_summary(self._root.state)

    # ---- while it runs

    async def _drive(self, root: Driver) -> RunSummary:
        host = self.host
        assert host is not None
        if self._wanted is not None:
            await host.interrupt(*self._wanted)
        watch = [asyncio.ensure_future(self._answer_requests(root))] if self.polls else []
        try:
            async with unless_done_async(host.let_go):
                await host.until_over(root)
        finally:
            for task in watch:
                task.cancel()
            await asyncio.gather(*watch, return_exceptions=True)
        if root.state.status == "cancelled" or (root.state.status == "completed" and not root.state.failed_iterations):
            self.services.sweep(self.execution_id)
        return summary_of(self.execution_id, root.state, host.stream.counts, host.stream.seq, self.services.clock.now())

    async def _answer_requests(self, root: Driver) -> None:
        """Answer requests. Other processes leave them in the log; only the owner acts on them."""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                await self._answer_all(root)
            except Unavailable:
                # Locked for a moment: the request remains. If the log cannot be written at all, the run itself will say so.
                continue

    async def _answer_all(self, root: Driver) -> None:
        log = self.services.log
        for request in log.asked(self.execution_id):
            if request.what == "cancel":
                data = decode(request.payload)
                reason = data.get("reason") if isinstance(data, dict) else None
                await root.cancel(str(reason or "cancelled on request"))
            log.answered(request.number)

    def interrupt(self, reason: str, grace_s: float = 1.0) -> None:
        """Stop, leaving a run that can be resumed. Must be called on the event loop, as a signal handler is."""
        self._wanted = (reason, grace_s)
        if self.host is not None and self._root is not None:
            self.host.background(self.host.interrupt(reason, grace_s))

    async def cancel(self, reason: str) -> None:
        if self._root is not None:
            await self._root.cancel(reason)

    async def _leave(self) -> None:
        if self.force is not None:
            await self.services.close_workforce(self.force)
        await self.services.log.release(self.execution_id)


def summary_of(execution_id: str, state: Execution, counts: Counter[str], events: int, now: float) -> RunSummary:
    ended = state.ended_at if state.ended_at is not None else now
    is_job = state.kind == "job"
    figures: JsonMap = _job_figures(counts) if is_job else _playbook_figures(counts)
    figures["events"] = events
    return RunSummary(
        execution_id,
        state.kind,
        state.name,
        status=state.status,
        error=state.error,
        held_ctx=values_of(state),
        held_result=state.result,
        counts=figures,
        duration_ms=round(max(0.0, ended - state.started_at) * 1000, 3),
        own_exit_code=state.exit_code,
    )


def _playbook_figures(counts: Counter[str]) -> JsonMap:
    return {
        "steps": counts["step.scheduled"],
        "tasks": counts["task.done"],
        "iterations": counts["loop.iteration.done"] + counts["loop.iteration.failed"] + counts[SHARDS],
    }


def _job_figures(counts: Counter[str]) -> JsonMap:
    return {
        "subjobs": counts["subjob.started"],
        "components": counts["component.started"],
        "errors": counts["component.error"],
        "skipped": counts["component.skipped"],
        "iterations": counts["iteration.ok"] + counts["iteration.error"],
        "failed_iterations": counts["iteration.error"],
    }
