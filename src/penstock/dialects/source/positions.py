"""Positions in the file: of values (without anchor and tag), of parts of a text, and of the steps and tasks of a net."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Protocol

from penstock.dialects.problems import Position
from penstock.dialects.source.node import SourceNode, lines_of
from penstock.kernel.values import frozen


class Mark(Protocol):
    """What the parser counts, from 0, in characters."""

    @property
    def index(self) -> int: ...

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


@frozen
class Spot:
    index: int
    line: int
    column: int


@frozen
class TextSpan:
    """The place of a scalar, and of the text in it (1-based)."""

    position: Position
    line: int
    column: int
    end_line: int


_PROPERTY = re.compile(r"!<[^>\s]*>|[&!][^\s,\[\]{}]*")
_SPACE = re.compile("(?:[ \t\r\n\x85\u2028\u2029]|(?<=\\s)#[^\r\n\x85\u2028\u2029]*)*")
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_FIRST_WORDS = re.compile(r"^( *)[^ \n]", re.MULTILINE)


class Positions:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines = lines_of(text)

    def span(self, start: Mark, end: Mark) -> Position:
        """To the end of the first line, where the value has several."""
        end_column = end.column if end.line == start.line else self._line_end(start.line)
        return Position(self.file, start.line + 1, start.column + 1, max(end_column, start.column) + 1)

    def first_line(self, start: Mark) -> Position:
        return Position(self.file, start.line + 1, start.column + 1, max(self._line_end(start.line), start.column) + 1)

    def at(self, index: int) -> Position:
        """The place of one character."""
        line, line_start = 1, 0
        for found in _BREAKS.finditer(self.text, 0, index):
            line, line_start = line + 1, found.end()
        column = index - line_start + 1
        return Position(self.file, line, column, column + 1)

    def tag(self, start: Mark) -> Position:
        """The place of the `!tag` of a value that starts, properties and all, at `start`."""
        index = self.text.find("!", start.index)
        found = _PROPERTY.match(self.text, index)
        spot = self.content(start, Spot(index, start.line, start.column)) if index > start.index else start
        return Position(self.file, spot.line + 1, spot.column + 1, spot.column + 1 + (len(found[0]) if found else 1))

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
        position = Position(self.file, start.line + 1, start.column + 1, start.column + 1 + width)
        end_line = max(start.line + 1, min(len(self.lines), end.line + 1 if end.column else end.line))
        return TextSpan(position, start.line + 2, self._indent(start.line + 1, end_line, value) + 1, end_line)

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


# ---- From an offset inside a scalar's value back to the file
#
# Exact for plain, quoted and literal scalars that stand on the lines they seem to; where YAML folded lines together the
# text is looked for, and the whole scalar is the answer of last resort.


_ESCAPE_LENGTH = {"x": 4, "u": 6, "U": 10}


def position_in_text(node: SourceNode, start: int, end: int, source_text: str) -> Position:
    """The place of `value[start:end]` of a text scalar; of its first line where the range spans several."""
    value = node.text()
    if value is None or not 0 <= start <= end:
        return node.position
    end = min(end, len(value))
    start = min(start, end)
    found = _exact(node, value, start, end, source_text)
    return found or _by_search(node, value, start, end, source_text) or node.position


def _exact(node: SourceNode, value: str, start: int, end: int, source_text: str) -> Position | None:
    if node.style == "|":
        return _in_literal(node, value, start, end)
    if node.style == ">" or node.end_line != node.text_line:
        return None
    lines = lines_of(source_text)
    if node.text_line > len(lines):
        return None
    raw = lines[node.text_line - 1]
    first = node.text_column - 1
    if raw.startswith(value, first) and not (node.style == "'" and "'" in value):
        return _position(node, node.text_line, node.text_column + start, node.text_column + end)
    if node.style:
        columns = _quoted_columns(raw, first, node.style, len(value))
        if columns is not None:
            return _position(node, node.text_line, columns[start] + 1, columns[end] + 1)
    return None


def _in_literal(node: SourceNode, value: str, start: int, end: int) -> Position:
    line = value.count("\n", 0, start)
    line_start = value.rfind("\n", 0, start) + 1
    line_end = value.find("\n", start)
    stop = min(end, line_end if line_end >= 0 else len(value))
    return _position(
        node, node.text_line + line, node.text_column + start - line_start, node.text_column + stop - line_start
    )


def _quoted_columns(raw: str, at: int, quote: str, length: int) -> list[int] | None:
    """For each character of the value, and one past it, the 0-based column where its spelling begins."""
    columns = [at]
    while len(columns) <= length:
        if at >= len(raw):
            return None
        if quote == "'":
            at += 2 if raw.startswith("''", at) else 1
        elif raw[at] == "\\":
            at += _ESCAPE_LENGTH.get(raw[at + 1 : at + 2], 2)
        else:
            at += 1
        columns.append(at)
    return columns


def _by_search(node: SourceNode, value: str, start: int, end: int, source_text: str) -> Position | None:
    words = value[start:end].split()
    if not words:
        return None
    # Folding changes the spaces between words, never the words; so the n-th match in the value is the n-th in the file.
    wanted = re.compile(r"\s+".join(map(re.escape, words)))
    before = sum(1 for match in wanted.finditer(value) if match.start() < start and match.end() <= start)
    lines = lines_of(source_text)[node.text_line - 1 : node.end_line]
    if not lines:
        return None
    first = lines[0]
    region = "\n".join((" " * (node.text_column - 1) + first[node.text_column - 1 :], *lines[1:]))
    for count, match in enumerate(wanted.finditer(region)):
        if count == before:
            line_start = region.rfind("\n", 0, match.start()) + 1
            stop = region.find("\n", match.start(), match.end())
            last = stop if stop >= 0 else match.end()
            line = node.text_line + region.count("\n", 0, match.start())
            return _position(node, line, match.start() - line_start + 1, last - line_start + 1)
    return None


def _position(node: SourceNode, line: int, column: int, end_column: int) -> Position:
    return Position(node.position.file, line, column, end_column)


# ---- From a step or task of the net back to the file, for errors at run time


@frozen
class SourceMap:
    file: str = ""
    steps: dict[str, Position] = field(default_factory=dict)
    tasks: dict[tuple[str, str], Position] = field(default_factory=dict)
    """(step, label) -> where the task's name stands."""
    arcs: dict[tuple[str, int], Position] = field(default_factory=dict)
    """(step, index of the edge) -> where the arc names its target."""
    keychain: dict[str, Position] = field(default_factory=dict)
    """Keychain entry -> where it is declared, or first used."""
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Step -> its first and its last line, 1-based."""
    lines: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """(step, label) -> parameter -> the 1-based line on which the first line of its text stands."""

    def lines_of(self, step: str, label: str) -> dict[str, int]:
        return self.lines.get((step, label), {})

    def shown(self, step: str, task: str | None) -> str:
        """`file:line` of a task, or of its step; empty if that is not known."""
        found = (self.tasks.get((step, task)) if task else None) or self.steps.get(step)
        return f"{found.file}:{found.line}" if found is not None and found.line else ""
