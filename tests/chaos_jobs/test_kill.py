"""kill -9 at every event of a small job: resuming gives what an unbroken run would have given. Real processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.log import Entry
from tests.chaos.engines import entries_on_disk
from tests.chaos_jobs import jobs, trials
from tests.chaos_jobs.homes import leftovers, timeline
from tests.chaos_jobs.test_power_loss import finished
from tests.chaos_jobs.zygote import JobZygote
from tests.depth import times
from tests.replaying import assert_replays

KILLED = -9
# The log is cut after every decision elsewhere; here real processes die, at every so many events, each test at others.
STRIDE, CHUNKS = max(2, 70 // times(1)), 1


class Trial:
    """One run with a state folder of its own. All of them run the same file on the same files, laid out afresh each time."""

    def __init__(self, zygote: JobZygote, folder: Path, file: Path) -> None:
        folder.mkdir()
        jobs.furnish(file.parent)
        (file.parent / "out.csv").unlink(missing_ok=True)
        self.zygote = zygote
        self.folder = folder
        self.file = file

    def start(self, **death: int) -> Any:
        return self.zygote.call(trials.start, home=str(self.folder), file=str(self.file), **death)

    def resume(self, **death: int) -> Any:
        return self.zygote.call(trials.resume, home=str(self.folder), **death)

    def entries(self) -> list[Entry]:
        return entries_on_disk(self.folder)

    def marks(self) -> Counter[str]:
        return jobs.marks(self.folder)

    def timeline(self) -> Any:
        return timeline(self.entries())


@pytest.mark.clause("J8.5")
@pytest.mark.clause("J7.2")
@pytest.mark.clause("J12.6")
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("moment", ["recorded", "durable"])
def test_a_job_that_is_killed_at_any_event_and_resumed_ends_as_if_nothing_had_happened(
    zygote: JobZygote, folder: Path, moment: str, chunk: int
) -> None:
    file = jobs.write_rich(folder)
    whole = Trial(zygote, folder / "whole", file)
    unbroken = whole.start()
    assert unbroken.code == 0, unbroken.error
    assert unbroken.value["status"] == "completed", unbroken.value
    wanted, events, files = whole.timeline(), len(whole.entries()), jobs.files(folder)
    seen: set[int] = set()
    first_at = 2 + (3 if moment == "durable" else 0) + chunk * STRIDE // CHUNKS
    for at in range(first_at, events, STRIDE):
        trial = Trial(zygote, folder / f"killed-{at}", file)
        first = trial.start(**{moment: at})
        assert first.code == KILLED, first.error
        kept, before = trial.entries(), trial.marks()
        if not kept or kept[-1].type == "job.completed":
            continue  # Nothing was acknowledged, or everything: there is nothing to go on with.
        if len(kept) in seen:
            continue  # It left the same log as the one before.
        seen.add(len(kept))
        again = trial.resume()
        assert again.code == 0, (at, again.error)
        assert again.value == unbroken.value, at
        assert trial.timeline() == wanted, at
        after = trial.marks()
        assert {mark: after[mark] for mark in finished(kept)} == {mark: before[mark] for mark in finished(kept)}
        assert set(after) == jobs.MARKS
        assert max(after.values()) <= 2
        assert jobs.files(folder) == files, at
        assert leftovers(trial.folder / ".penstock") == [], at
        assert_replays(trial.folder)
