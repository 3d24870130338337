"""P9.3: deciding a recorded run again gives the decisions that were recorded, whatever became of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.engines import virtually
from tests.replay.corpus import CORPUS
from tests.replaying import assert_engine_replays


@pytest.mark.clause("P9.3")
@pytest.mark.parametrize("name", CORPUS)
def test_the_replay_of_a_run_finds_no_difference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = CORPUS[name](tmp_path)
    before = home.entries()
    virtually(home.open, assert_engine_replays)
    assert home.entries() == before
