"""A run that another process or a server works on, shown while it goes and summarised when it is over.

Law: watching changes nothing and can stop at any time: Ctrl-C leaves the run running and prints how to come back to it.
What is followed comes from a feed, which ends with the run.
"""

from __future__ import annotations

import asyncio
import signal
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.cli.output import put_json, say
from penstock.cli.show.live import TICK_S, Nobody, Watcher, watcher_for
from penstock.cli.show.progress import Progress
from penstock.cli.targets import next_command, run_named, views_of
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.ports.log import Entry

if TYPE_CHECKING:
    from penstock.cli.targets import Engine
    from penstock.dialects.source.positions import SourceMap
    from penstock.ports.log import Header
    from penstock.server.changes import Change
    from penstock.server.views import Views


POLL_S = 0.5
LEFT = 3
"""The exit code when watching ends before the run does."""
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
    target: Path | str
    """The state folder, or the URL of the server."""
    compiled: Any = None
    """The document, if it is a file here: positions are then shown under the name that was typed."""
    changed: list[Change] | None = None
    """Of a run that was resumed: the files that have changed since it was started."""

    def followed(self) -> int:
        """Show the run until it is over."""
        try:
            return self._shown(follow=True)
        except KeyboardInterrupt:  # Before it is followed, or after.
            return self._leave()
        except Unavailable as error:
            raise Unavailable(
                f"{error.message}; run {self.run_id} was not followed to its end, and may go on",
                f"`{next_command(f'watch {self.run_id}', self.target)}` looks again",
            ) from error

    def summarised(self) -> int:
        """Of a run that is over, what it came to."""
        return self._shown(follow=False)

    @property
    def _is_silent(self) -> bool:
        return bool(self.options.json or self.options.quiet)

    @cached_property
    def _views(self) -> Views:
        return views_of(self.engine)

    def _header(self) -> Header:
        return run_named(self.engine.log, self.run_id)

    def _shown(self, *, follow: bool) -> int:
        return self._job(follow) if self._header().kind == "job" else self._playbook(follow)

    def _playbook(self, follow: bool) -> int:
        from penstock.cli.show.summary import tell  # Only a run that is over is summed up.
        from penstock.server.runs import RunSummary

        progress = Progress()
        if not self._is_followed(progress, follow):
            return self._leave()
        view: Any = self._views.shown(self._header())
        if self.options.json:
            return self._put_json({name: view[name] for name in PLAYBOOK if name in view})
        summary = RunSummary(
            execution_id=view["execution_id"],
            kind=view["kind"],
            name=view["name"],
            status=view["status"],
            error=view["error"],
            held_ctx=view["ctx"],
            held_result=view["result"],
            counts=view["counts"],
            duration_ms=view["duration_ms"],
            own_exit_code=view["exit_code"],
        )
        tell(summary, progress, self.target, self._where)
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _job(self, follow: bool) -> int:
        from penstock.cli.show.summary import tell_job  # Only a run that is over is summed up.
        from penstock.server.documents import DocumentInvalid
        from penstock.server.views import job_shown

        try:
            net = self._views.book(self._header()).root()[0]
        except DocumentInvalid:
            return self._unwatched()
        if follow and not self._is_followed(Progress(net), follow):
            return self._leave()
        header, views = self._header(), self._views
        if self.options.json:
            view = views.shown(header)
            return self._put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
        standing = views.job(header, with_iterations=False)
        shown = job_shown(views.status_of(header), header, standing)
        tell_job(shown, standing, self.run_id, self.target, self._where, is_quiet=self.options.quiet)
        return LEFT if shown.exit_code is None else shown.exit_code

    def _unwatched(self) -> int:
        """Only waits for the end: the job uses plug-ins that this machine does not have."""
        while self._header().status == "running":
            time.sleep(POLL_S)
        view: Any = self._views.shown(self._header())
        if self.options.json:
            return self._put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
        say(f"{view['status']} after {float(view['duration_ms']) / 1000:.1f} s  (run {self.run_id})")
        say(f"to see it:   {next_command(f'show {self.run_id}', self.target)}")
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _put_json(self, view: dict[str, Any]) -> int:
        more = {} if self.changed is None else {"changed": [change.as_json() for change in self.changed]}
        put_json({**view, **more})
        return LEFT if view["exit_code"] is None else int(view["exit_code"])

    def _is_followed(self, progress: Progress, follow: bool) -> bool:
        if follow:
            title = f"{self.title}  run {self.run_id}"
            watcher = watcher_for(title, is_job=progress.is_job, is_silent=self._is_silent)
            with early_signals() as early:
                return asyncio.run(Following(self.feed, progress, watcher).to_the_end(early))
        progress.catch_up(self.engine.log.read(self.run_id))
        return True

    def _leave(self) -> int:
        at = " at the server" if isinstance(self.target, str) else ""
        say(f"run {self.run_id} goes on{at}")
        say(f"to see it:   {next_command(f'watch {self.run_id}', self.target)}")
        say(f"to stop it:  {next_command(f'cancel {self.run_id}', self.target)}")
        return LEFT

    def _where(self, step: str, task: str | None) -> str:
        """The position of a step or task, if the document can be compiled here."""
        return "" if self._positions is None else self._positions.shown(step, task)

    @cached_property
    def _positions(self) -> SourceMap | None:
        if self.compiled is not None:
            found: SourceMap | None = self.compiled.positions if self.compiled.net is not None else None
            return found
        try:
            return self._views.book(self._header()).root()[1].positions
        except PenstockError:
            return None


