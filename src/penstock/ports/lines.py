"""What tools say while they run, stored for later reading.

Law: saying something never blocks. `append` neither waits nor fails; lines that cannot be stored are lost, and a line after
them says how many. The lines of one execution are read in the order in which they were said. Lines are redacted before they
come here. All methods may be called from any thread; those other than `append` may wait for a disk or a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from penstock.kernel.values import JsonMap


class Line(NamedTuple):
    ts: float
    scope: str
    """The place in the execution, `""` for the execution itself."""
    task: str | None
    """The task run."""
    text: str

    def record(self) -> JsonMap:
        """As it is read, in files and from servers."""
        return {"ts": self.ts, "scope": self.scope, "task_run_id": self.task, "line": self.text}


def lost_lines(count: int, ts: float) -> Line:
    return Line(ts, "", None, f"{count} lines were lost here: they could not be kept")


class LineStore(Protocol):
    def append(self, execution_id: str, lines: Sequence[Line]) -> None:
        """Hand lines over."""
        ...

    def flush(self) -> None:
        """Return when what was handed over before can be read, or is lost."""
        ...

    def read(self, execution_id: str, after: int = 0, limit: int = 1000) -> list[JsonMap]:
        """At most `limit` records `{ts, scope, task_run_id, line}`, numbered from 1 in each execution, behind number `after`.

        Nothing of an execution that has said nothing, or is not known."""
        ...

    def count(self, execution_id: str, after: int = 0) -> int:
        """How many lines there are. `after`: at least as many, which are not counted again where that saves work."""
        ...

    def drop(self, executions: Iterable[str]) -> None:
        """Delete everything these executions said."""
        ...

    def close(self) -> None:
        """Store pending lines, if that can be done soon, and close files and connections. Closing again does nothing."""
        ...
