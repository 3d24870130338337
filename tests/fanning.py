"""Workforces for fanned-out loops in one process: one that loses ranges, and one that answers at once without any work."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.sqlite.log import SqliteLog
from penstock.app.embedded import Embedded
from penstock.kernel.net import Node
from penstock.kernel.ranges import ElementsEnded, RangeOpened, RangeReport
from penstock.kernel.state import Run
from penstock.ports.leases import FanRange, Lease, Reports, ScopeContext, Workforce
from penstock.server.documents import Pinned
from penstock.tools.registry import Registry
from penstock.worker.range_runner import RangeRunner
from penstock.worker.workforce import LocalWorkforce
from tests.engine import Played, document, events_of

Hire = Callable[[LocalWorkforce], LocalWorkforce]


@dataclass(slots=True)
class Staffed(Embedded):
    """The embedded engine with other workers."""

    hire: Hire = lambda force: force

    def _open_workforce(self, execution_id: str, hide: Any) -> Workforce:
        usual = Embedded._open_workforce(self, execution_id, hide)
        assert isinstance(usual, LocalWorkforce)
        force = self.hire(usual)
        if force is not usual:
            self._lines[id(force)] = self._lines.pop(id(usual))
        return force


def play_with(
    hire: Hire, text: str, home: Path, payload: dict[str, Any] | None = None, *, resume: bool = False
) -> Played:
    """Run a playbook to its end, or take it up again, with the workers that `hire` makes of the usual ones."""
    path = home / "playbook.yaml"
    if not resume:
        path.write_text(document(text), encoding="utf-8")

    async def main() -> Played:
        engine = Staffed(home / ".penstock", SqliteLog(home / ".penstock"), FileBlobs(home / ".penstock"), Registry())
        engine.hire = hire
        try:
            run = engine.run("run-1")
            if resume:
                summary = await run.resume()
            else:
                pinned = Pinned(str(path), path.read_text(encoding="utf-8"))
                summary = await run.start(pinned, payload or {}, label=None, trace_id="trace-1")
            events = events_of(engine, "run-1")
            difference = await engine.replay("run-1")
            assert difference is None, difference.describe()
            return Played(summary, events, home)
        finally:
            await engine.close()

    return asyncio.run(main())


class _Dying:
    """Reports of a worker that dies after so many of them: what it does not say is not heard."""

    def __init__(self, inner: Reports, lives: int) -> None:
        self._inner = inner
        self._lives = lives
        self.died = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _lives_on(self) -> bool:
        self._lives -= 1
        if self._lives < 0:
            self.died.set()
        return not self.died.is_set()

    def report(self, lease: Lease, report: RangeReport) -> None:
        if self._lives_on():
            self._inner.report(lease, report)

    def give_back(self, lease: Lease, reason: str = "returned") -> None:
        if self._lives_on():
            self._inner.give_back(lease, reason)


class RangeForce(LocalWorkforce):
    """Works as usual, but for ranges."""

    def start(self, lease: Lease, run: Run, reports: Reports) -> None:
        if isinstance(lease.part, FanRange):
            self.start_range(lease, reports)
        else:
            super().start(lease, run, reports)

    def start_range(self, lease: Lease, reports: Reports) -> None:
        super().start(lease, lease.run, reports)


class Shaky(RangeForce):
    """Ranges are lost on the way: before they begin, while they are worked on, and just before their last word is heard."""

    def __init__(self, usual: LocalWorkforce, seed: int, share: float = 0.4, slots: int = 4) -> None:
        super().__init__(usual.services)
        self.chance = random.Random(seed)
        self.share = share
        self.lost = 0
        self._slots = slots

    def slots(self, context: ScopeContext, node: Node) -> int:
        return self._slots

    def start_range(self, lease: Lease, reports: Reports) -> None:
        lease.range.report_s = (
            -1.0
        )  # It reports after every element, so that much of a range is reported and much is not.
        if self.chance.random() >= self.share:
            super().start_range(lease, reports)
            return
        dying: Any = _Dying(reports, self.chance.choice([0, 1, 2, 3, 8]))
        self._held[lease.key] = asyncio.ensure_future(self._lose(lease, reports, dying))

    async def _lose(self, lease: Lease, reports: Reports, dying: Any) -> None:
        work = asyncio.ensure_future(RangeRunner(lease, self.services, dying).perform())
        death = asyncio.ensure_future(dying.died.wait())
        try:
            await asyncio.wait({work, death}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # Called back: it dies of that.
            dying.died.set()
        for task in (work, death):
            task.cancel()
        self._held.pop(lease.key, None)
        if dying.died.is_set() and lease.stop_reason != "interrupt":
            self.lost += 1
            reports.give_back(lease, "lost")
        await asyncio.gather(work, death, return_exceptions=True)


class Instant(RangeForce):
    """Every range is done as soon as it is handed out, and took its time as if each element had taken a microsecond."""

    def __init__(self, usual: LocalWorkforce, slots: int = 8, results: Any = None) -> None:
        super().__init__(usual.services)
        self._slots = slots
        self._results = results
        self.handed_out = 0
        self.most_out = 0
        self._out = 0

    def slots(self, context: ScopeContext, node: Node) -> int:
        return self._slots

    def ahead(self) -> int:
        return 4

    def start_range(self, lease: Lease, reports: Reports) -> None:
        self.handed_out += 1
        self._out += 1
        self.most_out = max(self.most_out, self._out)
        asyncio.get_running_loop().call_soon(self._answer, lease, reports)

    def _answer(self, lease: Lease, reports: Reports) -> None:
        self._out -= 1
        elements, fan = lease.range.elements, lease.node.fan
        assert elements.hi is not None
        assert fan is not None
        count = elements.hi - elements.lo
        reports.report(lease, RangeOpened())
        shared: Any = dict.fromkeys(fan.reducers, count)
        ended = ElementsEnded(elements.lo, elements.hi, [], self._results, True, [], shared, ms=count / 1_000)
        reports.report(lease, ended)

    async def stop(self, lease: Lease, reason: str, grace_s: float = 0.0) -> None:
        if isinstance(lease.part, FanRange):
            lease.stop_reason = reason
        else:
            await super().stop(lease, reason, grace_s)


class Idle(RangeForce):
    """Takes no range: what is handed out comes back for the reason given."""

    def __init__(self, usual: LocalWorkforce, reason: str) -> None:
        super().__init__(usual.services)
        self._reason = reason

    def start_range(self, lease: Lease, reports: Reports) -> None:
        asyncio.get_running_loop().call_soon(reports.give_back, lease, self._reason)