@dataclass(frozen=True, slots=True)
class Line:
    """What a tool or component printed."""

    scope: str
    task_run_id: str | None
    text: str


class Feed(Protocol):
    """The events and lines of one run."""

    note: Callable[[str], None]
    """Reports that no server answers, and that one does again."""

    def earlier(self) -> Iterator[Entry]:
        """Entries that are known already and not shown again; called from any thread."""
        ...

    def news(self) -> AsyncIterator[Entry | Line]:
        """New entries and lines, until the run is over."""
        ...


class Following:
    def __init__(self, feed: Feed, progress: Progress, watcher: Watcher) -> None:
        self._feed = feed
        self._progress = progress
        self._watcher = watcher
        self._take_entry = progress.observer()
        self._take_line = progress.line_observer()
        self._is_watched = not isinstance(watcher, Nobody)
        self._caught_up = asyncio.Event()
        """Set when the earlier entries are folded."""

    async def to_the_end(self, early: list[int]) -> bool:
        """Whether the run was followed to its end: False when a signal ended the watching."""
        self._feed.note = self._watcher.note
        loop, leave = asyncio.get_running_loop(), asyncio.Event()
        for number in SIGNALS:
            loop.add_signal_handler(number, leave.set)
        if early:
            leave.set()
        tasks = {
            asyncio.ensure_future(self._follow()),
            asyncio.ensure_future(leave.wait()),
            asyncio.ensure_future(self._tick()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return not leave.is_set()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._caught_up.is_set():
                self._look()
            self._feed.note = say
            self._watcher.close(self._progress)
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    async def _tick(self) -> None:
        await self._caught_up.wait()
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self._watcher.show(self._progress)

    def _look(self) -> None:
        if self._is_watched:
            self._progress.fold(time.time())

    async def _follow(self) -> None:
        if self._is_watched:
            await asyncio.to_thread(lambda: self._progress.catch_up(self._feed.earlier()))
        self._caught_up.set()
        async for item in self._feed.news():
            if isinstance(item, Line):
                self._take_line(item.scope, item.task_run_id, item.text)
            else:
                self._take_entry(item)


# ---- the signals that end the showing of a run


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def early_signals() -> Iterator[list[int]]:
    """Notes the signals that arrive before the event loop handles them. Without this, Ctrl-C at the moment in which the loop
    starts would leave a coroutine that nobody awaits, and Python would say so."""
    early: list[int] = []
    before = {number: signal.signal(number, lambda number, _: early.append(number)) for number in SIGNALS}
    try:
        yield early
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
