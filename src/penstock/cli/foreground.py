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
from typing import TYPE_CHECKING, TypeVar

from penstock.cli.output import put_json
from penstock.cli.show.live import TICK_S, Nobody, Watcher, watcher_for
from penstock.cli.show.progress import Progress
from penstock.cli.show.watched import SIGNALS, early_signals
from penstock.cli.targets import next_command
from penstock.kernel.errors import Bug, Unavailable
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.server.runs import LocalRun, RunSummary

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.cli.show.summary import Where
    from penstock.ports.log import Header
    from penstock.server.documents import Documents, Pinned
    from penstock.views.answers import JobStanding


T = TypeVar("T")

INTERRUPTED = 3


def in_foreground(
    engine: Embedded,
    run: LocalRun,
    begin: Callable[[], Awaitable[T]],
    progress: Progress,
    watcher: Watcher,
    grace_s: float,
) -> T:
    """Run to the end, or to the first signal. The engine is closed when this returns."""
    if not isinstance(watcher, Nobody):
        engine.observers.append(progress.observer())
        engine.line_observers.append(progress.line_observer())
        if progress.is_job:
            engine.progress_observers.append(progress.rows_observer())
    with early_signals() as early:
        return asyncio.run(_Foreground(engine, run, progress, watcher, grace_s).run(begin, early))


class _Foreground:
    def __init__(self, engine: Embedded, run: LocalRun, progress: Progress, watcher: Watcher, grace_s: float) -> None:
        self.engine = engine
        self.under_way = run
        self.progress = progress
        self.watcher = watcher
        self.grace_s = grace_s
        self._was_interrupted = False
        self._is_watched = not isinstance(watcher, Nobody)
        self._catching_up: asyncio.Future[None] | None = None

    async def run(self, begin: Callable[[], Awaitable[T]], early: list[int]) -> T:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        for early_one in early:
            self._on_signal(early_one)
        header = self.engine.log.header(self.under_way.execution_id) if self._is_watched else None
        if header is not None and header.last_seq:
            self._catching_up = asyncio.ensure_future(asyncio.to_thread(self._catch_up, header.last_seq))
        ticker = asyncio.ensure_future(self._tick())
        try:
            try:
                return await begin()
            finally:
                ticker.cancel()
                with suppress(asyncio.CancelledError):
                    await ticker
                if self._catching_up is not None:
                    await self._catching_up
                self._look()
                self.watcher.close(self.progress)
        finally:
            try:
                await self.engine.close()
            finally:
                for number in SIGNALS:
                    loop.remove_signal_handler(number)

    async def _tick(self) -> None:
        if self._catching_up is not None:
            await asyncio.shield(self._catching_up)
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self.watcher.show(self.progress)

    def _catch_up(self, last: int) -> None:
        """Folds what happened before this process resumed the run. Entries that arrive meanwhile wait in the buffer of the
        progress."""
        from penstock.views.run_view import view_at  # Only a run that is resumed needs it.

        self.progress.start_from(view_at(self.engine.log, self.under_way.execution_id, last))

    def _look(self) -> None:
        if self._is_watched:
            self.progress.fold(time.time())

    def _on_signal(self, number: int) -> None:
        if self._was_interrupted:
            self._end_at_once()
        self._was_interrupted = True
        name = signal.Signals(number).name
        self.under_way.interrupt(name, self.grace_s)
        self.watcher.note(f"{name}: stopping, so that the run can be resumed; once more ends it at once")

    def _end_at_once(self) -> None:
        """Ends the process like a crash: what is durable is safe."""
        self.watcher.close(self.progress)
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(INTERRUPTED)


@dataclass(frozen=True, slots=True)
class ForegroundRun:
    """A run from its start, or its resumption, to its exit code. What is shown of it depends on its kind."""

    engine: Embedded
    run: LocalRun
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

    def _run(self, begin: Callable[[], Awaitable[T]]) -> tuple[Progress, T]:
        progress = Progress(self.net)
        watcher = watcher_for(self.title, is_job=progress.is_job, is_silent=self.is_silent)
        try:
            return progress, in_foreground(self.engine, self.run, begin, progress, watcher, self.options.grace)
        except (Unavailable, Bug) as error:
            if getattr(self.options, "file", None) is None or progress.has_begun():
                again = f"to go on: {next_command(f'resume {self.run.execution_id}', self.home)}"
                error.hint = f"{error.hint}; {again}" if error.hint else again
            raise

    def _playbook(self) -> int:
        progress, summary = self._run(self.begin)
        if self.options.json:
            self._put(summary.as_json())
        else:
            from penstock.cli.show.summary import tell  # `--json` prints no summary.

            tell(summary, progress, self.home, self.where)
        return summary.exit_code

    def _job(self) -> int:
        _, (header, summary, standing) = self._run(self._begin_job)
        if self.options.json:
            from penstock.views.answers import job_json  # Only jobs need it.

            self._put(job_json(header, standing, summary))
        else:
            from penstock.cli.show.summary import tell_job  # Only jobs need it.

            run = self.run.execution_id
            tell_job(summary, standing, run, self.home, self.where, is_quiet=self.options.quiet)
        return summary.exit_code

    def _put(self, view: JsonMap) -> None:
        more: JsonMap = {} if self.changed is None else {"changed": list(self.changed)}
        put_json({**view, **more})

    async def _begin_job(self) -> tuple[Header, RunSummary, JobStanding]:
        """Runs the job, and reads its result from the log while that is still open."""
        from penstock.views.answers import job_standing  # Only jobs need it.
        from penstock.views.run_view import RunView

        summary = await self.begin()
        entries = self.engine.log.read(self.run.execution_id)
        standing = job_standing(RunView.of(entries, listed=[""] if self.options.json else ()), self.net)
        header = self.engine.log.header(self.run.execution_id)
        assert header is not None
        return header, summary, standing


def positions_in(documents: Documents, document: Pinned) -> Where:
    def where(step: str, task: str | None) -> str:
        _, compiled = documents.compile(document)
        return compiled.positions.shown(step, task)

    return where
