"""Sub-jobs of a job whose workers are other processes: each goes out whole, on one lease, and its holder decides inside it.

A sub-job whose holder is lost starts over (D30); all others go on, and what crosses between them lies in the result store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from penstock.kernel.decide import Decider, GiveUp, Lost, Told
from penstock.kernel.errors import Unavailable
from penstock.kernel.facts import ComponentEnded, ComponentSkipped, Fact
from penstock.kernel.sharing import New, is_members
from penstock.kernel.state import SETTLED, ComponentRun, State, Subjob, root_subjob
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import brief_subjob, pack_entries
from penstock.ports.dispatch import Note, NoteKind, Offer
from penstock.ports.leases import Lease, Reports
from penstock.ports.log import Entry
from penstock.ports.reports import Report, is_loss
from penstock.ports.results import encode
from penstock.server.dispatch_loop import DispatchLoop
from penstock.server.driver import Driver
from penstock.server.fleet_iterators import Spreads, SubjobOut
from penstock.server.terms import pool_named

LOSSES = 3
NEEDS = frozenset({"jobs"})
PAUSE_S = 0.2


class SubjobsOut:
    def __init__(
        self,
        dispatch_loop: DispatchLoop,
        execution_id: str,
        read: Callable[[int], Iterable[Entry]],
        document_of: Callable[[Lease], Json],
        lease_s: float,
    ) -> None:
        self.dispatch_loop = dispatch_loop
        self.execution_id = execution_id
        self._read = read
        self._document_of = document_of
        self._lease_s = lease_s
        self._out: dict[str, SubjobOut] = {}
        self._losses: dict[str, int] = {}
        self._asides: set[asyncio.Task[None]] = set()
        self._spreads = Spreads(dispatch_loop, execution_id, document_of, lease_s, self._give_up, self._history_of)

    def find(self, key: str) -> SubjobOut | None:
        return self._out.get(key)

    def around(self, component: ComponentRun) -> Lease | None:
        """The lease under which a component runs, however deep it lies."""
        out = self._out.get(self.key(root_subjob(component)))
        return out.lease if out is not None else None

    def key(self, subjob: Subjob) -> str:
        return f"{self.execution_id}/{subjob.place.id}"

    # ---- out

    def start(self, lease: Lease, driver: Reports, *, is_adopted: bool) -> None:
        """The first component of a sub-job has been started, and what else could start with it: all of it goes out together."""
        key = self.key(lease.subjob)
        if key in self._out:
            return
        assert isinstance(driver, Driver)
        out = SubjobOut(lease, driver, self._losses.get(key, 0))
        self._out[key] = out
        lease.decider.mandate.elsewhere.add(lease.key)
        self._aside(self._bring_out(key, out, is_adopted), driver)

    def _aside(self, work: Coroutine[None, None, None], driver: Driver) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(lambda task: self._went_aside(task, driver))

    def _went_aside(self, task: asyncio.Task[None], driver: Driver) -> None:
        self._asides.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            driver.broke(error)

    async def _bring_out(self, key: str, out: SubjobOut, is_adopted: bool) -> None:
        async with out.turn:
            if is_adopted and _has_begun(out.lease.subjob) and await self._is_missing(key):
                # Nobody has it, and what its holder did lies nowhere but with him.
                if self._out.get(key) is out:
                    self._start_over(key, out)
                    self._went_on(out)
                return
            await self._offer(key, out, is_adopted)
        for iterator in self._spreads.fresh(out.lease):
            self._aside(self._spread(out, iterator, is_adopted=True), out.driver)
        self.inform(out.lease.decider)

    async def _spread(self, out: SubjobOut, iterator: ComponentRun, *, is_adopted: bool) -> None:
        await self._spreads.begin(out, iterator, is_adopted=is_adopted)
        self._went_on(out)

    async def _is_missing(self, key: str) -> bool:
        while True:
            try:
                return key in await self.dispatch_loop.dispatch.missing([key])
            except Unavailable:
                await asyncio.sleep(PAUSE_S)

    async def _offer(self, key: str, out: SubjobOut, is_adopted: bool) -> None:
        lease = out.lease
        history, last = await self._history(out, 0)
        out.known = 0 if is_adopted else last  # One who has it already may know less than there is now.
        payload = brief_subjob(lease, self._document_of(lease), history, self.dispatch_loop.blobs)
        offer = Offer(
            key,
            self.execution_id,
            payload,
            pool=pool_named(lease.setting.net.executor),
            needs=NEEDS,
            lease_s=self._lease_s,
        )
        if self._out.get(key) is out:
            self.dispatch_loop.offer(offer, is_adopted=is_adopted)

    async def _history_of(self, out: SubjobOut, is_wanted: Callable[[str], bool]) -> ResultRef:
        return (await self._history(out, 0, is_wanted))[0]

    async def _history(
        self, out: SubjobOut, after: int, is_wanted: Callable[[str], bool] = lambda scope: True
    ) -> tuple[ResultRef, int]:
        """What the log has of the job after an entry; and the last entry of that."""
        await out.driver.durable()
        scope = out.lease.setting.scope.place.id

        def pack() -> tuple[ResultRef, int]:
            found = self._read(after)
            entries = [one for one in found if one.scope.startswith(scope) and is_wanted(one.scope)]
            ref = self.dispatch_loop.blobs.put([pack_entries(entries)], "application/octet-stream")
            return ref, entries[-1].seq if entries else after

        return await asyncio.to_thread(pack)

    def inform(self, decider: Decider) -> None:
        """Holders in whose sub-jobs something can be decided because of what others did hear of it."""
        for key, out in self._out.items():
            subjob = out.lease.key
            if out.lease.decider is decider and subjob in decider.left:
                decider.left.discard(subjob)
                self._aside(self._inform(key, out), out.driver)

    async def _inform(self, key: str, out: SubjobOut) -> None:
        async with out.turn:
            news, last = await self._history(out, out.known)
            body = encode({"news": news.as_json()})
            while self._out.get(key) is out:
                try:
                    if await self.dispatch_loop.dispatch.tell(key, body):
                        out.known = last
                        return
                    if key in await self.dispatch_loop.dispatch.withdraw([key]):
                        # Nobody has taken it yet: there is more to it now.
                        await self._offer(key, out, is_adopted=False)
                        return
                except Unavailable:
                    pass
                await asyncio.sleep(PAUSE_S)

    async def stop(self, lease: Lease, reason: str) -> None:
        lease.stop_reason = reason
        key = self.key(lease.subjob)
        out = self._out.get(key)
        if out is None or out.lease is not lease or reason == "interrupt":
            return
        if key in await self.dispatch_loop.dispatch.withdraw([key]):
            self._abandon(key, out)
            return
        await self.dispatch_loop.dispatch.tell(key, encode({"stop": reason}))
        await self._spreads.stop(lease, reason)
        self._went_on(out)
        await out.over.wait()

    async def close(self) -> None:
        for task in self._asides:
            task.cancel()
        await asyncio.gather(*self._asides, return_exceptions=True)
        for out in self._out.values():
            out.over.set()

    def out_now(self) -> list[str]:
        return [*self._out, *self._spreads.out_now()]

    def offer_again(self, key: str) -> None:
        out = self._out.get(key)
        if out is not None:
            self._aside(self._bring_out(key, out, is_adopted=True), out.driver)
        else:
            self._spreads.offer_again(key)

    # ---- in

    def record(self, out: SubjobOut, said: Report, tree: State, record: Callable[[Fact, float], None]) -> None:
        """What the holder decided is recorded as it says, and then settled as far as it touches others."""
        settled: list[ComponentRun] = []
        told = New(tree)
        for fact, ts in said.facts:
            if not told.is_new(fact):
                continue
            record(fact, ts)
            if isinstance(fact.body, ComponentEnded | ComponentSkipped):
                component = tree.component(fact.scope)
                if component is not None and is_members(out.lease.decider, component):
                    settled.append(component)
        out.driver.decide(Told(settled))

    async def went(self, note: Note, out: SubjobOut, said: Report) -> None:
        """After a note: the lease may be over, and other sub-jobs may follow."""
        decider, key, kind = out.lease.decider, note.key, note.kind
        if said.refusal is not None and await self._is_refused(note, out.lease):
            self._abandon(key, out, said.refusal)
        elif kind is NoteKind.DONE:
            self._over(key, out)
        elif kind not in (NoteKind.SAID, NoteKind.ASKED):
            self._came_back(key, out, kind, said)
        for iterator in self._spreads.fresh(out.lease) if self._out.get(key) is out else ():
            self._aside(self._spread(out, iterator, is_adopted=False), out.driver)
        self._went_on(out)
        if decider.deaths:
            await self._tell_all(decider)

    def _went_on(self, out: SubjobOut) -> None:
        self.inform(out.lease.decider)

    def find_stretch(self, key: str, tree: State) -> tuple[SubjobOut, ComponentRun] | None:
        """The iterator that a lease has elements of, and the sub-job around it."""
        iterator = self._spreads.iterator_of(key, tree)
        out = self._out.get(self.key(iterator.subjob)) if iterator is not None else None
        return (out, iterator) if out is not None and iterator is not None else None

    async def stretch_went(self, note: Note, out: SubjobOut, iterator: ComponentRun, said: Report) -> None:
        spread = self._spreads.find(iterator)
        if spread is not None and said.refusal is not None and await self._is_refused(note, out.lease):
            self._give_up(out, said.refusal)
        elif spread is not None:
            self._spreads.went(note.key, spread, note.kind, said)
        self._went_on(out)

    async def _is_refused(self, note: Note, lease: Lease) -> bool:
        is_final = await self.dispatch_loop.is_refused(note, pool_named(lease.setting.net.executor), NEEDS)
        return is_final and lease.stop_reason is None

    def _give_up(self, out: SubjobOut, error: JsonMap) -> None:
        key = self.key(out.lease.subjob)
        self._abandon(key, out, error)
        self._call_off([key], out)

    def _call_off(self, keys: list[str], out: SubjobOut) -> None:
        """Nobody waits any more for what these leases come to."""

        async def stop() -> None:
            await self._spreads.call_off(keys, "interrupt")

        if keys:
            self._aside(stop(), out.driver)

    def _came_back(self, key: str, out: SubjobOut, kind: NoteKind, said: Report) -> None:
        lease = out.lease
        if lease.subjob.status in SETTLED:
            # What was last to settle in it was another's, and its holder had only to hear of that.
            self._over(key, out)
            return
        self._losses[key] = out.losses + is_loss(kind, said)
        if lease.stop_reason in ("cancel", "abort"):
            self._abandon(key, out)
        elif self._losses[key] > LOSSES:
            why = f": {said.reason}" if said.reason else ""
            message = (
                f"sub-job `{lease.subjob.name}` was given to workers {self._losses[key]} times, and none finished it"
            )
            self._abandon(key, out, {"kind": "worker_lost", "message": message + why, "retryable": True})
        else:
            self._start_over(key, out)

    def _start_over(self, key: str, out: SubjobOut) -> None:
        lease = out.lease
        self._over(key, out)
        out.driver.leases.pop(lease.key, None)
        out.driver.decide(Lost(lease.subjob))

    def _abandon(self, key: str, out: SubjobOut, error: JsonMap | None = None) -> None:
        """Nobody works on it any more: what was at work ends, and the rest is skipped."""
        self._over(key, out)
        out.driver.decide(GiveUp(out.driver.host.end_child, subjob=out.lease.subjob, error=error))

    def _over(self, key: str, out: SubjobOut) -> None:
        self._out.pop(key, None)
        out.over.set()
        self._call_off(self._spreads.drop(out.lease), out)

    async def _tell_all(self, decider: Decider) -> None:
        """The job is dying: holders start nothing more but what its error path leads to."""
        news = encode({"dies": [[death.scope, death.why] for death in decider.deaths]})
        for key, out in list(self._out.items()):
            if out.lease.decider is decider and not out.is_told:
                out.is_told = await self.dispatch_loop.dispatch.tell(key, news)
                await self._spreads.dies(out.lease, news)


def _has_begun(subjob: Subjob) -> bool:
    """Has its holder told of anything that came of it?"""
    return any(
        (member.status in SETTLED and not member.kept)
        or member.fan is not None
        or (member.inside is not None and any(map(_has_begun, member.inside.subjobs.values())))
        for member in subjob.members.values()
    )
