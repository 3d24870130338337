"""The catalog of documents, and what can be asked about a document before it runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.access import ADMIN, READ, RUN
from penstock.api.backend import Backend, apart, backend_of
from penstock.api.documents_in import MEDIA, compiled, picture_of, pinned, plan_of, plan_text_of
from penstock.api.errors import ApiError
from penstock.api.routing import answer, content, errors, router
from penstock.dialects.problems import Severity
from penstock.dialects.report import as_json
from penstock.kernel.values import JsonMap
from penstock.ports.control import Filed
from penstock.ports.wire import iso
from penstock.server.catalog import compiling
from penstock.server.documents import Pinned

routes = router("documents", "/api")

At = Annotated[models.CatalogPath, Path(description="such as `sales/orders`")]


def filed_json(filed: Filed, *, with_text: bool = False) -> JsonMap:
    shown: JsonMap = {
        "path": filed.path,
        "version": filed.version,
        "digest": filed.digest,
        "kind": filed.kind,
        "created_at": iso(filed.created_at),
        "created_by": filed.created_by,
    }
    return {**shown, "text": filed.text, "sources": dict(filed.sources)} if with_text else shown


@routes.get("/documents", response_model=answers.FiledList, summary="List the catalog", dependencies=[READ])
async def listing(
    request: Request,
    prefix: Annotated[str, Query(max_length=500)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    control = backend_of(request).control
    found = await apart(lambda: control.documents(prefix, limit))
    return answer({"documents": [filed_json(one) for one in found]})


@routes.get(
    "/documents/{path:path}",
    response_model=answers.FiledOut,
    responses=errors(404),
    summary="A document: its newest version, or the one that is asked for",
    dependencies=[READ],
)
async def get(request: Request, path: At, version: Annotated[models.Version | None, Query()] = None) -> Response:
    control = backend_of(request).control
    found = await apart(lambda: control.document(path, version))
    if found is None:
        raise _no_such(path, version)
    return answer(filed_json(found, with_text=True))


@routes.get(
    "/versions/{path:path}",
    response_model=answers.FiledList,
    responses=errors(404),
    summary="All versions of a document, newest first",
    dependencies=[READ],
)
async def versions(request: Request, path: At) -> Response:
    control = backend_of(request).control
    found = await apart(lambda: control.versions(path))
    if not found:
        raise _no_such(path, None)
    newest = sorted(found, key=lambda one: -one.version)
    return answer({"documents": [filed_json(one) for one in newest]})


@routes.put(
    "/documents/{path:path}",
    status_code=201,
    response_model=answers.FiledOut,
    responses={200: {"model": answers.FiledOut, "description": "it is there already"}, **errors(415)},
    summary="Keep a document",
    description="Only one that can run is kept. The same content again is the same version; other content is the next one.",
)
async def put(request: Request, path: At, asked: models.PutDocument, by: Annotated[str, RUN]) -> Response:
    backend = backend_of(request)
    filed, is_new = await compiling(lambda: _file(backend, path, asked, by))
    return answer(filed_json(filed), 201 if is_new else 200)


def _file(backend: Backend, path: str, asked: models.PutDocument, by: str) -> tuple[Filed, bool]:
    document = Pinned(f"catalog:/{path}", asked.text, tuple(asked.sources.items()))
    net, _ = compiled(backend, document)
    if document.as_kept() != document:
        raise ApiError(
            422,
            "the document has secrets written into its keychain, and would show them to everybody who may read the catalog",
            "name them instead: `kind: env`, `file` or `secret_manager`",
            code="inline_secret",
        )
    before = backend.control.document(path)
    filed = backend.control.file(path, asked.text, net.kind, net.digest, dict(asked.sources), by)
    return filed, before is None or before.version != filed.version


@routes.delete(
    "/documents/{path:path}",
    status_code=204,
    response_class=Response,
    responses=errors(404),
    summary="Take a document out of the catalog",
    description="All its versions. Runs of it stay as they are.",
    dependencies=[ADMIN],
)
async def delete(request: Request, path: At) -> Response:
    control = backend_of(request).control
    if not await apart(lambda: control.unfile(path)):
        raise _no_such(path, None)
    return Response(status_code=204)


def _no_such(path: str, version: int | None) -> ApiError:
    which = f"`{path}`" if version is None else f"version {version} of `{path}`"
    return ApiError(404, f"there is no {which} in the catalog", "`GET /api/documents` lists what is there")


# ---- before it runs


@routes.post(
    "/validate",
    response_model=answers.ValidateOut,
    responses=errors(404, 415),
    summary="Every problem of a document",
    dependencies=[READ],
)
async def validate(request: Request, asked: models.ValidateIn) -> Response:
    backend = backend_of(request)
    return answer(await compiling(lambda: _problems(backend, asked)))


def _problems(backend: Backend, asked: models.ValidateIn) -> JsonMap:
    found = backend.documents.examined(pinned(backend, asked.document), strict=asked.strict)
    errors_found = sum(problem.severity is Severity.ERROR for problem in found.problems)
    return {
        "status": "invalid" if errors_found else "valid",
        "errors": errors_found,
        "problems": [*as_json(found.problems)],
    }


@routes.post("/plan", responses=errors(404, 415), summary="The lowered form of a document", dependencies=[READ])
async def plan(request: Request, asked: models.PlanIn) -> Response:
    backend = backend_of(request)
    if asked.format == "text":
        text = await compiling(lambda: plan_text_of(*compiled(backend, pinned(backend, asked.document))))
        return Response(text, media_type="text/plain")
    return answer(await compiling(lambda: plan_of(*compiled(backend, pinned(backend, asked.document)))))


_PICTURE = content(MEDIA.values(), "the picture")


@routes.post(
    "/graph",
    response_class=Response,
    responses={**_PICTURE, **errors(404, 415)},
    summary="A picture of a document",
    dependencies=[READ],
)
async def graph(request: Request, asked: models.GraphIn) -> Response:
    backend = backend_of(request)
    net, _ = await compiling(lambda: compiled(backend, pinned(backend, asked.document)))
    return Response(await compiling(lambda: picture_of(net, asked.format)), media_type=MEDIA[asked.format])
