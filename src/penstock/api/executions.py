"""Runs: start, list, show, cancel, resume; and their history: events, printed lines, plan, picture, and why things happened."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.catalog import PICTURE_MEDIA, compiled, picture_of, pinned, plan_of
from penstock.api.errors import ApiError, refusals
from penstock.api.models import DocumentText
from penstock.api.routing import READ, RUN, Routes, answer, content
from penstock.api.streams import EventStream, Streamed, Tail, asked, log_lines, ndjson
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import Missing, ResultRef, key_of
from penstock.ports.log import Header as RunHeader
from penstock.ports.moments import moment_of
from penstock.server.catalog import compiling
from penstock.server.documents import Pinned, inputs_of
from penstock.server.execution_owner import Submission, Submitted
from penstock.server.wait_reasons import reason as why_it_waits
from penstock.server.wait_reasons import waits
from penstock.views.headers import (
    CRASHED,
    CRASHED_REASON,
    RunFilter,
    ShownStatus,
    last_words,
    listed,
    newest_runs,
    with_failures,
)
from penstock.views.wording import counted

routes = Routes("executions", "/api/executions")

KEYS = "client:"
"""The prefix that keeps keys of clients apart from those that schedules and hooks make."""
PATIENCE_S = 5.0
WAITS_S = 1.0
"""What has not been taken by a worker for this long is said to wait for one."""
POLL_S = 0.05


@routes.operation(
    "POST",
    RUN,
    "Start a run",
    answers.SubmitOut,
    404,
    409,
    415,
    status_code=201,
    responses={200: {"model": answers.SubmitOut, "description": "this key was used before"}},
)
async def submit(
    request: Request,
    asked: models.SubmitIn,
    idempotency_key: Annotated[models.Short | None, Header(description="the same key again is the same run")] = None,
) -> Response:
    backend = backend_of(request)
    if None not in (idempotency_key, asked.idempotency_key) and idempotency_key != asked.idempotency_key:
        raise ApiError(422, "the idempotency keys of the header and of the body differ", "give one of them")
    one = models.OneOfManyIn(
        payload=asked.payload, label=asked.label, idempotency_key=idempotency_key or asked.idempotency_key
    )
    (submitted,) = await _submitted(backend, asked, [one])
    location = f"/api/executions/{submitted.execution_id}"
    return answer(_submit_out(submitted), 201 if submitted.is_new else 200, Location=location)


@routes.operation(
    "POST /batch",
    RUN,
    "Start many runs of one document",
    answers.SubmitManyOut,
    404,
    409,
    415,
    status_code=201,
    description=f"Up to {models.MOST_AT_ONCE:,} runs, registered together. None is started if the document is wrong, or the "
    "inputs of one of them. A key that was used for another request is found afterwards, when the others have started.",
)
async def submit_many(request: Request, asked: models.SubmitManyIn) -> Response:
    submitted = await _submitted(backend_of(request), asked, asked.runs)
    return answer({"runs": [_submit_out(one) for one in submitted]}, 201)


def _submit_out(submitted: Submitted) -> JsonMap:
    return {"execution_id": submitted.execution_id, "created": submitted.is_new}


async def _submitted(backend: Backend, asked: models.WhatRunsIn, runs: Sequence[models.OneOfManyIn]) -> list[Submitted]:
    document, net = await _compiled(backend, asked)
    submissions = [
        Submission(
            document,
            one.payload,
            label=one.label,
            key=None if one.idempotency_key is None else f"{KEYS}{one.idempotency_key}",
            context=asked.context,
            trace_id=uuid.uuid4().hex,
            keep=tuple(asked.keep),
        )
        for one in runs
    ]
    with refusals(422):
        submitted = await backend.hosting.submit_all(submissions)
    for one, again in zip(submitted, submissions, strict=True):
        if not one.is_new:
            await apart(partial(_require_same, backend, one.execution_id, again, net))
    return submitted


async def _compiled(backend: Backend, asked: models.WhatRunsIn) -> tuple[Pinned, Net]:
    """A text that was sent before has been checked, and needs no thread."""
    text = asked.document
    known = (
        backend.documents.sent_before(text.file, text.text, text.sources) if isinstance(text, DocumentText) else None
    )
    return known if known is not None else await compiling(lambda: _document(backend, asked))


def _document(backend: Backend, asked: models.WhatRunsIn) -> tuple[Pinned, Net]:
    document = pinned(backend, asked.document)
    return document, compiled(backend, document)[0]


def _require_same(backend: Backend, execution_id: str, submission: Submission, net: Net) -> None:
    """Raises ApiError if the key of a run that is there already was used for something else."""
    header = backend.log.header(execution_id)
    if header is None:
        return
    inputs = inputs_of(backend.log.document(execution_id)) or {}
    if (header.digest, inputs.get("payload"), inputs.get("context")) != (
        net.digest,
        dict(submission.payload),
        submission.context,
    ):
        raise ApiError(
            409,
            f"this idempotency key was used for another request, which made the run `{execution_id}`",
            "take a new key for a new run",
            code="key_reused",
        )


@routes.operation("GET", READ, "List runs", answers.RunList, 404)
async def listing(
    request: Request,
    status: Annotated[ShownStatus | None, Query()] = None,
    name: Annotated[
        str | None, Query(description="the name of the playbook or job, or the label of the run", max_length=500)
    ] = None,
    label: Annotated[str | None, Query(max_length=500)] = None,
    kind: Annotated[Literal["playbook", "job"] | None, Query()] = None,
    q: Annotated[
        str | None, Query(description="a text in the name, label, id or file of the run", max_length=500)
    ] = None,
    since: Annotated[
        str | None,
        Query(description="started then or later: an ISO 8601 date or time, or such as `2h`, `3d`", max_length=100),
    ] = None,
    until: Annotated[str | None, Query(description="started then or earlier; as `since`", max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="the `next` of the page before", max_length=500)] = None,
) -> Response:
    backend = backend_of(request)
    log = backend.log
    if after is not None and await apart(lambda: log.header(after)) is None:
        raise ApiError(404, f"there is no run `{after}` to go on after", "begin again without `after`")
    wanted = RunFilter(
        status=status,
        name=name,
        label=label,
        kind=kind,
        text=q or None,
        since=_moment(backend, "since", since),
        until=_moment(backend, "until", until),
    )
    rows, last = await apart(lambda: newest_runs(log, wanted, limit, backend.seen, after))
    reasons = await _reasons(backend, rows)
    runs = [{**listed(header, shown), "reason": reasons.get(header.execution_id)} for header, shown in rows]
    return answer({"runs": runs, "next": last})


def _moment(backend: Backend, name: str, text: str | None) -> float | None:
    found = None if text is None else moment_of(text, backend.clock.now())
    if text is not None and found is None:
        raise ApiError(422, f"`{name}` is `{text}`, which is no time", "such as `2h`, `3d`, `2026-01-31T06:00:00Z`")
    return found


async def _reasons(backend: Backend, rows: list[tuple[RunHeader, str]]) -> dict[str, str]:
    """Why runs crashed, failed or wait, in a line each, as far as a look at the end of their logs and at the leases tells."""
    ended = [header for header, shown in rows if shown in ("failed", "interrupted", "cancelled")]
    reasons = await apart(lambda: {one.execution_id: last_words(backend.log, one) for one in ended})
    found = {run: reason for run, reason in reasons.items() if reason is not None}
    found.update({header.execution_id: CRASHED_REASON for header, shown in rows if shown == CRASHED})
    if any(shown == "running" for _, shown in rows):
        going = {header.execution_id for header, shown in rows if shown == "running"}
        leases = [one for one in await backend.dispatch.leases() if one.execution_id in going]
        held = {one.execution_id for one in leases if one.worker is not None}
        idle = [one for one in leases if one.execution_id not in held and one.age_s > WAITS_S]
        workers = await backend.dispatch.workers() if idle else []
        for lease in idle:
            found.setdefault(lease.execution_id, f"it waits for a worker: {'; '.join(why_it_waits(lease, workers)[1])}")
    return found


@routes.operation(
    "GET /{run}",
    READ,
    "Show a run",
    answers.ShownOut,
    404,
    409,
    description="As `penstock show --json` prints it. `run` is an id, a unique beginning of one, a label, or `@last`.",
)
async def show(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    return answer(await at_length(lambda: backend.views.shown(header)))


@routes.operation("GET /{run}/header", READ, "A run as the list has it", answers.RunOut, 404, 409)
async def header(request: Request, run: str) -> Response:
    backend = backend_of(request)
    found = await backend.found(run)
    now, shown = await apart(lambda: backend.seen(found))
    now = await apart(lambda: with_failures(backend.log, now))
    reasons = await _reasons(backend, [(now, shown)])
    return answer({**listed(now, shown), "reason": reasons.get(now.execution_id)})


@routes.operation(
    "GET /{run}/document",
    READ,
    "The document that a run is pinned to",
    answers.PinnedOut,
    404,
    409,
    description="Without the secrets that were written into it; with the inputs that the run was submitted with.",
)
async def document(request: Request, run: str) -> Response:
    backend = backend_of(request)
    found = await backend.found(run)
    kept = await apart(lambda: backend.log.document(found.execution_id))
    return Response(kept, media_type="application/json")


@routes.operation("POST /{run}/cancel", RUN, "Cancel a run", answers.AskedOut, 404, 409, 415, status_code=202)
async def cancel(request: Request, run: str, asked: models.CancelIn | None = None) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    if header.status in ("completed", "failed", "cancelled"):
        raise ApiError(409, f"run `{header.execution_id}` is {header.status}; there is nothing to cancel")
    reason = (asked or models.CancelIn()).reason
    await backend.hosting.ask(header.execution_id, "cancel", {"reason": reason})
    return answer({"execution_id": header.execution_id, "status": header.status, "seq": header.last_seq}, 202)


@routes.operation(
    "POST /{run}/resume",
    RUN,
    "Go on with a run that failed, was interrupted or crashed",
    answers.AskedOut,
    404,
    409,
    415,
    status_code=202,
    description="`seq` is the last event before: what comes after it belongs to the resumed run. With `failed` also a job that "
    "completed is resumed, to run its failed iterations again.",
)
async def resume(request: Request, run: str, asked: models.ResumeIn | None = None) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    header = await apart(lambda: with_failures(backend.log, header))
    is_failed_only = asked is not None and asked.failed
    if header.status == "completed" and header.failed_iterations and not is_failed_only:
        raise ApiError(
            409,
            f"run `{header.execution_id}` is completed, and {counted(header.failed_iterations, 'iteration')} of it failed",
            "with `failed` (`penstock resume --failed`) only these are run again",
        )
    if header.status == "cancelled" or (header.status == "completed" and not header.failed_iterations):
        raise ApiError(409, f"run `{header.execution_id}` is {header.status}; there is nothing to resume")
    is_crashed = header.status == "running" and await apart(lambda: backend.status_of(header)) == CRASHED
    if header.status == "running" and not is_crashed:
        raise ApiError(409, f"run `{header.execution_id}` is running", "it goes on by itself")
    wanted: JsonMap = {"failed": True, "seq": header.last_seq} if is_failed_only else {"crashed": is_crashed}
    await backend.hosting.ask(header.execution_id, "resume", wanted)
    now = await _moved_on(backend, header)
    return answer({"execution_id": now.execution_id, "status": now.status, "seq": header.last_seq}, 202)


async def _moved_on(backend: Backend, before: RunHeader) -> RunHeader:
    """The owner may be another server, which polls for such requests."""
    until = time.monotonic() + PATIENCE_S
    while True:
        header = await apart(lambda: backend.log.header(before.execution_id)) or before
        if header != before or time.monotonic() > until:
            return header
        await asyncio.sleep(POLL_S)


history_routes = Routes("history", "/api/executions/{run}")
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


@history_routes.operation("GET /events", READ, "The events of a run", Response, 404, 409, 429, responses=_LINES)
async def events(request: Request, run: str, after: After = 0, follow: Follow = False) -> Response:
    backend, tail = backend_of(request), tail_of(request)
    header = await backend.found(run)
    if follow:
        tail.check_room()
    return Streamed(ndjson(backend, tail, header, after, follow=follow), NDJSON, backend.limits.stall_s)


@history_routes.operation(
    "GET /logs", READ, "What the tools of a run have said", Response, 404, 409, 429, responses=_LINES
)
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
    ticks: Annotated[
        bool, Query(description="not what happens, only how far each run is: at most four messages a second")
    ] = False,
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
    events = EventStream(backend, tail, followed, lines=lines, runs=runs, ticks=ticks)
    return Streamed(events.messages(), SSE, backend.limits.stall_s, {"X-Accel-Buffering": "no"})


@history_routes.operation("GET /plan", READ, "The lowered form of what a run runs", None, 404, 409)
async def plan(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    return answer(await at_length(lambda: plan_of(*backend.views.book(header).root())))


_PICTURE = content(PICTURE_MEDIA.values(), "the picture")


@history_routes.operation("GET /graph", READ, "A picture of what a run runs", Response, 404, 409, responses=_PICTURE)
async def graph(request: Request, run: str, format: Annotated[models.Picture, Query()] = "mermaid") -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    picture = await at_length(lambda: picture_of(backend.views.book(header).root()[0], format))
    return Response(picture, media_type=PICTURE_MEDIA[format])


@history_routes.operation(
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


@history_routes.operation("GET /waiting", READ, "What of a run waits for a worker, and why", answers.WaitList, 404, 409)
async def waiting(request: Request, run: str) -> Response:
    backend = backend_of(request)
    header = await backend.found(run)
    leases = await backend.dispatch.leases(header.execution_id)
    workers = await backend.dispatch.workers() if leases else []
    return answer({"execution_id": header.execution_id, "waiting": waits(leases, workers)})


@history_routes.operation("GET /fanin", READ, "How far the fanned-out loops of a run are", answers.FaninOut, 404, 409)
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
