"""What a job came to: its components with rows and times, and on failure what to try next; as `run` and as `show` print it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.cli.engine import next_command
from penstock.cli.layout import table, wrapped
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, one_line, painted, put, safe, say
from penstock.cli.show.playbook_summary import bounded
from penstock.kernel.values import JsonMap
from penstock.server.views import CRASHED, Shown, Views, job_shown
from penstock.views.answers import JobStanding, JobSummary
from penstock.views.names import counted_ports, node_of
from penstock.views.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from penstock.ports.log import Header


MOST_COMPONENTS = 60
MOST_ITERATIONS = 10
RAN = frozenset({"OK", "ERROR", "RUNNING"})
PAINTS = {"OK": GREEN, "ERROR": RED}
_WORTH = {"ERROR": 0, "RUNNING": 1, "OK": 2, "SKIPPED": 3, "WAIT": 4}


def tell_job(
    summary: JobSummary, standing: JobStanding, execution_id: str, home: Path | str, where: Any, *, is_quiet: bool
) -> None:
    """`where(component, None)` gives `file:line`."""
    if not is_quiet:
        say()
        say(components_table(standing, sys.stderr))
        for line in (*subjob_lines(standing, sys.stderr), *iteration_lines(standing, sys.stderr)):
            say(line)
        say()
    _headline(summary, standing, execution_id)
    if summary.status == "failed":
        _failure(summary, where)
    _next(summary, execution_id, home, standing.execution.failed_iterations)


def figures(standing: JobStanding) -> str:
    """Components count once, whatever ran in iterations: those are counted by themselves."""
    counts: Any = standing.counts
    ran = sum(one["state"] in RAN for name, one in standing.components.items() if "[#" not in name)
    found = [counted(ran, "component"), counted(counts["subjobs"], "sub-job")]
    if counts["iterations"]:
        failed = f" ({counts['failed_iterations']:,} failed)" if counts["failed_iterations"] else ""
        found.append(counted(counts["iterations"], "iteration") + failed)
    return ", ".join(found)


def _headline(summary: JobSummary, standing: JobStanding, execution_id: str) -> None:
    paint = {"completed": GREEN, "failed": RED}.get(summary.status, YELLOW)
    took = seconds(summary.duration_ms / 1000)
    failed = standing.execution.failed_iterations if summary.status == "completed" else 0
    status = painted(with_failed(summary.status, failed), BOLD + (YELLOW if failed else paint))
    say(wrapped(f"{status} after {took}: {figures(standing)}  (run {execution_id})", sys.stderr))


def with_failed(status: str, failed: int) -> str:
    """A job that completed although iterations of it failed says so (D60)."""
    return f"{status}, {counted(failed, 'iteration')} failed" if failed else status


def components_table(standing: JobStanding, stream: IO[str]) -> str:
    """Those that run once, in the order of the document; of too many, the telling ones."""
    rows = [(name, one) for name, one in standing.components.items() if "[#" not in name]
    if len(rows) > MOST_COMPONENTS:
        telling = sorted(rows, key=lambda row: _WORTH.get(str(row[1]["state"]), 5))[:MOST_COMPONENTS]
        kept = {name for name, _ in telling}
        shown = [row for row in rows if row[0] in kept]
    else:
        shown = rows
    titles = ("COMPONENT", "TYPE", "STATE", "ROWS IN", "ROWS OUT", "TIME", "")
    cells = (_row(name, one, standing) for name, one in shown)
    text = table(titles, cells, stream, spare=("TYPE", "ROWS IN", "TIME"), cuttable="COMPONENT")
    left = len(rows) - len(shown)
    return f"{text}\n… and {counted(left, 'more component')}" if left else text


def _row(name: str, one: Any, standing: JobStanding) -> tuple[str, ...]:
    state = f"{one['state']} (kept)" if one.get("kept") else str(one["state"])
    took = seconds(one["ms"] / 1000) if one["ms"] is not None and one["state"] in ("OK", "ERROR") else ""
    return (
        name,
        str(one["type"]),
        state,
        counted_ports(one["rows_in"]),
        counted_ports(one["rows_out"]),
        took,
        _note(name, one, standing),
    )


def _note(name: str, one: Any, standing: JobStanding) -> str:
    iterators: Any = standing.iterations["iterators"]
    turns = iterators.get(name)
    if turns is not None:
        failed = f", {turns['failed']:,} failed" if turns["failed"] else ""
        return f"{turns['ok'] + turns['failed']:,} of {turns['total']:,} iterations{failed}"
    return one_line(str(one["cause"]), 90) if one["state"] in ("ERROR", "SKIPPED", "WAIT") else ""


def subjob_lines(standing: JobStanding, stream: IO[str]) -> list[str]:
    """Only when there is something to tell: a job that is one sub-job, and OK, has nothing to add."""
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
    """Of one in a joblet, what follows the name of the call: the sub-job is named in full."""
    return name[name.rindex(".__") + 1 :] if ".__" in name else name


def iteration_lines(standing: JobStanding, stream: IO[str]) -> list[str]:
    """The iterations that failed, which a job under `continue` would not speak of otherwise (D37)."""
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


def _failure(summary: JobSummary, where: Any) -> None:
    error: JsonMap = summary.error if isinstance(summary.error, dict) else {"message": str(summary.error)}
    component = str(error.get("component") or "")
    at = f"component `{component}`" if component else "the job"
    say()
    say(f"{painted('error', BOLD + RED)} in {safe(at)}: {safe(str(error.get('kind') or 'error'))}")
    for line in safe(str(error.get("message") or "")).splitlines()[:20]:
        say(f"  {line}")
    place = where(node_of(component), None) if component else ""
    if place:
        say(f"  at {place}")
    if error.get("others"):
        say(f"  and {counted(int(str(error['others'])), 'more failed sub-job')}")


def _next(summary: JobSummary, execution_id: str, home: Path | str, failed: int) -> None:
    error = summary.error if isinstance(summary.error, dict) else {}
    if summary.status == "interrupted":
        say()
        say(f"to go on where it stopped: {next_command(f'resume {execution_id}', home)}")
    elif summary.status == "completed" and failed:
        say()
        say(f"to run the failed iterations again: {next_command(f'resume --failed {execution_id}', home)}")
    elif summary.status == "failed":
        say()
        component = error.get("component")
        if component:
            named = shlex.quote(str(component))
            say(f"to see why:              {next_command(f'explain {execution_id} {named}', home)}")
        say(f"to try again from there: {next_command(f'resume {execution_id}', home)}")


def show_job(views: Views, header: Header) -> int:
    status = views.status_of(header)
    standing = views.job(header, with_iterations=False)
    put(_page(header, standing, job_shown(status, header, standing), crashed=status == CRASHED))
    return 0


def _page(header: Header, standing: JobStanding, shown: Shown, *, crashed: bool) -> str:
    paint = {"completed": GREEN, "failed": RED}.get(shown.status, YELLOW)
    failed = standing.execution.failed_iterations if shown.status == "completed" else 0
    shown_status = with_failed(shown.status, failed) + (" (crashed)" if crashed else "")
    status = painted(shown_status, BOLD + (YELLOW if failed else paint), sys.stdout)
    label = f"  label {header.label}" if header.label else ""
    events = counted(standing.events, "event")
    lines = [
        f"run {header.execution_id}  {safe(header.name)}{safe(label)}",
        wrapped(f"{status} after {seconds(shown.duration_ms / 1000)}: {figures(standing)}, {events}", sys.stdout),
        f"file {safe(header.path)}",
        *_resumes(standing),
        "",
        components_table(standing, sys.stdout),
        *subjob_lines(standing, sys.stdout),
        *iteration_lines(standing, sys.stdout),
    ]
    if shown.error is not None:
        lines += ["", painted("error", BOLD + RED, sys.stdout), f"  {one_line(error_line(shown.error), 2000)}"]
    if standing.globals:
        lines += ["", painted("globals", BOLD, sys.stdout), bounded(standing.globals, header.execution_id)]
    return "\n".join(lines)


def _resumes(standing: JobStanding) -> list[str]:
    resumed = [start for start in standing.execution.starts if start.resumed]
    if not resumed:
        return []
    kept = counted(resumed[-1].kept, "sub-job")
    return [f"resumed {counted(len(resumed), 'time')}, with {kept} kept from before"]
