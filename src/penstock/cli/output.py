"""Data to stdout, words to stderr; text wrapped and in columns where a terminal shows it.

Law: what comes from documents, tools and logs is shown, never obeyed by the terminal. Without a terminal nothing is cut or
wrapped: a program, or `grep`, wants whole lines."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import Namespace


_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

BOLD, DIM, RED, GREEN, YELLOW, CYAN, RESET = (
    "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m",
)  # fmt: skip


def is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # A stream that was closed.
        return False


def has_colour(stream: IO[str]) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(text: str, paint: str, stream: IO[str] | None = None) -> str:
    return f"{paint}{text}{RESET}" if has_colour(stream or sys.stderr) else text


def unpainted(text: str) -> str:
    return _ANSI.sub("", text) if "\x1b" in text else text


def safe(text: str) -> str:
    """Untrusted text without escape sequences, control characters and bidirectional marks; line breaks stay."""
    return _UNSAFE.sub("�", unpainted(text))


def one_line(text: str, widest: int = 200) -> str:
    line = safe(" ".join(text.split()))
    return line if len(line) <= widest else line[: widest - 1] + "…"


def cells_of(character: str) -> int:
    """How many columns of a terminal it takes."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def near(file: str) -> str:
    """The name of a file as a person at this terminal knows it: relative to here when that is shorter."""
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):
        return file
    return relative if len(relative) < len(file) else file


def say(text: str = "") -> None:
    """Writes a message for people to stderr. A closed pipe or a lost terminal is no error."""
    with suppress(OSError):
        _write(sys.stderr, text + "\n")


def put(text: str) -> None:
    """Writes data for people and programs to stdout."""
    _write(sys.stdout, text if text.endswith("\n") else text + "\n")


def put_json(value: Any) -> None:
    """One JSON value: indented on a terminal, else on one line."""
    from penstock.ports.results import encode  # `--help` starts without it.

    data = encode(value)
    if is_terminal(sys.stdout):
        import msgspec  # `--help` starts without it.

        data = msgspec.json.format(data, indent=2)
    put(data.decode("utf-8"))


def answer(options: Namespace, value: Any, text: str) -> int:
    """What a command did: one JSON value with `--json`, else a line for people. Returns the exit code of success."""
    if options.json:
        put_json(value)
    else:
        say(text)
    return 0


def silence(stream: IO[str]) -> None:
    """Redirects a stream that nobody reads to nowhere: its buffer must not raise a second time at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, PLAIN).decode(encoding))


_PLAIN_SIGNS = {"…": ".", "→": ">", "←": "<", "·": ".", "✓": "+", "✗": "x", "⊘": "-", "│": "|", "━": "#", "─": "-"}
PLAIN = "penstock-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replaces each character that a terminal cannot show by as many ASCII characters as it has cells, so that drawings keep
    their shape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?" * cells_of(sign)) for sign in signs), error.end


codecs.register_error(PLAIN, _plain)


def open_streams() -> None:
    """Replaces streams that were closed before the start (`>&-`), and are None, by ones that discard. Streams that cannot encode
    a character write a similar one."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  open as long as the process
        elif isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=PLAIN)


GAP = "  "
NOTE = 4
"""How far a note is indented that has no room beside its row."""
LEAST_NOTE = 36
LEAST_NAME = 12


def terminal_width(stream: IO[str]) -> int | None:
    """The width of the terminal that a stream writes to; None if it is not a terminal."""
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
    """Keeps the beginning and the end: names inside joblets begin alike."""
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
    shortened; and the last column is wrapped, or gets lines of its own.
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
    """The minimum width of a table. The last column can be wrapped; a note, which has no title, can go below its row."""
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
