"""Why a step of a playbook ran, waits, was refused or failed; or why it never ran. Which step is meant is found here, too:
`fetch`, `fetch@2`, `fetch/save`, `fetch[5]`, or the full id of anything in the log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from penstock.kernel.errors import Refused
from penstock.kernel.net import AdmitRule, Arc, Net, Node
from penstock.views.answers import standing
from penstock.views.explain.chain import LAST, ancestors, chain
from penstock.views.explain.conditions import arc_label, arc_verdict, because, what_conditions_saw
from penstock.views.explain.explanation import Book, Explanation, Inquiry, Log
from penstock.views.explain.parts import deeds, explain_iteration, explain_task, node_of
from penstock.views.model import FAILED, OK, REFUSED, RUNNING, STRANDED, WAITING, Execution, Run, word
from penstock.views.run_view import RunView
from penstock.views.wording import condition, counted, error_line, listed, seconds

MOST_RUNS = 20
MOST_WAYS = 5
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Target:
    """`runs` is empty when no token ever reached the step."""

    execution: Execution
    step: str
    runs: list[Run] = field(default_factory=list)
    index: int | None = None
    task: str | None = None
    ordinal: int | None = None


def explain_step(node: str, view: RunView, book: Book, log: Log) -> Explanation:
    target = _Finding(view, book).find(node.strip())
    ask = Inquiry(view, target.execution, book, log)
    if not target.runs:
        return _never(ask, target.step)
    run = _most_telling(target.runs)
    ask.saw = what_conditions_saw(log, _asked(ask, [*ancestors(ask, run)[-LAST:], run]))
    if target.index is not None:
        return explain_iteration(ask, run, target.index, target.task)
    if target.task is not None:
        return explain_task(ask, run, target.task, target.ordinal)
    return _step(ask, run, target.runs)


def _most_telling(runs: list[Run]) -> Run:
    """Of several visits: one that failed finally, else one that is not over, else the last."""
    for run in runs:
        if run.continued_by is None and run.selected is not None and run.selected.unhandled:
            return run
    for run in reversed(runs):
        if run.status in (RUNNING, WAITING, STRANDED):
            return run
    return runs[-1]


def _asked(ask: Inquiry, runs: list[Run]) -> dict[str, tuple[Run, Node]]:
    """The runs whose conditions the answer will speak of; of a join's tokens, all the runs they came from."""
    tokens = [token for run in runs for one in run.tokens if (token := ask.view.run(one)) is not None]
    joined = [parent for token in tokens if (parent := ask.view.run(token.parent)) is not None]
    found: dict[str, tuple[Run, Node]] = {}
    for run in [*runs, *joined]:
        net = ask.about(ask.view.executions[run.execution]).net
        if net is not None and net.kind == "playbook" and run.node in net.nodes:
            found[run.id] = (run, net.nodes[run.node])
    return found


# ---- a step that ran

_CAME = {
    REFUSED: "why it was asked to run",
    WAITING: "where its token came from",
    STRANDED: "where its token came from",
}


def _step(ask: Inquiry, run: Run, runs: list[Run]) -> Explanation:
    status = standing(run.status, ask.log.is_live)
    answer = Explanation(run.id, word(status, "playbook"), _headline(ask, run, status))
    if len(runs) > 1:
        answer.add(f"{run.node} was visited {counted(len(runs), 'time')}; this is about `{run.id}`", _visits(ask, runs))
    answer.add(_CAME.get(run.status, "why it ran"), chain(ask, run))
    let_in = run.scheduled_seq or run.created_seq
    answer.add("admission", [ask.say(line, let_in, run.node) for line in _admission(ask, run)])
    if run.status in (WAITING, STRANDED):
        answer.add("what it waits for", [ask.say(line, run.created_seq, run.node) for line in _waits_for(ask, run)])
    answer.add("what it did", deeds(ask, run))
    if run.error is not None and run.status == FAILED:
        answer.add("why it failed", [ask.of(run, error_line(run.error))])
    answer.add("what followed", _followed(ask, run))
    return answer


def _headline(ask: Inquiry, run: Run, status: str) -> str:
    visit = f", visit {run.visit}," if run.visit is not None and run.visit > 1 else ""
    took = f" after {seconds(run.took)}" if run.ended_at and run.started_at else ""
    words = {
        OK: f"is done{took}",
        FAILED: f"failed{took}",
        REFUSED: "was refused: its token was not let in",
        WAITING: "waits",
        STRANDED: "never started: it waited for tokens that did not come",
        RUNNING: "is running",
        "interrupted": "was under way when the run stopped; a resume takes it up",
    }
    return ask.of(run, f"`{run.id}`{visit} {words.get(status, status)}{ask.position(run.node)}")


def _visits(ask: Inquiry, runs: list[Run]) -> list[str]:
    lines = []
    for run in runs[-MOST_RUNS:]:
        error = f", {error_line(run.error)}" if run.error is not None else ""
        lines.append(ask.of(run, f"`{run.id}` {word(standing(run.status, ask.log.is_live), 'playbook')}{error}"))
    left = len(runs) - MOST_RUNS
    return [f"… {left:,} earlier ones", *lines] if left > 0 else lines


