"""What a run tells while it goes, put aside as it comes and taken up when somebody looks.

Law: it may cost the run almost nothing. So whoever works only appends to a list, and all the rest is done a batch at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.ports.log import Entry

KEPT_NEWS = 10_000

N = TypeVar("N")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Heard:
    """A line that a tool or a component said."""

    scope: str
    line: str


def latest() -> deque[T]:
    """For news: when nobody takes them, the oldest go."""
    return deque(maxlen=KEPT_NEWS)


@dataclass(slots=True, kw_only=True)
class Inbox(ABC, Generic[N]):
    """`N` is what one piece of news looks like."""

    news: deque[N] = field(default_factory=latest)
    _waiting: deque[object] = field(default_factory=deque)

    @abstractmethod
    def _take(self, entry: Entry) -> None: ...

    @abstractmethod
    def _hear(self, heard: Heard, now: float) -> None: ...

    def _count(self, item: object, now: float) -> None:
        """Anything else that was put aside."""
        raise AssertionError(f"nobody puts {type(item).__name__} aside")

    def observer(self) -> Callable[[Entry], None]:
        return self._waiting.append

    def line_observer(self) -> Callable[[str, str | None, str], None]:
        waiting = self._waiting

        def heard(scope: str, task_run_id: str | None, line: str) -> None:
            waiting.append(Heard(scope, line))

        return heard

    def fold(self, now: float) -> None:
        """Take up all that has come since the last time."""
        waiting = self._waiting
        while waiting:
            item = waiting.popleft()
            if isinstance(item, Entry):
                self._take(item)
            elif isinstance(item, Heard):
                self._hear(item, now)
            else:
                self._count(item, now)

    def take_news(self) -> list[N]:
        news = list(self.news)
        self.news.clear()
        return news
