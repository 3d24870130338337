"""Templates and conditions over a scope: the interface of the expression layer at run time.

A text that is exactly one `{{ … }}` gives the value itself, with its type; anything else gives text. Texts are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from penstock.expr import nodes
from penstock.expr.budget import Frame
from penstock.expr.errors import ExpressionError, UndefinedValue
from penstock.expr.lexer import is_template
from penstock.expr.nodes import Expr, children, path_of
from penstock.expr.parse import parse, parse_condition
from penstock.expr.program import Program, condition_program, template_program
from penstock.expr.rules import read_template
from penstock.expr.scope import Names, Scope
from penstock.expr.values import MISSING, item
from penstock.kernel.net import Writes
from penstock.kernel.values import Json, JsonMap

__all__ = [
    "MISSING",
    "ExpressionError",
    "Names",
    "Scope",
    "is_template",
    "render",
    "render_lenient",
    "render_within",
    "render_writes",
    "roots",
    "truth",
]

_KEPT: Final = 4096
_SCALARS: Final = frozenset({int, float, bool, type(None)})


def render(template: Json, scope: Scope) -> object:
    """The template with its expressions filled in. What is undefined is an ExpressionError that names the variable."""
    if type(template) is str:
        if "{" in template and is_template(template):
            return _strict(template)(scope)
        return template
    return _tree(template, scope, _strict)


def render_lenient(template: Json, scope: Scope) -> object:
    """The same, except that what is undefined becomes null, and nothing inside a text."""
    if type(template) is str:
        if "{" in template and is_template(template):
            return _lenient(template)(scope)
        return template
    return _tree(template, scope, _lenient)


def render_within(template: str, frame: Frame) -> object:
    """The same as `render`, paid for with what this frame still has."""
    return _strict(template)(frame, frame)


def render_writes(
    templates: Mapping[str, Json], scope: Scope, undefined: Callable[[UndefinedValue], None]
) -> dict[str, Any]:
    """Values to write, by key. An undefined one is reported to `undefined` and written as null (D67)."""

    def program_of(text: str) -> Program:
        strict = _strict(text)

        def run(scope: Scope, frame: Frame | None = None) -> Any:
            try:
                return strict(scope, frame)
            except UndefinedValue as error:
                missing.append(error)
                return _lenient(text)(scope, frame)

        return run

    made: dict[str, Any] = {}
    for key, template in templates.items():
        missing: list[UndefinedValue] = []
        made[key] = _tree(template, scope, program_of)
        for error in missing:
            error.path = (key,)
            undefined(error)
    return made


def truth(condition: str, scope: Scope) -> bool:
    """Whether a condition holds, written bare or as one `{{ … }}`. What is undefined is false."""
    return bool(_condition(condition)(scope))


def roots(template: Json) -> frozenset[str]:
    """The names a template asks its scope for."""
    if isinstance(template, str):
        return _roots(template) if is_template(template) else frozenset()
    if isinstance(template, Mapping):
        return frozenset().union(*map(roots, template.values()))
    if isinstance(template, (list, tuple)):
        return frozenset().union(*map(roots, template))
    return frozenset()


@lru_cache(_KEPT)
def _strict(text: str) -> Program:
    return template_program(text, strict=True)


@lru_cache(_KEPT)
def _lenient(text: str) -> Program:
    return template_program(text, strict=False)


@lru_cache(_KEPT)
def _condition(text: str) -> Program:
    return condition_program(text)


@lru_cache(_KEPT)
def _roots(text: str) -> frozenset[str]:
    return frozenset(use.path[0] for use in read_template(parse(text))[1])


def _tree(template: Any, scope: Scope, program: Callable[[str], Program]) -> Any:
    """Walks mappings and lists; keys are not templates. An error learns on its way out where in the tree its text stands."""
    if isinstance(template, str):
        return program(template)(scope) if "{" in template and is_template(template) else template
    if type(template) is dict or isinstance(template, Mapping):
        return {key: _branch(key, inner, scope, program) for key, inner in template.items()}
    if isinstance(template, (list, tuple)):
        return [_branch(index, inner, scope, program) for index, inner in enumerate(template)]
    return template


def _branch(key: str | int, template: Any, scope: Scope, program: Callable[[str], Program]) -> Any:
    kind = type(template)
    if kind in _SCALARS or (kind is str and "{" not in template):
        return template
    try:
        return _tree(template, scope, program)
    except ExpressionError as error:
        error.path = (key, *error.path)
        raise


# ---- Presence: in the `if` links of a job one missing name makes the whole condition false (D40).


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


# ---- Rendered assignments, from which patches are made


Say = Callable[[str], None]


class UndefinedWrites:
    """What becomes of undefined values that are written: null and a line of the run's own, each once; or, where the document is
    strict, an error (D67)."""

    def __init__(self, say: Say, *, strict: bool) -> None:
        self._say = say
        self._strict = strict
        self._reported: set[tuple[str, str]] = set()

    def __call__(self, error: UndefinedValue, target: str, writer: str) -> None:
        if self._strict:
            raise error
        line = f"warning: `{target}`, written by {writer}, is null: {error}"
        if error.text.strip() != error.text or not error.text.startswith("{{") or error.text.count("{{") > 1:
            line = f"warning: `{target}`, written by {writer}, lacks a value: {error}"
        if (target, line) not in self._reported:
            self._reported.add((target, line))
            self._say(f"{line}; write `| default(…)` if it may be missing")


def rendered(writes: Writes, scope: Scope, undefined: UndefinedWrites, writer: str) -> JsonMap:
    if not writes:
        return {}
    made: JsonMap = {}
    for kind, prefix, templates in (
        ("iter", "iter", writes.iter),
        ("ctx", "ctx", writes.ctx),
        ("append", "ctx", writes.append),
        ("shared", "shared", writes.shared),
    ):
        if not templates:
            continue

        def note(error: UndefinedValue, prefix: str = prefix) -> None:
            undefined(error, f"{prefix}.{error.path[0]}", writer)

        values = cast(JsonMap, render_writes(templates, scope, note))
        is_added = kind in ("append", "shared")
        made[kind] = {key: [value] for key, value in values.items()} if is_added else values
    return made
