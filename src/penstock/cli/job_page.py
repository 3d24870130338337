"""What a job came to, as `penstock show` tells it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.cli.book import PinnedBook
from penstock.cli.engine import status_of
from penstock.cli.job_summary import components_table, figures, iteration_lines, subjob_lines
from penstock.cli.output import BOLD, GREEN, RED, YELLOW, one_line, painted, put, put_json, safe
from penstock.cli.summary import bounded
from penstock.kernel.values import Json
from penstock.ports.results import loader
from penstock.projections.jobs import JobStanding, job_json, job_standing
from penstock.projections.wording import counted, error_line, seconds

if TYPE_CHECKING:
    from penstock.app import Embedded
    from penstock.ports.log import Header


@dataclass(frozen=True, slots=True)
class Shown:
    """A job's end as its log has it, or how far it is."""

    status: str
    exit_code: int | None
    error: Json
    duration_ms: float
    result: Json = None


def show_job(engine: Embedded, header: Header, *, as_json: bool) -> int:
    status = status_of(header, engine)
    net = PinnedBook(engine, header.execution_id).root_net()
    entries = engine.log.read(header.execution_id)
    load = loader(engine.blobs)
    standing = job_standing(entries, net, load=load, with_iterations=as_json)
    shown = _shown(status, header, standing)
    if as_json:
        more = {"label": header.label, "crashed": status == "crashed", "file": header.path}
        put_json({**job_json(header, standing, shown), **more})
    else:
        put(_page(header, standing, shown, crashed=status == "crashed"))
    return 0


def _shown(status: str, header: Header, standing: JobStanding) -> Shown:
    seen = standing.seen
    started = seen.starts[0].at if seen.starts else header.started_at
    until = seen.ended_at if seen.ended_at is not None else time.time() if status == "running" else seen.last_ts
    took = round(max(0.0, (until or started) - started) * 1000, 3)
    if status == "running":
        return Shown("running", None, None, took)
    if status == "crashed" or seen.status in ("interrupted", "running"):
        return Shown("interrupted", 3, None, took)
    codes = {"completed": 0, "failed": seen.exit_code or 1, "cancelled": 1}
    return Shown(seen.status, codes.get(seen.status, 4), seen.error, took)


def _page(header: Header, standing: JobStanding, shown: Shown, *, crashed: bool) -> str:
    paint = {"completed": GREEN, "failed": RED}.get(shown.status, YELLOW)
    status = painted(shown.status + (" (crashed)" if crashed else ""), BOLD + paint, sys.stdout)
    label = f"  label {header.label}" if header.label else ""
    events = counted(standing.seen.events, "event")
    lines = [
        f"run {header.execution_id}  {safe(header.name)}{safe(label)}",
        f"{status} after {seconds(shown.duration_ms / 1000)}: {figures(standing)}, {events}",
        f"file {safe(header.path)}",
        *_resumes(standing),
        "",
        components_table(standing, sys.stdout),
        *subjob_lines(standing, sys.stdout),
        *iteration_lines(standing),
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
