"""Finds out which variable made a value undefined. Asked only after the fact, so it may evaluate parts again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.expr import nodes
from penstock.expr.budget import MAX_STEPS, Frame
from penstock.expr.errors import UndefinedValue
from penstock.expr.nodes import Expr, children, path_of
from penstock.expr.rules import did_you_mean
from penstock.expr.scope import MISSING
from penstock.expr.values import item

if TYPE_CHECKING:
    from penstock.expr.compile import ExpressionCompiler


def undefined_error(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> UndefinedValue:
    # A few steps more than were left: what is asked again was paid for once.
    frame.steps = min(MAX_STEPS, max(frame.steps, MAX_STEPS // 10))
    culprit = _culprit(compiler, node, frame)
    source = compiler.text[culprit.start : culprit.end]
    shown = source if len(source) <= 80 else source[:77] + "…"
    path = path_of(culprit)
    message = f"`{shown}` is undefined{_more(compiler, culprit, frame) if path else ''}"
    return UndefinedValue(
        message,
        compiler.text,
        culprit.start,
        culprit.end,
        name=".".join([path[0], *map(str, path[1])]) if path else None,
    )


def _culprit(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> Expr:
    if path_of(node) is not None:
        return node
    suspects: tuple[Expr, ...] = children(node)
    match node:
        case nodes.Choice():
            taken = node.then if compiler.compile(node.test)(frame) else node.otherwise
            return node if taken is None else _culprit(compiler, taken, frame)
        case nodes.Chain(operator="or"):
            suspects = node.operands[-1:]
        case nodes.Word(kind="filter", name="default" | "d"):
            suspects = node.arguments.all()
    for suspect in suspects:
        if compiler.compile(suspect)(frame) is MISSING:
            return _culprit(compiler, suspect, frame)
    return node


def _more(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> str:
    """Where the path breaks off, and a name that is there and looks like the missing one."""
    steps: list[nodes.Get] = []
    root = node
    while isinstance(root, nodes.Get):
        steps.insert(0, root)
        root = root.of
    value = compiler.compile(root)(frame)
    if value is MISSING:
        return ""
    for step in steps:
        assert isinstance(step.key, nodes.Const)
        inner = item(value, step.key.value)
        if inner is MISSING:
            parent = compiler.text[step.of.start : step.of.end]
            broken = f": `{parent}` has no `{step.key.value}`" if step is not steps[-1] else ""
            names = [name for name in value if isinstance(name, str)][:1000] if isinstance(value, Mapping) else []
            close = did_you_mean(str(step.key.value), names) if value is not None else ""
            return f"{broken}{'; ' + close if close else ''}"
        value = inner
    return ""
