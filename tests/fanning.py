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
from penstock.ports.leases import RangeLease, RangeReport, RangeReports, Workforce
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

    def __init__(self, inner: RangeReports, lives: int) -> None:
        self._inner = inner
        self._lives = lives
        self.died = asyncio.Event()
        self.play, self.now, self.broke = inner.play, inner.now, inner.broke

    def _lives_on(self) -> bool:
        self._lives -= 1
        if self._lives < 0:
            self.died.set()
        return not self.died.is_set()

    def opened(self, lease: RangeLease, hi: int | None, next: Any, is_end: bool) -> None:
        if self._lives_on():
            self._inner.opened(lease, hi, next, is_end)

    def reported(self, lease: RangeLease, report: RangeReport) -> None:
        if self._lives_on():
            self._inner.reported(lease, report)

    def gave_back(self, lease: RangeLease, reason: str) -> None:
        if self._lives_on():
            self._inner.gave_back(lease, reason)

    def failed(self, lease: RangeLease, error: Any) -> None:
        if self._lives_on():
            self._inner.failed(lease, error)


class Shaky(LocalWorkforce):
    """Ranges are lost on the way: before they begin, while they are worked on, and just before their last word is heard."""

    def __init__(self, usual: LocalWorkforce, seed: int, share: float = 0.4, slots: int = 4) -> None:
        super().__init__(usual.services)
        self.chance = random.Random(seed)
        self.share = share
        self.lost = 0
        self._slots = slots

    def slots(self, node: Node) -> int:
        return self._slots

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        lease.report_s = -1.0  # It tells after every element, so that much of a range is told of and much is not.
        if self.chance.random() >= self.share:
            super().start_range(lease, reports)
            return
        dying = _Dying(reports, self.chance.choice([0, 1, 2, 3, 8]))
        self._ranges[lease.key] = asyncio.ensure_future(self._lose(lease, reports, dying))

    async def _lose(self, lease: RangeLease, reports: RangeReports, dying: _Dying) -> None:
        work = asyncio.ensure_future(RangeRunner(lease, self.services, dying).run())
        death = asyncio.ensure_future(dying.died.wait())
        try:
            await asyncio.wait({work, death}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # Called back: it dies of that.
            dying.died.set()
        for task in (work, death):
            task.cancel()
        self._ranges.pop(lease.key, None)
        if dying.died.is_set() and lease.stop_reason != "interrupt":
            self.lost += 1
            reports.gave_back(lease, "lost")
        await asyncio.gather(work, death, return_exceptions=True)


class Instant(LocalWorkforce):
    """Every range is done as soon as it is handed out, and took its time as if each element had taken a microsecond."""

    def __init__(self, usual: LocalWorkforce, slots: int = 8, results: Any = None) -> None:
        super().__init__(usual.services)
        self._slots = slots
        self._results = results
        self.handed_out = 0
        self.most_out = 0
        self._out = 0

    def slots(self, node: Node) -> int:
        return self._slots

    def ahead(self) -> int:
        return 4

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        self.handed_out += 1
        self._out += 1
        self.most_out = max(self.most_out, self._out)
        asyncio.get_running_loop().call_soon(self._answer, lease, reports)

    def _answer(self, lease: RangeLease, reports: RangeReports) -> None:
        self._out -= 1
        shards = lease.shards
        assert shards.hi is not None
        count = shards.hi - shards.lo
        reports.opened(lease, None, None, False)
        shared: Any = dict.fromkeys(lease.reducers, count)
        reports.reported(
            lease, RangeReport(shards.lo, shards.hi, [], self._results, True, [], shared, ms=count / 1_000)
        )

    async def stop_range(self, lease: RangeLease, reason: str) -> None:
        lease.stop_reason = reason


class Idle(LocalWorkforce):
    """Takes nothing: what is handed out comes back for the reason given."""

    def __init__(self, usual: LocalWorkforce, reason: str) -> None:
        super().__init__(usual.services)
        self._reason = reason

    def start_range(self, lease: RangeLease, reports: RangeReports) -> None:
        asyncio.get_running_loop().call_soon(reports.gave_back, lease, self._reason)
