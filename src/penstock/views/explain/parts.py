"""The parts of a step run: what its tasks did, attempt by attempt, its iterations, and the elements of a fan-out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.net import Node, Rule, Task
from penstock.ports.collections import elements as elements_of
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.views.answers import standing
from penstock.views.explain.chain import chain
from penstock.views.explain.explanation import Explanation, Inquiry
from penstock.views.model import FAILED, KEPT_ATTEMPTS, OK, RUNNING, Attempt, Execution, Fan, Range, Ranges, Run
from penstock.views.payload import payload_of
from penstock.views.run_view import EVERY, RunView
from penstock.views.steps import AT_FANIN
from penstock.views.wording import condition, counted, elements, error_line, listed, seconds, shown

AROUND = 5
MOST = 10
MOST_PLAYED = 5


def node_of(ask: Inquiry, run: Run) -> Node | None:
    return ask.net.nodes.get(run.node) if ask.net is not None else None


def is_open(ask: Inquiry, run: Run) -> bool:
    return ask.log.is_live and run.ended_at is None


def deeds(ask: Inquiry, run: Run) -> list[str]:
    node = node_of(ask, run)
    lines = _of_fan(ask, run)
    attempts = [*run.attempts, *run.under_way.values()] if run.fan is None else []
    lines += tried(ask, run, attempts, is_live=is_open(ask, run))
    if run.status in (RUNNING, OK, FAILED) and node is not None and not node.tasks:
        lines.append(ask.of(run, "it has no tasks: a token passes through"))
    return lines + _of_played(ask, run, run.id)


def _of_fan(ask: Inquiry, run: Run) -> list[str]:
    """The lines about a loop: each as the loop was opened, but those about elements that failed."""
    fan = run.fan
    if fan is None:
        return []
    failed = {error_line(one.error): one.seq for one in reversed(fan.failures)}
    lines = fan_lines(run, is_live=ask.log.is_live)
    return [ask.say(line, failed.get(line.partition(" failed: ")[2]) or fan.seq, run.node) for line in lines]


def _of_played(ask: Inquiry, run: Run, scope: str) -> list[str]:
    return [ask.of(run, line) for line in played(scope, ask.view)]


def tried(ask: Inquiry, run: Run, attempts: list[Attempt], *, is_live: bool) -> list[str]:
    lines = attempt_lines(attempts, node_of(ask, run), is_live=is_live)
    return [
        ask.say(line, one.end_seq or one.seq, run.node, task=one.task)
        for line, one in zip(lines, attempts, strict=True)
    ]


def played(scope: str, view: RunView) -> list[str]:
    """The playbooks and jobs that tasks below `scope` ran; of many, those that failed."""
    below = [one for one in view.executions.values() if one.scope.startswith((f"{scope}/", f"{scope}["))]
    telling = below if len(below) <= MOST_PLAYED else [one for one in below if one.status == "failed"]
    return [
        f"task `{one.scope.removesuffix('/')}` ran the {one.kind} `{one.name}`: {one.status}{_failed_in(one)}"
        for one in telling[:MOST_PLAYED]
    ]


def _failed_in(execution: Execution) -> str:
    if execution.status != "failed":
        return ""
    if execution.kind == "job":
        failed = execution.error.get("component") if isinstance(execution.error, dict) else None
        return f", in {listed([f'{execution.scope}{str(failed).removeprefix(execution.scope)}'])}" if failed else ""
    steps = [run.id for run in execution.runs.values() if run.selected is not None and run.selected.unhandled]
    return f", in {listed(steps[:3])}" if steps else ""


# ---- tasks


def _of_task(ask: Inquiry, run: Run, label: str, text: str) -> str:
    return ask.say(text, run.end_seq or run.scheduled_seq or run.created_seq, run.node, task=label)


def explain_task(ask: Inquiry, run: Run, label: str, ordinal: int | None) -> Explanation:
    task = run.tasks.get(label)
    if task is None:
        return _unreached(ask, run, label)
    status = standing(task.status, is_open(ask, run))
    runs = f"{counted(task.runs, 'run')}, up to attempt {task.attempts}"
    headline = f"task `{label}` ({task.kind}) of `{run.id}`: {status}, {runs}{ask.position(run.node, task=label)}"
    answer = Explanation(f"{run.id}/{label}", status, _of_task(ask, run, label, headline))
    if run.fan is None:
        every = _attempts(ask.log.between(run.created_seq, run.end_seq), run.id)
        own = [one for one in every if one.task == label]
        if ordinal is not None:
            own = [one for one in own if one.task_run_id.endswith(f"#{ordinal}")]
        answer.add("what it did", tried(ask, run, own, is_live=is_open(ask, run)))
        others = [one for one in every if one.task != label]
        answer.add("the tasks around it", tried(ask, run, others[-AROUND:], is_live=is_open(ask, run)))
    else:
        failed = [one for one in run.attempts if one.task == label]
        answer.add("where it failed", tried(ask, run, failed[:MOST], is_live=False))
        answer.add("in the loop", _of_fan(ask, run))
    answer.add("why the step ran", chain(ask, run))
    return answer


def _unreached(ask: Inquiry, run: Run, label: str) -> Explanation:
    node = node_of(ask, run)
    if node is not None and all(one.label != label for one in node.tasks):
        known = listed([one.label for one in node.tasks])
        raise Refused(f"step `{run.node}` has no task `{label}`", f"its tasks are {known}")
    headline = f"task `{label}` of `{run.id}` was never reached{ask.position(run.node, task=label)}"
    answer = Explanation(f"{run.id}/{label}", "not reached", _of_task(ask, run, label, headline))
    answer.add("what happened instead", deeds(ask, run))
    answer.add("why the step ran", chain(ask, run))
    return answer


def _attempts(entries: Iterable[Entry], scope: str, task: str | None = None) -> list[Attempt]:
    """The last task runs of one pipeline, read anew: a view keeps only the failed ones of a loop."""
    found: list[Attempt] = []
    under_way: dict[str | None, Attempt] = {}
    for entry in entries:
        if entry.scope != scope:
            continue
        if entry.type == "task.started":
            start = payload_of(entry)
            one = Attempt(entry.task or "", start.task, start.kind, start.attempt, entry.ts, seq=entry.seq)
            under_way[entry.task] = one
            found.append(under_way[entry.task])
        elif entry.type == "task.done":
            end = payload_of(entry)
            known = under_way.pop(entry.task, None)
            (known or Attempt("", end.task, "", end.attempt, entry.ts)).end(end, entry.ts, entry.seq)
    return [one for one in found if task in (None, one.task)][-KEPT_ATTEMPTS:]


def attempt_lines(attempts: list[Attempt], node: Node | None, *, is_live: bool) -> list[str]:
    """One line per task run, in order."""
    return [
        _attempt(one, node, following, is_live)
        for one, following in zip_longest(attempts, attempts[1:])
        if one is not None
    ]


def _attempt(attempt: Attempt, node: Node | None, following: Attempt | None, is_live: bool) -> str:
    kind = f" ({attempt.kind})" if attempt.kind else ""
    number = f", attempt {attempt.number}" if attempt.number > 1 or attempt.do == "retry" else ""
    start = f"task `{attempt.task}`{kind}{number}: "
    if attempt.ended_at is None:
        return start + ("is running" if is_live else "was under way when the run stopped")
    took = seconds(max(0.0, attempt.ended_at - attempt.started_at))
    outcome = f"ok in {took}" if attempt.status == "ok" else f"error in {took}, {error_line(attempt.error)}"
    return f"{start}{outcome}; {_directive(attempt, node, following, is_live)}"


def _directive(attempt: Attempt, node: Node | None, following: Attempt | None, is_live: bool) -> str:
    why = _rule(attempt, node)
    match attempt.do:
        case "retry":
            wait = f" after {seconds(attempt.delay)}" if attempt.delay else " at once"
            pending = "" if following is not None else " (it waits for that now)" if is_live else " (not begun yet)"
            return f"{why} → retry{wait}{pending}"
        case "jump":
            is_known = node is not None and 0 <= attempt.next < len(node.tasks)
            label = node.tasks[attempt.next].label if node is not None and is_known else str(attempt.next)
            return f"{why} → jump to `{label}`"
        case "break":
            return f"{why} → break: the pipeline is done"
        case "fail":
            # A policy that could not be evaluated fails a task for a reason that its outcome does not have.
            other = attempt.failure if attempt.failure != attempt.error else None
            return f"{why} → the pipeline failed{f': {error_line(other)}' if other else ''}"
    return f"{why} → {'go on' if attempt.next >= 0 else 'the pipeline is done'}"


def _rule(attempt: Attempt, node: Node | None) -> str:
    task: Task | None = None
    if node is not None:
        task = next((task for task in node.tasks if task.label == attempt.task), None)
    if task is None:
        return "its policy"
    if task.rules is None:
        return "it has no policy"
    if attempt.rule is None or attempt.rule >= len(task.rules):
        return "no rule of its policy matched"
    rule = task.rules[attempt.rule]
    if attempt.do == "fail" and rule.then.do.value == "retry":
        used = "its only attempt was used" if attempt.number == 1 else f"all {attempt.number} attempts were used"
        return f"{_named(rule, attempt.rule)} asked for a retry, and {used}"
    return _named(rule, attempt.rule)


def _named(rule: Rule, index: int) -> str:
    return "its `else`" if rule.when is None else f"rule {index + 1} {condition(rule.when)}"


# ---- loops


def fan_lines(run: Run, *, is_live: bool) -> list[str]:
    fan = run.fan
    if fan is None:
        return []
    if fan.ranges is not None:
        return _range_lines(fan, fan.ranges, is_live=is_live and run.ended_at is None)
    size = counted(fan.size, "element") + (" so far" if fan.total is None else "")
    lines = [f"{fan.mode} loop over {size}: {fan.ok:,} done, {fan.failed:,} failed"]
    if fan.open and run.ended_at is None:
        state = "under way" if is_live else "under way when the run stopped"
        some = ", ".join(f"[{index}]" for index in sorted(fan.open)[:MOST])
        lines.append(f"{counted(len(fan.open), 'iteration')} {state}: {some}{' …' if len(fan.open) > MOST else ''}")
    lines += [f"iteration [{one.index}] failed: {error_line(one.error)}" for one in fan.failures[:MOST]]
    return lines + ([f"… and {fan.failed - MOST:,} more"] if fan.failed > MOST else [])


def _range_lines(fan: Fan, ranges: Ranges, *, is_live: bool) -> list[str]:
    size = counted(fan.size, "element") + (" so far" if fan.total is None else "")
    again = f", {ranges.retried:,} tried again" if ranges.retried else ""
    skipped = f", {ranges.skipped:,} not tried" if ranges.skipped else ""
    lines = [f"loop over {size}, fanned out: {fan.ok:,} done, {fan.failed:,} failed{again}{skipped}"]
    workers = sorted(ranges.workers, key=lambda name: -ranges.workers[name])
    on = f" on {listed(workers[:5])}" if workers else ""
    more = f" and {counted(len(workers) - 5, 'more worker')}" if len(workers) > 5 else ""
    lines.append(f"{counted(ranges.count, 'range')}{on}{more}")
    if ranges.lost:
        lines.append(f"{counted(ranges.lost, 'range')} came back because their workers were lost, and went out again")
    for held in sorted(ranges.out.values(), key=lambda one: one.number)[:MOST]:
        where = f"on `{held.worker}`" if held.worker else "waits for a worker"
        state = where if is_live else f"was out ({where}) when the run stopped"
        lines.append(f"range {held.number}, {elements(held.lo, held.hi)}: {state}")
    failures = sorted(fan.failures, key=lambda one: one.index)[:MOST]
    lines += [f"element [{one.index}] failed: {error_line(one.error)}" for one in failures]
    left = fan.failed - len(failures)
    return lines + ([f"… and {left:,} more"] if left > 0 else [])


_SAID = {"done": "is done", "interrupted": "was under way when the run stopped", "running": "is running"}


def explain_iteration(ask: Inquiry, run: Run, index: int, task: str | None) -> Explanation:
    scope, fan = f"{run.id}[{index}]", run.fan
    if fan is None:
        raise Refused(f"`{run.id}` has no iterations", f"ask for `{run.id}`")
    if fan.ranges is not None:
        return _explain_element(ask, run, fan, fan.ranges, index)
    found = _found(ask, run, fan, index, scope)
    if not found:
        return _unstarted(ask, run, fan, index)
    first, last = found[0], found[-1]
    status = standing(last.status, is_open(ask, run))
    headline = f"iteration `{scope}` {_SAID.get(status, status)}{ask.position(run.node)}"
    answer = Explanation(scope, status, ask.say(headline, last.seq, run.node))
    size = counted(fan.size, "element") + (" so far" if fan.total is None else "")
    opened = ask.say(f"`{run.id}` opened a loop over {size}", fan.seq, run.node)
    answer.add("why it ran", [*chain(ask, run), opened])
    item = next((one.item for one in reversed(found) if one.item is not None), None)
    answer.add(
        "what it worked on", [ask.say(line, first.seq, run.node) for line in _element_line(node_of(ask, run), item)]
    )
    attempts = _attempts(ask.log.between(first.seq - 1, last.seq if last.status != RUNNING else None), scope, task)
    answer.add("what it did", tried(ask, run, attempts, is_live=is_open(ask, run)))
    answer.add("what that ran", _of_played(ask, run, scope))
    failed = [ask.say(error_line(last.error), last.seq, run.node)] if last.error is not None else []
    answer.add("why it failed", failed)
    return answer


@dataclass(frozen=True, slots=True)
class _Recorded:
    """An event of an iteration: its start with its element, or its end."""

    seq: int
    status: str
    item: Any = None
    error: Any = None


def _found(ask: Inquiry, run: Run, fan: Fan, index: int, scope: str) -> list[_Recorded]:
    """Of a long log, only the entries from about where the iteration began to where it ended are read."""
    if ask.log.before is not None:
        after = _begins_after(ask, run, index)
        found: list[_Recorded] = []
        for one in _recorded(ask.log.between(after, after + 2 * EVERY), scope):
            found.append(one)
            if one.status != RUNNING:
                return found
    return list(_recorded(ask.log.between(run.created_seq, run.end_seq), scope))


def _begins_after(ask: Inquiry, run: Run, index: int) -> int:
    """Elements begin in their order: an entry, where there is a snapshot, at which this one had not begun."""
    assert ask.log.before is not None
    low, high = run.created_seq // EVERY, (run.end_seq or ask.view.seq) // EVERY
    while low < high:
        middle = (low + high + 1) // 2
        known = ask.log.before(middle * EVERY).run(run.id)
        begun = 0 if known is None or known.fan is None else known.fan.settled + len(known.fan.open)
        low, high = (middle, high) if begun <= index else (low, middle - 1)
    return low * EVERY


def _recorded(entries: Iterable[Entry], scope: str) -> Iterator[_Recorded]:
    for entry in entries:
        if entry.scope == scope and entry.type.startswith("loop.iteration."):
            data: Any = decode(entry.payload)
            if entry.type == "loop.iteration.started":
                yield _Recorded(entry.seq, RUNNING, data.get("item"))
            else:
                yield _Recorded(entry.seq, data["status"], None, data.get("error"))


def _element_line(node: Node | None, item: Any) -> list[str]:
    name = node.fan.iterator if node is not None and node.fan is not None else "item"
    return [f"its element: {name} = {shown(item)}"] if item is not None else []


def _unstarted(ask: Inquiry, run: Run, fan: Fan, index: int) -> Explanation:
    if index >= fan.size:
        raise Refused(f"`{run.id}` has {counted(fan.size, 'iteration')}, numbered from 0")
    scope = f"{run.id}[{index}]"
    headline = ask.say(f"iteration `{scope}` was never started{ask.position(run.node)}", None, run.node)
    answer = Explanation(scope, "not started", headline)
    if fan.failures:
        first = fan.failures[0]
        stopped = f"iteration [{first.index}] failed and the loop is fail_fast, so no more were started"
        answer.add("why not", [ask.say(line, first.seq, run.node) for line in (stopped, error_line(first.error))])
    elif is_open(ask, run):
        answer.add("why not", [f"the loop has come to {fan.settled:,} of {fan.size:,}"])
    elif run.error is not None:
        answer.add("why not", [error_line(run.error)])
    else:
        answer.add("why not", ["the run stopped before the loop came to it"])
    return answer


# ---- elements of a loop that is fanned out

_ELEMENT_SAID = {
    "done": "is done",
    "failed": "failed",
    "waiting": "waits for a worker",
    "running": "is being worked on",
    "reported": "was run, and waits for the fan-in to compare what it wrote to ctx",
    "interrupted": "was handed out when the run stopped",
}


class _Element:
    """The story of one element, as far as it is known."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.lines: list[str] = []
        self.seqs: list[int] = []
        """Of each line, the event that says so."""
        self.status: str | None = None
        self.error: Any = None
        self.key: str | None = None
        self.item: Any = None
        self._ranges: dict[int, Range] = {}

    def add(self, entry: Entry, data: Any) -> None:
        self._tell(entry, data)
        self.seqs += [entry.seq] * (len(self.lines) - len(self.seqs))

    def said(self, ask: Inquiry, run: Run) -> list[str]:
        return [ask.say(line, seq, run.node) for line, seq in zip(self.lines, self.seqs, strict=True)]

    def _tell(self, entry: Entry, data: Any) -> None:
        match entry.type:
            case "loop.fanout.started":
                self._ranges.clear()
                self.item = _item(data["collection"], self.index)
            case "loop.shard.enqueued":
                self._enqueued(Range(data["range"], data["lo"], data["hi"], data["attempt"]))
            case "loop.shard.started":
                self._started(self._ranges[data["range"]], data, entry.worker)
            case "loop.shard.done" if data.get("at_fanin"):
                if data["lo"] <= self.index < data["hi"] and self.status == "reported":
                    self.status = "done"
                    self.lines.append("what it wrote to ctx could stand, when all elements had come in")
            case "loop.shard.reported" | "loop.shard.done":
                self._ended(self._ranges[data["range"]], data, entry)
            case "loop.shard.failed" if data["iter_index"] == self.index:
                self._failed(data)
            case "loop.shard.returned":
                self._returned(self._ranges.pop(data["range"], None), data)

    def _has(self, held: Range) -> bool:
        return held.hi is not None and held.lo <= self.index < held.hi

    def _enqueued(self, held: Range) -> None:
        if held.number in self._ranges:  # Told once for each of its elements.
            return
        self._ranges[held.number] = held
        if self._has(held):
            nth = {2: "second", 3: "third"}.get(held.attempt + 1, f"{held.attempt + 1}th")
            self.lines.append(f"it was handed out in {_shown(held)}{f', for the {nth} time' if held.attempt else ''}")
            self.status = "waiting"

    def _started(self, held: Range, data: Any, worker: str | None) -> None:
        if held.worker is not None and held.hi is not None:
            return
        held.worker = worker
        is_new = held.hi is None
        if data["hi"] is not None:
            held.hi = data["hi"]
        if self._has(held):
            read = f"it was read on the page of {_shown(held)}, by worker `{worker}`"
            self.lines.append(read if is_new else f"worker `{worker}` took that range")
            self.status = "running"

    def _ended(self, held: Range, data: Any, entry: Entry) -> None:
        is_report = entry.type == "loop.shard.reported"
        is_its = self.index not in data["failed"] if is_report else self.status not in ("failed", "again")
        if is_its and data["lo"] <= self.index < data["hi"]:
            self.status = "reported" if is_report else "done"
            self.lines.append(f"it was {'run' if is_report else 'done'} in {_shown(held)}, on worker `{entry.worker}`")
        if data["hi"] >= (held.hi or 0):
            self._ranges.pop(held.number, None)

    def _failed(self, data: Any) -> None:
        self.key = data["iter_key"]
        if data["range"] == AT_FANIN or data.get("at_fanin"):
            self.lines.append("what it wrote to ctx could not stand beside what an earlier element wrote")
        elif data["again"]:
            self.lines.append(f"it failed, and is tried again: {error_line(data['error'])}")
            self.status = "again"
            return
        else:
            self.lines.append(f"it failed for good, after {counted(data['attempt'] + 1, 'try', 'tries')}")
        self.status, self.error = "failed", data["error"]

    def _returned(self, held: Range | None, data: Any) -> None:
        if held is None or not (data["hi"] is not None and data["lo"] <= self.index < data["hi"]):
            return
        worker = data["worker"] or held.worker
        whose = f" `{worker}`" if worker else ""
        lines = {
            "lost": f"worker{whose} was lost, and with it what it had done of {_shown(held)} since it last told",
            "returned": f"worker{whose} gave back what was left of {_shown(held)}",
            "stale": f"nobody took {_shown(held)} in time",
            "stopped": f"{_shown(held)} was called back before it came to this element",
        }
        self.lines.append(lines[data["reason"]])
        self.status = "waiting" if data["reason"] != "stopped" else None


