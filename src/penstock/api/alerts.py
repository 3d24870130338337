"""Alerts: rules that tell people what went wrong, and what they have told."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, apart, backend_of
from penstock.api.errors import ApiError, refusals
from penstock.api.routing import ADMIN, READ, Routes, answer
from penstock.api.triggers import Name, no_schedule, no_such
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import JsonMap
from penstock.ports.control import Alert, Delivery
from penstock.ports.folders import CATALOG
from penstock.ports.kept_state import document_key
from penstock.ports.wire import iso
from penstock.server.alerts import keep_alert

routes = Routes("triggers", "/api")


def alert_json(alert: Alert, told: list[Delivery]) -> JsonMap:
    states = Counter(one.state for one in told)
    return answers.AlertOut.of(
        alert,
        created_at=iso(alert.created_at),
        delivered=states["delivered"],
        pending=states["pending"],
        failed=states["failed"],
        last_error=next((one.error for one in told if one.error is not None), None),
    )


def _alert(backend: Backend, name: str) -> Alert:
    alerts = {one.name: one for one in backend.control.alerts()}
    if name not in alerts:
        raise no_such("alert", name, alerts)
    return alerts[name]


def _require_known(backend: Backend, alert: Alert) -> None:
    """An alert about something that is not there would never tell anything, and nobody would know."""
    if alert.schedule is not None and backend.control.schedule(alert.schedule) is None:
        missing = no_schedule(backend, alert.schedule)
        raise ApiError(422, missing.message, missing.hint)
    if alert.document is None or alert.document.startswith("/"):
        return  # The file of a document that is sent with each run: only its sender has it.
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
    said = asked.model_dump()
    wanted = Alert(name, tuple(said.pop("on")), **said, created_at=backend.clock.now())
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
