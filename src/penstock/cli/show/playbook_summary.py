"""The last words on a run: what it came to, the result, and on failure what failed and what to try next."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from penstock.cli.engine import next_command
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, is_terminal, one_line, painted, put, safe, say
from penstock.cli.show.playbook_progress import Progress, Shown
from penstock.kernel.values import JsonMap
from penstock.ports.results import encode
from penstock.server.runs import RunSummary
from penstock.views.wording import counted, error_line, seconds

MOST_LINES = 40
WIDEST = 200
FOR_GOOD = frozenset({"stranded", "visit_limit"})
"""Failures that would come again: the document has to change."""

Where = Callable[[str, "str | None"], str]
"""`where(step, task)` gives `file:line`, or nothing when that is not known."""


def tell(summary: RunSummary, progress: Progress, home: Path | str, where: Where) -> None:
    _headline(summary)
    if summary.status == "completed":
        result(summary.result, summary.execution_id)
        return
    if summary.status == "failed":
        _failure(summary, progress, where)
    _next(summary, progress, home)


def _headline(summary: RunSummary) -> None:
    counts: JsonMap = summary.counts
    figures = [counted(int(str(counts["steps"])), "step"), counted(int(str(counts["tasks"])), "task")]
    if counts["iterations"]:
        figures.append(counted(int(str(counts["iterations"])), "iteration"))
    paint = {"completed": GREEN, "failed": RED}.get(summary.status, YELLOW)
    took = seconds(summary.duration_ms / 1000)
    say(f"{painted(summary.status, BOLD + paint)} after {took}: {', '.join(figures)}  (run {summary.execution_id})")


def result(value: Any, run: str) -> None:
    """The result on stdout: whole for a program, cut short for a person."""
    if value is None:
        return
    if not is_terminal(sys.stdout):
        put(encode(value).decode())
        return
    put(bounded(value, run))


def bounded(value: Any, run: str) -> str:
    if isinstance(value, str):
        lines = safe(value).splitlines()
    else:
        lines = msgspec.json.format(encode(value), indent=2).decode().splitlines()
    shown = [line if len(line) <= WIDEST else line[: WIDEST - 1] + "…" for line in lines[:MOST_LINES]]
    left = len(lines) - MOST_LINES
    return "\n".join([*shown, f"… {left:,} more lines; `penstock show {run} --json` has it all"] if left > 0 else shown)


def _failure(summary: RunSummary, progress: Progress, where: Where) -> None:
    error: JsonMap = summary.error if isinstance(summary.error, dict) else {"message": str(summary.error)}
    step = str(error.get("step") or "")
    failed = _failed_run(progress, step)
    task = failed.failed_task if failed is not None else ""
    place = where(step, task or None) if step and (failed is None or not failed.depth) else ""
    at = f"step `{step}`" if step else "the run"
    if task:
        at += f", task `{task}`"
    if failed is not None and failed.failed_index is not None:
        at += f", iteration [{failed.failed_index}]"
    say()
    say(f"{painted('error', BOLD + RED)} in {safe(at)}: {safe(str(error.get('kind') or 'error'))}")
    for line in safe(str(error.get("message") or "")).splitlines()[:20]:
        say(f"  {line}")
    if place:
        say(f"  at {place}")
    _others(error, progress, failed)


def _failed_run(progress: Progress, step: str) -> Shown | None:
    return next((run for run in progress.failures if run.step == step and not run.depth), None)


def _others(error: JsonMap, progress: Progress, failed: Shown | None) -> None:
    before = [run.step for run in progress.before if not run.depth][-5:]
    if before:
        say(f"  done before it: {', '.join(before)}")
    others = error.get("others")
    if others:
        rest = [run for run in progress.failures if run is not failed and not run.depth]
        say(f"  and {counted(int(str(others)), 'more failure')}{':' if rest else ''}")
        for run in rest[:5]:
            say(f"    {run.step}: {one_line(error_line(run.error))}")


def _next(summary: RunSummary, progress: Progress, home: Path | str) -> None:
    name = summary.execution_id
    error = summary.error if isinstance(summary.error, dict) else {}
    say()
    if summary.status == "interrupted":
        say(f"to go on where it stopped: {next_command(f'resume {name}', home)}")
        return
    if summary.status != "failed":
        return
    step = error.get("step")
    if step:
        say(f"to see why:              {next_command(f'explain {name} {step}', home)}")
    if error.get("kind") not in FOR_GOOD:
        say(f"to try again from there: {next_command(f'resume {name}', home)}")
