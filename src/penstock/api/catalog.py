"""The catalog of documents, what can be asked about a document before it runs, and what documents keep between runs."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query, Request
from starlette.responses import Response

from penstock.api import answers, models
from penstock.api.backend import Backend, apart, backend_of
from penstock.api.errors import ApiError, from_refusal
from penstock.api.models import AnyDocument, DocumentPath
from penstock.api.routing import ADMIN, READ, RUN, Given, Routes, admit, answer, content
from penstock.dialects.kind import kind_of
from penstock.dialects.problems import Findings, Problem, Severity
from penstock.dialects.report import as_json
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.control import Filed, Scope
from penstock.ports.folders import CATALOG
from penstock.ports.kept_state import Kept as StateKept
from penstock.ports.projects import KIND, MEDIA, Manifest, expanded, packed, unpacked
from penstock.ports.projects import KIND as PROJECT
from penstock.ports.results import encode
from penstock.ports.wire import iso
from penstock.server.calls import calls_of, input_problems
from penstock.server.catalog import CatalogDocuments, Kept, compiling, documents_in
from penstock.server.documents import Pinned

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.playbook import Compiled


# ---- Documents and projects as requests carry them: by their text, by their path in the catalog, or as an archive.


def pinned(backend: Backend, document: AnyDocument) -> Pinned:
    """Must be called from a thread, like everything here."""
    if isinstance(document, DocumentPath):
        return backend.documents.filed(document.path, document.version)
    return backend.documents.sent(document.file, document.text, document.sources)


def compiled(backend: Backend, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
    """The compiled document. Raises ApiError with all problems if it is invalid."""
    check_runs(document)
    try:
        return backend.documents.compile(document)
    except PenstockError as error:
        raise from_refusal(error, 422) from error


def check_runs(document: Pinned) -> None:
    if kind_of(document.text) == "joblet":
        raise ApiError(
            422,
            f"`{document.file}` is a joblet, which runs only as a part of a job",
            "send the job, with the joblet among its `sources`",
            code="joblet",
        )


def plan_of(net: Net, found: Compiled | CompiledJob) -> Any:
    """The lowered form, as `penstock plan --json` prints it."""
    if net.kind == "job":
        # Each dialect is loaded when its first document comes.
        from penstock.dialects.job.compile import CompiledJob
        from penstock.dialects.job.plan import plan as job_plan

        assert isinstance(found, CompiledJob)
        return job_plan(found)
    from penstock.dialects.playbook.plan import plan  # As above.

    return plan(net)


PICTURE_MEDIA = {
    "svg": "image/svg+xml",
    "mermaid": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "json": "application/json",
}


def plan_text_of(net: Net, found: Compiled | CompiledJob) -> str:
    if net.kind != "job":
        raise ApiError(422, "the plan of a playbook is given as JSON", "ask for it without `format`")
    # As above.
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.job.plan import plan_text

    assert isinstance(found, CompiledJob)
    return plan_text(found)


def picture_of(net: Net, form: str) -> bytes:
    dialect = import_module(f"penstock.dialects.{net.kind}.plan")
    if form == "json":
        if net.kind != "job":
            raise ApiError(422, "only the graph of a job is given as JSON", "the plan of a playbook has the same")
        return encode(dialect.graph_json(net))
    picture: str = getattr(dialect.picture(net), form)()
    return picture.encode()


# ---- Storing a project in the catalog: it is unpacked, every document in it is checked, and it is kept as one version.


def file_project(backend: Backend, path: str, archive: str, by: str) -> tuple[Filed, bool]:
    """The project as it is kept, and whether that is a new version."""
    try:
        files = unpacked(expanded(base64.b64decode(archive, validate=True)))
        content = packed(files)
    except ValueError as error:
        raise ApiError(422, f"the archive is not base64: {error}", "`penstock catalog put DIR` makes one") from error
    except Refused as error:
        raise from_refusal(error, 422) from error
    documents = documents_in(files)
    if not any(kind != "joblet" for kind, _ in documents.values()):
        raise ApiError(422, "there is no playbook or job in the project", "put the folder that your documents are in")
    _check_name(backend, path)
    before = backend.control.document(path)
    ref = backend.blobs.put([content], MEDIA)
    root = f"{CATALOG}/{path}@{1 if before is None else before.version + 1}"
    problems: list[Problem] = []
    for name, (kind, text) in documents.items():
        document = Pinned(f"{root}/{name}", text, (), ref)
        check_secrets(document, name)
        if kind != "joblet":
            found = backend.documents.examined(document)
            both = [*found.problems, *calls_of(backend.documents, document, found).problems]
            problems += [
                replace(one, position=replace(one.position, file=_within(one.position.file, root))) for one in both
            ]
    errors = [one for one in dict.fromkeys(problems) if one.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ApiError(
            422,
            f"the project is not valid: {first.position.file}:{first.position.line}: {first.message}{more}",
            code="document_invalid",
            problems=as_json(errors),
        )
    digest = hashlib.sha256(content).hexdigest()
    sources = {name: text for name, (_, text) in documents.items()}
    filed = backend.control.file(path, Manifest.of(files, ref).text(), KIND, digest, sources, by)
    return filed, before is None or before.version != filed.version


def _within(file: str, root: str) -> str:
    return file.removeprefix(f"{root}/")


def _check_name(backend: Backend, path: str) -> None:
    """Names below a project's name belong to the project."""
    inside = [one.path for one in backend.control.documents(f"{path}/", 1)]
    there = backend.control.document(path)
    if inside:
        raise ApiError(
            409, f"the catalog has `{inside[0]}`, which would be a document of the project", "choose another name"
        )
    if there is not None and there.kind != KIND:
        raise ApiError(409, f"`{path}` is a {there.kind}, and not a project", "choose another name, or remove it first")
    parts = path.split("/")
    for cut in range(1, len(parts)):
        outer = backend.control.document("/".join(parts[:cut]))
        if outer is not None and outer.kind == KIND:
            raise ApiError(
                409, f"`{outer.path}` is a project, and `{path}` would lie inside of it", "choose another name"
            )


