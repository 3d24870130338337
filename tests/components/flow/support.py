"""What the tests of these components share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import Ran, run


def failed(type: str, params: Mapping[str, Any], *arguments: Any, **named: Any) -> ComponentFailure:
    """The failure that a run ends in."""
    with pytest.raises(ComponentFailure) as caught:
        run(type, params, *arguments, **named)
    return caught.value


class ScriptedClock:
    """A clock on which nothing takes time but sleeping, and at whose hours things happen."""

    def __init__(self, events: Mapping[float, Callable[[], Any]] | None = None) -> None:
        self.elapsed = 0.0
        self._events = dict(events or {})

    def now(self) -> float:
        return 1_700_000_000.0 + self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        for due in sorted(time for time in self._events if time <= self.elapsed + 1e-9):
            self._events.pop(due)()


__all__ = ["Ran", "ScriptedClock", "failed", "run"]
