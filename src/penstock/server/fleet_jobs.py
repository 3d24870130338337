"""Sub-jobs of a job whose workers are other processes: each goes out whole, on one lease, and its holder decides inside it.

A sub-job whose holder is lost starts over (D30); all others go on, and what crosses between them lies in the result store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.kernel.evolve import Execution
from penstock.kernel.facts import ComponentEnded, ComponentSkipped, Fact
from penstock.kernel.flow import abandoning, sharing
from penstock.kernel.flow.decide import Flow
from penstock.kernel.flow.state import ComponentState, RegionState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.briefing import Said, brief_subjob, pack_entries
from penstock.ports.dispatch import NoteKind, Offer
from penstock.ports.leases import SubjobLease
from penstock.ports.log import Entry
from penstock.ports.results import encode
from penstock.server.office import Office
from penstock.server.terms import pool_named

if TYPE_CHECKING:
    from penstock.server.jobs import JobDriver

LOSSES = 3


@dataclass(slots=True)
class SubjobOut:
    lease: SubjobLease
    driver: JobDriver
    losses: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: bool = False
    """Does its holder know that the job is dying?"""


class SubjobsOut:
    def __init__(
        self,
        office: Office,
        execution_id: str,
        read: Callable[[], Iterable[Entry]],
        document_of: Callable[[SubjobLease], Json],
        lease_s: float,
    ) -> None:
        self.office = office
        self.execution_id = execution_id
        self._read = read
        self._document_of = document_of
        self._lease_s = lease_s
        self._out: dict[str, SubjobOut] = {}
        self._losses: dict[str, int] = {}
        self._offering: set[asyncio.Task[None]] = set()

    def find(self, key: str) -> SubjobOut | None:
        return self._out.get(key)

    def around(self, component: ComponentState) -> SubjobLease | None:
        """The lease under which a component runs, however deep it lies."""
        region = component.region
        while region.container.opener is not None:
            region = region.container.opener.region
        out = self._out.get(self.key(region))
        return out.lease if out is not None else None

    def key(self, region: RegionState) -> str:
        return f"{self.execution_id}/{region.place.id}"

    # ---- out

    def start(self, lease: SubjobLease, driver: JobDriver, *, is_adopted: bool) -> None:
        """The first component of a sub-job has been started, and what else could start with it: all of it goes out together."""
        key = self.key(lease.region)
        if key in self._out:
            return
        out = SubjobOut(lease, driver, self._losses.get(key, 0))
        self._out[key] = out
        lease.flow.elsewhere.add(lease.region.place.id)
        task = asyncio.ensure_future(self._offer(key, out, is_adopted))
        self._offering.add(task)
        task.add_done_callback(self._offering.discard)

    async def _offer(self, key: str, out: SubjobOut, is_adopted: bool) -> None:
        lease = out.lease
        await out.driver.durable()
        scope = lease.setting.scope.place.id
        entries = await asyncio.to_thread(lambda: [one for one in self._read() if _is_of(one, scope)])
        history = await asyncio.to_thread(self.office.blobs.put, [pack_entries(entries)], "application/octet-stream")
        payload = brief_subjob(lease, self._document_of(lease), history, self.office.blobs)
        offer = Offer(
            key,
            self.execution_id,
            payload,
            pool=pool_named(lease.flow.net.executor),
            needs=frozenset({"jobs"}),
            lease_s=self._lease_s,
        )
        if self._out.get(key) is out:
            self.office.offer(offer, is_adopted=is_adopted)

    async def stop(self, lease: SubjobLease, reason: str) -> None:
        lease.stop_reason = reason
        key = self.key(lease.region)
        out = self._out.get(key)
        if out is None or out.lease is not lease or reason == "interrupt":
            return
        if key in await self.office.dispatch.withdraw([key]):
            self._abandon(key, out)
            return
        await self.office.dispatch.tell(key, encode({"stop": reason}))
        await out.over.wait()

    async def close(self) -> None:
        for task in self._offering:
            task.cancel()
        await asyncio.gather(*self._offering, return_exceptions=True)

    # ---- in

    def record(self, out: SubjobOut, said: Said, tree: Execution, record: Callable[[Fact, float], None]) -> None:
        """What the holder decided is recorded as it says, and then settled as far as it touches others."""
        settled: list[ComponentState] = []
        flow = out.lease.flow
        for fact, ts in said.facts:
            if not is_new(tree, fact):
                continue
            record(fact, ts)
            if isinstance(fact.body, ComponentEnded | ComponentSkipped):
                component = tree.flow.components.get(fact.scope)
                if component is not None and sharing.is_members(flow, component):
                    settled.append(component)
        for component in settled:
            sharing.heard(flow, component)

    async def went(self, key: str, out: SubjobOut, kind: NoteKind, said: Said) -> None:
        """After a note: the lease may be over, and other sub-jobs may follow."""
        flow = out.lease.flow
        if kind is NoteKind.DONE:
            self._over(key, out)
        elif kind not in (NoteKind.SAID, NoteKind.ASKED):
            self._came_back(key, out, kind, said)
        out.driver.dispatch()
        if flow.allowed is not None:
            await self._tell_all(flow)

    def _came_back(self, key: str, out: SubjobOut, kind: NoteKind, said: Said) -> None:
        lease = out.lease
        self._losses[key] = out.losses + (kind is NoteKind.LOST or said.reason is not None)
        if lease.stop_reason in ("cancel", "abort"):
            self._abandon(key, out)
        elif self._losses[key] > LOSSES:
            why = f": {said.reason}" if said.reason else ""
            message = (
                f"sub-job `{lease.region.name}` was given to workers {self._losses[key]} times, and none finished it"
            )
            self._abandon(key, out, {"kind": "worker_lost", "message": message + why, "retryable": True})
        else:
            self._over(key, out)
            out.driver.leases.pop(lease.region.place.id, None)
            sharing.lose(lease.flow, lease.region)

    def _abandon(self, key: str, out: SubjobOut, error: JsonMap | None = None) -> None:
        """Nobody works on it any more: what was at work ends, and the rest is skipped."""
        flow, region = out.lease.flow, out.lease.region
        self._over(key, out)
        flow.elsewhere.discard(region.place.id)
        abandoning.abandon(flow, region, out.driver.end_child, error)
        out.driver.dispatch()

    def _over(self, key: str, out: SubjobOut) -> None:
        self._out.pop(key, None)
        out.over.set()

    async def _tell_all(self, flow: Flow) -> None:
        """The job is dying: holders start nothing more but what its error path leads to."""
        assert flow.allowed is not None
        news = encode({"dies": sorted(flow.allowed), "why": flow.why_ending})
        for key, out in list(self._out.items()):
            if out.lease.flow is flow and not out.is_told:
                out.is_told = await self.office.dispatch.tell(key, news)


def _is_of(entry: Entry, scope: str) -> bool:
    return entry.scope.startswith(scope)


def is_new(tree: Execution, fact: Fact) -> bool:
    """Has this not been recorded yet? An iteration that has closed is gone from the state: its facts have all been recorded."""
    index, scope = tree.flow, fact.scope
    at = scope.rfind("/") + 1
    while (begin := scope.find("[#", at)) >= 0:
        end = scope.index("]", begin)
        iterator = index.components.get(scope[:begin])
        if iterator is None or iterator.iterator is None:
            return False
        number = int(scope[begin + 2 : end])
        if number in iterator.iterator.settled and number not in iterator.iterator.open:
            return False
        at = end
    owner: Any = index.components.get(scope) or index.regions.get(scope) or index.containers.get(f"{scope}.")
    counter = fact.clock[-1]
    assert isinstance(counter, int)
    known = owner.counter if owner is not None else 0
    return counter >= max(known, index.counters.get(scope, 0))
