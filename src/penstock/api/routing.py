"""What all routes have in common: strict parsing of JSON, documented errors, answers that are encoded once."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from penstock.api.answers import ErrorOut
from penstock.api.backend import ORDER, Backend, apart, backend_of
from penstock.api.errors import CODES, ApiError
from penstock.api.hosts import Host, is_known, is_own_origin, other_site
from penstock.api.sessions import cookie_of, token_of, token_of_session
from penstock.ports.control import Scope, Token
from penstock.ports.json_text import json_mistake
from penstock.ports.results import decode, encode

_SAID = {
    400: "the request cannot be read",
    401: "no token, or one that is not known",
    403: "the token may not do this, or the request comes from another site",
    404: "there is no such thing",
    409: "not now, or not twice",
    413: "the request is too large",
    415: "the body is not called JSON",
    422: "it can be read, and is wrong",
    429: "too many streams",
    503: "a store cannot do its work; try again",
}
ALWAYS = (400, 401, 403, 413, 422, 503)


class StrictRequest(Request):
    """Reads a body with the engine's own JSON decoder: no NaN and no broken characters."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise json.JSONDecodeError(json_mistake(body, error), "", 0) from error
        except RecursionError as error:
            raise json.JSONDecodeError("it is nested too deeply", "", 0) from error


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            if self.body_field is not None and await strict.body():
                _check_media(strict)
            return await handle(strict)

        return strictly


def _check_media(request: Request) -> None:
    """Also keeps pages of other sites out: a browser sends JSON for them only after a preflight request, which is denied."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise ApiError(415, f"the body is `{media or 'of no type'}`", "send it as `Content-Type: application/json`")


class Routes(APIRouter):
    def __init__(self, tag: str, prefix: str = "") -> None:
        super().__init__(
            prefix=prefix,
            tags=[tag],
            route_class=StrictRoute,
            responses=errors(*ALWAYS),
            generate_unique_id_function=_operation,
        )

    def operation(
        self, endpoint: str, needs: Any, summary: str, returns: Any = None, *failures: int, **more: Any
    ) -> Callable[[Handler], Handler]:
        """`endpoint` is such as `GET /runs`, `needs` one of READ, RUN, ADMIN, and `returns` a model, or `Response` for what is
        not JSON. A DELETE that returns nothing answers 204. `more` is as FastAPI takes it."""
        method, _, path = endpoint.partition(" ")
        more["responses"] = {**more.get("responses", {}), **errors(*failures)}
        if needs is not None:
            more["dependencies"] = [needs]
        if returns is None and method == "DELETE":
            more |= {"status_code": 204, "response_class": Response}
        elif returns is Response:
            more["response_class"] = Response
        elif returns is not None:
            more["response_model"] = returns
        return self.api_route(path, methods=[method], summary=summary, **more)


def _operation(route: APIRoute) -> str:
    tag = str(route.tags[0]) if route.tags else "server"
    return f"{tag}_{route.name}"


Responses = dict[int | str, dict[str, Any]]
Handler = TypeVar("Handler", bound=Callable[..., Any])


def errors(*statuses: int) -> Responses:
    return {status: {"model": ErrorOut, "description": _SAID.get(status, CODES[status])} for status in statuses}


def content(media: Iterable[str], description: str, **schema: str) -> Responses:
    """An answer that is not JSON."""
    return {
        200: {"content": {one: {"schema": {"type": "string", **schema}} for one in media}, "description": description}
    }


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    return Response(encode(value), status, headers, "application/json")


# ---- Authorisation. Tokens are bearer secrets with a scope: `read`, `run`, which includes it, and `admin`, which includes
# both.
# Law: a server that others can reach authenticates every request, unless the operator disabled that. One that only its own
# machine can reach is open until it has its first token. A request without a token must not come from a page of another site in
# somebody's browser: the host that it names, and the headers by which browsers name the origin, show that.

CHALLENGE = {"WWW-Authenticate": "Bearer"}
HINT = (
    "send `Authorization: Bearer TOKEN`; `penstock token add NAME --scope run` makes one, and `PENSTOCK_TOKEN` gives it"
)

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of the server (`penstock token add`). Without any tokens a server on the loopback is open.",
)

Given = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
Check = Callable[..., Awaitable[str]]


def needs(scope: Scope) -> Check:
    """A dependency that admits callers with this scope and returns their name."""

    async def check(request: Request, given: Given) -> str:
        return await admit(request, given.credentials if given is not None else None, scope)

    check.__name__ = f"needs_{scope.value}"
    check.scope = scope  # type: ignore[attr-defined]  # for the test that asks every route what it needs
    return check


READ = Depends(needs(Scope.READ))
RUN = Depends(needs(Scope.RUN))
ADMIN = Depends(needs(Scope.ADMIN))


async def admit(request: Request, secret: str | None, needed: Scope) -> str:
    """The name of the caller. Raises ApiError if they are not allowed."""
    token = await identified(request, secret)
    if token is None:
        return ""
    if ORDER.index(token.scope) < ORDER.index(needed):
        raise ApiError(
            403,
            f"the token `{token.name}` has the scope `{token.scope.value}`, and this needs `{needed.value}`",
            f"`penstock token add NAME --scope {needed.value}` makes one that may",
        )
    return token.name


async def identified(request: Request, secret: str | None) -> Token | None:
    """The token of the caller, from the header or from the session of a browser. None if the server asks for none; if it does,
    and none that is known was given, raises ApiError."""
    backend = backend_of(request)
    if backend.local is not None:
        _check_name(request, backend)
    session = None if secret is not None else cookie_of(request)
    if backend.no_auth or (secret is None and session is None and await _is_open(backend)):
        _check_name(request, backend)
        check_origin(request)
        return None
    if session is not None:
        _check_session(request)
        held = session
        token = await apart(lambda: token_of_session(backend.control, backend.local, held))
        if token is None and await _is_open(backend):  # Its token was revoked, and with it the last one.
            _check_name(request, backend)
            return None
        if token is None:
            raise ApiError(401, "the session has ended", "sign in again", headers=CHALLENGE)
        return token
    if secret is None:
        raise ApiError(401, "this needs a token", HINT, headers=CHALLENGE)
    given = secret
    token = await apart(lambda: token_of(backend.control, backend.local, given))
    if token is None:
        raise ApiError(401, "the token is not known here, or has expired", HINT, headers=CHALLENGE)
    return token


async def _is_open(backend: Backend) -> bool:
    return backend.local is None and backend.is_loopback and not await backend.has_tokens()


def _check_session(request: Request) -> None:
    """A browser sends a cookie along whoever made the page that asks, so the request itself has to show that it comes from a page
    of this server: a change says so in its headers and is sent as JSON, which a form cannot do."""
    check_origin(request)
    if request.method in ("GET", "HEAD"):
        return
    if not request.headers.get("origin") and request.headers.get("sec-fetch-site") != "same-origin":
        raise ApiError(
            403,
            "a request with a session has to come from a page of this server",
            "programs send `Authorization: Bearer TOKEN` instead",
            code="other_site",
        )
    if request.headers.get("content-type"):
        _check_media(request)


def _check_name(request: Request, backend: Backend) -> None:
    """Refuses a host name that is not this server's: it may be a page whose owner points that name here."""
    host = Host.read(request.headers.get("host", ""))
    if host is None or not is_known(host, backend.hosts, is_loopback=backend.is_loopback):
        name = "" if host is None else host.name
        raise ApiError(
            403,
            f"this server does not go by the name `{name}`",
            "ask it as `localhost` or by its address, or with a token; `--allow-host NAME` gives it another name",
            code="other_name",
        )


