"""What fits on a terminal: text measured in cells, wrapped at words, in columns. Where there is no terminal nothing is cut or
wrapped: a program, or `grep`, wants whole lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from penstock.cli.output import BOLD, cells_of, painted, put, put_json, safe, say, unpainted

if TYPE_CHECKING:
    from argparse import Namespace

GAP = "  "
NOTE = 4
"""How far a note is indented that has no room beside its row."""
LEAST_NOTE = 36
LEAST_NAME = 12


def terminal_width(stream: IO[str]) -> int | None:
    """Columns of the terminal that a stream leads to, None when it leads elsewhere."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):  # Closed, or no file at all.
        return None


def cells(text: str) -> int:
    """How many columns it takes on a terminal; paint takes none."""
    plain = unpainted(text)
    return len(plain) if plain.isascii() else sum(map(cells_of, plain))


def padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def cut(text: str, width: int) -> str:
    """Its beginning and its end: names inside joblets begin alike."""
    if cells(text) <= width:
        return text
    start, end = text[: width // 2], text[len(text) - (width - width // 2 - 1) :]
    while start and cells(start) + 1 + cells(end) > width:
        start, end = start[:-1], end if cells(end) * 2 <= width else end[1:]
    return f"{start}…{end}"


def wrapped(text: str, stream: IO[str], *, indent: int = 2) -> str:
    """At words, and indented from the second line on. A word that is wider than the terminal stays whole."""
    width = terminal_width(stream)
    return text if width is None else f"\n{' ' * indent}".join(_wrapped(text, width, width - indent))


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    """`first`, `rest`: the width of the first line, and of those after it."""
    lines: list[str] = []
    line = ""
    for number, word in enumerate(text.split(" ")):
        longer = f"{line} {word}" if number else word
        if cells(longer) <= (rest if lines else first) or not line.strip():
            line = longer
        else:
            lines.append(line.rstrip())
            line = word
    return [*lines, line.rstrip()]


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    stream: IO[str] | None = None,
    *,
    spare: Sequence[str] = (),
    cuttable: str = "",
) -> str:
    """Columns as wide as their widest cell; the last one is left ragged. `stream`: where it will be written, else stdout.

    On a terminal that is too narrow, the `spare` columns are left out, first to last, then the cells of the `cuttable` one are
    shortened; and what stands in the last column is wrapped, or gets lines of its own.
    """
    stream = stream or sys.stdout
    lines = [list(titles), *([safe(cell) for cell in row] for row in rows)]
    width = terminal_width(stream)
    kept = list(range(len(titles)))
    if width is not None:
        for title in spare:
            if _needed(lines, kept) > width:
                kept.remove(titles.index(title))
        if cuttable and (over := _needed(lines, kept) - width) > 0:
            column = titles.index(cuttable)
            room = max(LEAST_NAME, max(cells(line[column]) for line in lines) - over)
            for line in lines:
                line[column] = cut(line[column], room)
    *fixed, last = kept
    widths = [max(cells(line[column]) for line in lines) for column in fixed]
    out: list[str] = []
    for number, line in enumerate(lines):
        start = GAP.join(padded(line[column], size) for column, size in zip(fixed, widths, strict=True))
        text = _with_last(start + GAP if fixed else "", line[last], width)
        out.append(painted(text, BOLD, stream) if number == 0 else text)
    return "\n".join(out)


def listed(options: Namespace, value: Any, titles: Sequence[str], rows: Sequence[Sequence[str]], otherwise: str) -> int:
    """What a command found: `value` with `--json`, else a table, or `otherwise` when there are no rows."""
    if options.json:
        put_json(value)
    elif rows:
        put(table(titles, rows))
    else:
        say(otherwise)
    return 0


def _needed(lines: list[list[str]], kept: list[int]) -> int:
    """How wide a table is at the least. The last column can be wrapped; a note, which has no title, can stand elsewhere."""
    *fixed, last = kept
    room = min(LEAST_NOTE, max(cells(line[last]) for line in lines)) + len(GAP) if lines[0][last] else 0
    return sum(max(cells(line[column]) for line in lines) + len(GAP) for column in fixed) - len(GAP) + room


def _with_last(start: str, last: str, width: int | None) -> str:
    text = f"{start}{last}".rstrip()
    if width is None or cells(text) <= width or not last:
        return text
    begin = cells(start)
    if width - begin >= LEAST_NOTE:
        first, *rest = _wrapped(last, width - begin, width - begin)
        return f"\n{' ' * begin}".join([f"{start}{first}", *rest])
    return f"\n{' ' * NOTE}".join([start.rstrip(), *_wrapped(last, width - NOTE, width - NOTE)])
