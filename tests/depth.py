"""How many random examples a property is tried with: enough for every commit, and more when PENSTOCK_TEST_DEPTH asks for it.

PENSTOCK_TEST_DEPTH=20 python -m pytest tests/spec/test_fanout_random.py      # twenty times as many
"""

from __future__ import annotations

import os

_DEPTH = float(os.environ.get("PENSTOCK_TEST_DEPTH", "1"))


def times(usual: int) -> int:
    return max(usual, round(usual * _DEPTH))
