"""Jobs whose workers are other processes: a sub-job goes out whole, on one lease, and its holder decides inside it.

A sub-job whose holder is lost starts over (D30); all others continue, and the rows that cross between them are in the result
store. Iterators whose iterations are independent are spread: ranges of their elements go out on leases of their own. Only
the dispatch knows which of these are out. The log says which elements have settled; a server that takes over cuts the others
into new ranges, except those that are still held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.kernel import sharing
from penstock.kernel.decide import EndedElsewhere, GiveUp, Lost, SpreadOver
from penstock.kernel.errors import Unavailable
from penstock.kernel.facts import ElementEnded
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import RUNNING, SETTLED, ComponentRun, State, Subjob, root_subjob
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import pack_entries
from penstock.ports.dispatch import MessageKind
from penstock.ports.leases import FanRange, Lease, spread_stem
from penstock.ports.reports import Report, is_loss
from penstock.ports.results import encode
from penstock.server.dispatch_loop import WAIT_S
from penstock.server.driver import Driver
from penstock.server.leases_out import LOSSES, LeaseOut, LeasesOut, lost
from penstock.server.terms import Pace, pool_named, suspect_limits

PAUSE_S = 0.2


class JobPartOut(LeaseOut):
    """The lease of a sub-job, or of some elements of an iterator in one."""

    def terms(self) -> dict[str, Any]:
        return {"pool": pool_named(self.lease.context.net.executor), "needs": frozenset({"jobs"})}

    def record(self, report: Report) -> None:
        """Record what the holder decided, then decide what follows from it for others."""
        tree, decider = self.table.host.stream.tree, self.lease.decider
        ended = [tree.component(fact.scope) for fact in self._record_facts(report)]
        self.driver.decide(
            EndedElsewhere([one for one in ended if one is not None and sharing.is_members(decider, one)])
        )

    async def after_message(self) -> None:
        self.inform()

    def inform(self) -> None:
        """Inform the holders of the sub-jobs that are affected by what was decided elsewhere."""
        decider = self.lease.decider
        for out in subjobs_in(self.table):
            if out.lease.decider is decider and out.lease.key in decider.to_inform:
                decider.to_inform.discard(out.lease.key)
                self.table.aside(out.tell_news(), out.driver)


class SubjobOut(JobPartOut):
    def __init__(self, table: LeasesOut, lease: Lease, driver: Driver) -> None:
        super().__init__(table, lease, driver)
        self.spreads: dict[str, Spread | None] = {}
        """Scope of an iterator -> how it is spread; None until it is known which ranges are out, and after its end."""
        self._known = 0
        """The last entry of the log known to its holder, as far as this server can tell."""
        self._knows_deaths = False
        """Whether its holder knows that the job is dying."""
        self._turn = asyncio.Lock()
        """Held while offering the sub-job or sending log entries to its holder, so that these stay in order."""

    # ---- out

    def offer(self, *, is_adopted: bool = False) -> None:
        """Called when its first component has started, along with everything else that could start: all of it goes out
        together."""
        self.lease.decider.mandate.elsewhere.add(self.lease.key)
        self.table.aside(self._bring_out(is_adopted), self.driver)

    async def _bring_out(self, is_adopted: bool) -> None:
        async with self._turn:
            if is_adopted and _has_begun(self.lease.subjob) and await self._is_missing():
                # Nobody holds it, and the work of its last holder is lost.
                if self.is_out:
                    self._start_over()
                    self.inform()
                return
            await self._offer(is_adopted)
        self._spread_fresh(is_adopted=True)
        self.inform()

    async def _is_missing(self) -> bool:
        while True:
            try:
                return self.key in await self.table.dispatch_loop.dispatch.missing([self.key])
            except Unavailable:
                await asyncio.sleep(PAUSE_S)

    async def _offer(self, is_adopted: bool) -> None:
        history, last = await self.history()
        self._known = 0 if is_adopted else last  # A holder that already has it may know less than the log does now.
        if self.is_out:
            self.send_offer(history, is_adopted=is_adopted)

    async def history(
        self, after: int = 0, is_wanted: Callable[[str], bool] = lambda scope: True
    ) -> tuple[ResultRef, int]:
        """The entries of the job after entry `after`, and the number of the last of them."""
        await self.driver.durable()
        table, scope = self.table, self.lease.context.scope.place.id

        def pack() -> tuple[ResultRef, int]:
            entries = [one for one in table.read(after) if one.scope.startswith(scope) and is_wanted(one.scope)]
            ref = table.dispatch_loop.blobs.put([pack_entries(entries)], "application/octet-stream")
            return ref, entries[-1].seq if entries else after

        return await asyncio.to_thread(pack)

    async def tell_news(self) -> None:
        async with self._turn:
            news, last = await self.history(self._known)
            body, dispatch = encode({"news": news.as_json()}), self.table.dispatch_loop.dispatch
            while self.is_out:
                try:
                    if await dispatch.send(self.key, body):
                        self._known = last
                        return
                    if self.key in await dispatch.withdraw([self.key]):
                        # Nobody has taken it yet: offer it with the new history.
                        await self._offer(is_adopted=False)
                        return
                except Unavailable:
                    pass
                await asyncio.sleep(PAUSE_S)

    # ---- in

    def give_up(self, error: JsonMap | None) -> None:
        """End the sub-job, since nobody works on it any more: running components end, the rest is skipped."""
        self.driver.decide(GiveUp(self.driver.host.end_child, subjob=self.lease.subjob, error=error))

    async def on_returned(self, kind: MessageKind, report: Report) -> None:
        subjob = self.lease.subjob
        if subjob.status in SETTLED:
            # Its last component was settled by another holder, and its own holder only had to be informed.
            self.table.end(self)
            return
        self.table.lost_before[self.key] = self.losses
        if self.lease.stop_reason in ("cancel", "abort"):
            self.table.end(self)
            self.give_up(None)
        elif self.losses > LOSSES:
            self.table.end(self)
            self.give_up(lost(f"sub-job `{subjob.name}`", self.losses, report.reason))
        else:
            self._start_over()

    def _start_over(self) -> None:
        self.table.end(self)
        self.driver.leases.pop(self.lease.key, None)
        self.driver.decide(Lost(self.lease.subjob))

    def on_removed(self) -> None:
        """Remove the leases inside it as well: nobody waits for them any more."""
        inside = [part for spread in self.spreads.values() if spread is not None for part in spread.out()]
        self.spreads.clear()
        for part in inside:
            self.table.end(part)
        self._call_off([part.key for part in inside])

    def _call_off(self, keys: list[str]) -> None:
        async def stop() -> None:
            await self.table.call_off(keys, "interrupt")

        if keys:
            self.table.aside(stop(), self.driver)

    def abandon(self, error: JsonMap) -> None:
        """Give it up although a worker holds it."""
        self.table.end(self)
        self.give_up(error)
        self._call_off([self.key])

    async def on_stop(self, reason: str) -> None:
        for spread in self._spread_now():
            await spread.stop(reason)
        self.inform()

    async def after_message(self) -> None:
        if self.is_out:
            self._spread_fresh(is_adopted=False)
        self.inform()
        if self.lease.decider.deaths:
            await self._tell_deaths()

    async def _tell_deaths(self) -> None:
        """Tell the holders that the job is dying: from now on they start only what its error path leads to."""
        decider, dispatch = self.lease.decider, self.table.dispatch_loop.dispatch
        news = encode({"dies": [[death.scope, death.why] for death in decider.deaths]})
        for out in subjobs_in(self.table):
            if out.lease.decider is decider and not out._knows_deaths:
                out._knows_deaths = await dispatch.send(out.key, news)
                for spread in out._spread_now():
                    for part in spread.out():
                        await dispatch.send(part.key, news)
                    spread.hand_out()

    # ---- its iterators

    def _spread_fresh(self, *, is_adopted: bool) -> None:
        for iterator in sharing.spread_in(self.lease.decider, self.lease.key):
            if iterator.place.id not in self.spreads:
                self.spreads[iterator.place.id] = None
                self.table.aside(self._spread(iterator, is_adopted), self.driver)

    async def _spread(self, iterator: ComponentRun, is_adopted: bool) -> None:
        history, _ = await self.history(is_wanted=lambda scope: _is_wanted(iterator, scope))
        if self.is_out and iterator.status == RUNNING:  # Otherwise it has started over in the meantime.
            spread = self.spreads[iterator.place.id] = Spread(self, iterator, history)
            if is_adopted:
                await spread.adopt()
            spread.hand_out()
        self.inform()

    def _spread_now(self) -> list[Spread]:
        return [spread for spread in self.spreads.values() if spread is not None]


class Spread:
    """One iterator whose iterations are run by several workers."""

    def __init__(self, around: SubjobOut, component: ComponentRun, history: ResultRef) -> None:
        self.around = around
        self.component = component
        self.history = history
        self.pace = Pace(None, first=1)

    def out(self) -> list[IterationsOut]:
        run = self.component
        return [
            one for one in self.around.table.out.values() if isinstance(one, IterationsOut) and one.component is run
        ]

    def hand_out(self) -> None:
        """Hand out as many ranges as iterations may run at a time. The iterator ends when no range is out and no element is
        left."""
        component, around = self.component, self.around
        iterator, scope = component.fan, component.place.id
        if around.spreads.get(scope) is not self or component.status != RUNNING:
            return
        assert iterator is not None
        while len(out := self.out()) < iterator.parallel:
            remaining = (iterator.total or 0) - iterator.ok - iterator.failed
            size = self.pace.size(remaining, iterator.parallel)
            held = [one.lease.range.elements for one in out]
            elements = sharing.cut(around.lease.decider, component, held, size)
            if elements is None:
                break
            if (scope, elements.lo) in around.table.lost_elements:
                # An element that may bring its worker down is handed out alone, so that no other is lost with it.
                elements.hi = elements.lo + 1
            around.table.add(IterationsOut(around, component, elements))
        if not out:
            around.spreads[scope] = None
            around.driver.decide(SpreadOver(component))

    async def adopt(self) -> None:
        """Let messages that arrived in the meantime take effect, then leave to the holders what they still hold."""
        await asyncio.sleep(2 * WAIT_S)
        table = self.around.table
        stem = table.key(spread_stem(self.component))
        for seen in await table.dispatch_loop.dispatch.leases(table.execution_id):
            if seen.key.startswith(stem):
                table.out[seen.key] = IterationsOut(self.around, self.component, _elements_of(seen.key))

    async def stop(self, reason: str) -> None:
        """Hand out nothing more, and end what is out."""
        table, out = self.around.table, {one.key: one for one in self.out()}
        for key in await table.call_off(list(out), reason):
            table.end(out[key])
        self.hand_out()


class IterationsOut(JobPartOut):
    """The lease of some iterations of a spread iterator."""

    def __init__(self, around: SubjobOut, component: ComponentRun, elements: ElementRange) -> None:
        assert component.fan is not None
        part = FanRange(component, elements, component.fan.opened_at)
        super().__init__(around.table, Lease(around.lease.context, around.lease.decider, part), around.driver)
        self.around = around
        self.component = component

    @property
    def _spread(self) -> Spread | None:
        """None until it is known which ranges are out."""
        return self.around.spreads.get(self.component.place.id)

    def terms(self) -> dict[str, Any]:
        scope, elements, table = self.component.place.id, self.lease.range.elements, self.table
        assert elements.hi is not None
        losses = max(table.lost_elements[scope, index] for index in range(elements.lo, elements.hi))
        return {**super().terms(), "limits": suspect_limits(table.execution_id, losses), "is_range": True}

    def offer(self, *, is_adopted: bool = False) -> None:
        if self._spread is not None:
            self.send_offer(self._spread.history, is_adopted=is_adopted)

    def record(self, report: Report) -> None:
        super().record(report)
        ended = [ts for fact, ts in report.facts if isinstance(fact.body, ElementEnded)]
        if ended and self._spread is not None:
            self._spread.pace.saw(len(ended), 1000 * (max(ended) - min(ts for _, ts in report.facts)))

    def on_done(self) -> None:
        if self._spread is not None:
            self._spread.hand_out()

    def give_up(self, error: JsonMap | None) -> None:
        """Give up the sub-job: without these iterations neither the iterator nor the sub-job can end."""
        if error is not None:
            self.around.abandon(error)

    async def on_returned(self, kind: MessageKind, report: Report) -> None:
        self.table.end(self)
        error = self._one_too_many(report.reason) if is_loss(kind, report) else None
        if error is not None:
            self.give_up(error)
        else:
            self.on_done()

    def _one_too_many(self, reason: str | None) -> JsonMap | None:
        """Count a loss of the first element that has not settled. Returns an error if it was lost too often."""
        fan, elements = self.component.fan, self.lease.range.elements
        assert fan is not None
        assert elements.hi is not None
        index = next((one for one in range(elements.lo, elements.hi) if one not in fan.settled), None)
        if index is None:
            return None
        self.table.lost_elements[self.component.place.id, index] += 1
        losses = self.table.lost_elements[self.component.place.id, index]
        if losses <= LOSSES or self.around.lease.stop_reason is not None:
            return None
        return lost(f"iteration {index} of `{self.component.place.id}`", losses, reason)


def subjobs_in(table: LeasesOut) -> list[SubjobOut]:
    return [out for out in table.out.values() if isinstance(out, SubjobOut)]


def subjob_around(table: LeasesOut, component: ComponentRun) -> SubjobOut | None:
    """The lease under which a component runs, however deeply nested."""
    out = table.out.get(table.key(root_subjob(component).place.id))
    return out if isinstance(out, SubjobOut) else None


def iterations_of(table: LeasesOut, key: str, state: State) -> IterationsOut | None:
    """The lease with this key, if it belongs to the current start of a running iterator."""
    component = state.component(key.removeprefix(table.key("")).rpartition("@")[0])
    if component is None or component.status != RUNNING or component.fan is None:
        return None
    around = subjob_around(table, component)
    is_present = key.startswith(table.key(spread_stem(component)))
    return IterationsOut(around, component, _elements_of(key)) if around is not None and is_present else None


def _elements_of(key: str) -> ElementRange:
    lo, _, hi = key.rpartition("#")[2].partition(":")
    return ElementRange(0, int(lo), int(hi))


def _is_wanted(iterator: ComponentRun, scope: str) -> bool:
    """Whether a holder needs the history of this scope. Of the iterator's iterations, only those that run again matter:
    their counters continue."""
    stem = f"{iterator.place.id}[#"
    if not scope.startswith(stem):
        return True
    assert iterator.fan is not None
    return int(scope[len(stem) : scope.index("]", len(stem))]) not in iterator.fan.settled


def _has_begun(subjob: Subjob) -> bool:
    """Whether its holder has reported any result."""
    return any(
        (member.status in SETTLED and not member.kept)
        or member.fan is not None
        or (member.inside is not None and any(map(_has_begun, member.inside.subjobs.values())))
        for member in subjob.members.values()
    )
