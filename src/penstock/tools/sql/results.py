"""The one shape of a SQL task's result (D48): `{rows, row_count, columns}`, and each command's own when there are several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import ToolFailure


@dataclass(slots=True)
class Table:
    """What one command gave back: rows, or only how many rows it touched."""

    columns: list[str] = field(default_factory=list)
    rows: list[Json] = field(default_factory=list)
    row_count: int = 0
    more: JsonMap = field(default_factory=dict)
    gives_rows: bool = False
    """Is it the kind of command that gives rows, even if there was none?"""

    def as_json(self) -> JsonMap:
        columns: list[Json] = list(self.columns)
        return {"rows": self.rows, "row_count": self.row_count, "columns": columns, **self.more}


def whole(tables: Sequence[Table]) -> JsonMap:
    """The last command's result; with several, all of them as `command_0`, `command_1` … beside it."""
    result = tables[-1].as_json() if tables else Table().as_json()
    if len(tables) > 1:
        result.update({f"command_{index}": table.as_json() for index, table in enumerate(tables)})
    return result


def too_large(max_rows: int) -> ToolFailure:
    return ToolFailure(
        "too_large",
        f"the query gives more than `max_rows` ({max_rows}) rows; "
        "hint: move them with the `transfer` tool or to a file, ask for fewer, or raise `max_rows`",
        max_rows=max_rows,
    )
