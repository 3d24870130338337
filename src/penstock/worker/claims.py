"""The rows that a loop claims, as its runner sees them: whoever has nothing to do claims some more.

Law: the runner holds no rows of its own. They are in the state of the loop, or in the result store when a claim is large, and go
when their iteration has ended; so a source without an end takes no more room than what is under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from penstock.kernel.state import Claimed, Loop, StepRun
from penstock.ports.results import LazyResult, Load, view


class ClaimedValues(Sequence[Any]):
    """The rows that were claimed, or their keys, by the index of their iteration: those that are still wanted."""

    def __init__(self, run: StepRun, which: Literal["items", "keys"], load: Load) -> None:
        self._run = run
        self._which = which
        self._load = load
        self._read: dict[int, Sequence[Any]] = {}
        """Of claims in the result store: what was read of those that are under way, by their first index."""

    @property
    def _loop(self) -> Loop:
        assert isinstance(self._run.fan, Loop)
        return self._run.fan

    def __len__(self) -> int:
        return self._loop.total

    def __getitem__(self, index: Any) -> Any:
        one = self._loop.claimed[index]
        return self._of(one)[index - one.lo]

    def _of(self, one: Claimed) -> Sequence[Any]:
        held: Any = getattr(one, self._which)
        if isinstance(held, list):
            return held
        if one.lo not in self._read:
            claimed = self._loop.claimed
            under_way = {claimed[index].lo for index in self._loop.open if index in claimed}
            self._read = {lo: values for lo, values in self._read.items() if lo in under_way}
            # A view of our own: that in the state would keep what it has read as long as a failed row may be tried again.
            assert isinstance(held, LazyResult)
            values: Any = view(held.ref, self._load)
            self._read[one.lo] = values
        return self._read[one.lo]


class Source:
    """When claims are made.

    A claim that found nothing is made again when an iteration has ended since it began: its work may have made more rows, or
    freed some. So when the last claim finds nothing, there is nothing left that this loop could still do.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._dry: int | None = None
        """How many iterations had ended when the last claim began that found nothing; None if one found something since."""

    @property
    def ended(self) -> int:
        return self._loop.ok + self._loop.failed

    @property
    def is_dry(self) -> bool:
        return self._dry is not None and self._dry >= self.ended

    def found(self) -> None:
        self._dry = None

    def found_nothing(self, since: int) -> None:
        """`since`: how many iterations had ended when the claim began."""
        self._dry = max(self._dry or 0, since)
