"""Tokens, and what else only who looks after the server may do."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.access import ADMIN
from penstock.api.backend import apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import answer, errors, router
from penstock.kernel.values import JsonMap
from penstock.ports.control import Scope, Token
from penstock.ports.wire import iso

routes = router("admin", "/api")


def token_json(token: Token) -> JsonMap:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope.value,
        "created_at": iso(token.created_at),
        "expires_at": None if token.expires_at is None else iso(token.expires_at),
        "last_used_at": None if token.last_used_at is None else iso(token.last_used_at),
    }


@routes.get("/tokens", response_model=answers.TokenList, summary="List the tokens", dependencies=[ADMIN])
async def listing(request: Request) -> Response:
    control = backend_of(request).control
    return answer({"tokens": [token_json(one) for one in await apart(control.tokens)]})


@routes.post(
    "/tokens",
    status_code=201,
    response_model=answers.NewTokenOut,
    responses=errors(409, 415),
    summary="Make a token",
    description="Its secret is in the answer, and nowhere else: only a hash of it is kept.",
    dependencies=[ADMIN],
)
async def add(request: Request, asked: models.AddToken) -> Response:
    backend = backend_of(request)
    if asked.scope != "admin" and not await apart(backend.control.tokens):
        raise ApiError(
            409,
            f"the first token must have the scope `admin`: with one for `{asked.scope}` alone, nobody could make another",
            "make one with `--scope admin` first, and keep it; then others for who may only read or run",
            code="first_token",
        )
    expires = None if asked.expires_in_s is None else backend.clock.now() + asked.expires_in_s
    token, secret = await apart(lambda: backend.control.add_token(asked.name, Scope(asked.scope), expires))
    return answer({**token_json(token), "secret": secret}, 201)


@routes.delete(
    "/tokens/{token}",
    status_code=204,
    response_class=Response,
    responses=errors(404, 409),
    summary="Revoke a token",
    dependencies=[ADMIN],
)
async def revoke(request: Request, token: Annotated[str, Path(max_length=200)]) -> Response:
    control = backend_of(request).control
    others = [one for one in await apart(control.tokens) if one.id != token]
    if others and not any(one.scope is Scope.ADMIN for one in others):
        raise ApiError(
            409,
            "this is the last token with the scope `admin`: without it, nobody could make or revoke the others",
            "make another one with `--scope admin` first, or revoke the others first",
            code="last_admin",
        )
    if not await apart(lambda: control.revoke(token)):
        raise ApiError(404, f"there is no token `{token}`", "`GET /api/tokens` lists them with their ids")
    return Response(status_code=204)


@routes.post(
    "/prune",
    response_model=answers.PruneOut,
    responses=errors(409, 415),
    summary="Delete old runs, and results that nothing refers to any more",
    dependencies=[ADMIN],
)
async def prune(request: Request, asked: models.PruneIn) -> Response:
    pruned = await backend_of(request).prune(asked.older_than_s, asked.keep_failed, asked.dry_run)
    return answer({"runs": pruned.runs, "results": pruned.results, "bytes": pruned.size, "dry_run": asked.dry_run})
