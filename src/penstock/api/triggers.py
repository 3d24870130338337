"""Schedules and hooks: runs that start by the clock, and runs that start on a request from outside."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.access import ADMIN, READ, admit
from penstock.api.backend import Backend, apart, backend_of
from penstock.api.documents_in import compiled
from penstock.api.errors import ApiError, from_refusal
from penstock.api.routing import answer, errors, router
from penstock.dialects.problems import closest
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.control import HIDDEN, PENDING, Hook, Missed, Overlap, Schedule, Scope, Slot, SlotState
from penstock.ports.wire import iso
from penstock.server.catalog import compiling
from penstock.server.documents import Pinned
from penstock.server.hooks import (
    NotReadable,
    NotSigned,
    SwitchedOff,
    TooLarge,
    check_size,
    keep_hook,
    key_of,
    payload_of,
    verify,
)
from penstock.server.hosting import Submission
from penstock.server.inputs import require_known
from penstock.server.played import context_group
from penstock.server.schedules import keep_schedule, next_slot
from penstock.server.slots import iso as slot_iso

routes = router("triggers", "/api")
doors = router("triggers")

Name = Annotated[models.Slug, Path(description="up to 100 letters, digits, `.`, `_` and `-`")]


async def submit_filed(
    backend: Backend,
    path: str,
    version: int | None,
    payload: JsonMap,
    context: str | None,
    key: str | None,
    label: str | None,
) -> str:
    """Start a run of a document of the catalog; the same key again is the same run."""

    def checked() -> Pinned:
        document = backend.documents.filed(path, version)
        backend.documents.compile(document)
        return document

    document = await compiling(checked)
    asked = Submission(document, payload, label=label, key=key, context=context, trace_id=uuid.uuid4().hex)
    return await backend.hosting.submit(asked)


def _check_filed(backend: Backend, path: str, version: int | None, payload: JsonMap, context: str | None) -> None:
    try:
        net, _ = compiled(backend, backend.documents.filed(path, version))
    except Refused as error:
        raise ApiError(422, error.message, error.hint, code="no_such_document") from error
    try:
        require_known(net, payload)
        context_group(net, context)
    except Refused as error:
        raise from_refusal(error, 422) from error


# ---- schedules


def schedule_json(schedule: Schedule, now: float, known: Sequence[Slot]) -> JsonMap:
    try:
        coming = next_slot(schedule, now)
    except Refused:
        coming = None
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "path": schedule.path,
        "version": schedule.version,
        "payload": schedule.payload,
        "context": schedule.context,
        "missed": schedule.missed.value,
        "overlap": schedule.overlap.value,
        "deadline_s": schedule.deadline_s,
        "is_on": schedule.is_on,
        "next_at": _time(coming),
        "fired_to": _time(schedule.fired_to or None),
        "last_slot": _time(schedule.last_slot),
        "last_run": schedule.last_run,
        "last_error": schedule.last_error,
        "running": [one.run for one in known if one.state is SlotState.STARTED],
        "waiting": sum(one.state in PENDING for one in known),
        "late": [slot_iso(one.at) for one in known if one.is_late],
    }


def _open_slots(backend: Backend, name: str) -> list[Slot]:
    return [one for one in backend.control.open_slots() if one.schedule == name]


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)


@routes.get("/schedules", response_model=answers.ScheduleList, summary="List the schedules", dependencies=[READ])
async def schedules(request: Request) -> Response:
    backend = backend_of(request)

    def read() -> tuple[list[Schedule], list[Slot]]:
        return backend.control.schedules(), backend.control.open_slots()

    found, known = await apart(read)
    of_each: dict[str, list[Slot]] = {one.name: [] for one in found}
    for slot in known:
        of_each.get(slot.schedule, []).append(slot)
    return answer({"schedules": [schedule_json(one, backend.clock.now(), of_each[one.name]) for one in found]})


@routes.get(
    "/schedules/{name}",
    response_model=answers.ScheduleOut,
    responses=errors(404),
    summary="A schedule",
    dependencies=[READ],
)
async def schedule(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.control.schedule(name))
    if found is None:
        raise await apart(lambda: no_schedule(backend, name))
    return answer(schedule_json(found, backend.clock.now(), await apart(lambda: _open_slots(backend, name))))


@routes.put(
    "/schedules/{name}",
    response_model=answers.ScheduleOut,
    responses=errors(415),
    summary="Make or change a schedule",
    dependencies=[ADMIN],
)
async def put_schedule(request: Request, name: Name, asked: models.PutSchedule) -> Response:
    backend = backend_of(request)
    wanted = Schedule(
        name,
        asked.cron,
        asked.path,
        asked.zone,
        version=asked.version,
        payload=asked.payload,
        context=asked.context,
        missed=Missed(asked.missed),
        is_on=asked.is_on,
        overlap=Overlap(asked.overlap),
        deadline_s=asked.deadline_s,
    )
    await compiling(lambda: _check_filed(backend, asked.path, asked.version, asked.payload, asked.context))
    now = backend.clock.now()
    try:
        kept = await apart(lambda: keep_schedule(backend.control, wanted, now))
    except Refused as error:
        raise from_refusal(error, 422) from error
    backend.wake_scheduler()
    return answer(schedule_json(kept, now, await apart(lambda: _open_slots(backend, name))))


@routes.delete(
    "/schedules/{name}",
    status_code=204,
    response_class=Response,
    responses=errors(404),
    summary="Delete a schedule",
    dependencies=[ADMIN],
)
async def drop_schedule(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.drop_schedule(name)):
        raise await apart(lambda: no_schedule(backend, name))
    backend.wake_scheduler()
    return Response(status_code=204)


# ---- hooks


def hook_json(hook: Hook) -> JsonMap:
    return {
        "name": hook.name,
        "path": hook.path,
        "version": hook.version,
        "payload": hook.payload,
        "context": hook.context,
        "is_on": hook.is_on,
        "is_signed": hook.secret is not None,
    }


@routes.get("/hooks", response_model=answers.HookList, summary="List the hooks", dependencies=[READ])
async def hooks(request: Request) -> Response:
    backend = backend_of(request)
    return answer({"hooks": [hook_json(one) for one in await apart(backend.control.hooks)]})


@routes.get(
    "/hooks/{name}", response_model=answers.HookOut, responses=errors(404), summary="A hook", dependencies=[READ]
)
async def hook(request: Request, name: Name) -> Response:
    return answer(hook_json(await apart(lambda: _hook(backend_of(request), name))))


def _hook(backend: Backend, name: str) -> Hook:
    """Without its secret, so that it can be shown where the key to that is not at hand."""
    hooks = {one.name: one for one in backend.control.hooks()}
    if name not in hooks:
        raise no_such("hook", name, hooks)
    return hooks[name]


@routes.put(
    "/hooks/{name}",
    response_model=answers.HookOut,
    responses=errors(415),
    summary="Make or change a hook",
    description="Without `secret` the one that is there stays; `null` takes it away.",
    dependencies=[ADMIN],
)
async def put_hook(request: Request, name: Name, asked: models.PutHook) -> Response:
    backend = backend_of(request)

    def kept() -> Hook:
        _check_filed(backend, asked.path, asked.version, asked.payload, asked.context)
        secret = asked.secret
        if "secret" not in asked.model_fields_set:
            there = next((one for one in backend.control.hooks() if one.name == name), None)
            secret = HIDDEN if there is not None and there.secret is not None else None
        return keep_hook(
            backend.control, Hook(name, asked.path, asked.version, secret, asked.payload, asked.is_on, asked.context)
        )

    try:
        return answer(hook_json(await compiling(kept)))
    except Refused as error:
        raise from_refusal(error, 422) from error


@routes.delete(
    "/hooks/{name}",
    status_code=204,
    response_class=Response,
    responses=errors(404),
    summary="Delete a hook",
    dependencies=[ADMIN],
)
async def drop_hook(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.drop_hook(name)):
        raise await apart(lambda: no_such("hook", name, (one.name for one in backend.control.hooks())))
    return Response(status_code=204)


@doors.post(
    "/hooks/{name}",
    status_code=202,
    response_model=answers.HookedOut,
    responses=errors(404, 409, 415),
    summary="Start a run from outside",
    description="Signed with the hook's secret (`X-Penstock-Signature` or `X-Hub-Signature-256`); a hook without one needs a "
    "token with the scope `run`. The body and some headers are the run's `workload.event`.",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {}}}, "required": False}},
)
async def hooked(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.control.hook(name))
    if found is None:
        raise no_such("hook", name)
    if found.secret is None:
        given = request.headers.get("authorization", "")
        await admit(request, given[7:].strip() if given[:7].lower() == "bearer " else None, Scope.RUN)
    headers = dict(request.headers)
    try:
        length = headers.get("content-length", "")
        check_size(int(length) if length.isdigit() else 0)
        body = await request.body()
        now = backend.clock.now()
        verify(found, headers, body, now)
        key, payload = key_of(found, headers, body, now, backend.recent), payload_of(found, headers, body)
    except Refused as error:
        raise _refused(error) from error
    run = await _started(backend, found, payload, key)
    return answer({"execution_id": run}, 202, Location=f"/api/executions/{run}")


async def _started(backend: Backend, hook: Hook, payload: JsonMap, key: str | None) -> str:
    try:
        return await submit_filed(backend, hook.path, hook.version, payload, hook.context, key, f"hook:{hook.name}")
    except Refused as error:  # The sender can do nothing about it; whoever made the hook can.
        raise ApiError(409, f"hook `{hook.name}` cannot start a run: {error.message}", error.hint) from error


def _refused(error: Refused) -> ApiError:
    statuses: dict[type[Refused], int] = {SwitchedOff: 409, NotSigned: 401, TooLarge: 413, NotReadable: 415}
    return ApiError(statuses.get(type(error), 422), error.message, error.hint)


def no_such(what: str, name: str, known: Iterable[str] = ()) -> ApiError:
    """`known` only for those who may list them."""
    meant = closest(name, sorted(known))
    return ApiError(
        404,
        f"there is no {what} `{name}`" + (f"; did you mean `{meant}`?" if meant else ""),
        f"`penstock {what} list`, or `GET /api/{what}s`, lists them",
    )


def no_schedule(backend: Backend, name: str) -> ApiError:
    return no_such("schedule", name, (one.name for one in backend.control.schedules()))
