"""What the web page asks for, as types: a run at a moment, its graph, timeline, events, values and rows; files of a project."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from penstock.api.answers import Out, ProblemOut

# ---- the graph: what may run; it depends on the document alone


class GraphTaskOut(Out):
    name: str
    kind: str
    line: int | None = None


class GraphNodeOut(Out):
    id: str = Field(description="the step or component, as the document names it; unique in its execution")
    title: str = Field(description="its name within its frame")
    kind: Literal["step", "component", "joblet", "iterator"]
    type: str = Field(description="the type of a component, or the kinds of a step's tools")
    tasks: list[GraphTaskOut]
    frame: str | None = Field(description="the frame it lies in")
    opens: str | None = Field(description="the frame it opens: the inside of a joblet call, the body of an iterator")
    loop: str | None = Field(description="of a node that runs many times: how, in a few words")
    badges: list[str]
    calls: str | None = Field(description="the document that it runs, when that is written down as a constant")
    file: str
    line: int | None
    end_line: int | None


class GraphFrameOut(Out):
    id: str
    kind: Literal["subjob", "joblet", "body"]
    title: str
    parent: str | None
    opener: str | None = Field(description="the node that opens it; null for a sub-job")


class GraphEdgeOut(Out):
    id: str
    source: str
    target: str
    kind: Literal["data", "control", "arc"]
    on: str = Field(description="`data`, `ok`, `error`, `if`, … of a job; `arc` of a playbook")
    label: str
    port: str | None = None
    to_port: str | None = None
    guard: str | None = None
    is_failure: bool
    file: str
    line: int | None


class GraphOut(Out):
    kind: str
    name: str
    digest: str = Field(description="the same digest has the same graph")
    entry: str | None
    nodes: list[GraphNodeOut]
    edges: list[GraphEdgeOut]
    frames: list[GraphFrameOut]


# ---- a run right after one of its events


class FanOut(Out):
    total: int | None = Field(description="null while it is not known")
    ok: int
    failed: int
    open: int
    mode: str
    failures: list[int] = Field(description="the first elements that failed")


class NodeStateOut(Out):
    status: Literal["waiting", "running", "retrying", "ok", "failed", "skipped", "not_run"] = Field(
        description="`not_run`: the execution ended before its turn came"
    )
    runs: int = Field(description="how often it ran, or runs")
    ended: dict[str, int] = Field(description="status -> how many of its runs ended so")
    run: str | None = Field(description="the scope of its latest run")
    started_at: float | None = Field(description="of its latest run; seconds since the epoch")
    ended_at: float | None
    ms: float = Field(description="of all its runs that ended")
    attempt: int = Field(description="of the task that runs, or ran last; 0 when there was none")
    task: str | None = Field(description="the task that runs, or ran last")
    retry_at: float | None = Field(description="when the next attempt begins")
    fan: FanOut | None
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    rows_so_far: dict[str, int] = Field(description="of a component that is running, as far as that is known")
    error: str | None
    reason: str | None = Field(description="why it was skipped, or what it waits for")
    worker: str | None
    children: list[str] = Field(description="the scopes of executions that run inside it, the latest first")


class EdgeStateOut(Out):
    state: Literal["fired", "dead", "unsettled"]
    fired: int
    rows: int | None
    rate: float | None = Field(description="rows a second")


class FrameStateOut(Out):
    status: Literal["waiting", "running", "ok", "failed", "skipped", "not_run"]
    started_at: float | None
    ended_at: float | None
    error: str | None


class InsideOut(Out):
    """An execution inside the run."""

    scope: str
    kind: str
    name: str
    status: str
    node: str | None = Field(description="the step or component that runs it")
    parent: str = Field(description="the scope of the execution that this node belongs to")
    started_at: float
    ended_at: float | None


class MomentOut(Out):
    execution_id: str
    seq: int = Field(description="the event that this is the state after")
    ts: float = Field(description="the time of that event, in seconds since the epoch")
    now: float = Field(description="the server's clock")
    last_seq: int = Field(description="of the run as it is now")
    folded_to: int = Field(
        description="a long run that nobody has looked at is read piece by piece: so far to this event. While it is smaller "
        "than the event that was asked for, this is the state after it, and asking again gives more"
    )
    is_live: bool = Field(description="this is the latest moment of a run that is going")
    kind: str
    name: str
    label: str | None
    file: str
    digest: str
    status: str = Field(description="`running`, `completed`, `failed`, `cancelled`, `interrupted`, or `crashed`")
    status_reason: str | None = Field(description="why it crashed, waits, was interrupted or cancelled")
    error: str | None
    exit_code: int | None
    started_at: float
    ended_at: float | None
    scope: str = Field(description="the execution that nodes, edges and frames are of; empty for the run itself")
    counts: dict[str, int]
    nodes: dict[str, NodeStateOut]
    edges: dict[str, EdgeStateOut]
    frames: dict[str, FrameStateOut]
    executions: list[InsideOut]


class MarkOut(Out):
    seq: int
    ts: float
    kind: Literal["start", "resume", "failure", "retry", "interrupted", "cancel", "lost", "end"]
    text: str
    node: str | None


class MarksOut(Out):
    """What is worth stopping at on the time slider."""

    last_seq: int
    folded_to: int = Field(description="what is marked lies up to this event; see `MomentOut`")
    first_ts: float
    last_ts: float
    first_error: int | None = Field(description="the event of the first failure")
    marks: list[MarkOut]
    types: dict[str, int] = Field(description="type of event -> how many")


# ---- timeline


class BarOut(Out):
    since: float
    until: float | None = Field(description="null while it goes on")
    status: str
    kind: Literal["run", "attempt", "wait", "lease"]
    count: int = Field(description="how many were merged, because they are narrower than a pixel")
    failed: int
    label: str
    scope: str | None
    seq: int | None = Field(description="the event that began it")
    attempt: int | None = None
    worker: str | None = None
    is_critical: bool = False


class LaneOut(Out):
    id: str
    title: str
    kind: Literal["node", "subjob", "worker"]
    bars: list[BarOut]


class TimelineOut(Out):
    seq: int = Field(description="the event up to which this is shown")
    folded_to: int = Field(description="see `MomentOut`")
    since: float
    until: float
    lanes: list[LaneOut]
    critical_ms: float | None = Field(description="the length of the critical path")
    critical: list[str] = Field(description="the nodes on it, in order")


# ---- events, lines, why, values, rows


class EventPageOut(Out):
    events: list[dict[str, Any]] = Field(description="envelopes, as `penstock events --json` prints them")
    last_seq: int
    next: int | None = Field(description="go on after this event; null at the end")
    scanned: int = Field(description="how many events were looked at; a filter may need several requests")


class LineOut(Out):
    number: int
    ts: float
    scope: str
    task_run_id: str | None
    line: str
    node: str | None


class LinePageOut(Out):
    lines: list[LineOut]
    next: int | None


class ReasonOut(Out):
    text: str
    seq: int | None = Field(description="the event that says so")
    file: str | None
    line: int | None
    node: str | None
    scope: str | None = Field(None, description="the execution that `node` belongs to; empty for the run itself")


class ReasonsOut(Out):
    title: str
    lines: list[ReasonOut]


class WhyOut(Out):
    execution_id: str
    node: str
    status: str
    headline: ReasonOut
    because: list[ReasonsOut]


class ValueOut(Out):
    id: str
    title: str
    value: Any
    size: int = Field(description="bytes as JSON")
    is_whole: bool = Field(description="false: `value` is the beginning; ask for more with `path`, `offset`, `limit`")
    total: int | None = Field(description="how many entries the list or mapping has in all")


class ValuesOut(Out):
    node: str | None
    run: str | None = Field(description="the scope of the run of the node")
    runs: list[str] = Field(description="the runs of the node that can be asked for, the latest first")
    values: list[ValueOut]


class ColumnOut(Out):
    name: str
    type: str


class RowsOut(Out):
    component: str
    port: str
    source: Literal["kept", "preview"]
    columns: list[ColumnOut]
    rows: list[list[Any]]
    total: int | None = Field(description="null when only the first rows were made")
    note: str | None


class PortOut(Out):
    component: str
    port: str
    rows: int | None
    is_kept: bool
    is_reject: bool


class PortsOut(Out):
    ports: list[PortOut]


class LineageStepOut(Out):
    component: str
    port: str | None
    column: str
    into_component: str
    into_port: str | None
    into_column: str


class LineageOut(Out):
    """Each entry says that one column is made of another."""

    columns: dict[str, list[ColumnOut]] = Field(description="`COMPONENT.PORT` -> its columns")
    steps: list[LineageStepOut]


class ReplayOut(Out):
    execution_id: str
    status: Literal["same", "different"]
    events: int
    difference: str | None


# ---- comparing two runs


class SideOut(Out):
    execution_id: str
    name: str
    label: str | None
    status: str
    started_at: float
    ended_at: float | None
    duration_ms: float | None
    events: int
    digest: str
    file: str


class ValueDifferenceOut(Out):
    path: str
    left: Any
    right: Any


class NodeDifferenceOut(Out):
    node: str
    left: NodeStateOut | None
    right: NodeStateOut | None
    differs: list[str] = Field(description="`status`, `runs`, `attempts`, `rows`, `error`, `time`")


class EdgeDifferenceOut(Out):
    edge: str
    label: str
    left: EdgeStateOut | None
    right: EdgeStateOut | None
    differs: bool


class FirstDifferenceOut(Out):
    left_seq: int | None
    right_seq: int | None
    left: str | None
    right: str | None
    node: str | None


class CompareOut(Out):
    left: SideOut
    right: SideOut
    same_document: bool
    left_text: str
    right_text: str
    inputs: list[ValueDifferenceOut]
    nodes: list[NodeDifferenceOut]
    edges: list[EdgeDifferenceOut]
    first: FirstDifferenceOut | None = Field(description="the first decision that differs; null when none does")
    is_complete: bool = Field(description="false: the runs are so long that only their beginnings were compared")


# ---- documents


class FileOut(Out):
    path: str = Field(description="from the folder of the project")
    file: str = Field(description="as a run names it")
    kind: str
    name: str
    modified_at: float
    size: int


class FileList(Out):
    root: str
    files: list[FileOut]


class FileTextOut(FileOut):
    text: str
    digest: str = Field(description="give it back when saving, so that no change of somebody else is overwritten")


class FieldOut(Out):
    name: str
    type: Literal["string", "integer", "number", "boolean", "array", "object", "any"]
    default: Any
    is_secret: bool


class FormOut(Out):
    """What a run of a document can be given."""

    kind: str
    name: str
    fields: list[FieldOut]
    contexts: list[str]
    is_open: bool = Field(description="other names may be given as well")


class ExaminedOut(Out):
    """A document as it is being written: its problems, and its graph if it has one."""

    status: Literal["valid", "invalid"]
    problems: list[ProblemOut]
    graph: GraphOut | None
    form: FormOut | None


class ReferenceOut(Out):
    kind: Literal["tool", "component"]
    name: str
    family: str
    summary: str
    error: str | None = None


class ReferenceList(Out):
    entries: list[ReferenceOut]


class ParameterOut(Out):
    name: str
    type: str
    required: bool
    default: Any
    description: str


class ReferencePortOut(Out):
    name: str
    required: bool
    many: bool
    reject: bool
    description: str


class ReferencePageOut(ReferenceOut):
    text: str
    params: list[ParameterOut]
    inputs: list[ReferencePortOut]
    outputs: list[ReferencePortOut]
    example: str
    output: str = Field(description="what the result of a tool looks like; empty for a component")


# ---- who is signed in; schedules; fleet


class SessionOut(Out):
    name: str
    scope: Literal["read", "run", "admin"]
    is_open: bool = Field(description="the server asks nobody for a token")
    is_local: bool = Field(description="the page of a folder on this machine: its files can be edited")
    root: str | None = Field(description="that folder")
    server: str
    version: str


class TimesOut(Out):
    times: list[str] = Field(description="ISO 8601, with the offset of the zone")


class FiredOut(Out):
    execution_id: str


class DrainedOut(Out):
    worker: str
    is_draining: bool


class LostLeaseOut(Out):
    execution_id: str
    scope: str
    at: float
    worker: str | None
    outcome: str = Field(description="what became of it: taken by another worker, waiting, ended with its run")
    taken_by: str | None


class LossList(Out):
    losses: list[LostLeaseOut]


class StatOut(Out):
    """The latest runs of a document, the oldest first."""

    name: str
    kind: str
    durations_ms: list[float | None]
    statuses: list[str]
    runs: list[str]


class StatList(Out):
    documents: list[StatOut]
