"""One component run on the real engine, from plain rows to plain rows.

ran = run("filter", {"where": "amount > 3"}, {"input": [{"amount": 1}, {"amount": 5}]})
ran.outputs == {"main": [{"amount": 5}], "reject": [...]}

`mistakes(type, params, inputs)` and `columns(type, params, inputs)` ask the same component before the run.
`run_example(yaml)` walks the data links of a small job with one component after another.
"""

from __future__ import annotations

import asyncio
import atexit
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.components import runner
from penstock.components.base import Call, Component, ComponentFailure, Iterator
from penstock.components.registry import ComponentRegistry
from penstock.data import select
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.ports.ambient import SystemClock
from penstock.ports.components import Inferred, Mistake
from penstock.ports.rows import Column, EngineSession, Relation, Schema
from penstock.tools.base import Settings, Source
from penstock.tools.parameters import convert
from penstock.worker.services import SharedResources
from penstock.worker.threads import DaemonThreads

REGISTRY = ComponentRegistry()
THREADS = DaemonThreads()
Rows = Sequence[Mapping[str, Any]]
MANY = 10_000
"""So many rows are not loaded one by one."""

__all__ = ["Ran", "columns", "infer", "make_call", "mistakes", "run", "run_example", "schema"]


@dataclass(frozen=True)
class Ran:
    outputs: dict[str, list[dict[str, Any]]]
    result: Any = None
    after: dict[str, Any] = field(default_factory=dict)
    globals: dict[str, Any] = field(default_factory=dict)
    """What the component wrote."""
    said: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    schemas: dict[str, Schema] = field(default_factory=dict)
    """Of the outputs."""
    given: dict[str, Schema] = field(default_factory=dict)
    """Of the inputs."""

    @property
    def main(self) -> list[dict[str, Any]]:
        return self.outputs["main"]


