"""Iterators of a job whose iterations are run by several workers: stretches of their elements go out on leases of their own.

What is out is the dispatch's business alone: the log says which elements have settled, and whatever has not is cut anew by a
server that takes over, but for what it finds to be held.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.kernel import sharing
from penstock.kernel.decide import SpreadOver
from penstock.kernel.facts import ElementEnded
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import RUNNING, ComponentRun, State
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import brief_subjob
from penstock.ports.dispatch import NoteKind, Offer
from penstock.ports.leases import Lease
from penstock.ports.reports import Report, is_loss
from penstock.ports.results import encode
from penstock.server import suspects
from penstock.server.dispatch_loop import WAIT_S, DispatchLoop
from penstock.server.driver import Driver
from penstock.server.pace import Pace
from penstock.server.terms import pool_named

LOSSES = 3


@dataclass(slots=True)
class SubjobOut:
    lease: Lease
    driver: Driver
    losses: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: bool = False
    """Does its holder know that the job is dying?"""
    known: int = 0
    """The last entry of the log that its holder knows of, as far as this server knows."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever offers it or tells its holder something of the log, so that these come in their order."""


@dataclass(slots=True)
class Spread:
    """One iterator that is spread. `out`: key of a lease -> its elements."""

    around: SubjobOut
    component: ComponentRun
    history: ResultRef
    pace: Pace = field(default_factory=lambda: Pace(None, first=1))
    out: dict[str, ElementRange] = field(default_factory=dict)

    @property
    def lease(self) -> Lease:
        return self.around.lease


def _is_wanted(iterator: ComponentRun, scope: str) -> bool:
    """Of its iterations, a holder has to know what happened in earlier starts to those that run again: they go on counting."""
    stem = f"{iterator.place.id}[#"
    if not scope.startswith(stem):
        return True
    assert iterator.fan is not None
    return int(scope[len(stem) : scope.index("]", len(stem))]) not in iterator.fan.settled


