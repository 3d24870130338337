"""What readers of a log keep beside it: views of a run at some of its entries, so that any moment is near one.

Law: snapshots are derived. One that is missing, or in a format that is not asked for, costs time and nothing else; they go with
the execution they are of. Calls are synchronous and may be made from any thread.
"""

from __future__ import annotations

from typing import Protocol


class Snapshots(Protocol):
    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        """The last one in that format at entry `upto` or before it: the number of its entry, and what was kept."""
        ...

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        """Keep one. There may be one at that entry already: then either stands. Of an unknown execution nothing is kept."""
        ...
