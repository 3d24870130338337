"""A project on its way into the catalog: unpacked, every document in it checked, and kept as one version."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

from penstock.api.backend import Backend
from penstock.api.errors import ApiError, from_refusal
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.report import as_json
from penstock.kernel.errors import Refused
from penstock.ports.control import Filed
from penstock.ports.folders import CATALOG
from penstock.ports.projects import KIND, MEDIA, Manifest, expanded, packed, unpacked
from penstock.server.calls import calls_of
from penstock.server.catalog import documents_in
from penstock.server.documents import Pinned


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
