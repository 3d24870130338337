"""The leases of an execution that are currently handed out, and their common life cycle.

Law: a lease is in the table from its offer to its end, and every lease goes through the same stages: it is offered, its
holder reports and may ask, and it ends (DONE), comes back (LOST, RETURNED, STALE), is withdrawn, or is refused by every
worker that could take it. What each stage means for the run is defined by the kind of part: `StepOut` and `RangeOut` here,
`SubjobOut` and `IterationsOut` for jobs. A message whose content has already taken effect changes nothing.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from penstock.kernel.decide import GoOn
from penstock.kernel.facts import ComponentEnded, ComponentSkipped, Fact, TaskEnded
from penstock.kernel.judge import stopped
from penstock.kernel.ranges import RangeFailed
from penstock.kernel.sharing import New
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import brief
from penstock.ports.dispatch import Message, MessageKind, Offer, name_of
from penstock.ports.leases import Lease, TimeLeft, out_of_time, time_left
from penstock.ports.log import Entry
from penstock.ports.reports import Report, decoded, is_loss
from penstock.ports.results import encode, loader
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.driver import Driver
from penstock.server.terms import limits_of, needs_of, pool_of, stall_of, suspect_limits, untaken

if TYPE_CHECKING:
    from penstock.server.executions import ExecutionHost

LEASE_S = 10.0
SHORTEST_TTL_S = 0.001
"""Queue time-out of an offer whose time is already up: it is withdrawn by the next `reap`."""
LOSSES = 3
"""How often a part is handed out again after losing its worker."""


class LeaseOut(ABC):
    """One lease that is out. Subclasses define what the stages of its life mean for the run."""

    def __init__(self, table: LeasesOut, lease: Lease, driver: Driver) -> None:
        self.table = table
        self.lease = lease
        self.driver = driver
        self.key = table.key(lease.key)
        self.losses = table.lost_before[self.key]
        """How often its holder was lost."""
        self.holder = ""
        """Name of the worker that last reported."""
        self.removed = asyncio.Event()

    @property
    def is_out(self) -> bool:
        return self.table.out.get(self.key) is self

    # ---- out

    @abstractmethod
    def terms(self) -> dict[str, Any]:
        """Fields of the offer that say who may take the lease, and when."""

    def offer(self, *, is_adopted: bool = False) -> None:
        """Offer the lease. `is_adopted`: according to the log it is already out; if that is so, nothing happens."""
        self.send_offer(is_adopted=is_adopted)

    def send_offer(self, history: ResultRef | None = None, *, is_adopted: bool) -> None:
        """Send the offer. `history`: the log of the job, for parts of a job."""
        table, lease = self.table, self.lease
        payload = brief(lease, table.host.document_of(lease.context), table.dispatch_loop.blobs, history)
        terms = {"lease_s": table.lease_s, **self.terms()}
        table.dispatch_loop.offer(Offer(self.key, table.execution_id, payload, **terms), is_adopted=is_adopted)

    # ---- in

    def record(self, report: Report) -> None:
        """Record what the holder decided, as reported."""
        self._record_facts(report)

    def _record_facts(self, report: Report) -> list[Fact]:
        """Record the facts not yet known; return those that end a component."""
        host = self.table.host
        new, ends = New(host.stream.tree), []
        for fact, ts in report.facts:
            if new.is_new(fact):
                if isinstance(fact.body, TaskEnded) and fact.body.given_up:
                    host.end_child_of(fact.task or "")
                host.stream.record(fact, ts)
                if isinstance(fact.body, ComponentEnded | ComponentSkipped):
                    ends.append(fact)
        return ends

    def on_done(self) -> None:
        """Called when the holder has sent its last report."""
        return  # Most parts need nothing here.

    @abstractmethod
    def give_up(self, error: JsonMap | None) -> None:
        """End the part, since nobody will finish it. `error` is None if it was stopped while nobody held it."""

    @abstractmethod
    async def on_returned(self, kind: MessageKind, report: Report) -> None:
        """Called when the holder was lost or gave the lease back, or when no worker took it in time. `losses` is already
        counted."""

    async def on_stop(self, reason: str) -> None:
        """Called when the holder has been told to stop."""
        return  # Most parts need nothing here.

    def on_removed(self) -> None:
        """Called when the lease has just left the table."""
        return  # Most parts need nothing here.

    async def after_message(self) -> None:
        """Called when a message has taken effect."""
        return  # Most parts need nothing here.


class StepOut(LeaseOut):
    """The lease of a whole step run."""

    def terms(self) -> dict[str, Any]:
        left = self._time_left()
        ttl_s = None if left is None else max(SHORTEST_TTL_S, left.seconds)
        return {**step_terms(self.lease), "ttl_s": ttl_s}

    def _time_left(self) -> TimeLeft | None:
        """A step's time limits apply even while no worker has taken it (D68)."""
        lease = self.lease
        return time_left(lease.node, lease.run, lease.context.scope.resumed_at, self.table.host.now())

    def on_done(self) -> None:
        if self.table.host.driver_of(self.lease) is self.driver:
            self.driver.leases.pop(self.lease.key, None)
            self.driver.decide(GoOn())

    def give_up(self, error: JsonMap | None) -> None:
        """Ignored if the child execution has ended in the meantime."""
        run, reason = self.lease.run, self.lease.stop_reason
        if self.table.host.driver_of(self.lease) is self.driver:
            self.driver.give_up(run, error if error is not None else stopped(run.step, reason or "abort"))

    async def on_returned(self, kind: MessageKind, report: Report) -> None:
        if self.lease.stop_reason in ("cancel", "abort"):
            self.table.end(self)
            self.give_up(None)
        elif kind is MessageKind.STALE:
            self.table.end(self)
            self.give_up(self._untaken())
        elif self.losses > LOSSES:
            self.table.end(self)
            self.give_up(lost(f"step `{self.lease.run.step}`", self.losses, report.reason, "none of them finished it"))
        else:
            # Confirm that this server still owns the execution before handing out again.
            await self.table.host.confirm()
            self.offer()

    def _untaken(self) -> JsonMap:
        left = self._time_left()
        assert left is not None  # Without a limit, the offer would not have been withdrawn.
        return out_of_time(self.lease.node, left, untaken(self.lease.node, self.lease.context.net.executor))


