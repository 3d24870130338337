"""Errors of expressions, always with their offsets in the text.

Misuse             a value that does not fit, raised by words and operators, which do not know their offsets
ExpressionError    the same with the text and the offsets of the culprit; the only exception that leaves this package
Unforeseen         an ExpressionError for what no operation has refused; the fuzzer (tests/expr/fuzz.py) counts it as a failure
UndefinedValue     an ExpressionError: nothing but that a value is undefined, which some places write as null
"""

from __future__ import annotations

_WIDEST_LINE = 100
_LONGEST_MESSAGE = 400


class Misuse(Exception):
    """A word or an operator met a value it cannot work with."""


class ExpressionError(Exception):
    """`start` and `end` are offsets in `text`; `name` is the path of the undefined variable, if that was the trouble.

    `code` is the code of the finding when the text itself is wrong, and empty when only the values were.
    `path` leads to the text inside the rendered tree: keys and indexes, outermost first.
    """

    def __init__(
        self,
        message: str,
        text: str = "",
        start: int = 0,
        end: int = 0,
        *,
        name: str | None = None,
        code: str = "",
        hint: str = "",
    ) -> None:
        # A message quotes the text it complains of, which may be long and of many lines; a message is one line.
        message = " ".join(message.split())
        message = message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"
        super().__init__(message)
        self.message = message
        self.text = text
        self.start = start
        self.end = end
        self.name = name
        self.code = code
        self.hint = hint
        self.path: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return self.message

    def caret(self) -> str:
        """Two lines: the line of the text that holds the culprit, and a line that points at it."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.start)
        line = self.text[begin : stop if stop >= 0 else len(self.text)]
        column = self.start - begin
        width = max(1, min(self.end, begin + len(line)) - self.start)
        if len(line) > _WIDEST_LINE:
            cut = max(0, min(column - 20, len(line) - _WIDEST_LINE))
            line = line[cut : cut + _WIDEST_LINE]
            column -= cut
            width = max(1, min(width, len(line) - column))
        padding = "".join("\t" if character == "\t" else " " for character in line[:column])
        return f"{line}\n{padding}{'^' * width}"


class Unforeseen(ExpressionError):
    """An operation raised a Python exception instead of refusing a value: the evaluator turns it into an ExpressionError."""


class UndefinedValue(ExpressionError):
    """A value is undefined where one is needed."""
