"""Lint of one pipeline: tasks that are never reached, and circles of jumps that nothing leaves."""

from __future__ import annotations

from penstock.dialects.playbook.drafts import StepDraft, TaskDraft
from penstock.dialects.playbook.guards import catches_errors, constant
from penstock.dialects.playbook.reader import Reading, listed
from penstock.dialects.playbook.sugar import FAILED, NOOP
from penstock.kernel.net import Do

_END = -1
# Ways out that nobody meant as such: a tool that fails, attempts that run out.
_GIVES_UP = -2


def check_pipeline(reading: Reading, step: StepDraft, tasks: list[TaskDraft]) -> None:
    if not tasks:
        return
    labels = {task.label: position for position, task in enumerate(tasks)}
    ways = [_ways(task, index + 1 if index + 1 < len(tasks) else _END, labels) for index, task in enumerate(tasks)]
    reached = _reached(ways)
    for index, task in enumerate(tasks):
        if index not in reached and not task.is_generated:
            hint = "the tasks above it always jump past it, or end the pipeline"
            reading.findings.warning("P0807", f"the task `{task.label}` never runs", task.place, hint=hint)
        if not (task.is_generated or task.kind == NOOP or task.rules is None):
            _check_errors_are_caught(reading, task)
    leaving = _leading_to(ways, _END)
    stuck = sorted(reached - leaving)
    if any(rule.then.do is Do.JUMP for index in stuck for rule in tasks[index].rules or ()):
        _report_circle(reading, step, [tasks[index] for index in stuck], stuck, ways)


def _check_errors_are_caught(reading: Reading, task: TaskDraft) -> None:
    """With a policy an outcome that no rule matches goes on, an error as well: the run completes as if all was well."""
    if task.rules and not catches_errors([rule.when for rule in task.rules]):
        message = f"an error of `{task.label}` that no rule matches is passed over, and the pipeline goes on"
        last = "{ when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }"
        hint = f"add a last rule `{last}`, or one with `do: continue` if that is meant"
        reading.findings.warning("P0811", message, task.place, hint=hint)


def _ways(task: TaskDraft, after: int, labels: dict[str, int]) -> set[int]:
    """Where the pipeline may go after this task."""
    if task.rules is None:
        return {after} if task.kind == NOOP else {after, _GIVES_UP}
    ways: set[int] = set()
    for rule in task.rules:
        holds = constant(rule.when)
        if holds is False:
            continue
        if rule.when == FAILED and rule.then.do is Do.FAIL:
            # The default written out: a way out only for tasks that can fail, and not one that was meant.
            ways |= set() if task.kind == NOOP else {_GIVES_UP}
            continue
        match rule.then.do:
            case Do.CONTINUE:
                ways.add(after)
            case Do.JUMP:
                # A jump to nowhere is an error of its own; here it must not look like a circle.
                ways.add(labels.get(rule.then.to or "", _END))
            case Do.RETRY:
                ways.add(_GIVES_UP)
            case Do.BREAK | Do.FAIL:
                ways.add(_END)
        if holds:
            return ways
    return ways | {after}


def _reached(ways: list[set[int]]) -> set[int]:
    found = {0}
    waiting = [0]
    while waiting:
        for way in ways[waiting.pop()]:
            if way >= 0 and way not in found:
                found.add(way)
                waiting.append(way)
    return found


def _leading_to(ways: list[set[int]], end: int) -> set[int]:
    """The tasks from which that end can be reached."""
    before: dict[int, list[int]] = {}
    for index, here in enumerate(ways):
        for way in here:
            before.setdefault(way, []).append(index)
    found: set[int] = set()
    waiting = [end]
    while waiting:
        for index in before.get(waiting.pop(), ()):
            if index not in found:
                found.add(index)
                waiting.append(index)
    return found


def _report_circle(
    reading: Reading, step: StepDraft, circle: list[TaskDraft], stuck: list[int], ways: list[set[int]]
) -> None:
    names = listed(task.label for task in circle)
    jumping = next((task for task in circle if task.jumps), circle[0])
    place = next(iter(jumping.jumps.values()), jumping.place)
    hint = "add a rule that ends in `break`, `fail` or `continue` past the circle"
    gives_up = _leading_to(ways, _GIVES_UP)
    if all(index in gives_up for index in stuck):
        message = f"in step `{step.name}` only a failure ends the circle of {names}"
        reading.findings.warning("P0803", message, place, hint=hint)
    else:
        message = f"in step `{step.name}` nothing leaves the circle of {names}"
        reading.findings.error("P0803", message, place, hint=hint)
