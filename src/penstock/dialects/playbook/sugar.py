"""`choose`, `while` and `until` become noop tasks with jumps. Labels are stable, and no branch falls through into the next.

    choose  route.choose   route.1.<task> …   route.2.<task> …   route.end
    while   pages.begin    pages.while   pages.max   pages.do.<task> …   pages.end
    until   poll.begin     poll.do.<task> …   poll.until   poll.max   poll.end

`begin` and `max` are there only with a bound. Each nesting adds two parts to a label, so a label with an odd number of parts
is the author's, and its last part is the name its result is read by.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.dialects.playbook.drafts import Choose, TaskDraft, Until, While
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, listed
from penstock.kernel.net import Do, Rule, Then, Writes
from penstock.kernel.values import JsonMap

NOOP = "noop"
FAILED = "{{ outcome.status == 'error' }}"
HANDED_ON = "{{ _prev | default(none) }}"

Names = ChainMap[str, str]
"""What a jump may call a task, from the innermost list outwards -> its label."""


@dataclass(slots=True)
class _Flat:
    task: TaskDraft
    names: Names


def expand(
    reading: Reading, tasks: list[TaskDraft], inline: Callable[[TaskDraft], TaskDraft | None]
) -> list[TaskDraft]:
    """The pipeline without sugar. `inline` replaces calls of workbook tasks; a call that names none is left out."""
    flat = _Expander(inline).pipeline(tasks, "", ChainMap())
    labels = {entry.task.label for entry in flat}
    return [_resolved(reading, entry, labels) for entry in flat]


def author_name(label: str) -> str | None:
    """The name the author gave the task of this label; None for a task that sugar made."""
    parts = label.split(".")
    return parts[-1] if len(parts) % 2 else None


def counter_name(label: str) -> str:
    return label.replace(".", "_").replace("-", "_") + "_rounds"


@dataclass(slots=True)
class _Expander:
    inline: Callable[[TaskDraft], TaskDraft | None]

    def pipeline(self, tasks: list[TaskDraft], prefix: str, outer: Names) -> list[_Flat]:
        names = outer.new_child({task.label: _first_label(task, prefix + task.label) for task in tasks})
        flat: list[_Flat] = []
        for task in tasks:
            label = prefix + task.label
            match task.sugar:
                case None:
                    plain = self.inline(task) if task.calls is not None else task
                    if plain is not None:
                        flat.append(_Flat(replace(plain, label=label), names))
                case Choose() as choose:
                    flat += self._choose(choose, task, label, names)
                case While() as rounds:
                    flat += self._while(rounds, task, label, names)
                case Until() as rounds:
                    flat += self._until(rounds, task, label, names)
        return flat

    def _choose(self, choose: Choose, task: TaskDraft, label: str, names: Names) -> list[_Flat]:
        end = f"{label}.end"
        rules: list[Rule] = []
        bodies: list[_Flat] = []
        for number, branch in enumerate(choose.branches, 1):
            body = self.pipeline(branch.tasks, f"{label}.{number}.", names)
            rules.append(Rule(branch.when, _jump(body[0].task.label if body else end)))
            bodies += _leading_to(body, end)
        if rules[-1].when is not None:
            rules.append(Rule(None, _jump(end)))
        head = _noop(f"{label}.choose", task.position, rules)
        head.sites = task.sites
        return [_Flat(head, names), *bodies, _Flat(_noop(end, task.position), names)]

    def _while(self, rounds: While, task: TaskDraft, label: str, names: Names) -> list[_Flat]:
        check, end = f"{label}.while", f"{label}.end"
        body = self.pipeline(rounds.body, f"{label}.do.", names)
        first = body[0].task.label if body else check
        flat: list[_Flat] = []
        rules = [Rule(rounds.when, _jump(first if rounds.limit is None else f"{label}.max")), Rule(None, _jump(end))]
        head = _noop(check, task.position, rules)
        head.sites = task.sites
        if rounds.limit is not None:
            flat.append(_Flat(self._begin(label, task.position), names))
        flat.append(_Flat(head, names))
        if rounds.limit is not None:
            flat.append(_Flat(self._bound(label, task.position, rounds.limit, first), names))
        return [*flat, *_leading_to(body, check), _Flat(_noop(end, task.position), names)]

    def _until(self, rounds: Until, task: TaskDraft, label: str, names: Names) -> list[_Flat]:
        check, end = f"{label}.until", f"{label}.end"
        body = self.pipeline(rounds.body, f"{label}.do.", names)
        first = body[0].task.label if body else check
        flat: list[_Flat] = []
        again = _jump(first if rounds.limit is None else f"{label}.max")
        head = _noop(check, task.position, [Rule(rounds.when, _jump(end)), Rule(None, again)])
        head.sites = task.sites
        if rounds.limit is not None:
            flat.append(_Flat(self._begin(label, task.position, started=1), names))
        flat += [*body, _Flat(head, names)]
        if rounds.limit is not None:
            flat.append(_Flat(self._bound(label, task.position, rounds.limit, first), names))
        return [*flat, _Flat(_noop(end, task.position), names)]

    def _begin(self, label: str, position: Position, started: int = 0) -> TaskDraft:
        """Set the counter back, since an outer loop may come here again."""
        counter = counter_name(label)
        return _noop(f"{label}.begin", position, [Rule(None, Then(writes=Writes(iter={counter: started})))])

    def _bound(self, label: str, position: Position, limit: int, first: str) -> TaskDraft:
        counter = counter_name(label)
        counted = Writes(iter={counter: f"{{{{ iter.{counter} + 1 }}}}"})
        over = Rule(f"{{{{ iter.{counter} >= {limit} }}}}", Then(do=Do.FAIL, message=_too_often(label, limit)))
        return _noop(f"{label}.max", position, [over, Rule(None, replace(_jump(first), writes=counted))])


def _too_often(label: str, limit: int) -> str:
    return f"`{label}` went round {limit} times, the most that its `max` allows, and its condition still asks for more"


def _first_label(task: TaskDraft, label: str) -> str:
    """Where a jump to this entry lands."""
    match task.sugar:
        case None:
            return label
        case Choose():
            return f"{label}.choose"
        case While(limit=limit):
            return f"{label}.while" if limit is None else f"{label}.begin"
        case Until(limit=None, body=[first, *_]):
            return _first_label(first, f"{label}.do.{first.label}")
        case Until():
            return f"{label}.begin"


def _jump(to: str) -> Then:
    return Then(do=Do.JUMP, to=to)


def _noop(label: str, position: Position, rules: list[Rule] | None = None) -> TaskDraft:
    """A task that hands on the result before it, so that neither `_prev` nor the step's result ends at a choice or a loop."""
    handed_on: JsonMap = {"value": HANDED_ON}
    return TaskDraft(
        label,
        position,
        NOOP,
        position,
        values=handed_on,
        rules=None if rules is None else tuple(rules),
        is_generated=True,
    )


