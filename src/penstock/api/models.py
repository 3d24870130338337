"""What goes in, as types: from these the OpenAPI document is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from penstock.ports.blobs import is_ref

MOST_DEPTH = 64
"""As deep as a document may be nested, so may a payload."""


def _label(text: str) -> str:
    if not text.strip() or text.startswith("@"):
        raise ValueError("a label is a word of your own, and does not begin with `@`")
    return text


def _printable(text: str) -> str:
    """Names are shown by terminals and in logs: none may write lines of its own there."""
    if not text.isprintable():
        raise ValueError("it has a character that cannot be printed")
    return text


def _printable_names(sources: dict[str, str]) -> dict[str, str]:
    for name in sources:
        _printable(name)
    return sources


def _no_deeper(value: dict[str, Any]) -> dict[str, Any]:
    """Also: a reference to a result is the engine's own, and is not taken from outside as if it were one."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        if any(is_ref(one) for one in level):
            raise ValueError("it has a reference to a result of a run in it; give the value itself")
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {MOST_DEPTH}")


Short = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Label = Annotated[Short, AfterValidator(_label)]
CatalogPath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$", max_length=500)
]
"""Names of folders and of the document, such as `sales/orders`."""
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
Payload = Annotated[dict[str, Any], AfterValidator(_no_deeper)]
Sources = Annotated[dict[str, str], AfterValidator(_printable_names)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]


class In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DocumentText(In):
    """A document as text. `file` is the name it goes by; relative paths in it are relative to its folder, on the worker. No file
    of the server is read: joblets and documents that it calls are in `sources`, or in the catalog."""

    text: Annotated[str, StringConstraints(min_length=1)]
    file: Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_printable)] = "document.yaml"
    sources: Sources = Field(default_factory=dict, description="what it takes in or calls: file -> text")


class DocumentPath(In):
    """A document of the catalog: its newest version, or the one that is asked for."""

    path: CatalogPath
    version: Version | None = None


AnyDocument = DocumentText | DocumentPath


class DocumentAsked(In):
    document: AnyDocument


class ValidateIn(DocumentAsked):
    strict: bool = Field(False, description="warnings are errors")


class PlanIn(DocumentAsked):
    format: Literal["json", "text"] = Field("json", description="`text`: of a job, for people")


Picture = Literal["mermaid", "dot", "svg", "json"]
"""`json` is for jobs only."""


class GraphIn(DocumentAsked):
    format: Picture = "mermaid"


class PutDocument(In):
    text: Annotated[str, StringConstraints(min_length=1)]
    sources: Sources = Field(default_factory=dict, description="the joblets that a job takes in: file -> text")


class SubmitIn(In):
    document: AnyDocument
    payload: Payload = Field(default_factory=dict, description="goes over the defaults of the workload or context")
    context: Short | None = Field(None, description="of a job: a group of its context")
    label: Label | None = None
    idempotency_key: Short | None = Field(
        None, description="the same key again is the same run; the header `Idempotency-Key` does the same"
    )


class CancelIn(In):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = "cancelled on request"


# ---- triggers


class PutSchedule(In):
    cron: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    path: CatalogPath
    zone: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "UTC"
    version: Version | None = None
    payload: Payload = Field(default_factory=dict)
    context: Short | None = None
    missed: Literal["all", "last", "none"] = "last"
    is_on: bool = True


class PutHook(In):
    path: CatalogPath
    version: Version | None = None
    payload: Payload = Field(default_factory=dict)
    secret: Annotated[str, StringConstraints(min_length=16, max_length=500)] | None = Field(
        None, description="requests must be signed with it; without one they need a token with the scope `run`"
    )
    is_on: bool = True


class AddToken(In):
    name: Short
    scope: Literal["read", "run", "admin"]
    expires_in_s: Annotated[float, Field(gt=0, le=1e10)] | None = None


class PruneIn(In):
    older_than_s: Seconds
    keep_failed: bool = False
    dry_run: bool = False
