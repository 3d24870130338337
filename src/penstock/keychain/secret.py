"""A secret is a value that cannot be written down.

Law: nothing that prints, formats, encodes, pickles or copies a `Secret` gives its text; what it gives instead is a marker
that says nothing. `reveal` is the only way out. It is a function and not a method on purpose: templates can call the public
methods of what they are given, and a template must never hold plain text.
"""

from __future__ import annotations

import hmac
import secrets
from typing import NoReturn, final

# Digits only: no filter that changes the case of a text can touch it, so a changed marker is still recognised.
NONCE = str(10**19 + secrets.randbelow(9 * 10**19))
"""Stands in every marker of this process and, being chance, in nothing else."""


def marker(number: str) -> str:
    # `<` and the control character are there to be changed: an encoder for URLs, JSON or HTML leaves its trace on them,
    # so that the plain text can later be inserted in the same encoding (see penstock.keychain.markers).
    return f"<pnsk\x02{NONCE}:{number}>"


@final
class Secret:
    """Equal to a secret with the same text, compared in constant time; never equal to anything else."""

    __slots__ = ("_marker", "_text")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError("a secret is made of text")
        self._text = text
        self._marker = marker(str(10**19 + secrets.randbelow(9 * 10**19)))

    def __str__(self) -> str:
        return self._marker

    def __repr__(self) -> str:
        return "Secret(***)"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._text.encode("utf-8", "surrogatepass"), other._text.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        # Salted with the nonce, so that a hash which is printed somewhere cannot be used to test guesses.
        return hash((NONCE, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialised or copied")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialised or copied")


def reveal(secret: Secret) -> str:
    """The plain text. Call it only where the text is used at once, such as in the call of a tool."""
    return secret._text


def marker_of(secret: Secret) -> str:
    return secret._marker