def _admission(ask: Inquiry, run: Run) -> list[str]:
    node = node_of(ask, run)
    rules = node.admit if node is not None and node.admit is not None else ()
    if run.status != REFUSED:
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


def _waits_for(ask: Inquiry, run: Run) -> list[str]:
    node = node_of(ask, run)
    if node is None or not node.joins:
        return ["it has not been let in yet"]
    here = [one for one in ask.execution.of_node(run.node) if one.status in (WAITING, STRANDED)]
    present = [name for name in node.joins if any(one.origin == name for one in here)]
    lines = [f"it joins tokens from {listed(list(node.joins))}; it has those from {listed(present)}"]
    missing = [name for name in node.joins if name not in present]
    return lines + [f"none has come from `{name}`: {_last_of(ask, name)}" for name in missing]


def _last_of(ask: Inquiry, step: str) -> str:
    runs = ask.execution.of_node(step)
    if not runs:
        return "it never ran"
    last = runs[-1]
    if last.selected is None:
        return f"`{last.id}` is {word(last.status, 'playbook')}"
    went = listed(last.selected.steps) if last.selected.steps else "nowhere"
    return f"`{last.id}` {_ended(last)} and its token went to {went}"


def _ended(run: Run) -> str:
    words = {OK: "was done", FAILED: "failed", REFUSED: "was refused", RUNNING: "has not ended"}
    return words.get(run.status, run.status)


def _followed(ask: Inquiry, run: Run) -> list[str]:
    node, selected = node_of(ask, run), run.selected
    if selected is None:
        return []
    lines: list[str] = []
    if node is not None:
        verdicts = [(edge, arc_verdict(edge, node, run, ask.saw)) for edge in node.edges]
        lines = [
            ask.say(f"{arc_label(edge)} → `{edge.target}`: {verdict}", selected.seq, run.node, arc=edge.index)
            for edge, verdict in verdicts
        ]
    if run.continued_by is not None:
        again = ask.view.run(run.continued_by)
        text = f"a resume ran it again as `{run.continued_by}`"
        lines.append(text if again is None else ask.say(text, again.created_seq, run.node))
    elif selected.unhandled:
        has_failed = ask.execution.status == "failed"
        text = "no arc took the failure" + (", so the execution failed" if has_failed else "")
        lines.append(ask.say(text, selected.seq, run.node))
    elif not selected.arcs and selected.error is None:
        text = "no arc fired: its token ended here" if lines else "it has no arcs: its token ended here"
        lines.append(ask.say(text, selected.seq, run.node))
    return lines


# ---- a step that never ran


def _never(ask: Inquiry, step: str) -> Explanation:
    execution, net = ask.execution, ask.net
    answer = Explanation(step, "never ran", ask.say(f"`{step}` never ran{ask.position(step)}", None, step))
    if net is None:
        answer.add("why not", ["the document of the run can no longer be read"])
        return answer
    asked = {run.id: (run, node) for node in net.nodes.values() for run in execution.of_node(node.name)[-MOST_RUNS:]}
    ask.saw = what_conditions_saw(ask.log, asked)
    is_over = execution.status != RUNNING or not ask.log.is_live
    title = "tokens could have come from" if is_over else "tokens may still come from"
    answer.add(title, _Ways(ask, net).to(step))
    if execution.status == "failed" and execution.error is not None:
        ended = ask.say(f"it failed: {error_line(execution.error)}", execution.end_seq, None)
        answer.add("how the run ended", [ended])
    elif execution.cancel_reason is not None:
        ended = ask.say(f"it was cancelled: {execution.cancel_reason}", execution.cancel_seq, None)
        answer.add("how the run ended", [ended])
    return answer


class _Ways:
    """Every way a token could have come to a step, and what became of each."""

    def __init__(self, ask: Inquiry, net: Net) -> None:
        self._ask = ask
        self._net = net
        self._known: set[str] = set()

    def to(self, step: str, depth: int = 0) -> list[str]:
        self._known.add(step)
        before = [(node, edge) for node in self._net.nodes.values() for edge in node.edges if edge.target == step]
        if not before:
            text = f"{'  ' * depth}nothing: no arc leads to `{step}`, and it is not the entry"
            return [self._ask.say(text, None, step)]
        return [line for node, edge in before for line in self._way(node, edge, depth)]

    def _way(self, node: Node, edge: Arc, depth: int) -> list[str]:
        indent = "  " * depth
        guard = f" when {condition(edge.guard)}" if edge.guard is not None else ""
        start = f"{indent}`{node.name}` ({arc_label(edge)}{guard})"
        runs = self._ask.execution.of_node(node.name)
        if runs:
            verdicts = [
                self._ask.of(run, f"{indent}  `{run.id}` {_ended(run)}: {arc_verdict(edge, node, run, self._ask.saw)}")
                for run in runs[-MOST_WAYS:]
            ]
            left = len(runs) - MOST_WAYS
            more = [f"{indent}  … and {left:,} earlier runs of it"] if left > 0 else []
            return [self._about(node, edge, f"{start}:"), *verdicts, *more]
        if node.name in self._known or depth >= DEPTH:
            return [self._about(node, edge, f"{start}: it never ran either")]
        return [
            self._about(node, edge, f"{start}: it never ran either; tokens could have come to it from"),
            *self.to(node.name, depth + 1),
        ]

    def _about(self, node: Node, edge: Arc, text: str) -> str:
        return self._ask.say(text, None, node.name, arc=edge.index)


