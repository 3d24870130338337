"""Replay: decide a recorded run again from its recorded outcomes and compare every decision with the one in the log.

Outcomes, starts and what the server was told, in its order, come from the record; admission, policies, routing, writes and ids
are worked out anew. The two canonical timelines must be equal; the first line that is not is the difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from penstock.kernel.facts import (
    ExecutionStarted,
    Fact,
    RunEnded,
)
from penstock.kernel.places import Place
from penstock.kernel.values import JsonMap
from penstock.ports.leases import PATIENT_TURNS, Caller, Lease
from penstock.ports.results import encode
from penstock.server.documents import Pinned
from penstock.server.driver import Driver
from penstock.server.executions import ExecutionHost
from penstock.server.fanouts import FanoutDriver
from penstock.server.jobs import JobDriver
from penstock.server.played import Played
from penstock.server.record import HOLD, Record, Turn, cancel_of
from penstock.server.step_driver import ScopeDriver

# So many turns of the event loop without a new fact mean that the replay has come to the end of the record.
QUIET_TURNS = 200
# So many, that all which follows from what was told has happened.
SETTLING_TURNS = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the decision made now is not the one in the log."""

    at: int
    recorded: JsonMap | None
    replayed: JsonMap | None

    def describe(self) -> str:
        def line(event: JsonMap | None) -> str:
            return "nothing" if event is None else encode(event).decode()

        return f"difference at canonical event {self.at}:\n  recorded: {line(self.recorded)}\n  replayed: {line(self.replayed)}"

    def as_json(self) -> JsonMap:
        return {"at": self.at, "recorded": self.recorded, "replayed": self.replayed}


def first_difference(recorded: Iterable[JsonMap], replayed: Iterable[JsonMap]) -> Difference | None:
    for at, (one, other) in enumerate(zip_longest(recorded, replayed)):
        if one != other:
            return Difference(at, one, other)
    return None


class ReplayHost(ExecutionHost):
    """The server is told what it was told, in the order of the record, so that whatever saw ctx sees the same ctx again."""

    # Holders stop where the record says they were stopped, not when this server would have come to it.
    stops_holders = False
    recalls = True

    def __init__(self, record: Record, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._record = self.witness = record
        self._turn = 0
        self._waiting: dict[str, asyncio.Event] = {}
        self._is_over = False
        self._stood = 0
        self._stood_at = 0
        self._quiet = 0
        self._seq = 0

    # ---- what came from outside

    def record(self, fact: Fact) -> None:
        if isinstance(fact.body, ExecutionStarted) and fact.scope in self._record.openings:
            opening, ts = self._record.openings[fact.scope]
            fact = fact._replace(body=replace(fact.body, rules=opening.rules))
            self.stream.now = lambda: ts  # Templates can see when an execution started.
        super().record(fact)

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Played:
        started, _ = self._record.openings[f"{caller.run_id}/"]
        return await super().play(caller, path, cast(JsonMap, started.workload), return_step, outputs)

    async def _until_finished(self, driver: Driver) -> None:
        """The child of a component that was resumed fails, and then goes on under the same name."""
        again = Turn("resume", driver.state.place.id)
        while True:
            await driver.finished.wait()
            is_to_come = again in self._record.turns[self._turn :]
            if self._is_over or (driver.finished.is_set() and not is_to_come):  # It may have gone on in the meantime.
                return
            await asyncio.sleep(0)

    def _document(self, place: Place, path: str, folder: Path) -> Pinned:
        """The text it was pinned to; the file may have changed since, or be gone."""
        started, _ = self._record.openings[place.id]
        return Pinned.from_mapping(started.document)

    # ---- turns

    def _next(self) -> Turn | None:
        turns = self._record.turns
        return turns[self._turn] if self._turn < len(turns) else None

    async def end(self, lease: Lease, body: RunEnded, counter: int) -> None:
        if await self._comes(lease.run.place.id):
            try:
                await super().end(lease, body, counter)
            finally:
                self._turn_over()

    async def end_fanout(self, fanout: FanoutDriver, body: RunEnded) -> None:
        if await self._comes(fanout.run.place.id):
            try:
                await super().end_fanout(fanout, body)
            finally:
                self._turn_over()

    def shards_of(self, scope: str) -> tuple[list[Fact] | None, JsonMap | None]:
        return self._record.shards.get(scope), self._record.given_up(scope)

    async def _comes(self, scope: str) -> bool:
        """Wait for the turn of a run's end. False: it never ended in the record, so whatever this is, it decides nothing."""
        at = self._record.ends.get(scope)
        if at is None or at < self._turn:
            return False
        if at != self._turn:
            waiting = self._waiting[scope] = asyncio.Event()
            await waiting.wait()
        return not self._is_over

    def _turn_over(self) -> None:
        self._turn += 1
        turn = self._next()
        if turn is not None and turn.scope in self._waiting:
            self._waiting.pop(turn.scope).set()

    async def let_go(self) -> None:
        """Those who still wait for their turn wait for something that does not happen any more: that is the difference."""
        self._is_over = True
        for waiting in self._waiting.values():
            waiting.set()
        await super().let_go()

    async def prompt(self, root: Driver) -> None:
        """Say what is to be said next, when it is no holder's word and the scope it is about is there."""
        self._hold_if_due()
        turn = self._next()
        driver = self._drivers.get(turn.scope) if turn is not None else None
        if turn is None or driver is None:
            return
        if isinstance(driver, JobDriver):
            if turn.what == "cancel" and driver.state.status == "running" and self._is_due(turn):
                self._turn_over()
                self._record.told(cancel_of(turn.scope))
                driver.flow.release()
                await driver.cancel(turn.reason)
            return
        assert isinstance(driver, ScopeDriver)
        if turn.what == "cancel" and driver.state.status == "running":
            driver.decider.cancel(turn.reason)
            self._turn_over()
            await driver.advance()
        elif turn.what == "resume" and driver.state.status == "failed":
            driver.finished.clear()
            driver.decider.resume([])
            self._turn_over()
            await driver.advance()

    def _hold_if_due(self) -> None:
        self._quiet = self._quiet + 1 if self._seq == self.stream.seq else 0
        self._seq = self.stream.seq
        order = self._record.order
        if HOLD not in order or not order.is_next(HOLD) or self._quiet < SETTLING_TURNS:
            return
        for driver in self._drivers.values():
            if isinstance(driver, JobDriver):
                driver.flow.hold()
        order.told(HOLD)

    def _is_due(self, turn: Turn) -> bool:
        """A job is cancelled after what ended before that; but a replay that has come to a stand waits for nothing."""
        at = self._record.told_so_far
        self._stood = self._stood + 1 if at == self._stood_at else 0
        self._stood_at = at
        has_come_so_far = self._record.is_next(cancel_of(turn.scope)) and all(
            self._record.order.is_told(iterator) for iterator in turn.iterators
        )
        return has_come_so_far or self._stood > PATIENT_TURNS

    def is_through(self, root: Driver) -> bool:
        return root.finished.is_set() and self._next() is None


async def decide_again(host: ReplayHost, document: Pinned, record: Record) -> None:
    """Drive the replay until it ends or nothing moves any more."""
    started, _ = record.openings[""]
    root = await host.begin_root(document, cast(JsonMap, started.workload), started.trace_id)
    seen, quiet = host.stream.seq, 0
    while quiet < QUIET_TURNS and not host.is_through(root) and host.error is None:
        await asyncio.sleep(0)
        await host.prompt(root)
        quiet = quiet + 1 if host.stream.seq == seen else 0
        seen = host.stream.seq
    await host.let_go()
    if host.error is not None:
        raise host.error
