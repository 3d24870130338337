"""A bounded, seeded part of the fuzzer: what an expression pays for bounds what the interpreter does for it."""

from __future__ import annotations

import pytest

from penstock.expr.scope import Names
from tests.depth import times
from tests.expr.fuzz import Answer, Grammar, awkward_values, difference, evaluated, fingerprint, rendered
from tests.expr.support import calls_of

_BUDGET = 5_000
# Reading and compiling a text costs calls as well, and so does what a single step stands for.
_CALLS_AT_LEAST = 30_000
_CALLS_PER_STEP = 12


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_end_as_expressions_and_do_no_more_than_they_paid_for(seed):
    scope = Names(awkward_values())
    before = {name: fingerprint(value) for name, value in scope.items()}
    grammar = Grammar(seed, sorted(scope))
    for _ in range(times(150)):
        text = grammar.expression()
        answers: list[Answer] = []
        calls = calls_of(lambda text=text, answers=answers: answers.append(evaluated(text, scope, _BUDGET)))
        (first,) = answers
        assert not first.failed, text
        assert calls <= _CALLS_AT_LEAST + _CALLS_PER_STEP * min(first.steps, _BUDGET), text
        assert not difference(first, evaluated(text, scope, _BUDGET)), text
    assert {name: fingerprint(value) for name, value in scope.items()} == before


@pytest.mark.parametrize("seed", range(2))
def test_random_templates_need_no_last_resort(seed):
    scope = Names(awkward_values())
    grammar = Grammar(seed, sorted(scope))
    for _ in range(times(10)):
        text = grammar.template()
        assert not rendered(text, scope).failed, text
