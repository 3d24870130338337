"""Where a job stands: its components, sub-jobs, links, globals and figures, read from the log in one pass.

Law: what is shown is what was kept and the latest run of the rest; a component that a resume starts over has no past here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from penstock.kernel.net import Link, Net, On
from penstock.kernel.values import Json, JsonMap
from penstock.ports.log import Entry, Header
from penstock.ports.results import Load
from penstock.ports.wire import read_clock
from penstock.views.jobs_causes import Causes
from penstock.views.jobs_edges import edges_of
from penstock.views.jobs_fold import JobFold
from penstock.views.jobs_names import outside_bodies, subjob_name
from penstock.views.jobs_seen import PENDING, SETTLED, WAIT, ComponentSeen, JobSeen, SubjobSeen

SHOWN_FAILURES = 100


@dataclass(frozen=True, slots=True)
class JobStanding:
    seen: JobSeen
    components: dict[str, JsonMap]
    subjobs: list[JsonMap]
    edges: list[JsonMap]
    globals: JsonMap
    iterations: JsonMap
    metrics: JsonMap

    @property
    def counts(self) -> JsonMap:
        """As the counts of a playbook's run are: how much ran of everything, in iterations too."""
        return {
            "components": self.seen.counts["component.started"],
            "subjobs": sum("[#" not in str(one["name"]) for one in self.subjobs),
            "iterations": self.iterations["total"],
            "failed_iterations": self.iterations["failed"],
            "events": self.seen.events,
        }

    @property
    def result(self) -> JsonMap:
        """Iterations that failed under `continue` leave the job completed; here they are counted (D37)."""
        return {"iterations": self.iterations["total"], "failed_iterations": self.iterations["failed"]}


def job_standing(
    entries: Iterable[Entry],
    links: Sequence[Link] | Net | None,
    *,
    execution: str = "",
    load: Load | None = None,
    with_iterations: bool = True,
) -> JobStanding:
    """`links`: those of the job's net, or the net itself, with which components that have not begun are shown too.

    `execution` is the scope of a job that a task or a component of the run runs. `load` reads globals that are kept by
    reference; without it the reference is shown. Without `with_iterations` what is inside iterations is counted and not
    listed, but for those that failed.
    """
    fold = JobFold(execution, load, with_iterations=with_iterations)
    return standing_of_job(fold.add_all(entries), links, fold.globals.values())


def standing_of_job(seen: JobSeen, links: Sequence[Link] | Net | None, values: JsonMap) -> JobStanding:
    net = links if isinstance(links, Net) else None
    known = net.links if net is not None else links if not isinstance(links, Net) else None
    causes = Causes(seen, known)
    edges = edges_of(seen, known)
    components = {one.name: _component(one, causes, net) for one in sorted(seen.components.values(), key=_place)}
    subjobs = [_subjob(one, seen) for one in sorted(seen.subjobs.values(), key=_place)]
    if net is not None:
        _add_waiting(components, net, causes)
        _add_pending(subjobs, net)
    return JobStanding(
        seen,
        components,
        subjobs,
        edges,
        values,
        _iterations(seen),
        _metrics(seen, edges),
    )


def _place(one: ComponentSeen | SubjobSeen) -> tuple[object, ...]:
    """By logical clock: the order of the document, whatever ran faster. Its counters only say which start this was of."""
    clock = read_clock(one.clock)[:-1]
    return tuple(
        part
        for before, part in zip(((), *clock), clock, strict=False)
        if isinstance(part, tuple) or isinstance(before, int)
    )


def _component(component: ComponentSeen, causes: Causes, net: Net | None) -> JsonMap:
    shown: JsonMap = {
        "state": component.state,
        "cause": causes.of(component),
        "rows_in": dict(component.rows_in),
        "rows_out": dict(component.rows_out),
        "ms": component.ms if component.ended_at is not None and component.state in SETTLED else None,
        "type": component.type or _type(net, component.node),
    }
    if component.error is not None:
        shown["error"] = component.error
    if component.kept:
        shown["kept"] = True
    return shown


def _add_waiting(components: dict[str, JsonMap], net: Net, causes: Causes) -> None:
    for name in outside_bodies(net):
        if name not in components:
            components[name] = {
                "state": WAIT,
                "cause": causes.waits(name),
                "rows_in": {},
                "rows_out": {},
                "ms": None,
                "type": _type(net, name),
            }


