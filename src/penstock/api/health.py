"""Is it alive, is it ready, how does it do, and what is it."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from penstock.api import answers
from penstock.api.access import READ
from penstock.api.backend import backend_of
from penstock.api.errors import ApiError
from penstock.api.metrics import CONTENT_TYPE, exposition
from penstock.api.readiness import Readiness
from penstock.api.routing import answer, content, errors, router

routes = router("server")

API = 1
"""Goes up when a client of before would no longer understand the answers."""


@routes.get("/health", response_model=answers.HealthOut, summary="The process is alive")
async def health(request: Request) -> Response:
    return answer({"status": "ok", "server": backend_of(request).name})


@routes.get("/ready", response_model=answers.ReadyOut, responses=errors(503), summary="Runs can be submitted")
async def ready(request: Request) -> Response:
    backend = backend_of(request)
    backend.hosting.office.check()
    problems = await readiness_of(request).problems()
    if problems:
        words, hint = "; ".join(one.message for one in problems), problems[0].hint
        raise ApiError(503, words, hint, headers={"Retry-After": "1"})
    if not backend.hosting.owned:
        raise ApiError(503, "this server holds no part of the executions yet", headers={"Retry-After": "1"})
    return answer({"status": "ready", "server": backend.name, "partitions": len(backend.hosting.owned)})


def readiness_of(request: Request) -> Readiness:
    found = request.app.state.readiness
    assert isinstance(found, Readiness)
    return found


_TEXT = content([CONTENT_TYPE], "the Prometheus text format")


@routes.get("/metrics", response_class=Response, responses=_TEXT, summary="Figures", dependencies=[READ])
async def metrics(request: Request) -> Response:
    tail = request.app.state.tail
    return Response(await exposition(backend_of(request), tail), media_type=CONTENT_TYPE)


@routes.get("/api/version", response_model=answers.VersionOut, summary="Which server this is", dependencies=[READ])
async def version(request: Request) -> Response:
    backend = backend_of(request)
    return answer({"version": backend.version, "server": backend.name, "api": API, "stores": [*backend.blobs.stores]})
