"""`penstock show RUN` and `penstock explain RUN NODE`: what a run came to, what it waits for, and why."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from penstock.cli.output import BOLD, GREEN, RED, YELLOW, one_line, painted, put, put_json, safe
from penstock.cli.show.local_feed import warning_lines, warnings_of
from penstock.cli.show.summary import bounded, show_job
from penstock.cli.targets import Engine, looking_at, views_of
from penstock.remote.client import at
from penstock.views.names import counted_ports
from penstock.views.wording import counted, elements, error_line, seconds

if TYPE_CHECKING:
    from penstock.ports.log import Header


MOST_STEPS = 200


def show(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        views = views_of(engine)
        waits = waits_of(engine, header)
        warnings = warnings_of(engine, header.execution_id)
        if header.kind == "job" and not options.json:
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


def explain(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        answer: Any = views_of(engine).explained(header, options.node)
        waits = waits_of(engine, header, options.node)
    if waits:
        answer["waiting"] = waits
        answer["because"].insert(0, {"title": TITLE, "lines": lines_of(waits)})
        for one in waits:
            if not one["is_range"]:
                running = f"`{one['scope']}` is running"
                answer["headline"] = answer["headline"].replace(running, f"`{one['scope']}` {TITLE}")
    if options.json:
        put_json(answer)
    else:
        put(_explanation(answer))
    return 0


def _explanation(answer: dict[str, Any]) -> str:
    lines = [painted(safe(answer["headline"]), BOLD, sys.stdout)]
    for section in answer["because"]:
        title = painted(safe(section["title"]), BOLD, sys.stdout)
        lines += ["", title, *(f"  {safe(line)}" for line in section["lines"])]
    return "\n".join(lines)


MOST_COMPONENTS = 40
_PAINTS = {"OK": GREEN, "ERROR": RED, "completed": GREEN, "failed": RED}


def jobs_by_step_run(children: list[Any], step_runs: list[Any]) -> dict[str, list[Any]]:
    """Step run -> the jobs directly inside it."""
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


MOST_RANGES = 3
MOST_WORKERS = 5
MOST_FAILURES = 5


def fanout_lines(fanin: Any, indent: str) -> list[str]:
    figures = [counted(fanin["ranges"], "range")]
    if fanin["out"]:
        figures.append(f"{len(fanin['out']):,} of them out")
    if fanin["lost"]:
        figures.append(f"{fanin['lost']:,} lost with their workers")
    if fanin["retried"]:
        figures.append(f"{fanin['retried']:,} retried")
    if fanin["skipped"]:
        figures.append(f"{fanin['skipped']:,} not tried")
    if fanin["total"] is None:
        figures.append("more pages to read")
    lines = [f"fan-out {fanin['status']}: {', '.join(figures)}"]
    if fanin["workers"]:
        lines.append(f"on {_workers(fanin['workers'])}")
    lines += [_range(one) for one in fanin["out"][:MOST_RANGES]]
    left = len(fanin["out"]) - MOST_RANGES
    if left > 0:
        lines.append(f"… {counted(left, 'more range')} out")
    lines += [_failure(one) for one in fanin["failures"][:MOST_FAILURES]]
    left = fanin["failed"] - MOST_FAILURES
    if left > 0:
        lines.append(f"… {left:,} more failed")
    return [f"{indent}{line}" for line in lines]


def _workers(workers: dict[str, int]) -> str:
    named = [f"{safe(name)} ({count:,})" for name, count in list(workers.items())[:MOST_WORKERS]]
    left = len(workers) - MOST_WORKERS
    return ", ".join(named) + (f" and {counted(left, 'more worker')}" if left > 0 else "")


def _range(one: Any) -> str:
    where = f"on {safe(one['worker'])}" if one["worker"] else "waits for a worker"
    again = f", try {one['attempt'] + 1}" if one["attempt"] else ""
    return f"range {one['range']}, {elements(one['lo'], one['hi'])}{again}: {where}"


def _failure(one: Any) -> str:
    key = f" ({safe(one['key'])})" if one["key"] != str(one["index"]) else ""
    return f"[{one['index']}]{key} failed: {one_line(error_line(one['error']))}"


TITLE = "waits for a worker"
LONG_S = 2.0
"""Shorter waits are normal and not shown."""


def waits_of(engine: Engine, header: Header, node: str | None = None) -> list[Any]:
    """What a run at a server waits for, or one of its steps. In a job sub-jobs wait, so `node` is ignored."""
    if not engine.is_remote or header.status != "running":
        return []
    found = engine.client.get(at("executions", header.execution_id, "waiting"))["waiting"]
    wanted = None if node is None or header.kind == "job" else _step_of(node)
    return [
        one for one in found if (one["is_stuck"] or one["age_s"] >= LONG_S) and wanted in (None, _step_of(one["scope"]))
    ]


def _step_of(scope: str) -> str:
    """The step of a scope, or of what people type for a scope."""
    return re.split(r"[@\[.#]", scope.rpartition("/")[2])[0]


def lines_of(waits: list[Any]) -> list[str]:
    lines = []
    for one in waits:
        needs = ", ".join(f"`{need}`" for need in one["needs"])
        able = f" with {needs}" if needs else ""
        ranges = f", in {counted(one['offers'], 'range')}" if one["offers"] > 1 else ""
        lines.append(
            safe(f"{one['scope']}{ranges}, for {seconds(one['age_s'])}: a worker of pool `{one['pool']}`{able}")
        )
        lines += [f"  {safe(line)}" for line in one["why"]]
    return lines
