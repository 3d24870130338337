"""Conditions before the run: for which ends of a step a condition may hold, and for which it must.

Three answers: True, False, or None for "it depends". Only constants and `event.name` are looked at; all else depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from penstock.expr import nodes
from penstock.expr.errors import ExpressionError
from penstock.expr.parse import parse_condition
from penstock.expr.rules import read_expression
from penstock.expr.scope import Names
from penstock.expr.template import truth
from penstock.kernel.net import Arc
from penstock.kernel.values import Condition

DONE = "step.done"
FAILED = "step.failed"
LOOP_DONE = "loop.done"
BOUNDARIES = (DONE, FAILED, LOOP_DONE)

_EVENT_NAME = ("event", ("name",))
OUTCOME_ROOTS = ("output", "outcome")
# A status, and what it can be when the step did not fail.
_STATUS: dict[tuple[str, str], tuple[str, ...]] = {
    ("output", "status"): ("ok",), ("outcome", "status"): ("ok",), ("fanin", "status"): ("complete", "partial"),
}  # fmt: skip
Known: TypeAlias = "dict[tuple[str, tuple[str | int, ...]], str]"


def constant(condition: Condition | None) -> bool | None:
    """The verdict of a condition that does not depend on anything. No condition at all holds."""
    return True if condition is None else verdict(condition, None)


@lru_cache(maxsize=4096)
def verdict(condition: Condition, event: str | None) -> bool | None:
    try:
        tree = parse_condition(condition)
    except ExpressionError:
        return None
    return _truth(tree, {} if event is None else {_EVENT_NAME: event})


def fires(edge: Arc, event: str) -> bool | None:
    """Does the arc fire when the step ends like this? It leaves a failure alone unless its guard reads `event` (D49, D57)."""
    if event == FAILED and not edge.reads_event:
        return False
    return True if edge.guard is None else verdict(edge.guard, event)


def reads_event(condition: Condition) -> bool:
    return any(path[0] == "event" for path in paths_read(condition))


def paths_read(condition: Condition) -> list[tuple[str, ...]]:
    """Every variable that a condition reads; none when it cannot be read itself."""
    try:
        return [use.path for use in read_expression(parse_condition(condition), guarded=True)[1]]
    except ExpressionError:
        return []


def failure_asked_for(condition: Condition) -> str | None:
    """The variable by which a condition looks for a failure: an outcome's error, or a status that is not the good one."""
    for path in paths_read(condition):
        if path[0] in OUTCOME_ROOTS and path[1:2] == ("error",):
            return ".".join(path[:2])
    for (root, key), good in _STATUS.items():
        if (root, key) in paths_read(condition):
            tree = parse_condition(condition)
            if all(_truth(tree, {(root, (key,)): status}) is False for status in good):
                return f"{root}.{key}"
    return None


_POLICY_ROOTS = (*OUTCOME_ROOTS, "_attempt")


def catches_errors(conditions: Sequence[Condition | None]) -> bool:
    """Does one of a policy's rules match whatever error its task ends in? They are tested with errors that no author names.

    Where a rule reads anything but the outcome it cannot be known, and is taken for granted."""
    read = {path[0] for condition in conditions if condition is not None for path in paths_read(condition)}
    if not read.issubset(_POLICY_ROOTS):
        return True
    return all(
        any(condition is None or _holds_for(condition, is_retryable, attempt) for condition in conditions)
        for is_retryable in (True, False)
        for attempt in (1, _LATE)
    )


_LATE = 1_000_000
"""An attempt beyond any realistic number of attempts."""


def _holds_for(condition: Condition, is_retryable: bool, attempt: int) -> bool:
    outcome = {
        "status": "error",
        "error": {"kind": "of some kind", "message": "something is wrong", "retryable": is_retryable},
        "http": {"status": 599 if is_retryable else 499, "headers": {}},
        "pg": {"code": "XX000", "sqlstate": "XX000"},
        "py": {"exception_type": "Exception"},
        "meta": {"attempt": attempt},
    }
    try:
        return truth(condition, Names({"outcome": outcome, "output": outcome, "_attempt": attempt}))
    except ExpressionError:
        return True


def bare(condition: Condition) -> str:
    """The expression of a condition, without its braces."""
    tree = parse_condition(condition)
    return " ".join(condition[tree.start : tree.end].split())


def event_names(condition: Condition) -> Iterator[tuple[str, int, int]]:
    """The texts that `event.name` is compared with, and their offsets in the condition."""
    return texts_compared(condition, _EVENT_NAME)


def texts_compared(condition: Condition, *paths: tuple[str, tuple[str | int, ...]]) -> Iterator[tuple[str, int, int]]:
    """The texts that one of these is compared with, and their offsets in the condition."""
    try:
        waiting: list[nodes.Expr] = [parse_condition(condition)]
    except ExpressionError:
        return
    while waiting:
        node = waiting.pop()
        waiting += nodes.children(node)
        if isinstance(node, nodes.Compare):
            operands = (node.first, *(operand for _, operand in node.rest))
            if any(nodes.path_of(operand) in paths for operand in operands):
                for operand in operands:
                    yield from _texts(operand)


def _texts(node: nodes.Expr) -> Iterator[tuple[str, int, int]]:
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        yield node.value, node.start, node.end
    elif isinstance(node, nodes.ListOf):
        for item in node.items:
            yield from _texts(item)


def _truth(node: nodes.Expr, known: Known) -> bool | None:
    match node:
        case nodes.Const():
            return bool(node.value)
        case nodes.Unary(operator="not"):
            inner = _truth(node.operand, known)
            return None if inner is None else not inner
        case nodes.Chain(operator="and"):
            return _all([_truth(operand, known) for operand in node.operands])
        case nodes.Chain(operator="or"):
            inverse = _all([_negated(_truth(operand, known)) for operand in node.operands])
            return _negated(inverse)
        case nodes.Compare(rest=((operator, right),)):
            return _compared(_known(node.first, known), operator, _known(right, known))
    return None


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


class _Unknown:
    pass


_UNKNOWN = _Unknown()


def _known(node: nodes.Expr, known: Known) -> object:
    if isinstance(node, nodes.Const):
        return node.value
    path = nodes.path_of(node)
    if path is not None and path in known:
        return known[path]
    if isinstance(node, nodes.ListOf):
        items = [_known(item, known) for item in node.items]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    return _UNKNOWN


def _compared(left: object, operator: str, right: object) -> bool | None:
    if left is _UNKNOWN or right is _UNKNOWN:
        return None
    match operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "in" | "not in" if isinstance(right, list):
            return (left in right) is (operator == "in")
    return None
