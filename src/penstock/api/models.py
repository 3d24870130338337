"""What goes in, as types: from these the OpenAPI document is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from penstock.api.errors import CATALOG_PATH, SLUG
from penstock.ports.blobs import is_ref
from penstock.ports.folders import CATALOG, is_address

MOST_AT_ONCE = 1_000
"""Runs that one request may start."""
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


def _file_name(text: str) -> str:
    """A name such as `catalog:p.yaml` would be read as a file in whatever folder a worker was started in."""
    if is_address(text) and not text.startswith(f"{CATALOG}/"):
        raise ValueError(f"an address in the catalog begins with `{CATALOG}/`")
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
CatalogPath = Annotated[str, StringConstraints(pattern=CATALOG_PATH, max_length=500)]
"""Names of folders and of the document, such as `sales/orders`."""
FileName = Annotated[
    str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_printable), AfterValidator(_file_name)
]
Slug = Annotated[str, StringConstraints(pattern=SLUG)]
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
    file: FileName = "document.yaml"
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
    payload: Payload = Field(default_factory=dict, description="what a run would be given")
    context: Short | None = Field(None, description="of a job: a group of its context")


class PlanIn(DocumentAsked):
    format: Literal["json", "text"] = Field("json", description="`text`: of a job, for people")


Picture = Literal["mermaid", "dot", "svg", "json"]
"""`json` is for jobs only."""


class GraphIn(DocumentAsked):
    format: Picture = "mermaid"


class PutDocument(In):
    """A document by itself."""

    text: Annotated[str, StringConstraints(min_length=1)]
    sources: Sources = Field(
        default_factory=dict, description="the joblets that a job takes in: path from the document's folder -> text"
    )


class PutProject(In):
    """A folder with documents and all they need."""

    archive: Annotated[str, StringConstraints(min_length=1)] = Field(description="its files: a tar, gzipped, in base64")


AnythingKept = PutDocument | PutProject


class WhatRunsIn(In):
    document: AnyDocument
    context: Short | None = Field(None, description="of a job: a group of its context")
    keep: list[Short] = Field(
        default_factory=list, max_length=100, description="of a job: ports whose rows are kept, `COMPONENT[.PORT]`"
    )


class SubmitIn(WhatRunsIn):
    payload: Payload = Field(default_factory=dict, description="goes over the defaults of the workload or context")
    label: Label | None = None
    idempotency_key: Short | None = Field(
        None, description="the same key again is the same run; the header `Idempotency-Key` does the same"
    )


class OneOfManyIn(In):
    payload: Payload = Field(default_factory=dict, description="goes over the defaults of the workload or context")
    label: Label | None = None
    idempotency_key: Short | None = Field(None, description="the same key again is the same run")


class SubmitManyIn(WhatRunsIn):
    runs: list[OneOfManyIn] = Field(min_length=1, max_length=MOST_AT_ONCE, description="one run for each")


class CancelIn(In):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = "cancelled on request"


class ResumeIn(In):
    failed: bool = Field(False, description="of a job that completed: run its failed iterations again")


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
    overlap: Literal["allow", "skip", "queue", "cancel"] = Field(
        "allow", description="what becomes of a slot while an earlier run of the schedule is still going"
    )
    deadline_s: Annotated[float, Field(gt=0, le=366 * 86_400)] | None = Field(
        None, description="a run that has not ended so long after its slot is late"
    )


Moment = Annotated[str, StringConstraints(min_length=4, max_length=40)]


class BackfillIn(In):
    """Times without an offset are in the zone of the schedule; both ends are included, and `to` as a date means its whole day."""

    since: Moment = Field(alias="from", description="a date or a time in the form of ISO 8601")
    until: Moment = Field(alias="to")
    which: Literal["all", "missing", "failed"] = "all"
    at_once: Annotated[int, Field(ge=1, le=100)] = Field(
        1, description="so many of its runs may be going at a time, if the schedule lets its runs overlap"
    )
    name: Short | None = Field(None, description="the same name again runs no slot twice; by default the period")
    dry_run: bool = False


Kind = Literal["value", "watermark"]


class PutKept(In):
    document: Annotated[str, StringConstraints(min_length=1, max_length=5000)]
    key: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    kind: Kind = "value"
    value: Any = None

    @field_validator("value")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return _no_deeper({"value": value})["value"]


class PutAlert(In):
    on: Annotated[list[Literal["failed", "late", "missed"]], Field(min_length=1, max_length=3)]
    schedule: Slug | None = Field(None, description="only of this schedule")
    document: Short | None = Field(None, description="only of this document: its path in the catalog, or its file")
    label: Short | None = Field(None, description="only of runs with this label")
    mail_to: Short | None = Field(None, description="who gets a mail; or `url` for a webhook")
    mail_from: Short | None = None
    smtp_host: Short | None = None
    smtp_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    smtp_security: Literal["none", "starttls", "tls"] = "starttls"
    url: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = Field(
        None, description="a webhook, or `keychain:NAME` for one that is kept in the keychain"
    )
    auth: Short | None = Field(
        None, description="an entry of the servers' keychain: of the mail server, or the secret that signs the webhook"
    )
    is_on: bool = True


class PutHook(In):
    path: CatalogPath
    version: Version | None = None
    payload: Payload = Field(default_factory=dict)
    secret: Annotated[str, StringConstraints(min_length=16, max_length=500)] | None = Field(
        None, description="requests must be signed with it; without one they need a token with the scope `run`"
    )
    is_on: bool = True
    context: Short | None = Field(None, description="of a job: a group of its context")


class AddToken(In):
    name: Short
    scope: Literal["read", "run", "admin"]
    expires_in_s: Annotated[float, Field(gt=0, le=1e10)] | None = None


class PruneIn(In):
    older_than_s: Seconds
    keep_failed: bool = False
    dry_run: bool = False