def _type(net: Net | None, node: str) -> str:
    """A component that was skipped does not say what it is."""
    if net is None or node not in net.nodes:
        return ""
    tasks = net.nodes[node].tasks
    return tasks[0].kind if tasks else "joblet"


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


def _subjob(subjob: SubjobSeen, seen: JobSeen) -> JsonMap:
    inner = [member for scope in subjob.inner if scope in seen.subjobs for member in seen.subjobs[scope].members]
    members = [seen.components[name] for name in (*subjob.members, *inner)]
    names: list[Json] = [one.name for one in sorted(members, key=_place)]
    shown: JsonMap = {"name": subjob.name, "state": subjob.state, "members": names}
    if subjob.error is not None:
        shown["error"] = subjob.error
    if subjob.kept:
        shown["kept"] = True
    return shown


def _iterations(seen: JobSeen) -> JsonMap:
    ok = failed = running = 0
    by_iterator: JsonMap = {}
    failures: list[Json] = []
    for name, component in seen.components.items():
        one = component.iterator
        if one is None:
            continue
        ok, failed, running = ok + one.ok, failed + one.failed, running + one.running
        by_iterator[name] = {
            "total": one.total if one.total is not None else one.settled + one.running,
            "ok": one.ok,
            "failed": one.failed,
            "running": one.running,
        }
        failures += [f"{name}[#{index}]" for index in sorted(one.failures)]
    return {
        "total": ok + failed + running,
        "ok": ok,
        "failed": failed,
        "running": running,
        "failures": failures[:SHOWN_FAILURES],
        "iterators": by_iterator,
    }


# ---- figures (rulebook 9)


def _metrics(seen: JobSeen, edges: list[JsonMap]) -> JsonMap:
    return {
        "component_ms": _run_times(seen),
        "edge_fires": {_edge_name(edge): edge["fired"] for edge in edges},
        "global_writes": {subjob_name(scope): times for scope, times in sorted(seen.global_writes.items())},
        "checkpoints": {
            "count": seen.checkpoints,
            "bytes": seen.checkpoint_bytes,
            "largest_bytes": seen.largest_checkpoint,
        },
        "resumes": len(seen.starts) - 1 if seen.starts else 0,
        "time_to_resume_ms": _time_to_resume(seen),
    }


def _run_times(seen: JobSeen) -> JsonMap:
    """By the component's name in the document: in a body it runs many times."""
    times: dict[str, list[float]] = {}
    for component in seen.components.values():
        if component.started_at is not None and component.ended_at is not None:
            known = times.setdefault(component.node, [0, 0.0, 0.0])
            known[0] += 1
            known[1] += component.ms
            known[2] = max(known[2], component.ms)
    return {
        node: {"runs": int(runs), "total": round(total, 3), "max": round(longest, 3)}
        for node, (runs, total, longest) in times.items()
    }


def _edge_name(edge: JsonMap) -> str:
    if edge["on"] == On.DATA.value:
        return f"{edge['from']}.{edge['port']} -> {edge['to']}.{edge['to_port']}"
    order = f" {edge['order']}" if "order" in edge else ""
    return f"{edge['from']} ({edge['on']}{order}) {edge['to']}"


def _time_to_resume(seen: JobSeen) -> float | None:
    """From the last resume to the first component that started after it."""
    resumed = [start for start in seen.starts if start.resumed and start.first_component_at is not None]
    if not resumed or resumed[-1].first_component_at is None:
        return None
    return round(max(0.0, resumed[-1].first_component_at - resumed[-1].at) * 1000, 3)


# ---- the whole, for programs


class JobSummary(Protocol):
    """What a run came to, as whoever ran it or folded its log knows."""

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
        "failed_iterations": max(standing.seen.failed_iterations, cast(int, standing.iterations["failed"])),
        "result": summary.result if summary.result is not None else standing.result,
        "counts": standing.counts,
        "duration_ms": summary.duration_ms,
    }
    return cast(JsonMap, shown)


__all__ = ["JobStanding", "JobSummary", "job_json", "job_standing", "standing_of_job"]
