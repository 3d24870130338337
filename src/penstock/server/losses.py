"""Leases whose workers were lost, and what became of them, as this server has seen it.

Law: nothing depends on it. It is derived from the messages of the dispatch, keeps only the newest losses, and ends with the
process; what a loss meant for a run is in the log of the run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.ports.dispatch import Message, MessageKind

MOST = 1000


@dataclass(slots=True)
class Loss:
    execution_id: str
    key: str
    attempt: int
    at: float
    worker: str | None
    taken_by: str | None = None
    is_done: bool = False
    """Whoever took it has ended it."""

    @property
    def scope(self) -> str:
        return self.key.removeprefix(f"{self.execution_id}/")


class Losses:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._found: OrderedDict[tuple[str, int], Loss] = OrderedDict()
        self._latest: dict[str, Loss] = {}

    def note(self, messages: Iterable[Message]) -> None:
        """A message may be shown more than once."""
        for message in messages:
            if message.kind is MessageKind.LOST:
                self._lost(message)
            elif message.worker and (loss := self._latest.get(message.key)) and message.attempt > loss.attempt:
                loss.taken_by = message.worker
                loss.is_done = loss.is_done or message.kind is MessageKind.DONE

    def newest(self, limit: int) -> list[Loss]:
        return list(reversed(self._found.values()))[:limit]

    def _lost(self, message: Message) -> None:
        name = (message.key, message.attempt)
        if name in self._found:
            return
        before = self._latest.get(message.key)
        if before is not None and before.attempt < message.attempt:
            before.taken_by = message.worker or None
        loss = Loss(message.execution_id, message.key, message.attempt, self._now(), message.worker or None)
        self._found[name] = self._latest[message.key] = loss
        while len(self._found) > MOST:
            (key, attempt), _ = self._found.popitem(last=False)
            if self._latest[key].attempt == attempt:
                del self._latest[key]
