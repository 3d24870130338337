"""One line for each event of a job, as `penstock events` shows it after the event's type and scope."""

from __future__ import annotations

from typing import Any

from penstock.projections.jobs_names import counted_ports
from penstock.projections.wording import error_line, seconds, shown


def job_detail(kind: str, data: Any) -> str:
    match kind:
        case "job.started":
            return _resumed(data) if data.get("resumed") else str(data.get("name", ""))
        case "component.started":
            rows = f", rows in {counted_ports(data['rows_in'])}" if data.get("rows_in") else ""
            return f"{data['type']}{rows}"
        case "component.ok":
            rows = f", rows out {counted_ports(data['rows_out'])}" if data.get("rows_out") else ""
            return f"after {seconds(data.get('ms', 0.0) / 1000)}{rows}"
        case "edge.fired":
            order = f" {data['order']}" if data["on"] == "if" else ""
            return f"{data['from']} ({data['on']}{order}) {data['to']}"
        case "global.set":
            local = " (in its sub-job only)" if data.get("local") else ""
            new = "deleted" if data.get("deleted") else shown(data.get("new"), 60)
            return f"{data['key']}: {shown(data.get('old'), 40)} → {new}{local}"
        case "checkpoint.saved":
            return f"{data['bytes']:,} bytes"
        case "iterator.started":
            total = "as long as its condition holds" if data.get("total") is None else f"{data['total']:,} elements"
            return f"{total}, {data['parallel']} at a time" if data.get("parallel", 1) > 1 else total
        case "iterator.completed":
            return f"{data['ok']:,} OK, {data['failed']:,} in ERROR"
        case "iteration.started":
            return shown(data["item"]) if data.get("item") is not None else ""
    if data.get("error") is not None:
        return error_line(data["error"])
    return str(data.get("cause") or data.get("reason") or "")


def _resumed(data: Any) -> str:
    kept = len(data.get("kept") or ())
    return f"resumed, {kept:,} {'sub-job' if kept == 1 else 'sub-jobs'} kept"
