"""Statements that hold for any value and any text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.expr.budget import Frame
from penstock.expr.check import inspect
from penstock.expr.scope import Scope
from penstock.expr.template import ExpressionError, Names, is_template, render, render_lenient, roots, truth
from penstock.expr.values import MISSING, to_text
from penstock.expr.words.table import TABLES
from tests.expr.support import steady

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda key: not key.endswith("__"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
STEPS = st.lists(KEYS | st.integers(-3, 3), max_size=4)

WORDS = [name for words in TABLES.values() for name in words if name.isidentifier()]
SIGNS = "{{ }} {% %} {# #} ( ) [ ] { } , : . | ~ + - * / // % ** == != < <= > >= ="
KEYWORDS = "and or not in is if else elif endif for endfor set raw endraw macro true none loop __class__"
TOKENS = st.sampled_from(
    [*SIGNS.split(), *KEYWORDS.split(), *WORDS, "1", "2.5", "'a'", '"b"', "x", "y", " ", "\n", "é", "\\", "'"]
)
SCOPE = Names({"x": {"a": [1, "b", None], "y": 2.5}, "y": "text"})


def python_lookup(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        fits = isinstance(value, dict) if isinstance(step, str) else isinstance(value, (list, str))
        try:
            value = value[step] if fits else MISSING
        except (KeyError, IndexError):
            value = MISSING
    return value


def ended(evaluate: Callable[[str, Scope], object], text: str, scope: Scope) -> tuple[object, ExpressionError | None]:
    """The value and no error, or no value and the error."""
    try:
        return evaluate(text, scope), None
    except ExpressionError as error:
        return MISSING, error


def written_out(value: Any) -> str:
    return to_text(Frame(Names()), value)


def written(steps: list[str | int]) -> str:
    return "x" + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in steps)


@st.composite
def values_and_paths(draw: Any) -> tuple[Any, list[str | int]]:
    """A value and a path that is likely to lead somewhere in it."""
    value = current = draw(VALUES)
    steps: list[str | int] = []
    while isinstance(current, (dict, list)) and current and draw(st.booleans()):
        step = (
            draw(st.sampled_from(sorted(current)))
            if isinstance(current, dict)
            else draw(st.integers(0, len(current) - 1))
        )
        steps.append(step)
        current = current[step]
    return value, steps + draw(STEPS if draw(st.booleans()) else st.just([]))


@steady
@given(values_and_paths())
def test_a_path_leads_where_python_would_go(case):
    value, steps = case
    template, scope = "{{ " + written(steps) + " }}", Names({"x": value})
    expected = python_lookup(value, steps)
    result, error = ended(render, template, scope)
    assert result is expected or result == expected
    assert (error and error.name) == (".".join(["x", *map(str, steps)]) if expected is MISSING else None)
    assert render_lenient(template, scope) == (None if expected is MISSING else expected)
    assert truth(template, scope) is bool(expected)


@steady
@given(values_and_paths())
def test_a_path_means_the_same_alone_and_inside_a_larger_expression(case):
    value, steps = case
    scope = Names({"x": value})
    path = written(steps)
    alone = render_lenient("{{ " + path + " }}", scope)
    assert render_lenient("{{ " + path + " if true else 0 }}", scope) == alone
    assert render_lenient("{% set q = x %}{{ q" + path[1:] + " | tojson }}", scope) == (
        "" if python_lookup(value, steps) is MISSING else json.dumps(alone, ensure_ascii=False)
    )


@steady
@given(VALUES)
def test_json_goes_out_and_comes_back(value):
    assert render("{{ x | tojson | fromjson }}", Names({"x": value})) == value


@steady
@given(VALUES, VALUES)
def test_text_is_the_parts_joined(first, second):
    assert (
        render("a{{ x }}b{{ y }}", Names({"x": first, "y": second})) == f"a{written_out(first)}b{written_out(second)}"
    )
    assert written_out(first) == (first if isinstance(first, str) else str(first))


@steady
@given(VALUES, VALUES)
def test_equality_is_that_of_python(first, second):
    scope = Names({"x": first, "y": second})
    assert truth("x == y", scope) is (first == second)
    assert truth("x != y", scope) is (first != second)


@steady
@given(st.lists(TOKENS, max_size=25).map("".join) | st.lists(TOKENS, max_size=25).map(" ".join) | st.text(max_size=40))
@example("{{ x.a[")
@example("{% for")
@example("{{ '\\")
def test_any_text_gives_a_value_or_an_expression_error(text):
    for evaluate in (render, render_lenient, truth):
        _, error = ended(evaluate, text, SCOPE)
        if error is not None:
            assert error.text == text
            assert 0 <= error.start <= error.end <= max(len(text), 1)
            assert str(error).count("\n") == 0
            assert error.caret().count("\n") == 1


@steady
@given(st.lists(TOKENS, max_size=15).map(" ".join))
def test_any_expression_gives_a_value_or_an_expression_error(text):
    template = "{{ " + text + " }}"
    for evaluate in (render, render_lenient, truth):
        _, error = ended(evaluate, template, SCOPE)
        assert error is None or error.text == template


@steady
@given(st.lists(TOKENS, max_size=25).map(" ".join))
def test_what_the_check_accepts_compiles_and_what_it_refuses_does_not(text):
    inspection = inspect(text)
    _, error = ended(render, text, SCOPE)
    assert bool(inspection.findings) is bool(error and error.code)
    if not inspection.findings:
        assert roots(text) == {use.path[0] for use in inspection.uses}


@steady
@given(st.text(max_size=60).filter(lambda text: not is_template(text)))
def test_a_text_without_braces_is_never_changed(text):
    assert render(text, SCOPE) is text


@steady
@given(
    st.integers(-(10**30), 10**30),
    st.integers(-(10**30), 10**30),
    st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "=="]),
)
def test_arithmetic_on_whole_numbers_is_exact(left, right, sign):
    scope = Names({"a": left, "b": right})
    if right == 0 and sign in ("//", "%"):
        return
    assert render(f"{{{{ a {sign} b }}}}", scope) == eval(f"a {sign} b", {"a": left, "b": right})


@steady
@given(st.lists(st.integers(), max_size=8))
def test_words_on_lists_agree_with_python(numbers):
    scope = Names({"x": numbers})
    assert render("{{ x | sort }}", scope) == sorted(numbers)
    assert render("{{ x | unique }}", scope) == list(dict.fromkeys(numbers))
    assert render("{{ x | sum }}", scope) == sum(numbers)
    assert render("{{ x | batch(3) | flatten }}", scope) == numbers
    assert render("{{ x | reverse | reverse }}", scope) == numbers
    assert render("{{ x | map('string') | join(',') }}", scope) == ",".join(map(str, numbers))
