"""Lint of steps and their pipelines: where tokens and jumps can go, and what is never reached, consumed or left."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.playbook.drafts import StepDraft, TaskDraft
from penstock.dialects.playbook.guards import (
    BOUNDARIES,
    DONE,
    FAILED,
    LOOP_DONE,
    OUTCOME_ROOTS,
    bare,
    catches_errors,
    constant,
    event_names,
    failure_asked_for,
    fires,
    paths_read,
)
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.sugar import FAILED as SUGAR_FAILED
from penstock.dialects.playbook.sugar import NOOP
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, listed
from penstock.kernel.net import Arc, Do

# What other engines and older versions of the language call the three ends of a step.
_OTHER_NAMES = {
    "step.exit": DONE, "step.complete": DONE, "step.completed": DONE, "step.success": DONE, "task.done": DONE,
    "step.error": FAILED, "task.failed": FAILED, "step.failure": FAILED,
    "loop.complete": LOOP_DONE, "loop.completed": LOOP_DONE, "loop.failed": FAILED,
}  # fmt: skip


def ends_of(step: StepDraft) -> tuple[str, str]:
    """How a step can end: a loop step never ends in `step.done` (D50)."""
    return (LOOP_DONE if step.loop is not None else DONE), FAILED


class Flow:
    """The steps as a graph of arcs that can fire."""

    def __init__(self, steps: list[StepDraft], entry: str) -> None:
        self.steps = {step.name: step for step in steps}
        self.entry = entry
        self.live = {step.name: [edge for edge in step.edges if self.can_fire(step, edge)] for step in steps}
        self.before: dict[str, set[str]] = {}
        for name, edges in self.live.items():
            for edge in edges:
                self.before.setdefault(edge.target, set()).add(name)

    def can_fire(self, step: StepDraft, edge: Arc) -> bool:
        if edge.target not in self.steps:
            return False
        return any(
            fires(edge, end) is not False and self.first_before(step, edge, end) is None for end in ends_of(step)
        )

    def first_before(self, step: StepDraft, edge: Arc, end: str) -> Arc | None:
        """The arc above that always fires instead, in an exclusive router."""
        if not step.first_only:
            return None
        for other in step.edges[: edge.index]:
            if fires(other, end) or (other.guard is not None and _same(other.guard, edge.guard)):
                return other
        return None

    def reached(self) -> set[str]:
        found = {self.entry}
        waiting = [self.entry]
        while waiting:
            for edge in self.live.get(waiting.pop(), ()):
                if edge.target not in found:
                    found.add(edge.target)
                    waiting.append(edge.target)
        return found


def _same(left: str, right: str | None) -> bool:
    return right is not None and "".join(left.split()) == "".join(right.split())


def check_targets(reading: Reading, steps: list[StepDraft]) -> None:
    names = {step.name: step for step in steps}
    for step in steps:
        for edge, positions in zip(step.edges, step.arc_positions, strict=True):
            if edge.target not in names:
                reading.findings.error(
                    "P0304", f"there is no step `{edge.target}`", positions.target,
                    label=did_you_mean(edge.target, names), hint=f"the steps are {listed(names)}",
                )  # fmt: skip
        for source, position in step.joins.items():
            if source not in names:
                reading.findings.error(
                    "P0305", f"there is no step `{source}` to wait for", position, label=did_you_mean(source, names)
                )


def check_flow(reading: Reading, flow: Flow) -> None:
    for step in flow.steps.values():
        _check_arcs(reading, flow, step)
    if any(step.is_unclear for step in flow.steps.values()):
        return
    reached = flow.reached()
    for step in flow.steps.values():
        if step.name not in reached:
            _report_unreached(reading, flow, step, reached)
        if step.joins:
            _check_join(reading, flow, step)
    for step in flow.steps.values():
        if step.name in reached:
            _check_fork(reading, flow, step)
    for circle in _circles(flow):
        if all(_always_returns(flow, name, circle) for name in circle):
            _report_circle(reading, flow, circle)


END = "end"
"""The name that people give to the last step. It is a step like any other."""


def _report_unreached(reading: Reading, flow: Flow, step: StepDraft, reached: set[str]) -> None:
    hint, rewrite = f"no arc that can fire leads to it from `{flow.entry}`", ""
    open_ends = [name for name in flow.steps if name in reached and not flow.steps[name].edges]
    if step.name == END and open_ends:
        hint = f"no engine goes to `{END}` by itself: give an arc to {listed(open_ends)}"
        rewrite = f"next:\n  arcs:\n    - step: {END}"
    message = f"the step `{step.name}` is never reached"
    reading.findings.warning("P0801", message, step.position, hint=hint, rewrite=rewrite)


def _check_fork(reading: Reading, flow: Flow, fork: StepDraft) -> None:
    """Tokens of one fork that come to the same step: each makes a run of its own there, unless the step joins them."""
    if fork.first_only or len(flow.live[fork.name]) < 2:
        return
    branches = [_until_joined(flow, fork.name, edge.target) for edge in flow.live[fork.name]]
    meeting: dict[str, set[str]] = {}
    for number, left in enumerate(branches):
        for right in branches[number + 1 :]:
            for name in flow.steps:
                step = flow.steps[name]
                if name not in left or name not in right or step.joins:
                    continue
                around = left | right | {fork.name}
                sources = [one for one in flow.steps if one in flow.before.get(name, ()) and one in around]
                # What lies behind the place where they meet is no meeting of its own.
                if len(sources) < 2 or all(one in left and one in right for one in sources):
                    continue
                meeting.setdefault(name, set()).update(sources)
    for name in (one for one in flow.steps if one in meeting):
        sources = [one for one in flow.steps if one in meeting[name]]
        reading.findings.warning(
            "P0812",
            f"`{name}` runs once for each token: `{fork.name}` forks, and {listed(sources)} lead here again",
            flow.steps[name].position,
            hint="if it is to run once, when all of them have come, it says so",
            rewrite=f"spec:\n  join: [{', '.join(sources)}]",
        )


def _until_joined(flow: Flow, fork: str, first: str) -> set[str]:
    """The steps that a token reaches, up to those that wait for others, and without coming round through the fork."""
    found: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name in found or name == fork:
            continue
        found.add(name)
        if not flow.steps[name].joins:
            waiting += [edge.target for edge in flow.live[name]]
    return found


def _check_arcs(reading: Reading, flow: Flow, step: StepDraft) -> None:
    ends = ends_of(step)
    for edge, positions in zip(step.edges, step.arc_positions, strict=True):
        if edge.guard is not None:
            _check_event_names(reading, step, edge, positions.guard)
            if _warn_missed_failure(reading, edge, edge.guard, positions.guard):
                continue
        possible = [end for end in ends if fires(edge, end) is not False]
        if not possible:
            if edge.guard is not None and not any(
                name != ends[0] and name != FAILED for name, _, _ in event_names(edge.guard)
            ):
                reading.findings.warning("P0802", "this arc never fires: its guard never holds", positions.guard)
            continue
        above = [flow.first_before(step, edge, end) for end in possible]
        if all(other is not None for other in above):
            line = step.arc_positions[above[0].index].target.line if above[0] else 0
            hint = f"the router is exclusive, and the arc on line {line} fires first; `mode: inclusive` would take both"
            reading.findings.warning(
                "P0802", "this arc never fires: one above it always does", positions.guard, hint=hint
            )


def _warn_missed_failure(reading: Reading, edge: Arc, guard: str, position: Position) -> bool:
    """A guard that looks for an error by other means than `event` is not evaluated when the step failed (D57)."""
    asked = None if edge.reads_event else failure_asked_for(guard)
    if asked is None:
        return False
    message = f"this arc is not considered when the step failed: it reads `{asked}`, not `event`"
    hint = "what a task's policy let pass is all that it would see; say that the step failed"
    expression = bare(guard)
    tested = "event.name == 'step.failed'"
    is_alone = asked in (f"{root}.status" for root in OUTCOME_ROOTS) and paths_read(guard) == [tuple(asked.split("."))]
    both = (
        tested if is_alone else f"{tested} and ({expression})" if " or " in expression else f"{tested} and {expression}"
    )
    reading.findings.warning("P0810", message, position, hint=hint, rewrite=f'when: "{{{{ {both} }}}}"')
    return True


def _check_event_names(reading: Reading, step: StepDraft, edge: Arc, position: Position) -> None:
    ends = ends_of(step)
    for name, _, _ in event_names(edge.guard or ""):
        if name in ends:
            continue
        if name not in BOUNDARIES:
            meant = _OTHER_NAMES.get(name)
            label = f"did you mean `{meant}`?" if meant else did_you_mean(name, ends)
            hint = f"this step ends in {listed(ends)}"
            reading.findings.warning("P0809", f"no step ends in `{name}`", position, label=label, hint=hint)
        elif name == LOOP_DONE:
            reading.findings.warning(
                "P0809",
                f"step `{step.name}` has no loop, so it never ends in `{name}`",
                position,
                label=f"did you mean `{DONE}`?",
            )
        else:
            reading.findings.warning(
                "P0809", f"step `{step.name}` is a loop, so it ends in `{LOOP_DONE}` and never in `{name}`", position,
                label=f"did you mean `{LOOP_DONE}`?",
            )  # fmt: skip


def _check_join(reading: Reading, flow: Flow, step: StepDraft) -> None:
    if step.name == flow.entry:
        reading.findings.error("P0805", f"`{step.name}` is the first step, and waits for others", step.position)
    for source, position in step.joins.items():
        if source in flow.steps and source not in flow.before.get(step.name, ()):
            message = f"`{step.name}` waits for `{source}`, and no arc of `{source}` leads to it"
            reading.findings.error(
                "P0805", message, position, hint=f"give `{source}` an arc to `{step.name}`, or leave it out of `join`"
            )
    for source in sorted(flow.before.get(step.name, ())):
        if source not in step.joins:
            position = _arc_position(flow.steps[source], step.name)
            message = f"`{step.name}` does not wait for `{source}`: this token would never be consumed"
            reading.findings.error("P0808", message, position, hint=f"add `{source}` to its `spec.join`")
    for left, right, router in _exclusive_pairs(flow, step):
        message = f"`{left}` and `{right}` are never both reached: `{router}` takes one arc only"
        reading.findings.warning(
            "P0806", message, step.joins[right], hint=f"give `{router}` the mode `inclusive`, or join fewer steps"
        )


def _arc_position(step: StepDraft, target: str) -> Position:
    return next(
        (
            positions.target
            for edge, positions in zip(step.edges, step.arc_positions, strict=True)
            if edge.target == target
        ),
        step.position,
    )


def _exclusive_pairs(flow: Flow, step: StepDraft) -> Iterator[tuple[str, str, str]]:
    """Pairs of joined steps that lie behind different arcs of one exclusive router."""
    sources = [source for source in step.joins if source in flow.steps]
    ways = {source: _way_back(flow, source) for source in sources}
    for number, left in enumerate(sources):
        for right in sources[number + 1 :]:
            for router in ways[left]:
                if (
                    router in ways[right]
                    and ways[left][router] != ways[right][router]
                    and flow.steps[router].first_only
                ):
                    yield left, right, router
                    break


def _way_back(flow: Flow, name: str) -> dict[str, str]:
    """From a step backwards as long as there is one way only: earlier step -> the step it leads to on this way."""
    found: dict[str, str] = {}
    here = name
    while True:
        before = flow.before.get(here, set()) - {here}
        if len(before) != 1:
            return found
        (earlier,) = before
        if earlier in found or earlier == name:
            return found
        found[earlier] = here
        here = earlier


def _circles(flow: Flow) -> Iterator[list[str]]:
    """Steps that can all reach each other (Tarjan, without recursion: a workflow may be long)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for root in flow.steps:
        if root in index:
            continue
        work: list[tuple[str, Iterator[Arc]]] = []
        _enter(root, flow, index, low, stack, work)
        while work:
            name, edges = work[-1]
            following = next(edges, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    circle = _popped(stack, name)
                    if len(circle) > 1 or any(edge.target == name for edge in flow.live[name]):
                        yield circle
            elif following.target not in index:
                _enter(following.target, flow, index, low, stack, work)
            elif following.target in stack:
                low[name] = min(low[name], index[following.target])


def _popped(stack: list[str], name: str) -> list[str]:
    circle = [stack.pop()]
    while circle[-1] != name:
        circle.append(stack.pop())
    return circle


def _enter(
    name: str,
    flow: Flow,
    index: dict[str, int],
    low: dict[str, int],
    stack: list[str],
    work: list[tuple[str, Iterator[Arc]]],
) -> None:
    index[name] = low[name] = len(index)
    stack.append(name)
    work.append((name, iter(flow.live[name])))


def _always_returns(flow: Flow, name: str, circle: list[str]) -> bool:
    """When this step is done, does a token always stay in the circle?"""
    step = flow.steps[name]
    if step.admit is not None and any(not rule.allow for rule in step.admit):
        return False
    end = ends_of(step)[0]
    if not step.first_only:
        return any(fires(edge, end) and edge.target in circle for edge in step.edges)
    for edge in step.edges:
        holds = fires(edge, end)
        if holds is not False and edge.target not in circle:
            return False
        if holds:
            return True
    return False


def _report_circle(reading: Reading, flow: Flow, circle: list[str]) -> None:
    first = min((flow.steps[name] for name in circle), key=lambda step: step.position.line)
    names = listed(name for name in flow.steps if name in circle)
    hint = 'guard an arc, so that the token can leave: `when: "{{ ctx.rounds < 10 }}"`'
    reading.findings.error("P0804", f"a token never leaves the circle of {names}", first.position, hint=hint)


# ---- Pipelines: tasks that are never reached, and cycles of jumps without an exit


_END = -1
# Exits that the author did not write: a tool that fails, attempts that run out.
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
            reading.findings.warning("P0807", f"the task `{task.label}` never runs", task.position, hint=hint)
        if not (task.is_generated or task.kind == NOOP or task.rules is None):
            _check_errors_are_caught(reading, task)
    leaving = _leading_to(ways, _END)
    stuck = sorted(reached - leaving)
    if any(rule.then.do is Do.JUMP for index in stuck for rule in tasks[index].rules or ()):
        _report_jumps(reading, step, [tasks[index] for index in stuck], stuck, ways)


def _check_errors_are_caught(reading: Reading, task: TaskDraft) -> None:
    """With a policy an outcome that no rule matches goes on, an error as well: the run completes as if all was well."""
    if task.rules and not catches_errors([rule.when for rule in task.rules]):
        message = f"an error of `{task.label}` that no rule matches is passed over, and the pipeline goes on"
        last = "{ when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }"
        hint = f"add a last rule `{last}`, or one with `do: continue` if that is meant"
        reading.findings.warning("P0811", message, task.position, hint=hint)


def _ways(task: TaskDraft, after: int, labels: dict[str, int]) -> set[int]:
    """Where the pipeline may go after this task."""
    if task.rules is None:
        return {after} if task.kind == NOOP else {after, _GIVES_UP}
    ways: set[int] = set()
    for rule in task.rules:
        holds = constant(rule.when)
        if holds is False:
            continue
        if rule.when == SUGAR_FAILED and rule.then.do is Do.FAIL:
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


def _report_jumps(
    reading: Reading, step: StepDraft, circle: list[TaskDraft], stuck: list[int], ways: list[set[int]]
) -> None:
    names = listed(task.label for task in circle)
    jumping = next((task for task in circle if task.jumps), circle[0])
    position = next(iter(jumping.jumps.values()), jumping.position)
    hint = "add a rule that ends in `break`, `fail` or `continue` past the circle"
    gives_up = _leading_to(ways, _GIVES_UP)
    if all(index in gives_up for index in stuck):
        message = f"in step `{step.name}` only a failure ends the circle of {names}"
        reading.findings.warning("P0803", message, position, hint=hint)
    else:
        message = f"in step `{step.name}` nothing leaves the circle of {names}"
        reading.findings.error("P0803", message, position, hint=hint)
