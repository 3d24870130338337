"""Sends what a worker of a fleet reports under a lease: in order, in batches, and each report once.

Reports are sent while the work goes on; only those who ask for it (`durable`) wait until they are stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from penstock.kernel.errors import Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.dispatch import Held, Intake, MessageKind, WorkerCard
from penstock.ports.folders import address_of
from penstock.ports.leases import Caller
from penstock.ports.reports import report_of_failure, report_of_lines, report_of_question

GATHER = 256
FLUSH_S = 0.05
PAUSE_S = 0.2
ASK_AGAIN_S = 15.0
"""Longest wait before a question is asked again; if leases are shorter, one lease: by then there may be a new owner to ask."""


class Line(NamedTuple):
    """A line for the run's log."""

    ts: float
    scope: str
    task: str | None
    text: str


class Answer(NamedTuple):
    """How a child execution ended, as reported by the server."""

    status: str
    result: Any
    error: Json
    kind: str
    exit_code: int | None = None


class ReportQueue:
    """The reports under one lease that are still to be sent."""

    def __init__(
        self,
        intake: Intake,
        card: WorkerCard,
        held: Held,
        on_lost: Callable[[str, int], None],
        on_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.card = card
        self.held = held
        self.is_lost = False
        self._waits = 0
        self._last: tuple[MessageKind, bytes] | None = None
        self._intake = intake
        self._on_waiting = on_waiting
        self._on_lost = on_lost
        self._queue: deque[tuple[MessageKind, bytes]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._lines: list[Line] = []
        self._lines_due: asyncio.TimerHandle | None = None
        self._asked: dict[int, asyncio.Future[JsonMap]] = {}
        self._numbers = count(1)

    @property
    def is_waiting(self) -> bool:
        """Whether the lease waits for others, and so occupies no slot."""
        return self._waits > 0

    def waits(self, by: int) -> None:
        """Count one thing more to wait for, or one less."""
        self._waits += by
        if by > 0:
            self._on_waiting()

    # ---- sending

    def say(self, kind: MessageKind, body: bytes) -> None:
        if self.is_lost:
            return
        if kind in (MessageKind.DONE, MessageKind.RETURNED):
            self._last = self._last or (kind, body)
            return
        self._queue.append((kind, body))
        self._go()

    async def finish(self) -> None:
        """Send the last report, which was held back until now, and return when everything is stored."""
        self.say_lines()
        if self._last is not None and not self.is_lost:
            self._queue.append(self._last)
            self._last = None
            self._go()
        await self.drained()

    def _go(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        while self._queue and not self.is_lost:
            kind = self._queue[0][0]
            bodies: list[bytes] = []
            while self._queue and self._queue[0][0] is kind and len(bodies) < GATHER:
                bodies.append(self._queue.popleft()[1])
            if not await self._kept(kind, bodies):
                self.is_lost = True
                self._on_lost(self.held.key, self.held.attempt)

    async def _kept(self, kind: MessageKind, bodies: list[bytes]) -> bool:
        held = self.held
        while not self.is_lost:
            try:
                return await self._intake.say(self.card.id, held.key, held.attempt, kind, bodies)
            except Unavailable:
                await asyncio.sleep(PAUSE_S)  # Retry as long as the lease is ours; the next heartbeat tells.
        return False

    async def drained(self) -> None:
        """Return when every report is stored, or can no longer be stored."""
        self.say_lines()
        while self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending})

    def give_back(self, body: bytes) -> None:
        self.say(MessageKind.RETURNED, body)

    def fail(self, why: str, refusal: JsonMap | None = None) -> None:
        """Report that this worker cannot do it; with a refusal, that it will not be able to later either."""
        self.say(MessageKind.RETURNED, report_of_failure(f"{self.card.name}: {why}", refusal))

    # ---- asking

    async def ask(self, what: JsonMap) -> JsonMap:
        number = next(self._numbers)
        future: asyncio.Future[JsonMap] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        body = report_of_question({**what, "number": number})
        self.waits(1)
        try:
            # The server that was asked may be gone before it answers; its successor gets the same question.
            while True:
                self.say(MessageKind.ASKED, body)
                done, _ = await asyncio.wait({future}, timeout=min(ASK_AGAIN_S, self.held.lease_s))
                if done:
                    return future.result()
        finally:
            self.waits(-1)
            del self._asked[number]

    def answered(self, data: JsonMap) -> None:
        number = data.get("answer")
        future = self._asked.get(number) if isinstance(number, int) else None
        if future is not None and not future.done():
            future.set_result(data)

    # ---- lines

    def line(self, line: Line) -> None:
        self._lines.append(line)
        if len(self._lines) >= GATHER:
            self.say_lines()
        elif self._lines_due is None:
            self._lines_due = asyncio.get_running_loop().call_later(FLUSH_S, self.say_lines)

    def say_lines(self) -> None:
        if self._lines_due is not None:
            self._lines_due.cancel()
            self._lines_due = None
        if self._lines:
            lines, self._lines = self._lines, []
            self.say(MessageKind.REPORTED, report_of_lines([list(line) for line in lines]))


async def ask_to_play(
    queue: ReportQueue, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...]
) -> Answer:
    what: JsonMap = {
        "run_id": caller.run_id,
        "clock": [list(part) if isinstance(part, tuple) else part for part in caller.clock],
        "path": path,
        "values": values,
        "return_step": return_step,
        "outputs": list(outputs),
        "iteration": caller.iteration,
        "folder": None if caller.folder is None else address_of(caller.folder),
        "context": caller.context_group,
    }
    answer: Any = await queue.ask(what)
    kind, code = answer.get("kind", "playbook"), answer.get("exit_code")
    return Answer(answer["status"], answer.get("result"), answer.get("error"), kind, code)
