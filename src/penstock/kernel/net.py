"""The net: the immutable graph that a document is lowered to. It holds everything that may run; nothing else is consulted.

    Net ── Node ── Pipeline ── Task ── Rule ── Then        what one run of a node does, on one lease
        │       ├─ Fan                                     the same pipeline once per element of a collection
        │       ├─ admit: Rule…                            whether a token is admitted
        │       ├─ Edge…                                   where tokens go when the run has ended
        │       └─ Location                                a node that runs once in its scope, when its links settle
        └─ Container ── Region ── Node…                    scopes: a job, a joblet call, an iteration; and their sub-jobs

A net of steps moves tokens (gates TOKEN and JOIN); a net of components settles links (gates GREEN and BARRIER).

Expressions are carried as text: a judge outside the kernel evaluates them, and facts record the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from penstock.kernel.values import Condition, Json, JsonMap, Template, frozen


class Do(str, Enum):
    """What a task's policy does after an outcome."""

    CONTINUE = "continue"
    RETRY = "retry"
    JUMP = "jump"
    BREAK = "break"
    FAIL = "fail"


class Backoff(str, Enum):
    NONE = "none"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class Gate(str, Enum):
    """When a node may run.

    TOKEN: once per token. JOIN: once per full set of tokens from the nodes it joins.
    GREEN: once in its scope, when every data port is fed and a control link has fired. BARRIER: likewise, but the control links
    come from parallel branches and are evaluated together.
    """

    TOKEN = "token"
    JOIN = "join"
    GREEN = "green"
    BARRIER = "barrier"


class On(str, Enum):
    """What makes a link of a component net fire."""

    DATA = "data"
    OK = "ok"
    ERROR = "error"
    IF = "if"
    PARALLELISE = "parallelise"
    SYNCHRONISE = "synchronise"
    SUBJOB_OK = "subjob_ok"
    SUBJOB_ERROR = "subjob_error"
    SUBJOB_DONE = "subjob_done"
    """Fires however the sub-job ended. Not written by authors: it makes a post-job wait for every other sub-job."""
    ITERATE = "iterate"
    ITERATION_OK = "iteration_ok"
    ITERATION_ERROR = "iteration_error"
    ITERATOR_COMPLETE = "iterator_complete"


class LoopMode(str, Enum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class FailureMode(str, Enum):
    FAIL_FAST = "fail_fast"
    BEST_EFFORT = "best_effort"


@frozen
class Writes:
    """Assignments still to be rendered: key -> template. Dotted keys reach into a mapping."""

    iter: dict[str, Template] = field(default_factory=dict)
    ctx: dict[str, Template] = field(default_factory=dict)
    append: dict[str, Template] = field(default_factory=dict)
    shared: dict[str, Template] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.iter or self.ctx or self.append or self.shared)


@frozen
class Then:
    do: Do = Do.CONTINUE
    attempts: Template = None
    backoff: Backoff = Backoff.NONE
    delay: Template = 0
    max_delay: float = 300.0
    jitter: float = 0.0
    to: str | None = None
    message: str = ""
    """With FAIL after an ok outcome: the message of the failure, if the document implies one."""
    writes: Writes = field(default_factory=Writes)


@frozen
class Rule:
    """`when` is None for `else`."""

    when: Condition | None
    then: Then


@frozen
class AdmitRule:
    when: Condition | None
    allow: bool


@frozen
class Task:
    """One tool call of a pipeline. `rules` is None when the author gave no policy, which differs from an empty one."""

    label: str
    kind: str
    params: dict[str, Template] = field(default_factory=dict)
    rules: tuple[Rule, ...] | None = None
    spec: JsonMap = field(default_factory=dict)
    on_ok: Writes = field(default_factory=Writes)


class Emit(str, Enum):
    """What is logged for the elements of a fanned-out loop: the ends of ranges and the failures, or the end of each element."""

    SUMMARY = "summary"
    PER_ITEM = "per_item"


