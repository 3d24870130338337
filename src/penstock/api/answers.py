"""What comes out, as types: from these the OpenAPI document is made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Out(BaseModel):
    """What is answered may get more fields in later releases."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def of(cls, thing: Any, **more: Any) -> dict[str, Any]:
        """The fields of this answer, from a thing that has attributes of their names; `more` are those that it has not."""
        return {name: more[name] if name in more else getattr(thing, name) for name in cls.model_fields}


class ProblemOut(Out):
    """Of a document: with `code`, `severity`, `file`, `line`, `column`. Of a request: with `where`."""

    message: str
    where: str | None = None
    code: str | None = None
    severity: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    hint: str | None = None
    calls: str | None = None
    """How the document came to be called: `main.yaml → load → child.yaml`."""


class ErrorBody(Out):
    code: str
    message: str
    hint: str | None
    problems: list[ProblemOut] | None = None


class ErrorOut(Out):
    error: ErrorBody


class FiledOut(Out):
    path: str
    version: int
    digest: str
    kind: str
    created_at: str
    created_by: str
    text: str | None = None
    sources: dict[str, str] | None = None


class FiledList(Out):
    documents: list[FiledOut]


class ValidateOut(Out):
    status: Literal["valid", "invalid"]
    errors: int
    problems: list[ProblemOut]


class SubmitOut(Out):
    execution_id: str
    created: bool = Field(description="false when this idempotency key was used before: then this is the run made then")


class SubmitManyOut(Out):
    runs: list[SubmitOut] = Field(description="in the order in which they were asked for")


class RunOut(Out):
    """A run as the list has it."""

    execution_id: str
    kind: str
    name: str
    label: str | None
    status: str
    crashed: bool
    failed_iterations: int = Field(description="of a job that completed: iterations that failed and were gone on from")
    file: str
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    events: int
    trace_id: str | None
    reason: str | None = Field(
        None, description="why it failed, was interrupted, crashed or waits, where that is known"
    )


class RunList(Out):
    runs: list[RunOut]
    next: str | None = Field(description="give it as `after` to get the next page; null on the last one")


class ShownOut(Out):
    """What `penstock show --json` prints; a job has `components`, `subjobs` and `globals` instead of `steps` and `ctx`."""

    execution_id: str
    kind: str
    name: str
    status: str
    exit_code: int | None
    error: Any
    counts: dict[str, Any]
    duration_ms: float
    label: str | None
    crashed: bool
    file: str


class PinnedOut(Out):
    file: str
    text: str
    sources: dict[str, str] | None = None
    inputs: dict[str, Any] | None = None


class AskedOut(Out):
    execution_id: str
    status: str = Field(description="as it was when this was asked; the run's owner acts on it before long")
    seq: int = Field(description="the last event before this was asked")


class ExplainedOut(Out):
    execution_id: str


class FaninOut(Out):
    execution_id: str
    fanin: dict[str, Any] = Field(description="step run -> how far its fanned-out loop is")


class WorkerOut(Out):
    id: str
    name: str
    pool: str
    slots: int
    can: list[str]
    version: str
    held: int
    age_s: float = Field(description="since its last sign of life")
    is_alive: bool
    is_draining: bool
    is_inside: bool = Field(
        description="it is part of the server's own process, and stops with it: it cannot be drained"
    )


class WorkerList(Out):
    workers: list[WorkerOut]


class LeaseOut(Out):
    key: str
    execution_id: str
    pool: str
    attempt: int
    worker: str | None = Field(description="null while it waits")
    age_s: float
    left_s: float | None
    needs: list[str] = Field(description="what a worker must be able to do")


class LeaseList(Out):
    leases: list[LeaseOut]


class WaitOut(Out):
    scope: str = Field(description="the step run, the sub-job, or the loop whose ranges wait")
    pool: str
    needs: list[str] = Field(description="what a worker must be able to do")
    is_range: bool = Field(description="parts of a loop wait; others may be under way")
    offers: int = Field(description="how many leases wait; more than one for ranges of a loop")
    age_s: float = Field(description="how long the oldest has waited")
    is_stuck: bool = Field(description="no worker there is can take it")
    why: list[str]


class WaitList(Out):
    execution_id: str
    waiting: list[WaitOut]


