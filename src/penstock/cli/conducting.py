"""A run, begun anew or resumed, from here to its exit code. What is shown of it depends on what it runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.cli.naming import next_command
from penstock.cli.output import put_json
from penstock.kernel.errors import Bug, Unavailable
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap

if TYPE_CHECKING:
    from penstock.app.embedded import Embedded
    from penstock.cli.summary import Where
    from penstock.cli.watching import Folding
    from penstock.ports.log import Header
    from penstock.projections.jobs import JobStanding
    from penstock.server.documents import Documents, Pinned
    from penstock.server.runs import RunSummary, RunUnderWay

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Conduct:
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

    def conducted(self) -> int:
        return self._job() if self.net.kind == "job" else self._playbook()

    def _playbook(self) -> int:
        from penstock.cli.progress import Progress
        from penstock.cli.running import in_foreground, watcher_for

        progress = Progress()
        watcher = watcher_for(self.title, is_silent=self.is_silent)
        summary = self._guarded(
            lambda: in_foreground(self.engine, self.run, self.begin, progress, watcher, self.options.grace), progress
        )
        if self.options.json:
            self._put(summary.as_json())
        else:
            from penstock.cli.summary import tell

            tell(summary, progress, self.home, self.where)
        return summary.exit_code

    def _job(self) -> int:
        from penstock.cli.job_progress import JobProgress
        from penstock.cli.running import in_foreground, job_watcher_for

        progress = JobProgress(self.net)
        watcher = job_watcher_for(self.title, is_silent=self.is_silent)
        if not self.is_silent:
            self.engine.progress_observers.append(progress.rows_observer())
        header, summary, standing = self._guarded(
            lambda: in_foreground(self.engine, self.run, self._begin_job, progress, watcher, self.options.grace),
            progress,
        )
        if self.options.json:
            from penstock.projections.jobs import job_json

            self._put(job_json(header, standing, summary))
        else:
            from penstock.cli.job_summary import tell_job

            run = self.run.execution_id
            tell_job(summary, standing, run, self.home, self.where, is_quiet=self.options.quiet)
        return summary.exit_code

    def _put(self, view: JsonMap) -> None:
        more: JsonMap = {} if self.changed is None else {"changed": list(self.changed)}
        put_json({**view, **more})

    async def _begin_job(self) -> tuple[Header, RunSummary, JobStanding]:
        """What the job came to is read from the log while that is still open."""
        from penstock.ports.results import loader
        from penstock.projections.jobs import job_standing

        summary = await self.begin()
        entries = self.engine.log.read(self.run.execution_id)
        load = loader(self.engine.blobs)
        standing = job_standing(entries, self.net, load=load, with_iterations=self.options.json)
        header = self.engine.log.header(self.run.execution_id)
        assert header is not None
        return header, summary, standing

    def _guarded(self, conduct: Callable[[], T], progress: Folding) -> T:
        try:
            return conduct()
        except (Unavailable, Bug) as error:
            if getattr(self.options, "file", None) is None or progress.has_begun():
                again = f"to go on: {next_command(f'resume {self.run.execution_id}', self.home)}"
                error.hint = f"{error.hint}; {again}" if error.hint else again
            raise


def places(documents: Documents, document: Pinned) -> Where:
    def where(step: str, task: str | None) -> str:
        _, compiled = documents.compile(document)
        found = compiled.places.tasks.get((step, task)) if task else None
        place = found or compiled.places.steps.get(step)
        return f"{place.file}:{place.line}" if place is not None and place.line else ""

    return where
