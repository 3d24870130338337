"""What a job came to, as `penstock show` tells it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.cli.job_summary import components_table, figures, iteration_lines, subjob_lines, with_failed
from penstock.cli.layout import wrapped
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, one_line, painted, put, safe
from penstock.cli.summary import bounded
from penstock.projections.jobs import JobStanding
from penstock.projections.wording import counted, error_line, seconds
from penstock.server.views import CRASHED, Shown, Views, job_shown

if TYPE_CHECKING:
    from penstock.ports.log import Header


def show_job(views: Views, header: Header) -> int:
    status = views.status_of(header)
    standing = views.job(header, with_iterations=False)
    put(_page(header, standing, job_shown(status, header, standing), crashed=status == CRASHED))
    return 0


def _page(header: Header, standing: JobStanding, shown: Shown, *, crashed: bool) -> str:
    paint = {"completed": GREEN, "failed": RED}.get(shown.status, YELLOW)
    failed = standing.seen.failed_iterations if shown.status == "completed" else 0
    shown_status = with_failed(shown.status, failed) + (" (crashed)" if crashed else "")
    status = painted(shown_status, BOLD + (YELLOW if failed else paint), sys.stdout)
    label = f"  label {header.label}" if header.label else ""
    events = counted(standing.seen.events, "event")
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
    resumed = [start for start in standing.seen.starts if start.resumed]
    if not resumed:
        return []
    kept = counted(resumed[-1].kept, "sub-job")
    return [f"resumed {counted(len(resumed), 'time')}, with {kept} kept from before"]
