"""What can be known of a condition before it is asked: for which ends of a step it may hold, and for which it must.

Three answers: True, False, or None for "it depends". Only constants and `event.name` are looked at; all else depends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from penstock.expr import nodes
from penstock.expr.errors import ExpressionError
from penstock.expr.parse import parse_condition
from penstock.kernel.net import Edge
from penstock.kernel.values import Condition

DONE = "step.done"
FAILED = "step.failed"
LOOP_DONE = "loop.done"
BOUNDARIES = (DONE, FAILED, LOOP_DONE)

_EVENT_NAME = ("event", ("name",))


def constant(condition: Condition | None) -> bool | None:
    """The verdict of a condition that does not depend on anything. No condition at all holds."""
    return True if condition is None else verdict(condition, None)


@lru_cache(maxsize=4096)
def verdict(condition: Condition, event: str | None) -> bool | None:
    try:
        tree = parse_condition(condition)
    except ExpressionError:
        return None
    return _truth(tree, event)


def fires(edge: Edge, event: str) -> bool | None:
    """Does the arc fire when the step ends like this? Without a guard, on every end but a failure (D49)."""
    return event != FAILED if edge.guard is None else verdict(edge.guard, event)


def event_names(condition: Condition) -> Iterator[tuple[str, int, int]]:
    """The texts that `event.name` is compared with, and their offsets in the condition."""
    try:
        waiting: list[nodes.Expr] = [parse_condition(condition)]
    except ExpressionError:
        return
    while waiting:
        node = waiting.pop()
        waiting += nodes.children(node)
        if isinstance(node, nodes.Compare):
            operands = (node.first, *(operand for _, operand in node.rest))
            if any(nodes.path_of(operand) == _EVENT_NAME for operand in operands):
                for operand in operands:
                    yield from _texts(operand)


def _texts(node: nodes.Expr) -> Iterator[tuple[str, int, int]]:
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        yield node.value, node.start, node.end
    elif isinstance(node, nodes.ListOf):
        for item in node.items:
            yield from _texts(item)


def _truth(node: nodes.Expr, event: str | None) -> bool | None:
    match node:
        case nodes.Const():
            return bool(node.value)
        case nodes.Unary(operator="not"):
            inner = _truth(node.operand, event)
            return None if inner is None else not inner
        case nodes.Chain(operator="and"):
            return _all([_truth(operand, event) for operand in node.operands])
        case nodes.Chain(operator="or"):
            inverse = _all([_negated(_truth(operand, event)) for operand in node.operands])
            return _negated(inverse)
        case nodes.Compare(rest=((operator, right),)):
            return _compared(_known(node.first, event), operator, _known(right, event))
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


def _known(node: nodes.Expr, event: str | None) -> object:
    if isinstance(node, nodes.Const):
        return node.value
    if event is not None and nodes.path_of(node) == _EVENT_NAME:
        return event
    if isinstance(node, nodes.ListOf):
        items = [_known(item, event) for item in node.items]
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
