"""Data to stdout, words to stderr. What comes from documents, tools and logs is shown, never obeyed by the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, Any

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


def safe(text: str) -> str:
    """Text of others, without escape sequences, control characters and bidirectional marks; line breaks stay."""
    return _UNSAFE.sub("�", _ANSI.sub("", text))


def one_line(text: str, widest: int = 200) -> str:
    line = safe(" ".join(text.split()))
    return line if len(line) <= widest else line[: widest - 1] + "…"


def say(text: str = "") -> None:
    """Words, for people. When nobody listens any more, a closed pipe or a terminal that is gone, that is no error."""
    with suppress(OSError):
        _write(sys.stderr, text + "\n")


def put(text: str) -> None:
    """Data, for people and programs."""
    _write(sys.stdout, text if text.endswith("\n") else text + "\n")


def put_json(value: Any) -> None:
    """One JSON value: on a terminal spread out, else on one line."""
    from penstock.ports.results import encode

    data = encode(value)
    if is_terminal(sys.stdout):
        import msgspec

        data = msgspec.json.format(data, indent=2)
    put(data.decode("utf-8"))


def silence(stream: IO[str]) -> None:
    """Nobody reads it any more: what is still in its buffer must not raise a second time at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], stream: IO[str] | None = None) -> str:
    """Columns as wide as their widest cell; the last one is left ragged. `stream`: where it will be written, else stdout."""
    lines = [list(titles), *([safe(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    out = []
    for number, line in enumerate(lines):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        out.append(painted(text, BOLD, stream or sys.stdout) if number == 0 else text)
    return "\n".join(out)
