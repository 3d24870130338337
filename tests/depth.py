"""How many random examples a property is tried with: enough for every commit, and more when PENSTOCK_TEST_DEPTH asks for it.

PENSTOCK_TEST_DEPTH=20 python -m pytest tests/spec/test_fanout_random.py      # twenty times as many
make test-deep                                                                # the whole suite, ten times as many
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

_DEPTH = float(os.environ.get("PENSTOCK_TEST_DEPTH", "1"))


def times(usual: int) -> int:
    return max(usual, round(usual * _DEPTH))


def some(cases: Iterable[T], usual: int) -> list[T]:
    """Of many cases that differ little so many: the first, the last, and from between them a sample that is always the same.
    More with PENSTOCK_TEST_DEPTH, up to all of them."""
    found = list(cases)
    wanted = times(usual)
    if wanted >= len(found):
        return found
    between = random.Random(len(found)).sample(range(1, len(found) - 1), wanted - 2)
    return [found[at] for at in (0, *sorted(between), len(found) - 1)]


ABOUT_ONE_PART = (
    "tests/components/",
    "tests/tools/",
    "tests/data/",
    "tests/docs/",
    "tests/keychain/",
    "tests/state/",
    "tests/views/",
    "tests/worker/",
)


def is_replayed() -> bool:
    """Is what the test under way runs to be replayed? Of tests about a single part one in four, always the same ones."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return not test.startswith(ABOUT_ONE_PART) or _DEPTH > 1 or crc32(test.encode()) % 4 == 0
