"""What the tasks of a step run did: attempts, the rules that judged them, retries, and where it stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from penstock.kernel.net import Node, Rule, Task
from penstock.kernel.values import Json
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.views.fanouts import FanoutSeen
from penstock.views.history import KEPT_ATTEMPTS, Attempt, StepRun
from penstock.views.wording import condition, counted, elements, error_line, listed, seconds, shown


def attempts_of(entries: Iterable[Entry], scope: str, task: str | None) -> list[Attempt]:
    """The last task runs of one pipeline, read anew: `history` keeps only the failed ones of a loop."""
    found: deque[Attempt] = deque(maxlen=KEPT_ATTEMPTS)
    under_way: dict[str | None, Attempt] = {}
    for entry in entries:
        if entry.scope != scope or not entry.type.startswith("task."):
            continue
        data: Any = decode(entry.payload)
        if task is not None and data["task"] != task:
            continue
        if entry.type == "task.started":
            attempt = Attempt(entry.task or "", data["task"], data["kind"], data["attempt"], entry.ts)
            under_way[entry.task] = attempt
            found.append(attempt)
            continue
        known = under_way.pop(entry.task) if entry.task in under_way else None
        attempt = known or Attempt("", data["task"], "", data["attempt"], entry.ts)
        outcome = data["outcome"]
        attempt.ended_at, attempt.status, attempt.error = entry.ts, outcome.get("status"), outcome.get("error")
        attempt.do, attempt.next, attempt.rule = data["do"], data["next"], data.get("rule")
        attempt.delay, attempt.failure = data.get("delay", 0.0), data.get("error")
    return list(found)


def described(attempts: list[Attempt], node: Node | None, *, is_live: bool) -> list[str]:
    """One line per task run, in order."""
    lines = []
    for position, attempt in enumerate(attempts):
        task = _task(node, attempt.task)
        following = attempts[position + 1] if position + 1 < len(attempts) else None
        lines.append(_line(attempt, task, node, following, is_live))
    return lines


def _line(attempt: Attempt, task: Task | None, node: Node | None, following: Attempt | None, is_live: bool) -> str:
    kind = f" ({attempt.kind})" if attempt.kind else ""
    number = f", attempt {attempt.number}" if attempt.number > 1 or attempt.do == "retry" else ""
    start = f"task `{attempt.task}`{kind}{number}: "
    if attempt.ended_at is None:
        return start + ("is running" if is_live else "was under way when the run stopped")
    took = seconds(max(0.0, attempt.ended_at - attempt.started_at))
    outcome = f"ok in {took}" if attempt.status == "ok" else f"error in {took}, {error_line(attempt.error)}"
    return f"{start}{outcome}; {_directive(attempt, task, node, following, is_live)}"


def _directive(attempt: Attempt, task: Task | None, node: Node | None, following: Attempt | None, is_live: bool) -> str:
    why = _rule(attempt, task)
    match attempt.do:
        case "retry":
            wait = f" after {seconds(attempt.delay)}" if attempt.delay else " at once"
            pending = "" if following is not None else " (it waits for that now)" if is_live else " (not begun yet)"
            return f"{why} → retry{wait}{pending}"
        case "jump":
            return f"{why} → jump to `{_label(node, attempt.next)}`"
        case "break":
            return f"{why} → break: the pipeline is done"
        case "fail":
            return f"{why} → the pipeline failed{_differently(attempt)}"
    return f"{why} → {'go on' if attempt.next >= 0 else 'the pipeline is done'}"


def _differently(attempt: Attempt) -> str:
    """A policy that could not be evaluated fails a task for a reason that its outcome does not have."""
    return f": {error_line(attempt.failure)}" if attempt.failure and attempt.failure != attempt.error else ""


def _rule(attempt: Attempt, task: Task | None) -> str:
    if task is None:
        return "its policy"
    if task.rules is None:
        return "it has no policy"
    if attempt.do == "fail" and attempt.rule is not None and _asks_for_retry(task, attempt.rule):
        used = "its only attempt was used" if attempt.number == 1 else f"all {attempt.number} attempts were used"
        return f"{_named(task.rules[attempt.rule], attempt.rule)} asked for a retry, and {used}"
    if attempt.rule is None or attempt.rule >= len(task.rules):
        return "no rule of its policy matched"
    return _named(task.rules[attempt.rule], attempt.rule)


def _named(rule: Rule, index: int) -> str:
    return "its `else`" if rule.when is None else f"rule {index + 1} {condition(rule.when)}"


def _asks_for_retry(task: Task, index: int) -> bool:
    return task.rules is not None and index < len(task.rules) and task.rules[index].then.do.value == "retry"


def _task(node: Node | None, label: str) -> Task | None:
    return next((task for task in node.tasks if task.label == label), None) if node is not None else None


def _label(node: Node | None, position: int) -> str:
    return node.tasks[position].label if node is not None and 0 <= position < len(node.tasks) else str(position)


def iterations(run: StepRun, *, is_live: bool) -> list[str]:
    loop = run.iterations
    if loop is None:
        return []
    if run.fanout is not None:
        return _shards(run.fanout, is_live=is_live and run.ended_at is None)
    lines = [f"{loop.mode} loop over {counted(loop.total, 'element')}: {loop.done:,} done, {loop.failed:,} failed"]
    if loop.open and run.ended_at is None:
        state = "under way" if is_live else "under way when the run stopped"
        some = ", ".join(f"[{index}]" for index in sorted(loop.open)[:10])
        lines.append(f"{counted(len(loop.open), 'iteration')} {state}: {some}{' …' if len(loop.open) > 10 else ''}")
    for index, error in loop.failures[:10]:
        lines.append(f"iteration [{index}] failed: {error_line(error)}")
    if loop.failed > 10:
        lines.append(f"… and {loop.failed - 10:,} more")
    return lines


def _shards(fanout: FanoutSeen, *, is_live: bool) -> list[str]:
    size = counted(fanout.size, "element") + (" so far" if fanout.total is None else "")
    again = f", {fanout.retried:,} tried again" if fanout.retried else ""
    skipped = f", {fanout.skipped:,} not tried" if fanout.skipped else ""
    lines = [f"loop over {size}, fanned out: {fanout.done:,} done, {fanout.failed:,} failed{again}{skipped}"]
    many = len(fanout.workers)
    on = f" on {listed([name for name, _ in fanout.workers.most_common(5)])}" if many else ""
    more = f" and {counted(many - 5, 'more worker')}" if many > 5 else ""
    lines.append(f"{counted(fanout.ranges, 'range')}{on}{more}")
    if fanout.lost:
        lines.append(f"{counted(fanout.lost, 'range')} came back because their workers were lost, and went out again")
    for held in sorted(fanout.out.values(), key=lambda one: one.number)[:10]:
        where = f"on `{held.worker}`" if held.worker else "waits for a worker"
        state = where if is_live else f"was out ({where}) when the run stopped"
        lines.append(f"range {held.number}, {elements(held.lo, held.hi)}: {state}")
    failures = sorted(fanout.failures, key=lambda one: one.index)[:10]
    lines += [f"element [{one.index}] failed: {error_line(one.error)}" for one in failures]
    if fanout.failed > len(failures):
        lines.append(f"… and {fanout.failed - len(failures):,} more")
    return lines


def item_of(entries: Iterable[Entry], scope: str) -> tuple[Json, str | None, Json]:
    """The element of an iteration as the log shows it, how the iteration ended, and its error."""
    item: Json = None
    status: str | None = None
    error: Json = None
    for entry in entries:
        if entry.scope != scope:
            continue
        data: Any = decode(entry.payload)
        if entry.type == "loop.iteration.started":
            item, status = data.get("item"), "running"
        elif entry.type.startswith("loop.iteration."):
            status, error = data["status"], data.get("error")
    return item, status, error


def fan_line(node: Node | None, item: Json) -> str:
    name = node.fan.iterator if node is not None and node.fan is not None else "item"
    return f"its element: {name} = {shown(item)}" if item is not None else ""
