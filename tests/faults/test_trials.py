"""Whoever is killed, frozen, cut off or started again, and whatever PostgreSQL goes through: every run comes to the same end."""

from __future__ import annotations

import os

import pytest

from tests.faults.trial import TOGETHER, Trials

COUNT = int(os.environ.get("PENSTOCK_FAULT_SEEDS", "24"))
FIRST = int(os.environ.get("PENSTOCK_FAULT_SEED", "0"))
"""Where the seeds begin; another beginning makes another soak."""


@pytest.mark.clause("F3.1")
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, TOGETHER))
def test_every_item_is_done_once_whatever_happens(trials: Trials, first: int) -> None:
    trials.run(list(range(first, min(first + TOGETHER, FIRST + COUNT))))