class Spreads:
    def __init__(
        self,
        dispatch_loop: DispatchLoop,
        execution_id: str,
        document_of: Callable[[Lease], Json],
        lease_s: float,
        give_up: Callable[[SubjobOut, JsonMap], None],
        history: Callable[[SubjobOut, Callable[[str], bool]], Awaitable[ResultRef]],
    ) -> None:
        """`give_up` ends a sub-job that nobody can finish; `history(subjob, is_wanted)` stores what the log has."""
        self.dispatch_loop = dispatch_loop
        self._execution_id = execution_id
        self._document_of = document_of
        self._lease_s = lease_s
        self._give_up = give_up
        self._history = history
        self._spreads: dict[str, Spread] = {}
        """Scope of the iterator -> what is out of it."""
        self._begun: dict[str, ComponentRun] = {}
        self._losses: Counter[tuple[str, int]] = Counter()
        """Iterator and element -> how often a holder was lost before it got further, also in earlier starts."""

    def iterator_of(self, key: str, state: State) -> ComponentRun | None:
        """The iterator that the lease of a stretch belongs to, if it is this start of it."""
        scope, at, rest = key.removeprefix(f"{self._execution_id}/").rpartition("@")
        component = state.component(scope) if at else None
        if component is None or component.status != RUNNING or component.fan is None:
            return None
        return component if rest.startswith(f"{component.fan.opened_at}#") else None

    def find(self, component: ComponentRun) -> Spread | None:
        """None while a server that takes over has not found out what is out."""
        return self._spreads.get(component.place.id)

    def fresh(self, lease: Lease) -> list[ComponentRun]:
        """The iterators of a sub-job that are to be spread and are not yet; they are from here on."""
        found = sharing.spread_in(lease.decider, lease.key)
        fresh = [one for one in found if self._begun.get(one.place.id) is not one]
        self._begun.update((one.place.id, one) for one in fresh)
        return fresh

    # ---- out

    async def begin(self, out: SubjobOut, component: ComponentRun, *, is_adopted: bool) -> None:
        scope = component.place.id
        history = await self._history(out, lambda one: _is_wanted(component, one))
        if self._begun.get(scope) is not component or component.status != RUNNING:
            return  # It has started over in the meantime.
        spread = self._spreads[scope] = Spread(out, component, history)
        if is_adopted:
            await self._adopt(spread)
        self.hand_out(spread)

    async def _adopt(self, spread: Spread) -> None:
        """What holders have said in the meantime is heard first, and what they still hold is left to them."""
        await asyncio.sleep(2 * WAIT_S)
        stem = self._key(spread, None)
        for seen in await self.dispatch_loop.dispatch.leases(self._execution_id):
            if seen.key.startswith(stem):
                lo, _, hi = seen.key.removeprefix(stem).partition(":")
                spread.out[seen.key] = ElementRange(0, int(lo), int(hi))

    def hand_out(self, spread: Spread) -> None:
        """As many stretches as iterations may run at a time; when nothing is out and nothing left, the iterator ends."""
        component, lease = spread.component, spread.lease
        iterator = component.fan
        if self._spreads.get(component.place.id) is not spread or component.status != RUNNING:
            return
        assert iterator is not None
        while len(spread.out) < iterator.parallel:
            remaining = (iterator.total or 0) - iterator.ok - iterator.failed
            size = spread.pace.size(remaining, iterator.parallel)
            stretch = sharing.cut(lease.decider, component, spread.out.values(), size)
            if stretch is None:
                break
            if (component.place.id, stretch.lo) in self._losses:
                stretch.hi = stretch.lo + 1  # One of them takes its worker with it: alone it takes nothing else along.
            self._offer(spread, stretch)
        if not spread.out:
            del self._spreads[component.place.id]
            spread.around.driver.decide(SpreadOver(component))

    def out_now(self) -> list[str]:
        return [key for spread in self._spreads.values() for key in spread.out]

    def offer_again(self, key: str) -> None:
        for spread in self._spreads.values():
            if key in spread.out:
                self._offer(spread, spread.out[key], is_adopted=True)

    def _offer(self, spread: Spread, stretch: ElementRange, *, is_adopted: bool = False) -> None:
        key, lease = self._key(spread, stretch), spread.lease
        spread.out[key] = stretch
        iterator = spread.component.place.id
        payload = brief_subjob(
            lease,
            self._document_of(lease),
            spread.history,
            self.dispatch_loop.blobs,
            iterator=iterator,
            elements=stretch,
        )
        pool = pool_named(lease.setting.net.executor)
        needs = frozenset({"jobs"})
        assert stretch.hi is not None
        losses = max(self._losses[iterator, index] for index in range(stretch.lo, stretch.hi))
        limits = suspects.limits(self._execution_id, losses)
        offer = Offer(key, self._execution_id, payload, pool, needs, limits, lease_s=self._lease_s, is_range=True)
        self.dispatch_loop.offer(offer, is_adopted=is_adopted)

    def _key(self, spread: Spread, stretch: ElementRange | None) -> str:
        """Names the start of the iterator as well: what an earlier one handed out is nothing to a later one."""
        assert spread.component.fan is not None
        stem = f"{self._execution_id}/{spread.component.place.id}@{spread.component.fan.opened_at}#"
        return stem if stretch is None else f"{stem}{stretch.lo}:{stretch.hi}"

    # ---- in

    def went(self, key: str, spread: Spread, kind: NoteKind, said: Report) -> None:
        """After a note has been recorded."""
        ended = [ts for fact, ts in said.facts if isinstance(fact.body, ElementEnded)]
        if ended:
            spread.pace.saw(len(ended), 1000 * (max(ended) - min(ts for _, ts in said.facts)))
        if kind in (NoteKind.SAID, NoteKind.ASKED):
            return
        stretch = spread.out.pop(key, None)
        if stretch is None:  # Heard before.
            return
        if is_loss(kind, said):
            assert spread.component.fan is not None
            assert stretch.hi is not None
            settled = spread.component.fan.settled
            lost = next((one for one in range(stretch.lo, stretch.hi) if one not in settled), None)
            if lost is not None and self._lost(spread, lost, said.reason):
                return
        self.hand_out(spread)

    def _lost(self, spread: Spread, index: int, reason: str | None) -> bool:
        """Whoever had this element is gone. True: that was one too many."""
        self._losses[spread.component.place.id, index] += 1
        losses = self._losses[spread.component.place.id, index]
        if losses <= LOSSES or spread.lease.stop_reason is not None:
            return False
        why = f": {reason}" if reason else ""
        message = f"iteration {index} of `{spread.component.place.id}` was given to workers {losses} times, and none finished it"
        self._give_up(spread.around, {"kind": "worker_lost", "message": message + why, "retryable": True})
        return True

    async def stop(self, lease: Lease, reason: str) -> None:
        """Nothing more goes out, and what is out ends."""
        for spread in [one for one in self._spreads.values() if one.lease is lease]:
            for key in await self.call_off(list(spread.out), reason):
                spread.out.pop(key, None)
            self.hand_out(spread)

    async def call_off(self, keys: list[str], reason: str) -> frozenset[str]:
        """Gives those that nobody holds; the holders of the others are told to stop."""
        dispatch = self.dispatch_loop.dispatch
        withdrawn = await dispatch.withdraw(keys)
        for key in keys:
            if key not in withdrawn:
                await dispatch.tell(key, encode({"stop": reason}))
        return withdrawn

    async def dies(self, lease: Lease, news: bytes) -> None:
        for spread in [one for one in self._spreads.values() if one.lease is lease]:
            for key in list(spread.out):
                await self.dispatch_loop.dispatch.tell(key, news)
            self.hand_out(spread)

    def drop(self, lease: Lease) -> list[str]:
        """The sub-job is over, or starts over. Gives the leases that nobody waits for any more."""
        gone = [one for one in self._spreads.values() if one.lease is lease]
        for spread in gone:
            del self._spreads[spread.component.place.id]
        return [key for spread in gone for key in spread.out]
