"""Templates and conditions over a scope: the face of the expression layer at run time.

A text that is exactly one `{{ … }}` gives the value itself, with its type; anything else gives text. Texts are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from penstock.expr.budget import Frame
from penstock.expr.errors import ExpressionError, UndefinedValue
from penstock.expr.lexer import is_template
from penstock.expr.parse import parse
from penstock.expr.program import Program, condition_program, template_program
from penstock.expr.rules import read_template
from penstock.expr.scope import MISSING, Names, Scope
from penstock.kernel.values import Json

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
    """Values that are written somewhere, by key. Each that is undefined is told to `undefined`, and written as null (D67)."""

    def told(text: str) -> Program:
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
        made[key] = _tree(template, scope, told)
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
