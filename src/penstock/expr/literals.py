"""Reads the literals of the language: whole numbers, floats and quoted text."""

from __future__ import annotations

import re
from typing import Final

from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import Token

_MOST_DIGITS: Final = 300
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "\n": "",
}


def read_integer(text: str, token: Token) -> int:
    digits = token.value.replace("_", "")
    plain = digits.isdecimal()
    # `007` is octal to some readers and seven to others, so it is nothing here.
    ambiguous = plain and digits[0] == "0" and digits.strip("0") != ""
    if not (ambiguous or token.value.endswith("_") or len(digits) > _MOST_DIGITS):
        try:
            return int(digits, 10 if plain else 0)
        except ValueError:
            pass
    message = f"`{token.value[:40]}` is not a whole number this language can hold"
    raise ExpressionError(message, text, token.start, token.end, code="E0101")


def read_float(text: str, token: Token) -> float:
    if len(token.value) <= _MOST_DIGITS:
        try:
            number = float(token.value)
        except ValueError:
            pass
        else:
            if number != float("inf"):
                return number
    message = f"`{token.value[:40]}` is not a number this language can hold"
    raise ExpressionError(message, text, token.start, token.end, code="E0101")


def read_text(text: str, token: Token) -> str:
    """What stands between the quotes. As in Jinja, an unknown escape such as `\\d` keeps its backslash."""
    inside = token.value[1:-1]
    if "\\" not in inside:
        return inside

    def unescaped(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        if len(escape) == 1:
            return match.group()
        number = int(escape[1:], 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            start = token.start + 1 + match.start()
            raise ExpressionError(
                f"`{match.group()}` is not a character", text, start, start + len(match.group()), code="E0101"
            )
        return chr(number)

    return _ESCAPE.sub(unescaped, inside)
