"""Every error is one JSON shape: `{"error": {"code", "message", "hint", "problems"}}`, with the status that fits.

400  the request cannot be read           404  there is no such thing       413  too large
401  no token, or one that is not known   405  not in this way              415  not JSON
403  the token may not do this            409  not now, not twice           422  it can be read, and is wrong
429  too many at once                     500  a mistake of ours            503  a store cannot do its work; try again
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from penstock.dialects.report import as_json
from penstock.kernel.errors import Damaged, PenstockError, Refused, Unavailable
from penstock.ports.results import encode
from penstock.server.catalog import NotFiled
from penstock.server.documents import DocumentInvalid

# ---- The formats of names in requests, each with a description.

SLUG = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
CATALOG_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$"

PATTERNS = {
    SLUG: "a name has up to 100 letters, digits, `.`, `_` and `-`, and a letter or digit first",
    CATALOG_PATH: "a path in the catalog is names of letters, digits, `.`, `_` and `-` with `/` between them, such as "
    "`sales/orders`",
}


CODES = {
    400: "bad_request", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    409: "refused", 413: "too_large", 415: "not_json", 422: "invalid", 429: "too_many", 500: "internal",
    503: "unavailable",
}  # fmt: skip


class ApiError(Exception):
    """An answer other than the one that was asked for."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        *,
        code: str | None = None,
        problems: Sequence[Mapping[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or CODES[status]
        self.message = message
        self.hint = hint
        self.problems = problems
        self.headers = headers

    def body(self) -> bytes:
        error: dict[str, Any] = {"code": self.code, "message": self.message, "hint": self.hint}
        if self.problems is not None:
            error["problems"] = list(self.problems)
        return encode({"error": error})

    def response(self) -> Response:
        return Response(self.body(), self.status, dict(self.headers or {}), "application/json")


def from_refusal(error: PenstockError, status: int = 409) -> ApiError:
    """A refusal of the engine as an error of the API; `status` is used for mistakes of the caller."""
    match error:
        case DocumentInvalid():
            return ApiError(422, error.message, error.hint, code="document_invalid", problems=as_json(error.problems))
        case NotFiled():
            return ApiError(404, error.message, error.hint)
        case Refused():
            return ApiError(status, error.message, error.hint)
        case Damaged():
            return ApiError(500, error.message, error.hint, code="damaged")
        case Unavailable():
            return ApiError(503, error.message, error.hint, headers={"Retry-After": "1"})
    return ApiError(500, error.message, error.hint)


@contextmanager
def refusals(status: int) -> Iterator[None]:
    """A refusal inside the block is the caller's mistake, with this status."""
    try:
        yield
    except Refused as error:
        raise from_refusal(error, status) from error


def of_any(error: Exception) -> ApiError:
    """The last resort: the details go to the operator's log, and the caller gets a 500."""
    traceback.print_exception(error, file=sys.stderr)
    return ApiError(500, "the server made a mistake", "its log says more; please report it")


def install(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> Response:
        return error.response()

    @app.exception_handler(PenstockError)
    async def refused(request: Request, error: PenstockError) -> Response:
        found = from_refusal(error)
        return (of_any(error) if found.code == CODES[500] else found).response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _of_request(error).response()

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _of_http(request, error).response()


def _of_request(error: RequestValidationError) -> ApiError:
    first = error.errors()[0] if error.errors() else {}
    if first.get("type") == "json_invalid":
        reason = (first.get("ctx") or {}).get("error") or "it cannot be read"
        return ApiError(400, f"the body is not JSON: {reason}", code="bad_json")
    problems = [{"where": _where(one.get("loc", ())), "message": _sentence(one)} for one in error.errors()]
    shown = "; ".join(f"`{one['where'].removeprefix('body.')}`: {one['message']}" for one in problems[:3])
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return ApiError(422, f"the request is not valid: {shown}{more}", problems=problems)


_SENTENCES = {
    "missing": "it is needed",
    "extra_forbidden": "there is no such field",
    "dict_type": "a mapping is wanted",
    "list_type": "a list is wanted",
    "string_type": "a text is wanted",
    "bool_type": "`true` or `false` is wanted",
    "int_type": "a whole number is wanted",
    "int_parsing": "a whole number is wanted",
    "int_from_float": "a whole number is wanted",
    "float_type": "a number is wanted",
    "float_parsing": "a number is wanted",
    "bool_parsing": "`true` or `false` is wanted",
    "finite_number": "a finite number is wanted",
    "model_type": "a mapping is wanted",
    "model_attributes_type": "a mapping is wanted",
    "string_unicode": "it is not a text of valid characters",
    "greater_than": "it must be more than {gt:g}",
    "greater_than_equal": "it must be {ge:g} or more",
    "less_than": "it must be less than {lt:g}",
    "less_than_equal": "it must be {le:g} or less",
}


def _sentence(problem: Mapping[str, Any]) -> str:
    """What is wrong, in our own words: those of the validator mention its schema."""
    kind, context = str(problem.get("type")), problem.get("ctx") or {}
    if kind in _SENTENCES:
        return _SENTENCES[kind].format(**context)
    if kind == "string_too_short":
        least = context["min_length"]
        return "it is empty" if least == 1 else f"it is too short: at least {least} characters are needed"
    if kind == "string_too_long":
        return f"it is too long: at most {context['max_length']} characters are allowed"
    if kind in ("literal_error", "enum"):
        known = [one.strip(" '") for one in str(context["expected"]).replace(" or ", ", ").split(",")]
        shown = str(problem.get("input"))[:100]
        near = get_close_matches(shown, known, 1)
        meant = f"; did you mean `{near[0]}`?" if near else ""
        return f"it is one of {', '.join(f'`{one}`' for one in known)}, not `{shown}`{meant}"
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(str(context["pattern"]), "it has characters that are not allowed here")
    return str(problem.get("msg", "it is wrong")).removeprefix("Value error, ")


def _where(path: Sequence[Any]) -> str:
    return ".".join(str(part) for part in path) or "body"


def _of_http(request: Request, error: HTTPException) -> ApiError:
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return ApiError(404, f"there is no `{request.url.path}` here", "`/api/openapi.json` lists what there is")
    if error.status_code == 405:
        allowed = headers.get("allow") or headers.get("Allow") or ""
        hint = f"it takes {allowed}" if allowed else None
        return ApiError(405, f"`{request.url.path}` does not take {request.method}", hint, headers=headers)
    status = error.status_code if error.status_code in CODES else 400
    return ApiError(status, str(error.detail), headers=headers)