class StagedGlobals(MutableMapping[str, Any]):
    def __init__(self, visible: Mapping[str, Any]) -> None:
        self._visible = dict(visible)
        self.writes: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self.writes[key] if key in self.writes else self._visible[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.writes[key] = value

    def __delitem__(self, key: str) -> None:
        del self.writes[key]

    def __iter__(self) -> Any:
        return iter({**self._visible, **self.writes})

    def __len__(self) -> int:
        return len({**self._visible, **self.writes})


def schema(**columns: str) -> Schema:
    """`schema(a="BIGINT", b="VARCHAR")`."""
    return tuple(Column(name, type) for name, type in columns.items())


def run(
    type: str | Component[Any],
    params: Mapping[str, Any],
    inputs: Mapping[str, Rows | Sequence[Rows]] = MappingProxyType({}),
    *,
    connected: Iterable[str] | None = None,
    folder: Path | None = None,
    context: Mapping[str, Any] = MappingProxyType({}),
    globals: Mapping[str, Any] = MappingProxyType({}),
    credentials: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    schemas: Mapping[str, Schema] | None = None,
    **overrides: Any,
) -> Ran:
    """Run one component; raises ComponentFailure. A port with a list of lists of rows gets one relation per list.

    `connected`: the output ports that are read, all but wild-card ones unless told. `schemas`: of inputs, for rows that do not show
    their types (`{"input": schema(a="DATE")}`), and of outputs as the document would declare them. Anything else is a field of Call.
    """
    component = REGISTRY.get(type) if isinstance(type, str) else type
    if connected is None:
        connected = [port.name for port in component.ports(params).outputs if not port.is_wild]
    shapes = schemas or {}
    staged, said, shown = StagedGlobals(globals), list[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="component-") as work:
        session = _engine().session()
        try:
            call = make_call(
                session,
                Path(work),
                folder=folder or Path(work),
                context=MappingProxyType(dict(context)),
                globals=staged,
                credentials=credentials,
                inputs={port: _relations(session, rows, shapes.get(port)) for port, rows in inputs.items()},
                connected=frozenset(connected),
                declared={port: one for port, one in shapes.items() if port not in inputs},
                say=said.append,
                show=shown.append,
                **overrides,
            )
            result = asyncio.run(_result(component, params, call))
            return Ran(
                {port: _rows(session, relation) for port, relation in call.outputs.items()},
                result,
                dict(call.after),
                staged.writes,
                said,
                shown,
                {port: relation.schema for port, relation in call.outputs.items()},
                {port: relations[0].schema for port, relations in call.inputs.items()},
            )
        finally:
            session.close(())


@cache
def _engine() -> DuckDbEngine:
    """One for all calls of this process: to open it takes longer than most of them. A session drops what was made in it."""
    folder = tempfile.mkdtemp(prefix="component-rows-")
    engine = DuckDbEngine(Path(folder))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(engine.close)
    return engine


async def _result(component: Component[Any], params: Mapping[str, Any], call: Call) -> Any:
    try:
        model = _converted(component, params)
        if isinstance(component, Iterator):
            return await runner.elements(component, model, call)
        return await runner.run(component, model, call)
    finally:
        await call.resources.close()  # type: ignore[attr-defined]


def make_call(session: EngineSession, work: Path, **fields: Any) -> Call:
    """A Call as the engine would give it; any field can be given by name, and `credentials` as a mapping."""
    known = fields.pop("credentials", {})

    def credential(name: str) -> dict[str, Any]:
        if name not in known:
            raise ComponentFailure("credential", f"there is no keychain entry `{name}`")
        return dict(known[name])

    async def no_child(*arguments: object, **named: object) -> Any:
        raise ComponentFailure("child", "this call has no children")

    defaults: dict[str, Any] = {
        "component": "it",
        "place": "it",
        "execution_id": "run-1",
        "idempotency_key": "run-1/it",
        "folder": work,
        "work": work,
        "context": {},
        "globals": {},
        "iteration": None,
        "inputs": {},
        "connected": frozenset(),
        "declared": {},
        "engine": session,
        "clock": SystemClock(),
        "blobs": MemoryBlobs(),
        "resources": SharedResources(),
        "threads": THREADS,
        "settings": Settings(),
        "source": Source(file="job.yaml"),
        "credential": credential,
        "say": lambda line: None,
        "show": lambda line: None,
        "play": no_child,
        "play_job": no_child,
        "progress": lambda port, rows: None,
        "standing": lambda: {"components": {}, "edges": []},
    }
    return Call(**(defaults | fields))


def _converted(component: Component[Any], params: Mapping[str, Any]) -> Any:
    if component.type in REGISTRY.types():
        return REGISTRY.convert(component.type, params)
    return convert(component.type, component.Params, params)


def _relations(session: EngineSession, rows: Any, schema: Schema | None) -> list[Relation]:
    if isinstance(rows, Relation):
        return [rows]
    several = rows if rows and isinstance(rows[0], (list, tuple)) else [rows]
    return [_loaded(session, list(one), schema) for one in several]


def _loaded(session: EngineSession, rows: list[Mapping[str, Any]], schema: Schema | None) -> Relation:
    if not rows:
        assert schema is not None, "an empty input needs its columns in `schemas`"
        return session.empty(schema)
    if len(rows) > MANY and schema is None:
        return session.load_arrow(pyarrow.Table.from_pylist(rows))
    return session.load_mappings([rows], schema)


def _rows(session: EngineSession, relation: Relation) -> list[dict[str, Any]]:
    names = [column.name for column in relation.schema]
    query = select.sql(select.query("SELECT * FROM rows_of_it"))
    found = [
        dict(zip(names, row, strict=True)) for batch in session.rows(query, {"rows_of_it": relation}) for row in batch
    ]
    assert len(found) == relation.rows, "a relation knows how many rows it has"
    return found


def infer(
    type: str,
    params: Mapping[str, Any],
    inputs: Mapping[str, Schema | None] = MappingProxyType({}),
    outputs: Iterable[str] | None = None,
    folder: Path = Path("/nonexistent"),
) -> Inferred:
    """What is said of a component before the run."""
    if outputs is None:
        outputs = [port.name for port in REGISTRY.ports(type, params).outputs if not port.is_wild]
    return REGISTRY.infer(type, params, inputs, tuple(outputs), folder)


def mistakes(
    type: str, params: Mapping[str, Any], inputs: Mapping[str, Schema | None] = MappingProxyType({})
) -> list[Mistake]:
    return list(infer(type, params, inputs).mistakes)


def columns(
    type: str, params: Mapping[str, Any], inputs: Mapping[str, Schema | None] = MappingProxyType({}), port: str = "main"
) -> dict[str, str] | None:
    """Name -> type of the columns that will leave a port, or None when that is not known."""
    found = infer(type, params, inputs, [port])
    assert not found.mistakes, found.mistakes
    shape = found.outputs[port]
    return None if shape is None else {column.name: column.type for column in shape}


def document_of(text: str) -> Any:
    """YAML as the engine reads it, where `on` is a word and not a truth value."""
    loaded = load_text(text)
    assert loaded.root is not None, loaded.problems
    return to_json(loaded.root)


_LINK = re.compile(r"([\w-]+)(?:\.([\w-]+))? *-> *([\w-]+)(?:\.([\w-]+))?")


def run_example(text: str, folder: Path) -> dict[str, Ran]:
    """Run a job of plain components joined by data links, in document order. Enough for the examples on the reference pages."""
    document = document_of(text)
    components = {one["name"]: one for one in document["components"]}
    links = _LINK.findall(_link_text((document.get("connections") or {}).get("data")))
    for source, port, target, into in links:
        assert source in components, source
        assert target in components, target
        _ports_exist(components[source], port, components[target], into)
    done: dict[str, Ran] = {}
    waiting = list(components)
    while waiting:
        name = next(one for one in waiting if all(link[0] in done for link in links if link[2] == one))
        waiting.remove(name)
        done[name] = _run_linked(components[name], links, done, folder)
    return done


def _link_text(data: Any) -> str:
    return "\n".join(data) if isinstance(data, list) else str(data or "")


def _ports_exist(source: Any, port: str, target: Any, into: str) -> None:
    assert REGISTRY.ports(source["type"], source.get("params") or {}).output(port or "main"), (source["type"], port)
    assert REGISTRY.ports(target["type"], target.get("params") or {}).input(into or "input"), (target["type"], into)


def _run_linked(one: Any, links: list[tuple[str, ...]], done: Mapping[str, Ran], folder: Path) -> Ran:
    inputs: dict[str, list[Rows]] = {}
    schemas: dict[str, Schema] = {}
    for source, port, _, into in [link for link in links if link[2] == one["name"]]:
        inputs.setdefault(into or "input", []).append(done[source].outputs[port or "main"])
        schemas[into or "input"] = done[source].schemas[port or "main"]
    read = {link[1] or "main" for link in links if link[0] == one["name"]}
    params = one.get("params") or {}
    plain = {port.name for port in REGISTRY.ports(one["type"], params).outputs if not port.is_wild}
    single = {port: rows[0] if len(rows) == 1 else rows for port, rows in inputs.items()}
    return run(one["type"], params, single, connected=read | plain, folder=folder, schemas=schemas)
