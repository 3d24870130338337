"""The slots of a schedule: what became of them, and runs for those of the past."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.access import READ, RUN
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.errors import from_refusal
from penstock.api.routing import answer, errors, router
from penstock.api.triggers import Name, no_schedule
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.control import Schedule, Slot, SlotState
from penstock.server.backfill import Backfill, Planned, Which, at_once_for, plan, queue, status_of
from penstock.server.slots import LAST_MOMENT, iso, moment

routes = router("triggers", "/api")


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
    return {
        "slot": iso(slot.at),
        "state": slot.state.value,
        "status": _status(backend, slot),
        "run": slot.run,
        "note": slot.note,
        "attempt": slot.attempt,
        "backfill": slot.backfill,
        "is_late": slot.is_late,
    }


@routes.get(
    "/schedules/{name}/slots",
    response_model=answers.SlotList,
    responses=errors(404),
    summary="What became of the slots of a schedule",
    description="The newest `limit` of the period, the oldest first. Slots that passed before the schedule was made are unknown.",
    dependencies=[READ],
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

    try:
        return answer({"slots": await at_length(read)})
    except Refused as error:
        raise from_refusal(error, 422) from error


@routes.post(
    "/schedules/{name}/backfill",
    response_model=answers.BackfillOut,
    responses=errors(404, 415),
    summary="Run slots of the past",
    description="Queues them; a server runs them in order, as the schedule's rule for overlapping runs says.",
    dependencies=[RUN],
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
            "since": iso(since),
            "until": iso(until),
            "dry_run": asked.dry_run,
            "queued": sum(one.why is None for one in planned),
            "slots": [_planned_json(one) for one in planned],
        }

    try:
        done = await at_length(begun)
    except Refused as error:
        raise from_refusal(error, 422) from error
    backend.wake_scheduler()
    return answer(done)


def _planned_json(one: Planned) -> JsonMap:
    run = None if one.slot is None else one.slot.run
    return {"slot": iso(one.at), "status": one.status, "run": run, "is_queued": one.why is None, "why": one.why}


@routes.delete(
    "/schedules/{name}/backfill",
    response_model=answers.StoppedOut,
    responses=errors(404),
    summary="Let slots of backfills wait no more",
    dependencies=[RUN],
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
