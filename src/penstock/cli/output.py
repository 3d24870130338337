"""Data to stdout, words to stderr. What comes from documents, tools and logs is shown, never obeyed by the terminal."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import unicodedata
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
    """Text of others, without escape sequences, control characters and bidirectional marks; line breaks stay."""
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
    """Words, for people. A closed pipe or a terminal that is gone is no error."""
    with suppress(OSError):
        _write(sys.stderr, text + "\n")


def put(text: str) -> None:
    """Data, for people and programs."""
    _write(sys.stdout, text if text.endswith("\n") else text + "\n")


def put_json(value: Any) -> None:
    """One JSON value: on a terminal spread out, else on one line."""
    from penstock.ports.results import encode  # Rarely needed, and not worth the start-up time.

    data = encode(value)
    if is_terminal(sys.stdout):
        import msgspec  # Rarely needed, and not worth the start-up time.

        data = msgspec.json.format(data, indent=2)
    put(data.decode("utf-8"))


def answer(options: Namespace, value: Any, text: str) -> int:
    """What a command did: one JSON value with `--json`, else a line for people. Gives the exit code of success."""
    if options.json:
        put_json(value)
    else:
        say(text)
    return 0


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
        stream.write(text.encode(encoding, PLAIN).decode(encoding))


_PLAIN_SIGNS = {"…": ".", "→": ">", "←": "<", "·": ".", "✓": "+", "✗": "x", "⊘": "-", "│": "|", "━": "#", "─": "-"}
PLAIN = "penstock-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """For each sign that a terminal does not have, as many as it takes cells: more or fewer would break what is drawn."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?" * cells_of(sign)) for sign in signs), error.end


codecs.register_error(PLAIN, _plain)


def open_streams() -> None:
    """A stream that was closed before the start (`>&-`) is None; what would be written to it goes nowhere. One that cannot take
    every character takes something like it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  open as long as the process
        elif isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=PLAIN)
