"""One type for every mistake an author can make in a document.

A `Problem` has a code, a position, what is wrong, what would be right, and a hint. Problems are collected, never raised singly.
A code must have a page of diagnostics before it can be reported, so that none can be missing from the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from typing import TypedDict, Unpack

from penstock.dialects.diagnostics import has_page
from penstock.kernel.errors import Bug
from penstock.kernel.values import frozen


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Position:
    """1-based line and column; `end_column` is one past the last character on that line. Line 0 is the file as a whole."""

    file: str
    line: int
    column: int
    end_column: int

    @classmethod
    def whole(cls, file: str) -> Position:
        return cls(file, 0, 0, 0)


@frozen
class Problem:
    code: str
    severity: Severity
    message: str
    position: Position
    label: str = ""
    """Short text beside the caret, such as "did you mean `retry`?"."""
    hint: str = ""
    rewrite: str = ""
    """YAML that would be right, where the rewrite is mechanical."""
    path: str = ""
    """Where in the document's structure, such as `workflow[2].tool[0].kind`, where that is known."""
    calls: str = ""
    """How the document came to be called, where it is not the one that was looked at: `main.yaml → load → child.yaml`."""

    @property
    def place(self) -> Position:
        """The position, by its name in the Python API."""
        return self.position


class Details(TypedDict, total=False):
    """What a problem may have besides its code, its message and its position."""

    label: str
    hint: str
    rewrite: str
    path: str


_WEIGHT = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def _order(problem: Problem) -> tuple[str, int, int, int, str, str]:
    position = problem.position
    return position.file, position.line, position.column, _WEIGHT[problem.severity], problem.code, problem.message


class Findings:
    """The problems of one or more documents: each reported once, read in the order of their places."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self._problems: dict[tuple[str, str, Position], Problem] = {}
        self.extend(problems)

    def add(self, problem: Problem) -> None:
        if not has_page(problem.code):
            raise Bug(
                f"the problem code `{problem.code}` is not registered",
                "add it to the pages of its family",
            )
        self._problems.setdefault((problem.code, problem.message, problem.position), problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add(problem)

    def error(self, code: str, message: str, position: Position, **more: Unpack[Details]) -> None:
        self.add(Problem(code, Severity.ERROR, message, position, **more))

    def warning(self, code: str, message: str, position: Position, **more: Unpack[Details]) -> None:
        self.add(Problem(code, Severity.WARNING, message, position, **more))

    def note(self, code: str, message: str, position: Position, **more: Unpack[Details]) -> None:
        self.add(Problem(code, Severity.NOTE, message, position, **more))

    def in_order(self) -> list[Problem]:
        return sorted(self._problems.values(), key=_order)

    def strict(self) -> Findings:
        """The same findings with every warning an error; notes stay notes."""
        return Findings(
            replace(problem, severity=Severity.ERROR) if problem.severity is Severity.WARNING else problem
            for problem in self._problems.values()
        )

    @property
    def has_errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self._problems.values())

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.in_order())

    def __len__(self) -> int:
        return len(self._problems)


# Words longer than this are texts, not misspelt names; comparing them would only cost time.
_LONGEST_NAME = 64


def nearest(word: str, candidates: Iterable[str], most: int) -> list[str]:
    """The candidates that are least unlike `word`, the nearest first. Whatever they are like, there are so many of them."""
    from difflib import SequenceMatcher  # Only mistakes need it.

    bare = _bare(word)[:_LONGEST_NAME]

    def likeness(candidate: str) -> tuple[float, str]:
        parts = [_bare(part) for part in candidate.split("_")]
        return -SequenceMatcher(None, bare, _bare(candidate)).ratio() - (0.5 if bare in parts else 0.0), candidate

    return sorted(candidates, key=likeness)[:most]


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` was probably meant to be, or None: `rety` → `retry`, `maxInFlight` → `max_in_flight`."""
    bare = _bare(word)
    if not bare or len(bare) > _LONGEST_NAME:
        return None
    # One slip turns any two-letter word into any other, so short words must match but for case and separators.
    allowed = 0 if len(bare) < 3 else 1 if len(bare) < 5 else 2
    letters = frozenset(bare)
    best: tuple[int, bool, int] | None = None
    found: str | None = None
    for candidate in candidates:
        other = _bare(candidate)
        if candidate == word or not other or abs(len(other) - len(bare)) > allowed:
            continue
        # A slip brings or takes two different letters at most.
        if len(letters.symmetric_difference(other)) > 2 * allowed:
            continue
        slips = _slips(bare, other, allowed)
        # A shorter candidate may not be rewritten wholesale either: `in` is not a misspelt `fan`.
        if slips > allowed or slips * 2 >= len(other):
            continue
        rank = (slips, other[0] != bare[0], abs(len(other) - len(bare)))
        if best is None or rank < best:
            best, found = rank, candidate
    return found


_SEPARATORS = {ord(mark): None for mark in "-_ "}


def _bare(word: str) -> str:
    return word.casefold().translate(_SEPARATORS)


def _slips(left: str, right: str, most: int) -> int:
    """Letters added, dropped, changed, or swapped with their neighbour, to get from one word to the other; when they are more
    than `most`, just more. Only what is near the diagonal is looked at, and nothing once it is too many: a document may have
    thousands of names, and thousands that are unknown."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        first, last = max(1, i - most), min(len(right), i + most)
        current = [i if first == 1 else most + 1] * first
        for j in range(first, last + 1):
            b = right[j - 1]
            above = row[j] if j < len(row) else most + 1
            cost = min(above + 1, current[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, row = row, current
    return row[-1] if len(row) > len(right) else most + 1
