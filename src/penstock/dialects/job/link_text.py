"""Links as lines of text: `a.main -> b.input`, `a (if 1: "NB_LINE > 0") b, c`.

Line breaks mean nothing: YAML folds lines that stand without `|` into one, and the same links must come out. So a statement
ends where it is complete and the next name begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

_BLANK = re.compile(r"(?:\s|(?:(?<=\s)|(?<![\s\S]))#[^\n]*)+")
_WORD = re.compile(r"(?:[\w.*@\[\]]|-(?!->|>))+")
_ON = re.compile(r"\s*([\w-]*)")
_ORDER = re.compile(r"\s*(\d*)\s*:\s*")
_WRONG_ARROWS = ("=>", "→", "-->")
_DATA_SHAPE = "a data link is written `a.port -> b.port`"
_CONTROL_SHAPE = "a control link is written `a (ok) b`"


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text; `start` is its offset."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Head:
    """What stands between the parentheses of a control link."""

    on: Word
    order: int | None = None
    condition: Word | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    sources: tuple[Word, ...]
    targets: tuple[Word, ...]
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Slip:
    """What is wrong with the text, and where."""

    message: str
    start: int
    end: int
    hint: str = ""


@dataclass(slots=True)
class Links:
    statements: list[Statement] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)


def data_links(text: str) -> Links:
    scanner = _Scanner(text)
    return scanner.all(scanner.data)


def control_links(text: str) -> Links:
    scanner = _Scanner(text)
    return scanner.all(scanner.control)


class _Stop(Exception):
    """The statement cannot be read any further; the slip is recorded."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Links()
        self.at = 0
        self.read = 0
        """Where the last piece that was read ends."""

    def all(self, statement: Callable[[], None]) -> Links:
        """Statement by statement; behind one that cannot be read, the next line goes on."""
        while self._more():
            self.read = self.at
            try:
                statement()
            except _Stop:
                continue
        return self.found

    def data(self) -> None:
        sources = self._words(_DATA_SHAPE)
        self._arrow(sources)
        targets = self._words(_DATA_SHAPE)
        self.found.statements.append(Statement(sources, targets))
        while self._sees("->"):  # `a -> b -> c`
            self.at = self.read = self.at + 2
            sources, targets = targets, self._words(_DATA_SHAPE)
            self.found.statements.append(Statement(sources, targets))

    def control(self) -> None:
        sources = self._words(_CONTROL_SHAPE)
        if not self._sees("("):
            hint = "rows are joined under `connections.data`" if self._sees("->") else _CONTROL_SHAPE
            self._slip("what makes the link fire is missing", hint, 1 if self._more() else 0)
        head = self._head()
        self.found.statements.append(Statement(sources, self._words(_CONTROL_SHAPE), head))

    def _more(self) -> bool:
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()
        return self.at < len(self.text)

    def _sees(self, sign: str) -> bool:
        return self._more() and self.text.startswith(sign, self.at)

    def _words(self, shape: str) -> tuple[Word, ...]:
        words = [self._word(shape)]
        while self._sees(","):
            self.at = self.read = self.at + 1
            words.append(self._word(shape))
        return tuple(words)

    def _word(self, shape: str) -> Word:
        if not self._more():
            self._slip("the link ends too early", shape, 0)
        match = _WORD.match(self.text, self.at)
        if match is None:
            self._slip(f"`{self.text[self.at]}` cannot stand here", shape, 1)
        self.at = self.read = match.end()
        return Word(match[0], match.start())

    def _arrow(self, sources: tuple[Word, ...]) -> None:
        if self._sees("->"):
            self.at = self.read = self.at + 2
            return
        for other in _WRONG_ARROWS:
            if self._sees(other):
                self._slip(f"`{other}` is not an arrow here", "write `->`", len(other))
        if self._sees("("):
            self._slip("this is a control link", "it belongs under `connections.control`", 1)
        self._slip(f"`->` is expected after `{sources[-1].text}`", _DATA_SHAPE, 1 if self._more() else 0)

    def _slip(self, message: str, hint: str, width: int) -> NoReturn:
        """What is missing at the end of a line is reported there; behind any other slip the rest of the line is skipped."""
        if self.at >= len(self.text) or "\n" in self.text[self.read : self.at]:
            self.found.slips.append(Slip(message, self.read, self.read, hint))
        else:
            self.found.slips.append(Slip(message, self.at, self.at + width, hint))
            line_end = self.text.find("\n", self.at)
            self.at = len(self.text) if line_end < 0 else line_end
        raise _Stop

    def _head(self) -> Head:
        begin = self.at + 1
        end = closing(self.text, begin)
        if end is None:
            self._slip("this `(` is never closed", _CONTROL_SHAPE, 1)
        on = _ON.match(self.text, begin, end)
        assert on is not None
        order: int | None = None
        rest = on.end()
        if numbered := _ORDER.match(self.text, rest, end):
            order = int(numbered[1]) if numbered[1] else None
            rest = numbered.end()
        condition = _unquoted(Word(self.text[rest:end].rstrip(), rest))
        self.at = self.read = end + 1
        return Head(Word(on[1], on.start(1)), order, condition)


def closing(text: str, begin: int) -> int | None:
    """Where the parenthesis before `begin` is closed; those inside quotes do not count."""
    depth, quote, at = 1, "", begin
    while at < len(text):
        sign = text[at]
        if quote:
            if sign == "\\":
                at += 1
            elif sign == quote:
                quote = ""
        elif sign in "\"'":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
            if depth == 0:
                return at
        at += 1
    return None


def _unquoted(word: Word) -> Word | None:
    """A condition without the quotes around all of it; they are there for people, and may be left out."""
    text = word.text.lstrip()
    start = word.start + len(word.text) - len(text)
    if not text:
        return None
    quote = text[0]
    if quote in "\"'" and len(text) > 1:
        inside = re.fullmatch(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", text, re.DOTALL)
        if inside:
            return Word(re.sub(rf"\\({quote})", r"\1", inside[1]), start + 1)
    return Word(text, start)