class RangeOut(LeaseOut):
    """The lease of some elements of a fanned-out loop. The driver knows how often they may be lost."""

    def terms(self) -> dict[str, Any]:
        terms, fan = step_terms(self.lease), self.lease.node.fan
        terms["limits"] += suspect_limits(self.table.execution_id, self.lease.range.losses)
        if fan is not None and fan.fanout is not None:
            terms |= {"ttl_s": fan.fanout.queue_ttl_s, "lease_s": fan.fanout.lease_s or self.table.lease_s}
        return {**terms, "is_range": True}

    def record(self, report: Report) -> None:
        if report.range is not None:
            self.driver.report(self.lease, report.range)

    def give_up(self, error: JsonMap | None) -> None:
        if error is None:
            self.driver.give_back(self.lease)
            return
        with self.table.host.stream.attributed_to(self.holder):
            self.driver.report(self.lease, RangeFailed(error))

    async def on_returned(self, kind: MessageKind, report: Report) -> None:
        self.table.end(self)
        with self.table.host.stream.attributed_to(self.holder):
            self.driver.give_back(self.lease, "lost" if is_loss(kind, report) else kind.value)


def step_terms(lease: Lease) -> dict[str, Any]:
    node, context = lease.node, lease.context
    return {
        "pool": pool_of(node, context.net.executor),
        "needs": needs_of(node, context.brought),
        "limits": limits_of(node),
        "stall_s": stall_of(node),
    }


def lost(what: str, times: int, reason: str | None, how: str = "none finished it") -> JsonMap:
    why = f": {reason}" if reason else ""
    message = f"{what} was given to workers {times} times, and {how}{why}"
    return {"kind": "worker_lost", "message": message, "retryable": True}


