"""Secrets of the control store at rest: those of tokens as hashes, those of hooks under a key.

Law: a token's secret cannot be had back from what is kept. That of a hook must be, since signatures are checked with it: it is
encrypted when `PENSTOCK_SECRET_KEY` is set, and otherwise lies in clear text, where who can read the store can sign.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.kernel.errors import Refused, Unavailable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

VARIABLE = "PENSTOCK_SECRET_KEY"
TOKEN_PREFIX = "pk_"
TOKEN_BYTES = 32
USED_EVERY_S = 60.0
"""The use of a token is written down at most so often: a write for every request would cost more than the request."""

_SEALED, _CLEAR = "fernet:", "clear:"
_MAKE = "`python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'` makes one"


def new_token_id() -> str:
    return secrets.token_hex(8)


def new_token_secret() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def hash_of(secret: str) -> str:
    # Slow hashes protect what people make up. These secrets are 256 bits of chance: nobody tries them all, and every request
    # would pay for the slowness.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_same(one: str, other: str) -> bool:
    """In a time that says nothing about where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def is_used_anew(last_used_at: float | None, now: float) -> bool:
    return last_used_at is None or now - last_used_at >= USED_EVERY_S


class Seal:
    """Encrypts with the first key of `PENSTOCK_SECRET_KEY` and decrypts with any of them, so that keys can be changed."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        said = (os.environ if environ is None else environ).get(VARIABLE, "")
        self._keys = _keys(said.replace(",", " ").split())

    def closed(self, secret: str) -> str:
        """`secret` as it is kept."""
        if self._keys is None:
            return _CLEAR + secret
        return _SEALED + self._keys.encrypt(secret.encode()).decode()

    def opened(self, kept: str, whose: str) -> str:
        if kept.startswith(_CLEAR):
            return kept.removeprefix(_CLEAR)
        if self._keys is None:
            raise Unavailable(
                f"the secret of {whose} is encrypted, and `{VARIABLE}` is not set here",
                f"set `{VARIABLE}` to the key it was kept with, or give {whose} a new secret",
            )
        from cryptography.fernet import InvalidToken

        try:
            return self._keys.decrypt(kept.removeprefix(_SEALED)).decode()
        except InvalidToken:
            raise Unavailable(
                f"the secret of {whose} cannot be decrypted with the key in `{VARIABLE}`",
                f"add the key it was kept with to `{VARIABLE}`, behind a comma, or give {whose} a new secret",
            ) from None


def _keys(texts: list[str]) -> MultiFernet | None:
    if not texts:
        return None
    from cryptography.fernet import Fernet, MultiFernet

    try:
        return MultiFernet([Fernet(text) for text in texts])
    except ValueError:
        # The cause quotes nothing, and neither does this: it may be a key with one letter too few.
        raise Refused(f"`{VARIABLE}` is not a key: 32 bytes in url-safe base64 are wanted", _MAKE) from None