def _shown(held: Range) -> str:
    return f"range {held.number} ({elements(held.lo, held.hi)})"


def _item(collection: Any, index: int) -> Any:
    """The element itself, where the log has it and it is no reference."""
    if collection["kind"] == "range" or isinstance(collection.get("items"), list):
        items = elements_of(collection, _unread)
        return items[index] if index < len(items) else None
    return None


def _unread(ref: object) -> Any:
    raise AssertionError("what lies behind a reference is not read for this")


def _explain_element(ask: Inquiry, run: Run, fan: Fan, ranges: Ranges, index: int) -> Explanation:
    if fan.total is not None and index >= fan.total:
        raise Refused(f"`{run.id}` has {counted(fan.total, 'element')}, numbered from 0")
    story = _Element(index)
    for entry, data in _of_loop(ask, run):
        story.add(entry, data)
    shard = f"{ranges.loop_id}[{index}]"
    status = story.status
    if status in ("waiting", "running", "again") and not is_open(ask, run):
        status = "interrupted" if run.ended_at is None else None
    if status is None:
        return _untried(ask, run, shard, story)
    standing = _ELEMENT_SAID.get(status, "waits for another try")
    shown_status = "running" if status == "again" else status
    latest = story.seqs[-1] if story.seqs else fan.seq
    headline = ask.say(f"element `{shard}` {standing}{ask.position(run.node)}", latest, run.node)
    answer = Explanation(shard, shown_status, headline)
    size = counted(fan.total, "element") if fan.total is not None else "elements that nobody has counted yet"
    answer.add("why it ran", [*chain(ask, run), ask.say(f"`{run.id}` fans out a loop over {size}", fan.seq, run.node)])
    key = [f"its key: {story.key}"] if story.key is not None and story.key != str(index) else []
    element = [*_element_line(node_of(ask, run), story.item), *key]
    answer.add("what it worked on", [ask.say(line, fan.seq, run.node) for line in element])
    answer.add("what became of it", story.said(ask, run))
    failed = [ask.say(error_line(story.error), latest, run.node)] if story.error is not None else []
    answer.add("why it failed", failed)
    return answer


