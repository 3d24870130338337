"""When the nodes of an execution, or the workers of a run, ran and waited; and the chain of causes that determined the end.

Law: what is narrower than a pixel is merged, so that an answer depends on the width of the screen and the number of lanes, never
on the number of elements. What a view has merged already is read again from the log when somebody looks closely, if that is not
much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import field

from penstock.kernel.net import Net, On
from penstock.kernel.values import JsonMap
from penstock.views.bars import Bar, merged
from penstock.views.explain.wiring import Wiring
from penstock.views.folded import entries_between
from penstock.views.links import OF_SUBJOB, subjob_frame
from penstock.views.model import FAILED, GONE, OK, RUNNING, WAITING, Execution, Run
from penstock.views.names import lane_title
from penstock.views.run_view import Readable, RunView, view_at

MOST_LANES = 1_000
MOST_READ = 40_000
"""Entries that are read again for a closer look."""
LONGEST_PATH = 10_000
_OF_SUBJOB = frozenset(on.value for on in OF_SUBJOB)
GOES_ON = float("inf")


class Holder(NamedTuple):
    """Who holds a lease, and since when: the log knows it only when the holder has told something."""

    worker: str
    since: float


@dataclass(frozen=True, slots=True)
class Window:
    """`is_going`: the execution goes on at this moment."""

    since: float
    until: float
    pixels: int
    is_going: bool
    now: float
    holders: Mapping[str, Holder] = dataclass_field(default_factory=dict)
    """Scope of what is leased -> who holds it at this moment."""

    @property
    def pixel(self) -> float:
        return max((self.until - self.since) / self.pixels, 1e-6)

    def shows(self, bar: Bar) -> bool:
        return bar.until >= self.since and bar.since <= self.until


def window_of(
    view: RunView,
    execution: Execution,
    since: float | None,
    until: float | None,
    pixels: int,
    now: float | None,
    holders: Mapping[str, Holder] = MappingProxyType({}),
) -> Window:
    """`now`: the time, of a run that goes on at this very moment; else it is the time of the last event."""
    is_going = execution.status == RUNNING
    end = execution.ended_at if execution.ended_at is not None else now if now is not None else view.ts
    first, last = execution.started_at if since is None else since, end if until is None else until
    return Window(first, max(last, first + 1e-3), pixels, is_going, end, holders)


def timeline_of(
    log: Readable, execution_id: str, view: RunView, execution: Execution, net: Net | None, window: Window
) -> JsonMap:
    """A lane for each node."""
    path = critical_path(view, execution, net)
    lanes: dict[str, list[Bar]] = {name: [] for name in _in_order(execution, net)}
    for name, lane in execution.lanes.items():
        lanes.setdefault(name, []).extend(bar for bar in lane.bars if window.shows(bar))
    is_close = any(bar.count > 1 and bar.until - bar.since > 2 * window.pixel for one in lanes.values() for bar in one)
    if is_close:
        lanes = _read_again(log, execution_id, view, execution, lanes, window)
    for name, bar in open_bars(execution, window):
        lanes.setdefault(name, []).append(bar)
    critical = {run.id: run for run in path}
    return {
        "since": window.since,
        "until": window.until,
        "lanes": [
            {
                "id": name,
                "title": lane_title(name),
                "kind": "subjob" if name.startswith("<") else "node",
                "bars": _shown(bars, window, critical),
            }
            for name, bars in list(lanes.items())[:MOST_LANES]
        ],
        **_critical(path, window),
    }


def _in_order(execution: Execution, net: Net | None) -> Iterator[str]:
    """The nodes, each sub-job that has been handed out before the first of its own."""
    known: set[str] = set()
    for name, node in net.nodes.items() if net is not None else ():
        if net is not None and node.part is not None and not node.part.container:
            frame = subjob_frame(net.containers[""].regions[node.part.region].name)
            group = execution.groups.get(frame)
            is_out = group is not None and group.lease is not None
            if frame not in known and (is_out or frame in execution.lanes):
                known.add(frame)
                yield frame
        yield name


def workers_of(view: RunView, window: Window) -> JsonMap:
    """A lane for each worker, with what it did in any execution of the run."""
    lanes = {name: [bar for bar in lane.bars if window.shows(bar)] for name, lane in view.workers.items()}
    for execution in view.executions.values():
        for _, bar in open_bars(execution, window):
            if bar.worker is not None and bar.kind in ("run", "lease"):
                lanes.setdefault(bar.worker, []).append(bar)
    return {
        "since": window.since,
        "until": window.until,
        "lanes": [
            {"id": name, "title": name, "kind": "worker", "bars": _shown(bars, window, {})}
            for name, bars in sorted(lanes.items())
        ],
        "critical_ms": None,
        "critical": [],
    }


# ---- bars


def open_bars(execution: Execution, window: Window) -> Iterator[tuple[str, Bar]]:
    """The lane and the bar of what has not ended at this moment: it goes on, or was cut off when the run stopped."""
    end = GOES_ON if window.is_going else window.now

    def bar(kind: Any, since: float, seq: int | None, status: str, label: str, **more: Any) -> Bar:
        return Bar(since, max(end, since), kind, status, seq=seq or 0, label=label, **more)

    for run in execution.runs.values():
        if run.ended_at is not None or run.joined is not None:
            continue
        if run.status == WAITING:
            yield run.node, bar("wait", run.created_at, run.created_seq, WAITING, "to be let in", scope=run.id)
        if run.status != RUNNING or run.started_at is None:
            continue
        first = run.scheduled_seq or run.created_seq
        yield run.node, bar("run", run.started_at, first, RUNNING, run.node, scope=run.id, worker=run.worker)
        for one in run.under_way.values():
            scope = one.task_run_id.rpartition("/")[0] or run.id
            more: Any = {"scope": scope, "attempt": one.number, "worker": run.worker}
            yield run.node, bar("attempt", one.started_at, one.seq, RUNNING, one.task, **more)
        for scope, retry in run.retries.items():
            more = {"scope": scope, "attempt": retry.attempt}
            yield run.node, bar("wait", retry.since, retry.seq, WAITING, "for a retry", **more)
        for held in run.fan.ranges.out.values() if run.fan is not None and run.fan.ranges is not None else ():
            if held.taken_at is None:
                yield run.node, bar("wait", held.at, held.seq, WAITING, "for a worker", scope=run.id)
            else:
                more = {"scope": run.id, "worker": held.worker}
                yield run.node, bar("lease", held.taken_at, held.seq, RUNNING, f"range {held.number}", **more)
    for lease in execution.leases():
        title, worker, since = lane_title(lease.lane), lease.worker, lease.since
        holder = window.holders.get(lease.scope)
        if holder is not None:
            if worker is not None and worker != holder.worker:  # The log has not heard of the one that holds it now.
                until, since = max(since, holder.since), holder.since
                more = {"scope": lease.scope, "worker": worker, "seq": lease.seq, "label": f"{title}, {GONE}"}
                yield lease.lane, Bar(lease.since, until, "lease", FAILED, failed=1, **more)
            worker = holder.worker
        yield lease.lane, bar("lease", since, lease.seq, RUNNING, title, scope=lease.scope, worker=worker)
    for lease in execution.leases_of_iterations():
        more = {"scope": lease.scope, "seq": lease.seq, "label": lane_title(lease.lane), "worker": lease.worker}
        yield lease.lane, Bar(lease.since, lease.heard, "lease", OK, **more)


def _shown(bars: Iterable[Bar], window: Window, critical: dict[str, Run]) -> list[Any]:
    found = merged([copy(bar) for bar in bars if window.shows(bar)], window.pixel, window.since, wide=1)
    found.sort(key=lambda bar: (bar.since, bar.seq))
    return [
        {
            "since": bar.since,
            "until": None if bar.until == GOES_ON else bar.until,
            "status": bar.status,
            "kind": bar.kind,
            "count": bar.count,
            "failed": bar.failed,
            "label": bar.label,
            "scope": bar.scope or None,
            "seq": bar.seq or None,
            "attempt": bar.attempt or None,
            "worker": bar.worker,
            "is_critical": bar.kind == "run" and _is_critical(bar, critical),
        }
        for bar in found
    ]


def _is_critical(bar: Bar, critical: dict[str, Run]) -> bool:
    if bar.scope in critical:
        return True
    if bar.count == 1 or not critical:
        return False
    return any(
        run.node == bar.label and bar.seq <= (run.scheduled_seq or run.created_seq) <= bar.last
        for run in critical.values()
    )


# ---- a closer look


class _Recorder(RunView):
    """A view that remembers every bar."""

    recorded: list[tuple[str, str, Bar]] = field(default_factory=list)

    def draw(self, execution: Execution, node: str, bar: Bar) -> None:
        self.recorded.append((execution.scope, node, bar))


def _read_again(
    log: Readable,
    execution_id: str,
    view: RunView,
    execution: Execution,
    lanes: dict[str, list[Bar]],
    window: Window,
) -> dict[str, list[Bar]]:
    """The lanes with the bars that were merged as they had been, if they lie close together in the log."""
    coarse = [bar for bars in lanes.values() for bar in bars if bar.count > 1]
    first, last = min(bar.seq for bar in coarse), min(view.seq, max(bar.last for bar in coarse))
    if not 0 < last - first <= MOST_READ:
        return lanes
    before = view_at(log, execution_id, first - 1)
    recorder = _Recorder.restore(before.snapshot())
    recorder.apply_all(entries_between(log, execution_id, first - 1, last))
    known = {(name, bar.kind, bar.seq) for name, bars in lanes.items() for bar in bars if bar.count == 1}
    fine = {name: [bar for bar in bars if bar.count == 1] for name, bars in lanes.items()}
    for scope, name, bar in recorder.recorded:
        if scope == execution.scope and window.shows(bar) and (name, bar.kind, bar.seq) not in known:
            fine.setdefault(name, []).append(bar)
    return fine


# ---- the critical path


def _critical(path: list[Run], window: Window) -> JsonMap:
    if not path:
        return {"critical_ms": None, "critical": []}
    first, last = path[0], path[-1]
    until = last.ended_at if last.ended_at is not None else window.now
    began = first.started_at if first.started_at is not None else first.created_at
    return {
        "critical_ms": round(max(0.0, until - began) * 1000, 3),
        "critical": [*dict.fromkeys(run.node for run in path)],
    }


def critical_path(view: RunView, execution: Execution, net: Net | None) -> list[Run]:
    """From the run that ended last back to the one that ended last of those it had to wait for, and so on, as far as they are
    kept. Of an execution that goes on, from what has been running for the longest time."""
    runs = [run for run in execution.runs.values() if run.started_at is not None and "[#" not in run.name]
    going = [run for run in runs if run.ended_at is None and run.status == RUNNING]
    ended = [run for run in runs if run.ended_at is not None and run.status in (OK, FAILED)]
    last: Run | None = None
    if going and execution.status == RUNNING:
        last = min(going, key=lambda run: run.started_at or 0.0)
    elif ended:
        last = max(ended, key=lambda run: (run.ended_at or 0.0, run.end_seq or 0))
    wiring = Wiring(execution, net, is_live=False) if execution.kind == "job" else None
    path: list[Run] = []
    known: set[str] = set()
    while last is not None and last.id not in known and len(path) < LONGEST_PATH:
        known.add(last.id)
        path.append(last)
        last = _before_step(view, last) if wiring is None else _before_component(wiring, last)
    return path[::-1]


def _before_step(view: RunView, run: Run) -> Run | None:
    tokens = [token for one in run.tokens if (token := view.run(one)) is not None]
    latest = max(tokens, key=lambda token: token.created_seq, default=run)
    return view.run(latest.parent) or view.run(run.continues)


def _before_component(wiring: Wiring, run: Run) -> Run | None:
    sources: list[Run | None] = []
    for fire in wiring.causes.fires_into(run.name):
        source = wiring.runs.get(fire.source)
        group = wiring.group_of(source) if fire.on in _OF_SUBJOB else None
        sources += [source] if group is None else [wiring.runs.get(name) for name in group.members]
    sources += [
        wiring.run(link.source, run.name)
        for link in (*wiring.inbound(run.node), *wiring.gates(run.node))
        if link.on is On.DATA or link.hidden
    ]
    began = run.started_at if run.started_at is not None else run.created_at
    before = [one for one in sources if one is not None and one.ended_at is not None and one.ended_at <= began]
    return max(before, key=lambda one: (one.ended_at or 0.0, one.end_seq or 0), default=None)
