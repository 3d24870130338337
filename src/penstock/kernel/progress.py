"""Progress inside one step run: how a pipeline's cursor moves, and how a loop's iterations open and close.

The part of `evolve` that knows nothing of tokens, arcs or other runs. Like all of evolve it makes no decision.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.kernel import facts
from penstock.kernel.patches import Staged, assign
from penstock.kernel.places import Place
from penstock.kernel.state import KEPT_FAILURES, NOT_OPENED, LoopState, PipelineState, RunState
from penstock.kernel.values import JsonMap


def task_started(pipeline: PipelineState, body: facts.TaskStarted, task_run_id: str | None) -> None:
    pipeline.counter += 1
    pipeline.task_runs += 1
    pipeline.ordinals[body.task] = pipeline.ordinals.get(body.task, 0) + 1
    pipeline.under_way = task_run_id
    if pipeline.effect is None:
        pipeline.effect = task_run_id
    pipeline.attempt = body.attempt
    pipeline.due = None


def task_ended(pipeline: PipelineState, body: facts.TaskEnded, ts: float) -> None:
    pipeline.counter += 1
    pipeline.under_way = None
    if body.writes:
        if body.next < 0 and body.do not in ("retry", "fail"):
            staged = Staged()
            staged.add(pipeline.staged.as_writes())
            pipeline.before_end = pipeline.iter, pipeline.ctx, staged
        _write(pipeline, body.writes)
    # The same task is to run again, now or after a resume: it must find `_prev` and the results as it found them before.
    if body.do == "retry":
        pipeline.attempt += 1
        pipeline.due = ts + body.delay if body.delay else None
        return
    pipeline.outcome = body.outcome
    if body.do == "fail":
        pipeline.ended, pipeline.error = "failed", body.error
        return
    _keep_result(pipeline, result_name(body.task), body.outcome)
    pipeline.attempt, pipeline.effect = 1, None
    if body.next < 0:
        pipeline.ended = "done"
    else:
        pipeline.cursor = body.next


def _keep_result(pipeline: PipelineState, name: str, outcome: JsonMap) -> None:
    if outcome.get("status") == "ok":
        pipeline.prev = pipeline.results[name] = outcome.get("result")
    else:
        pipeline.prev = None
        pipeline.results.pop(name, None)


def result_name(label: str) -> str:
    """The name under which a result is found. A generated label is dotted; of one with an odd number of parts the author wrote
    the last (`pages.do.fetch`), and means the result by it."""
    return label if label.count(".") % 2 else label.rpartition(".")[2]


def with_writes(pipeline: PipelineState, writes: JsonMap) -> PipelineState:
    """A copy as it will be once `writes` are recorded."""
    ahead = replace(pipeline, staged=Staged())
    _write(ahead, writes)
    return ahead


def _write(pipeline: PipelineState, writes: JsonMap) -> None:
    into_iter = writes.get("iter")
    if isinstance(into_iter, dict):
        pipeline.iter = dict(pipeline.iter)
        for key, value in into_iter.items():
            assign(pipeline.iter, key, value)
    if "ctx" in writes or "append" in writes or "shared" in writes:
        pipeline.staged.add(writes)
        patch = Staged()
        patch.add(writes)
        pipeline.ctx = patch.applied_to(pipeline.ctx)


def loop_started(run: RunState, body: facts.LoopStarted, counter: int) -> None:
    run.counter = counter + 1
    if run.loop is None:
        run.loop = LoopState(counter, body.total, body.mode == "parallel", ctx=run.ctx)
        run.loop.reducers = {key: str(operation) for key, operation in body.reducers.items()}
        run.loop.collection = body.collection
        run.pipeline = None
    else:  # A reopened loop: its finished iterations stand, the failed ones get another run.
        run.loop.opened_at = counter
        run.loop.next_index = run.loop.settled.low


def iteration_started(run: RunState, index: int, place: Place) -> PipelineState:
    loop = run.loop
    assert loop is not None
    before = loop.failed_open.pop(index, None)
    if before is None:
        pipeline = PipelineState(place=place, ctx=loop.ctx)
    else:
        pipeline = reopened(before, run)
        pipeline.place = place
    pipeline.counter = 1
    loop.open[index] = pipeline
    loop.next_index = max(loop.next_index, index + 1)
    return pipeline


def iteration_ended(run: RunState, body: facts.IterationEnded) -> PipelineState:
    loop = run.loop
    assert loop is not None
    pipeline = loop.open.pop(body.index)
    loop.settled.add(body.index)
    if body.status == "done":
        loop.done += 1
        loop.reduce(body.writes)
    else:
        loop.failed += 1
        if len(loop.failed_open) < KEPT_FAILURES:
            loop.failed_open[body.index] = pipeline
        if loop.first_failed is None or body.index < loop.first_failed:
            loop.first_failed, loop.first_error = body.index, body.error
    if body.writes:
        again = loop.take(body.index, body.writes)
        if not loop.parallel and again:
            loop.ctx = loop.staged.applied_to(run.ctx)
        elif not loop.parallel:
            patch = Staged()
            patch.add(body.writes)
            loop.ctx = patch.applied_to(loop.ctx)
    return pipeline


def reopened(old: PipelineState, run: RunState) -> PipelineState:
    """The same pipeline in a new place. It failed at its cursor, and gets all its attempts there again."""
    return PipelineState(
        place=run.place,
        ctx=old.ctx,
        iter=old.iter,
        cursor=old.cursor,
        prev=old.prev,
        results=old.results,
        staged=old.staged,
        task_runs=old.task_runs,
        ordinals=old.ordinals,
        effect=old.effect,
        children=old.children,
    )


def reopen_loop(old: LoopState, run: RunState) -> None:
    for index in old.failed_open:
        old.settled.discard(index)
    old.failed -= len(old.failed_open)
    old.failed_open.update(old.open)
    for pipeline in old.failed_open.values():
        # It had come to its end, and what it wrote was in conflict. Its last task runs again, and writes again.
        if pipeline.ended == "done" and pipeline.before_end is not None:
            pipeline.iter, pipeline.ctx, pipeline.staged = pipeline.before_end
    old.open.clear()
    old.first_error, old.first_failed = None, None
    old.opened_at = NOT_OPENED
    run.loop = old
