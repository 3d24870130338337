"""Jobs that run inside a playbook, as `penstock show` tells them: under the step run that runs them, with their components."""

from __future__ import annotations

import sys
from typing import Any

from penstock.cli.output import GREEN, RED, YELLOW, one_line, painted, safe
from penstock.projections.jobs_names import counted_ports
from penstock.projections.wording import seconds

MOST_COMPONENTS = 40
_PAINTS = {"OK": GREEN, "ERROR": RED, "completed": GREEN, "failed": RED}


def jobs_by_step_run(children: list[Any], step_runs: list[Any]) -> dict[str, list[Any]]:
    """Step run -> the jobs inside it that lie in no step run further in."""
    known = {step["step_run_id"] for step in step_runs}
    found: dict[str, list[Any]] = {}
    for child in children:
        around = child["path"]
        while around and around not in known:
            cut = max(around.rfind("/"), around.rfind("["))
            around = around[: max(cut, 0)]
        if child["kind"] == "job" and around:
            found.setdefault(around, []).append(child)
    return found


def job_lines(child: Any, indent: str) -> list[str]:
    took = f" after {seconds(child['duration_ms'] / 1000)}" if child["duration_ms"] is not None else ""
    status = painted(child["status"], _PAINTS.get(child["status"], YELLOW), sys.stdout)
    lines = [f"{indent}job {safe(child['name'])} at {safe(child['path'])}: {status}{took}"]
    components = list(child.get("components", {}).items())
    lines += [f"{indent}  {_component(name, one)}" for name, one in components[:MOST_COMPONENTS]]
    left = len(components) - MOST_COMPONENTS
    return [*lines, f"{indent}  … {left:,} more; `--json` has them all"] if left > 0 else lines


def _component(name: str, one: Any) -> str:
    kept = " (kept)" if one.get("kept") else ""
    rows = [f", rows {way} {counted_ports(one[f'rows_{way}'])}" for way in ("in", "out") if one[f"rows_{way}"]]
    took = f", {seconds(one['ms'] / 1000)}" if one["ms"] is not None and one["state"] in ("OK", "ERROR") else ""
    why = f": {one_line(str(one['cause']))}" if one["state"] in ("ERROR", "SKIPPED") else ""
    kind = f" ({one['type']})" if one["type"] else ""
    state = painted(one["state"], _PAINTS.get(one["state"], YELLOW), sys.stdout)
    return f"{safe(name)}{kind} {state}{kept}{''.join(rows)}{took}{why}"
