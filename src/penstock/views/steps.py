"""How a view takes in the events of a playbook: tokens, step runs, their tasks, loops and ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.ports.log import Entry
from penstock.views.bars import Bar
from penstock.views.contexts import merge, path_of
from penstock.views.model import (
    FAILED,
    JOINED,
    OK,
    REFUSED,
    RUNNING,
    STRANDED,
    Attempt,
    Execution,
    Failure,
    Fan,
    Range,
    Ranges,
    Retry,
    Run,
    Selected,
    Task,
    Totals,
    View,
)
from penstock.views.payload import Payload
from penstock.views.wording import error_line, seconds

KEPT_RUNS = 1_000
"""Step runs of one execution that have ended and are kept one by one, unless the view is whole."""
FAILURES_BESIDE = 1_000
"""So many runs that failed and were not handled are kept besides."""
SHARDS = "shards"
AT_FANIN = -1
"""The range of an element that failed at the fan-in, in logs of the first release."""
_STATUSES = {"done": OK, "failed": FAILED}

BARE = frozenset({"loop.iteration.started", "loop.iteration.done"})
"""The most frequent events, which need no payload."""

OfRun: TypeAlias = "Callable[[View, Execution, Run, Payload, Entry], None]"
OfRange: TypeAlias = "Callable[[View, Fan, Ranges, Payload, Entry], None]"


def _created(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    run = Run(entry.scope, data.step, entry.clock, entry.seq, entry.ts)
    run.origin, run.arc, run.parent, run.cause = data.origin, data.arc, data.parent_step_run_id, entry.cause
    execution.runs[name] = run


def _of_run(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    """An event of a step run, or of something in it. Events of a run that was dropped are ignored."""
    bracket = name.find("[")
    run = execution.runs.get(name if bracket < 0 else name[:bracket])
    if run is not None:
        _RUN_HANDLERS[entry.type](view, execution, run, data, entry)


def _refused(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    run.status, run.rule, run.error, run.ended_at = REFUSED, data.rule, data.error, entry.ts
    _close(view, execution, run)


def _stranded(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    run.status, run.missing, run.ended_at = STRANDED, data.missing, entry.ts


def _scheduled(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    run.status, run.visit, run.rule = RUNNING, data.visit, data.rule
    run.scheduled_seq, run.started_at, run.continues = entry.seq, entry.ts, data.continues
    if entry.ts > run.created_at:
        bar = Bar(run.created_at, entry.ts, "wait", OK, scope=run.id, seq=run.created_seq, last=entry.seq)
        bar.label = "for other tokens" if data.tokens else "to be let in"
        view.draw(execution, run.node, bar)
    before = view.run(run.continues)
    if before is not None:
        before.continued_by = run.id
    for path in data.tokens:
        token = f"{run.node}@{'.'.join(map(str, path))}"
        run.tokens.append(execution.scope + token)
        if token != run.name and token in execution.runs:
            execution.runs[token].joined, execution.runs[token].status = run.id, JOINED


def _began(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    run.worker_at = entry.ts
    if run.started_at is not None and entry.ts > run.started_at:
        bar = Bar(run.started_at, entry.ts, "wait", OK, scope=run.id, seq=run.scheduled_seq or 0, last=entry.seq)
        bar.label = "for a worker"
        view.draw(execution, run.node, bar)


def _ended(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    run.status, run.error = _STATUSES.get(data.status, data.status), data.error
    run.ended_at, run.end_seq = entry.ts, entry.seq
    run.under_way.clear()
    run.retries.clear()
    run.worker = run.worker or entry.worker
    if run.lease is not None:
        view.end_lease(execution, run.lease, entry.seq, entry.ts)
        run.lease = None
    _draw_run(view, execution, run, entry)
    if run.status == FAILED:
        view.mark("failure", entry, f"`{run.id}` failed: {error_line(run.error)}", run.node)
    ranges = run.fan.ranges if run.fan is not None else None
    if ranges is not None and ranges.status == RUNNING:  # Given up: it never came to its fan-in.
        ranges.status = FAILED
    elif run.fan is not None and run.fan.total is None:  # Nothing more will be claimed.
        run.fan.total = run.fan.known
    path = path_of(run.id)
    merge(execution.ctx, data.writes, path, path_of(run.continues) if run.continues is not None else None)
    if run.status == OK:
        execution.results[data.step] = data.result
        if path >= execution.result_path:
            execution.result, execution.result_path = data.result, path


def _draw_run(view: View, execution: Execution, run: Run, entry: Entry) -> None:
    since = run.started_at if run.started_at is not None else run.created_at
    bar = Bar(since, entry.ts, "run", run.status, failed=int(run.status == FAILED), scope=run.id)
    bar.seq, bar.last, bar.worker = run.scheduled_seq or run.created_seq, entry.seq, run.worker
    bar.label = run.node
    view.draw(execution, run.node, bar)


def _selected(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    was_stopped = execution.stopped_seq is not None
    if data.abort and not was_stopped:
        execution.stopped_seq = entry.seq
    run.selected = Selected(entry.seq, data.on, data.arcs, data.steps, data.unhandled, was_stopped, data.error)
    merge(execution.ctx, data.writes, path_of(run.id))
    arcs = execution.arcs.setdefault(run.node, {})
    for arc in data.arcs:
        arcs[arc] = arcs.get(arc, 0) + 1
    _close(view, execution, run)


def _close(view: View, execution: Execution, run: Run) -> None:
    if view.whole:
        return
    execution.closed.append(run.name)
    if len(execution.closed) > 2 * KEPT_RUNS:
        for each in execution.closed[:KEPT_RUNS]:
            _let_go(execution, each)
        del execution.closed[:KEPT_RUNS]


def _let_go(execution: Execution, name: str) -> None:
    run = execution.runs.get(name)
    if run is None:
        return
    is_telling = run.selected is not None and run.selected.unhandled and run.continued_by is None
    if is_telling and len(execution.runs) < 2 * KEPT_RUNS + FAILURES_BESIDE:
        return
    del execution.runs[name]
    for token in run.tokens:
        execution.runs.pop(token[len(execution.scope) :], None)
    run.ms = run.took * 1000
    execution.gone.setdefault(run.node, Totals()).add(run)


# ---- tasks and iterations


def _task_started(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    task = run.tasks.get(data.task)
    if task is None:
        task = run.tasks[data.task] = Task(data.task, data.kind)
    task.runs += 1
    task.attempts = max(task.attempts, data.attempt)
    run.worker, run.last_task, run.last_attempt = entry.worker, data.task, data.attempt
    view.hear(execution, run, entry, entry.ts)
    if run.retries:
        _tried_again(view, execution, run, entry)
    if entry.task is not None:
        run.under_way[entry.task] = Attempt(entry.task, data.task, data.kind, data.attempt, entry.ts, seq=entry.seq)
    if task.status != "error" or run.fan is None:
        task.status = RUNNING


def _task_ended(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    task = run.tasks.get(data.task)
    if task is None:  # A watcher may leave out the successful tasks of a loop.
        task = run.tasks[data.task] = Task(data.task)
    if not data.given_up:  # Else its holder is gone, and the server says it.
        view.hear(execution, run, entry, _began_at(data, entry))
    attempt = run.under_way.pop(entry.task or "", None)
    has_failed = data.outcome is not None and data.outcome.status == "error"
    bar = Bar(entry.ts, entry.ts, "attempt", FAILED if has_failed else OK, failed=int(has_failed), scope=entry.scope)
    bar.seq, bar.last, bar.label = entry.seq, entry.seq, data.task
    bar.attempt, bar.worker = data.attempt, entry.worker
    if attempt is not None:
        bar.since, bar.seq = attempt.started_at, attempt.seq
    view.draw(execution, run.node, bar)
    if data.do == "retry":
        run.retries[entry.scope] = Retry(data.task, data.attempt + 1, entry.ts, entry.ts + data.delay, entry.seq)
        _mark_retry(view, run, data, entry)
    if run.fan is not None and data.do != "fail":
        if task.status != "error":
            task.status = "ok"
        return
    attempt = attempt or Attempt("", task.name, task.kind, data.attempt, entry.ts, seq=entry.seq)
    attempt.end(data, entry.ts, entry.seq)
    run.try_out(attempt)
    if run.fan is None:
        task.status, task.error = attempt.status or "", attempt.error
    else:  # A failure must not be lost among thousands of successful tasks of a loop.
        task.status = "error"
        task.error = task.error or attempt.error or attempt.failure


def _began_at(data: Payload, entry: Entry) -> float:
    """A holder that goes on with a task of another one begins it anew, which only the end of the task tells."""
    meta = data.outcome.meta if data.outcome is not None else None
    return min(meta.started_at, entry.ts) if meta is not None and meta.started_at is not None else entry.ts


def _tried_again(view: View, execution: Execution, run: Run, entry: Entry) -> None:
    retry = run.retries.pop(entry.scope, None)
    if retry is not None and entry.ts > retry.since:
        bar = Bar(retry.since, entry.ts, "wait", OK, scope=entry.scope, seq=retry.seq, last=entry.seq)
        bar.label, bar.attempt = "for a retry", retry.attempt
        view.draw(execution, run.node, bar)


def _mark_retry(view: View, run: Run, data: Payload, entry: Entry) -> None:
    again = f"again in {seconds(data.delay)}" if data.delay else "again at once"
    error = f": {error_line(data.outcome.error)}" if data.outcome is not None and data.outcome.error else ""
    view.mark("retry", entry, f"`{entry.scope}`, `{data.task}`, attempt {data.attempt}{error}; {again}", run.node)


def _loop_started(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    view.hear(execution, run, entry, entry.ts)
    if run.fan is not None:  # Resumed after a crash: the counts stay.
        return
    before = view.run(run.continues)
    run.fan = Fan(data.total, data.mode, seq=entry.seq)
    if before is not None and before.fan is not None:
        run.fan.ok, run.fan.known = before.fan.ok, before.fan.size


def _claimed(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    if run.fan is not None:
        run.fan.known = data.hi or 0


def _iteration(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    fan = run.fan
    if fan is None:
        return
    index = int(entry.scope[entry.scope.rfind("[") + 1 : -1])
    if entry.type == "loop.iteration.started":
        fan.open.add(index)
        return
    fan.open.discard(index)
    if run.retries:
        run.retries.pop(entry.scope, None)
    if entry.type == "loop.iteration.done":
        fan.ok += 1
    else:
        fan.fail(Failure(index, data.error, seq=entry.seq))
        view.mark("failure", entry, f"`{entry.scope}` failed: {error_line(data.error)}", run.node)


# ---- ranges


def _fanned_out(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    """What was done in the failed run that this one goes on from stands; what failed is tried again."""
    ranges = Ranges(data.loop_id, data.is_paged)
    run.fan = Fan(data.total, "fan-out", ranges=ranges, seq=entry.seq)
    before = view.run(run.continues)
    if before is not None and before.fan is not None and before.fan.ranges is not None:
        old = before.fan.ranges
        run.fan.ok = before.fan.ok
        ranges.next, ranges.count, ranges.retried = old.next, old.count, old.retried
        ranges.lost, ranges.workers = old.lost, dict(old.workers)


def _of_range(view: View, execution: Execution, run: Run, data: Payload, entry: Entry) -> None:
    if run.fan is None or run.fan.ranges is None:
        return
    held = run.fan.ranges.out.get(data.range)
    _RANGE_HANDLERS[entry.type](view, run.fan, run.fan.ranges, data, entry)
    if entry.type == "loop.shard.failed":
        _mark_element(view, run, data, entry)
    elif entry.type == "loop.shard.returned" and data.reason == "lost" and held is not None:
        worker = data.worker or held.worker
        view.mark("lost", entry, f"worker `{worker}` was lost, and a range of `{run.id}` with it", run.node)
    if held is not None and data.range not in run.fan.ranges.out and held.taken_at is not None:
        _draw_lease(view, execution, run, held, entry)


def _mark_element(view: View, run: Run, data: Payload, entry: Entry) -> None:
    text = f"`{run.id}[{data.iter_index}]` failed: {error_line(data.error)}"
    if data.again:
        view.mark("retry", entry, f"{text}; it is tried again", run.node)
    else:
        view.mark("failure", entry, text, run.node)


def _draw_lease(view: View, execution: Execution, run: Run, held: Range, entry: Entry) -> None:
    assert held.taken_at is not None
    is_whole = entry.type != "loop.shard.returned"
    bar = Bar(held.taken_at, entry.ts, "lease", OK if is_whole else FAILED, failed=int(not is_whole), scope=run.id)
    bar.seq, bar.last, bar.worker = held.seq, entry.seq, held.worker
    bar.label = f"range {held.number}" if is_whole else f"range {held.number}, {entry.type.rpartition('.')[2]}"
    view.draw(execution, run.node, bar)
    if held.taken_at > held.at:
        wait = Bar(held.at, held.taken_at, "wait", OK, scope=run.id, seq=held.seq, last=held.seq)
        wait.label = "for a worker"
        view.draw(execution, run.node, wait)


def _enqueued(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    ranges.out[data.range] = Range(data.range, data.lo, data.hi, data.attempt, at=entry.ts, seq=entry.seq)
    ranges.count = max(ranges.count, data.range + 1)
    ranges.next = max(ranges.next, data.hi or 0)


def _taken(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    held = ranges.out.get(data.range)
    if held is None:
        return
    held.worker, held.taken_at = entry.worker, entry.ts
    if data.hi is not None:
        held.hi = data.hi
        ranges.next = max(ranges.next, data.hi)
        if data.is_end:
            fan.total = data.hi


def _moved_up(ranges: Ranges, data: Payload, entry: Entry, hi: int | None, count: int) -> None:
    held = ranges.out.get(data.range)
    if held is None or hi is None:
        return
    held.lo = hi
    if entry.worker is not None:
        ranges.workers[entry.worker] = ranges.workers.get(entry.worker, 0) + count
    if held.hi is not None and held.lo >= held.hi:
        del ranges.out[data.range]


def _reported(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    """Elements that wait for the fan-in are counted as done for now: most of them will be."""
    count = (data.hi or 0) - data.lo
    fan.ok += count - len(data.failed)
    _moved_up(ranges, data, entry, data.hi, count)


def _done(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    view.counts[SHARDS] = view.counts.get(SHARDS, 0) + data.done
    if not data.at_fanin:
        fan.ok += data.done
        _moved_up(ranges, data, entry, data.hi, data.done + data.failed)


def _failed(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    _moved_up(ranges, data, entry, data.up_to, 1)
    if data.again:
        ranges.retried += 1
        return
    view.counts[SHARDS] = view.counts.get(SHARDS, 0) + (data.range != AT_FANIN)
    if data.range == AT_FANIN or data.at_fanin:  # It had been counted as done.
        fan.ok -= 1
    fan.fail(Failure(data.iter_index, data.error, data.iter_key or "", data.attempt, entry.seq))


def _returned(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    if ranges.out.pop(data.range, None) is not None:  # It may be reported for each of its elements.
        ranges.lost += data.reason == "lost"


def _completed(view: View, fan: Fan, ranges: Ranges, data: Payload, entry: Entry) -> None:
    fan.total, fan.ok, fan.failed = data.total, data.succeeded, data.failed
    ranges.status, ranges.skipped, ranges.retried = data.status, data.skipped, data.retried
    ranges.refs, ranges.shared = data.refs, data.shared


_RANGE_HANDLERS: dict[str, OfRange] = {
    "loop.shard.enqueued": _enqueued,
    "loop.shard.started": _taken,
    "loop.shard.reported": _reported,
    "loop.shard.done": _done,
    "loop.shard.failed": _failed,
    "loop.shard.returned": _returned,
    "loop.fanin.completed": _completed,
}

_RUN_HANDLERS: dict[str, OfRun] = {
    "token.refused": _refused,
    "token.stranded": _stranded,
    "step.scheduled": _scheduled,
    "step.started": _began,
    **dict.fromkeys(("step.done", "step.failed", "loop.done"), _ended),
    "next.selected": _selected,
    "task.started": _task_started,
    "task.done": _task_ended,
    "loop.started": _loop_started,
    "loop.claimed": _claimed,
    **{f"loop.iteration.{what}": _iteration for what in ("started", "done", "failed")},
    "loop.fanout.started": _fanned_out,
    **dict.fromkeys(_RANGE_HANDLERS, _of_range),
}

STEP_HANDLERS: dict[str, Callable[[View, Execution, str, Payload, Entry], None]] = {
    "token.created": _created,
    **dict.fromkeys(_RUN_HANDLERS, _of_run),
}
