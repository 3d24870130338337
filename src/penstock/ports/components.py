"""What the engine knows about the installed components without running any of them.

The job dialect checks a document against these descriptions; the registry of components answers the port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

from penstock.kernel.values import Json, JsonMap
from penstock.ports.plugins import ParamInfo
from penstock.ports.rows import Schema


@dataclass(frozen=True, slots=True)
class Port:
    """A place where data links end or start. A name such as `input_*` stands for any number of concrete ports."""

    name: str
    required: bool = True
    many: bool = False
    """For an input: whether several links may end here (allow_multi_in)."""
    reject: bool = False
    """For an output: it carries rejected or optional rows, which nothing needs to read."""
    description: str = ""

    @property
    def is_wild(self) -> bool:
        return self.name.endswith("*")

    def accepts(self, name: str) -> bool:
        return name.startswith(self.name[:-1]) if self.is_wild else name == self.name


@dataclass(frozen=True, slots=True)
class Ports:
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()

    def input(self, name: str) -> Port | None:
        return next((port for port in self.inputs if port.accepts(name)), None)

    def output(self, name: str) -> Port | None:
        return next((port for port in self.outputs if port.accepts(name)), None)


@dataclass(frozen=True, slots=True)
class ComponentDescription:
    type: str
    family: str
    """`read`, `write`, `transform`, `quality`, `code`, `orchestrate`, `iterate`, `file`."""
    summary: str = ""
    doc: str = ""
    params: dict[str, ParamInfo] = field(default_factory=dict)
    schema: JsonMap = field(default_factory=dict)
    """JSON Schema of the parameters as one object."""
    ports: Ports = field(default_factory=Ports)
    startable: bool = False
    makes_files: bool = True
    """Whether its run could create a file that another component reads."""
    is_iterator: bool = False
    is_relational: bool = False
    """Whether it can be one stage of a fused query."""
    example: str = ""


Role = Literal["", "pre_job", "post_job"]


SHARED_COMMIT = "shared_commit"
"""The type of the component that the planner adds at the end of a sub-job whose writers share a transaction."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A parameter error that only the component can detect. `path` leads into the params; `offset` and `length` into the
    text found there."""

    path: tuple[str | int, ...]
    message: str
    label: str = ""
    hint: str = ""
    offset: int | None = None
    length: int = 1
    kind: Literal["column", "type", "syntax", "value", "engine"] = "value"
    """`engine`: right as it stands, and not to be had on the engine of its sub-job."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What is known about a component before anything has run. A port whose schema is not known maps to None."""

    outputs: dict[str, Schema | None] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    lineage: dict[str, dict[str, tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    """Output port -> column -> the (input port, column) pairs it is made of."""


class Unknown:
    """Stands in params for a value that is not known before the run (it depends on a global or an iteration)."""

    def __repr__(self) -> str:
        return "<not known before the run>"


UNKNOWN = Unknown()


NO_SCHEMAS: Mapping[str, Schema] = MappingProxyType({})


class ComponentCatalog(Protocol):
    def types(self) -> list[str]: ...

    def describe(self, type: str) -> ComponentDescription | None:
        """None if no installed component has that type."""
        ...

    def ports(self, type: str, params: Mapping[str, Any]) -> Ports:
        """The ports of one use of a component; some types take them from their parameters."""
        ...

    def infer(
        self,
        type: str,
        params: Mapping[str, Any],
        inputs: Mapping[str, Schema | None],
        outputs: tuple[str, ...],
        folder: Path,
        declared: Mapping[str, Schema] = NO_SCHEMAS,
        engine: str = "duckdb",
    ) -> Inferred:
        """Check the parameters against the input schemas and return the schema of each of the `outputs` that are connected.
        `declared` are the schemas that the document gives for outputs. Values in `params` are rendered as far as they are
        known; the others are `UNKNOWN`. What cannot run on an engine of that kind is a mistake, too."""
        ...


@dataclass(frozen=True, slots=True)
class RowsRef:
    """Rows that crossed a scope, as the log holds them: durable Parquet in the result store."""

    ref: Json
    schema: Schema
    rows: int
    hash: str
