"""The workforce of one execution when its workers are other processes: leases go out as offers, and notes come back.

A server that goes away leaves its leases as they are: whoever owns the execution next adopts them, and what their holders say
meanwhile waits for him.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from penstock.kernel.decide import GoOn
from penstock.kernel.facts import TaskEnded
from penstock.kernel.judge import stopped
from penstock.kernel.net import Node
from penstock.kernel.sharing import New
from penstock.kernel.state import Run, StepRun
from penstock.kernel.values import Json, JsonMap
from penstock.ports.briefing import brief_range, brief_run
from penstock.ports.deadlines import TimeLeft, out_of_time, time_left
from penstock.ports.dispatch import Note, NoteKind, Offer, name_of
from penstock.ports.leases import Lease, RangeLease, RangeReports, Reports, Setting
from penstock.ports.log import Entry
from penstock.ports.reports import Report, decoded, is_loss
from penstock.ports.results import encode, loader
from penstock.server import suspects
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.fleet_children import ChildrenOut
from penstock.server.terms import limits_of, needs_of, pool_of, stall_of, untaken

if TYPE_CHECKING:
    from penstock.server.executions import ExecutionHost
    from penstock.server.fleet_iterators import SubjobOut
    from penstock.server.fleet_jobs import SubjobsOut

LEASE_S = 10.0
SHORTEST_TTL_S = 0.001
"""What is out of time already is withdrawn as soon as somebody looks."""
LOSSES = 3
"""So often a step run is handed out again whose worker was lost."""


@dataclass(slots=True)
class RunOut:
    lease: Lease
    losses: int = 0
    over: asyncio.Event | None = None


@dataclass(slots=True)
class RangeOut:
    lease: RangeLease
    reports: RangeReports
    over: asyncio.Event


class FleetForce:
    def __init__(
        self,
        execution_id: str,
        dispatch_loop: DispatchLoop,
        say: Callable[[list[Json]], None],
        read: Callable[[int], Iterable[Entry]],
        lease_s: float = LEASE_S,
    ) -> None:
        """`say` takes lines for the run's log: [time, scope, task run, text]. `read` reads the log of this execution."""
        self.execution_id = execution_id
        self.dispatch_loop = dispatch_loop
        self._say = say
        self._read = read
        self._subjobs: SubjobsOut | None = None
        self._executor: JsonMap = {}
        self._brought: frozenset[str] = frozenset()
        self.host: ExecutionHost | None = None
        self.is_adopting = False
        """While the execution is taken over from another server: what the log has as out may well be out."""
        self._lease_s = lease_s
        self._runs: dict[str, RunOut] = {}
        self._ranges: dict[str, RangeOut] = {}
        self._children = ChildrenOut(dispatch_loop, self._host, self._lease_around)
        self._load = loader(dispatch_loop.blobs)

    # ---- step runs

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        """A sub-job goes out whole, with the first of its components."""
        if not isinstance(run, StepRun):
            self._jobs().start(lease, reports, is_adopted=self.is_adopting)
            return
        key = self._key(lease.run.place.id)
        self._runs[key] = RunOut(lease)
        self.dispatch_loop.offer(self._run_offer(lease), is_adopted=self.is_adopting)

    def say(self, scope: str, line: str) -> None:
        self._say([[time.time(), scope, None, line]])

    def _key(self, place: str) -> str:
        return f"{self.execution_id}/{place}"

    def _run_offer(self, lease: Lease) -> Offer:
        payload = brief_run(lease, self._document(lease.setting), self.dispatch_loop.blobs)
        terms = self._terms(lease.setting, lease.node)
        left = self._time_left(lease)
        ttl_s = None if left is None else max(SHORTEST_TTL_S, left.seconds)
        return Offer(self._key(lease.run.place.id), self.execution_id, payload, ttl_s=ttl_s, **terms)

    def _time_left(self, lease: Lease) -> TimeLeft | None:
        """A step's own time limits hold also while nobody has taken it (D68)."""
        return time_left(lease.node, lease.run, lease.setting.scope.resumed_at, self._host().now())

    def _terms(self, setting: Setting, node: Node) -> Any:
        return {
            "pool": pool_of(node, setting.net.executor),
            "needs": needs_of(node, setting.brought),
            "limits": limits_of(node),
            "stall_s": stall_of(node),
            "lease_s": self._lease_s,
        }

    def _document(self, setting: Setting) -> Json:
        assert self.host is not None
        return self.host.document_of(setting)

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        lease.stop_reason = reason
        if not isinstance(lease.held, StepRun):
            await self._jobs().stop(lease, reason)
            return
        key = self._key(lease.run.place.id)
        out = self._runs.get(key)
        if out is None or out.lease is not lease or reason == "interrupt":
            return
        if key in await self.dispatch_loop.dispatch.withdraw([key]):
            del self._runs[key]
            self._host().give_up(lease, stopped(lease.run.step, reason))
            return
        out.over = asyncio.Event()
        await self.dispatch_loop.dispatch.tell(key, encode({"stop": reason}))
        # Either the holder says its last word, or its lease runs out: both are heard.
        await out.over.wait()

    # ---- ranges

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        self._executor = lease.setting.net.executor
        self._brought = lease.setting.brought
        self._ranges[self._key(lease.key)] = RangeOut(lease, reports, asyncio.Event())
        self.dispatch_loop.offer(self._range_offer(lease), is_adopted=self.is_adopting)

    def _range_offer(self, lease: RangeLease) -> Offer:
        policy = lease.node.fan.fanout if lease.node.fan is not None else None
        terms = self._terms(lease.setting, lease.node)
        terms["limits"] += suspects.limits(self.execution_id, lease.losses)
        if policy is not None:
            terms |= {"ttl_s": policy.queue_ttl_s, "lease_s": policy.lease_s or self._lease_s}
        payload = brief_range(lease, self._document(lease.setting), self.dispatch_loop.blobs)
        return Offer(self._key(lease.key), self.execution_id, payload, is_range=True, **terms)

    async def stop_range(self, lease: RangeLease, reason: str) -> None:
        lease.stop_reason = reason
        key = self._key(lease.key)
        out = self._ranges.get(key)
        if out is None or out.lease is not lease or reason == "interrupt":
            return
        if key in await self.dispatch_loop.dispatch.withdraw([key]):
            del self._ranges[key]
            out.reports.gave_back(lease, "returned")
            return
        await self.dispatch_loop.dispatch.tell(key, encode({"stop": reason}))
        await out.over.wait()

    def slots(self, node: Node) -> int:
        return self.dispatch_loop.roster.slots(pool_of(node, self._executor), needs_of(node, self._brought))

    def ahead(self) -> int:
        return 4

    # ---- jobs

    def _jobs(self) -> SubjobsOut:
        if self._subjobs is None:
            from penstock.server.fleet_jobs import SubjobsOut

            self._subjobs = SubjobsOut(
                self.dispatch_loop,
                self.execution_id,
                self._read,
                lambda lease: self._document(lease.setting),
                self._lease_s,
            )
        return self._subjobs

    async def close_job(self, setting: Setting, *, is_over: bool) -> None: ...

    async def close(self) -> None:
        await self._children.close()
        if self._subjobs is not None:
            await self._subjobs.close()
        ends = [*(out.over for out in self._runs.values()), *(out.over for out in self._ranges.values())]
        for over in ends:
            if over is not None:
                over.set()  # Whoever waits for it would wait for ever: its end is another's to hear.

    # ---- what is out

    def out_now(self) -> list[str]:
        """The keys of all that is out, as far as this server knows."""
        subjobs = self._subjobs.out_now() if self._subjobs is not None else []
        return [*self._runs, *self._ranges, *subjobs]

    def offer_again(self, key: str) -> None:
        """The dispatch knows nothing of it: offer it, unless that has changed meanwhile."""
        if key in self._runs:
            out = self._runs[key]
            self.dispatch_loop.offer(self._run_offer(out.lease), is_adopted=True)
        elif key in self._ranges:
            self.dispatch_loop.offer(self._range_offer(self._ranges[key].lease), is_adopted=True)
        elif self._subjobs is not None:
            self._subjobs.offer_again(key)

    # ---- hearing

    async def hear(self, note: Note) -> None:
        """Let one note take effect. What it says may have been heard before: then nothing happens."""
        if note.key in self._runs:
            await self._hear_of_run(note, self._runs[note.key])
        elif note.key in self._ranges:
            await self._hear_of_range(note, self._ranges[note.key])
        elif self._subjobs is not None and (out := self._subjobs.find(note.key)) is not None:
            await self._hear_of_subjob(note, self._subjobs, out)
        elif self._subjobs is not None:
            await self._hear_of_stretch(note, self._subjobs)

    async def _hear_of_subjob(self, note: Note, subjobs: SubjobsOut, out: SubjobOut) -> None:
        said, stream = decoded(note.body, self._load), self._host().stream
        if said.lines:
            self._say(said.lines)
        with self._said_by(note):
            subjobs.record(out, said, stream.tree, stream.record)
        if note.kind is NoteKind.ASKED and said.ask is not None:
            await self._children.play(note, out.lease, said.ask)
        await subjobs.went(note, out, said)

    async def _hear_of_stretch(self, note: Note, subjobs: SubjobsOut) -> None:
        stream = self._host().stream
        found = subjobs.find_stretch(note.key, stream.tree)
        if found is None:
            return
        said = decoded(note.body, self._load)
        if said.lines:
            self._say(said.lines)
        with self._said_by(note):
            subjobs.record(found[0], said, stream.tree, stream.record)
        await subjobs.stretch_went(note, *found, said)

    def _said_by(self, note: Note) -> AbstractContextManager[None]:
        return self._host().stream.said_by(name_of(note.worker))

    async def _hear_of_run(self, note: Note, out: RunOut) -> None:
        said = decoded(note.body, self._load)
        with self._said_by(note):
            self._record(said)
        if note.kind is NoteKind.ASKED and said.ask is not None:
            await self._children.play(note, out.lease, said.ask)
        elif note.kind is NoteKind.DONE:
            self._over(note.key)
            driver = self._host().driver_of(out.lease)
            if driver is not None:
                driver.leases.pop(out.lease.key, None)
                driver.decide(GoOn())
        elif note.kind in (NoteKind.LOST, NoteKind.RETURNED, NoteKind.STALE):
            await self._came_back(note, out, said)

    def _record(self, said: Report) -> None:
        host = self._host()
        if said.lines:
            self._say(said.lines)
        tree = host.stream.tree
        told = New(tree)
        for fact, ts in said.facts:
            if told.is_new(fact):
                if isinstance(fact.body, TaskEnded) and fact.body.given_up:
                    host.end_child_of(fact.task or "")
                host.stream.record(fact, ts)

    async def _came_back(self, note: Note, out: RunOut, said: Report) -> None:
        out.losses += is_loss(note.kind, said)
        lease = out.lease
        pool, needs = pool_of(lease.node, lease.setting.net.executor), needs_of(lease.node, lease.setting.brought)
        if (
            said.refusal is not None
            and await self.dispatch_loop.is_refused(note, pool, needs)
            and lease.stop_reason is None
        ):
            self._over(note.key)
            self._host().give_up(lease, said.refusal)
        elif out.lease.stop_reason in ("cancel", "abort"):
            self._over(note.key)
            self._host().give_up(out.lease, stopped(out.lease.run.step, out.lease.stop_reason))
        elif note.kind is NoteKind.STALE:
            self._over(note.key)
            self._host().give_up(lease, self._untaken(lease))
        elif out.losses > LOSSES:
            self._over(note.key)
            self._host().give_up(out.lease, _lost(out.lease.run.step, out.losses, said.reason))
        else:
            await self._host().confirm()  # One who was thought dead hands out nothing.
            self.dispatch_loop.offer(self._run_offer(out.lease))

    def _untaken(self, lease: Lease) -> JsonMap:
        left = self._time_left(lease)
        assert left is not None  # Else nothing would have withdrawn the offer.
        return out_of_time(lease.node, left, untaken(lease.node, lease.setting.net.executor))

    def _over(self, key: str) -> None:
        out = self._runs.pop(key, None)
        if out is not None and out.over is not None:
            out.over.set()

    async def _hear_of_range(self, note: Note, out: RangeOut) -> None:
        said = decoded(note.body, self._load)
        lease, reports = out.lease, out.reports
        pool, needs = pool_of(lease.node, lease.setting.net.executor), needs_of(lease.node, lease.setting.brought)
        is_refused = said.refusal is not None and await self.dispatch_loop.is_refused(note, pool, needs)
        if said.lines:
            self._say(said.lines)
        with self._said_by(note):
            if said.opened is not None:
                opened: Any = said.opened
                reports.opened(lease, opened["hi"], opened["next"], opened["is_end"])
            if said.report is not None:
                reports.reported(lease, said.report)
            if said.failed is not None:
                reports.failed(lease, said.failed)
            if note.kind in (NoteKind.SAID, NoteKind.ASKED):
                return
            self._ranges.pop(note.key, None)
            if is_refused:
                reports.failed(lease, cast(JsonMap, said.refusal))
            elif note.kind is not NoteKind.DONE:
                reports.gave_back(lease, "lost" if is_loss(note.kind, said) else note.kind.value)
            out.over.set()

    # ---- executions within the execution

    async def adopt_children(self) -> None:
        await self._children.adopt()

    def _lease_around(self, run_id: str) -> Lease | None:
        component = self._host().stream.tree.component(run_id)
        if component is not None:
            return self._jobs().around(component)
        place = run_id.rpartition("/")[0]
        out = self._runs.get(self._key(place)) or self._runs.get(self._key(place.rpartition("[")[0]))
        return out.lease if out is not None else None

    def _host(self) -> ExecutionHost:
        assert self.host is not None
        return self.host


def _lost(step: str, losses: int, reason: str | None) -> JsonMap:
    why = f": {reason}" if reason else ""
    message = f"step `{step}` was given to workers {losses} times, and none of them finished it{why}"
    return {"kind": "worker_lost", "message": message, "retryable": True}
