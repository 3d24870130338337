"""What the log says about a run: its events, what its tools said, its plan and picture, and why things happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import apart, at_length, backend_of
from penstock.api.catalog import PICTURE_MEDIA, picture_of, plan_of
from penstock.api.errors import ApiError, refusals
from penstock.api.routing import READ, Routes, answer, content
from penstock.api.streams import EventStream, Streamed, Tail, asked, log_lines, ndjson
from penstock.ports.blobs import Missing, ResultRef, key_of
from penstock.server.wait_reasons import waits

routes = Routes("history", "/api/executions/{run}")
streams = Routes("history", "/api")

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
_LINES = content([NDJSON], "one JSON object a line")
_STREAM = content([SSE], "server-sent events")

After = Annotated[int, Query(ge=0, le=2**62, description="only what comes after this number")]
Follow = Annotated[bool, Query(description="go on until the run is over")]


def tail_of(request: Request) -> Tail:
    found = request.app.state.tail
    assert isinstance(found, Tail)
    return found


@routes.operation("GET /events", READ, "The events of a run", Response, 404, 409, 429, responses=_LINES)
async def events(request: Request, run: str, after: After = 0, follow: Follow = False) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    header = await backend.found(run)
    if follow:
        tail.check_room()
    return Streamed(ndjson(backend, tail, header, after, follow=follow), NDJSON, backend.limits.stall_s)


@routes.operation("GET /logs", READ, "What the tools of a run have said", Response, 404, 409, 429, responses=_LINES)
async def logs(request: Request, run: str, after: After = 0, follow: Follow = False) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    header = await backend.found(run)
    tail.check_room()
    lines = log_lines(backend, tail, header.execution_id, after, follow=follow)
    return Streamed(lines, NDJSON, backend.limits.stall_s)


@streams.operation(
    "GET /stream",
    READ,
    "One stream for all that a client watches",
    Response,
    404,
    429,
    responses=_STREAM,
    description="Server-sent events: `entry`, `line`, `status`, `run`. Come back with `Last-Event-ID` to miss nothing.",
)
async def stream(
    request: Request,
    execution: Annotated[
        list[str] | None, Query(description="an execution, or `ID@SEQ` for what comes after; may be repeated")
    ] = None,
    lines: Annotated[bool, Query(description="also what tools say")] = False,
    runs: Annotated[bool, Query(description="also changes in the list of runs")] = False,
    last_event_id: Annotated[str | None, Header(description="the id of the last message that was got")] = None,
) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    wanted = execution or []
    if not wanted and not runs:
        raise ApiError(422, "the stream is about nothing", "give `execution=ID`, once or more often, or `runs=true`")
    if len(wanted) > backend.limits.watched:
        raise ApiError(422, f"a stream has room for {backend.limits.watched} executions, not for {len(wanted)}")
    followed = asked(wanted, last_event_id)
    for one in followed:
        if await apart(lambda: backend.log.header(one.execution_id)) is None:  # noqa: B023  awaited before the next one
            raise ApiError(404, f"there is no run `{one.execution_id}`")
    tail.check_room()
    told = EventStream(backend, tail, followed, lines=lines, runs=runs)
    return Streamed(told.messages(), SSE, backend.limits.stall_s, {"X-Accel-Buffering": "no"})


@routes.operation("GET /plan", READ, "The lowered form of what a run runs", None, 404, 409)
async def plan(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    return answer(await at_length(lambda: plan_of(*backend.views.book(header).root())))


_PICTURE = content(PICTURE_MEDIA.values(), "the picture")


@routes.operation("GET /graph", READ, "A picture of what a run runs", Response, 404, 409, responses=_PICTURE)
async def graph(request: Request, run: str, format: Annotated[models.Picture, Query()] = "mermaid") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    picture = await at_length(lambda: picture_of(backend.views.book(header).root()[0], format))
    return Response(picture, media_type=PICTURE_MEDIA[format])


@routes.operation(
    "GET /explain", READ, "Why a step or component ran, waits or was skipped", answers.ExplainedOut, 404, 409
)
async def explain(
    request: Request,
    run: str,
    node: Annotated[str, Query(min_length=1, max_length=2000, description="such as `fetch`, `fetch@2`, `fetch[5]`")],
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    with refusals(404):
        found = await at_length(lambda: backend.views.explained(header, node))
    return answer(found)


@routes.operation("GET /waiting", READ, "What of a run waits for a worker, and why", answers.WaitList, 404, 409)
async def waiting(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    leases = await backend.dispatch.leases(header.execution_id)
    workers = await backend.dispatch.workers() if leases else []
    return answer({"execution_id": header.execution_id, "waiting": waits(leases, workers)})


@routes.operation("GET /fanin", READ, "How far the fanned-out loops of a run are", answers.FaninOut, 404, 409)
async def fanin(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    shown = await at_length(lambda: backend.views.shown(header))
    return answer({"execution_id": header.execution_id, "fanin": shown.get("fanin") or {}})


# ---- Large results by reference, as the log names them.

result_routes = Routes("history", "/api")

BYTES = "application/octet-stream"
_CONTENT = content([BYTES], "the bytes", format="binary")


@result_routes.operation(
    "GET /results/{store}/{checksum}",
    READ,
    "The bytes of a result",
    Response,
    404,
    responses=_CONTENT,
    description="`store` and `checksum` as they stand in a reference (`$ref`).",
)
async def get(
    request: Request,
    store: Annotated[str, Path(max_length=50)],
    checksum: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
) -> Response:
    backend = backend_of(request)
    if store not in backend.blobs.stores:
        raise ApiError(404, f"there is no store `{store}` here", f"this server has {', '.join(backend.blobs.stores)}")
    pieces = backend.blobs.read(ResultRef(store, key_of(checksum), 0, checksum))
    try:
        first = await apart(lambda: next(pieces, b""))
    except Missing as error:
        raise ApiError(404, error.message, error.hint) from error
    return Streamed(_rest(first, pieces), BYTES, backend.limits.stall_s)


async def _rest(first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    piece: bytes | None = first
    while piece is not None:
        yield piece
        piece = await apart(lambda: next(pieces, None))
