"""Documents and projects as requests carry them: by their text, by their path in the catalog, or as an archive."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.api.backend import Backend
from penstock.api.errors import ApiError, from_refusal
from penstock.api.models import AnyDocument, DocumentPath
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.report import as_json
from penstock.dialects.sniff import kind_of
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.net import Net
from penstock.ports.control import Filed
from penstock.ports.folders import CATALOG
from penstock.ports.projects import KIND, MEDIA, Manifest, expanded, packed, unpacked
from penstock.ports.results import encode
from penstock.server.calls import calls_of
from penstock.server.catalog import documents_in
from penstock.server.documents import Pinned

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.playbook import Compiled


def pinned(backend: Backend, document: AnyDocument) -> Pinned:
    """To be called from a thread, as everything here."""
    if isinstance(document, DocumentPath):
        return backend.documents.filed(document.path, document.version)
    return Pinned(document.file, document.text, tuple(document.sources.items()))


def compiled(backend: Backend, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
    """What runs; ApiError with all problems when it cannot."""
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
    graph = import_module(f"penstock.dialects.{net.kind}.graph")
    if form == "json":
        if net.kind != "job":
            raise ApiError(422, "only the graph of a job is given as JSON", "the plan of a playbook has the same")
        return encode(graph.as_json(net))
    picture: str = getattr(graph, form)(net)
    return picture.encode()


# ---- A project on its way into the catalog: unpacked, every document in it checked, and kept as one version.


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
            problems += [replace(one, place=replace(one.place, file=_within(one.place.file, root))) for one in both]
    errors = [one for one in dict.fromkeys(problems) if one.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ApiError(
            422,
            f"the project is not valid: {first.place.file}:{first.place.line}: {first.message}{more}",
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
    """What lies below a project's name is the project's."""
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
