"""Applies a task's policy to its outcome: the first rule that matches, rendered into a verdict and the writes it makes."""

from __future__ import annotations

from typing import Any

from penstock.expr.template import ExpressionError, UndefinedWrites, render, rendered, truth
from penstock.expr.values import shown
from penstock.kernel.net import Do, Rule, Task
from penstock.kernel.pipeline import DEFAULT_ATTEMPTS, Verdict
from penstock.kernel.values import JsonMap
from penstock.worker.scopes import TaskScope


class PolicyError(Exception):
    """A rule could not be evaluated. The pipeline fails with this, whatever the outcome was."""

    def __init__(self, where: str, error: ExpressionError | str) -> None:
        super().__init__(f"{where}: {error}")
        self.expression = error.text if isinstance(error, ExpressionError) else None

    def as_json(self) -> JsonMap:
        return {"kind": "expression", "message": str(self), "retryable": False, "expression": self.expression}


def judge(
    task: Task, positions: dict[str, int], scope: TaskScope, undefined: UndefinedWrites
) -> tuple[Verdict | None, JsonMap]:
    """`scope` contains the outcome. The verdict is None if the task has no policy."""
    if task.rules is None:
        return None, {}
    for index, rule in enumerate(task.rules):
        where = f"policy rule {index + 1} of task `{task.label}`"
        try:
            if rule.when is None or truth(rule.when, scope):
                verdict = _verdict(index, rule, positions, scope, where)
                return verdict, rendered(rule.then.writes, scope, undefined, where)
        except ExpressionError as error:
            raise PolicyError(where, error) from error
    return Verdict(), {}


def _verdict(index: int, rule: Rule, positions: dict[str, int], scope: TaskScope, where: str) -> Verdict:
    then = rule.then
    if then.do is Do.CONTINUE or then.do is Do.BREAK or then.do is Do.FAIL:
        return Verdict(index, then.do, message=then.message)
    if then.do is Do.JUMP:
        return Verdict(index, Do.JUMP, to=positions[then.to or ""])
    attempts = DEFAULT_ATTEMPTS if then.attempts is None else int(_number(then.attempts, scope, where, "attempts"))
    delay = _number(then.delay, scope, where, "delay")
    return Verdict(index, then.do, attempts, then.backoff, delay, then.max_delay, then.jitter)


def _number(template: Any, scope: TaskScope, where: str, name: str) -> float:
    value = render(template, scope) if isinstance(template, str) else template
    try:
        number = float(str(value))
    except ValueError:
        raise PolicyError(where, f"`{name}` is {'null' if value is None else shown(value)}, not a number") from None
    if not 0 <= number < float("inf"):
        raise PolicyError(where, f"`{name}` is {number}; it must not be negative")
    return number
