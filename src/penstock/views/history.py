"""What the log says about each step run: how it came to be, what its tasks did, how it ended and what followed.

Law: one pass, and memory that grows with the number of step runs, never with the number of events. Iterations are counted,
of task runs only the last few are kept, and a large value is named by the number of the entry that holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.kernel.fanout import SETTLED, SHARDS
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.ports.wire import step_run_of
from penstock.views.fanouts import FANOUT_HANDLERS, begun
from penstock.views.history_seen import (
    KEPT_ATTEMPTS,
    Attempt,
    ExecutionSeen,
    Iterations,
    Selected,
    StepRun,
    TaskSeen,
)

KEPT_FAILURES = 20

__all__ = [
    "KEPT_ATTEMPTS",
    "Attempt",
    "ExecutionSeen",
    "History",
    "Iterations",
    "Selected",
    "StepRun",
    "TaskSeen",
    "Watch",
    "add",
    "earlier_of",
    "history",
    "job_around",
]


@dataclass(slots=True)
class History:
    runs: dict[str, StepRun] = field(default_factory=dict)
    executions: dict[str, ExecutionSeen] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    watched: list[Entry] = field(default_factory=list)
    """Entries that `watch` asked for, whole."""
    last_ts: float = 0.0

    @property
    def root(self) -> ExecutionSeen | None:
        return self.executions.get("")

    def in_order(self) -> list[StepRun]:
        """Every token and step run in canonical order; tokens that were consumed together with others are left out."""
        return sorted((run for run in self.runs.values() if run.joined is None), key=lambda run: run.order)

    def of_step(self, step: str, execution: str | None = None) -> list[StepRun]:
        found = [run for run in self.runs.values() if run.step == step and run.joined is None]
        if execution is not None:
            found = [run for run in found if run.execution == execution]
        return sorted(found, key=lambda run: run.order)


def job_around(node: str, seen: History) -> str | None:
    """The scope of the job that a full scope lies in; None when it lies in none, or in a playbook that the job runs."""
    inside = [scope for scope in seen.executions if node.strip().startswith(scope)]
    nearest = max(inside, key=len, default="")
    execution = seen.executions.get(nearest)
    return nearest if execution is not None and execution.kind == "job" else None


def earlier_of(execution: str, seen: History) -> list[str]:
    """The executions that this one goes on from, the first of them first."""
    found: list[str] = []
    one = seen.executions.get(execution)
    while one is not None and one.continues is not None:
        found.insert(0, f"{one.continues}/")
        one = seen.executions.get(found[0])
    return found


Watch = Callable[[Entry], bool]


def history(entries: Iterable[Entry], watch: Watch | None = None) -> History:
    seen = History()
    for entry in entries:
        add(seen, entry)
        if watch is not None and watch(entry):
            seen.watched.append(entry)
    return seen


def add(seen: History, entry: Entry) -> None:
    seen.counts[entry.type] += 1
    seen.last_ts = entry.ts
    handler = _HANDLERS.get(entry.type)
    if handler is not None:
        handler(seen, entry)


def _payload(entry: Entry) -> Any:
    return decode(entry.payload)


# ---- executions


def _started(seen: History, entry: Entry) -> None:
    data = _payload(entry)
    execution = ExecutionSeen(
        entry.scope, data["name"], data["entry"], entry.ts, data.get("document"), data.get("parent")
    )
    execution.continues = data.get("continues")
    seen.executions[entry.scope] = execution


def _job_started(seen: History, entry: Entry) -> None:
    """What happens inside a job is not for this history; that it ran, and how it ended, is."""
    if entry.scope in seen.executions:
        _resumed(seen, entry)
        return
    _started(seen, entry)
    seen.executions[entry.scope].kind = "job"


def _interrupted(seen: History, entry: Entry) -> None:
    execution = seen.executions[entry.scope]
    execution.status = "interrupted"
    execution.stops.append((entry.ts, str(_payload(entry).get("reason", ""))))


def _resumed(seen: History, entry: Entry) -> None:
    execution = seen.executions[entry.scope]
    execution.status, execution.error, execution.ended_at, execution.stopped_seq = "running", None, None, None
    execution.resumes.append(entry.ts)


def _cancelling(seen: History, entry: Entry) -> None:
    execution = seen.executions[entry.scope]
    execution.cancel_reason = str(_payload(entry).get("reason", ""))
    execution.stopped_seq = execution.stopped_seq or entry.seq


def _ended(seen: History, entry: Entry) -> None:
    execution = seen.executions[entry.scope]
    data = _payload(entry)
    execution.status, execution.error, execution.ended_at = data["status"], data.get("error"), entry.ts


# ---- tokens and step runs


def _token_created(seen: History, entry: Entry) -> None:
    data = _payload(entry)
    scope = entry.scope
    seen.runs[scope] = StepRun(
        scope,
        data["step"],
        scope[: scope.rfind("/") + 1],
        entry.clock,
        entry.ts,
        entry.seq,
        data.get("origin"),
        data.get("arc"),
        data.get("parent_step_run_id"),
        entry.cause,
    )


def _token_refused(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    data = _payload(entry)
    run.status, run.rule, run.error, run.ended_at = "refused", data.get("rule"), data.get("error"), entry.ts


def _token_stranded(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    run.status, run.missing, run.ended_at = "stranded", list(_payload(entry).get("missing", ())), entry.ts


def _scheduled(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    data = _payload(entry)
    run.status, run.visit, run.rule = "running", data["visit"], data.get("rule")
    run.scheduled_seq, run.started_at = entry.seq, entry.ts
    run.continues = data.get("continues")
    if run.continues in seen.runs:
        seen.runs[run.continues].continued_by = run.id
    for path in data.get("tokens") or ():
        token = f"{run.execution}{run.step}@{'.'.join(map(str, path))}"
        run.tokens.append(token)
        if token != run.id and token in seen.runs:
            seen.runs[token].joined, seen.runs[token].status = run.id, "joined"


def _run_ended(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    data = _payload(entry)
    run.status, run.error = data["status"], data.get("error")
    run.ended_at, run.end_seq = entry.ts, entry.seq
    run.under_way.clear()
    if run.fanout is not None and run.fanout.status == "running":  # Given up: it never came to its fan-in.
        run.fanout.status = "failed"


def _selected(seen: History, entry: Entry) -> None:
    data = _payload(entry)
    run = seen.runs[entry.scope]
    execution = seen.executions[run.execution]
    was_stopped = execution.stopped_seq is not None
    if data.get("abort") and not was_stopped:
        execution.stopped_seq = entry.seq
    run.selected = Selected(
        entry.seq,
        data["on"],
        list(data.get("arcs", ())),
        list(data.get("steps", ())),
        bool(data.get("unhandled")),
        was_stopped,
        data.get("error"),
    )


# ---- tasks and iterations


def _task_started(seen: History, entry: Entry) -> None:
    run = seen.runs[cast(str, step_run_of(entry.scope))]
    data = _payload(entry)
    label = data["task"]
    task = run.tasks.get(label)
    if task is None:
        task = run.tasks[label] = TaskSeen(label, data["kind"])
    task.runs += 1
    task.attempts = max(task.attempts, data["attempt"])
    if entry.task is not None:
        run.under_way[entry.task] = Attempt(entry.task, label, data["kind"], data["attempt"], entry.ts)
    if task.status != "error" or run.iterations is None:
        task.status = "running"


def _task_done(seen: History, entry: Entry) -> None:
    run = seen.runs[cast(str, step_run_of(entry.scope))]
    data = _payload(entry)
    task = run.tasks[data["task"]]
    outcome: JsonMap = data["outcome"]
    status, error = cast(str, outcome.get("status")), outcome.get("error")
    attempt = run.under_way.pop(entry.task or "", None) or Attempt("", task.name, task.kind, data["attempt"], entry.ts)
    attempt.ended_at, attempt.status, attempt.error = entry.ts, status, error
    attempt.do, attempt.next, attempt.rule = data["do"], data["next"], data.get("rule")
    attempt.delay, attempt.failure = data.get("delay", 0.0), data.get("error")
    if run.iterations is None:
        task.status, task.error = status, error
        run.attempts.append(attempt)
    elif attempt.do == "fail":
        # Of a loop's tasks the failure is what must not be lost among thousands that went well.
        task.status = "error"
        task.error = task.error or error or attempt.failure
        run.attempts.append(attempt)
    elif task.status != "error":
        task.status = "ok"


def _loop_started(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    data = _payload(entry)
    if run.iterations is not None:  # Taken up again after a crash: what was counted stands.
        return
    before = seen.runs.get(run.continues or "")
    run.iterations = Iterations(data["total"], data.get("mode", "sequential"))
    if before is not None and before.iterations is not None:
        run.iterations.done = before.iterations.done


def _iteration_started(seen: History, entry: Entry) -> None:
    iterations = _iterations(seen, entry)
    if iterations is not None:
        iterations.open.add(_index(entry.scope))


def _iteration_done(seen: History, entry: Entry) -> None:
    iterations = _iterations(seen, entry)
    if iterations is not None:
        iterations.open.discard(_index(entry.scope))
        iterations.done += 1


def _iteration_failed(seen: History, entry: Entry) -> None:
    iterations = _iterations(seen, entry)
    if iterations is None:
        return
    index = _index(entry.scope)
    iterations.open.discard(index)
    iterations.failed += 1
    if len(iterations.failures) < KEPT_FAILURES:
        iterations.failures.append((index, _payload(entry).get("error")))


def _fanned_out(seen: History, entry: Entry) -> None:
    run = seen.runs[entry.scope]
    before = seen.runs.get(run.continues or "")
    run.fanout = begun(_payload(entry), before.fanout if before is not None else None)
    run.iterations = Iterations(run.fanout.size, "fan-out", run.fanout.done)


def _shards(seen: History, entry: Entry) -> None:
    run = seen.runs.get(entry.scope) or seen.runs[entry.scope[: entry.scope.rfind("[")]]
    fanout, iterations = run.fanout, run.iterations
    if fanout is None or iterations is None:
        return
    data = _payload(entry)
    FANOUT_HANDLERS[entry.type](fanout, entry, data)
    if entry.type == "loop.shard.done":
        seen.counts[SHARDS] += data["done"]
    elif entry.type == "loop.shard.failed":
        seen.counts[SHARDS] += not data["again"] and data["range"] != SETTLED
    iterations.total, iterations.done, iterations.failed = fanout.size, fanout.done, fanout.failed
    iterations.failures = [(one.index, one.error) for one in fanout.failures] if iterations.failed else []


def _iterations(seen: History, entry: Entry) -> Iterations | None:
    return seen.runs[entry.scope[: entry.scope.rfind("[")]].iterations


def _index(scope: str) -> int:
    return int(scope[scope.rfind("[") + 1 : -1])


_HANDLERS: dict[str, Callable[[History, Entry], None]] = {
    "playbook.started": _started,
    "playbook.interrupted": _interrupted,
    "playbook.resumed": _resumed,
    "playbook.cancelling": _cancelling,
    "playbook.completed": _ended,
    "playbook.failed": _ended,
    "playbook.cancelled": _ended,
    "job.started": _job_started,
    "job.interrupted": _interrupted,
    "job.cancelling": _cancelling,
    "job.completed": _ended,
    "job.failed": _ended,
    "job.cancelled": _ended,
    "token.created": _token_created,
    "token.refused": _token_refused,
    "token.stranded": _token_stranded,
    "step.scheduled": _scheduled,
    "step.done": _run_ended,
    "step.failed": _run_ended,
    "loop.done": _run_ended,
    "next.selected": _selected,
    "task.started": _task_started,
    "task.done": _task_done,
    "loop.started": _loop_started,
    "loop.iteration.started": _iteration_started,
    "loop.iteration.done": _iteration_done,
    "loop.iteration.failed": _iteration_failed,
    "loop.fanout.started": _fanned_out,
    **dict.fromkeys(FANOUT_HANDLERS, _shards),
}
