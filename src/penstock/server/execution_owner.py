"""The executions of one server: those of the partitions it holds, each continued from its state in the log.

Law: a server works on what it has claimed, and records nothing for what it has lost. It takes over the unfinished executions
in its partitions, adopts the leases that are out, and processes what their holders reported in the meantime before it hands
out anything new.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.kernel.errors import Damaged, PenstockError, Refused, Unavailable
from penstock.keychain.errors import KeychainError
from penstock.ports.dispatch import Message
from penstock.ports.log import EventLog, Header, NotOwner, Request, partition_of
from penstock.ports.partitions import Partitions
from penstock.ports.results import decode, encode
from penstock.server.calls import check_calls, missing_secrets
from penstock.server.child_execution import context_group, ports_to_keep, workload_of
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.documents import Pinned
from penstock.server.fleet import FleetForce
from penstock.server.inputs import require_known
from penstock.server.runs import LocalRun, RunServices, RunSummary
from penstock.server.server_runs import NotFree, ServerRun
from penstock.server.take_overs import NOTE, TakeOver, Trials, idle_losses, notes_of, refusal, remove_notes, write_note

RENEW_S = 3.0
LOOK_S = 0.5
ANSWER_S = 0.05
"""How long a look waits for the requests it has begun to answer: a holder that is slow to stop must not delay the others."""
INTERRUPT_S = 5.0
"""How long a run may take to note that it was interrupted; after that it is let go as it stands."""
TRIES = 200
"""How many ids are drawn to find one in a partition of our own."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A requested run. The same `key` means the same run."""

    document: Pinned
    payload: Mapping[str, Any]
    label: str | None = None
    key: str | None = None
    context: str | None = None
    trace_id: str | None = None
    keep: tuple[str, ...] = ()
    """Ports of a job whose rows are to be kept: `COMPONENT.PORT`."""


@dataclass(frozen=True, slots=True)
class Submitted:
    execution_id: str
    is_new: bool
    """False when the key had been used before: then it is the run that was made then."""


@dataclass(slots=True)
class Hosted:
    run: ServerRun
    task: asyncio.Task[RunSummary | None]
    is_ready: asyncio.Event
    """Set once the state has been folded and messages can take effect."""
    epoch: int
    """The epoch of its partition when the execution was taken up."""


