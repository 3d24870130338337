"""How many elements to a range: as many as keep a worker busy for some seconds, and fewer when the end is near, so that all end
together."""

from __future__ import annotations

TARGET_S = 10.0
"""How long a worker should be busy with one range."""
LEAST_S = 0.1
"""Not even at the end is a range cut smaller than this: handing it out would take longer than its work."""
LARGEST_RANGE = 65_536
FIRST_RANGE = 32
"""While nobody knows how long an element takes."""


class Pace:
    """Learns how long an element takes."""

    def __init__(self, fixed: int | None, first: int = FIRST_RANGE) -> None:
        self._fixed = fixed
        self._first = first
        self._each_s: float | None = None

    def saw(self, elements: int, ms: float) -> None:
        if elements > 0 and ms > 0:
            each = ms / 1000 / elements
            self._each_s = each if self._each_s is None else 0.7 * self._each_s + 0.3 * each

    def size(self, remaining: int | None, slots: int) -> int:
        if self._fixed is not None:
            return self._fixed
        size = self._first
        if self._each_s is not None:
            size = int(min(LARGEST_RANGE, max(1.0, TARGET_S / max(self._each_s, 1e-9))))
        if remaining is not None:
            least = 1 if self._each_s is None else int(LEAST_S / max(self._each_s, 1e-9))
            size = min(size, max(least, -(-remaining // (2 * slots))))
        return max(1, min(size, LARGEST_RANGE))
