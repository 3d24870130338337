"""`penstock show RUN`: what a run came to, step by step; a job's is on a page of its own, `penstock.cli.job_page`."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from penstock.cli.engine import looking_at, views_of
from penstock.cli.fanned import fanout_lines
from penstock.cli.inside import job_lines, jobs_by_step_run
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, one_line, painted, put, put_json, safe
from penstock.cli.printed import warning_lines, warnings_of
from penstock.cli.summary import bounded
from penstock.cli.waiting import TITLE, lines_of, waits_of
from penstock.projections.wording import counted, error_line, seconds

MOST_STEPS = 200


def main(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        views = views_of(engine)
        waits = waits_of(engine, header)
        warnings = warnings_of(engine, header.execution_id)
        if header.kind == "job" and not options.json:
            from penstock.cli.job_page import show_job

            code = show_job(views, header)
            _put_rest(waits, warnings)
            return code
        view: Any = views.shown(header)
    if options.json:
        more = {"waiting": waits} if waits else {}
        put_json({**view, "warnings": warnings, **more})
    else:
        inside = jobs_by_step_run(view["children"], view["steps"])
        put(_page(view, view["steps"], inside, crashed=view["crashed"]))
        _put_rest(waits, warnings)
    return 0


def _put_rest(waits: list[Any], warnings: list[dict[str, Any]]) -> None:
    lines = ["", painted(TITLE, BOLD, sys.stdout), *(f"  {line}" for line in lines_of(waits))] if waits else []
    lines += warning_lines(warnings)
    if lines:
        put("\n".join(lines))


def _page(view: dict[str, Any], steps: list[Any], inside: dict[str, list[Any]], *, crashed: bool) -> str:
    paint = {"completed": GREEN, "failed": RED}.get(view["status"], YELLOW)
    label = f"  label {view['label']}" if view["label"] else ""
    status = painted(view["status"] + (" (crashed)" if crashed else ""), BOLD + paint, sys.stdout)
    counts = view["counts"]
    figures = ", ".join(
        counted(counts[name], name[:-1]) for name in ("steps", "tasks", "iterations", "events") if counts[name]
    )
    lines = [
        f"run {view['execution_id']}  {safe(view['name'])}{safe(label)}",
        f"{status} after {seconds(view['duration_ms'] / 1000)}: {figures}",
        f"file {safe(view['file'])}",
        "",
    ]
    for step in steps[-MOST_STEPS:]:
        lines += _step(step)
        indent = "  " * (step["step_run_id"].count("/") // 2 + 1)
        if step["step_run_id"] in view["fanin"]:
            lines += fanout_lines(view["fanin"][step["step_run_id"]], f"{indent[2:]}           ")
        for child in inside.get(step["step_run_id"], ()):
            lines += job_lines(child, f"{indent}           ")
    if len(steps) > MOST_STEPS:
        lines.insert(4, f"… {len(steps) - MOST_STEPS:,} earlier step runs; `--json` has them all")
    if view["error"] is not None:
        lines += ["", painted("error", BOLD + RED, sys.stdout), f"  {one_line(error_line(view['error']), 2000)}"]
    for name in ("ctx", "result"):
        if view[name]:
            lines += ["", painted(name, BOLD, sys.stdout), bounded(view[name], view["execution_id"])]
    return "\n".join(lines)


def _step(step: dict[str, Any]) -> list[str]:
    paint = {"done": GREEN, "failed": RED}.get(step["status"], YELLOW)
    took = "" if step["duration_ms"] is None else f"  {seconds(step['duration_ms'] / 1000)}"
    visit = f" (visit {step['visit']})" if (step["visit"] or 0) > 1 else ""
    loop = step["iterations"]
    turns = f"  {loop['done']:,} of {loop['total']:,} iterations" if loop["total"] else ""
    failed = f", {loop['failed']:,} failed" if loop["failed"] else ""
    indent = "  " * (step["step_run_id"].count("/") // 2)
    status = painted(f"{step['status']:<8}", paint, sys.stdout)
    lines = [f"{indent}{status} {safe(step['step_run_id'])}{visit}{took}{turns}{failed}"]
    for task in step["tasks"]:
        times = f", {task['attempts']} attempts" if task["attempts"] > 1 else ""
        runs = f", {task['runs']:,} runs" if task["runs"] > task["attempts"] else ""
        error = f": {one_line(error_line(task['error']))}" if task["error"] is not None else ""
        lines.append(f"{indent}           {safe(task['name'])} ({task['kind']}) {task['status']}{times}{runs}{error}")
    if step["error"] is not None and step["status"] == "refused":
        lines.append(f"{indent}           {one_line(error_line(step['error']))}")
    return lines
