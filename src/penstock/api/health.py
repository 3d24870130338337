"""Health, readiness, metrics and version of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from fastapi import Request
from starlette.responses import Response

from penstock.api import answers
from penstock.api.backend import Backend, Readiness, apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import READ, Routes, answer, content
from penstock.api.streams import Tail
from penstock.ports.log import Status
from penstock.ports.meters import Histogram

# ---- The figures of a server in the text format that Prometheus reads.
# Those about executions, leases and workers are of the whole fleet and the same at every server; the others are of this
# process.

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTED = 10_000
"""So many of the newest runs are counted by status."""

STATUSES: tuple[str, ...] = get_args(Status)

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
NONE: Labels = {}


async def exposition(backend: Backend, tail: Tail) -> bytes:
    dispatch = backend.dispatch
    workers, waiting, leases, headers = await asyncio.gather(
        dispatch.workers(), dispatch.waiting(), dispatch.leases(), apart(lambda: backend.log.headers(COUNTED))
    )
    # A pool that is known has all its figures, also those that are 0: what is not there can be neither drawn nor watched.
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
    """Of a broker between servers and workers, if there is one."""
    for name, value in figures.items():
        yield from _counter(f"penstock_broker_{name}", f"{name.replace('_', ' ')} since the start", [(NONE, value)])


def _one(things: Mapping[int, int]) -> list[Sample]:
    return [(NONE, len(things))]


def _by(label: str, counted: Mapping[str, float]) -> list[Sample]:
    return [({label: name}, value) for name, value in sorted(counted.items())]


def _gauge(name: str, said: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield from _head(name, said, "gauge")
    yield from (_line(name, labels, value) for labels, value in samples)


def _counter(name: str, said: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield from _head(f"{name}_total", said, "counter")
    yield from (_line(f"{name}_total", labels, value) for labels, value in samples)


def _histogram(name: str, said: str, histogram: Histogram) -> Iterator[str]:
    yield from _head(name, said, "histogram")
    seen = 0
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts, strict=True):
        seen += count
        yield _line(f"{name}_bucket", {"le": bound}, seen)
    yield _line(f"{name}_sum", NONE, histogram.total)
    yield _line(f"{name}_count", NONE, seen)


def _head(name: str, said: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


routes = Routes("server")

API = 1
"""Goes up when a client of before would no longer understand the answers."""


@routes.operation("GET /health", None, "The process is alive", answers.HealthOut)
async def health(request: Request) -> Response:
    return answer({"status": "ok", "server": backend_of(request).name})


@routes.operation("GET /ready", None, "Runs can be submitted", answers.ReadyOut, 503)
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


@routes.operation("GET /metrics", READ, "Figures", Response, responses=_TEXT)
async def metrics(request: Request) -> Response:
    tail = request.app.state.tail
    return Response(await exposition(backend_of(request), tail), media_type=CONTENT_TYPE)


@routes.operation("GET /api/version", READ, "Which server this is", answers.VersionOut)
async def version(request: Request) -> Response:
    backend = backend_of(request)
    return answer({"version": backend.version, "server": backend.name, "api": API, "stores": [*backend.blobs.stores]})
