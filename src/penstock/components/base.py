"""What a component is.

A component is a class with a `type`, a typed parameter model and ports; or a function under `@component`. There are four ways to
be one, from the most declarative to the most free:

    Relational    one SELECT per output port over its named inputs. Fused with its neighbours, checked before a row is read
    Sink          writes the rows of its one input into one file that DuckDB can write
    Iterator      says over which elements the body runs
    Action        anything else: `run` is given the rows on its inputs and puts rows on its outputs

A component never sees templates, links or the log: parameters arrive rendered, validated and with secrets filled in. To fail, it
raises `ComponentFailure`; whatever else it raises is a failure too, of kind `exception`. Rows that are wrong, as opposed to a run
that is, go to a reject port with `error_code` and `error_message`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from penstock.data.types import MissingColumn
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore
from penstock.ports.components import Inferred, Mistake, Port, Ports, Role
from penstock.ports.rows import Copy, EngineSession, Relation, Schema, SqlText
from penstock.tools.base import Parametric, Resources, Settings, Source, Threads
from penstock.tools.parameters import about
from penstock.tools.places.mirror import Mirror

P = TypeVar("P", bound=msgspec.Struct)
ParamPath = tuple[str | int, ...]
"""Leads into the parameters: keys of mappings and indexes of lists."""
Known = Mapping[str, Schema | None]
"""The columns on each port, as far as they are known before the run."""
Schemas = dict[str, Schema | None]


class ComponentFailure(Exception):
    """The component ends in ERROR. `exit_code` is what the process exits with if this ends the job."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        exit_code: int | None = None,
        missing: MissingColumn | None = None,
        **detail: Json,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.exit_code = exit_code
        self.missing = missing
        """The column of an input that is not there, when that is what failed."""
        self.detail: JsonMap = dict(detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMistake(Mistake):
    """A parameter names a column that is not there."""

    missing: MissingColumn


def missing_of(mistakes: Iterable[Mistake]) -> MissingColumn | None:
    """The first column that these mistakes miss."""
    return next((one.missing for one in mistakes if isinstance(one, ColumnMistake)), None)


@dataclass(frozen=True, slots=True)
class Subjob:
    """The sub-job that a component run belongs to."""

    name: str = ""
    """The same over a resume, and another in each iteration."""
    commits: bool = False
    """Is there a component at its end that commits what others of it wrote in a shared transaction?"""
    is_reopened: Callable[[], bool] = bool
    """Had it ended, and do only failed iterations of it run again, with what follows from them?"""
    failed: Callable[[], Mapping[str, bool]] = dict
    """Its components that are in ERROR so far, and whether an error link has led to a handler."""


@dataclass(slots=True)
class Call:
    """One component run, as the component sees it."""

    component: str
    """Its name in the expanded job."""
    place: str
    """Its name in this run, iterations included: `load[#3].write`."""
    execution_id: str
    idempotency_key: str
    """The same over a resume: names the effect of this run."""
    folder: Path
    """Relative paths in parameters are relative to this, the document's own folder (D56)."""
    work: Path
    """A folder for this run's own temporary files."""
    context: Mapping[str, Any]
    """Read-only; an attempt to write raises."""
    globals: MutableMapping[str, Any]
    """Reads what is visible here; writes are staged and committed when the component ends."""
    iteration: Mapping[str, Any] | None
    inputs: Mapping[str, list[Relation]]
    """Every connected input port -> the rows that came, one Relation per link."""
    connected: frozenset[str]
    """The output ports that are connected."""
    declared: Mapping[str, Schema]
    """Schemas that the document declares for output ports."""
    engine: EngineSession
    clock: Clock
    blobs: BlobStore
    resources: Resources
    threads: Threads
    settings: Settings
    source: Source
    credential: Callable[[str], dict[str, Any]]
    say: Callable[[str], None]
    """A line for the run's log: shown, kept, and redacted. Safe to call from any thread."""
    show: Callable[[str], None]
    """A line for the terminal (log_rows): shown as it is, kept in the run's log, redacted."""
    play: Callable[..., Awaitable[Any]]
    """`await play(path, workload, return_step)`: a playbook as a child scope; its result."""
    play_job: Callable[..., Awaitable[Any]]
    """`await play_job(path, context, group)`: a job as a child scope; `{status, globals, rows, outputs}`."""
    progress: Callable[[str, int], None]
    """`progress(port, rows)`: so many rows so far, for the live view. Safe to call from any thread."""
    standing: Callable[[], JsonMap]
    """What has happened so far in this job, for log catchers and flow meters:
    `{components: {name: {state, rows_in, rows_out, ms, error}}, edges: [{from, to, on, rows}]}`."""
    outputs: dict[str, Relation] = field(default_factory=dict)
    after: JsonMap = field(default_factory=dict)
    """After-variables of its own, beside NB_LINE and the rest that every component has."""
    watermarks: Mapping[str, Json] = field(default_factory=dict)
    """What the last completed run of the document has read up to, by the names of its readers."""
    holds_secret: Callable[[str], bool] = lambda text: False
    """Is a secret of the keychain in this text, in any of its spellings?"""
    subjob: Subjob = field(default_factory=Subjob)
    mirror: Mirror | None = None
    """Files that are not on this machine. The runner opens it for the run of the component."""

    def input(self, port: str = "input") -> Relation:
        """The one relation on a port."""
        arrived = self.inputs.get(port, [])
        if len(arrived) != 1:
            raise ComponentFailure("port", f"port `{port}` of `{self.component}` has {len(arrived)} relations, not one")
        return arrived[0]

    def put(self, port: str, rows: Relation) -> None:
        """Rows for an output port. A port that is not connected may be left out."""
        self.outputs[port] = rows

    def resolve(self, path: str) -> Path:
        given = Path(path).expanduser()
        return given if given.is_absolute() else self.folder / given

    def plan(self, connected: frozenset[str] | None = None) -> PlanCall:
        """What a relational component or a sink may look at in this run."""
        ports = self.connected if connected is None else connected
        return PlanCall(self.folder, ports, self.declared, self.mirror, self.engine)


@dataclass(frozen=True, slots=True)
class PlanCall:
    """What a relational component may look at besides its parameters and inputs: it is asked before the run, too."""

    folder: Path
    connected: frozenset[str]
    declared: Mapping[str, Schema] = field(default_factory=dict)
    mirror: Mirror | None = None
    """Files that are not on this machine; None before the run, when no network may be needed."""
    engine: EngineSession | None = None
    """None before the run."""

    def resolve(self, path: str) -> Path:
        given = Path(path).expanduser()
        return given if given.is_absolute() else self.folder / given


@dataclass(frozen=True, slots=True)
class UserSql:
    """One piece of SQL that the author wrote, for the check before the run."""

    path: tuple[str | int, ...]
    """Where it stands in the params."""
    text: str
    inputs: tuple[str, ...]
    """The input ports whose columns it may name; with several, each column may be qualified by its port."""
    form: str = "value"
    """`value`: an expression; `condition`: one that must be boolean; `aggregate`; `query`: a SELECT over the input names."""


class Component(Parametric[P]):
    """Base of all. The docstring is the reference page; `Params` fields carry their descriptions in `msgspec.Meta`."""

    family: ClassVar[str] = "transform"
    type: ClassVar[str]
    inputs: ClassVar[tuple[Port, ...]] = ()
    outputs: ClassVar[tuple[Port, ...]] = ()
    startable: ClassVar[bool] = False
    makes_files: ClassVar[bool] = True
    """Could its run make a file that another component reads? Says when a file that is missing may still come."""
    role: ClassVar[Role] = ""
    example: ClassVar[str] = ""
    """A whole job in YAML, small and self-contained, for the component's page. Those of built-in types are in `examples/`."""

    @classmethod
    def ports(cls, params: Mapping[str, Any]) -> Ports:
        """The ports of one use. `params` are as the author wrote them; override where ports come from parameters."""
        return Ports(cls.inputs, cls.outputs)

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        """The (input, output) ports that a deactivated component passes its rows between; None when it has none."""
        inputs, outputs = cls.inputs, [port for port in cls.outputs if not port.reject]
        return (inputs[0].name, outputs[0].name) if inputs and outputs else None

    def check(self, params: P, inputs: Known, call: PlanCall) -> list[Mistake]:
        """What is wrong with these parameters, as far as it can be said before the run."""
        return []

    def schemas(self, params: P, inputs: Known, call: PlanCall) -> Schemas:
        """What flows out of each connected port. Relational components need not say: their SELECT does."""
        return {}

    def bound_here(self, params: P, inputs: Known, call: PlanCall) -> str | None:
        """Why this use can only run on an engine whose rows are in this process; None when it can run on any. What the SQL says
        is judged by itself."""
        return "it takes the rows into this process" if inputs else None

    def refused_on(self, engine: str, params: P, call: PlanCall) -> str | None:
        """Why this use cannot be on that engine, for a reason that is the component's own."""
        return None


class Relational(Component[P]):
    """Rows in, one SELECT per output, rows out; no effects. Input ports are table names in the query."""

    makes_files: ClassVar[bool] = False
    keeps_count: ClassVar[bool] = False
    """Every output has exactly as many rows as its first input."""
    refuses: ClassVar[bool] = False
    """A row that it cannot take is an error unless `reject` is connected: it counts such rows itself (`NB_LINE_REJECTED`)."""

    def is_fusable(self, params: P, connected: frozenset[str]) -> bool:
        """Can this use be a stage of a larger query? If not, `run` is called when it is defined, else each SELECT by itself."""
        return True

    def bound_here(self, params: P, inputs: Known, call: PlanCall) -> str | None:
        is_query = self.is_fusable(params, call.connected) or not hasattr(self, "run")
        return None if is_query else "this use of it is more than one query"

    def prepare(self, params: P, call: PlanCall) -> None:
        """Before the run, outside the query: raise ComponentFailure for what would be unclear later, such as a missing file."""

    def selects(self, params: P, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        """A query for each connected output port, over the input ports as tables."""
        raise NotImplementedError

    def user_sql(self, params: P) -> Iterable[UserSql]:
        """The author's own SQL in the parameters: each piece is parsed and bound to the columns before the run."""
        return ()


WRITTEN = Port("main", reject=True, description="the same rows, written")


class Sink(Component[P]):
    """Writes the rows of its one input into a file, and passes them on through `main` when it is connected."""

    family: ClassVar[str] = "write"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)
    outputs: ClassVar[tuple[Port, ...]] = (WRITTEN,)

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def copy(self, params: P, schema: Schema, call: PlanCall) -> Copy:
        raise NotImplementedError

    def is_fusable(self, params: P, connected: frozenset[str]) -> bool:
        return not connected

    def bound_here(self, params: P, inputs: Known, call: PlanCall) -> str | None:
        return None if self.is_fusable(params, frozenset()) else "it writes the file in more than one step"

    def finish(self, params: P, call: PlanCall, rows: int) -> None:
        """After the file is complete."""


class Action(Component[P]):
    """Whatever needs Python. A plain `def run` runs in a thread; an `async def run` on the event loop, which must not wait."""

    def run(self, params: P, call: Call) -> Any:
        """What it returns is the component's result, kept in the log when small; None for nothing."""
        raise NotImplementedError


class Writer(Action[P]):
    """An action that writes the rows of its one input, and passes them on through `main`."""

    family: ClassVar[str] = "write"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (WRITTEN,)

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def schemas(self, params: P, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": inputs.get("input")}


@dataclass(frozen=True, slots=True)
class Elements:
    """Over what an iterator's body runs. `items` are Json; they are kept in the log or, when large, by reference."""

    items: Iterable[Json]
    total: int | None = None


class Iterator(Component[P]):
    """Opens its body once per element. Every iterator has the parameters `parallel`, `globals` and `body` of `IteratorParams`."""

    family: ClassVar[str] = "iterate"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("item", reject=True, description="the element as one row, in the body"),
    )

    def elements(self, params: P, call: Call) -> Elements:
        """Run in a thread; once per run of the iterator. `iterate_while` is the engine's own."""
        raise NotImplementedError


class IteratorParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of all iterators; the engine reads these itself."""

    parallel: Annotated[
        int, about("How many iterations run at once. One at a time, each sees what earlier ones wrote.", ge=1)
    ] = 1
    globals: Annotated[
        Literal["accumulate", "reset", "override"],
        about("How the globals of the iterations come together: only those of iterations that ended OK count."),
    ] = "accumulate"
    body: Annotated[str | None, about("A joblet that is the body, as `@name`; else what the links reach.")] = None


__all__ = [
    "Action",
    "Call",
    "ColumnMistake",
    "Component",
    "ComponentFailure",
    "Elements",
    "Inferred",
    "Iterator",
    "IteratorParams",
    "Mistake",
    "P",
    "PlanCall",
    "Port",
    "Ports",
    "Relational",
    "Sink",
    "UserSql",
    "Writer",
]
