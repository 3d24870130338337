"""Problems for people, and for editors.

Text from documents is shown, never obeyed: control characters and bidirectional marks are replaced, so that no file can write
to the terminal. Columns are cells, so that the caret stands under the character it means, wide or tabbed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from penstock.dialects.problems import Problem, Severity
from penstock.dialects.source.node import lines_of
from penstock.kernel.values import Json

_WIDEST = 100
_TAB = 4
_MOST = 100

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_COLOURS = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.NOTE: "\x1b[1;36m"}

# C0, DEL, C1, bidirectional marks, line separators and lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render(
    problems: Iterable[Problem],
    sources: Mapping[str, str],
    *,
    color: bool = False,
    width: int = _WIDEST,
    most: int = _MOST,
) -> str:
    """All problems, each with its line and a caret, and the summary. `sources` maps a file's name to its text.

    After `most` problems the rest are only counted. The text ends with a line break, and is empty when there are no problems.
    """
    all_problems = list(problems)
    if not all_problems:
        return ""
    blocks = [
        render_one(problem, sources.get(problem.position.file, ""), color=color, width=width)
        for problem in all_problems[:most]
    ]
    left = len(all_problems) - most
    if left > 0:
        blocks.append(f"… and {left:,} more\n")
    return "\n".join([*blocks, summary(all_problems) + "\n"])


def render_one(problem: Problem, source: str, *, color: bool = False, width: int = _WIDEST) -> str:
    paint = _COLOURS[problem.severity] if color else ""
    position = problem.position
    where = _safe(position.file) + (f":{position.line}:{position.column}" if position.line else "")
    kind = _painted(f"{problem.severity.value}[{problem.code}]", paint)
    out = [f"{_painted(where, _BOLD if color else '')}: {kind}: {_safe(problem.message)}"]
    lines = lines_of(source)
    gutter = max(5, len(str(position.line)))
    if source and 0 < position.line <= len(lines):
        out += _snippet(problem, lines[position.line - 1], gutter, width, paint)
    elif problem.label:
        out.append(f"{' ' * (gutter + 1)}{_safe(problem.label)}")
    indent = " " * (gutter + 1)
    if problem.path:
        out.append(f"{indent}in `{_safe(problem.path)}`")
    if problem.calls:
        out.append(f"{indent}called: {_safe(problem.calls)}")
    if problem.hint:
        first, *rest = problem.hint.splitlines() or [""]
        out.append(f"{indent}{_painted('hint:', _BOLD if color else '')} {_safe(first)}")
        out += [f"{indent}      {_safe(line)}" for line in rest]
    if problem.rewrite:
        out.append(f"{indent}{_painted('write instead:', _BOLD if color else '')}")
        out += [f"{indent}    {_safe(line)}".rstrip() for line in problem.rewrite.splitlines()]
    return "\n".join(out) + "\n"


def summary(problems: Iterable[Problem]) -> str:
    """Such as "2 errors, 1 warning"; "no problems" when there are none."""
    count = dict.fromkeys(Severity, 0)
    for problem in problems:
        count[problem.severity] += 1
    counts = [f"{number:,} {severity.value}{'s' if number > 1 else ''}" for severity, number in count.items() if number]
    return ", ".join(counts) or "no problems"


def as_json(problems: Iterable[Problem]) -> list[dict[str, Json]]:
    """For editors: flat, and always with a place, which is the start of the file for problems of the file as a whole."""
    return [
        {
            "code": problem.code,
            "severity": problem.severity.value,
            "message": problem.message,
            "file": problem.position.file,
            "line": max(1, problem.position.line),
            "column": max(1, problem.position.column),
            "end_column": max(1, problem.position.end_column),
            "label": problem.label,
            "hint": problem.hint,
            "rewrite": problem.rewrite,
            "path": problem.path,
            **({"calls": problem.calls} if problem.calls else {}),
        }
        for problem in problems
    ]


def _snippet(problem: Problem, line: str, gutter: int, width: int, paint: str) -> list[str]:
    position = problem.position
    start = min(position.column - 1, len(line))
    end = max(start, min(position.end_column - 1, len(line)))
    # Only the neighbourhood of the caret is measured: a line may have millions of characters.
    cut = max(0, start - 2 * width)
    cells = _cells(line[cut : start + 2 * width])
    shown, caret, carets = _window(cells, start - cut, end - cut, width)
    edge = _DIM if paint else ""
    label = f" {_safe(problem.label)}" if problem.label else ""
    return [
        f"{_painted(f'{position.line:>{gutter}} |', edge)} {shown}".rstrip(),
        f"{_painted(' ' * gutter + ' |', edge)} {' ' * caret}{_painted('^' * carets + label, paint)}",
    ]


def _window(cells: Sequence[tuple[str, int]], start: int, end: int, width: int) -> tuple[str, int, int]:
    """The part of a line that is shown, the cell where the carets start, and how many there are (at least one)."""
    before = sum(size for _, size in cells[:start])
    marked = max(1, sum(size for _, size in cells[start:end]))
    if before + sum(size for _, size in cells[start:]) <= width:
        return "".join(text for text, _ in cells), before, marked
    left, room = start, width // 3
    while left > 0 and cells[left - 1][1] <= room:
        left -= 1
        room -= cells[left][1]
    right, room = left, width
    while right < len(cells) and cells[right][1] <= room:
        room -= cells[right][1]
        right += 1
    shown = "".join(text for text, _ in cells[left:right])
    caret = sum(size for _, size in cells[left:start])
    # A range that runs off the window ends with it.
    carets = max(1, min(marked, width - caret))
    prefix = "…" if left else ""
    return prefix + shown + ("…" if right < len(cells) else ""), caret + len(prefix), carets


def _cells(line: str) -> list[tuple[str, int]]:
    """Each character as it is shown, and how many cells it takes."""
    out: list[tuple[str, int]] = []
    column = 0
    for character in line:
        shown, size = character, 1
        if character == "\t":
            size = _TAB - column % _TAB
            shown = " " * size
        elif _UNSAFE.match(character):
            shown = "�"
        elif not character.isascii():
            size = _width(character)
        out.append((shown, size))
        column += size
    return out


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _safe(text: str) -> str:
    return _UNSAFE.sub(lambda found: " " if found[0] in "\t\n" else "�", text)


def _painted(text: str, paint: str) -> str:
    return f"{paint}{text}{_RESET}" if paint else text
