"""Playbooks as they are written for NoETL, in its words: each runs as it is, checks its own outcome, and ends alike wherever it runs."""

from __future__ import annotations

import pytest

from tests.corpus.conftest import PLAYBOOKS, Around

NAMES = sorted(file.stem for file in PLAYBOOKS.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_playbook_does_what_it_says_in_one_process_and_on_a_fleet(around: Around, fleet: str, name: str) -> None:
    here, there = around.run(f"{name}.yaml", "--store", "home"), around.run(f"{name}.yaml", "--server", fleet)
    assert (here.exit_code, there.exit_code) == (0, 0), here.said + here.printed + there.said + there.printed
    assert here.result == there.result
