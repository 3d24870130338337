"""Fused groups: a chain of relational components that runs as one query.

The group runs when its heads have started. Every member still starts and ends by itself, in its turn, with its own row
counts: it finds its outcome ready. If the query fails, its results are discarded and the members run one by one, so that
exactly the right one ends in ERROR.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast

from penstock.components import columns, runner
from penstock.components.base import ComponentFailure, PlanCall, Sink
from penstock.components.runner import PatientThreads
from penstock.expr.template import ExpressionError
from penstock.kernel.errors import PenstockError
from penstock.kernel.judge import Ended
from penstock.kernel.net import On
from penstock.kernel.state import ComponentRun as Component
from penstock.kernel.values import Json, JsonMap
from penstock.ports.rows import EngineSession, Relation, RowsFailed, Schema, Stage, Staged
from penstock.tools.base import ToolFailure
from penstock.tools.places.mirror import Mirror
from penstock.worker.component_work import ComponentWork
from penstock.worker.job_rows import JobRows
from penstock.worker.row_store import LazySession


class Group:
    """One group in one scope."""

    def __init__(self, job: JobRows, members: tuple[str, ...]) -> None:
        self.job = job
        self.members = members
        self.heads = {name for name in members if not self._sources(name)}
        self.started: dict[str, ComponentWork] = {}
        self.results: dict[str, Staged] = {}
        self.is_unfused = False
        self._settled = asyncio.Event()
        self._kinds: dict[str, tuple[Any, Any, PlanCall]] = {}

    def _sources(self, name: str) -> dict[str, tuple[str, str]]:
        """Input port -> (member, port) that feeds it, for inputs fed from within the group."""
        inside = set(self.members)
        links = [link for link in self.job.decider.plan.inbound[name] if link.on is On.DATA and link.source in inside]
        return {link.to_port: (link.source, link.port) for link in links}

    async def perform(self, run: ComponentWork) -> Ended | None:
        """The outcome of one member; None if it has to run by itself."""
        name = run.node.name
        if name in self.heads and not self._settled.is_set():
            self.started[name] = run
            if len(self.started) == len(self.heads):
                await self._run(run)
            else:
                await self._settled.wait()
        if self.is_unfused or name not in self.results:
            return None
        return self._ended(run, self.results[name])

    async def _run(self, last: ComponentWork) -> None:
        engine: LazySession | None = None
        mirror: Mirror | None = None
        try:
            engine = self.job.row_store.session(last.choice)
            mirror = runner.mirror_of(last.call(engine, {}))
            threads = PatientThreads(self.job.services.threads, cast(EngineSession, engine), mirror)
            stages = await self._stages(last, engine, mirror, threads)
            if stages is None:
                self.is_unfused = True
            else:
                made = await self._fuse(engine, stages)
                if mirror.has_targets:
                    await PatientThreads(self.job.services.threads, mirror).run(runner.send, mirror)
                self.results = made
        except (ComponentFailure, ToolFailure, RowsFailed, ExpressionError, PenstockError, OSError):
            self.is_unfused = True
        finally:
            if engine is not None:
                engine.close([rows for staged in self.results.values() for rows in staged.relations.values()])
            if mirror is not None:
                await runner.close_mirror(mirror, self.job.services.threads)
            self._settled.set()

    async def _fuse(self, engine: Any, stages: list[Stage]) -> dict[str, Staged]:
        # A cancel waits until the query has stopped: a thread inside DuckDB does not survive the end of the process.
        return await PatientThreads(self.job.services.threads, engine).run(engine.fuse, stages)  # type: ignore[no-any-return]

    async def _stages(
        self, last: ComponentWork, engine: LazySession, mirror: Mirror, threads: PatientThreads
    ) -> list[Stage] | None:
        """None if some member, as it is used here, cannot be part of a larger query."""
        for name in self.members:
            run = self.started.get(name) or last.stand_in(name)
            kind = self.job.components.get(run.node.tasks[0].kind)
            params = await run.params(kind)
            connected = frozenset(run.links)
            if not runner.wants_fusion(kind, params, connected):
                return None
            if not connected and not isinstance(kind, Sink):
                return None  # Nothing reads its output, so it has no place in a query.
            call = replace(run.call(engine, {}), mirror=mirror)
            if columns.is_counted(call.declared):
                return None
            self._kinds[name] = (kind, params, call.plan(connected))
        return await threads.run(self._built)  # type: ignore[no-any-return]

    def _built(self) -> list[Stage] | None:
        schemas: dict[tuple[str, str], Schema] = {}
        stages: list[Stage] = []
        session = self.job.row_store.engine(self.job.choice(self.members[0])).session()
        try:
            for name in self.members:
                kind, params, call = self._kinds[name]
                inputs: dict[str, tuple[str, str] | Relation] = dict(self._sources(name))
                if name in self.started:
                    for port, relations in self.started[name].inputs().items():
                        if len(relations) != 1:
                            return None
                        inputs[port] = relations[0]
                known = {port: _schema(source, schemas) for port, source in inputs.items()}
                wanted = frozenset() if name != self.members[-1] else call.connected
                stage = runner.stage(kind, name, params, inputs, known, call, wanted)
                stages.append(stage)
                tables = {port: session.empty(schema) for port, schema in known.items()}
                for port, query in stage.selects.items():
                    found = schemas[name, port] = session.describe(query, tables)
                    if not columns.agrees(found, call.declared.get(port, found)):
                        return None
        finally:
            session.close(())
        return stages

    def _ended(self, run: ComponentWork, staged: Staged) -> Ended:
        end = Ended()
        name = run.node.name
        kind, params, call = self._kinds[name]
        for port in sorted(run.links):
            end.rows_out[port] = staged.rows.get(port, 0)
            rows = staged.relations.get(port)
            end.outputs[port] = (
                run.kept(port, rows) if rows is not None else self._passed(name, port, end.rows_out[port])
            )
        end.after = runner.uncounted(kind, run.links)
        if isinstance(kind, Sink):
            kind.finish(params, call, staged.rows.get("", 0))
        return end

    def _passed(self, name: str, port: str, rows: Json) -> JsonMap:
        """Rows that passed through the query and were never stored: their hash covers the query that made them and their
        number."""
        made_by = repr((self.job.context.net.digest, self.job.context.workload, name, port, rows))
        return {"rows": rows, "hash": f"plan:{sha256(made_by.encode()).hexdigest()[:32]}"}


def _schema(source: tuple[str, str] | Relation, known: Mapping[tuple[str, str], Schema]) -> Schema:
    return source.schema if isinstance(source, Relation) else known[source]


def group_of(job: JobRows, component: Component, name: str) -> Group | None:
    part = job.decider.plan.locations[name]
    if part.group is None or part.group not in job.context.net.groups:
        return None
    members = job.context.net.groups[part.group]
    # Its rows must be kept, so they cannot just pass through.
    if any(name in members for name, _ in job.context.outputs):
        return None
    key = (component.subjob.scope.id, part.group)
    group = job.groups.get(key)
    if group is None:
        group = job.groups[key] = Group(job, members)
    return group
