"""Row counts inside a fused query, from the run itself and exact.

DuckDB's profile says how many rows each operator passed on, but its optimizer moves the author's filters, joins and limits
freely, so that no operator of the final plan need have the rows of one component. A boundary is therefore held in place: a
sample of 100 % on both sides, which passes every row and which the optimizer pushes nothing through, and between them a
filter that is always true, that the optimizer must not fold, and that carries the number of the boundary. All three pass
vectors on by reference.

    STREAMING_SAMPLE
      FILTER  (current_connection_id() != 18446744073709551001)     rows passed = rows at boundary 1
        STREAMING_SAMPLE

A count is only believed if the operators above it could not stop early: a LIMIT, or a join that found its other side empty,
leaves the rest of the rows unread. Such a boundary has no count here, and is counted by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Marks count down from the largest UBIGINT, where no connection's number will ever be.
_TOP = 18_446_744_073_709_550_000
_MARK = re.compile(r"current_connection_id\(\) (?:!=|<>) (\d{20})")


def marked(source: str, number: int) -> str:
    held = f"SELECT * FROM {source} TABLESAMPLE SYSTEM(100 PERCENT)"
    passed = f"SELECT * FROM ({held}) WHERE current_connection_id() <> {_TOP + number}"
    return f"(SELECT * FROM ({passed}) TABLESAMPLE SYSTEM(100 PERCENT))"


@dataclass(frozen=True, slots=True)
class _Operator:
    type: str
    rows: int
    mark: int | None
    children: tuple[_Operator, ...]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> _Operator:
        kind = str(told.get("type", ""))
        mark = _MARK.search(str(told.get("extra_info", {}).get("Expression", ""))) if kind == "FILTER" else None
        return cls(
            kind,
            int(told.get("intermediate_rows", 0)),
            int(mark.group(1)) - _TOP if mark else None,
            tuple(cls.of(child) for child in told.get("children", ())),
        )

    def is_held(self) -> bool:
        """The filter stands where it was put."""
        return len(self.children) == 1 and self.children[0].type == "STREAMING_SAMPLE"


def counts(profile: str) -> dict[int, int]:
    """Boundary -> rows, of those boundaries that the profile of a finished statement is sure about."""
    found: dict[int, int] = {}
    doubtful: set[int] = set()
    for root in json.loads(profile).get("operator", ()):
        for operator, may_be_cut in _walk(_Operator.of(root), False):
            if operator.mark is None:
                continue
            if may_be_cut or operator.mark in found or not operator.is_held():
                doubtful.add(operator.mark)
            found[operator.mark] = operator.rows
    return {number: rows for number, rows in found.items() if number not in doubtful}


def _walk(operator: _Operator, may_be_cut: bool) -> Iterator[tuple[_Operator, bool]]:
    yield operator, may_be_cut
    stops_early = may_be_cut or "LIMIT" in operator.type or operator.type == "RECURSIVE_CTE"
    for child in operator.children:
        others_empty = any(other.rows == 0 for other in operator.children if other is not child)
        yield from _walk(child, stops_early or others_empty)
