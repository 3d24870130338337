"""Runs one job in this process: its components as asyncio tasks, its rows in one data plane."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock.kernel.decide import Decider, RunOver
from penstock.kernel.errors import Refused
from penstock.kernel.judge import Ended, stopped_component
from penstock.kernel.state import PENDING, RUNNING, ComponentRun, Scope
from penstock.ports.leases import Lease, Reports, ScopeContext
from penstock.worker.component_work import ComponentWork
from penstock.worker.fused import group_of
from penstock.worker.job_rows import JobRows
from penstock.worker.services import WorkerServices

MAX_BACKLOG = 20_000


class SubjobRunner(JobRows):
    def __init__(self, services: WorkerServices, context: ScopeContext, decider: Decider) -> None:
        super().__init__(services, context, decider)
        self._held: dict[str, tuple[asyncio.Task[None], Lease]] = {}

    # ---- components

    def start(self, lease: Lease, component: ComponentRun, reports: Reports) -> None:
        task = asyncio.ensure_future(self._run(lease, component, reports))
        self._held[component.place.id] = (task, lease)

    async def _run(self, lease: Lease, component: ComponentRun, reports: Reports) -> None:
        try:
            end = await self._end_of(lease, component, reports)
            if end is not None and lease.stop_reason != "interrupt":
                self._report(lease, component, reports, end)
                if self.commits:
                    await self._roll_back_stopped()
        except asyncio.CancelledError:
            if lease.stop_reason == "cancel":
                self._report(lease, component, reports, stopped_component(component))
            elif lease.stop_reason is None:
                raise
        except Refused:
            return  # The server has already given up the component: a late report changes nothing.
        except Exception as error:  # An error of the engine: the whole execution must stop and say so.
            reports.broke(error)
        finally:
            self._held.pop(component.place.id, None)

    async def _end_of(self, lease: Lease, component: ComponentRun, reports: Reports) -> Ended | None:
        if lease.stop_reason is not None:
            raise asyncio.CancelledError
        if reports.backlog > MAX_BACKLOG:
            await reports.durable()
        run = ComponentWork(self, lease, component, reports)
        group = group_of(self, component, run.node.name)
        end = await group.perform(run) if group is not None else None
        if end is None:
            end = await run.perform()
        if component.rows_in:
            run.was_read()
        return end

    def _report(self, lease: Lease, component: ComponentRun, reports: Reports, end: Ended) -> None:
        reports.decide(RunOver(component, end))
        for key in component.view.seen().local if end.writes or end.deletes else ():
            if any(key.endswith(name) for name in (*end.writes, *end.deletes)):
                self.services.say(component.place.id, None, _stays_local(key))
        self._let_go_of(component.subjob.scope)

    async def _roll_back_stopped(self) -> None:
        """Roll back the transactions of stopped sub-jobs: a dying job does not start what would end them, and others wait
        for their locks."""
        from penstock.components.io.sql.transaction import transactions_of  # Only jobs with SQL need it: start-up time.

        regions = self.decider.state.subjobs

        def is_over(subjob: str) -> bool:
            return subjob not in regions or regions[subjob].status not in (PENDING, RUNNING)

        transactions = await transactions_of(self.services.resources, self.context.execution_id)
        await transactions.roll_back(is_over)

    def _let_go_of(self, container: Scope) -> None:
        """Drop what is held for iterations that have closed, this one or one around it."""
        around: Scope | None = container
        while around is not None:
            if around.index is not None and not _is_open(around):
                self.row_store.drop_under(around.prefix)
                for key in [key for key in self.groups if key[0].startswith(around.prefix)]:
                    del self.groups[key]
            around = around.opener.subjob.scope if around.opener is not None else None

    # ---- letting go

    async def stop(self, lease: Lease, reason: str, grace_s: float) -> None:
        lease.stop_reason = lease.stop_reason or (reason if reason == "cancel" else None)
        held = [task for task, held_by in self._held.values() if held_by is lease]
        if held:
            # At least one turn of the loop: a task that is cancelled before its first step could report nothing.
            await asyncio.wait(held, timeout=max(0.0, grace_s))
        lease.stop_reason = reason
        while held := [task for task, held_by in self._held.values() if held_by is lease]:
            for task in held:
                task.cancel()
            await asyncio.wait(held)

    async def close(self) -> None:
        if self.row_store.is_open:
            await self.services.threads.run(self.row_store.close)
        if self.context.scope.place.id:
            with suppress(OSError):  # The run is not a job itself, and this was the last job in it that had rows.
                self.row_store.folder.parent.rmdir()


def _is_open(iteration: Scope) -> bool:
    iterator = iteration.opener.fan if iteration.opener is not None else None
    return iterator is not None and iterator.open.get(iteration.index or 0) is iteration


def _stays_local(key: str) -> str:
    return f"warning: the global `{key}` was made by another sub-job; list it under `global_export` to change it for everyone"
