"""Who works: servers, workers, pools and the leases that are out."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api import answers
from penstock.api.access import READ
from penstock.api.backend import backend_of
from penstock.api.routing import answer, router
from penstock.kernel.values import JsonMap
from penstock.ports.dispatch import LeaseSeen, WorkerSeen
from penstock.ports.wire import iso

routes = router("fleet", "/api")


def worker_json(seen: WorkerSeen) -> JsonMap:
    card = seen.card
    return {
        "id": card.id,
        "name": card.name,
        "pool": card.pool,
        "slots": card.slots,
        "can": [*sorted(card.can)],
        "version": card.version,
        "held": seen.held,
        "age_s": round(seen.age_s, 3),
        "is_alive": seen.is_alive,
        "is_draining": seen.is_draining,
    }


def lease_json(seen: LeaseSeen) -> JsonMap:
    return {
        "key": seen.key,
        "execution_id": seen.execution_id,
        "pool": seen.pool,
        "attempt": seen.attempt,
        "worker": seen.worker,
        "age_s": round(seen.age_s, 3),
        "left_s": None if seen.left_s is None else round(seen.left_s, 3),
        "needs": [*sorted(seen.needs)],
    }


@routes.get("/workers", response_model=answers.WorkerList, summary="Who works", dependencies=[READ])
async def workers(request: Request) -> Response:
    found = await backend_of(request).dispatch.workers()
    return answer({"workers": [worker_json(one) for one in found]})


@routes.get("/leases", response_model=answers.LeaseList, summary="What waits and what is held", dependencies=[READ])
async def leases(
    request: Request,
    execution: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    found = await backend_of(request).dispatch.leases(execution, limit)
    return answer({"leases": [lease_json(one) for one in found]})


@routes.get("/servers", response_model=answers.ServerList, summary="The servers that are alive", dependencies=[READ])
async def servers(request: Request) -> Response:
    found = await backend_of(request).partitions.servers()
    shown = [{"id": one.id, "name": one.name, "since": one.since, "partitions": one.partitions} for one in found]
    return answer({"servers": [{**one, "since": iso(float(str(one["since"])))} for one in shown]})


@routes.get("/pools", response_model=answers.PoolList, summary="Pools of workers", dependencies=[READ])
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