@frozen
class Fanout:
    """How a loop is handed out in ranges to many workers."""

    fail_fast: bool = True
    allow_partial: bool = False
    retries: int = 0
    """How often a failed element is handed out again."""
    losses: int = 3
    """How often elements are handed out again after losing their worker."""
    max_shards: int = 1_000_000_000
    max_concurrent: int | None = None
    queue_ttl_s: float | None = None
    lease_s: float | None = None
    range_size: int | None = None
    """Elements per range; if None, as many as keep a worker busy for a few seconds."""
    emit: Emit = Emit.SUMMARY
    reducers: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> JsonMap:
        shown: JsonMap = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None:
                shown[one.name] = value.value if isinstance(value, Enum) else value
        return shown

    @staticmethod
    def from_json(data: JsonMap) -> Fanout:
        known = {one.name for one in fields(Fanout)}
        values: dict[str, Any] = {key: value for key, value in data.items() if key in known}
        return Fanout(**{**values, "emit": Emit(values.get("emit", "summary"))})


@frozen
class Fan:
    """A loop: one node with a child scope for each element."""

    collection: Template
    iterator: str
    mode: LoopMode = LoopMode.SEQUENTIAL
    max_in_flight: int | str = 1
    """A template is rendered when the loop starts."""
    failure: FailureMode = FailureMode.FAIL_FAST
    reducers: dict[str, str] = field(default_factory=dict)
    """Key -> the reducer that combines the values the iterations give with `set_shared`."""
    fanout: Fanout | None = None
    """Set when the loop is handed out in ranges."""


@frozen
class Edge:
    """A connection from one node to another: an arc of a playbook, a link of a job."""

    index: int
    """Identifies it in facts: among the arcs of its step, or among all links of the expanded document."""
    target: str


@frozen
class Arc(Edge):
    """Considered when the step is done; when the step failed, only if its guard reads `event` (D49, D57)."""

    guard: Condition | None = None
    args: dict[str, Template] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)
    reads_event: bool = False
    """Continuing after a failure must be explicit: a guard that reads only data says nothing about failures."""


@frozen
class Link(Edge):
    """Joins two nodes of a component net. It settles once in each scope: fired or dead.

    Source and target lie in the same container, except for ITERATE, ITERATION_OK and ITERATION_ERROR and for data from an
    iterator's `item` port or from outside into a body: there the target lies in a container that the source, or a node beside
    the source, opens.
    """

    source: str
    on: On
    order: int = 0
    when: Condition | None = None
    port: str = ""
    """For a data link, the output port it comes from."""
    to_port: str = ""
    crosses: bool = False
    """A data link into another scope: its rows are kept until the end of the run and survive a crash."""
    hidden: bool = False
    """Added by the planner; not counted or shown as one of the author's links."""


@frozen
class Location:
    """Where a node lies in a component net, and how it behaves there."""

    container: str
    """The key of the container it lies in."""
    region: int
    """The index of its sub-job within that container."""
    rank: int
    """Its position in the topological order of its sub-job, from 0."""
    local: str
    """Its name within the container: what follows `iterator[#i].` in an iteration."""
    startable: bool = False
    """It may run without a control link firing: it has none, or is marked startable."""
    required: tuple[str, ...] = ()
    """Input ports that must be fed."""
    die_on_error: bool = False
    exports: tuple[str, ...] = ()
    """Globals of other sub-jobs that it may overwrite for everyone."""
    opens: str | None = None
    """The container that a run of this node opens: a joblet call's once, an iterator's once per element."""
    prefix: tuple[str, ...] = ()
    """The full names of the joblet calls around it, outermost first: its bare globals are looked up there."""
    group: str | None = None
    """The name of the fused group it may run in; see `Net.groups`."""
    schemas: JsonMap = field(default_factory=dict)
    """Output port -> the columns that the document declares."""
    always: bool = False
    """It runs even when the job is dying: a post-job."""


class Opening(str, Enum):
    PLAYBOOK = "playbook"
    JOB = "job"
    JOBLET = "joblet"
    BODY = "body"


