"""One run that somebody else works on, shown while it goes and told of when it is over, from here to its exit code.

Law: the run is another's. Whoever stops watching stops nothing: Ctrl-C leaves it running and says how to come back to it.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.engine import run_named, views_of
from penstock.cli.naming import next_command
from penstock.cli.output import put_json, say
from penstock.kernel.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from penstock.cli.engine import Engine
    from penstock.cli.following import Feed
    from penstock.ports.log import Header
    from penstock.server.changes import Change
    from penstock.server.views import Views

POLL_S = 0.5
LEFT = 3
"""The exit code of who leaves before the run is over."""
PLAYBOOK = ("execution_id", "kind", "name", "status", "exit_code", "error", "ctx", "result", "counts", "duration_ms")
"""What `run --json` prints of a playbook."""
ONLY_SHOWN = ("label", "crashed", "file")


@dataclass
class Watched:
    engine: Engine
    feed: Feed
    run_id: str
    options: Namespace
    title: str
    place: Path | str
    """The state folder, or the URL of the server."""
    compiled: Any = None
    """The document, if it is a file here: places are then told under the name that was typed."""
    changed: list[Change] | None = None
    """Of a run that was resumed: the files that have changed since it was started."""

    def followed(self) -> int:
        """Show the run until it is over."""
        try:
            return self._told(follow=True)
        except KeyboardInterrupt:  # Before it is followed, or after.
            return self._leave()
        except Unavailable as error:
            raise Unavailable(
                f"{error.message}; run {self.run_id} was not followed to its end, and may go on",
                f"`{next_command(f'watch {self.run_id}', self.place)}` looks again",
            ) from error

    def summarised(self) -> int:
        """Of a run that is over, what it came to."""
        return self._told(follow=False)

    @property
    def _is_silent(self) -> bool:
        return bool(self.options.json or self.options.quiet)

    @cached_property
    def _views(self) -> Views:
        return views_of(self.engine)

    def _header(self) -> Header:
        return run_named(self.engine, self.run_id)

    def _told(self, *, follow: bool) -> int:
        return self._job(follow) if self._header().kind == "job" else self._playbook(follow)

    def _playbook(self, follow: bool) -> int:
        from penstock.cli.progress import Progress
        from penstock.cli.running import watcher_for
        from penstock.cli.summary import tell
        from penstock.server.runs import RunSummary

        progress = Progress()
        watcher = watcher_for(f"{self.title}  run {self.run_id}", is_silent=self._is_silent)
        if not self._is_followed(progress, watcher, follow):
            return self._leave()
        view: Any = self._views.shown(self._header())
        if self.options.json:
            return self._put_json({name: view[name] for name in PLAYBOOK if name in view})
        summary = RunSummary(
            view["execution_id"],
            view["kind"],
            view["name"],
            view["status"],
            view["error"],
            view["ctx"],
            view["result"],
            view["counts"],
            view["duration_ms"],
            view["exit_code"],
        )
        tell(summary, progress, self.place, self._where)
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _job(self, follow: bool) -> int:
        from penstock.cli.job_progress import JobProgress
        from penstock.cli.job_summary import tell_job
        from penstock.cli.running import job_watcher_for
        from penstock.server.documents import DocumentInvalid
        from penstock.server.views import job_shown

        try:
            net = self._views.book(self._header()).root()[0]
        except DocumentInvalid:
            return self._unwatched()
        progress = JobProgress(net)
        watcher = job_watcher_for(f"{self.title}  run {self.run_id}", is_silent=self._is_silent)
        if follow and not self._is_followed(progress, watcher, follow):
            return self._leave()
        header, views = self._header(), self._views
        if self.options.json:
            view = views.shown(header)
            return self._put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
        standing = views.job(header, with_iterations=False)
        shown = job_shown(views.status_of(header), header, standing)
        tell_job(shown, standing, self.run_id, self.place, self._where, is_quiet=self.options.quiet)
        return LEFT if shown.exit_code is None else shown.exit_code

    def _unwatched(self) -> int:
        """The job uses what is known to its server alone, such as plug-ins of its project: only its end is waited for."""
        while self._header().status == "running":
            time.sleep(POLL_S)
        view: Any = self._views.shown(self._header())
        if self.options.json:
            return self._put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
        say(f"{view['status']} after {float(view['duration_ms']) / 1000:.1f} s  (run {self.run_id})")
        say(f"to see it:   {next_command(f'show {self.run_id}', self.place)}")
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _put_json(self, view: dict[str, Any]) -> int:
        more = {} if self.changed is None else {"changed": [change.as_json() for change in self.changed]}
        put_json({**view, **more})
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _is_followed(self, progress: Any, watcher: Any, follow: bool) -> bool:
        from penstock.cli.following import Following

        if follow:
            return asyncio.run(Following(self.feed, progress, watcher).to_the_end())
        see = progress.observer()
        for entry in self.engine.log.read(self.run_id):
            see(entry)
            progress.fold(time.time())
        return True

    def _leave(self) -> int:
        at = " at the server" if isinstance(self.place, str) else ""
        say(f"run {self.run_id} goes on{at}")
        say(f"to see it:   {next_command(f'watch {self.run_id}', self.place)}")
        say(f"to stop it:  {next_command(f'cancel {self.run_id}', self.place)}")
        return LEFT

    def _where(self, step: str, task: str | None) -> str:
        """Where in the file a step is, if that can be compiled here."""
        places = self._places
        if places is None:
            return ""
        found = places.tasks.get((step, task)) if task else None
        place = found or places.steps.get(step)
        return f"{place.file}:{place.line}" if place is not None and place.line else ""

    @cached_property
    def _places(self) -> Any:
        if self.compiled is not None:
            return self.compiled.places if self.compiled.net is not None else None
        try:
            return self._views.book(self._header()).root()[1].places
        except PenstockError:
            return None
