"""What readers of a log store beside it: views of a run at some of its entries, so that every entry is close to one.

Law: snapshots are derived. One that is missing, or in a format that is not asked for, costs time and nothing else; they are
deleted with their execution. Calls are synchronous and may be made from any thread.
"""

from __future__ import annotations

from typing import Protocol


class Snapshots(Protocol):
    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        """The last snapshot in that format at or before entry `upto`: the number of its entry, and its content."""
        ...

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        """Store a snapshot. If there is one at that entry already, either may remain. Nothing is stored for an unknown
        execution."""
        ...
