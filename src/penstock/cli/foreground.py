"""A run in the foreground: shown while it goes, stopped by signals so that it can be resumed, and summarised at its end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.cli.engine import next_command
from penstock.cli.output import is_terminal, put_json
from penstock.cli.show.playbook_progress import Progress
from penstock.cli.show.watcher import TICK_S, F, Folding, Nobody, Watcher
from penstock.kernel.errors import Bug, Unavailable
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.results import loader
from penstock.server.runs import RunSummary, RunUnderWay

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.cli.show.job_progress import JobProgress
    from penstock.cli.show.playbook_summary import Where
    from penstock.ports.log import Header
    from penstock.projections.jobs import JobStanding
    from penstock.server.documents import Documents, Pinned


T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 3


def watcher_for(title: str, *, is_silent: bool) -> Watcher[Progress]:
    if is_silent:
        return Nobody()
    from penstock.cli.show.playbook_live import LiveTree, StepLines  # Only what is shown is loaded.

    return LiveTree(title) if is_terminal(sys.stderr) else StepLines(title)


def job_watcher_for(title: str, *, is_silent: bool) -> Watcher[JobProgress]:
    if is_silent:
        return Nobody()
    from penstock.cli.show.job_live import JobLines, JobTree  # Only what is shown is loaded.

    return JobTree(title) if is_terminal(sys.stderr) else JobLines(title)


def in_foreground(
    engine: Embedded,
    run: RunUnderWay,
    begin: Callable[[], Awaitable[T]],
    progress: F,
    watcher: Watcher[F],
    grace_s: float,
) -> T:
    """Run to the end, or to the first signal. The engine is closed when this returns."""
    if not isinstance(watcher, Nobody):
        engine.observers.append(progress.observer())
        engine.line_observers.append(progress.line_observer())
    return asyncio.run(_Foreground(engine, run, progress, watcher, grace_s).run(begin))


class _Foreground(Generic[F]):
    def __init__(self, engine: Embedded, run: RunUnderWay, progress: F, watcher: Watcher[F], grace_s: float) -> None:
        self.engine = engine
        self.under_way = run
        self.progress = progress
        self.watcher = watcher
        self.grace_s = grace_s
        self._was_interrupted = False

    async def run(self, begin: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        ticker = asyncio.ensure_future(self._tick())
        try:
            try:
                return await begin()
            finally:
                ticker.cancel()
                with suppress(asyncio.CancelledError):
                    await ticker
                self._look()
                self.watcher.close(self.progress)
        finally:
            try:
                await self.engine.close()
            finally:
                for number in SIGNALS:
                    loop.remove_signal_handler(number)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self.watcher.show(self.progress)

    def _look(self) -> None:
        if isinstance(self.watcher, Nobody):
            return
        self.progress.fold(time.time())
        host = self.under_way.host
        if host is not None:
            self.progress.look_at(host.stream.tree)

    def _on_signal(self, number: int) -> None:
        if self._was_interrupted:
            self._end_at_once()
        self._was_interrupted = True
        name = signal.Signals(number).name
        self.under_way.interrupt(name, self.grace_s)
        self.watcher.note(f"{name}: stopping, so that the run can be resumed; once more ends it at once")

    def _end_at_once(self) -> None:
        """What is durable is safe; the rest is what a crash would have cost."""
        self.watcher.close(self.progress)
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(INTERRUPTED)


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """A run from its start, or its resumption, to its exit code. What is shown of it depends on its kind."""

    engine: Embedded
    run: RunUnderWay
    begin: Callable[[], Awaitable[RunSummary]]
    options: Namespace
    home: Path
    net: Net
    where: Where
    changed: list[JsonMap] | None = None
    """Of a run that is resumed: the files that have changed since it was started."""

    @property
    def is_silent(self) -> bool:
        return bool(self.options.json or self.options.quiet)

    @property
    def title(self) -> str:
        return f"{getattr(self.options, 'file', None) or 'resumed'}  run {self.run.execution_id}"

    def drive(self) -> int:
        return self._job() if self.net.kind == "job" else self._playbook()

    def _playbook(self) -> int:
        progress = Progress()
        watcher = watcher_for(self.title, is_silent=self.is_silent)
        summary = self._guarded(
            lambda: in_foreground(self.engine, self.run, self.begin, progress, watcher, self.options.grace), progress
        )
        if self.options.json:
            self._put(summary.as_json())
        else:
            from penstock.cli.show.playbook_summary import tell  # `--json` prints no summary.

            tell(summary, progress, self.home, self.where)
        return summary.exit_code

    def _job(self) -> int:
        from penstock.cli.show.job_progress import JobProgress  # Only jobs need it.

        progress = JobProgress(self.net)
        watcher = job_watcher_for(self.title, is_silent=self.is_silent)
        if not self.is_silent:
            self.engine.progress_observers.append(progress.rows_observer())
        header, summary, standing = self._guarded(
            lambda: in_foreground(self.engine, self.run, self._begin_job, progress, watcher, self.options.grace),
            progress,
        )
        if self.options.json:
            from penstock.projections.jobs import job_json  # Only jobs need it.

            self._put(job_json(header, standing, summary))
        else:
            from penstock.cli.show.job_summary import tell_job  # Only jobs need it.

            run = self.run.execution_id
            tell_job(summary, standing, run, self.home, self.where, is_quiet=self.options.quiet)
        return summary.exit_code

    def _put(self, view: JsonMap) -> None:
        more: JsonMap = {} if self.changed is None else {"changed": list(self.changed)}
        put_json({**view, **more})

    async def _begin_job(self) -> tuple[Header, RunSummary, JobStanding]:
        """What the job came to is read from the log while that is still open."""
        from penstock.projections.jobs import job_standing  # Only jobs need it.

        summary = await self.begin()
        entries = self.engine.log.read(self.run.execution_id)
        load = loader(self.engine.blobs)
        standing = job_standing(entries, self.net, load=load, with_iterations=self.options.json)
        header = self.engine.log.header(self.run.execution_id)
        assert header is not None
        return header, summary, standing

    def _guarded(self, drive: Callable[[], T], progress: Folding) -> T:
        try:
            return drive()
        except (Unavailable, Bug) as error:
            if getattr(self.options, "file", None) is None or progress.has_begun():
                again = f"to go on: {next_command(f'resume {self.run.execution_id}', self.home)}"
                error.hint = f"{error.hint}; {again}" if error.hint else again
            raise


def positions_in(documents: Documents, document: Pinned) -> Where:
    def where(step: str, task: str | None) -> str:
        _, compiled = documents.compile(document)
        found = compiled.places.tasks.get((step, task)) if task else None
        place = found or compiled.places.steps.get(step)
        return f"{place.file}:{place.line}" if place is not None and place.line else ""

    return where
