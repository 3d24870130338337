"""What the sources do only for a reason, they give the reason for, on the line or above it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "penstock").rglob("*.py"))
BROAD = ("Exception", "BaseException", "BaseExceptionGroup")


def is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_explained(lines: list[str], first: int, last: int) -> bool:
    above = lines[first - 2].strip()
    return above.startswith("#") or any("  # " in line for line in lines[first - 1 : last])


def imports_without(tree: ast.Module, lines: list[str]) -> Iterator[int]:
    """The first of imports that follow one another in a function explains all of them."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for block in blocks(function):
            for before, node in zip([None, *block], block, strict=False):
                follows = before is not None and is_import(before)
                if is_import(node) and not follows and not is_explained(lines, node.lineno, node.end_lineno or 0):
                    yield node.lineno


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for one in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(one, name, None)
            if isinstance(found, list):
                yield found


def broad_without(tree: ast.Module, lines: list[str]) -> Iterator[int]:
    """One that raises what it caught needs no reason: it only cleans up."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        is_broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id in BROAD)
        raises = any(isinstance(one, ast.Raise) and one.exc is None for one in node.body)
        if is_broad and not raises and not is_explained(lines, node.lineno, node.lineno):
            yield node.lineno


Check: TypeAlias = Callable[[ast.Module, list[str]], Iterator[int]]


def found(check: Check) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in lines_of(check, path.read_text("utf-8"))]


def lines_of(check: Check, text: str) -> list[int]:
    return sorted(set(check(ast.parse(text), text.splitlines())))


def test_an_import_inside_a_function_says_why() -> None:
    assert found(imports_without) == []


def test_an_except_that_takes_every_error_says_why() -> None:
    assert found(broad_without) == []


def test_the_checks_find_what_has_no_reason() -> None:
    text = """
def f():
    import a
    import b
    import c  # Takes a second to load.
    import d
    x = 1
    import e
    try:
        g()
    except Exception:
        pass
    try:
        g()
    except BaseException:
        close()
        raise
"""
    assert lines_of(imports_without, text) == [3, 8]
    assert lines_of(broad_without, text) == [11]