def check_secrets(document: Pinned, name: str = "") -> None:
    if document.as_kept() != document:
        which = f"the document `{name}`" if name else "the document"
        raise ApiError(
            422,
            f"{which} has secrets written into it, and would show them to everybody who may read the catalog",
            "name them in its keychain instead: `kind: env`, `file` or `secret_manager`",
            code="inline_secret",
        )


routes = Routes("documents", "/api")

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
    if not with_text:
        return shown
    sources: JsonMap = {} if filed.kind == PROJECT else dict(filed.sources)
    return {**shown, "text": filed.text, "sources": sources}


def kept_json(kept: Kept) -> JsonMap:
    """A document of a project, shown like a document of its own, in the version of the project."""
    shown = filed_json(kept.filed, with_text=True)
    return {**shown, "path": kept.path, "kind": kept.kind, "text": kept.text, "sources": {}} if kept.inner else shown


@routes.operation("GET /documents", READ, "List the catalog", answers.FiledList)
async def listing(
    request: Request,
    prefix: Annotated[str, Query(max_length=500)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    control = backend_of(request).control
    found = await apart(lambda: control.documents(prefix, limit))
    return answer({"documents": [filed_json(one) for one in found]})


@routes.operation(
    "GET /documents/{path:path}",
    READ,
    "A document: its newest version, or the one that is asked for",
    answers.FiledOut,
    404,
)
async def get(request: Request, path: At, version: Annotated[models.Version | None, Query()] = None) -> Response:
    documents = backend_of(request).documents
    found = await apart(lambda: documents.kept(path, version))
    if found is None:
        raise await _no_such(documents, path, version)
    return answer(kept_json(found))


@routes.operation("GET /versions/{path:path}", READ, "All versions of a document, newest first", answers.FiledList, 404)
async def versions(request: Request, path: At) -> Response:
    backend = backend_of(request)

    def all_of() -> list[Filed]:
        """All versions; those of its project for a document of a project."""
        kept = backend.documents.kept(path)
        return backend.control.versions(path if kept is None else kept.filed.path)

    found = await apart(all_of)
    if not found:
        raise await _no_such(backend.documents, path)
    newest = sorted(found, key=lambda one: -one.version)
    return answer({"documents": [filed_json(one) for one in newest]})


@routes.operation(
    "PUT /documents/{path:path}",
    None,
    "Keep a document, or a project",
    answers.FiledOut,
    409,
    415,
    status_code=201,
    responses={200: {"model": answers.FiledOut, "description": "it is there already"}},
    description="Only what can run is kept. The same content again is the same version; other content is the next one. "
    "A project needs a token with the scope `admin`: its plug-ins run in the server.",
)
async def put(
    request: Request, path: At, asked: models.AnythingKept, by: Annotated[str, RUN], given: Given
) -> Response:
    backend = backend_of(request)
    if isinstance(asked, models.PutProject):
        archive = asked.archive
        await admit(request, given.credentials if given is not None else None, Scope.ADMIN)
        filed, is_new = await compiling(lambda: file_project(backend, path, archive, by))
    else:
        document = asked
        filed, is_new = await compiling(lambda: _file(backend, path, document, by))
    return answer(filed_json(filed), 201 if is_new else 200)


def _file(backend: Backend, path: str, asked: models.PutDocument, by: str) -> tuple[Filed, bool]:
    _check_free(backend, path)
    document = Kept(
        Filed(path, 0, "", "", text=asked.text, created_at=0.0, created_by=by, sources=dict(asked.sources))
    ).pinned()
    net, _ = compiled(backend, document)
    check_secrets(document)
    before = backend.control.document(path)
    filed = backend.control.file(path, asked.text, net.kind, net.digest, dict(asked.sources), by)
    return filed, before is None or before.version != filed.version


def _check_free(backend: Backend, path: str) -> None:
    """Refuses a name within a project."""
    parts = path.split("/")
    for cut in range(1, len(parts)):
        if (there := backend.control.document("/".join(parts[:cut]))) is not None and there.kind == PROJECT:
            raise ApiError(
                409, f"`{there.path}` is a project, and `{path}` would be a document of it", "choose another path"
            )


@routes.operation(
    "DELETE /documents/{path:path}",
    ADMIN,
    "Take a document out of the catalog",
    None,
    404,
    description="All its versions. Runs of it stay as they are.",
)
async def delete(request: Request, path: At) -> Response:
    backend = backend_of(request)
    if not await apart(lambda: backend.control.unfile(path)):
        raise await _no_such(backend.documents, path)
    return Response(status_code=204)


async def _no_such(documents: CatalogDocuments, path: str, version: int | None = None) -> ApiError:
    return from_refusal(await apart(lambda: documents.not_filed(path, version)), 404)


# ---- before it runs


@routes.operation("POST /validate", READ, "Every problem of a document", answers.ValidateOut, 404, 415)
async def validate(request: Request, asked: models.ValidateIn) -> Response:
    backend = backend_of(request)
    return answer(await compiling(lambda: _problems(backend, asked)))


def _problems(backend: Backend, asked: models.ValidateIn) -> JsonMap:
    document = pinned(backend, asked.document)
    found = backend.documents.examined(document, strict=asked.strict)
    problems = Findings([*found.problems, *calls_of(backend.documents, document, found).problems])
    if found.net is not None:
        problems.extend(input_problems(found.net, found.file, asked.payload, asked.context))
    if asked.strict:
        problems = problems.strict()
    errors_found = sum(problem.severity is Severity.ERROR for problem in problems)
    return {
        "status": "invalid" if errors_found else "valid",
        "errors": errors_found,
        "problems": [*as_json(problems)],
    }


@routes.operation("POST /plan", READ, "The lowered form of a document", None, 404, 415)
async def plan(request: Request, asked: models.PlanIn) -> Response:
    backend = backend_of(request)
    if asked.format == "text":
        text = await compiling(lambda: plan_text_of(*compiled(backend, pinned(backend, asked.document))))
        return Response(text, media_type="text/plain")
    return answer(await compiling(lambda: plan_of(*compiled(backend, pinned(backend, asked.document)))))


_PICTURE = content(PICTURE_MEDIA.values(), "the picture")


@routes.operation("POST /graph", READ, "A picture of a document", Response, 404, 415, responses=_PICTURE)
async def graph(request: Request, asked: models.GraphIn) -> Response:
    backend = backend_of(request)
    net, _ = await compiling(lambda: compiled(backend, pinned(backend, asked.document)))
    return Response(await compiling(lambda: picture_of(net, asked.format)), media_type=PICTURE_MEDIA[asked.format])


# ---- What documents keep between runs: values that they set themselves, and the watermarks of their readers.

state_routes = Routes("state", "/api")

Document = Annotated[str, Query(description="its file, or `catalog:/PATH`", min_length=1, max_length=5000)]


def state_json(kept: StateKept) -> JsonMap:
    return answers.KeptOut.of(kept, changed_at=iso(kept.changed_at))


@state_routes.operation("GET /state", READ, "What documents keep between runs", answers.KeptList)
async def kept(request: Request, document: Document | None = None) -> Response:
    backend = backend_of(request)
    found = await apart(lambda: backend.log.kept(document))
    return answer({"state": [state_json(one) for one in found]})


@state_routes.operation("PUT /state", ADMIN, "Say what a document is to keep", answers.KeptOut, 415)
async def keep(request: Request, asked: models.PutKept) -> Response:
    backend = backend_of(request)
    if asked.value is None:
        raise ApiError(422, "`null` is what is there when nothing is kept", "delete the value instead")
    one = StateKept(asked.document, asked.kind, asked.key, asked.value, None, backend.clock.now())
    await apart(lambda: backend.log.keep(one))
    return answer(state_json(one))


@state_routes.operation("DELETE /state", ADMIN, "Let a document keep something no more", answers.DroppedOut, 404)
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
