"""Documents as requests name them: by their text, or by their path in the catalog."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.api.backend import Backend
from penstock.api.errors import ApiError, from_refusal
from penstock.api.models import AnyDocument, DocumentPath
from penstock.dialects.kind import kind_of
from penstock.kernel.errors import PenstockError
from penstock.kernel.net import Net
from penstock.ports.results import encode
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
        from penstock.dialects.job.compile import CompiledJob
        from penstock.dialects.job.plan import plan as job_plan

        assert isinstance(found, CompiledJob)
        return job_plan(found)
    from penstock.dialects.playbook.plan import plan

    return plan(net)


MEDIA = {
    "svg": "image/svg+xml",
    "mermaid": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "json": "application/json",
}


def plan_text_of(net: Net, found: Compiled | CompiledJob) -> str:
    if net.kind != "job":
        raise ApiError(422, "the plan of a playbook is given as JSON", "ask for it without `format`")
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
