"""What documents keep between runs: values that they set themselves, and the watermarks of their readers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import ADMIN, READ, Routes, answer
from penstock.kernel.values import JsonMap
from penstock.ports.kept_state import Kept
from penstock.ports.wire import iso

routes = Routes("state", "/api")

Document = Annotated[str, Query(description="its file, or `catalog:/PATH`", min_length=1, max_length=5000)]


def kept_json(kept: Kept) -> JsonMap:
    return answers.KeptOut.of(kept, changed_at=iso(kept.changed_at))


@routes.operation("GET /state", READ, "What documents keep between runs", answers.KeptList)
async def kept(request: Request, document: Document | None = None) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.log.kept(document))
    return answer({"state": [kept_json(one) for one in found]})


@routes.operation("PUT /state", ADMIN, "Say what a document is to keep", answers.KeptOut, 415)
async def keep(request: Request, asked: models.PutKept) -> Response:
    backend = backend_of(request)
    if asked.value is None:
        raise ApiError(422, "`null` is what is there when nothing is kept", "delete the value instead")
    one = Kept(asked.document, asked.kind, asked.key, asked.value, None, backend.clock.now())
    await apart(lambda: backend.log.keep(one))
    return answer(kept_json(one))


@routes.operation("DELETE /state", ADMIN, "Let a document keep something no more", answers.DroppedOut, 404)
async def drop(
    request: Request,
    document: Document,
    kind: Annotated[models.Kind | None, Query()] = None,
    key: Annotated[str | None, Query(max_length=1000)] = None,
) -> Response:
    backend = backend_of(request)
    gone = await apart(lambda: backend.log.drop_kept(document, kind, key))
    if not gone:
        raise ApiError(404, f"`{document}` keeps nothing of that", "`GET /api/state` lists what is kept")
    return answer({"document": document, "dropped": gone})
