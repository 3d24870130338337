"""The words of a log may get better: that is no difference in what was decided."""

from __future__ import annotations

from pathlib import Path

from penstock.app.embedded import Embedded
from tests.chaos.engines import RUN, MemoryHome, Told, virtually
from tests.chaos_jobs.homes import started
from tests.spec_jobs.support import job


def test_the_reason_of_a_skip_in_other_words_is_no_difference(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(job("a (error) b", "b (ok) c"))
    home = MemoryHome.at(tmp_path / ".penstock")
    told: Told = virtually(home.open, lambda engine: started(engine, tmp_path / "job.yaml"))
    entries = home.store.executions[RUN].entries
    home.store.executions[RUN].checksums.clear()  # As if it had been written so.
    for at, entry in enumerate(told.entries):
        if entry.type == "component.skipped":
            entries[at] = entry._replace(payload=entry.payload.replace(b"ended OK", b"went well"))

    async def body(engine: Embedded) -> object:
        return await engine.replay(RUN)

    assert any(b"went well" in entry.payload for entry in entries)
    assert virtually(home.open, body) is None
