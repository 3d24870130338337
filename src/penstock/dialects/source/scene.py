"""What a reader of a syntax error looks at: the parser's words, its two marks, and the lines of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yaml.error import MarkedYAMLError


@dataclass(frozen=True, slots=True)
class Slip:
    """Line and columns are 0-based here, as the parser counts."""

    code: str
    message: str
    line: int
    column: int
    width: int = 1
    label: str = ""
    hint: str = ""
    rewrite: str = ""


LONGEST_LINE = 1000


class Scene:
    """The error and the lines it happened on."""

    def __init__(self, error: MarkedYAMLError, lines: Sequence[str]) -> None:
        self.lines = lines
        self.words = error.problem or ""
        self.context = error.context or ""
        mark, context = error.problem_mark, error.context_mark
        self.line, self.column = self._within(mark.line, mark.column) if mark else (0, 0)
        self.context_line, self.context_column = (
            self._within(context.line, context.column) if context else (self.line, self.column)
        )
        self.at_end = mark is not None and mark.line >= len(lines) - 1 and self.column >= len(self.text.rstrip())

    def _within(self, line: int, column: int) -> tuple[int, int]:
        """Errors at the end of the stream stand below the last line; they are shown at the end of the last text."""
        if line < len(self.lines) and (self.lines[line].strip() or line == 0):
            return line, column
        line = min(line, len(self.lines) - 1)
        while line > 0 and not self.lines[line].strip():
            line -= 1
        return line, len(self.lines[line].rstrip())

    def hand_written(self, line: int) -> str:
        """The line, or nothing when it is far longer than people write: patterns are not let loose on a megabyte."""
        text = self.lines[line]
        return text if len(text) <= LONGEST_LINE else ""

    @property
    def text(self) -> str:
        return self.lines[self.line]

    @property
    def character(self) -> str:
        return self.text[self.column : self.column + 1]

    def above(self, line: int) -> int | None:
        """The nearest line above that says something."""
        for number in range(line - 1, -1, -1):
            stripped = self.lines[number].strip()
            if stripped and not stripped.startswith("#"):
                return number
        return None


def quoted(text: str) -> str:
    """The text as a YAML scalar between the quotes that need the fewest changes."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"
