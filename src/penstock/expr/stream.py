"""The tokens of one expression, read from left to right; all syntax errors are worded here."""

from __future__ import annotations

from typing import NoReturn

from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import Token


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
