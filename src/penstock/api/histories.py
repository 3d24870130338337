"""What the log says about a run: its events, what its tools said, its plan and picture, and why things happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import apart, at_length, backend_of
from penstock.api.catalog import PICTURE_MEDIA, picture_of, plan_of
from penstock.api.errors import ApiError, from_refusal
from penstock.api.routing import READ, answer, content, errors, router
from penstock.api.streams import EventStream, Streamed, Tail, asked, log_lines, ndjson
from penstock.kernel.errors import Refused
from penstock.ports.blobs import Missing, ResultRef, key_of
from penstock.server.waiting import waits

routes = router("history", "/api/executions/{run}")
streams = router("history", "/api")

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


@routes.get(
    "/events",
    response_class=Response,
    responses={**_LINES, **errors(404, 409, 429)},
    summary="The events of a run",
    dependencies=[READ],
)
async def events(request: Request, run: str, after: After = 0, follow: Follow = False) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    header = await backend.found(run)
    if follow:
        tail.check_room()
    return Streamed(ndjson(backend, tail, header, after, follow=follow), NDJSON, backend.limits.stall_s)


@routes.get(
    "/logs",
    response_class=Response,
    responses={**_LINES, **errors(404, 409, 429)},
    summary="What the tools of a run have said",
    dependencies=[READ],
)
async def logs(request: Request, run: str, after: After = 0, follow: Follow = False) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    header = await backend.found(run)
    tail.check_room()
    lines = log_lines(backend, tail, header.execution_id, after, follow=follow)
    return Streamed(lines, NDJSON, backend.limits.stall_s)


@streams.get(
    "/stream",
    response_class=Response,
    responses={**_STREAM, **errors(404, 429)},
    summary="One stream for all that a client watches",
    description="Server-sent events: `entry`, `line`, `status`, `run`. Come back with `Last-Event-ID` to miss nothing.",
    dependencies=[READ],
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


@routes.get("/plan", responses=errors(404, 409), summary="The lowered form of what a run runs", dependencies=[READ])
async def plan(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    return answer(await at_length(lambda: plan_of(*backend.views.book(header).root())))


_PICTURE = content(PICTURE_MEDIA.values(), "the picture")


@routes.get(
    "/graph",
    response_class=Response,
    responses={**_PICTURE, **errors(404, 409)},
    summary="A picture of what a run runs",
    dependencies=[READ],
)
async def graph(request: Request, run: str, format: Annotated[models.Picture, Query()] = "mermaid") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    picture = await at_length(lambda: picture_of(backend.views.book(header).root()[0], format))
    return Response(picture, media_type=PICTURE_MEDIA[format])


@routes.get(
    "/explain",
    response_model=answers.ExplainedOut,
    responses=errors(404, 409),
    summary="Why a step or component ran, waits or was skipped",
    dependencies=[READ],
)
async def explain(
    request: Request,
    run: str,
    node: Annotated[str, Query(min_length=1, max_length=2000, description="such as `fetch`, `fetch@2`, `fetch[5]`")],
) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    try:
        found = await at_length(lambda: backend.views.explained(header, node))
    except Refused as error:
        raise from_refusal(error, 404) from error
    return answer(found)


@routes.get(
    "/waiting",
    response_model=answers.WaitList,
    responses=errors(404, 409),
    summary="What of a run waits for a worker, and why",
    dependencies=[READ],
)
async def waiting(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    leases = await backend.dispatch.leases(header.execution_id)
    workers = await backend.dispatch.workers() if leases else []
    return answer({"execution_id": header.execution_id, "waiting": waits(leases, workers)})


@routes.get(
    "/fanin",
    response_model=answers.FaninOut,
    responses=errors(404, 409),
    summary="How far the fanned-out loops of a run are",
    dependencies=[READ],
)
async def fanin(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    shown = await at_length(lambda: backend.views.shown(header))
    return answer({"execution_id": header.execution_id, "fanin": shown.get("fanin") or {}})


# ---- Large results by reference, as the log names them.

result_routes = router("history", "/api")

BYTES = "application/octet-stream"
_CONTENT = content([BYTES], "the bytes", format="binary")


@result_routes.get(
    "/results/{store}/{checksum}",
    response_class=Response,
    responses={**_CONTENT, **errors(404)},
    summary="The bytes of a result",
    description="`store` and `checksum` as they stand in a reference (`$ref`).",
    dependencies=[READ],
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
