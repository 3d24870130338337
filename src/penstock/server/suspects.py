"""Elements that were lost with their worker more than once: perhaps one of them brings workers down.

Of each execution, one worker at a time holds such elements, so that what they take with them are not others that have come back
as often through no fault of their own. What was lost once is not held up: workers die of other things as well. Steps and sub-jobs
are never held up: they may wait for others, which would then wait for them.
"""

from __future__ import annotations

LOSSES = 2


def limits(execution_id: str, losses: int) -> tuple[tuple[str, int], ...]:
    """On which terms work goes out that was lost so often."""
    return ((f"{execution_id} suspects", 1),) if losses >= LOSSES else ()


class LostElements:
    """How often elements of a loop were lost."""

    def __init__(self) -> None:
        self._lost: list[tuple[int, int, int]] = []
        """From an element up to another: so often."""

    def add(self, lo: int, hi: int) -> None:
        times = self.most(lo, hi) + 1
        self._lost = [one for one in self._lost if not (lo <= one[0] and one[1] <= hi)]
        self._lost.append((lo, hi, times))

    def most(self, lo: int, hi: int) -> int:
        return max((times for start, end, times in self._lost if start < hi and lo < end), default=0)