# ---- which step is meant

_REST = re.compile(r"(?:\[(?P<index>\d+)\])?(?:/(?P<task>[^/#]+)(?:#(?P<ordinal>\d+))?)?")
_BY_NAME = re.compile(r"(?P<step>[^/@\[\]]+)(?:@(?P<path>[\d.]+))?(?P<rest>[\[/].*)?")


class _Finding:
    def __init__(self, view: RunView, book: Book) -> None:
        self._view = view
        self._book = book
        self._playbooks = [one for one in view.executions.values() if one.kind == "playbook"]

    def find(self, text: str) -> Target:
        """Raises Refused when there is no such node, and says which there are."""
        found = self._by_id(text) or self._inside(text) or self._by_name(text) or self._by_task(text)
        if found is None:
            raise self._unknown(text)
        return found

    def _by_id(self, text: str) -> Target | None:
        """The longest run id that the text begins with, and what follows it."""
        end = len(text)
        while end > 0:
            run = self._view.run(text[:end])
            if run is not None and self._view.executions[run.execution].kind == "playbook":
                run = self._view.run(run.joined) or run
                return _with_rest(self._view.executions[run.execution], run.node, [run], text[end:])
            end = max(text.rfind("/", 0, end), text.rfind("[", 0, end))
        return None

    def _inside(self, text: str) -> Target | None:
        """`load/start`: the step `start` of the playbook that the component `load` of a job runs."""
        around = [one for one in self._playbooks if one.scope and text.startswith(one.scope)]
        for execution in sorted(around, key=lambda one: len(one.scope), reverse=True):
            match = _BY_NAME.fullmatch(text.removeprefix(execution.scope))
            net = self._book.net(execution)
            if match is not None and match["path"] is None and net is not None and match["step"] in net.nodes:
                runs = execution.of_node(match["step"])
                return _with_rest(execution, match["step"], runs, match["rest"] or "")
        return None

    def _by_name(self, text: str) -> Target | None:
        match = _BY_NAME.fullmatch(text)
        if match is None:
            return None
        step = match["step"]
        for execution in self._playbooks:
            runs = execution.of_node(step)
            net = self._book.net(execution) if not runs else None
            if not runs and (net is None or step not in net.nodes):
                continue
            if match["path"] is not None:
                raise _no_such_run(text, step, runs)
            return _with_rest(execution, step, runs, match["rest"] or "")
        return None

    def _by_task(self, text: str) -> Target | None:
        """A bare task label, when only one step has it."""
        found: list[Target] = []
        for execution in self._playbooks:
            net = self._book.net(execution)
            for name, node in net.nodes.items() if net is not None else ():
                if any(task.label == text for task in node.tasks):
                    found.append(Target(execution, name, execution.of_node(name), None, text))
        return found[0] if len({target.step for target in found}) == 1 else None

    def _unknown(self, text: str) -> Refused:
        steps: list[str] = []
        tasks: list[str] = []
        for execution in self._playbooks:
            net = self._book.net(execution)
            for name, node in net.nodes.items() if net is not None else ():
                steps.append(name)
                tasks.extend(f"{name}/{task.label}" for task in node.tasks)
        close = get_close_matches(text, list(dict.fromkeys([*steps, *tasks])), 1, 0.6)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        known = ", ".join(f"`{name}`" for name in list(dict.fromkeys(steps))[:20])
        hint = f"the steps are {known}; also `step/task`, `step[5]` and the ids that `show` and `events` print"
        return Refused(f"the run has no step, task or iteration `{text}`{meant}", hint)


def _with_rest(execution: Execution, step: str, runs: list[Run], rest: str) -> Target | None:
    match = _REST.fullmatch(rest)
    if match is None:
        return None
    index, ordinal = match["index"], match["ordinal"]
    return Target(
        execution,
        step,
        runs,
        int(index) if index is not None else None,
        match["task"],
        int(ordinal) if ordinal is not None else None,
    )


def _no_such_run(text: str, step: str, runs: list[Run]) -> Refused:
    known = ", ".join(f"`{run.id}`" for run in runs[:10])
    hint = f"its runs are {known}" if known else f"`{step}` never ran; ask for `{step}` to see why"
    return Refused(f"the log has no step run `{text}`", hint)
