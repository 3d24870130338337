"""One component run: renders its parameters, fetches its rows, calls it, and turns its outcome into what the kernel takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, cast

import msgspec

from penstock.components import runner
from penstock.components.base import Call, Component, ComponentFailure, Iterator, Subjob
from penstock.components.runner import PatientThreads
from penstock.expr.template import ExpressionError, render
from penstock.kernel.decision import Decision
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.fans import Elements
from penstock.kernel.judge import Ended
from penstock.kernel.kept import part
from penstock.kernel.links import failed_in
from penstock.kernel.net import Link, Node, On
from penstock.kernel.state import ERROR, ComponentRun, Scope, add_rows
from penstock.kernel.values import Json, JsonMap
from penstock.ports.folders import base_of
from penstock.ports.job_scope import iteration_of, job_names
from penstock.ports.json_text import unwritable
from penstock.ports.leases import Caller, Lease, Reports
from penstock.ports.results import encodable, encodable_tree, materialised
from penstock.ports.rows import EngineChoice, EngineSession, Relation, RowsFailed
from penstock.tools.base import Source, ToolFailure
from penstock.worker.arrivals import Element, arrivals, must_last, readers
from penstock.worker.job_rows import JobRows
from penstock.worker.outcomes import child_failure
from penstock.worker.row_store import LazySession, schema_of
from penstock.worker.staged_globals import ReadOnly, StagedGlobals

WANTED_ROWS = 1_000
"""How many rows of an output that the caller of a job asks for are returned by value; if there are more, they go by
reference.
"""


class ComponentWork:
    def __init__(self, job: JobRows, lease: Lease, component: ComponentRun, reports: Reports) -> None:
        self.job = job
        self.lease = lease
        self.component = component
        self.reports = reports
        self.decider = lease.decider
        self.scope = self.decider.view_of(component)
        self.node: Node = self.decider.node_of(component)
        self.links: dict[str, list[Link]] = job.connected(self.node.name)
        self.globals = StagedGlobals(component.view, self.node.part.prefix if self.node.part else ())
        self.folder: Path = lease.context.folder

    @property
    def context(self) -> Any:
        return self.lease.context

    @property
    def choice(self) -> EngineChoice:
        """The engine of its sub-job."""
        return self.job.choice(self.node.name)

    def stand_in(self, name: str) -> ComponentWork:
        """The work of a later member of the same group: its parameters see what the head's see."""
        other = copy(self)
        other.node, other.links = self.decider.net.nodes[name], self.job.connected(name)
        other.folder = self.context.folder
        return other

    # ---- parameters

    async def params(self, kind: Component[Any]) -> Any:
        keys = self.context.keychain
        if keys.is_stale():
            await keys.fresh()
        task = self.node.tasks[0]
        templates = dict(task.params)
        if self.node.iterates is not None and self.node.iterates.while_:
            templates.pop("while", None)  # Evaluated before each iteration, not now.
        names = job_names(self.context, self.node, self.component, self.component.view, keychain=keys.view())
        values = materialised({name: render(template, names) for name, template in templates.items()})
        if (base := self.context.bases.get(self.node.name)) is not None:
            self.folder = base.rendered(lambda text: materialised(render(text, names)))
        if self.node.iterates is not None and self.node.iterates.while_:
            values["while"] = task.params.get("while")
        return self.job.components.convert(task.kind, keys.reveal(values))

    # ---- what it is given

    def call(self, engine: LazySession, inputs: dict[str, list[Relation]]) -> Call:
        services, context, component = self.job.services, self.context, self.component
        place, task = component.place.id, self.node.tasks[0]
        lines = context.lines.get((self.node.name, self.node.name), {})
        schemas = self.node.part.schemas if self.node.part else {}
        declared = {port: schema_of(columns) for port, columns in schemas.items()}
        return Call(
            self.node.name,
            component.place.id,
            context.execution_id,
            idempotency_key=f"{context.execution_id}/{place}",
            folder=self.folder,
            work=self.job.row_store.files,
            context=ReadOnly(context.workload),
            globals=self.globals,
            iteration=iteration_of(component.subjob.scope),
            inputs=inputs,
            connected=frozenset(self.links) | {port for name, port in context.outputs if name == self.node.name},
            declared=declared,
            engine=cast(EngineSession, engine),
            clock=services.clock,
            blobs=self.job.blobs,
            resources=services.resources,
            threads=services.threads,
            settings=services.settings,
            source=Source(context.files.get(self.node.name, context.file), dict(lines)),
            credential=context.keychain.credential,
            say=lambda line: services.say(place, None, line),
            show=lambda line: services.say(place, None, line),
            play=lambda path, values=None, return_step=None: self._play(path, values or {}, return_step, task.kind),
            play_job=lambda path, values=None, group=None: self._play(path, values or {}, None, task.kind, group),
            progress=lambda port, rows: services.progress(place, port, rows),
            standing=lambda: job_standing(self.decider),
            watermarks=part(context.scope.kept, "watermarks"),
            holds_secret=lambda text: context.keychain.hide(text) != text,
            subjob=self._subjob(),
        )

    def _subjob(self) -> Subjob:
        assert self.node.part is not None
        region = self.scope.spec.regions[self.node.part.region]
        commits = (self.node.part.container, self.node.part.region) in self.job.commits

        def is_reopened() -> bool:
            state = self.scope.subjob(region)
            return state is not None and any(one.kept for one in state.members.values())

        return Subjob(self.scope.subjob_scope(region), commits, is_reopened, lambda: failed_in(self.scope, region))

    async def _play(
        self, path: str, values: Mapping[str, Any], return_step: str | None, kind: str, group: str | None = None
    ) -> Any:
        component, lease = self.component, self.lease
        caller = Caller(
            self.context,
            component.place.id,
            (*component.place.clock, component.counter - 1),
            children=component.children,
            stop_reason=lambda: lease.stop_reason,
            iteration=iteration_of(component.subjob.scope),
            folder=base_of(self.folder, path),
            context_group=group,
        )
        played = await self.reports.play(caller, path, dict(values), return_step)
        if played.status == "completed":
            return played.result
        raise child_failure(path, played, exit_code=played.exit_code)

    def inputs(self) -> dict[str, list[Relation]]:
        """Blocking: looks up rows of an earlier process, and turns elements of an iteration into rows."""
        found: dict[str, list[Relation]] = {}
        for port, arrived in arrivals(self.decider, self.scope, self.node.name).items():
            found[port] = [self._relation(one, self.component.place.id) for one in arrived]
        return found

    def _relation(self, arrived: dict[str, Any] | Element, place: str) -> Relation:
        if not isinstance(arrived, Element):
            return self.job.row_store.find(arrived, self.choice)
        session = self.job.row_store.engine(self.choice).session()
        rows = session.load_mappings([arrived.rows])
        session.close([rows])
        self.job.row_store.keep(f"{place}:item", self.choice, rows, 1)
        return rows

    # ---- running

    async def perform(self) -> Ended | None:
        """Run the component. Returns None if it does not end yet: an iterator continues over its elements."""
        kind = self.job.components.get(self.node.tasks[0].kind)
        call: Call | None = None
        engine: LazySession | None = None
        elements: Elements | None = None
        try:
            engine = self.job.row_store.session(self.choice)
            params = await self.params(kind)
            threads = PatientThreads(self.job.services.threads, cast(EngineSession, engine))
            goes_on = self.component.fan is not None  # Over the elements of the first start; the rows may be gone.
            inputs = await threads.run(self.inputs) if self.component.rows_in and not goes_on else {}
            call = self.call(engine, inputs)
            if isinstance(kind, Iterator):
                elements = await self._elements(kind, params, call)
                end = Ended()
            else:
                result = await runner.run(kind, params, call)
                end = await threads.run(self._outputs, call) if call.outputs else Ended()
                end.after = cast(JsonMap, self.job.normaliser.result(dict(call.after))) if call.after else {}
                end.result = self.job.normaliser.result(result)
                self._put_writes(end)
        except ComponentFailure as error:
            end = self.failed(error)
        except ToolFailure as error:
            end = self.failed(_of_tool(error))
        except RowsFailed as error:
            end = self.failed(ComponentFailure(error.kind, error.message, retryable=error.retryable))
        except ExpressionError as error:
            end = self.failed(ComponentFailure("expression", str(error), expression=error.text, variable=error.name))
        except PenstockError as error:
            whose = "unavailable" if isinstance(error, Unavailable) else "refused"
            end = self.failed(ComponentFailure(whose, error.message, hint=error.hint))
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            end = self.failed(
                ComponentFailure("not_serialisable", f"what it gave back cannot be written as JSON: {error}")
            )
        except (OSError, MemoryError) as error:
            end = self.failed(ComponentFailure("resource", str(error) or type(error).__name__))
        finally:
            if engine is not None:
                engine.close(call.outputs.values() if call is not None else ())
        if call is not None and isinstance(end.error, dict) and end.error["kind"] != "not_serialisable":
            end.after = cast(JsonMap, self.job.normaliser.result(dict(call.after)))  # Error links see it, too.
        if elements is not None:
            # Outside the `try`: from here on an error is the engine's, not the component's.
            # An iteration may remove what its elements were found by, so a resume needs the list of them. Inside another
            # iteration only the end is kept, so there the list is built again.
            is_listed = elements.items is not None and not _is_iterated(self.component)
            self.reports.decide(elements, is_durable_first=is_listed)
            return None
        return end

    async def _elements(self, kind: Iterator[Any], params: Any, call: Call) -> Elements:
        """How many elements there are, which, how many run at a time, and how their globals are merged."""
        run = self.component
        parallel, mode = max(1, int(getattr(params, "parallel", 1))), str(getattr(params, "globals", "accumulate"))
        kept = self.component.fan
        if kept is not None:  # A resume continues over the elements of the first start.
            return Elements(run, kept.total, kept.items, parallel, mode)
        assert self.node.iterates is not None
        if self.context.sample is not None and self.node.iterates.while_:
            return Elements(run, 1, None, 1, mode)
        if self.node.iterates.while_:
            return Elements(run, None, None, 1, mode)
        items = await runner.elements(kind, params, call)
        if self.context.sample is not None:  # A preview looks at the first element only.
            items = items[:1]
        kept_items = await self.job.services.threads.run(self.job.normaliser.result, items)
        return Elements(run, len(items), kept_items, parallel, mode)

    def failed(self, error: ComponentFailure) -> Ended:
        hide = self.context.keychain.hide
        said: JsonMap = {"kind": error.kind, "message": encodable(hide(error.message)), "retryable": error.retryable}
        for key, value in error.detail.items():
            if value is not None:
                said[key] = encodable_tree(self.context.keychain.hide_tree(value))
        said["component"] = self.component.place.id
        if error.detail.get("raised_at"):  # The author's own file: `penstock logs` names it as well.
            self.job.services.say(self.component.place.id, None, f"error: {said['message']}")
        dies = error.kind == "die"
        end = Ended(ERROR, error=said, exit_code=error.exit_code if dies else None, dies=dies)
        try:
            self._put_writes(end)
        except ComponentFailure:
            end.writes = {}
        return end

    def _put_writes(self, end: Ended) -> None:
        """Store copies of the values, so that later changes by the component's code have no effect (J5.1)."""
        sets = set()
        for key, value in self.globals.staged().items():
            if isinstance(value, set | frozenset):
                sets.add(key)
            try:
                end.writes[key] = self.job.normaliser.result(_listed_set(value) if key in sets else value)
            except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
                message = f"the global cannot be written as JSON: {unwritable(value, f'global.{key}', error)}"
                raise ComponentFailure("not_serialisable", message, key=key) from None
        end.sets, end.deletes = frozenset(sets), self.globals.deleted()

    # ---- what it leaves

    def _outputs(self, call: Call) -> Ended:
        end = Ended()
        for port in sorted(call.connected):
            rows = call.outputs.get(port)
            if rows is not None:
                end.rows_out[port] = rows.rows
                end.outputs[port] = self.kept(port, rows)
        return end

    def kept(self, port: str, rows: Relation) -> JsonMap:
        row_store, links = self.job.row_store, self.links.get(port, [])
        at = f"{self.component.place.id}:{port}"
        is_wanted = (self.node.name, port) in self.context.outputs
        output: JsonMap = {"rows": rows.rows, "hash": rows.hash, "at": at}
        is_asked_of_run = is_wanted and self.context.sample is None and self.context.depth == 0
        is_large = is_wanted and self.context.sample is None and rows.rows > WANTED_ROWS
        if must_last(self.decider.plan, self.node.name, links) or is_large or is_asked_of_run:
            output.update(row_store.store(rows, self.choice))
        if is_wanted and not is_asked_of_run:  # No caller would read them as values.
            output["wanted"] = self._wanted(rows, output)
        if not links and not is_wanted:  # Only their number was asked for.
            row_store.engine(self.choice).drop(rows)
            return output
        row_store.keep(at, self.choice, rows, -1 if is_wanted else readers(self.decider.plan, links))
        return output

    def _wanted(self, rows: Relation, output: JsonMap) -> Json:
        columns = [column.name for column in rows.schema]
        wanted: JsonMap = {"columns": cast(Json, columns), "row_count": rows.rows}
        sample = self.context.sample
        if sample is None and rows.rows > WANTED_ROWS:
            return {**wanted, "stored": output["stored"]}
        session = self.job.row_store.engine(self.choice).session()
        try:
            limit = f" LIMIT {sample}" if sample is not None else ""
            table = session.rows(f'SELECT * FROM "rows"{limit}', {"rows": rows})
            values = [dict(zip(columns, one, strict=True)) for batch in table for one in batch]
        finally:
            session.close()
        return {**wanted, "rows": self.job.normaliser.result(_jsonable(values))}

    def was_read(self) -> None:
        """The component has ended and no longer needs its inputs."""
        for arrived in arrivals(self.decider, self.scope, self.node.name).values():
            for one in arrived:
                if not isinstance(one, Element) and "at" in one:
                    self.job.row_store.was_read(str(one["at"]))


