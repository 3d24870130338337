"""The application: every route, behind the guard, in one place."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api import catalog, errors, executions, operations, pages, triggers, workbench
from penstock.api.backend import Backend, Readiness
from penstock.api.compression import Compressed
from penstock.api.errors import ApiError, of_any
from penstock.api.hosts import Host, is_own_origin, other_site
from penstock.api.page_files import PageFiles, PageRoute
from penstock.api.routing import document_scopes
from penstock.api.sessions import WrongTokens
from penstock.api.streams import Seen, Tail
from penstock.server.project_files import ProjectDocuments
from penstock.server.reference import Reference

# ---- The guard sees a request first: what is too large, too slow or comes from another site is rejected. It is plain ASGI,
# because it must see every byte in both directions; and it sees errors last.

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
NO_STORE = "no-store"
HSTS = "max-age=31536000"


class Guard:
    def __init__(self, app: ASGIApp, backend: Backend) -> None:
        self._app = app
        self._backend = backend

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                self._dress(message)
            await send(message)

        try:
            headers = Headers(scope=scope)
            _check_host(scope, headers)
            _check_site(scope, headers, is_tls=self._backend.is_tls)
            await self._app(scope, self._measured(headers, receive), sending)
        except ApiError as error:
            if has_begun:
                raise
            await error.response()(scope, receive, sending)
        except Exception as error:  # The boundary of the process: one failing request must not affect others.
            if has_begun:  # The connection is closed, so that half of an answer is not taken for the whole.
                raise
            await of_any(error).response()(scope, receive, sending)

    def _dress(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("cache-control", NO_STORE)
        if self._backend.is_tls:
            headers.setdefault("strict-transport-security", HSTS)

    def _measured(self, headers: Headers, receive: Receive) -> Receive:
        limits = self._backend.limits
        length = headers.get("content-length")
        if length is not None and (not length.isdigit() or int(length) > limits.body_bytes):
            raise _too_large(limits.body_bytes)
        seen, is_whole = 0, False
        loop = asyncio.get_running_loop()
        latest = loop.time() + limits.body_s

        async def receiving() -> Message:
            nonlocal seen, is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(min(latest, loop.time() + limits.body_idle_s)):
                    message = await receive()
            except TimeoutError:
                waited = limits.body_idle_s if loop.time() < latest else limits.body_s
                raise ApiError(400, f"the rest of the request did not come within {waited:g} s") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                is_whole = not message.get("more_body", False)
                if seen > limits.body_bytes:
                    raise _too_large(limits.body_bytes)
            return message

        return receiving


def _check_host(scope: Scope, headers: Headers) -> None:
    """Exactly one `Host` header, or none in HTTP/1.0."""
    given = headers.getlist("host")
    if (not given and scope.get("http_version") == "1.0") or (len(given) == 1 and Host.read(given[0]) is not None):
        return
    raise ApiError(
        400, "the request does not name one host", "send one `Host` header: NAME, NAME:PORT or [ADDRESS]:PORT"
    )


def _check_site(scope: Scope, headers: Headers, *, is_tls: bool) -> None:
    """A browser names the origin of the page that sends a request; it must be this server."""
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return
    is_elsewhere = headers.get("sec-fetch-site", "") not in ("", "same-origin", "none")
    if is_elsewhere or not is_own_origin(headers, is_tls=is_tls):
        raise other_site()


def _too_large(most: int) -> ApiError:
    return ApiError(
        413, f"the request has more than {most:,} bytes", "let a task read the data instead, or raise `--max-body`"
    )


TAGS = [
    {"name": "executions", "description": "Runs: start, list, show, cancel, resume."},
    {"name": "history", "description": "What the log says about a run."},
    {"name": "documents", "description": "The catalog, and what can be asked about a document before it runs."},
    {"name": "triggers", "description": "Schedules and hooks, which start runs."},
    {"name": "state", "description": "What documents keep between runs."},
    {"name": "fleet", "description": "Servers, workers, pools and leases."},
    {"name": "admin", "description": "Tokens and housekeeping."},
    {"name": "pages", "description": "What the web page shows of runs and documents."},
    {"name": "workbench", "description": "Signing in, files of a project, the reference."},
    {"name": "server", "description": "Health, figures and version of this server."},
]
ABOUT = """One event-sourced engine that runs playbooks and jobs, with a log that can always say why.

Every error has one shape: `{"error": {"code", "message", "hint", "problems"}}`. Tokens are sent as `Authorization: Bearer …`;
their scopes are `read`, `run` and `admin`, each of which includes those before it."""


def described(version: str) -> FastAPI:
    """An application with every route and no backend, for describing the API."""
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
    for router in (
        executions.routes,
        executions.history_routes,
        catalog.routes,
        triggers.routes,
        catalog.state_routes,
        operations.fleet_routes,
        operations.token_routes,
        operations.server_routes,
        executions.result_routes,
        executions.streams,
        pages.routes,
        pages.document_routes,
        workbench.routes,
        triggers.hook_routes,
    ):
        # As they are: `include_router` would build all of its routes once more.
        app.router.routes += router.routes
    document_scopes(app)
    return app


def build(backend: Backend) -> FastAPI:
    """The application without the guard."""
    app = described(backend.version)
    app.state.backend = backend
    app.state.readiness = Readiness(backend.checks)
    app.state.tail = Tail(backend.log, backend.limits.streams, lambda header: Seen(*backend.seen(header)))
    app.state.wrong_tokens = WrongTokens()
    root = None if backend.local is None else backend.local.root
    app.state.project = None if root is None else ProjectDocuments(root)
    app.state.reference = Reference(root)
    backend.watched.listeners.append(app.state.tail.moved)
    app.router.routes.append(PageRoute(PageFiles()))
    return app


def guarded(app: FastAPI) -> ASGIApp:
    return Guard(Compressed(app), app.state.backend)
