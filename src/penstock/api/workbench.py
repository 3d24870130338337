"""What the web page needs beside runs: who is signed in, the files of a project, the reference, times of schedules, the fleet."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from math import ceil
from typing import Annotated, Literal

from fastapi import Path, Query, Request
from pydantic import Field, StringConstraints
from starlette.responses import Response

from penstock.api import page_answers
from penstock.api.backend import Backend, apart, at_length, backend_of
from penstock.api.errors import ApiError, refusals
from penstock.api.models import In, Short, Slug
from penstock.api.routing import ADMIN, READ, RUN, Given, Routes, answer, check_origin, identified
from penstock.api.sessions import WrongTokens, clear_cookie, session_for, set_cookie, token_of
from penstock.api.triggers import no_schedule, submit_filed
from penstock.kernel.values import JsonMap
from penstock.ports.control import Loss, Schedule, Scope, Token
from penstock.ports.dispatch import LeaseSeen, name_of
from penstock.ports.log import Header
from penstock.server.cron import timetable, upcoming
from penstock.server.project_files import FileChanged, NoSuchFile, ProjectDocuments, ProjectText
from penstock.server.reference import Reference
from penstock.server.schedules import payload_of

routes = Routes("workbench", "/api")

LOOKED_AT = 100
"""Of so many runs with losses it is looked up who has their leases now."""
MOST_LEASES = 1000
BY_HAND = "by hand"
"""What the label of a run says that a person made a schedule start."""

FilePath = Annotated[str, Path(max_length=4000, description="from the folder of the project")]


class SignIn(In):
    token: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class SaveFile(In):
    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000_000)]
    digest: str | None = Field(None, description="of the text that was changed; null for a new file")


class TimesIn(In):
    cron: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    zone: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "UTC"
    count: Annotated[int, Field(ge=1, le=100)] = 10


# ---- Who is signed in. These routes check by themselves: signing in is what gives the right to ask for anything else.


@routes.operation("GET /session", None, "Who is signed in", page_answers.SessionOut)
async def session(request: Request, given: Given) -> Response:
    token = await identified(request, None if given is None else given.credentials)
    return answer(_session_json(backend_of(request), token))


@routes.operation(
    "POST /session",
    None,
    "Sign in with a token",
    page_answers.SessionOut,
    415,
    429,
    description="Sets a cookie that stands for the token, until that is revoked or expires, or the browser is closed.",
)
async def sign_in(request: Request, asked: SignIn) -> Response:
    backend, wrong = backend_of(request), request.app.state.wrong_tokens
    assert isinstance(wrong, WrongTokens)
    check_origin(request)
    address = "" if request.client is None else request.client.host
    wait_s = wrong.wait_s(address)
    if wait_s > 0:
        raise ApiError(
            429, "there were too many wrong tokens", "try again in a minute", headers={"Retry-After": str(ceil(wait_s))}
        )
    token = await apart(lambda: token_of(backend.control, backend.local, asked.token))
    if token is None:
        wrong.add(address)
        raise ApiError(401, "the token is not known here, or has expired", "is it one of this server?")
    value = await apart(lambda: session_for(backend.control, backend.local, asked.token))
    response = answer(_session_json(backend, token))
    if value is not None:
        set_cookie(request, response, value, is_tls=backend.is_tls)
    return response


@routes.operation("DELETE /session", None, "Sign out", None)
async def sign_out(request: Request) -> Response:
    response = Response(status_code=204)
    clear_cookie(request, response, is_tls=backend_of(request).is_tls)
    return response


def _session_json(backend: Backend, token: Token | None) -> JsonMap:
    local = backend.local
    return {
        "name": "" if token is None else token.name,
        "scope": (Scope.ADMIN if token is None else token.scope).value,
        "is_open": token is None,
        "is_local": local is not None,
        "root": None if local is None else str(local.root),
        "server": backend.name,
        "version": backend.version,
    }


# ---- the files of the project, on a server that is its owner's alone


def _project(request: Request) -> ProjectDocuments:
    found = request.app.state.project
    if found is None:
        raise ApiError(
            404,
            "this server shows no files: it is not the page of a folder",
            "`penstock ui` in the folder of the project shows them; the catalog has what the server keeps",
            code="no_project",
        )
    assert isinstance(found, ProjectDocuments)
    return found


@routes.operation("GET /files", READ, "The documents in the folder of the project", page_answers.FileList, 404)
async def files(request: Request) -> Response:
    project = _project(request)
    found = await at_length(project.listed)
    return answer({"root": str(project.root), "files": [asdict(one) for one in found]})


@routes.operation("GET /files/{path:path}", READ, "A document of the project", page_answers.FileTextOut, 404)
async def file(request: Request, path: FilePath) -> Response:
    project = _project(request)
    with refusals(404):
        found = await apart(lambda: project.read(path))
    return answer(_text_json(found))


@routes.operation(
    "PUT /files/{path:path}",
    ADMIN,
    "Save a document of the project",
    page_answers.FileTextOut,
    404,
    409,
    415,
    description="Refused when the file has changed since it was read (`digest`).",
)
async def save(request: Request, path: FilePath, asked: SaveFile) -> Response:
    project = _project(request)
    try:
        found = await apart(lambda: project.save(path, asked.text, asked.digest))
    except FileChanged as error:
        raise ApiError(409, error.message, error.hint, code="file_changed") from error
    except NoSuchFile as error:
        raise ApiError(404, error.message, error.hint) from error
    return answer(_text_json(found))


def _text_json(found: ProjectText) -> JsonMap:
    return {**asdict(found.about), "text": found.text, "digest": found.digest}


# ---- the reference


def _reference(request: Request) -> Reference:
    found = request.app.state.reference
    assert isinstance(found, Reference)
    return found


@routes.operation("GET /schema/{kind}", READ, "The JSON Schema of a kind of document", None, 404)
async def schema(request: Request, kind: Literal["playbook", "job", "joblet"]) -> Response:
    reference = _reference(request)
    return answer(await at_length(lambda: reference.schema(kind)))


@routes.operation("GET /reference", READ, "Tools and components", page_answers.ReferenceList)
async def reference(request: Request) -> Response:
    found = _reference(request)
    return answer({"entries": await at_length(found.entries)})


@routes.operation("GET /reference/{kind}/{name}", READ, "A tool or a component", page_answers.ReferencePageOut, 404)
async def reference_page(request: Request, kind: Literal["tool", "component"], name: Short) -> Response:
    reference = _reference(request)
    with refusals(404):
        found = await at_length(lambda: reference.tool(name) if kind == "tool" else reference.component(name))
    if found is None:
        raise ApiError(404, f"there is no {kind} `{name}`", "`GET /api/reference` lists them")
    return answer(found)


# ---- schedules


@routes.operation("POST /times", READ, "The next times of a cron expression", page_answers.TimesOut, 415)
async def times(request: Request, asked: TimesIn) -> Response:
    now = backend_of(request).clock.now()
    schedule = Schedule("preview", asked.cron, "preview", asked.zone)

    def found() -> list[str]:
        zone = timetable(schedule).zone
        return [datetime.fromtimestamp(slot, zone).isoformat() for slot in upcoming(schedule, now, asked.count)]

    with refusals(422):
        return answer({"times": await apart(found)})


@routes.operation(
    "POST /schedules/{name}/fire",
    RUN,
    "Run what a schedule runs, now",
    page_answers.FiredOut,
    404,
    409,
    status_code=201,
    description="Also while it is paused. The run is none of its slots: it neither counts as one nor waits for one.",
)
async def fire(request: Request, name: Annotated[Slug, Path()]) -> Response:
    backend = backend_of(request)
    schedule = await apart(lambda: backend.control.schedule(name))
    if schedule is None:
        raise await apart(lambda: no_schedule(backend, name))
    payload = payload_of(schedule, backend.clock.now())
    with refusals(409):
        execution_id = await submit_filed(
            backend, schedule.path, schedule.version, payload, schedule.context, None, f"{schedule.name} {BY_HAND}"
        )
    return answer({"execution_id": execution_id}, 201, Location=f"/api/executions/{execution_id}")


# ---- the fleet


@routes.operation(
    "POST /workers/{worker}/drain",
    ADMIN,
    "Let a worker finish what it has, take nothing more, and stop",
    page_answers.DrainedOut,
    404,
    409,
)
async def drain(request: Request, worker: Annotated[str, Path(max_length=500)]) -> Response:
    backend = backend_of(request)
    seen = next((one for one in await backend.dispatch.workers() if one.card.id == worker), None)
    if seen is None:
        raise ApiError(404, f"there is no worker `{worker}`", "`GET /api/workers` lists them")
    if not seen.is_alive:
        raise ApiError(409, f"worker `{worker}` is gone", "what it held has been, or will be, given to others")
    if backend.is_folder:
        raise ApiError(409, f"`{worker}` is the worker inside this server", "it stops with the server; drain that")
    if not await backend.dispatch.drain(worker):
        raise ApiError(404, f"there is no worker `{worker}`", "it has just left")
    return answer({"worker": worker, "is_draining": True})


@routes.operation(
    "GET /losses",
    READ,
    "Workers that were lost, and what became of their leases",
    page_answers.LossList,
    description="The newest first. A server keeps the newest 1,000, for all that share its database.",
)
async def losses(request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.control.losses(limit))
    runs = dict.fromkeys(one.execution_id for one in found if not one.is_done)
    headers = await apart(lambda: {run: backend.log.header(run) for run in runs})
    going = [run for run, header in headers.items() if header is not None and header.status == "running"]
    leases = {
        lease.key: lease for run in going[:LOOKED_AT] for lease in await backend.dispatch.leases(run, MOST_LEASES)
    }
    return answer({"losses": [_loss_json(one, leases.get(one.key), headers.get(one.execution_id)) for one in found]})


def _loss_json(loss: Loss, lease: LeaseSeen | None, header: Header | None) -> JsonMap:
    taken_by = loss.taken_by
    if lease is not None and lease.worker is not None and lease.attempt > loss.attempt:
        taken_by = lease.worker
    if loss.is_done:
        outcome = f"ended by `{name_of(taken_by or '')}`"
    elif lease is not None and lease.worker is None:
        outcome = "waiting for a worker"
    elif taken_by is not None:
        outcome = f"taken by `{name_of(taken_by)}`"
    elif header is None or header.status != "running":
        outcome = "ended with its run" if header is None else f"ended with its run, which is {header.status}"
    else:
        outcome = "given back to the run"
    return {
        "execution_id": loss.execution_id,
        "scope": loss.scope,
        "at": loss.at,
        "worker": loss.worker,
        "outcome": outcome,
        "taken_by": taken_by,
    }
