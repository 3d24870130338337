"""Splits a template into text, `{{ … }}` and `{% … %}`, the latter two as tokens. Comments and raw blocks are resolved here."""

from __future__ import annotations

import re
from typing import Final, Literal, NoReturn

from msgspec import Struct

from penstock.expr.errors import ExpressionError

TokenKind = Literal["name", "text", "int", "float", "sign", "end"]
PieceKind = Literal["text", "output", "statement"]


class Token(Struct, frozen=True):
    kind: TokenKind
    value: str
    start: int
    end: int


class Piece(Struct, frozen=True):
    """`value` is the text of a text piece; `tokens` are those of a tag, closed by a token of kind `end`."""

    kind: PieceKind
    start: int
    end: int
    value: str = ""
    tokens: tuple[Token, ...] = ()


_OPENING = re.compile(r"\{[{%#]")
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""(?P<name>[^\W\d]\w*)
      | (?P<float>\d[\d_]*(?:\.\d[\d_]*(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
      | (?P<int>0[xXoObB][0-9a-fA-F_]+|\d[\d_]*)
      | (?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%~<>=()\[\]{},:.|])""",
    re.VERBOSE | re.DOTALL,
)
_INDEX = re.compile(r"\d+")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*([-+]?)%\}")
_CLOSING = {"output": "}}", "statement": "%}"}

# What people write from habit, and what it is called here.
_HABITS = {
    "‘": "use straight quotes: `'`",
    "’": "use straight quotes: `'`",
    "“": 'use straight quotes: `"`',
    "”": 'use straight quotes: `"`',
    "&": "write `and`",
    "!": "write `not`",
    "`": "use quotes: `'`",
    "$": "names stand alone here: `name`, not `$name`",
    "?": "write `a if condition else b`",
}


def is_template(text: str) -> bool:
    return "{" in text and ("{{" in text or "{%" in text or "{#" in text)


def pieces(text: str) -> list[Piece]:
    return _Cutter(text).cut()


def expression_tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a text that is one bare expression, as conditions may be."""
    return _Cutter(text).tokens(0, 0, "")[0]


class _Cutter:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Piece] = []
        self.trims = False  # the tag before ended in `-`: white space after it goes

    def cut(self) -> list[Piece]:
        position = 0
        while opening := _OPENING.search(self.text, position):
            self._text(position, opening.start(), opening.end())
            position = self._tag(opening.start(), opening.group())
        self._text(position, len(self.text), len(self.text))
        return self.found

    def _text(self, start: int, end: int, tag_at: int) -> None:
        value = self.text[start:end]
        if self.trims:
            value = value.lstrip()
        if self.text[tag_at : tag_at + 1] == "-":
            value = value.rstrip()
        if value:
            self.found.append(Piece("text", start, end, value))

    def _tag(self, start: int, opening: str) -> int:
        if opening == "{#":
            return self._comment(start)
        kind: PieceKind = "output" if opening == "{{" else "statement"
        inside = start + 2
        if self.text[inside : inside + 1] in ("-", "+"):
            inside += 1
        tokens, end = self.tokens(start, inside, _CLOSING[kind])
        self.trims = self.text[end - 3] == "-"
        if kind == "statement" and tokens[0].value == "raw" and len(tokens) == 2:
            return self._raw(start, end)
        self.found.append(Piece(kind, start, end, tokens=tokens))
        return end

    def _comment(self, start: int) -> int:
        end = self.text.find("#}", start + 2)
        if end < 0:
            self._fail("`{#` is never closed; a comment ends with `#}`", start, start + 2)
        self.trims = self.text[end - 1] == "-" and end - 1 > start + 1
        return end + 2

    def _raw(self, start: int, end: int) -> int:
        closing = _END_OF_RAW.search(self.text, end)
        if closing is None:
            self._fail("`{% raw %}` is never closed; it ends with `{% endraw %}`", start, end)
        self._text(end, closing.start(), closing.start() + 2)
        self.trims = closing.group(1) == "-"
        return closing.end()

    def tokens(self, start: int, inside: int, closing: str) -> tuple[tuple[Token, ...], int]:
        """The tokens up to `closing` (or the end of the text, when that is empty) and the offset behind it."""
        text = self.text
        found: list[Token] = []
        braces = 0
        position = inside
        while True:
            space = _SPACE.match(text, position)
            assert space is not None
            position = space.end()
            if position >= len(text):
                if closing:
                    self._fail(
                        f"`{text[start : start + 2]}` is never closed; it ends with `{closing}`", start, start + 2
                    )
                found.append(Token("end", "", position, position))
                return tuple(found), position
            if closing and braces == 0:
                width = 2 if text.startswith(closing, position) else 0
                if not width and text[position] in "-+" and text.startswith(closing, position + 1):
                    width = 3
                if width:
                    found.append(Token("end", closing, position, position + width))
                    return tuple(found), position + width
            token = self._token(position, after_dot=bool(found) and found[-1].value == "." and found[-1].kind == "sign")
            if token.kind == "sign" and token.value in "{}":
                braces += 1 if token.value == "{" else -1
                if braces < 0:
                    self._fail(
                        f"`}}` closes nothing{f'; the tag ends with `{closing}`' if closing else ''}",
                        position,
                        position + 1,
                    )
            found.append(token)
            position = token.end

    def _token(self, position: int, after_dot: bool) -> Token:
        text = self.text
        if after_dot and (index := _INDEX.match(text, position)):
            return Token("int", index.group(), position, index.end())
        match = _TOKEN.match(text, position)
        if match is None:
            character = text[position]
            if character in "'\"":
                self._fail(f"the quote `{character}` is never closed", position, position + 1)
            self._fail(
                f"`{character}` is not part of an expression", position, position + 1, _HABITS.get(character, "")
            )
        kind: TokenKind = match.lastgroup  # type: ignore[assignment]
        return Token(kind, match.group(), position, match.end())

    def _fail(self, message: str, start: int, end: int, hint: str = "") -> NoReturn:
        raise ExpressionError(message, self.text, start, end, code="E0101", hint=hint)


# ---- Literals: whole numbers, floats and quoted text


_MOST_DIGITS: Final = 300
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\\": "\\", "'": "'", '"': '"',
    "\n": "",
}  # fmt: skip


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


# ---- The tokens of one expression, read from left to right, with the wording of all syntax errors


class TokenStream:
    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def _next(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def _is(self, kind: str, value: str) -> bool:
        token = self.tokens[self.index]
        return token.value == value and token.kind == kind

    def takes(self, word: str) -> bool:
        if self._is("name", word):
            self.index += 1
            return True
        return False

    def _takes_sign(self, sign: str) -> bool:
        if self._is("sign", sign):
            self.index += 1
            return True
        return False

    def word(self, word: str) -> None:
        if not self.takes(word):
            self._unexpected(f"`{word}` is expected here")

    def sign(self, sign: str, hint: str = "") -> Token:
        if not self._is("sign", sign):
            self._unexpected(f"`{sign}` is expected here", hint)
        return self._next()

    def _fail(self, message: str, start: int, end: int, hint: str = "") -> NoReturn:
        raise ExpressionError(message, self.text, start, end, code="E0101", hint=hint)

    def _unexpected(self, expected: str, hint: str = "") -> NoReturn:
        token = self.token
        if token.kind == "end":
            start = token.start if token.value else max(0, len(self.text.rstrip()) - 1)
            self._fail(f"the expression ends too early: {expected}", start, max(token.end, start + 1), hint)
        if token.value == "=" and not hint:
            hint = "to compare, write `==`"
        self._fail(f"`{token.value}` is unexpected: {expected}", token.start, token.end, hint)
