"""Schedules and hooks, which start runs by the clock and on a request from outside, and alerts about what went wrong."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.catalog import compiled
from penstock.api.errors import ApiError, refusals
from penstock.api.routing import ADMIN, READ, RUN, Routes, admit, answer
from penstock.dialects.problems import closest
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.values import JsonMap
from penstock.ports.control import (
    HIDDEN,
    PENDING,
    Alert,
    Delivery,
    Hook,
    Missed,
    Overlap,
    Schedule,
    Scope,
    Slot,
    SlotState,
)
from penstock.ports.folders import CATALOG
from penstock.ports.kept_state import document_key
from penstock.ports.wire import iso
from penstock.server.alerts import keep_alert
from penstock.server.backfill import Backfill, Planned, Which, at_once_for, plan, queue, status_of
from penstock.server.catalog import compiling
from penstock.server.child_execution import context_group
from penstock.server.cron import LAST_MOMENT, moment
from penstock.server.cron import iso as slot_iso
from penstock.server.documents import Pinned
from penstock.server.execution_owner import Submission
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
from penstock.server.inputs import require_known
from penstock.server.schedules import keep_schedule, next_slot

routes = Routes("triggers", "/api")
hook_routes = Routes("triggers")

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
    """Starts a run of a document of the catalog; a repeated key gives the same run."""

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
    with refusals(422):
        require_known(net, payload)
        context_group(net, context)


# ---- schedules


def schedule_json(schedule: Schedule, now: float, known: Sequence[Slot]) -> JsonMap:
    try:
        coming = next_slot(schedule, now)
    except Refused:
        coming = None
    return answers.ScheduleOut.of(
        schedule,
        missed=schedule.missed.value,
        overlap=schedule.overlap.value,
        next_at=_time(coming),
        fired_to=_time(schedule.fired_to or None),
        last_slot=_time(schedule.last_slot),
        running=[one.run for one in known if one.state is SlotState.STARTED],
        waiting=sum(one.state in PENDING for one in known),
        late=[slot_iso(one.at) for one in known if one.is_late],
    )


def _open_slots(backend: Backend, name: str) -> list[Slot]:
    return [one for one in backend.control.open_slots() if one.schedule == name]


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)


@routes.operation("GET /schedules", READ, "List the schedules", answers.ScheduleList)
async def schedules(request: Request) -> Response:
    backend = backend_of(request)

    def read() -> tuple[list[Schedule], list[Slot]]:
        return backend.control.schedules(), backend.control.open_slots()

    found, known = await apart(read)
    of_each: dict[str, list[Slot]] = {one.name: [] for one in found}
    for slot in known:
        of_each.get(slot.schedule, []).append(slot)
    return answer({"schedules": [schedule_json(one, backend.clock.now(), of_each[one.name]) for one in found]})


@routes.operation("GET /schedules/{name}", READ, "A schedule", answers.ScheduleOut, 404)
async def schedule(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.control.schedule(name))
    if found is None:
        raise await apart(lambda: no_schedule(backend, name))
    return answer(schedule_json(found, backend.clock.now(), await apart(lambda: _open_slots(backend, name))))


@routes.operation("PUT /schedules/{name}", ADMIN, "Make or change a schedule", answers.ScheduleOut, 415)
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
    with refusals(422):
        kept = await apart(lambda: keep_schedule(backend.control, wanted, now))
    backend.wake_scheduler()
    return answer(schedule_json(kept, now, await apart(lambda: _open_slots(backend, name))))


@routes.operation("DELETE /schedules/{name}", ADMIN, "Delete a schedule", None, 404)
async def drop_schedule(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.drop_schedule(name)):
        raise await apart(lambda: no_schedule(backend, name))
    backend.wake_scheduler()
    return Response(status_code=204)


# ---- hooks


def hook_json(hook: Hook) -> JsonMap:
    return answers.HookOut.of(hook, is_signed=hook.secret is not None)


@routes.operation("GET /hooks", READ, "List the hooks", answers.HookList)
async def hooks(request: Request) -> Response:
    backend = backend_of(request)
    return answer({"hooks": [hook_json(one) for one in await apart(backend.control.hooks)]})


@routes.operation("GET /hooks/{name}", READ, "A hook", answers.HookOut, 404)
async def hook(request: Request, name: Name) -> Response:
    return answer(hook_json(await apart(lambda: _hook(backend_of(request), name))))


def _hook(backend: Backend, name: str) -> Hook:
    """Without its secret, so that it can be shown without the key that decrypts it."""
    hooks = {one.name: one for one in backend.control.hooks()}
    if name not in hooks:
        raise no_such("hook", name, hooks)
    return hooks[name]


@routes.operation(
    "PUT /hooks/{name}",
    ADMIN,
    "Make or change a hook",
    answers.HookOut,
    415,
    description="Without `secret` the one that is there stays; `null` takes it away.",
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

    with refusals(422):
        return answer(hook_json(await compiling(kept)))


@routes.operation("DELETE /hooks/{name}", ADMIN, "Delete a hook", None, 404)
async def drop_hook(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.drop_hook(name)):
        raise await apart(lambda: no_such("hook", name, (one.name for one in backend.control.hooks())))
    return Response(status_code=204)


@hook_routes.operation(
    "POST /hooks/{name}",
    None,
    "Start a run from outside",
    answers.HookedOut,
    404,
    409,
    415,
    status_code=202,
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
    except Refused as error:  # Only the owner of the hook can correct this, not the sender.
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


# ---- The slots of a schedule: what became of them, and runs for those of the past.


def _schedule(backend: Backend, name: str) -> Schedule:
    found = backend.control.schedule(name)
    if found is None:
        raise no_schedule(backend, name)
    return found


def _status(backend: Backend, slot: Slot) -> str:
    def of_run(run: str) -> str | None:
        header = backend.log.header(run)
        return None if header is None else header.status

    return status_of(slot, of_run) or ""


def slot_json(backend: Backend, slot: Slot) -> JsonMap:
    return answers.SlotOut.of(slot, slot=slot_iso(slot.at), state=slot.state.value, status=_status(backend, slot))


@routes.operation(
    "GET /schedules/{name}/slots",
    READ,
    "What became of the slots of a schedule",
    answers.SlotList,
    404,
    description="The newest `limit` of the period, the oldest first. Slots that passed before the schedule was made are unknown.",
)
async def slots(
    request: Request,
    name: Name,
    since: Annotated[models.Moment | None, Query(description="a date or a time, included")] = None,
    until: Annotated[models.Moment | None, Query(description="a date or a time, included")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    backend = backend_of(request)

    def read() -> list[JsonMap]:
        schedule = _schedule(backend, name)
        start = 0.0 if since is None else moment(since, schedule.zone)
        end = LAST_MOMENT if until is None else moment(until, schedule.zone, is_end=True)
        return [slot_json(backend, one) for one in backend.control.slots(name, start, end, limit)]

    with refusals(422):
        return answer({"slots": await at_length(read)})


@routes.operation(
    "POST /schedules/{name}/backfill",
    RUN,
    "Run slots of the past",
    answers.BackfillOut,
    404,
    415,
    description="Queues them; a server runs them in order, as the schedule's rule for overlapping runs says.",
)
async def backfill(request: Request, name: Name, asked: models.BackfillIn) -> Response:
    backend = backend_of(request)

    def begun() -> JsonMap:
        schedule = _schedule(backend, name)
        since, until = moment(asked.since, schedule.zone), moment(asked.until, schedule.zone, is_end=True)
        at_once = at_once_for(schedule, asked.at_once)
        wanted = Backfill(name, since, until, Which(asked.which), at_once, asked.name)
        planned = plan(backend.control, backend.log, wanted, backend.clock.now())
        if not asked.dry_run:
            planned = queue(backend.control, planned, wanted)
        return {
            "schedule": name,
            "backfill": wanted.id,
            "since": slot_iso(since),
            "until": slot_iso(until),
            "dry_run": asked.dry_run,
            "queued": sum(one.why is None for one in planned),
            "slots": [_planned_json(one) for one in planned],
        }

    with refusals(422):
        done = await at_length(begun)
    backend.wake_scheduler()
    return answer(done)


def _planned_json(one: Planned) -> JsonMap:
    run = None if one.slot is None else one.slot.run
    return answers.PlannedOut.of(one, slot=slot_iso(one.at), run=run, is_queued=one.why is None)


@routes.operation(
    "DELETE /schedules/{name}/backfill", RUN, "Let slots of backfills wait no more", answers.StoppedOut, 404
)
async def stop(request: Request, name: Name) -> Response:
    backend = backend_of(request)

    def stopped() -> int:
        _schedule(backend, name)
        waiting = [
            one
            for one in backend.control.open_slots()
            if one.schedule == name and one.backfill is not None and one.state is SlotState.QUEUED
        ]
        given_up = [
            replace(one, state=SlotState.SKIPPED, note="skipped: the backfill was stopped", backfill=None)
            for one in waiting
        ]
        return sum(backend.control.change_slot(one) for one in given_up)

    return answer({"schedule": name, "stopped": await apart(stopped)})


# ---- Alerts: rules that notify people of what went wrong, and the notifications sent.


def alert_json(alert: Alert, deliveries: list[Delivery]) -> JsonMap:
    states = Counter(one.state for one in deliveries)
    return answers.AlertOut.of(
        alert,
        created_at=iso(alert.created_at),
        delivered=states["delivered"],
        pending=states["pending"],
        failed=states["failed"],
        last_error=next((one.error for one in deliveries if one.error is not None), None),
    )


def _alert(backend: Backend, name: str) -> Alert:
    alerts = {one.name: one for one in backend.control.alerts()}
    if name not in alerts:
        raise no_such("alert", name, alerts)
    return alerts[name]


def _require_known(backend: Backend, alert: Alert) -> None:
    """An alert on something that does not exist would silently never fire."""
    if alert.schedule is not None and backend.control.schedule(alert.schedule) is None:
        missing = no_schedule(backend, alert.schedule)
        raise ApiError(422, missing.message, missing.hint)
    if alert.document is None or alert.document.startswith("/"):
        return  # A document that is sent with each run: only its sender has the file.
    path = document_key(alert.document).removeprefix(CATALOG).strip("/")
    if backend.documents.kept(path) is None:
        unknown = backend.documents.not_filed(path)
        raise ApiError(
            422, unknown.message, f"{unknown.hint}; a file that is run from elsewhere goes by its whole path"
        )


def _kept(backend: Backend, alert: Alert) -> Alert:
    _require_known(backend, alert)
    return keep_alert(backend.control, alert)


@routes.operation("GET /alerts", READ, "List the alerts", answers.AlertList)
async def alerts(request: Request) -> Response:
    backend = backend_of(request)

    def read() -> list[JsonMap]:
        control = backend.control
        return [alert_json(one, control.deliveries(one.name)) for one in control.alerts()]

    return answer({"alerts": await apart(read)})


@routes.operation(
    "GET /alerts/{name}/deliveries",
    READ,
    "What an alert has told, and what it has still to tell",
    answers.DeliveryList,
    404,
)
async def deliveries(request: Request, name: Name, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    backend = backend_of(request)

    def read() -> list[JsonMap]:
        _alert(backend, name)
        found = backend.control.deliveries(name, limit=limit)
        return [answers.DeliveryOut.of(one, at=iso(one.at)) for one in found]

    return answer({"deliveries": await apart(read)})


@routes.operation(
    "PUT /alerts/{name}",
    ADMIN,
    "Make or change an alert",
    answers.AlertOut,
    415,
    description="It tells of what happens from now on. Secrets are named, and kept in the keychain of the servers.",
)
async def put_alert(request: Request, name: Name, asked: models.PutAlert) -> Response:
    backend = backend_of(request)
    fields = asked.model_dump()
    wanted = Alert(name, tuple(fields.pop("on")), **fields, created_at=backend.clock.now())
    with refusals(422):
        kept = await apart(lambda: _kept(backend, wanted))
    return answer(alert_json(kept, await apart(lambda: backend.control.deliveries(name))))


@routes.operation("DELETE /alerts/{name}", ADMIN, "Delete an alert", None, 404)
async def drop_alert(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.drop_alert(name)):
        raise await apart(lambda: no_such("alert", name, (one.name for one in backend.control.alerts())))
    return Response(status_code=204)


@routes.operation("POST /alerts/{name}/test", ADMIN, "Send a test of an alert, now", answers.AlertTested, 404, 409)
async def test_alert(request: Request, name: Name) -> Response:
    backend = backend_of(request)
    alert = await apart(lambda: _alert(backend, name))
    if backend.send_alert is None:
        raise ApiError(409, "there is no server here that could send it", "ask a running server with `--server URL`")
    event: JsonMap = {"alert": name, "on": "test", "text": f"a test of the alert `{name}`"}
    try:
        await backend.send_alert(alert, event, f"alert:{name}:test:{uuid.uuid4().hex}")
    except PenstockError as error:
        raise ApiError(409, f"the alert could not be sent: {error.message}", error.hint) from error
    return answer({"name": name, "status": "delivered"})
