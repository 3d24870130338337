"""The application: every route, behind the guard, in one place."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.types import ASGIApp

from penstock.api import (
    alerts,
    backfills,
    catalog,
    errors,
    executions,
    fleet,
    health,
    histories,
    kept_state,
    results,
    tokens,
    triggers,
)
from penstock.api.backend import Backend
from penstock.api.guard import Guard
from penstock.api.readiness import Readiness
from penstock.api.scopes import say_scopes
from penstock.api.tail import Tail

TAGS = [
    {"name": "executions", "description": "Runs: start, list, show, cancel, resume."},
    {"name": "history", "description": "What the log says about a run."},
    {"name": "documents", "description": "The catalog, and what can be asked about a document before it runs."},
    {"name": "triggers", "description": "Schedules and hooks, which start runs."},
    {"name": "state", "description": "What documents keep between runs."},
    {"name": "fleet", "description": "Servers, workers, pools and leases."},
    {"name": "admin", "description": "Tokens and housekeeping."},
    {"name": "server", "description": "Health, figures and version of this server."},
]
ABOUT = """One event-sourced engine that runs playbooks and jobs, with a log that can always say why.

Every error has one shape: `{"error": {"code", "message", "hint", "problems"}}`. Tokens are sent as `Authorization: Bearer …`;
their scopes are `read`, `run` and `admin`, each of which includes those before it."""


def described(version: str) -> FastAPI:
    """Every route, and nothing behind them: for those who only look."""
    app = FastAPI(
        title="Penstock",
        version=version,
        description=ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        openapi_tags=TAGS,
        redirect_slashes=False,
    )
    errors.install(app)
    for module in (
        executions,
        histories,
        catalog,
        triggers,
        backfills,
        alerts,
        kept_state,
        fleet,
        tokens,
        health,
        results,
    ):
        app.router.routes += (
            module.routes.routes
        )  # As they are: to include a router builds all of its routes once more.
    app.router.routes += [*histories.streams.routes, *triggers.doors.routes]
    say_scopes(app)
    return app


def build(backend: Backend) -> FastAPI:
    """Without the guard."""
    app = described(backend.version)
    app.state.backend = backend
    app.state.readiness = Readiness(backend.checks)
    app.state.tail = Tail(backend.log, backend.limits.streams)
    backend.watched.listeners.append(app.state.tail.moved)
    return app


def guarded(app: FastAPI) -> ASGIApp:
    return Guard(app, app.state.backend)
