"""Which node is meant: `fetch`, `fetch@2`, `fetch/save`, `fetch[5]`, or the full id of anything in the log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from penstock.kernel.errors import Refused
from penstock.views.explain.book import Book
from penstock.views.history import ExecutionSeen, History, StepRun

_REST = re.compile(r"(?:\[(?P<index>\d+)\])?(?:/(?P<task>[^/#]+)(?:#(?P<ordinal>\d+))?)?")
_BY_NAME = re.compile(r"(?P<step>[^/@\[\]]+)(?:@(?P<path>[\d.]+))?(?P<rest>[\[/].*)?")


@dataclass(frozen=True, slots=True)
class Target:
    """`runs` is empty when no token ever reached the step."""

    execution: ExecutionSeen
    step: str
    runs: list[StepRun] = field(default_factory=list)
    index: int | None = None
    task: str | None = None
    ordinal: int | None = None


def find(node: str, seen: History, book: Book) -> Target:
    """Raises Refused when there is no such node, and says which there are."""
    text = node.strip()
    found = _by_id(text, seen) or _inside(text, seen, book) or _by_name(text, seen, book) or _by_task(text, seen, book)
    if found is None:
        raise _unknown(text, seen, book)
    return found


def _by_id(text: str, seen: History) -> Target | None:
    """The longest run id that the text begins with, and what follows it."""
    end = len(text)
    while end > 0:
        run = seen.runs.get(text[:end])
        if run is not None:
            if run.joined is not None:
                run = seen.runs[run.joined]
            return _with_rest(seen.executions[run.execution], run.step, [run], text[end:])
        end = max(text.rfind("/", 0, end), text.rfind("[", 0, end))
    return None


def _playbooks(seen: History) -> list[ExecutionSeen]:
    return [execution for execution in seen.executions.values() if execution.kind == "playbook"]


def _inside(text: str, seen: History, book: Book) -> Target | None:
    """`load/start`: the step `start` of the playbook that the component `load` of a job runs."""
    around = [one for one in _playbooks(seen) if one.scope and text.startswith(one.scope)]
    for execution in sorted(around, key=lambda one: len(one.scope), reverse=True):
        match = _BY_NAME.fullmatch(text.removeprefix(execution.scope))
        net = book.net(execution)
        if match is not None and match["path"] is None and net is not None and match["step"] in net.nodes:
            runs = seen.of_step(match["step"], execution.scope)
            return _with_rest(execution, match["step"], runs, match["rest"] or "")
    return None


def _by_name(text: str, seen: History, book: Book) -> Target | None:
    match = _BY_NAME.fullmatch(text)
    if match is None:
        return None
    step = match["step"]
    for execution in _playbooks(seen):
        net = book.net(execution)
        runs = seen.of_step(step, execution.scope)
        if not runs and (net is None or step not in net.nodes):
            continue
        if match["path"] is not None:
            raise _no_such_run(text, step, runs)
        return _with_rest(execution, step, runs, match["rest"] or "")
    return None


def _by_task(text: str, seen: History, book: Book) -> Target | None:
    """A bare task label, when only one step has it."""
    found: list[Target] = []
    for execution in _playbooks(seen):
        net = book.net(execution)
        for name, node in net.nodes.items() if net is not None else ():
            if any(task.label == text for task in node.tasks):
                found.append(Target(execution, name, seen.of_step(name, execution.scope), None, text))
    return found[0] if len({target.step for target in found}) == 1 else None


def _with_rest(execution: ExecutionSeen, step: str, runs: list[StepRun], rest: str) -> Target | None:
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


def _no_such_run(text: str, step: str, runs: list[StepRun]) -> Refused:
    known = ", ".join(f"`{run.id}`" for run in runs[:10])
    hint = f"its runs are {known}" if known else f"`{step}` never ran; ask for `{step}` to see why"
    return Refused(f"the log has no step run `{text}`", hint)


def _unknown(text: str, seen: History, book: Book) -> Refused:
    steps: list[str] = []
    tasks: list[str] = []
    for execution in _playbooks(seen):
        net = book.net(execution)
        for name, node in net.nodes.items() if net is not None else ():
            steps.append(name)
            tasks.extend(f"{name}/{task.label}" for task in node.tasks)
    names = list(dict.fromkeys([*steps, *tasks]))
    close = get_close_matches(text, names, 1, 0.6)
    meant = f"; did you mean `{close[0]}`?" if close else ""
    known = ", ".join(f"`{name}`" for name in list(dict.fromkeys(steps))[:20])
    hint = f"the steps are {known}; also `step/task`, `step[5]` and the ids that `show` and `events` print"
    return Refused(f"the run has no step, task or iteration `{text}`{meant}", hint)
