"""How many random examples a property is tried with: enough for every commit, and more when PENSTOCK_TEST_DEPTH asks for it.

PENSTOCK_TEST_DEPTH=20 python -m pytest tests/spec/test_fanout_random.py      # twenty times as many
"""

from __future__ import annotations

import os
from zlib import crc32

_DEPTH = float(os.environ.get("PENSTOCK_TEST_DEPTH", "1"))


def times(usual: int) -> int:
    return max(usual, round(usual * _DEPTH))


ABOUT_ONE_PART = ("tests/components/", "tests/tools/", "tests/data/", "tests/docs/")


def is_replayed() -> bool:
    """Is what the test under way runs to be replayed? Of tests about a single part one in four, always the same ones."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return not test.startswith(ABOUT_ONE_PART) or _DEPTH > 1 or crc32(test.encode()) % 4 == 0
