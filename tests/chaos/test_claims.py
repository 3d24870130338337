"""kill -9 in the middle of a work queue: what was claimed and recorded is worked on, and only what was not recorded waits for
its lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import trials
from tests.chaos.engines import entries_on_disk, write
from tests.chaos.zygote import Zygote
from tests.claiming import Jobs, book, queue, recorded, worked_on
from tests.depth import times
from tests.replaying import assert_replays

KILLED = -9
COUNT = 9
STRIDE = max(1, 8 // times(1))


@pytest.mark.parametrize(("moment", "at_once"), [("recorded", 1), ("durable", 1), ("durable", 3)])
def test_a_run_that_is_killed_at_any_event_goes_on_with_the_rows_it_had_recorded(
    zygote: Zygote, tmp_path: Path, moment: str, at_once: int
) -> None:
    step = queue(rows=2, at_once=at_once)
    at, code = 5, KILLED
    while code == KILLED:
        folder = tmp_path / f"killed-{at}"
        folder.mkdir()
        jobs, file = Jobs.at(folder, COUNT), write(folder, book(step))
        code = zygote.call(trials.start, home=str(folder), file=str(file), **{moment: at}).code
        known = entries_on_disk(folder)
        claimed = recorded(known)
        ended = {claimed[index] for index in worked_on(known)}
        before = jobs.worked()
        assert set(before) <= set(claimed.values()), "a row was worked on before its claim was safe"
        missing = jobs.taken() - set(claimed.values())
        assert len(missing) <= 2 * at_once
        if code == KILLED and known and known[-1].type != "playbook.completed":
            again = zygote.call(trials.resume, home=str(folder))
            assert again.code == 0, (at, again.error)
            assert again.value["status"] == "completed"
            assert again.value["result"]["total"] == COUNT - len(missing)
            worked = jobs.worked()
            assert set(worked) == set(range(COUNT)) - missing
            assert {number: worked[number] for number in ended} == dict.fromkeys(ended, 1)
            assert max(worked.values()) <= 2
            assert_replays(folder)
        at += STRIDE
    assert code == 0
    assert at > 5 + STRIDE
