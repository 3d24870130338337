"""Why arcs fired or did not, and tokens were let in or not: each condition with the variables it read and their values then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.expr.check import inspect
from penstock.expr.scope import OutcomeView, Visible
from penstock.expr.values import MISSING, Missing
from penstock.kernel.net import Arc, Node
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load, decode, thawed
from penstock.views.explain.explanation import Log, Saw
from penstock.views.model import FAILED, REFUSED, STRANDED, WAITING, Execution, Run
from penstock.views.run_view import RunView
from penstock.views.wording import condition, error_line, shown

Asked = Mapping[str, tuple[Run, Node]]
"""Step run id -> the run, whose conditions the answer will speak of, and its step."""


def what_conditions_saw(log: Log, asked: Asked) -> Saw:
    """Folds the log again and stops where a run in `asked` was refused, or ended and its arcs were decided."""
    stops: dict[int, tuple[Run, Node]] = {}
    for run, node in asked.values():
        if run.status == REFUSED and node.admit:
            stops[run.created_seq] = (run, node)
        elif run.end_seq is not None and any(edge.guard is not None for edge in node.edges):
            stops[run.end_seq] = (run, node)
    looking = _Looking({run.id for run, _ in stops.values()}, log.load)
    if log.before is not None:
        for seq, (run, node) in sorted(stops.items()):
            looking.jump(log, log.before(seq), run)
            for entry in log.between(seq - 1, seq):
                looking.look(entry, run, node)
        return looking.saw
    last = max(stops, default=0)
    for entry in log.entries() if stops else ():
        looking.take(entry)
        if entry.seq in stops:
            looking.look(entry, *stops[entry.seq])
        if entry.seq >= last:
            break
    return looking.saw


class _Looking:
    def __init__(self, wanted: set[str], load: Load) -> None:
        self.saw: Saw = {}
        self._wanted = wanted
        self._load = load
        self._view = RunView()
        self._args: dict[str, JsonMap] = {}
        self._outcomes: dict[str, JsonMap] = {}
        """Of each wanted step run: its last task that was not merely tried again."""

    def take(self, entry: Entry) -> None:
        self._view.apply(entry)
        if entry.scope in self._wanted:
            if entry.type == "step.scheduled":
                self._args[entry.scope] = self._read(entry)["args"]
            elif entry.type == "task.done" and b'"do":"retry"' not in entry.payload:
                self._outcomes[entry.scope] = self._read(entry)["outcome"]

    def jump(self, log: Log, view: RunView, run: Run) -> None:
        """To the view at the end of a run, with what that run began with and came to."""
        self._view = view
        known = view.run(run.id) or run
        ends = [one.end_seq for one in known.attempts if one.do != "retry"]
        for seq in (known.scheduled_seq or 0, *ends[-1:]):
            for entry in log.between(seq - 1, seq) if seq else ():
                if entry.type == "step.scheduled":
                    self._args[run.id] = self._read(entry)["args"]
                else:
                    self._outcomes[run.id] = self._read(entry)["outcome"]

    def _read(self, entry: Entry) -> Any:
        return thawed(decode(entry.payload), self._load)

    def look(self, entry: Entry, run: Run, node: Node) -> None:
        execution = self._view.executions[run.execution]
        data = self._read(entry)
        if run.status == REFUSED:
            event: JsonMap = {"name": "token.created", "step": data.get("origin"), "args": data["args"]}
            scope = self._visible(execution, event, data["args"])
            for index, rule in enumerate(node.admit or ()):
                self._note((run.id, "admit", index), rule.when, scope)
            return
        args = self._args.get(run.id, {})
        scope = self._visible(execution, _event(entry, run, data, args), args)
        scope.fixed["output"] = OutcomeView(self._outcomes.get(run.id) or _own_outcome(data))
        if node.fan is not None:
            scope.fixed["fanin"] = self._fanin(run, data)
        for edge in node.edges:
            self._note((run.id, "arc", edge.index), edge.guard, scope)

    def _visible(self, execution: Execution, event: JsonMap, args: JsonMap) -> Visible:
        workload, ctx, results = (
            thawed(value, self._load) for value in (execution.workload, execution.ctx.values, execution.results)
        )
        if not isinstance(workload, Mapping):
            workload = {}
        fixed: dict[str, Any] = {"event": event, "ctx": ctx, "workload": workload, "args": args}
        return Visible(fixed, (args, ctx, workload), (results,))

    def _fanin(self, asked: Run, end: Any) -> JsonMap:
        """What came together at the end of a loop, whichever way it ran."""
        run = self._view.run(asked.id) or asked
        fan = run.fan
        loop_id = run.id
        while (before := self._view.run(run.continues)) is not None:
            run, loop_id = before, before.id
        result = end["result"] if isinstance(end.get("result"), Mapping) else {}
        total, done, failed = (result.get(name, 0) for name in ("total", "done", "failed"))
        found: JsonMap = {
            "loop_id": loop_id,
            "status": "failed" if end["status"] == "failed" else "partial" if failed else "complete",
            "total": total,
            "succeeded": done,
            "failed": failed,
            "skipped": total - done - failed,
            "retried": 0,
            "refs": {"loop_id": loop_id, "execution_id": ""},
            "shared": end.get("shared", {}),
        }
        if fan is None or fan.ranges is None:
            return found
        ranges = fan.ranges
        found.update(loop_id=ranges.loop_id, status=ranges.status, total=fan.size, succeeded=fan.ok, failed=fan.failed)
        skipped = ranges.skipped or fan.size - fan.ok - fan.failed
        found.update(skipped=skipped, retried=ranges.retried, refs=ranges.refs, shared=ranges.shared)
        return found

    def _note(self, key: tuple[str, str, int], text: str | None, scope: Visible) -> None:
        if text is not None:
            paths = dict.fromkeys(use.path for use in inspect(text, condition=True).uses)
            self.saw[key] = [(".".join(map(str, path)), _looked_up(scope, path)) for path in paths]


def _event(entry: Entry, run: Run, end: Any, args: JsonMap) -> JsonMap:
    return {
        "name": entry.type,
        "type": entry.type,
        "step": run.node,
        "step_run_id": run.id,
        "status": end["status"],
        "visit": run.visit,
        "result": end.get("result"),
        "error": end.get("error"),
        "args": args,
    }


def _own_outcome(end: Any) -> JsonMap:
    """Of a loop, and of a step without tasks."""
    if end["status"] == "done":
        return {"status": "ok", "result": end.get("result")}
    return {"status": "error", "result": end.get("result"), "error": end.get("error")}


def _looked_up(scope: Visible, path: Sequence[str | int]) -> str:
    value: Any = scope.lookup(str(path[0]))
    for part in path[1:]:
        value = _inside(value, part)
    return "undefined" if isinstance(value, Missing) else shown(value)


def _inside(value: Any, part: str | int) -> Any:
    try:
        if isinstance(value, Mapping):
            return value[part]
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value[int(part)]
    except (KeyError, IndexError, ValueError):
        return MISSING
    return MISSING


def because(saw: Saw, key: tuple[str, str, int]) -> str:
    """` (name = value, …)`, or nothing."""
    values = saw.get(key)
    return " (" + ", ".join(f"{name} = {value}" for name, value in values[:6]) + ")" if values else ""


# ---- arcs


def arc_label(edge: Arc) -> str:
    return f"arc {edge.index + 1}"


def fired(edge: Arc | None, run: Run, saw: Saw) -> str:
    """What made the arc fire, in one line."""
    if edge is None:
        return "the arc fired"
    if edge.guard is None:
        return f"{arc_label(edge)} fired: it has no condition"
    return f"{arc_label(edge)} fired: {condition(edge.guard)} was true{because(saw, (run.id, 'arc', edge.index))}"


def arc_verdict(edge: Arc, node: Node, run: Run, saw: Saw) -> str:
    """What became of one arc of a step run, in one line."""
    selected = run.selected
    if selected is None:
        if run.status == REFUSED:
            return f"the token for `{run.id}` was refused, so it has no end to go on from"
        return f"`{run.id}` {'never started' if run.status in (WAITING, STRANDED) else 'has not ended'}"
    if edge.index in selected.arcs:
        return fired(edge, run, saw)
    if selected.error is not None:
        return f"the arcs could not be decided: {error_line(selected.error)}"
    if selected.was_stopped:
        return "not looked at: the run was being stopped"
    if selected.arcs and node.first_only and min(selected.arcs) < edge.index:
        return f"not looked at: arc {min(selected.arcs) + 1} fired first, and the arcs are exclusive"
    if edge.guard is None:
        return "an arc without `when` does not take a failure"
    if run.status == FAILED and not edge.reads_event:
        return f"not considered: the step failed, and {condition(edge.guard)} does not read `event`"
    return f"{condition(edge.guard)} was false{because(saw, (run.id, 'arc', edge.index))}"