@frozen
class Region:
    """A sub-job: members in topological order."""

    index: int
    name: str
    members: tuple[str, ...]
    handles: On | None = None
    """In a body: this region handles ITERATION_OK or ITERATION_ERROR, and starts after the others have closed."""


@frozen
class Container:
    """A scope that holds sub-jobs: the job itself, a joblet call, an iteration."""

    key: str
    """`""` for the job; else the name of the node that opens it."""
    opening: Opening
    regions: tuple[Region, ...]


class GlobalsMode(str, Enum):
    ACCUMULATE = "accumulate"
    RESET = "reset"
    OVERRIDE = "override"


@frozen
class Iteration:
    """An iterator's own settings. `parallel` and `mode` may be templates in the params; these are their defaults."""

    halts: bool = True
    """`job_config.fail_strategy: halt`."""
    fails: bool = False
    """`job_config.fail_strategy: continue_then_fail`: all iterations run, and the iterator is ERROR if one failed (D60)."""
    while_: bool = False
    """There is no list of elements: the condition in the param `while` is evaluated before each iteration."""


@frozen
class Node:
    name: str
    tasks: tuple[Task, ...] = ()
    fan: Fan | None = None
    gate: Gate = Gate.TOKEN
    joins: tuple[str, ...] = ()
    admit: tuple[AdmitRule, ...] | None = None
    edges: tuple[Arc, ...] = ()
    first_only: bool = True
    timeout_s: float | None = None
    deadline_s: float | None = None
    on_done: Writes = field(default_factory=Writes)
    spec: JsonMap = field(default_factory=dict)
    part: Location | None = None
    iterates: Iteration | None = None


@frozen
class Limits:
    max_payload_bytes: int = 1_048_576
    max_step_visits: int = 10_000
    max_task_runs: int = 1_000_000
    max_reevaluations: int = 100


class Durability(str, Enum):
    """GROUPED: an outcome is durable before anything outside its lease depends on it. STRICT: also before the next task."""

    GROUPED = "grouped"
    STRICT = "strict"


@dataclass(frozen=True)
class Net:
    name: str
    entry: str
    nodes: dict[str, Node]
    workload: JsonMap = field(default_factory=dict)
    keychain: tuple[JsonMap, ...] = ()
    limits: Limits = field(default_factory=Limits)
    failure: FailureMode = FailureMode.BEST_EFFORT
    durability: Durability = Durability.GROUPED
    strict: bool = False
    """Writing an undefined value is an error; otherwise null is written."""
    executor: JsonMap = field(default_factory=dict)
    metadata: JsonMap = field(default_factory=dict)
    digest: str = ""
    kind: str = "playbook"
    """`job` for a component net; names the facts of the execution scope."""
    containers: dict[str, Container] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of the last member -> all members in topological order: chains whose queries may run as one."""
    aborts: bool = False
    """`job_config.on_subjob_error: abort`."""
    contexts: dict[str, JsonMap] = field(default_factory=dict)
    """Context groups by name, each merged over the defaults in `workload`."""
    open_inputs: bool = False
    """`inputs: open`: a run may be given inputs that the document neither declares nor reads."""
    state: JsonMap | None = None
    """What the document keeps between runs, with the initial values; None if it declares nothing."""
    engine: JsonMap = field(default_factory=dict)
    """The data plane's settings: `engine`, `memory_limit`, `max_in_flight_rows`, `max_in_flight_bytes`, `threads`, `fuse` …"""
    engines: dict[str, JsonMap] = field(default_factory=dict)
    """Component -> the words about the engine of its sub-job, where that is not the job's own. Texts may be templates."""


__all__ = [
    "AdmitRule",
    "Arc",
    "Backoff",
    "Condition",
    "Container",
    "Do",
    "Durability",
    "Edge",
    "Emit",
    "FailureMode",
    "Fan",
    "Fanout",
    "Gate",
    "GlobalsMode",
    "Iteration",
    "Json",
    "Limits",
    "Link",
    "Location",
    "LoopMode",
    "Net",
    "Node",
    "On",
    "Opening",
    "Region",
    "Rule",
    "Task",
    "Template",
    "Then",
    "Writes",
]
