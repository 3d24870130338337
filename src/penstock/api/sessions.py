"""Sessions of browsers: a cookie that stands for a token, so that no script of the page ever holds the token.

Law: the value of the cookie is made from the token (`ControlStore.session`), and the control store keeps a hash of it beside
that of the token. So every server that shares the store can check it, whichever of them made it; it ends when the token is
revoked or expires, and with nothing else; and neither a copy of the store nor the cookie gives the token away. Signing out
removes the cookie.

The cookie is `HttpOnly` and `SameSite=Strict`. Browsers do not separate cookies by port, and treat pages of other ports of one
host as the same site: so the port is in its name, and a request with it has to show that a page of this very origin made it
(`routing.admit`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.ports.control import ControlStore, Scope, Token

NAME: Final = "penstock_session"
_PORT = re.compile(r":(\d{1,5})\Z")

OWNER: Final = "you"


@dataclass(frozen=True, slots=True)
class Local:
    """The page of a folder on this machine: whoever has the address that was opened is the owner of the machine."""

    root: Path
    """The folder of the project."""
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The token in that address. It has all scopes, and ends with the process."""

    @property
    def token(self) -> Token:
        return Token("local", OWNER, Scope.ADMIN, 0.0)

    def session(self) -> str:
        return f"local.{_signed(self.secret)}"


def _signed(secret: str) -> str:
    return hmac.new(hashlib.sha256(secret.encode()).digest(), b"penstock session", hashlib.sha256).hexdigest()


def token_of(control: ControlStore, local: Local | None, secret: str) -> Token | None:
    """The token with this secret."""
    if not secret.isascii():
        return None
    if local is not None and hmac.compare_digest(secret, local.secret):
        return local.token
    return control.token(secret)


def session_for(control: ControlStore, local: Local | None, secret: str) -> str | None:
    """The value of the cookie that stands for the token with this secret."""
    if not secret.isascii():
        return None
    if local is not None and hmac.compare_digest(secret, local.secret):
        return local.session()
    return control.session(secret)


def token_of_session(control: ControlStore, local: Local | None, value: str) -> Token | None:
    if not value.isascii():
        return None
    if local is not None and hmac.compare_digest(value, local.session()):
        return local.token
    return control.token_of_session(value)


# ---- the cookie


def cookie_name(request: Request) -> str:
    """With the port as the browser sees it."""
    port = _PORT.search(request.headers.get("host", ""))
    return f"{NAME}_{port[1]}" if port is not None else NAME


def cookie_of(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request)) or None


def is_secure(request: Request, *, is_tls: bool) -> bool:
    """Under https, also when a proxy in front ends the encryption: the browser says so in `Origin`."""
    return is_tls or request.headers.get("origin", "").lower().startswith("https://")


def set_cookie(request: Request, response: Response, value: str, *, is_tls: bool) -> None:
    secure = is_secure(request, is_tls=is_tls)
    response.set_cookie(cookie_name(request), value, path="/", secure=secure, httponly=True, samesite="strict")


def clear_cookie(request: Request, response: Response, *, is_tls: bool) -> None:
    secure = is_secure(request, is_tls=is_tls)
    response.delete_cookie(cookie_name(request), path="/", secure=secure, httponly=True, samesite="strict")


# ---- wrong tokens


@dataclass(slots=True)
class WrongTokens:
    """Counts wrong tokens by address. A token cannot be guessed; this keeps the store free of those who try."""

    most: int = 20
    within_s: float = 60.0
    _seen: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def wait_s(self, address: str) -> float:
        """How long this address has to wait before its next try; 0 if it may try now."""
        recent = self._recent(address)
        return max(0.0, recent[-self.most] + self.within_s - time.monotonic()) if len(recent) >= self.most else 0.0

    def add(self, address: str) -> None:
        self._seen[address] = [*self._recent(address), time.monotonic()][-self.most :]
        self._seen.move_to_end(address)
        while len(self._seen) > 1000:
            self._seen.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        since = time.monotonic() - self.within_s
        return [one for one in self._seen.get(address, []) if one > since]
