"""What all routes have in common: JSON that is read strictly, errors that are documented, answers that are encoded once."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from penstock.api.answers import ErrorOut
from penstock.api.errors import CODES, ApiError
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
    """Reads a body as the engine reads JSON everywhere: no NaN, no broken characters, no duplicate of a parser."""

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
    """Also what keeps pages of other sites out: a browser sends JSON for them only after asking, and is told no."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise ApiError(415, f"the body is `{media or 'of no type'}`", "send it as `Content-Type: application/json`")


def router(tag: str, prefix: str = "") -> APIRouter:
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=StrictRoute,
        responses=errors(*ALWAYS),
        generate_unique_id_function=_operation,
    )


def _operation(route: APIRoute) -> str:
    tag = str(route.tags[0]) if route.tags else "server"
    return f"{tag}_{route.name}"


Responses = dict[int | str, dict[str, Any]]


def errors(*statuses: int) -> Responses:
    return {status: {"model": ErrorOut, "description": _SAID.get(status, CODES[status])} for status in statuses}


def content(media: Iterable[str], said: str, **schema: str) -> Responses:
    """An answer that is not JSON."""
    return {200: {"content": {one: {"schema": {"type": "string", **schema}} for one in media}, "description": said}}


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    return Response(encode(value), status, headers, "application/json")
