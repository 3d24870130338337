"""`resume --failed` of iterations inside of others is cut off after any decision: the next resume goes on, and what stays is not run."""

from __future__ import annotations

from pathlib import Path

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.server.runs import RunSummary
from tests.chaos.engines import RUN, MemoryHome, virtually
from tests.chaos_jobs.homes import DecisionLog, started
from tests.depth import some
from tests.replaying import assert_engine_replays
from tests.spec_jobs.test_failed_iterations import nested
from tests.spec_jobs.test_resume import Shop


def test_a_stop_while_nested_iterations_run_again_keeps_what_had_been_kept(folder: Path) -> None:
    shop, home = Shop(folder), MemoryHome.at(folder / ".penstock")
    file = folder / "job.yaml"
    file.write_text(nested(shop, parallel=2))

    async def begin(engine: Embedded) -> int:
        assert (await started(engine, file)).status == "completed"
        return len(list(engine.log.read(RUN)))

    begun: int = virtually(home.open, begin)
    shop.mend()

    async def go_on(engine: Embedded) -> RunSummary:
        return await engine.run(RUN).resume(failed_only=True)

    log = DecisionLog(MemoryLog(home.store), "outer", "outer[#0].inner", "outer[#2].inner")
    unbroken: RunSummary = virtually(lambda: home.open(log), go_on)
    assert unbroken.status == "completed", unbroken.error
    cuts = sorted(at for at in log.boundaries if at > begun)[:-1]
    assert len(cuts) > 10
    for at in some(cuts, 6):
        cut = home.cut(at)
        Path(shop.home / "ran").unlink()

        async def body(engine: Embedded) -> RunSummary:
            summary = await engine.run(RUN).resume()
            await assert_engine_replays(engine)
            return summary

        again: RunSummary = virtually(cut.open, body)
        assert (again.status, again.ctx) == ("completed", unbroken.ctx), at
        assert not {"first", "0", "2"} & set(shop.ran), "they had ended, and stay"
        assert cut.entries()[-1].payload.count(b'"failed_iterations":0'), at
