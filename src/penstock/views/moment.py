"""A run right after one of its entries, for a page: the state of every node, edge and frame of one execution in it.

Law: everything is read from the view; the net only says which nodes there are and how they are joined. What is open or recent is
shown as it is, and what is no longer kept one by one is in the sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.net import Net, On
from penstock.kernel.values import JsonMap
from penstock.views.answers import counts_of
from penstock.views.links import Causes, LinkView, arc_id, links_of, subjob_frame
from penstock.views.model import (
    REFUSED,
    RUNNING,
    SKIPPED,
    STRANDED,
    WAITING,
    Execution,
    Fan,
    Group,
    Run,
    Totals,
)
from penstock.views.names import node_of
from penstock.views.run_view import RunView
from penstock.views.wording import counted, error_line, listed

RETRYING = "retrying"
NOT_RUN = "not_run"
SHOWN_FAILURES = 20
SHOWN_CHILDREN = 50
MOST_INSIDE = 200

_SHOWN = {REFUSED: SKIPPED, STRANDED: SKIPPED}
_NOTHING = Totals()


@dataclass(frozen=True, slots=True)
class Live:
    """What the log does not say, of a run that goes on: the time now, and rows that components have made so far."""

    now: float
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    counted_at: Mapping[str, float] = field(default_factory=dict)
    """Component -> when its rows were counted, if that was not just now."""


def moment_of(view: RunView, scope: str, net: Net | None, live: Live | None = None) -> JsonMap:
    """`nodes`, `edges`, `frames`, `executions` and `counts` of the execution `scope`; none of them before it began."""
    execution = view.executions.get(scope)
    if execution is None:
        execution = Execution(scope, net.kind if net is not None else "playbook", "", "", 0.0)
    inside = insides(view)
    looking = _Looking(execution, net, inside, live)
    return {
        "counts": counts(view, execution),
        "nodes": looking.nodes(),
        "edges": looking.edges(),
        "frames": looking.frames(),
        "executions": [one.as_json() for one in inside],
    }


def counts(view: RunView, execution: Execution) -> JsonMap:
    found = counts_of(view)
    started = view.counts.get("component.started", 0)
    ended = ("iteration.ok", "iteration.error")
    iterations = sum(view.counts.get(kind, 0) for kind in ended)
    return {
        **{key: value for key, value in found.items() if value or key == "events"},
        **({"components": started, "iterations": iterations} if started else {}),
        **({"executions": len(view.executions) - 1 + sum(view.gone.values())} if len(view.executions) > 1 else {}),
    }


# ---- executions inside the run


@dataclass(frozen=True, slots=True)
class Inside:
    execution: Execution
    node: str | None
    parent: str

    def as_json(self) -> JsonMap:
        one = self.execution
        return {
            "scope": one.scope,
            "kind": one.kind,
            "name": one.name,
            "status": one.status,
            "node": self.node,
            "parent": self.parent,
            "started_at": one.started_at,
            "ended_at": one.ended_at,
        }


def insides(view: RunView) -> list[Inside]:
    """The latest that run, or ran, inside the run; and of the others those that failed."""
    every = [one for scope, one in view.executions.items() if scope]
    latest = {id(one) for one in every[-MOST_INSIDE:]}
    shown = [one for one in every if id(one) in latest or one.status == "failed"]
    return [Inside(one, *caller_of(view, one.scope)) for one in shown[-2 * MOST_INSIDE :]]


def caller_of(view: RunView, scope: str) -> tuple[str | None, str]:
    """The node that runs an execution, and the scope of the execution that this node belongs to."""
    path = scope.removesuffix("/")
    end = path.rfind("/")
    while end >= 0 and path[: end + 1] not in view.executions:
        end = path.rfind("/", 0, end)
    around = path[: end + 1]
    parent = view.executions.get(around)
    rest = path[len(around) :]
    if parent is None:
        return None, ""
    node = rest.partition("@")[0] if parent.kind == "playbook" else node_of(rest.partition("/")[0])
    return node or None, around


# ---- nodes, edges, frames


class _Looking:
    def __init__(self, execution: Execution, net: Net | None, inside: Sequence[Inside], live: Live | None) -> None:
        self._execution = execution
        self._net = net
        self._live = live
        self._totals = execution.totals()
        self._causes = Causes(execution, net.links if net is not None else None)
        self._runs: defaultdict[str, list[Run]] = defaultdict(list)
        for run in execution.runs.values():
            if run.joined is None:
                self._runs[run.node].append(run)
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        for one in reversed(inside):
            if one.parent == execution.scope and one.node is not None:
                self._children[one.node].append(one.execution.scope)

    def nodes(self) -> dict[str, Any]:
        names = dict.fromkeys([*(self._net.nodes if self._net is not None else ()), *self._runs, *self._totals])
        return {name: self._node(name) for name in names}

    def latest(self, node: str) -> Run | None:
        """One that runs, else the latest."""
        runs = self._runs.get(node, ())
        return max(runs, key=lambda run: (run.status == RUNNING, run.created_seq), default=None)

    def _node(self, node: str) -> JsonMap:
        run = self.latest(node)
        runs, gone = self._runs.get(node, []), self._gone(node)
        totals = self._totals.get(node, _NOTHING)
        last = gone.last
        status = (
            self._status(run) if run is not None else _SHOWN.get(last.status, last.status) if last else self._idle()
        )
        waits = [retry.at for retry in run.retries.values()] if run is not None else []
        return {
            "status": status,
            "runs": len(runs) + gone.runs,
            "ended": _ended(runs, gone),
            "run": run.id if run is not None else last.run if last else None,
            "started_at": run.started_at if run is not None else last.started_at if last else None,
            "ended_at": run.ended_at if run is not None else last.ended_at if last else None,
            "ms": round(gone.ms + sum(run.ms or run.took * 1000 for run in runs if run.ended_at is not None), 3),
            "attempt": run.last_attempt if run is not None else 0,
            "task": run.last_task or None if run is not None else None,
            "retry_at": min(waits) if waits else None,
            "fan": _fan(run.fan) if run is not None and run.fan is not None else None,
            "rows_in": {port: rows for port, (_, rows) in totals.rows_in.items()},
            "rows_out": {port: rows for port, (_, rows) in totals.rows_out.items()},
            "rows_so_far": self._rows_so_far(run),
            "error": error_line(run.error) if run is not None and run.error is not None else None,
            "reason": self._reason(node, run, status),
            "worker": run.worker if run is not None else last.worker if last else None,
            "children": [*self._children.get(node, [])[:SHOWN_CHILDREN]],
        }

    def _gone(self, node: str) -> Totals:
        """What is no longer kept one by one."""
        execution = self._execution
        parts = [
            execution.gone,
            *(fan.fallen for _, fan in execution.iterators()),
            *(fan.fallen for fan in execution.kept_fans.values()),
        ]
        found = Totals()
        for part in parts:
            if node in part:
                found.merge(part[node])
        return found

    def _status(self, run: Run) -> str:
        if run.status == RUNNING and run.retries and not run.under_way:
            return RETRYING
        if run.status == WAITING:
            return self._idle()
        return _SHOWN.get(run.status, run.status)

    def _idle(self) -> str:
        """Of what has not begun: once the execution is over, nothing waits any more."""
        return NOT_RUN if self._execution.is_over else WAITING

    def _rows_so_far(self, run: Run | None) -> dict[str, Any]:
        if run is None or self._live is None or run.status != RUNNING:
            return {}
        return dict(self._live.rows.get(run.id, {}))

    def _reason(self, node: str, run: Run | None, status: str) -> str | None:
        if run is None:
            return self._missing(node) if status in (WAITING, NOT_RUN) else None
        if run.status == SKIPPED:
            return run.reason
        if run.status == REFUSED:
            return "its token was not let in" + (f": {error_line(run.error)}" if run.error is not None else "")
        if run.status == STRANDED:
            return f"it waited for tokens that did not come, from {listed(run.missing)}"
        if run.status == WAITING:
            return "the run ended before it was let in" if self._execution.is_over else self._awaited(run)
        if status == RETRYING:
            return f"attempt {next(iter(run.retries.values())).attempt} is waited for"
        if run.status == RUNNING and self._execution.kind == "playbook" and run.worker_at is None and not run.tasks:
            return "it waits for a worker"
        return None

    def _missing(self, node: str) -> str:
        if self._execution.kind == "job":
            return self._causes.waits(node)
        return "no token came to it" if self._execution.is_over else "no token has come to it yet"

    def _awaited(self, run: Run) -> str:
        node = self._net.nodes.get(run.node) if self._net is not None else None
        if node is None or not node.joins:
            return "it waits to be let in"
        there = {one.origin for one in self._runs[run.node] if one.status == WAITING}
        left = [name for name in node.joins if name not in there]
        return f"it waits for a token from {listed(left)}" if left else "it waits for tokens"

    # ---- edges

    def edges(self) -> dict[str, Any]:
        if self._net is None:
            return {}
        return {edge_id(one): self._edge(one) for one in links_of(self._execution, self._net)}

    def _edge(self, link: LinkView) -> JsonMap:
        rows, rate = link.rows, None
        is_data = link.link is not None and link.link.on is On.DATA
        if is_data and link.link is not None:
            source = self.latest(link.source)
            so_far = self._rows_so_far(source).get(link.link.port)
            if so_far is not None and source is not None and source.started_at is not None and self._live is not None:
                rows = (rows or 0) + int(so_far)
                took = self._live.counted_at.get(source.id, self._live.now) - source.started_at
                rate = so_far / took if took > 0 else None
            elif rows and (worked := self._totals.get(link.source, _NOTHING).ms) > 0:
                rate = rows / (worked / 1000)
        return {
            "state": link.state,
            "fired": link.fired,
            "rows": rows,
            "rate": round(rate, 3) if rate is not None else None,
        }

    # ---- frames

    def frames(self) -> dict[str, Any]:
        net = self._net
        if net is None:
            return {}
        found: dict[str, Any] = {}
        for key, container in net.containers.items():
            if not key:
                for region in container.regions if len(container.regions) > 1 else ():
                    frame = subjob_frame(region.name)
                    found[frame] = self._group_frame(self._execution.groups.get(frame))
            else:
                opener = next((one.name for one in net.nodes.values() if one.part and one.part.opens == key), key)
                found[key] = self._opened_frame(opener)
        return found

    def _opened_frame(self, opener: str) -> JsonMap:
        run = self.latest(opener)
        if run is None:
            return self._group_frame(None)
        error = error_line(run.error) if run.error is not None else None
        status = RUNNING if run.status == RUNNING else self._status(run)
        return {"status": status, "started_at": run.started_at, "ended_at": run.ended_at, "error": error}

    def _group_frame(self, group: Group | None) -> JsonMap:
        if group is None:
            return {"status": self._idle(), "started_at": None, "ended_at": None, "error": None}
        error = error_line(group.error) if group.error is not None else None
        status = self._idle() if group.status == WAITING else group.status
        return {"status": status, "started_at": group.started_at, "ended_at": group.ended_at, "error": error}


def edge_id(link: LinkView) -> str:
    return arc_id(link.source, link.index) if link.link is None else str(link.index)


def _ended(runs: Sequence[Run], gone: Totals) -> JsonMap:
    found: dict[str, Any] = {}
    for status, number in gone.ended.items():
        found[_SHOWN.get(status, status)] = found.get(_SHOWN.get(status, status), 0) + number
    for run in runs:
        if run.ended_at is not None:
            shown = _SHOWN.get(run.status, run.status)
            found[shown] = found.get(shown, 0) + 1
    return found


def _fan(fan: Fan) -> JsonMap:
    out = fan.ranges.out.values() if fan.ranges is not None else ()
    leased = sum((one.hi or one.lo) - one.lo for one in out)
    total = fan.total
    return {
        "total": total,
        "ok": fan.ok,
        "failed": fan.failed,
        "open": len(fan.open) + leased,
        "mode": fan.mode,
        "failures": [one.index for one in fan.failures[:SHOWN_FAILURES]],
    }


def status_reason(execution: Execution) -> str | None:
    """Why a run stopped before its end, as its log says."""
    if execution.status == "interrupted" and execution.stops:
        return execution.stops[-1].reason
    if execution.cancel_reason is not None and execution.status in ("cancelled", RUNNING):
        return execution.cancel_reason
    if execution.status == "completed" and execution.failed_iterations:
        return f"{counted(execution.failed_iterations, 'iteration')} failed"
    return None


# ---- marks


def marks_of(view: RunView) -> JsonMap:
    marks = sorted((mark for kind in view.marks.values() for mark in kind.kept), key=lambda mark: mark.seq)
    return {
        "first_error": view.first_error,
        "marks": [
            {"seq": one.seq, "ts": one.ts, "kind": one.kind, "text": one.text, "node": one.node} for one in marks
        ],
        "types": {kind: number for kind, number in view.counts.items() if "." in kind},
    }
