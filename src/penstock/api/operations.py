"""What operators ask: health, readiness and metrics of a server; servers, workers, pools and the leases that are out; tokens and
pruning."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, get_args

from fastapi import Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, Readiness, apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import ADMIN, READ, Routes, answer, content
from penstock.api.streams import Tail
from penstock.kernel.values import JsonMap
from penstock.ports.control import Scope, Token
from penstock.ports.dispatch import LeaseSeen, WorkerSeen
from penstock.ports.log import Status
from penstock.ports.meters import Histogram
from penstock.ports.wire import iso

fleet_routes = Routes("fleet", "/api")


def worker_json(seen: WorkerSeen, *, is_inside: bool) -> JsonMap:
    return answers.WorkerOut.of(
        seen.card,
        can=sorted(seen.card.can),
        held=seen.held,
        age_s=round(seen.age_s, 3),
        is_alive=seen.is_alive,
        is_draining=seen.is_draining,
        is_inside=is_inside,
    )


def lease_json(seen: LeaseSeen) -> JsonMap:
    left_s = None if seen.left_s is None else round(seen.left_s, 3)
    return answers.LeaseOut.of(seen, age_s=round(seen.age_s, 3), left_s=left_s, needs=sorted(seen.needs))


@fleet_routes.operation("GET /workers", READ, "Who works", answers.WorkerList)
async def workers(request: Request) -> Response:
    backend = backend_of(request)
    found = await backend.dispatch.workers()
    return answer({"workers": [worker_json(one, is_inside=backend.is_folder) for one in found]})


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


# ---- Tokens, and what else only administrators may do.

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


# ---- The figures of a server in the text format that Prometheus reads.
# Those about executions, leases and workers are of the whole fleet and the same at every server; the others are of this
# process.

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTED = 10_000
"""How many of the newest runs are counted by status."""

STATUSES: tuple[str, ...] = get_args(Status)

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
NONE: Labels = {}


async def exposition(backend: Backend, tail: Tail) -> bytes:
    dispatch = backend.dispatch
    workers, waiting, leases, headers = await asyncio.gather(
        dispatch.workers(), dispatch.waiting(), dispatch.leases(), apart(lambda: backend.log.headers(COUNTED))
    )
    # A known pool has all of its figures, also those that are 0: a missing figure can be neither plotted nor watched.
    pools = {seen.card.pool for seen in workers} | set(waiting)
    alive, slots, held = _none(pools), _none(pools), _none(pools)
    for seen in workers:
        held[seen.card.pool] += seen.held
        if seen.is_alive:
            alive[seen.card.pool] += 1
            slots[seen.card.pool] += seen.card.slots
    oldest = _none(pools)
    for lease in leases:
        if lease.worker is None:
            oldest[lease.pool] = max(oldest.get(lease.pool, 0.0), lease.age_s)
    statuses = _none(STATUSES)
    for header in headers:
        statuses[header.status] += 1
    hosting, watched = backend.hosting, backend.watched
    lines = [
        *_gauge("penstock_executions", f"runs by status, of the newest {COUNTED:,}", _by("status", statuses)),
        *_gauge("penstock_hosted_executions", "runs that this server drives", [(NONE, len(hosting.hosted))]),
        *_gauge("penstock_partitions_owned", "parts of all executions that are this server's", _one(hosting.owned)),
        *_counter("penstock_events_appended", "events handed to the log", [(NONE, watched.appended)]),
        *_gauge("penstock_log_backlog", "events handed over and not yet durable", [(NONE, backend.log.backlog)]),
        *_counter(
            "penstock_notes_heard", "notes of workers that took effect", [(NONE, hosting.dispatch_loop.received)]
        ),
        *_gauge("penstock_workers_alive", "workers by pool", _by("pool", alive)),
        *_gauge("penstock_worker_slots", "places of workers that are alive, by pool", _by("pool", slots)),
        *_gauge(
            "penstock_leases_waiting",
            "offers that nobody has taken yet, by pool",
            _by("pool", {**_none(pools), **waiting}),
        ),
        *_gauge("penstock_leases_held", "leases at work, by pool", _by("pool", held)),
        *_gauge("penstock_queue_age_seconds", "how long the oldest offer has waited, by pool", _by("pool", oldest)),
        *_gauge("penstock_streams", "streams that clients have open", [(NONE, tail.watchers)]),
        *_relayed(getattr(dispatch, "figures", dict)()),
        *_histogram("penstock_append_seconds", "from handing events over until they are durable", watched.latency),
    ]
    return "\n".join([*lines, ""]).encode()


def _none(names: Iterable[str]) -> dict[str, float]:
    return dict.fromkeys(names, 0.0)


def _relayed(figures: Mapping[str, int]) -> Iterator[str]:
    """The figures of the broker between servers and workers, if there is one."""
    for name, value in figures.items():
        yield from _counter(f"penstock_broker_{name}", f"{name.replace('_', ' ')} since the start", [(NONE, value)])


def _one(things: Mapping[int, int]) -> list[Sample]:
    return [(NONE, len(things))]


def _by(label: str, counted: Mapping[str, float]) -> list[Sample]:
    return [({label: name}, value) for name, value in sorted(counted.items())]


def _gauge(name: str, help: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield from _head(name, help, "gauge")
    yield from (_line(name, labels, value) for labels, value in samples)


def _counter(name: str, help: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield from _head(f"{name}_total", help, "counter")
    yield from (_line(f"{name}_total", labels, value) for labels, value in samples)


def _histogram(name: str, help: str, histogram: Histogram) -> Iterator[str]:
    yield from _head(name, help, "histogram")
    seen = 0
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts, strict=True):
        seen += count
        yield _line(f"{name}_bucket", {"le": bound}, seen)
    yield _line(f"{name}_sum", NONE, histogram.total)
    yield _line(f"{name}_count", NONE, seen)


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


server_routes = Routes("server")

API = 1
"""Incremented when older clients would no longer understand the answers."""


@server_routes.operation("GET /health", None, "The process is alive", answers.HealthOut)
async def health(request: Request) -> Response:
    return answer({"status": "ok", "server": backend_of(request).name})


@server_routes.operation("GET /ready", None, "Runs can be submitted", answers.ReadyOut, 503)
async def ready(request: Request) -> Response:
    backend = backend_of(request)
    backend.hosting.dispatch_loop.check()
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


@server_routes.operation("GET /metrics", READ, "Figures", Response, responses=_TEXT)
async def metrics(request: Request) -> Response:
    tail = request.app.state.tail
    return Response(await exposition(backend_of(request), tail), media_type=CONTENT_TYPE)


@server_routes.operation("GET /api/version", READ, "Which server this is", answers.VersionOut)
async def version(request: Request) -> Response:
    backend = backend_of(request)
    return answer({"version": backend.version, "server": backend.name, "api": API, "stores": [*backend.blobs.stores]})
