"""The dispatch loop: hands out leases and receives messages for all executions that a server process owns.

Offers of all executions go out together, and messages come in together, so a hundred executions cost the store as many round
trips as one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.blobs import BlobStore
from penstock.ports.dispatch import Dispatch, Message, Offer, WorkerCard, WorkerSeen

MOST_MESSAGES = 500
WAIT_S = 0.5
"""How long one poll for messages waits. Partitions gained in the meantime are polled only afterwards."""
PAUSE_S = 0.2
ROSTER_S = 1.0
REAP_S = 1.0
MOST_REFUSALS = 1_000


@dataclass(slots=True)
class Roster:
    """The workers, as last seen."""

    workers: list[WorkerSeen] = field(default_factory=list)

    def able(self, pool: str, needs: Collection[str]) -> list[WorkerCard]:
        """The workers that could take such work."""
        return [
            seen.card
            for seen in self.workers
            if seen.is_alive and not seen.is_draining and seen.card.pool == pool and seen.card.can.issuperset(needs)
        ]

    def slots(self, pool: str, needs: Collection[str]) -> int:
        """How many ranges they can hold at a time."""
        return sum(max(1, card.slots - 1) for card in self.able(pool, needs))


class DispatchLoop:
    def __init__(
        self,
        dispatch: Dispatch,
        blobs: BlobStore,
        partitions: Callable[[], Collection[int]],
        receive: Callable[[str, list[Message]], Awaitable[None]],
    ) -> None:
        """`receive(execution_id, messages)` lets messages take effect; it returns once the effect is on disk."""
        self.dispatch = dispatch
        self.blobs = blobs
        self.roster = Roster()
        self._refusals: dict[str, set[str]] = {}
        """Key of the work -> the workers that refused it. All ranges of one loop share a key."""
        self.on_refused: Callable[[str, Refused], None] = lambda execution_id, error: None
        """Called with an execution whose work cannot be handed out, and the reason."""
        self._partitions = partitions
        self._receive = receive
        self._fresh: list[Offer] = []
        self._adopted: list[Offer] = []
        self._has_offers = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._watched: list[asyncio.Task[None]] = []
        self.received = 0

    def start(self) -> None:
        for one in (self._offering, self._receiving, self._reaping, self._looking):
            self._loops.append(asyncio.ensure_future(one()))

    async def close(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)

    def watch(self, loop: asyncio.Task[None]) -> None:
        """Watch another loop that the server cannot work without."""
        self._watched.append(loop)

    def check(self) -> None:
        """Raise the error that ended one of the loops, if any."""
        for loop in (*self._loops, *self._watched):
            if loop.done() and not loop.cancelled() and (error := loop.exception()) is not None:
                raise error

    # ---- out

    def offer(self, offer: Offer, *, is_adopted: bool = False) -> None:
        """Queue an offer. `is_adopted`: according to the log it is already out; if that is so, nothing happens."""
        (self._adopted if is_adopted else self._fresh).append(offer)
        self._has_offers.set()

    async def _offering(self) -> None:
        while True:
            await self._has_offers.wait()
            self._has_offers.clear()
            fresh, self._fresh = self._fresh, []
            adopted, self._adopted = self._adopted, []
            try:
                if adopted:
                    missing = await self.dispatch.missing([one.key for one in adopted])
                    fresh.extend(one for one in adopted if one.key in missing)
                    adopted = []
                if fresh:
                    await self._offer(fresh)
            except Unavailable:
                self._fresh[:0], self._adopted[:0] = fresh, adopted
                self._has_offers.set()
                await asyncio.sleep(PAUSE_S)

    async def _offer(self, offers: list[Offer]) -> None:
        """Send the offers together; if one is refused, send them by execution, so that one execution's error does not affect
        the others."""
        try:
            await self.dispatch.offer(offers)
        except Refused:
            by_execution: dict[str, list[Offer]] = {}
            for offer in offers:
                by_execution.setdefault(offer.execution_id, []).append(offer)
            for execution_id, its in by_execution.items():
                try:
                    await self.dispatch.offer(its)
                except Refused as error:
                    self.on_refused(execution_id, error)

    # ---- in

    async def is_refused(self, message: Message, pool: str, needs: Collection[str]) -> bool:
        """Record that a worker cannot run this. Whether every worker that could be asked has said so."""
        if len(self._refusals) >= MOST_REFUSALS:
            self._refusals.clear()
        refusing = self._refusals.setdefault(message.key.rpartition("#")[0] or message.key, set())
        refusing.add(message.worker)
        self.roster.workers = await self.dispatch.workers()
        return all(card.id in refusing for card in self.roster.able(pool, needs))

    async def _receiving(self) -> None:
        while True:
            try:
                owned = self._partitions()
                messages = await self.dispatch.messages(owned, MOST_MESSAGES, WAIT_S) if owned else []
                if not owned:
                    await asyncio.sleep(PAUSE_S)
                await self.take_in(messages)
            except Unavailable:
                await asyncio.sleep(PAUSE_S)

    async def take_in(self, messages: list[Message]) -> None:
        """Let messages take effect. Executions do not wait for each other; the messages of one take effect in order."""
        if not messages:
            return
        by_execution: dict[str, list[Message]] = {}
        for message in messages:
            by_execution.setdefault(message.execution_id, []).append(message)
        results = await asyncio.gather(
            *(self._receive(execution_id, its) for execution_id, its in by_execution.items()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, PenstockError):
                raise result
        received = [
            message.number
            for its, result in zip(by_execution.values(), results, strict=True)
            if not isinstance(result, BaseException)
            for message in its
        ]
        if received:
            await self.dispatch.acknowledge(received)
            self.received += len(received)
        if len(received) < len(messages):  # Messages that did not take effect will be shown again.
            await asyncio.sleep(PAUSE_S)

    # ---- supervision

    async def _reaping(self) -> None:
        while True:
            await asyncio.sleep(REAP_S)
            with contextlib.suppress(Unavailable):
                await self.dispatch.reap()

    async def _looking(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                self.roster.workers = await self.dispatch.workers()
            await asyncio.sleep(ROSTER_S)
