"""From the parser's marks to places: where a value stands without its anchor and tag, and where its text begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from penstock.dialects.problems import Place
from penstock.dialects.source.node import lines_of


class Mark(Protocol):
    """What the parser counts, from 0, in characters."""

    @property
    def index(self) -> int: ...

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Spot:
    index: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TextSpan:
    """The place of a scalar, and of the text in it (1-based)."""

    place: Place
    line: int
    column: int
    end_line: int


_PROPERTY = re.compile(r"!<[^>\s]*>|[&!][^\s,\[\]{}]*")
_SPACE = re.compile("(?:[ \t\r\n\x85\u2028\u2029]|(?<=\\s)#[^\r\n\x85\u2028\u2029]*)*")
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_FIRST_WORDS = re.compile(r"^( *)[^ \n]", re.MULTILINE)


class Places:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines = lines_of(text)

    def span(self, start: Mark, end: Mark) -> Place:
        """To the end of the first line, where the value has several."""
        end_column = end.column if end.line == start.line else self._line_end(start.line)
        return Place(self.file, start.line + 1, start.column + 1, max(end_column, start.column) + 1)

    def first_line(self, start: Mark) -> Place:
        return Place(self.file, start.line + 1, start.column + 1, max(self._line_end(start.line), start.column) + 1)

    def at(self, index: int) -> Place:
        """The place of one character."""
        line, line_start = 1, 0
        for found in _BREAKS.finditer(self.text, 0, index):
            line, line_start = line + 1, found.end()
        column = index - line_start + 1
        return Place(self.file, line, column, column + 1)

    def tag(self, start: Mark) -> Place:
        """The place of the `!tag` of a value that starts, properties and all, at `start`."""
        index = self.text.find("!", start.index)
        found = _PROPERTY.match(self.text, index)
        spot = self.content(start, Spot(index, start.line, start.column)) if index > start.index else start
        return Place(self.file, spot.line + 1, spot.column + 1, spot.column + 1 + (len(found[0]) if found else 1))

    def content(self, start: Mark, end: Mark) -> Spot:
        """Where the value itself starts, after its `&anchor` and `!tag`; they may stand on lines of their own."""
        index = start.index
        while index < end.index and (found := _PROPERTY.match(self.text, index)):
            index = found.end()
            if spaces := _SPACE.match(self.text, index):
                index = spaces.end()
        # A value that is empty ends with its properties; what follows the space is not part of it.
        if index > end.index:
            return Spot(end.index, end.line, end.column)
        line, line_start = start.line, start.index - start.column
        for found in _BREAKS.finditer(self.text, start.index, index):
            line, line_start = line + 1, found.end()
        return Spot(index, line, index - line_start)

    def scalar(self, start: Mark, end: Mark, style: str, value: str) -> TextSpan:
        if style not in ("|", ">"):
            quote = 1 if style else 0
            return TextSpan(self.span(start, end), start.line + 1, start.column + 1 + quote, end.line + 1)
        header = _BLOCK_HEADER.match(self.text, start.index)
        width = len(header[0]) if header else 1
        place = Place(self.file, start.line + 1, start.column + 1, start.column + 1 + width)
        end_line = max(start.line + 1, min(len(self.lines), end.line + 1 if end.column else end.line))
        return TextSpan(place, start.line + 2, self._indent(start.line + 1, end_line, value) + 1, end_line)

    def _line_end(self, line: int) -> int:
        return len(self.lines[line].rstrip()) if line < len(self.lines) else 0

    def _indent(self, first: int, last: int, value: str) -> int:
        """What YAML cut off each line of a block: the spaces in the file less those that are left in the value."""
        left = _FIRST_WORDS.search(value)
        for line in range(first, last):
            words = self.lines[line].lstrip(" ")
            if words:
                return max(0, len(self.lines[line]) - len(words) - (len(left[1]) if left else 0))
        return 0
