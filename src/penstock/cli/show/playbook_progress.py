"""The progress of a playbook, folded from its entries while they are made.

Law: it may cost the run almost nothing. The counts of loops are read from the state, and a payload is decoded only when something
in it is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.show.watcher import Heard, Inbox
from penstock.kernel.evolve import Execution
from penstock.kernel.values import Json
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.ports.wire import step_of, step_run_of
from penstock.views.wording import elements

KEPT_RUNS = 200
MOST_TOLD = 20

_RETRY = b'"do":"retry"'
_FAIL = b'"do":"fail"'
_UNMATCHED = b'"rule":null'
_ERROR = b'"status":"error"'


@dataclass(slots=True, eq=False)
class Shown:
    """One step run on the screen."""

    id: str
    step: str
    depth: int
    started_at: float
    visit: int = 1
    ended_at: float | None = None
    status: str = "running"
    error: Json = None
    task: str = ""
    attempt: int = 1
    retry_at: float | None = None
    is_loop: bool = False
    total: int | None = None
    """Of a loop: how many elements; None while it is not known."""
    done: int = 0
    failed: int = 0
    out: int = 0
    """Of a fanned-out loop: how many ranges are out."""
    told: int = 0
    """So many of its elements and ranges that come again were news."""
    line: str = ""
    failed_task: str = ""
    failed_index: int | None = None


@dataclass(frozen=True, slots=True)
class News:
    """Something worth a line of its own. `what`: started, done, failed, refused, retry, line."""

    what: str
    run: Shown
    at: float
    text: str = ""


@dataclass(slots=True)
class Progress(Inbox[News]):
    runs: dict[str, Shown] = field(default_factory=dict)
    open: dict[str, Shown] = field(default_factory=dict)
    failures: list[Shown] = field(default_factory=list)
    before: deque[Shown] = field(default_factory=lambda: deque(maxlen=20))
    """The last step runs that were done."""
    ended: int = 0

    def has_begun(self) -> bool:
        """Whether anything was written down yet."""
        return bool(self.runs or self.ended or self._waiting)

    def _take(self, entry: Entry) -> None:
        handler = _HANDLERS.get(entry.type)
        if handler is not None:
            handler(self, entry)

    def _hear(self, heard: Heard, now: float) -> None:
        run = self.runs.get(step_run_of(heard.scope) or "")
        if run is not None:
            run.line = heard.line
            self.news.append(News("line", run, now, heard.line))
            return
        around, _, component = heard.scope.rpartition("/")  # A component of a job that a task runs.
        while around and run is None:
            run = self.runs.get(step_run_of(around) or "")
            around = around.rpartition("/")[0]
        if run is not None:
            run.line = f"{component} | {heard.line}"
            self.news.append(News("line", run, now, run.line))

    def look_at(self, tree: Execution) -> None:
        """The state knows how far loops are, and which runs were under way before this process took the execution up."""
        for run in tree.runs.values():
            shown = self.runs.get(run.place.id)
            if shown is None:
                shown = _shown(run.place.id, run.scheduled_at, run.visit)
                self.runs[shown.id] = self.open[shown.id] = shown
            loop = run.loop or run.fanout
            if loop is not None:
                shown.is_loop, shown.total, shown.done, shown.failed = True, loop.total, loop.done, loop.failed
            if run.fanout is not None:
                shown.out = len(run.fanout.out)

    def _drop_old(self) -> None:
        if len(self.runs) <= KEPT_RUNS:
            return
        for run_id, run in list(self.runs.items()):
            if run.ended_at is not None and run not in self.failures:
                del self.runs[run_id]
            if len(self.runs) <= KEPT_RUNS:
                return


def _data(entry: Entry) -> Any:
    return decode(entry.payload)


def _shown(scope: str, at: float, visit: int = 1) -> Shown:
    return Shown(scope, step_of(scope) or "", scope.count("/") // 2, at, visit)


def _scheduled(seen: Progress, entry: Entry) -> None:
    run = _shown(entry.scope, entry.ts, _data(entry)["visit"])
    seen.runs[run.id] = seen.open[run.id] = run
    seen.news.append(News("started", run, entry.ts))
    seen._drop_old()


def _ended(seen: Progress, entry: Entry) -> None:
    run = seen.open.pop(entry.scope, None)
    if run is None:  # It was under way before this process took the run up, and ended before anybody looked.
        run = seen.runs[entry.scope] = _shown(entry.scope, entry.ts)
    run.ended_at, run.retry_at = entry.ts, None
    seen.ended += 1
    is_looped = b'"looped":true' in entry.payload
    data = _data(entry) if is_looped or entry.type == "step.failed" else {}
    if is_looped and isinstance(data["result"], dict):
        run.is_loop, run.out = True, 0
        run.total, run.done, run.failed = (data["result"][name] for name in ("total", "done", "failed"))
    if entry.type == "step.failed":
        run.status, run.error = "failed", data.get("error")
        if len(seen.failures) < 100:
            seen.failures.append(run)
    else:
        run.status = "done"
        seen.before.append(run)
    seen.news.append(News(run.status, run, entry.ts))


def _refused(seen: Progress, entry: Entry) -> None:
    data = _data(entry)
    run = Shown(
        entry.scope,
        data["step"],
        entry.scope.count("/") // 2,
        entry.ts,
        visit=0,
        ended_at=entry.ts,
        status="refused",
        error=data.get("error"),
    )
    seen.runs[entry.scope] = run
    seen.news.append(News("refused", run, entry.ts))


def _task_started(seen: Progress, entry: Entry) -> None:
    run = seen.open.get(entry.scope)  # Not found for a task of an iteration, of which there are thousands a second.
    if run is None or entry.task is None:
        return
    run.task = entry.task.rpartition("/")[2].rpartition("#")[0]
    run.retry_at = None
    run.attempt = 1 if entry.payload.endswith(b'"attempt":1}') else _data(entry)["attempt"]


def _task_done(seen: Progress, entry: Entry) -> None:
    if _RETRY in entry.payload:
        _retried(seen, entry)
    elif _FAIL in entry.payload:
        run = seen.open.get(step_run_of(entry.scope) or "")
        if run is not None and not run.failed_task:
            run.failed_task = _data(entry)["task"]
            index = entry.scope.rpartition("[")[2]
            run.failed_index = int(index[:-1]) if entry.scope.endswith("]") else None
    elif _UNMATCHED in entry.payload and _ERROR in entry.payload:
        _passed_over(seen, entry)


def _passed_over(seen: Progress, entry: Entry) -> None:
    """An error that no rule matched ends nothing, and is probably not intended."""
    data = _data(entry)
    run = seen.open.get(step_run_of(entry.scope) or "")
    if run is None or data["outcome"]["status"] != "error" or data["rule"] is not None:
        return
    said = (data["outcome"].get("error") or {}).get("message", "error")
    place = entry.scope[len(run.id) :]
    text = f"task {data['task']}{place} attempt {data['attempt']}: no rule of its policy matches, so it goes on: {said}"
    _tell(seen, run, entry.ts, text)


def _retried(seen: Progress, entry: Entry) -> None:
    data = _data(entry)
    run = seen.open.get(step_run_of(entry.scope) or "")
    if run is None or data["do"] != "retry":
        return
    if entry.scope == run.id:
        run.retry_at = entry.ts + data.get("delay", 0.0)
    error = data["outcome"].get("error") or {}
    wait = data.get("delay") or 0.0
    place = entry.scope[len(run.id) :]
    text = f"task {data['task']}{place} attempt {data['attempt']}: {error.get('message', 'error')}; again in {wait:g} s"
    seen.news.append(News("retry", run, entry.ts, text))


def _shard_failed(seen: Progress, entry: Entry) -> None:
    run = seen.open.get(entry.scope[: entry.scope.rfind("[")])
    if run is None:
        return
    data = _data(entry)
    if data["again"]:
        text = f"element [{data['iter_index']}] failed: {(data['error'] or {}).get('message', 'error')}; it comes again"
        _tell(seen, run, entry.ts, text)
    elif run.failed_index is None:
        run.failed_index = data["iter_index"]


def _shards_returned(seen: Progress, entry: Entry) -> None:
    run = seen.open.get(step_run_of(entry.scope) or "")
    if run is not None and b'"reason":"lost"' in entry.payload:
        data = _data(entry)
        if entry.scope not in (run.id, f"{run.id}[{data['lo']}]"):
            return  # Told of each element: once is enough.
        whose = f" {data['worker']}" if data["worker"] else ""
        text = f"worker{whose} was lost with range {data['range']}; {elements(data['lo'], data['hi'])} again"
        _tell(seen, run, entry.ts, text)


def _tell(seen: Progress, run: Shown, at: float, text: str) -> None:
    """Something that went wrong and ended nothing. Of thousands the first few are enough: `show` has the count."""
    run.told += 1
    if run.told <= MOST_TOLD:
        seen.news.append(News("retry", run, at, text))


_HANDLERS: dict[str, Callable[[Progress, Entry], None]] = {
    "step.scheduled": _scheduled,
    "step.done": _ended,
    "step.failed": _ended,
    "loop.done": _ended,
    "token.refused": _refused,
    "task.started": _task_started,
    "task.done": _task_done,
    "loop.shard.failed": _shard_failed,
    "loop.shard.returned": _shards_returned,
}
