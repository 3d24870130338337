"""Transitions for pipelines: how the cursor moves and what tasks write. Independent of tokens and arcs."""

from __future__ import annotations

from dataclasses import replace

from penstock.kernel import facts
from penstock.kernel.errors import Bug
from penstock.kernel.evolve.executions import close_child
from penstock.kernel.facts import Fact
from penstock.kernel.patches import Staged, assign
from penstock.kernel.places import Place
from penstock.kernel.state import Pipeline, State
from penstock.kernel.values import JsonMap


def moved(state: State, fact: Fact, body: facts.TaskStarted | facts.TaskEnded, ts: float) -> None:
    scope = fact.scope
    pipeline = state.pipelines.get(scope)
    if pipeline is None:
        run = state.runs.get(scope[: scope.rfind("[")])
        if run is None or not run.fan.is_elsewhere:
            raise Bug(f"no pipeline is open at `{scope}`")
        return  # Pipelines of fanned-out elements exist only on their worker.
    if type(body) is facts.TaskStarted:
        task_started(pipeline, body, fact.task)
        return
    assert type(body) is facts.TaskEnded
    if pipeline.children:
        # If the pipeline failed, the state of the child and of its children is kept, so that a resume can continue in them.
        for child in list(pipeline.children):
            close_child(state, child, is_over=body.do != "fail")
        if body.do != "fail":
            pipeline.children.clear()
    task_ended(pipeline, body, ts)
    if pipeline.ended is not None and pipeline.opener is not None:
        assert pipeline.opener.fan is not None
        pipeline.opener.fan.waiting += 1


def task_started(pipeline: Pipeline, body: facts.TaskStarted, task_run_id: str | None) -> None:
    pipeline.counter += 1
    pipeline.task_runs += 1
    pipeline.ordinals[body.task] = pipeline.ordinals.get(body.task, 0) + 1
    pipeline.under_way = task_run_id
    if pipeline.effect is None:
        pipeline.effect = task_run_id
    pipeline.attempt = body.attempt
    pipeline.due = None


def task_ended(pipeline: Pipeline, body: facts.TaskEnded, ts: float) -> None:
    pipeline.counter += 1
    pipeline.under_way = None
    if body.writes:
        if body.next < 0 and body.do not in ("retry", "fail"):
            staged = Staged()
            staged.add(pipeline.staged.as_writes())
            pipeline.before_end = pipeline.iter, pipeline.ctx, staged
        _write(pipeline, body.writes)
    # The same task will run again, now or after a resume: it must find `_prev` and the results as it found them before.
    if body.do == "retry":
        pipeline.attempt += 1
        pipeline.due = ts + body.delay if body.delay else None
        return
    pipeline.outcome = body.outcome
    if body.do == "fail":
        pipeline.ended, pipeline.error = "failed", body.error
        return
    name = result_name(body.task)
    if body.outcome.get("status") == "ok":
        pipeline.prev = pipeline.results[name] = body.outcome.get("result")
    else:
        pipeline.prev = None
        pipeline.results.pop(name, None)
    pipeline.attempt, pipeline.effect = 1, None
    if body.next < 0:
        pipeline.ended = "done"
    else:
        pipeline.cursor = body.next


def result_name(label: str) -> str:
    """The name a result is looked up by. Generated labels contain dots; if one has an odd number of parts, its last part is the
    author's own label (`pages.do.fetch`), which names the result."""
    return label if label.count(".") % 2 else label.rpartition(".")[2]


def with_writes(pipeline: Pipeline, writes: JsonMap) -> Pipeline:
    """A copy of the pipeline as it will be once `writes` are recorded."""
    ahead = replace(pipeline, staged=Staged())
    _write(ahead, writes)
    return ahead


def _write(pipeline: Pipeline, writes: JsonMap) -> None:
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


def reopened(old: Pipeline, place: Place) -> Pipeline:
    """The same pipeline in a new place. The task at its cursor gets all its attempts again."""
    return Pipeline(
        place=place,
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
