"""Who may do what. Tokens are bearer secrets with a scope: `read`, `run`, which includes it, and `admin`, which includes both.

Law: a server that others can reach knows who asks. One that only its own machine can reach is open until it has its first token.
Even then a page in a browser on that machine may not speak for its user: what comes from another site is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from penstock.api.backend import ORDER, Backend, apart, backend_of
from penstock.api.errors import ApiError
from penstock.ports.control import Scope, Token

CHALLENGE = {"WWW-Authenticate": "Bearer"}
HINT = (
    "send `Authorization: Bearer TOKEN`; `penstock token add NAME --scope run` makes one, and `PENSTOCK_TOKEN` gives it"
)

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", ""})

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of the server (`penstock token add`). Without any tokens a server on the loopback is open.",
)

Given = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
Check = Callable[..., Awaitable[str]]


def needs(scope: Scope) -> Check:
    """A dependency that lets through who may do this, and gives their name."""

    async def check(request: Request, given: Given) -> str:
        return await admit(request, given.credentials if given is not None else None, scope)

    check.__name__ = f"needs_{scope.value}"
    check.scope = scope  # type: ignore[attr-defined]  # for the test that asks every route what it needs
    return check


READ = Depends(needs(Scope.READ))
RUN = Depends(needs(Scope.RUN))
ADMIN = Depends(needs(Scope.ADMIN))


async def admit(request: Request, secret: str | None, needed: Scope) -> str:
    """The name of who asks; ApiError when they may not."""
    backend = backend_of(request)
    if backend.no_auth:
        return ""
    if secret is None:
        if backend.is_loopback and not await apart(backend.control.tokens):
            _check_name(request.headers.get("host", ""))
            return ""
        raise ApiError(401, "this needs a token", HINT, headers=CHALLENGE)
    token = await apart(lambda: _known(backend, secret))
    if token is None:
        raise ApiError(401, "the token is not known here, or has expired", HINT, headers=CHALLENGE)
    if ORDER.index(token.scope) < ORDER.index(needed):
        raise ApiError(
            403,
            f"the token `{token.name}` has the scope `{token.scope.value}`, and this needs `{needed.value}`",
            f"`penstock token add NAME --scope {needed.value}` makes one that may",
        )
    return token.name


def _check_name(host: str) -> None:
    """A name that somebody else has pointed at this machine is not its name: a page of theirs may be asking."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].lower()
    if name not in LOCAL_NAMES:
        raise ApiError(
            403,
            f"this server does not go by the name `{name[:200]}`",
            "ask it as `localhost` or `127.0.0.1`, or with a token",
            code="other_name",
        )


def _known(backend: Backend, secret: str) -> Token | None:
    try:
        secret.encode("ascii")
    except UnicodeEncodeError:
        return None
    return backend.control.token(secret)
