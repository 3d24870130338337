"""Clocks of machines are set, forwards and back: the times of a run never go back, and nothing takes less than no time."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import embedded
from penstock.server.documents import Documents, Pinned
from penstock.server.views import Views
from penstock.views.headers import listed
from tests.engine import document
from tests.envelopes import checked_events

PLAYBOOK = """
- step: start
  tool:
    - {name: wait, kind: sleep, seconds: 0.01}
    - {name: shell, kind: python, code: "result = 1"}
  next: {arcs: [{step: each}]}
- step: each
  loop: {in: {range: 6}, iterator: n, spec: {mode: parallel}}
  tool: {kind: sleep, seconds: 0.001}
  next: {arcs: [{step: spread}]}
- step: spread
  spec: {loop_mode: fanout, fanout: {emit: per_item, range_size: 2}}
  loop: {in: {range: 6}, iterator: n}
  tool: {kind: sleep, seconds: 0.001}
"""
JOB = """
components:
  - {name: wait, type: sleep, params: {seconds: 0.01}}
  - {name: after, type: sleep, params: {seconds: 0.01}}
connections: {control: "wait (ok) after"}
"""


class JumpingClock:
    """Set at every look: by hours forwards or back."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def now(self) -> float:
        return 1_700_000_000.0 + self._chance.uniform(-7_200.0, 7_200.0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def durations(value: Any) -> list[float]:
    """Every figure of a length of time, wherever it stands."""
    if isinstance(value, dict):
        own = [one for key, one in value.items() if key in FIGURES and isinstance(one, int | float)]
        return own + [one for inner in value.values() for one in durations(inner)]
    return [one for inner in value for one in durations(inner)] if isinstance(value, list) else []


FIGURES = ("duration_ms", "ms", "DURATION_MS", "elapsed_ms", "WAITED")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("text", [document(PLAYBOOK), JOB], ids=["playbook", "job"])
def test_times_never_go_back_and_nothing_takes_less_than_no_time(tmp_path: Path, seed: int, text: str) -> None:
    async def main() -> None:
        engine = embedded(tmp_path / ".penstock", clock=JumpingClock(seed))
        try:
            run = engine.run("run-1")
            summary = await run.start(Pinned(str(tmp_path / "d.yaml"), text), {}, label=None, trace_id="t")
            assert summary.status == "completed", summary.error
            assert 0 <= summary.duration_ms < 3_600_000 * 4
            events = checked_events(engine.log, "run-1")
            times = [datetime.fromisoformat(str(event["ts"])) for event in events]
            assert times == sorted(times)
            found = durations([event["payload"] for event in events])
            assert found
            assert min(found) >= 0
            header = engine.log.header("run-1")
            assert header is not None
            views = Views(engine.log, engine.blobs, Documents(engine.tools, engine.components))
            shown = [listed(header, header.status), views.shown(header)]
            assert min(durations(shown)) >= 0
        finally:
            await engine.close()

    asyncio.run(main())
