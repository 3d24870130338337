"""Whoever is killed, frozen, cut off or started again, and whatever PostgreSQL goes through: every run comes to the same end."""

from __future__ import annotations

import os

import pytest

from tests.depth import times
from tests.faults.trial import KINDS, TOGETHER, Schedule, Trials

COUNT = int(os.environ.get("PENSTOCK_FAULT_SEEDS", times(6)))
FIRST = int(os.environ.get("PENSTOCK_FAULT_SEED", "0"))
"""Where the seeds begin; another beginning makes another soak."""
OF_EVERY_KIND = [11, 12, 51, 59, 102, 162]
"""Between them every kind of fault happens to everyone to whom it can."""
SEEDS = [*OF_EVERY_KIND, *range(FIRST, FIRST + COUNT)]


@pytest.mark.clause("F3.1")
@pytest.mark.parametrize("first", range(0, len(SEEDS), TOGETHER))
def test_every_item_is_done_once_whatever_happens(trials: Trials, first: int) -> None:
    trials.run(SEEDS[first : first + TOGETHER])


def test_every_kind_of_fault_is_among_them() -> None:
    happens = {(fault.kind, fault.who[0]) for seed in OF_EVERY_KIND for fault in Schedule(seed).faults}
    assert happens == {(kind, group[0]) for group, kinds in KINDS.items() for kind in kinds}