class ExecutionOwner:
    def __init__(
        self,
        services: RunServices,
        dispatch_loop: DispatchLoop,
        partitions: Partitions,
        new_id: Callable[[], str],
        report: Callable[[str, BaseException], None],
        renew_s: float = RENEW_S,
        *,
        adopts: bool = True,
    ) -> None:
        """`report(execution_id, error)` is called with whatever stopped an execution other than its own end. `adopts`: what
        another process left unfinished is continued here by itself; otherwise only when somebody resumes it, and what is under
        way when this server closes is interrupted, because nobody else would continue it."""
        self.adopts = adopts
        self.services = services
        self.dispatch_loop = dispatch_loop
        dispatch_loop.on_refused = self._refused
        self.partitions = partitions
        self.owned: dict[int, int] = {}
        self.hosted: dict[str, Hosted] = {}
        self._new_id = new_id
        self._report = report
        self._renew_s = renew_s
        self._loops: list[asyncio.Task[None]] = []
        self._dropping: dict[str, asyncio.Future[None]] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._refused_once: set[str] = set()
        self._trials = Trials()
        self._is_closing = False

    # ---- from start to end

    async def start(self) -> None:
        self.owned = dict(await self.partitions.hold())
        self.dispatch_loop.start()
        await self._look()
        self._loops = [asyncio.ensure_future(one()) for one in (self._renewing, self._looking, self._reconciling)]
        for loop in self._loops:
            self.dispatch_loop.watch(loop)

    async def close(self) -> None:
        """Let go of everything, recording nothing: another server continues. Without one, runs are interrupted."""
        if not self.adopts:
            await asyncio.gather(*(self._interrupt(hosted) for hosted in list(self.hosted.values())))
        self._is_closing = True
        tasks = [*self._loops, *self._answering.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.dispatch_loop.close()
        await asyncio.gather(*(self._drop(execution_id) for execution_id in list(self.hosted)))
        await asyncio.gather(*self._dropping.values())
        with contextlib.suppress(PenstockError):
            await self.partitions.leave()

    async def _interrupt(self, hosted: Hosted) -> None:
        await hosted.is_ready.wait()
        hosted.run.interrupt("the server was stopped", 0.0)
        await asyncio.wait({hosted.task}, timeout=INTERRUPT_S)

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(self._renew_s)
            try:
                owned = dict(await self.partitions.hold())
            except Unavailable:
                continue
            before, self.owned = self.owned, owned
            for execution_id, hosted in list(self.hosted.items()):
                if owned.get(partition_of(execution_id)) != hosted.epoch and execution_id not in self._dropping:
                    self._dropping[execution_id] = asyncio.ensure_future(self._drop(execution_id))
            for execution_id in self._trials.beat():
                if execution_id in self.hosted and execution_id not in self._dropping:
                    await self._outlived(execution_id)
            if owned.items() - before.items():  # Their runs have waited long enough.
                with contextlib.suppress(Unavailable):
                    await self._look()

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(Unavailable):
                await self._look()

    async def _reconciling(self) -> None:
        reconciling = Reconciliation(self.dispatch_loop, self.services.log, lambda: self.owned, self._forces)
        while True:
            await asyncio.sleep(EVERY_S)
            with contextlib.suppress(Unavailable):
                await reconciling.look()

    def _forces(self) -> dict[str, FleetForce | None]:
        return {
            execution_id: hosted.run.force if hosted.is_ready.is_set() else None
            for execution_id, hosted in self.hosted.items()
        }

    async def _look(self) -> None:
        """Start driving the unfinished executions of our partitions, and answer requests."""
        log, owned = self.services.log, frozenset(self.owned)
        if not owned:
            return
        unfinished = await asyncio.to_thread(log.unfinished, owned)
        requests = await asyncio.to_thread(log.asked)
        notes = notes_of(requests)
        for execution_id in unfinished:
            if execution_id not in notes:
                self._host(execution_id)
        cancels = {request.execution_id for request in requests if request.what == "cancel"}
        await self._host_suspects([one for one in unfinished if one in notes and one not in cancels], notes)
        for execution_id in notes.keys() - set(unfinished) - self.hosted.keys() if self.adopts else ():
            # It ended or was set aside by a server that died before clearing up. After a resume it is counted afresh.
            if partition_of(execution_id) in owned:
                await self._outlived(execution_id)
        for request in requests:
            if request.what == NOTE:
                continue
            if partition_of(request.execution_id) in owned and request.number not in self._answering:
                self._answering[request.number] = asyncio.ensure_future(self._answer(request))
        if self._answering:
            await asyncio.wait(self._answering.values(), timeout=ANSWER_S)
        for number, task in list(self._answering.items()):
            if task.done() and self._answering.pop(number, None) is not None:
                with contextlib.suppress(PenstockError):  # A request to one run must not delay the others.
                    task.result()

    async def _host_suspects(self, suspects: list[str], notes: Mapping[str, list[TakeOver]]) -> None:
        """Host the runs that a server took over and did not outlive. Those that were lost most often come first."""
        log = self.services.log
        lost: list[tuple[int, str]] = []
        for execution_id in suspects:
            if execution_id in self.hosted or self._is_closing:
                continue
            header = await asyncio.to_thread(log.header, execution_id)
            if header is None or header.status != "running":
                continue
            error = refusal(notes[execution_id], header.last_seq)
            if error is None:
                lost.append((idle_losses(notes[execution_id], header.last_seq), execution_id))
            else:
                self._tell(execution_id, error)
                await self._give_up(execution_id, error)
        for idle, execution_id in sorted(lost, reverse=True):
            if self._trials.has_room(idle):
                self._host(execution_id)
                self._trials.begin(execution_id, idle)

    async def _outlived(self, execution_id: str) -> None:
        """The run is no longer a suspect. A note that cannot be removed now matters little: it is one of several."""
        self._trials.end(execution_id)
        with contextlib.suppress(PenstockError):
            await asyncio.to_thread(remove_notes, self.services.log, execution_id)

    # ---- asking for things

    async def submit(self, asked: Submission) -> str:
        """Register a run durably; it starts at once if its partition is ours, and soon if it is another server's."""
        (submitted,) = await self.submit_all([asked])
        return submitted.execution_id

    async def submit_all(self, asked: Sequence[Submission]) -> list[Submitted]:
        """Like `submit`, for many runs in common commits. When one of them is refused, none is registered. Of several with one
        key the first is the new one, so the others are registered after it."""
        registering = [await self._checked(one) for one in asked]
        first: dict[object, int] = {}
        for index, one in enumerate(asked):
            first.setdefault(index if one.key is None else one.key, index)
        submitted: dict[int, Submitted] = {}
        for group in (set(first.values()), set(range(len(asked))).difference(first.values())):
            ordered = sorted(group)
            submitted.update(zip(ordered, await asyncio.gather(*(registering[at]() for at in ordered)), strict=True))
        return [submitted[at] for at in range(len(asked))]

    async def _checked(self, asked: Submission) -> Callable[[], Awaitable[Submitted]]:
        services = self.services
        net, compiled = await services.documents.prepared(asked.document)
        context_group(net, asked.context)
        require_known(net, asked.payload)
        workload = workload_of(net, asked.payload, asked.context)
        called = await check_calls(services.documents, asked.document, net, compiled, workload)
        if services.look is not None and (missing := await missing_secrets(called, services.look)):
            raise KeychainError([problem for _, problem in missing])
        kept = ports_to_keep(asked.keep, net, compiled)
        trace_id = asked.trace_id or self._new_id()
        document = asked.document.registered(asked.payload, asked.context, trace_id, kept)
        header = Header(
            self._id_of_ours(),
            net.kind,
            net.name,
            asked.document.file,
            net.digest,
            "running",
            services.clock.now(),
            label=asked.label,
            trace_id=trace_id,
        )
        return partial(self._register, header, document, asked.key)

    async def _register(self, header: Header, document: bytes, key: str | None) -> Submitted:
        services = self.services
        owner = services.worker if partition_of(header.execution_id) in self.owned else None
        execution_id = await services.log.create(header, document, key, owner)
        is_new = execution_id == header.execution_id
        if partition_of(execution_id) in self.owned:
            self._host(execution_id, registered=document if is_new else None)
        elif owner is not None:  # Another server got the partition in the meantime.
            await services.log.release(execution_id)
        return Submitted(execution_id, is_new)

    def _id_of_ours(self) -> str:
        for _ in range(TRIES):
            drawn = self._new_id()
            if partition_of(drawn) in self.owned:
                return drawn
        return self._new_id()

    async def ask(self, execution_id: str, what: str, payload: Mapping[str, Any]) -> None:
        """Send a request to the owner of an execution, whichever server that is."""
        header = await asyncio.to_thread(self.services.log.header, execution_id)
        if header is None:
            raise Refused(f"there is no run `{execution_id}`", hint="`penstock runs` lists them")
        await asyncio.to_thread(self.services.log.ask, execution_id, what, encode(dict(payload)))
        if partition_of(execution_id) in self.owned:
            await self._look()

    async def _answer(self, request: Request) -> None:
        """Answer a request. One that cannot be answered yet is examined again later."""
        log, execution_id = self.services.log, request.execution_id
        header = await asyncio.to_thread(log.header, execution_id)
        status = "gone" if header is None else header.status
        hosted = self.hosted.get(execution_id)
        if request.what == "cancel" and status in ("interrupted", "running"):
            data = decode(request.payload)
            reason = str((data.get("reason") if isinstance(data, dict) else None) or "cancelled on request")
            if hosted is not None:
                if not hosted.is_ready.is_set() or not await self._cancel(hosted, reason):
                    return
            elif status == "running" and await asyncio.to_thread(self._continues, execution_id):
                # It may not even have started; its log must say that, too.
                self._host(execution_id)
                return
            elif not await self._cancel_idle(execution_id, reason):
                return
            else:
                await self._forget(execution_id)
                await self._outlived(execution_id)
        elif request.what == "resume" and status == "running":
            # It crashed when this was asked. In a fleet that is not asked: there the next server goes on by itself.
            is_crashed = (
                hosted is None and _is_of_crash(request) and not await asyncio.to_thread(log.has_owner, execution_id)
            )
            if is_crashed:
                self._host(execution_id, is_resumed=True)
        elif request.what == "resume" and header is not None and _can_go_on(header, request):
            if hosted is not None:  # It has ended, and is just being cleared away.
                return
            self._host(execution_id, is_resumed=True, failed_only=status == "completed")
        await asyncio.to_thread(log.answered, request.number)

    async def _cancel(self, hosted: Hosted, reason: str) -> bool:
        """Cancel a run; returns when its holders have stopped. False if it is no longer driven here, so that the cancel has
        no effect."""
        cancelling = asyncio.ensure_future(hosted.run.cancel(reason))
        try:
            await asyncio.wait({cancelling, hosted.task}, return_when=asyncio.FIRST_COMPLETED)
            if cancelling.done():
                cancelling.result()
            return cancelling.done()
        finally:
            cancelling.cancel()

    async def _cancel_idle(self, execution_id: str, reason: str) -> bool:
        """False if another server has not let go of it yet."""
        try:
            await LocalRun(self.services, execution_id).cancel_idle(reason)
        except Refused:
            return not await asyncio.to_thread(self.services.log.has_owner, execution_id)
        return True

    # ---- driving

    def _host(
        self,
        execution_id: str,
        *,
        is_resumed: bool = False,
        failed_only: bool = False,
        registered: bytes | None = None,
    ) -> None:
        epoch = self.owned.get(partition_of(execution_id))
        if execution_id in self.hosted or self._is_closing or epoch is None:
            return
        run = ServerRun(self.services, execution_id)
        ready = asyncio.Event()
        task = asyncio.ensure_future(self._drive(run, ready, is_resumed, failed_only, registered))
        self.hosted[execution_id] = Hosted(run, task, ready, epoch)

    async def _drive(
        self, run: ServerRun, ready: asyncio.Event, is_resumed: bool, failed_only: bool, registered: bytes | None
    ) -> RunSummary | None:
        execution_id = run.execution_id
        epoch = self.owned.get(partition_of(execution_id))

        async def is_claimed() -> None:
            if registered is None:
                idle = await asyncio.to_thread(write_note, self.services.log, execution_id)
                self._trials.begin(execution_id, idle)

        try:
            summary = await run.go_on(
                ready.set, registered, is_claimed=is_claimed, is_resumed=is_resumed, failed_only=failed_only
            )
        except NotFree:
            return None
        except Damaged as error:  # No server can read it: it is set aside, where people can see it.
            self._tell(execution_id, error)
            await self._give_up(execution_id, error)
            return None
        except (NotOwner, Unavailable) as error:  # Another server owns it by now, or it will be taken up again.
            self._tell(execution_id, error)
            return None
        except Refused as error:
            # Perhaps it cannot be driven. But the refusal may have met a server whose state was stale, so it gets another
            # try.
            self._tell(execution_id, error)
            if execution_id in self._refused_once:
                await self._give_up(execution_id, error)
            self._refused_once ^= {execution_id}
            await self._outlived(execution_id)
            return None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # A bug of ours stops this execution, and must not stop the others.
            self._tell(execution_id, error)
            await self._give_up(execution_id, error)
            return None
        else:
            self._refused_once.discard(execution_id)
            if run.is_over:  # An execution that was only let go belongs to another server, and so do its leases.
                await self._forget(execution_id)
            if registered is None and (run.is_over or self.owned.get(partition_of(execution_id)) == epoch):
                # A server that lost the run in the meantime may have been frozen, and by this run.
                await self._outlived(execution_id)
            return summary
        finally:
            self._trials.end(execution_id)
            ready.set()
            self.hosted.pop(execution_id, None)

    def _tell(self, execution_id: str, error: BaseException) -> None:
        if not self._is_closing:
            # The place this is written to may be full: no reason to lose a run as well.
            with contextlib.suppress(OSError):
                self._report(execution_id, error)

    def _refused(self, execution_id: str, error: Refused) -> None:
        hosted = self.hosted.get(execution_id)
        if hosted is not None and hosted.run.host is not None:
            hosted.run.host.broke(error)

    async def _give_up(self, execution_id: str, error: BaseException) -> None:
        """Set aside an execution that breaks its server every time; people can see it and resume it."""
        with contextlib.suppress(PenstockError):
            await ServerRun(self.services, execution_id).set_aside(f"{type(error).__name__}: {error}")
            await self._forget(execution_id)
            await self._outlived(execution_id)

    async def _forget(self, execution_id: str) -> None:
        """Clear away what is left of the execution. This is retried until it succeeds, since nobody else would do it."""
        while not self._is_closing:
            try:
                await self.dispatch_loop.dispatch.forget(execution_id)
            except Unavailable:
                await asyncio.sleep(LOOK_S)
            else:
                return

    def _continues(self, execution_id: str) -> bool:
        """Whether this server takes up a run that nobody works on by itself."""
        return self.adopts and not self._is_suspect(execution_id)

    def _is_suspect(self, execution_id: str) -> bool:
        return execution_id in notes_of(self.services.log.asked(execution_id))

    async def _drop(self, execution_id: str) -> None:
        """Let go of a run. That may take time, so what keeps this server alive does not wait for it."""
        hosted = self.hosted.get(execution_id)
        if hosted is not None:
            await hosted.is_ready.wait()  # Before that there is nothing that could be told to stop.
            await hosted.run.let_go()
            await asyncio.wait({hosted.task})
        self._dropping.pop(execution_id, None)

    async def receive(self, execution_id: str, messages: list[Message]) -> None:
        """Let messages take effect; returns when the effect is on disk."""
        hosted = self.hosted.get(execution_id)
        if hosted is None:
            header = await asyncio.to_thread(self.services.log.header, execution_id)
            if header is None or header.status != "running":
                # It is over, so a late message changes nothing. But the server that ended it has not cleared it away.
                await self.dispatch_loop.dispatch.forget(execution_id)
                return
            if await asyncio.to_thread(self._is_suspect, execution_id):
                raise Unavailable(f"`{execution_id}` was lost with its server, and waits for its turn")
            self._host(execution_id)
            hosted = self.hosted.get(execution_id)
            if hosted is None:
                raise Unavailable("the server is closing, or the run is not its own any more")
        await hosted.is_ready.wait()
        host, force = hosted.run.host, hosted.run.force
        if hosted.task.done() or host is None:
            raise Unavailable(f"`{execution_id}` is not driven here any more")
        assert isinstance(force, FleetForce)
        before = host.stream.seq
        for message in messages:
            if host.halted:
                raise Unavailable(f"`{execution_id}` is not driven here any more")
            try:
                await force.receive(message)
            except Refused as error:
                if host.halted:  # Another server owns the execution now, and will be shown the messages.
                    raise Unavailable(error.message) from error
            except asyncio.CancelledError:
                raise
            except Exception as error:  # Half of a message must not take effect: the run starts over.
                host.broke(error)
                raise Unavailable(f"`{execution_id}` is not driven here any more") from error
        if host.halted:
            raise Unavailable(f"`{execution_id}` is not driven here any more")
        if not hosted.task.done():
            # A server that was frozen while another took over does not know what that one has handed out, and would ignore
            # messages about it. So even if they change nothing, the log has to confirm that this is still the owner.
            is_recorded = host.stream.seq > before or host.is_handed_over
            await (host.durable() if is_recorded else host.confirm())


def _can_go_on(header: Header, request: Request) -> bool:
    """A job that completed with failed iterations is resumed once per request, even if the request is examined twice."""
    asked = decode(request.payload)
    if header.status == "completed" and isinstance(asked, dict) and asked.get("failed"):
        return asked.get("seq") == header.last_seq
    return header.status in ("interrupted", "failed")


def _is_of_crash(request: Request) -> bool:
    asked = decode(request.payload)
    return isinstance(asked, dict) and bool(asked.get("crashed"))


# ---- reconciliation
#
# The log says what is to be done, the dispatch who does it. A lease that the dispatch has lost would never be heard of again, so
# it is offered again. Leases of a run that is over, whose server died before clearing them away, are removed.


EVERY_S = 20.0
MOST_KEYS = 5_000
MOST_EXECUTIONS = 1_000
"""Maximum number of executions per look; the next look continues after them."""


class Reconciliation:
    def __init__(
        self,
        dispatch_loop: DispatchLoop,
        log: EventLog,
        owned: Callable[[], Collection[int]],
        forces: Callable[[], Mapping[str, FleetForce | None]],
    ) -> None:
        """`forces`: every execution driven here, with its leases once it is under way."""
        self._dispatch_loop = dispatch_loop
        self._log = log
        self._owned = owned
        self._forces = forces
        self._missed: frozenset[str] = frozenset()
        self._looked_to = ""

    async def look(self) -> None:
        await self._offer_again()
        await self._clear_away()

    async def _offer_again(self) -> None:
        """Offer what is missing twice in a row: a lease on its way in or out is missing only once."""
        expected = {key: force for force in self._forces().values() if force is not None for key in force.out_now()}
        keys = list(expected)
        missing: set[str] = set()
        for at in range(0, len(keys), MOST_KEYS):
            missing |= await self._dispatch_loop.dispatch.missing(keys[at : at + MOST_KEYS])
        for key in missing & self._missed:
            expected[key].offer_again(key)
        self._missed = frozenset(missing)

    async def _clear_away(self) -> None:
        driven, dispatch = self._forces(), self._dispatch_loop.dispatch
        kept = await dispatch.executions(self._owned(), self._looked_to, MOST_EXECUTIONS)
        self._looked_to = kept[-1] if len(kept) == MOST_EXECUTIONS else ""
        for execution_id in kept:
            if execution_id in driven:
                continue
            header = await asyncio.to_thread(self._log.header, execution_id)
            if (header is None or header.status != "running") and execution_id not in self._forces():
                await dispatch.forget(execution_id)
