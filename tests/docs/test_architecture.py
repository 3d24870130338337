"""The architecture page names files and functions: they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.cases import cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(src/penstock/[\w/]+\.py)(?:::([\w.]+))?`", PAGE)))
MODULES = sorted(set(re.findall(r"`(kernel/[\w/]+(?:\.py)?)`", PAGE)))


def defined(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            inner = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            found.update(f"{node.name}.{one.name}" for one in inner)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return found


def test_it_names_the_stops_of_three_walks() -> None:
    assert len(NAMED) > 30


@cases("file, name", NAMED)
def test_a_stop_is_where_the_page_says(file: str, name: str) -> None:
    assert not name or name in defined(ast.parse((ROOT / file).read_text(encoding="utf-8")))


@cases("module", MODULES)
def test_a_module_of_the_kernel_is_there(module: str) -> None:
    assert (ROOT / "src" / "penstock" / module).exists()
