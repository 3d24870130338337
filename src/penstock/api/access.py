"""Who may do what. Tokens are bearer secrets with a scope: `read`, `run`, which includes it, and `admin`, which includes both.

Law: a server that others can reach knows who asks, unless somebody wrote down that it need not. One that only its own machine can
reach is open until it has its first token. Whoever is let in without a token is not a page of another site in somebody's browser:
that is told by the host which the request names, and by what browsers say of the site it comes from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from penstock.api.backend import ORDER, Backend, apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.hosts import Host, is_known
from penstock.ports.control import Scope, Token

CHALLENGE = {"WWW-Authenticate": "Bearer"}
HINT = (
    "send `Authorization: Bearer TOKEN`; `penstock token add NAME --scope run` makes one, and `PENSTOCK_TOKEN` gives it"
)

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
    if backend.no_auth or (secret is None and backend.is_loopback and not await apart(backend.control.tokens)):
        _check_name(request, backend)
        _check_site(request)
        return ""
    if secret is None:
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


def _check_name(request: Request, backend: Backend) -> None:
    """A name that somebody else has pointed at this machine is not its name: a page of theirs may be asking."""
    host = Host.read(request.headers.get("host", ""))
    if host is None or not is_known(host, backend.hosts, is_loopback=backend.is_loopback):
        name = "" if host is None else host.name
        raise ApiError(
            403,
            f"this server does not go by the name `{name}`",
            "ask it as `localhost` or by its address, or with a token; `--allow-host NAME` gives it another name",
            code="other_name",
        )


def _check_site(request: Request) -> None:
    """Browsers say from where they were made to ask. To open an address is harmless; to have a page ask for it is not."""
    site, mode = (request.headers.get(f"sec-fetch-{name}", "") for name in ("site", "mode"))
    if site in ("", "same-origin", "none") or (request.method in ("GET", "HEAD") and mode == "navigate"):
        return
    raise ApiError(403, "a page of another site may not ask this server for anything", code="other_site")


def _known(backend: Backend, secret: str) -> Token | None:
    try:
        secret.encode("ascii")
    except UnicodeEncodeError:
        return None
    return backend.control.token(secret)