class LeasesOut:
    """All leases of one execution that are out."""

    host: ExecutionHost

    def __init__(
        self,
        execution_id: str,
        dispatch_loop: DispatchLoop,
        say_lines: Callable[[list[Json]], None],
        read: Callable[[int], Iterable[Entry]],
        lease_s: float = LEASE_S,
    ) -> None:
        """`say_lines` takes lines for the run's log: [time, scope, task run, text]. `read(after)` reads the run's events
        after that entry."""
        self.execution_id = execution_id
        self.dispatch_loop = dispatch_loop
        self.say_lines = say_lines
        self.read = read
        self.lease_s = lease_s
        self.out: dict[str, LeaseOut] = {}
        self.lost_before: Counter[str] = Counter()
        """Key -> how often its holder was lost under earlier offers."""
        self.lost_elements: Counter[tuple[str, int]] = Counter()
        """(Iterator, element) -> how often a holder was lost before finishing it, earlier starts included."""
        self._load = loader(dispatch_loop.blobs)
        self._asides: set[asyncio.Task[None]] = set()

    def key(self, place: str) -> str:
        return f"{self.execution_id}/{place}"

    def aside(self, work: Coroutine[None, None, None], driver: Driver) -> None:
        """Run it as a background task. An error stops the execution."""

        def ended(task: asyncio.Task[None]) -> None:
            self._asides.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                driver.broke(error)

        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(ended)

    # ---- what becomes of a lease

    def add(self, out: LeaseOut, *, is_adopted: bool = False) -> None:
        self.out[out.key] = out
        out.offer(is_adopted=is_adopted)

    def end(self, out: LeaseOut) -> None:
        if out.is_out:
            del self.out[out.key]
        out.removed.set()
        out.on_removed()

    async def receive(self, message: Message) -> None:
        """Let one message take effect."""
        out = self.out.get(message.key) or self.unlisted(message.key)
        if out is None:
            return
        report = decoded(message.body, self._load)
        if report.lines:
            self.say_lines(report.lines)
        out.holder = name_of(message.worker)
        with self.host.stream.attributed_to(out.holder):
            out.record(report)
        if message.kind is MessageKind.ASKED and report.ask is not None:
            await self.asked(message, out.lease, report.ask)
        if message.kind not in (MessageKind.REPORTED, MessageKind.ASKED) and out.is_out:
            await self._let_go(message, out, report)
        await out.after_message()

    async def _let_go(self, message: Message, out: LeaseOut, report: Report) -> None:
        """Handle a lease that nobody holds any more."""
        if message.kind is MessageKind.DONE:
            self.end(out)
            out.on_done()
        elif report.refusal is not None and await self._is_refused(message, out):
            self.end(out)
            out.give_up(report.refusal)
        else:
            out.losses += is_loss(message.kind, report)
            await out.on_returned(message.kind, report)

    async def _is_refused(self, message: Message, out: LeaseOut) -> bool:
        """Whether every worker that could take the lease has refused it."""
        terms = out.terms()
        is_final = await self.dispatch_loop.is_refused(message, terms["pool"], terms["needs"])
        return is_final and out.lease.stop_reason is None

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        """Make the holder stop, and wait for its end. A server that is shutting down leaves the lease to its holder."""
        lease.stop_reason = reason
        out = self.out.get(self.key(lease.key))
        if out is None or out.lease is not lease or reason == "interrupt":
            return
        if await self.call_off([out.key], reason):
            self.end(out)
            out.give_up(None)
            return
        await out.on_stop(reason)
        # It ends either with the holder's last report or with the expiry of the lease.
        await out.removed.wait()

    async def call_off(self, keys: list[str], reason: str) -> frozenset[str]:
        """Return the leases that nobody holds; tell the holders of the others to stop."""
        dispatch = self.dispatch_loop.dispatch
        withdrawn = await dispatch.withdraw(keys)
        for key in keys:
            if key not in withdrawn:
                await dispatch.send(key, encode({"stop": reason}))
        return withdrawn

    async def close(self) -> None:
        for task in self._asides:
            task.cancel()
        await asyncio.gather(*self._asides, return_exceptions=True)
        for out in self.out.values():
            out.removed.set()  # Waiting for its end would take for ever: another server receives it.

    # ---- what the dispatch may have lost

    def out_now(self) -> Iterable[str]:
        """The keys of all leases that are out, as far as this server knows."""
        return list(self.out)

    def offer_again(self, key: str) -> None:
        """The dispatch does not know this lease: offer it, unless that has changed in the meantime."""
        if key in self.out:
            self.out[key].offer(is_adopted=True)

    # ---- what the execution adds

    def unlisted(self, key: str) -> LeaseOut | None:
        """Return a lease that is out but was not handed out by this server."""
        return None

    async def asked(self, message: Message, lease: Lease, ask: JsonMap) -> None:
        """A holder asks for a child execution."""
