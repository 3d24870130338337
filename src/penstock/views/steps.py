"""The step runs of a run as `show` lists them, in canonical order."""

from __future__ import annotations

from typing import cast

from penstock.kernel.values import Json, JsonMap
from penstock.views.history import History, StepRun


def step_runs(seen: History, *, is_live: bool) -> list[JsonMap]:
    """`is_live`: somebody works on the run now. What was under way when nobody does was interrupted."""
    return [_step_run(run, is_live) for run in seen.in_order()]


def _step_run(run: StepRun, is_live: bool) -> JsonMap:
    iterations = run.iterations
    counts: JsonMap = {"total": 0, "done": 0, "failed": 0}
    if iterations is not None:
        counts = {"total": iterations.total, "done": iterations.done, "failed": iterations.failed}
    ended, started = run.ended_at, run.started_at
    return {
        "step": run.step,
        "step_run_id": run.id,
        "visit": run.visit,
        "status": standing(run.status, is_live),
        "tasks": [
            {
                "name": task.name,
                "kind": task.kind,
                "attempts": task.attempts,
                "runs": task.runs,
                "status": standing(task.status, is_live and run.ended_at is None),
                "error": task.error,
            }
            for task in run.tasks.values()
        ],
        "iterations": counts,
        "error": run.error,
        "continues": run.continues,
        "duration_ms": None if ended is None or started is None else round(max(0.0, ended - started) * 1000, 3),
    }


def fanins(seen: History, *, is_live: bool) -> JsonMap:
    """Step run -> how far its fanned-out loop is, for each that has one."""
    runs = [run for run in seen.in_order() if run.fanout is not None]
    return {
        run.id: cast(Json, run.fanout.as_json(is_live=is_live and run.ended_at is None))
        for run in runs
        if run.fanout is not None
    }


def standing(status: str, is_live: bool) -> str:
    return "interrupted" if status == "running" and not is_live else status