def _of_tool(error: ToolFailure) -> ComponentFailure:
    failure = ComponentFailure(error.kind, error.message, retryable=error.retryable)
    failure.detail = error.detail
    return failure


def _listed_set(values: Any) -> list[Any]:
    return sorted(values, key=lambda one: (type(one).__name__, str(one)))


def _jsonable(values: list[dict[str, Any]]) -> Any:
    return msgspec.to_builtins(values, str_keys=True)


def _count_rows(scope: Scope, into: dict[str, dict[str, int]]) -> None:
    add_rows(into, scope)
    for inner in _open_iterations(scope):
        _count_rows(inner, into)


def _open_iterations(scope: Scope) -> list[Scope]:
    found: list[Scope] = []
    run: ComponentRun
    for run in scope.runs.values():
        if run.fan is not None:
            found += run.fan.open.values()
        if run.inside is not None:
            found += _open_iterations(run.inside)
    return found


def _is_iterated(component: ComponentRun) -> bool:
    """Whether it lies in the body of an iterator, at any depth."""
    scope: Scope | None = component.subjob.scope
    while scope is not None:
        if scope.index is not None:
            return True
        scope = scope.opener.subjob.scope if scope.opener is not None else None
    return False


def job_standing(d: Decision) -> JsonMap:
    """The progress of a job, for the components that watch it: log catchers, flow meters, statistics."""
    components: JsonMap = {}
    _add_standing(d.execution, components, len(d.execution.prefix))
    return {"components": components, "edges": _standing_edges(d)}


