"""Runs: start, list, show, cancel, resume."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.catalog import compiled, pinned
from penstock.api.errors import ApiError, refusals
from penstock.api.routing import READ, RUN, Routes, answer
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.log import Header as RunHeader
from penstock.ports.log import Status
from penstock.ports.moments import moment_of
from penstock.server.catalog import compiling
from penstock.server.documents import Pinned, inputs_of
from penstock.server.execution_owner import Submission
from penstock.server.views import listed, with_failures
from penstock.views.wording import counted

routes = Routes("executions", "/api/executions")

KEYS = "client:"
"""Keys of clients lie beside those that schedules and hooks make, and cannot be taken for them."""
PATIENCE_S = 5.0
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
    key = idempotency_key or asked.idempotency_key
    document, net = await compiling(lambda: _document(backend, asked))
    submission = Submission(
        document,
        asked.payload,
        label=asked.label,
        key=None if key is None else f"{KEYS}{key}",
        context=asked.context,
        trace_id=uuid.uuid4().hex,
        keep=tuple(asked.keep),
    )
    with refusals(422):
        execution_id = await backend.hosting.submit(submission)
    is_new = key is None or await apart(lambda: _is_new(backend, execution_id, submission, net))
    location = f"/api/executions/{execution_id}"
    return answer({"execution_id": execution_id, "created": is_new}, 201 if is_new else 200, Location=location)


def _document(backend: Backend, asked: models.SubmitIn) -> tuple[Pinned, Net]:
    document = pinned(backend, asked.document)
    return document, compiled(backend, document)[0]


def _is_new(backend: Backend, execution_id: str, submission: Submission, net: Net) -> bool:
    """Whether this very request made the run. A key that was used for something else is a mistake, which is told."""
    header = backend.log.header(execution_id)
    if header is None or header.trace_id == submission.trace_id:
        return True
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
    return False


@routes.operation("GET", READ, "List runs", answers.RunList, 404)
async def listing(
    request: Request,
    status: Annotated[Status | None, Query()] = None,
    name: Annotated[
        str | None, Query(description="the name of the playbook or job, or the label of the run", max_length=500)
    ] = None,
    since: Annotated[
        str | None,
        Query(description="started then or later: an ISO 8601 date or time, or such as `2h`, `3d`", max_length=100),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="the `next` of the page before", max_length=500)] = None,
) -> Response:
    backend = backend_of(request)
    log = backend.log
    if after is not None and await apart(lambda: log.header(after)) is None:
        raise ApiError(404, f"there is no run `{after}` to go on after", "begin again without `after`")
    started = None if since is None else moment_of(since, backend.clock.now())
    if since is not None and started is None:
        raise ApiError(422, f"`since` is `{since}`, which is no time", "such as `2h`, `3d`, `2026-01-31T06:00:00Z`")

    def found() -> list[RunHeader]:
        headers = log.headers(limit, after=after, status=status, name=name, since=started)
        return [with_failures(log, one) for one in headers]

    headers = await apart(found)
    last = headers[-1].execution_id if len(headers) == limit else None
    return answer({"runs": [listed(header, header.status) for header in headers], "next": last})


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
    found = await apart(lambda: with_failures(backend.log, found))
    return answer(listed(found, found.status))


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
    "Go on with a run that failed or was interrupted",
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
    if header.status == "running":
        raise ApiError(409, f"run `{header.execution_id}` is running", "it goes on by itself")
    wanted: JsonMap = {"failed": True, "seq": header.last_seq} if is_failed_only else {}
    await backend.hosting.ask(header.execution_id, "resume", wanted)
    now = await _moved_on(backend, header)
    return answer({"execution_id": now.execution_id, "status": now.status, "seq": header.last_seq}, 202)


async def _moved_on(backend: Backend, before: RunHeader) -> RunHeader:
    """The owner may be another server, which looks for such requests now and then."""
    until = time.monotonic() + PATIENCE_S
    while True:
        header = await apart(lambda: backend.log.header(before.execution_id)) or before
        if header != before or time.monotonic() > until:
            return header
        await asyncio.sleep(POLL_S)
