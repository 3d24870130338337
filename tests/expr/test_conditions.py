"""When a condition holds."""

from __future__ import annotations

import pytest

from penstock.expr.template import ExpressionError, Names, truth
from tests.cases import cases
from tests.expr.support import SCOPE, Opaque


@cases(
    "condition",
    [
        "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}",
        "outcome.status == 'error'",
        " {{ iter.page }} ",
        "{{ true }}",
        "true",
        "{{ 'false' }}",
        "{{ 'no' }}",
        "{{ ctx.store_ok != true }}",
        "{{ not nope }}",
        "{{ not (nope.count > 5) }}",
        "{{ nope is undefined }}",
        "{{ nope is not defined }}",
        "{{ 'x' not in nope.list }}",
        "{{ nope.a == nope.b }}",
        "1 < 2 <= 2 < 3 != 4",
        "{{ workload.text is startingwith 'Hello' }}",
        "'World' in workload.text",
        "{{ 2 is divisibleby 2 and 3 is odd }}",
        "{{ workload.items | length > 1 }}",
        "{{ secret }}",
        "_prev.rows | length == 3",
        "workload.n is in [7, 8]",
    ],
)
def test_these_hold(condition):
    assert truth(condition, Names({**SCOPE, "secret": Opaque()})) is True


@cases(
    "condition",
    [
        "{{ nope }}",
        "nope.deep.deeper",
        "no",
        "{{ nope > 5 }}",
        "{{ nope < 5 }}",
        "{{ nope.a >= 'x' }}",
        "{{ nope + 1 > 0 }}",
        "{{ nope | length == 0 }}",
        "{{ nope == none }}",
        "{{ nope in [1, none] }}",
        "{{ 'x' in nope.list }}",
        "{{ nope is none }}",
        "{{ nope is number }}",
        "{{ workload.nothing > 1 }}",
        "{{ workload.nothing in 'text' }}",
        "{{ 0 }}",
        "{{ '' }}",
        "{{ [] }}",
        "{{ {} }}",
        "{{ none }}",
        "{{ workload.empty }}",
        "{{ '200' == 200 }}",
        "1 < 3 < 2",
    ],
)
def test_these_do_not(condition):
    assert truth(condition, SCOPE) is False


@pytest.mark.parametrize("condition", ["{{ iter.page }} == 3", "{{ a }} and {{ b }}", "yes: {{ a }}", "{# note #}"])
def test_a_condition_that_mixes_expressions_with_text_is_refused_because_it_would_always_hold(condition):
    with pytest.raises(ExpressionError) as caught:
        truth(condition, SCOPE)
    assert caught.value.code == "E0109"


@cases("condition", ["", "   ", "{{ }}", "a ==", "a = b", "a b"])
def test_a_condition_that_cannot_be_read_is_an_error(condition):
    with pytest.raises(ExpressionError) as caught:
        truth(condition, SCOPE)
    assert caught.value.code == "E0101"


def test_comparing_different_kinds_is_an_error_that_says_how_to_convert():
    with pytest.raises(ExpressionError, match=r"text cannot be compared with a number; convert one with `\| int`"):
        truth("{{ '5' > 3 }}", SCOPE)