class ServerOut(Out):
    id: str
    name: str
    since: str
    partitions: int


class ServerList(Out):
    servers: list[ServerOut]


class PoolOut(Out):
    name: str
    workers: int
    slots: int
    held: int
    waiting: int


class PoolList(Out):
    pools: list[PoolOut]


class ScheduleOut(Out):
    name: str
    cron: str
    path: str
    zone: str
    version: int | None
    payload: dict[str, Any]
    context: str | None
    missed: str
    overlap: str
    deadline_s: float | None
    is_on: bool
    next_at: str | None
    fired_to: str | None = Field(description="all slots up to this time have been fired or let go")
    last_slot: str | None
    last_run: str | None
    last_error: str | None
    running: list[str] = Field(description="its runs that are going")
    waiting: int = Field(description="so many slots wait until they may run")
    late: list[str] = Field(description="its slots that are open and past their deadline")


class SlotOut(Out):
    slot: str
    state: str = Field(description="`due`, `queued`, `started`, `skipped`, `refused` or `missed`")
    status: str = Field(description="the status of its run, else the state")
    run: str | None
    note: str | None
    attempt: int = Field(description="how many runs of this slot were asked for")
    backfill: str | None = Field(description="the backfill that asked for the last of them")
    is_late: bool


class SlotList(Out):
    slots: list[SlotOut]


class PlannedOut(Out):
    slot: str
    status: str | None = Field(description="of its last run, else what became of it; null when nothing did")
    run: str | None
    is_queued: bool
    why: str | None = Field(description="why it is left out")


class BackfillOut(Out):
    schedule: str
    backfill: str = Field(description="its name")
    since: str
    until: str
    dry_run: bool
    queued: int
    slots: list[PlannedOut]


class StoppedOut(Out):
    schedule: str
    stopped: int = Field(description="so many slots wait no more; what is running goes on")


class ScheduleList(Out):
    schedules: list[ScheduleOut]


class KeptOut(Out):
    document: str
    kind: str = Field(description="`value`, or `watermark` of a reader")
    key: str
    value: Any
    run: str | None = Field(description="the run that set it; null when a person did")
    changed_at: str
    lost_run: str | None = Field(
        description="a run whose value was not taken, because another run had changed it meanwhile"
    )
    lost_value: Any


class KeptList(Out):
    state: list[KeptOut]


class DroppedOut(Out):
    document: str
    dropped: int


class AlertOut(Out):
    name: str
    on: list[str]
    schedule: str | None
    document: str | None
    label: str | None
    mail_to: str | None
    mail_from: str | None
    smtp_host: str | None
    smtp_port: int | None
    smtp_security: str
    url: str | None
    auth: str | None
    is_on: bool
    created_at: str
    delivered: int
    pending: int
    failed: int = Field(description="so many were given up after too many attempts")
    last_error: str | None


class AlertList(Out):
    alerts: list[AlertOut]


class AlertTested(Out):
    name: str
    status: str


class DeliveryOut(Out):
    about: str
    event: dict[str, Any]
    state: str = Field(description="`pending`, `delivered` or `failed`")
    attempts: int
    error: str | None
    at: str


class DeliveryList(Out):
    deliveries: list[DeliveryOut]


class HookOut(Out):
    name: str
    path: str
    version: int | None
    payload: dict[str, Any]
    context: str | None
    is_on: bool
    is_signed: bool


class HookedOut(Out):
    execution_id: str


class HookList(Out):
    hooks: list[HookOut]


class TokenOut(Out):
    id: str
    name: str
    scope: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None


class NewTokenOut(TokenOut):
    secret: str = Field(description="shown once, here; only a hash of it is kept")


class TokenList(Out):
    tokens: list[TokenOut]


class PruneOut(Out):
    runs: int
    results: int
    bytes: int | None = Field(description="of these results; only a dry run counts them")
    dry_run: bool


class HealthOut(Out):
    status: Literal["ok"]
    server: str


class ReadyOut(Out):
    status: Literal["ready"]
    server: str
    partitions: int


class VersionOut(Out):
    version: str
    server: str
    api: int
    stores: list[str] = Field(description="the kinds of results that can be read here; new ones are of the first")
