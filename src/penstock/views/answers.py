"""A view as programs read it: what `show --json` prints and the API answers, for playbooks and for jobs.

Law: a resumed job is shown as what was kept and the latest run of the rest; earlier runs of what a resume starts over are not
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from penstock.kernel.net import Link, Net
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Header
from penstock.ports.wire import read_clock
from penstock.views.contexts import globals_of
from penstock.views.links import Causes, edge_name, edges_of
from penstock.views.model import FAILED, RUNNING, SETTLED, WAITING, Execution, Fan, Group, Ranges, Run, word
from penstock.views.names import outside_bodies, subjob_name
from penstock.views.run_view import RunView
from penstock.views.steps import SHARDS

SHOWN_WORKERS = 100
SHOWN_FAILURES = 100
SHOWN_SHARDS = 20
"""Of the failed elements of a fan-out."""
PENDING = "PENDING"
MOST_INSIDE = 200
"""How many jobs inside a playbook are shown with their components; the others are only listed."""


def standing(status: str, is_live: bool) -> str:
    """`is_live`: a process works on the run now. Without one, what was running counts as interrupted."""
    return "interrupted" if status == RUNNING and not is_live else status


# ---- playbooks


def counts_of(view: RunView) -> JsonMap:
    counts = view.counts
    iterations = ("loop.iteration.done", "loop.iteration.failed", SHARDS)
    return {
        "steps": counts.get("step.scheduled", 0),
        "tasks": counts.get("task.done", 0),
        "iterations": sum(counts.get(kind, 0) for kind in iterations),
        "events": view.seq,
    }


def step_runs(view: RunView, *, is_live: bool) -> list[JsonMap]:
    """Every token and step run in canonical order; tokens that were consumed together with others are left out."""
    return [_step_run(run, is_live) for run in in_order(view)]


def in_order(view: RunView) -> list[Run]:
    runs = [
        run
        for execution in view.executions.values()
        if execution.kind == "playbook"
        for run in execution.runs.values()
        if run.joined is None
    ]
    return sorted(runs, key=lambda run: read_clock(run.clock))


def _step_run(run: Run, is_live: bool) -> JsonMap:
    counts: JsonMap = {"total": 0, "done": 0, "failed": 0}
    if run.fan is not None:
        counts = {"total": run.fan.size, "done": run.fan.ok, "failed": run.fan.failed}
    has_taken = run.ended_at is not None and run.started_at is not None
    return {
        "step": run.node,
        "step_run_id": run.id,
        "visit": run.visit,
        "status": word(standing(run.status, is_live), "playbook"),
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
        "duration_ms": round(run.took * 1000, 3) if has_taken else None,
    }


def fanins(view: RunView, *, is_live: bool) -> JsonMap:
    """Step run -> how far its fanned-out loop is, for each that has one."""
    return {
        run.id: _fanin(run.fan, run.fan.ranges, is_live=is_live and run.ended_at is None)
        for run in in_order(view)
        if run.fan is not None and run.fan.ranges is not None
    }


def _fanin(fan: Fan, ranges: Ranges, *, is_live: bool) -> JsonMap:
    workers = sorted(ranges.workers.items(), key=lambda one: -one[1])
    return {
        "loop_id": ranges.loop_id,
        "status": standing(ranges.status, is_live),
        "total": fan.total,
        "next": ranges.next,
        "succeeded": fan.ok,
        "failed": fan.failed,
        "skipped": ranges.skipped,
        "retried": ranges.retried,
        "lost": ranges.lost,
        "ranges": ranges.count,
        "out": [
            {"range": one.number, "lo": one.lo, "hi": one.hi, "attempt": one.attempt, "worker": one.worker}
            for _, one in sorted(ranges.out.items())
        ],
        "workers": dict(workers[:SHOWN_WORKERS]),
        "failures": [
            {"index": one.index, "key": one.key, "attempt": one.attempt, "error": one.error}
            for one in sorted(fan.failures[:SHOWN_SHARDS], key=lambda one: one.index)
        ],
        "refs": ranges.refs,
        "shared": ranges.shared,
    }


NetOf = Callable[[Execution], "Net | None"]


def children_of(view: RunView, execution_id: str, net_of: NetOf, *, is_live: bool) -> list[JsonMap]:
    """What runs inside a run, in the order in which it started; of the latest jobs with the components that run once."""
    inside = [one for one in view.executions.values() if one.scope]
    looked_into = {one.scope for one in [one for one in inside if one.kind == "job"][-MOST_INSIDE:]}
    return [_child(one, execution_id, net_of if one.scope in looked_into else None, is_live) for one in inside]


def _child(one: Execution, execution_id: str, net_of: NetOf | None, is_live: bool) -> JsonMap:
    path = one.scope.removesuffix("/")
    shown: JsonMap = {
        "execution_id": f"{execution_id}/{path}",
        "kind": one.kind,
        "name": one.name,
        "path": path,
        "status": standing(one.status, is_live),
        "error": one.error,
        "continues": one.continues,
        "duration_ms": None if one.ended_at is None else round(max(0.0, one.ended_at - one.started_at) * 1000, 3),
    }
    if net_of is None:
        return shown
    net = net_of(one)
    links = net.links if net is not None else None
    return {**shown, "components": _components(one, net, links, is_listed=False)}


# ---- jobs


@dataclass(frozen=True, slots=True)
class JobStanding:
    execution: Execution
    events: int
    last_ts: float
    components: dict[str, JsonMap]
    subjobs: list[JsonMap]
    edges: list[JsonMap]
    globals: JsonMap
    iterations: JsonMap
    metrics: JsonMap

    @property
    def counts(self) -> JsonMap:
        """Like the counts of a playbook: how much ran in all, including iterations."""
        return {
            "components": self.execution.counts.get("component.started", 0),
            "subjobs": sum("[#" not in str(one["name"]) for one in self.subjobs),
            "iterations": self.iterations["total"],
            "failed_iterations": self.iterations["failed"],
            "events": self.events,
        }

    @property
    def result(self) -> JsonMap:
        """Iterations that failed under `continue` leave the job completed; here they are counted (D37)."""
        return {"iterations": self.iterations["total"], "failed_iterations": self.iterations["failed"]}


def job_standing(view: RunView, document: Net | Sequence[Link] | None, scope: str = "") -> JobStanding:
    """`document`: the job's net, with which components that have not begun are shown too; or its links.

    What is inside iterations is shown if the view lists it; else it is counted, and only iterations that failed are shown.
    `scope`: of a job that a task or a component of the run runs.
    """
    execution = view.executions.get(scope) or Execution(scope, "job", "", "", 0.0)
    is_listed = view.lists(execution)
    groups = [one for one in execution.groups.values() if is_listed or "[#" not in one.scope or _is_failed(one)]
    subjobs = [_subjob(one, execution) for one in sorted(groups, key=_place)]
    net = document if isinstance(document, Net) else None
    if net is not None:
        _add_pending(subjobs, net)
    links = document.links if isinstance(document, Net) else document
    edges = edges_of(execution, links)
    return JobStanding(
        execution,
        events=view.seq,
        last_ts=view.ts,
        components=_components(execution, net, links, is_listed=is_listed),
        subjobs=subjobs,
        edges=edges,
        globals=globals_of(execution),
        iterations=_iterations(execution, is_listed=is_listed),
        metrics=_metrics(execution, edges),
    )


def _is_failed(group: Group) -> bool:
    return group.status == FAILED and group.iterator is not None and "[#" not in group.iterator


def _place(one: Run | Group) -> tuple[object, ...]:
    """By logical clock: the order of the document, whatever ran faster. The counters only tell one start from another."""
    clock = read_clock(one.clock)[:-1]
    return tuple(
        part
        for before, part in zip(((), *clock), clock, strict=False)
        if isinstance(part, tuple) or isinstance(before, int)
    )


def _components(
    execution: Execution, net: Net | None, links: Sequence[Link] | None, *, is_listed: bool
) -> dict[str, Any]:
    causes = Causes(execution, links)
    runs = [run for name, run in execution.runs.items() if is_listed or "[#" not in name]
    found = {run.name: _component(run, causes, net) for run in sorted(runs, key=_place)}
    for name in outside_bodies(net) if net is not None else ():
        if name not in found:
            found[name] = {
                "state": word(WAITING, "job"),
                "cause": causes.waits(name),
                "rows_in": {},
                "rows_out": {},
                "ms": None,
                "type": _type(net, name),
            }
    return found


def _component(run: Run, causes: Causes, net: Net | None) -> JsonMap:
    shown: JsonMap = {
        "state": word(run.status, "job"),
        "cause": causes.of(run),
        "rows_in": dict(run.rows_in),
        "rows_out": dict(run.rows_out),
        "ms": run.ms if run.ended_at is not None and run.status in SETTLED else None,
        "type": run.type or _type(net, run.node),
    }
    if run.error is not None:
        shown["error"] = run.error
    if run.kept:
        shown["kept"] = True
    return shown


def _type(net: Net | None, node: str) -> str:
    """The event of a skipped component does not name its type."""
    if net is None or node not in net.nodes:
        return ""
    tasks = net.nodes[node].tasks
    return tasks[0].kind if tasks else "joblet"


def group_word(group: Group) -> str:
    return PENDING if group.status == WAITING else word(group.status, "job")


def _subjob(group: Group, execution: Execution) -> JsonMap:
    inner = [name for scope in group.inner if scope in execution.groups for name in execution.groups[scope].members]
    members = [execution.runs[name] for name in (*group.members, *inner) if name in execution.runs]
    names: list[Json] = [one.name for one in sorted(members, key=_place)]
    shown: JsonMap = {"name": group.name, "state": group_word(group), "members": names}
    if group.error is not None:
        shown["error"] = group.error
    if group.kept:
        shown["kept"] = True
    return shown


def _add_pending(subjobs: list[JsonMap], net: Net) -> None:
    """Sub-jobs that have not begun, and members that have not, as the document has them."""
    known = {str(one["name"]): one for one in subjobs}
    once = set(outside_bodies(net))
    for container in net.containers.values():
        for region in container.regions:
            if not once.issuperset(region.members):
                continue
            shown = known.get(region.name)
            if shown is None:
                subjobs.append({"name": region.name, "state": PENDING, "members": list(region.members)})
            else:
                shown["members"] = list(region.members)


def _iterations(execution: Execution, *, is_listed: bool) -> JsonMap:
    ok = failed = running = 0
    by_iterator: JsonMap = {}
    failures: list[Json] = []
    for name, one in execution.iterators():
        if "[#" in name and not is_listed:
            continue
        ok, failed, running = ok + one.ok, failed + one.failed, running + len(one.open)
        by_iterator[name] = {
            "total": one.total if one.total is not None else one.settled + len(one.open),
            "ok": one.ok,
            "failed": one.failed,
            "running": len(one.open),
        }
        failures += [f"{name}[#{index}]" for index in sorted(failure.index for failure in one.failures)]
    return {
        "total": ok + failed + running,
        "ok": ok,
        "failed": failed,
        "running": running,
        "failures": failures[:SHOWN_FAILURES],
        "iterators": by_iterator,
    }


def _metrics(execution: Execution, edges: Iterable[JsonMap]) -> JsonMap:
    """Rulebook 9."""
    times: JsonMap = {
        node: {"runs": one.timed, "total": round(one.ms, 3), "max": round(one.longest, 3)}
        for node, one in execution.totals().items()
        if one.timed
    }
    writes = sorted(execution.global_writes.items())
    saved = execution.checkpoints
    return {
        "component_ms": times,
        "edge_fires": {edge_name(edge): edge["fired"] for edge in edges},
        "global_writes": {subjob_name(scope): number for scope, number in writes},
        "checkpoints": {"count": saved.count, "bytes": saved.bytes, "largest_bytes": saved.largest},
        "resumes": max(0, len(execution.starts) - 1),
        "time_to_resume_ms": _time_to_resume(execution),
    }


def _time_to_resume(execution: Execution) -> float | None:
    """From the last resume to the first component that started after it."""
    resumed = [start for start in execution.starts if start.resumed and start.first_component_at is not None]
    if not resumed or resumed[-1].first_component_at is None:
        return None
    return round(max(0.0, resumed[-1].first_component_at - resumed[-1].at) * 1000, 3)


class JobSummary(Protocol):
    """The result of a run, from running it or from folding its log."""

    @property
    def status(self) -> str: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def error(self) -> Json: ...

    @property
    def result(self) -> Json: ...

    @property
    def duration_ms(self) -> float: ...


def job_json(header: Header, standing: JobStanding, summary: JobSummary) -> JsonMap:
    """What `run --json` and `show --json` print: the keys of a playbook's run, with the inside of a job instead of `ctx`."""
    shown = {
        "execution_id": header.execution_id,
        "kind": "job",
        "name": header.name,
        "status": summary.status,
        "exit_code": summary.exit_code,
        "error": summary.error,
        "globals": standing.globals,
        "components": standing.components,
        "subjobs": standing.subjobs,
        "edges": standing.edges,
        "iterations": standing.iterations,
        "metrics": standing.metrics,
        "failed_iterations": max(standing.execution.failed_iterations, cast(int, standing.iterations["failed"])),
        "result": summary.result if summary.result is not None else standing.result,
        "counts": standing.counts,
        "duration_ms": summary.duration_ms,
    }
    return cast(JsonMap, shown)