def _untried(ask: Inquiry, run: Run, shard: str, story: _Element) -> Explanation:
    headline = ask.say(f"element `{shard}` was never tried{ask.position(run.node)}", None, run.node)
    answer = Explanation(shard, "not started", headline)
    answer.add("what became of it", story.said(ask, run))
    why: list[str] = []
    fan = run.fan
    assert fan is not None
    assert fan.ranges is not None
    if fan.failures and run.ended_at is not None:
        first = fan.failures[0]
        stopped = f"element [{first.index}] failed and the loop is fail_fast, so no more were tried"
        why = [ask.say(line, first.seq, run.node) for line in (stopped, error_line(first.error))]
    elif is_open(ask, run):
        handed_out = fan.ranges.next
        why = [f"elements have been handed out up to [{handed_out - 1}]" if handed_out else "none was handed out yet"]
    elif run.error is not None:
        why = [error_line(run.error)]
    answer.add("why not", why or ["the run stopped before the loop came to it"])
    return answer


def _of_loop(ask: Inquiry, run: Run) -> Iterator[tuple[Entry, Any]]:
    """The events of the loop, in all the runs that a resume gave it."""
    scopes, first = {run.id}, run.created_seq
    while (before := ask.view.run(run.continues)) is not None:
        run = before
        scopes.add(run.id)
        first = min(first, run.created_seq)
    for entry in ask.log.between(first, None):
        if not entry.type.startswith(("loop.shard.", "loop.fanout.")):
            continue
        if entry.scope in scopes or entry.scope[: max(0, entry.scope.rfind("["))] in scopes:
            yield entry, decode(entry.payload)