def _leading_to(body: list[_Flat], label: str) -> list[_Flat]:
    """The same tasks, where going on after the last one means going to `label`: a branch never runs into the next."""
    if not body:
        return []
    last = body[-1]
    rules = last.task.rules
    if rules is None:
        rules = (Rule(FAILED, Then(do=Do.FAIL)), Rule(None, _jump(label)))
    else:
        rules = tuple(_redirected(rule, label) for rule in rules)
        if not any(rule.when is None for rule in rules):
            rules = (*rules, Rule(None, _jump(label)))
    return [*body[:-1], _Flat(replace(last.task, rules=rules), last.names)]


def _redirected(rule: Rule, label: str) -> Rule:
    return replace(rule, then=replace(rule.then, do=Do.JUMP, to=label)) if rule.then.do is Do.CONTINUE else rule


def _resolved(reading: Reading, entry: _Flat, labels: set[str]) -> TaskDraft:
    """The task with every `to` a label of the pipeline. Labels that sugar made may be named in full."""
    task = entry.task
    if task.rules is None:
        return task
    rules: list[Rule] = []
    for number, rule in enumerate(task.rules):
        to = rule.then.to
        if to is None or (to in labels and number not in task.jumps):
            rules.append(rule)
            continue
        found = entry.names.get(to) or (to if to in labels else None)
        if found is None:
            _unknown_label(reading, to, task.jumps.get(number, task.position), entry.names)
        rules.append(replace(rule, then=replace(rule.then, to=found or to)))
    return replace(task, rules=tuple(rules))


def _unknown_label(reading: Reading, to: str, position: Position, names: Names) -> None:
    reading.findings.error(
        "P0414",
        f"this pipeline has no task `{to}`",
        position,
        label=did_you_mean(to, names),
        hint=f"it has {listed(names)}",
    )
