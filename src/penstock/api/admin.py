"""What an operator looks after: servers, workers, pools and the leases that are out; tokens and pruning."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import ADMIN, READ, Routes, answer
from penstock.kernel.values import JsonMap
from penstock.ports.control import Scope, Token
from penstock.ports.dispatch import LeaseSeen, WorkerSeen
from penstock.ports.wire import iso

fleet_routes = Routes("fleet", "/api")


def worker_json(seen: WorkerSeen) -> JsonMap:
    return answers.WorkerOut.of(
        seen.card,
        can=sorted(seen.card.can),
        held=seen.held,
        age_s=round(seen.age_s, 3),
        is_alive=seen.is_alive,
        is_draining=seen.is_draining,
    )


def lease_json(seen: LeaseSeen) -> JsonMap:
    left_s = None if seen.left_s is None else round(seen.left_s, 3)
    return answers.LeaseOut.of(seen, age_s=round(seen.age_s, 3), left_s=left_s, needs=sorted(seen.needs))


@fleet_routes.operation("GET /workers", READ, "Who works", answers.WorkerList)
async def workers(request: Request) -> Response:
    found = await backend_of(request).dispatch.workers()
    return answer({"workers": [worker_json(one) for one in found]})


@fleet_routes.operation("GET /leases", READ, "What waits and what is held", answers.LeaseList)
async def leases(
    request: Request,
    execution: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    found = await backend_of(request).dispatch.leases(execution, limit)
    return answer({"leases": [lease_json(one) for one in found]})


@fleet_routes.operation("GET /servers", READ, "The servers that are alive", answers.ServerList)
async def servers(request: Request) -> Response:
    found = await backend_of(request).partitions.servers()
    return answer({"servers": [answers.ServerOut.of(one, since=iso(one.since)) for one in found]})


@fleet_routes.operation("GET /pools", READ, "Pools of workers", answers.PoolList)
async def pools(request: Request) -> Response:
    dispatch = backend_of(request).dispatch
    found, waiting = await asyncio.gather(dispatch.workers(), dispatch.waiting())
    alive = [one for one in found if one.is_alive]
    names = sorted({one.card.pool for one in alive} | set(waiting))
    return answer(
        {
            "pools": [
                {
                    "name": name,
                    "workers": sum(one.card.pool == name for one in alive),
                    "slots": sum(one.card.slots for one in alive if one.card.pool == name),
                    "held": sum(one.held for one in alive if one.card.pool == name),
                    "waiting": waiting.get(name, 0),
                }
                for name in names
            ]
        }
    )


# ---- Tokens, and what else only who looks after the server may do.

token_routes = Routes("admin", "/api")


def token_json(token: Token) -> JsonMap:
    return answers.TokenOut.of(
        token,
        scope=token.scope.value,
        created_at=iso(token.created_at),
        expires_at=None if token.expires_at is None else iso(token.expires_at),
        last_used_at=None if token.last_used_at is None else iso(token.last_used_at),
    )


@token_routes.operation("GET /tokens", ADMIN, "List the tokens", answers.TokenList)
async def listing(request: Request) -> Response:
    control = backend_of(request).control
    return answer({"tokens": [token_json(one) for one in await apart(control.tokens)]})


@token_routes.operation(
    "POST /tokens",
    ADMIN,
    "Make a token",
    answers.NewTokenOut,
    409,
    415,
    status_code=201,
    description="Its secret is in the answer, and nowhere else: only a hash of it is kept.",
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


@token_routes.operation("DELETE /tokens/{token}", ADMIN, "Revoke a token", None, 404, 409)
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


@token_routes.operation(
    "POST /prune", ADMIN, "Delete old runs, and results that nothing refers to any more", answers.PruneOut, 409, 415
)
async def prune(request: Request, asked: models.PruneIn) -> Response:
    pruned = await backend_of(request).prune(asked.older_than_s, asked.keep_failed, asked.dry_run)
    return answer({"runs": pruned.runs, "results": pruned.results, "bytes": pruned.size, "dry_run": asked.dry_run})
