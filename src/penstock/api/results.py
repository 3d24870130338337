"""Large results by reference, as the log names them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from penstock.api.access import READ
from penstock.api.backend import apart, backend_of
from penstock.api.errors import ApiError
from penstock.api.routing import content, errors, router
from penstock.api.streamed import Streamed
from penstock.ports.blobs import Missing, ResultRef, key_of

routes = router("history", "/api")

BYTES = "application/octet-stream"
_CONTENT = content([BYTES], "the bytes", format="binary")


@routes.get(
    "/results/{store}/{checksum}",
    response_class=Response,
    responses={**_CONTENT, **errors(404)},
    summary="The bytes of a result",
    description="`store` and `checksum` as they stand in a reference (`$ref`).",
    dependencies=[READ],
)
async def get(
    request: Request,
    store: Annotated[str, Path(max_length=50)],
    checksum: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
) -> Response:
    backend = backend_of(request)
    if store not in backend.blobs.stores:
        raise ApiError(404, f"there is no store `{store}` here", f"this server has {', '.join(backend.blobs.stores)}")
    pieces = backend.blobs.read(ResultRef(store, key_of(checksum), 0, checksum))
    try:
        first = await apart(lambda: next(pieces, b""))
    except Missing as error:
        raise ApiError(404, error.message, error.hint) from error
    return Streamed(_rest(first, pieces), BYTES, backend.limits.stall_s)


async def _rest(first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    piece: bytes | None = first
    while piece is not None:
        yield piece
        piece = await apart(lambda: next(pieces, None))