def check_origin(request: Request) -> None:
    """Browsers send the origin of a request. Opening an address is harmless; a request by a page of another site, or of another
    port of this machine, is not."""
    site, mode = (request.headers.get(f"sec-fetch-{name}", "") for name in ("site", "mode"))
    if request.method in ("GET", "HEAD") and mode == "navigate":
        return
    if site not in ("", "same-origin", "none") or not is_own_origin(request.headers):
        raise other_site()


# ---- What each route needs, read from the routes themselves: for the OpenAPI document, the reference and the tests.

FIELD = "x-scope"


class Needed(NamedTuple):
    method: str
    path: str
    scope: Scope | None
    """None if everybody may, or the route checks by itself."""


def needed(app: FastAPI) -> list[Needed]:
    found = []
    for route in _flat(app.routes):
        if isinstance(route, APIRoute):
            scopes = [scope for call in _called(route.dependant) if (scope := getattr(call, "scope", None)) is not None]
            path = route.path.replace(":path}", "}")
            found += [Needed(method, path, scopes[0] if scopes else None) for method in sorted(route.methods or ())]
    return found


def document_scopes(app: FastAPI) -> None:
    """Adds the scope that each operation needs to the OpenAPI document."""
    plain = app.openapi

    def with_scopes() -> dict[str, Any]:
        document = plain()
        for method, path, scope in needed(app):
            if scope is not None:
                document["paths"][path][method.lower()][FIELD] = scope.value
        return document

    app.openapi = with_scopes  # type: ignore[method-assign]


def _flat(routes: Iterable[Any]) -> Iterator[Any]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from _flat(inner.routes)


def _called(dependant: Any) -> Iterator[Any]:
    for inner in dependant.dependencies:
        yield inner.call
        yield from _called(inner)
