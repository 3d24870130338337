"""The documents behind a log, as far as an explanation needs them."""

from __future__ import annotations

from typing import Protocol

from penstock.kernel.net import Net
from penstock.views.history import ExecutionSeen


class Book(Protocol):
    def net(self, execution: ExecutionSeen) -> Net | None:
        """The graph an execution runs; None when its document can no longer be read."""
        ...

    def where(self, execution: ExecutionSeen, step: str, arc: int | None = None, task: str | None = None) -> str:
        """`file:line` of a step, of one of its arcs or of one of its tasks; empty when that is not known."""
        ...