def _add_standing(container: Scope, into: JsonMap, cut: int) -> None:
    """Add the components under their names in the job, without the prefix of the execution."""
    component: ComponentRun
    for scope, component in container.runs.items():
        after = component.view.seen().after.get(scope.removeprefix(container.prefix), {})
        into[scope[cut:]] = {
            "state": component.status,
            "type": component.type,
            "rows_in": component.rows_in,
            "rows_out": component.rows_out,
            "ms": after.get("DURATION_MS"),
            "error": component.error,
            "after": after,
        }
        if component.inside is not None:
            _add_standing(component.inside, into, cut)
        if component.fan is not None:
            failures: JsonMap = {f"{scope[cut:]}[#{at}]": error for at, error in sorted(component.fan.failures.items())}
            into[scope[cut:]]["failures"] = failures  # type: ignore[index,call-overload]
            for inner in component.fan.open.values():
                _add_standing(inner, into, cut)


def _standing_edges(d: Decision) -> Json:
    """Links inside the body of an iterator carry the rows of all its iterations, except those that failed."""
    counts: dict[str, dict[str, int]] = {}
    _count_rows(d.execution, counts)
    carried: Counter[tuple[str, str]] = Counter()
    for scope, ports in counts.items():
        for port, rows in ports.items():
            carried[d.plan.node_of(scope), port] += rows
    edges: list[Json] = []
    for link in d.net.links:
        if link.on is On.DATA:
            edges.append(
                {
                    "from": f"{link.source}.{link.port}",
                    "to": f"{link.target}.{link.to_port}",
                    "on": "data",
                    "rows": carried[link.source, link.port],
                }
            )
        elif not link.hidden:
            edges.append({"from": link.source, "to": link.target, "on": link.on.value})
    return edges
