"""Why a step run ran, waits, was refused or failed."""

from __future__ import annotations

from penstock.kernel.net import AdmitRule
from penstock.views.explain import arcs, work
from penstock.views.explain.explanation import Explanation, Inquiry
from penstock.views.explain.values import because
from penstock.views.history import ExecutionSeen, History, StepRun
from penstock.views.steps import standing
from penstock.views.wording import condition, counted, error_line, listed, seconds

MOST_RUNS = 20
MOST_PLAYED = 5

_CAME = {
    "refused": "why it was asked to run",
    "waiting": "where its token came from",
    "stranded": "where its token came from",
}


def explain_step(ask: Inquiry) -> Explanation:
    run, runs = ask.run, ask.target.runs
    answer = Explanation(run.id, ask.status, _headline(ask))
    if len(runs) > 1:
        answer.add(f"{run.step} was visited {counted(len(runs), 'time')}; this is about `{run.id}`", _visits(ask))
    answer.add(_CAME.get(ask.status, "why it ran"), ask.chain())
    answer.add("admission", _admission(ask))
    if run.status in ("waiting", "stranded"):
        answer.add("what it waits for", _waits_for(ask))
    answer.add("what it did", deeds(ask))
    if run.error is not None and run.status == "failed":
        answer.add("why it failed", [error_line(run.error)])
    answer.add("what followed", _followed(ask))
    return answer


def _headline(ask: Inquiry) -> str:
    run = ask.run
    visit = f", visit {run.visit}," if run.visit is not None and run.visit > 1 else ""
    took = f" after {seconds(max(0.0, run.ended_at - run.started_at))}" if run.ended_at and run.started_at else ""
    said = {
        "done": f"is done{took}",
        "failed": f"failed{took}",
        "refused": "was refused: its token was not let in",
        "waiting": "waits",
        "stranded": "never started: it waited for tokens that did not come",
        "running": "is running",
        "interrupted": "was under way when the run stopped; a resume takes it up",
    }
    return f"`{run.id}`{visit} {said.get(ask.status, ask.status)}{ask.where()}"


def _visits(ask: Inquiry) -> list[str]:
    runs = ask.target.runs
    lines = []
    for run in runs[-MOST_RUNS:]:
        error = f", {error_line(run.error)}" if run.error is not None else ""
        lines.append(f"`{run.id}` {standing(run.status, ask.log.is_live)}{error}")
    left = len(runs) - MOST_RUNS
    return [f"… {left:,} earlier ones", *lines] if left > 0 else lines


def _admission(ask: Inquiry) -> list[str]:
    run, node = ask.run, ask.node
    rules = node.admit if node is not None and node.admit is not None else ()
    if run.status != "refused":
        return [f"{_admit_rule(rules, run.rule)} let it in"] if run.rule is not None else []
    if run.error is not None:
        return [error_line(run.error)]
    tried = rules[: run.rule] if run.rule is not None else rules
    lines = [
        f"rule {index + 1}, {condition(rule.when)}, was false{because(ask.saw, (run.id, 'admit', index))}"
        for index, rule in enumerate(tried)
        if rule.when is not None
    ]
    if run.rule is None:
        return [*lines, "no rule matched, and there is no `else`: a token that no rule lets in is refused"]
    return [*lines, f"{_admit_rule(rules, run.rule)} refused it{because(ask.saw, (run.id, 'admit', run.rule))}"]


def _admit_rule(rules: tuple[AdmitRule, ...], index: int) -> str:
    if index >= len(rules):
        return f"rule {index + 1}"
    guard = rules[index].when
    return f"rule {index + 1}, {condition(guard)}," if guard is not None else "its `else`"


def _waits_for(ask: Inquiry) -> list[str]:
    run, node, seen = ask.run, ask.node, ask.seen
    if node is None or not node.joins:
        return ["it has not been let in yet"]
    here = [one for one in seen.of_step(run.step, run.execution) if one.status in ("waiting", "stranded")]
    present = [name for name in node.joins if any(one.origin == name for one in here)]
    missing = [name for name in node.joins if name not in present]
    lines = [f"it joins tokens from {listed(list(node.joins))}; it has those from {listed(present)}"]
    return lines + [f"none has come from `{name}`: {_last_of(name, run, seen)}" for name in missing]


def _last_of(step: str, run: StepRun, seen: History) -> str:
    runs = seen.of_step(step, run.execution)
    if not runs:
        return "it never ran"
    last = runs[-1]
    if last.selected is None:
        return f"`{last.id}` is {last.status}"
    ended = {"done": "was done", "failed": "failed"}.get(last.status, last.status)
    went = listed(last.selected.steps) if last.selected.steps else "nowhere"
    return f"`{last.id}` {ended} and its token went to {went}"


def deeds(ask: Inquiry) -> list[str]:
    run, node = ask.run, ask.node
    lines = work.iterations(run, is_live=ask.log.is_live)
    attempts = [*run.attempts, *run.under_way.values()] if run.iterations is None else []
    lines += work.described(attempts, node, is_live=ask.is_open)
    if run.status in ("running", "done", "failed") and node is not None and not node.tasks:
        lines.append("it has no tasks: a token passes through")
    return lines + played(run.id, ask.seen)


def played(scope: str, seen: History) -> list[str]:
    """The playbooks and jobs that tasks below `scope` ran; of many, those that failed."""
    below = [one for one in seen.executions.values() if one.scope.startswith((f"{scope}/", f"{scope}["))]
    telling = below if len(below) <= MOST_PLAYED else [one for one in below if one.status == "failed"]
    return [
        f"task `{one.scope.removesuffix('/')}` ran the {one.kind} `{one.name}`: {one.status}{_failed_in(one, seen)}"
        for one in telling[:MOST_PLAYED]
    ]


def _failed_in(execution: ExecutionSeen, seen: History) -> str:
    if execution.status != "failed":
        return ""
    if execution.kind == "job":
        failed = execution.error.get("component") if isinstance(execution.error, dict) else None
        return f", in {listed([f'{execution.scope}{str(failed).removeprefix(execution.scope)}'])}" if failed else ""
    inside = [run for run in seen.runs.values() if run.execution == execution.scope and run.selected is not None]
    steps = [run.id for run in inside if run.selected is not None and run.selected.unhandled]
    return f", in {listed(steps[:3])}" if steps else ""


def _followed(ask: Inquiry) -> list[str]:
    run, node, selected = ask.run, ask.node, ask.run.selected
    if selected is None:
        return []
    lines: list[str] = []
    if node is not None:
        lines = [
            f"{arcs.label(edge)} → `{edge.target}`: {arcs.verdict(edge, node, run, ask.saw)}" for edge in node.edges
        ]
    if run.continued_by is not None:
        lines.append(f"a resume ran it again as `{run.continued_by}`")
    elif selected.unhandled:
        has_failed = ask.target.execution.status == "failed"
        lines.append("no arc took the failure" + (", so the execution failed" if has_failed else ""))
    elif not selected.arcs and selected.error is None:
        lines.append("no arc fired: its token ended here" if lines else "it has no arcs: its token ended here")
    return lines
