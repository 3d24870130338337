"""From an offset inside a scalar's value back to the file.

Exact for plain, quoted and literal scalars that stand on the lines they seem to; where YAML folded lines together the text is
looked for, and the whole scalar is the answer of last resort.
"""

from __future__ import annotations

import re

from penstock.dialects.problems import Place
from penstock.dialects.source.node import SourceNode, lines_of

_ESCAPE_LENGTH = {"x": 4, "u": 6, "U": 10}


def place_in_text(node: SourceNode, start: int, end: int, source_text: str) -> Place:
    """The place of `value[start:end]` of a text scalar; of its first line where the range spans several."""
    value = node.text()
    if value is None or not 0 <= start <= end:
        return node.place
    end = min(end, len(value))
    start = min(start, end)
    found = _exact(node, value, start, end, source_text)
    return found or _by_search(node, value, start, end, source_text) or node.place


def _exact(node: SourceNode, value: str, start: int, end: int, source_text: str) -> Place | None:
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
        return _place(node, node.text_line, node.text_column + start, node.text_column + end)
    if node.style:
        columns = _quoted_columns(raw, first, node.style, len(value))
        if columns is not None:
            return _place(node, node.text_line, columns[start] + 1, columns[end] + 1)
    return None


def _in_literal(node: SourceNode, value: str, start: int, end: int) -> Place:
    line = value.count("\n", 0, start)
    line_start = value.rfind("\n", 0, start) + 1
    line_end = value.find("\n", start)
    stop = min(end, line_end if line_end >= 0 else len(value))
    return _place(
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


def _by_search(node: SourceNode, value: str, start: int, end: int, source_text: str) -> Place | None:
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
            return _place(node, line, match.start() - line_start + 1, last - line_start + 1)
    return None


def _place(node: SourceNode, line: int, column: int, end_column: int) -> Place:
    return Place(node.place.file, line, column, end_column)
