"""The summary of a run: its result, and on failure what failed and what to try next; for a job with the table of its components,
which `show` prints as well."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from penstock.cli.output import BOLD, GREEN, RED, YELLOW, is_terminal, one_line, painted, put, safe, say, table, wrapped
from penstock.cli.show.progress import Progress
from penstock.cli.targets import next_command
from penstock.kernel.values import JsonMap
from penstock.ports.results import encode
from penstock.views.headers import CRASHED, with_failed
from penstock.views.names import counted_ports, node_of
from penstock.views.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from penstock.ports.log import Header
    from penstock.server.runs import RunSummary
    from penstock.server.views import Shown, Views
    from penstock.views.answers import JobStanding, JobSummary
    from penstock.views.model import Run

MOST_LINES = 40
WIDEST = 200
MOST_COMPONENTS = 60
MOST_ITERATIONS = 10
FOR_GOOD = frozenset({"stranded", "visit_limit"})
"""Failures that a retry would repeat: the document has to change."""
RAN = frozenset({"OK", "ERROR", "RUNNING"})
PAINTS = {"OK": GREEN, "ERROR": RED, "completed": GREEN, "failed": RED}
_WORTH = {"ERROR": 0, "RUNNING": 1, "OK": 2, "SKIPPED": 3, "WAIT": 4}

Where = Callable[[str, "str | None"], str]
"""`where(step, task)` gives `file:line`, or nothing when that is not known."""


def _error_of(summary: Any) -> JsonMap:
    return summary.error if isinstance(summary.error, dict) else {"message": str(summary.error)}


def _say_error(at: str, error: JsonMap, where: str) -> None:
    say()
    say(f"{painted('error', BOLD + RED)} in {safe(at)}: {safe(str(error.get('kind') or 'error'))}")
    for line in safe(str(error.get("message") or "")).splitlines()[:20]:
        say(f"  {line}")
    if where:
        say(f"  at {where}")


def _say_next(status: str, error: Any, node: str, execution_id: str, home: Path | str) -> None:
    if status == "interrupted":
        say()
        say(f"to go on where it stopped: {next_command(f'resume {execution_id}', home)}")
    elif status == "failed":
        say()
        if node:
            command = next_command(f"explain {execution_id} {shlex.quote(node)}", home)
            say(f"to see why:              {command}")
        if not isinstance(error, dict) or error.get("kind") not in FOR_GOOD:
            say(f"to try again from there: {next_command(f'resume {execution_id}', home)}")


# ---- playbooks


def tell(summary: RunSummary, progress: Progress, home: Path | str, where: Where) -> None:
    counts: JsonMap = summary.counts
    figures = [counted(int(str(counts["steps"])), "step"), counted(int(str(counts["tasks"])), "task")]
    if counts["iterations"]:
        figures.append(counted(int(str(counts["iterations"])), "iteration"))
    status = painted(summary.status, BOLD + PAINTS.get(summary.status, YELLOW))
    took = seconds(summary.duration_ms / 1000)
    say(f"{status} after {took}: {', '.join(figures)}  (run {summary.execution_id})")
    if summary.status == "completed":
        result(summary.result, summary.execution_id)
        return
    if summary.status == "failed":
        _step_failure(_error_of(summary), progress, where)
    step = str(_error_of(summary).get("step") or "")
    _say_next(summary.status, summary.error, step, summary.execution_id, home)


def result(value: Any, run: str) -> None:
    """The result on stdout: whole for a program, cut short for a person."""
    if value is not None:
        put(bounded(value, run) if is_terminal(sys.stdout) else encode(value).decode())


def bounded(value: Any, run: str) -> str:
    if isinstance(value, str):
        lines = safe(value).splitlines()
    else:
        lines = msgspec.json.format(encode(value), indent=2).decode().splitlines()
    shown = [line if len(line) <= WIDEST else line[: WIDEST - 1] + "…" for line in lines[:MOST_LINES]]
    left = len(lines) - MOST_LINES
    return "\n".join([*shown, f"… {left:,} more lines; `penstock show {run} --json` has it all"] if left > 0 else shown)


def _step_failure(error: JsonMap, progress: Progress, where: Where) -> None:
    step = str(error.get("step") or "")
    failures = progress.failures()
    failed = next((run for run in failures if run.node == step), None)
    task, index = _failed_part(failed) if failed is not None else ("", None)
    at = f"step `{step}`" if step else "the run"
    at += f", task `{task}`" if task else ""
    at += f", iteration [{index}]" if index is not None else ""
    _say_error(at, error, where(step, task or None) if step else "")
    before = [run.node for run in progress.done()[-5:]]
    if before:
        say(f"  done before it: {', '.join(before)}")
    if error.get("others"):
        rest = [run for run in failures if run is not failed]
        say(f"  and {counted(int(str(error['others'])), 'more failure')}{':' if rest else ''}")
        for run in rest[:5]:
            say(f"    {run.node}: {one_line(error_line(run.error))}")


def _failed_part(run: Run) -> tuple[str, int | None]:
    """The task that failed a step run, and the iteration that it failed in."""
    if run.fan is None:
        return next((one.task for one in run.attempts if one.do == "fail"), ""), None
    index = run.fan.failures[0].index if run.fan.failures else None
    return next((task.name for task in run.tasks.values() if task.status == "error"), ""), index


# ---- jobs


def tell_job(
    summary: JobSummary, standing: JobStanding, execution_id: str, home: Path | str, where: Where, *, is_quiet: bool
) -> None:
    if not is_quiet:
        say()
        say(components_table(standing, sys.stderr))
        for line in (*subjob_lines(standing, sys.stderr), *iteration_lines(standing, sys.stderr)):
            say(line)
        say()
    status, failed = _job_status(standing, summary.status, sys.stderr)
    took = seconds(summary.duration_ms / 1000)
    say(wrapped(f"{status} after {took}: {figures(standing)}  (run {execution_id})", sys.stderr))
    error = _error_of(summary)
    component = str(error.get("component") or "")
    if summary.status == "failed":
        at = f"component `{component}`" if component else "the job"
        _say_error(at, error, where(node_of(component), None) if component else "")
        if error.get("others"):
            say(f"  and {counted(int(str(error['others'])), 'more failed sub-job')}")
    elif failed:
        say()
        say(f"to run the failed iterations again: {next_command(f'resume --failed {execution_id}', home)}")
    _say_next(summary.status, None, component, execution_id, home)


def figures(standing: JobStanding) -> str:
    """Components count once, whatever ran in iterations: those are counted separately."""
    counts: Any = standing.counts
    ran = sum(one["state"] in RAN for name, one in standing.components.items() if "[#" not in name)
    found = [counted(ran, "component"), counted(counts["subjobs"], "sub-job")]
    if counts["iterations"]:
        failed = f" ({counts['failed_iterations']:,} failed)" if counts["failed_iterations"] else ""
        found.append(counted(counts["iterations"], "iteration") + failed)
    return ", ".join(found)


def _job_status(standing: JobStanding, status: str, stream: IO[str], more: str = "") -> tuple[str, int]:
    """The coloured status, and how many iterations failed in a job that completed nevertheless."""
    failed = standing.execution.failed_iterations if status == "completed" else 0
    paint = YELLOW if failed else PAINTS.get(status, YELLOW)
    return painted(with_failed(status, failed) + more, BOLD + paint, stream), failed


def components_table(standing: JobStanding, stream: IO[str]) -> str:
    """The components that run once, in the order of the document; if there are too many, the relevant ones."""
    rows = [(name, one) for name, one in standing.components.items() if "[#" not in name]
    telling = sorted(rows, key=lambda row: _WORTH.get(str(row[1]["state"]), 5))[:MOST_COMPONENTS]
    kept = {name for name, _ in telling}
    titles = ("COMPONENT", "TYPE", "STATE", "ROWS IN", "ROWS OUT", "TIME", "")
    cells = (_row(name, one, standing) for name, one in rows if name in kept)
    text = table(titles, cells, stream, spare=("TYPE", "ROWS IN", "TIME"), cuttable="COMPONENT")
    left = len(rows) - len(kept)
    return f"{text}\n… and {counted(left, 'more component')}" if left else text


def _row(name: str, one: Any, standing: JobStanding) -> tuple[str, ...]:
    state = f"{one['state']} (kept)" if one.get("kept") else str(one["state"])
    took = seconds(one["ms"] / 1000) if one["ms"] is not None and one["state"] in ("OK", "ERROR") else ""
    rows_in, rows_out = counted_ports(one["rows_in"]), counted_ports(one["rows_out"])
    return name, str(one["type"]), state, rows_in, rows_out, took, _note(name, one, standing)


def _note(name: str, one: Any, standing: JobStanding) -> str:
    iterators: Any = standing.iterations["iterators"]
    turns = iterators.get(name)
    if turns is not None:
        failed = f", {turns['failed']:,} failed" if turns["failed"] else ""
        return f"{turns['ok'] + turns['failed']:,} of {turns['total']:,} iterations{failed}"
    return one_line(str(one["cause"]), 90) if one["state"] in ("ERROR", "SKIPPED", "WAIT") else ""


def subjob_lines(standing: JobStanding, stream: IO[str]) -> list[str]:
    """Empty for a job that is one sub-job and OK."""
    subjobs = [one for one in standing.subjobs if "[#" not in str(one["name"])]
    if len(subjobs) < 2 and all(one["state"] == "OK" for one in subjobs):
        return []
    lines = []
    for one in subjobs[:MOST_COMPONENTS]:
        state = painted(str(one["state"]), PAINTS.get(str(one["state"]), YELLOW), stream)
        kept = " (kept)" if one.get("kept") else ""
        members: Any = one["members"]
        some = ", ".join(_own_name(node_of(name)) for name in members[:8]) + (" …" if len(members) > 8 else "")
        lines.append(wrapped(f"sub-job {safe(str(one['name']))}: {state}{kept}  {safe(some)}", stream))
    return ["", *lines]


def _own_name(name: str) -> str:
    """The name without that of its joblet call: the sub-job is named in full."""
    return name[name.rindex(".__") + 1 :] if ".__" in name else name


def iteration_lines(standing: JobStanding, stream: IO[str]) -> list[str]:
    """The iterations that failed, which a job under `continue` would not show otherwise (D37)."""
    failed = [one for one in standing.subjobs if str(one["name"]).endswith("]") and one["state"] == "ERROR"]
    if not failed:
        return []
    total: Any = standing.iterations["failed"]
    lines = [f"{counted(total, 'iteration')} failed:"]
    for one in failed[:MOST_ITERATIONS]:
        error: Any = one.get("error")
        lines.append(wrapped(f"  {safe(str(one['name']))}: {one_line(error_line(error))}", stream, indent=4))
    left = total - min(len(failed), MOST_ITERATIONS)
    return ["", *lines, *([f"  … and {left:,} more"] if left > 0 else [])]


def show_job(views: Views, header: Header) -> int:
    from penstock.server.views import job_shown  # Loads the compilers: the end of a run needs none.

    status = views.status_of(header)
    standing = views.job(header, with_iterations=False)
    put(_job_page(header, standing, job_shown(status, header, standing), crashed=status == CRASHED))
    return 0


def _job_page(header: Header, standing: JobStanding, shown: Shown, *, crashed: bool) -> str:
    status, _ = _job_status(standing, shown.status, sys.stdout, " (crashed)" if crashed else "")
    label = f"  label {header.label}" if header.label else ""
    events = counted(standing.events, "event")
    lines = [
        f"run {header.execution_id}  {safe(header.name)}{safe(label)}",
        wrapped(f"{status} after {seconds(shown.duration_ms / 1000)}: {figures(standing)}, {events}", sys.stdout),
        f"file {safe(header.path)}",
    ]
    resumed = [start for start in standing.execution.starts if start.resumed]
    if resumed:
        kept = counted(resumed[-1].kept, "sub-job")
        lines.append(f"resumed {counted(len(resumed), 'time')}, with {kept} kept from before")
    lines += ["", components_table(standing, sys.stdout)]
    lines += [*subjob_lines(standing, sys.stdout), *iteration_lines(standing, sys.stdout)]
    if shown.error is not None:
        lines += ["", painted("error", BOLD + RED, sys.stdout), f"  {one_line(error_line(shown.error), 2000)}"]
    if standing.globals:
        lines += ["", painted("globals", BOLD, sys.stdout), bounded(standing.globals, header.execution_id)]
    return "\n".join(lines)
