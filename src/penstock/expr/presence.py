"""Is everything there that a condition reads? In the `if` links of a job one missing name makes the whole of it false (D40)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from penstock.expr import nodes
from penstock.expr.nodes import Expr, children, path_of
from penstock.expr.parse import parse_condition
from penstock.expr.scope import MISSING, Scope
from penstock.expr.template import truth
from penstock.expr.values import item

Path: TypeAlias = "tuple[str, tuple[str | int, ...]]"

_ASKS = frozenset({"defined", "undefined", "default", "d"})


def holds(condition: str, scope: Scope) -> bool:
    """Whether a condition is true and all that it reads is there, but for what it asks about with `is defined` or `default`."""
    return all(_is_there(path, scope) for path in _needed(condition)) and truth(condition, scope)


@lru_cache(1024)
def _needed(condition: str) -> tuple[Path, ...]:
    asked: set[Path] = set()
    read: list[Path] = []
    for path, is_asked in _paths(parse_condition(condition)):
        if is_asked:
            asked.add(path)
        else:
            read.append(path)
    return tuple(path for path in read if path not in asked)


def _paths(node: Expr) -> Iterator[tuple[Path, bool]]:
    path = path_of(node)
    if path is not None:
        yield path, False
        return
    if isinstance(node, nodes.Word) and node.name in _ASKS and node.of is not None:
        asked = path_of(node.of)
        if asked is not None:
            yield asked, True
        else:
            yield from _paths(node.of)
        for argument in node.arguments.all():
            yield from _paths(argument)
        return
    for child in children(node):
        yield from _paths(child)


def _is_there(path: Path, scope: Scope) -> bool:
    root, keys = path
    value = scope.lookup(root)
    for key in keys:
        if value is MISSING:
            return False
        value = item(value, key)
    return value is not MISSING
