"""Every operation pays before it runs, in steps and in memory, and fails only as an expression."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.expr.budget import DECISION_STEPS, MAX_MEMORY, MAX_STEPS, SharedBudget, deep_size
from penstock.expr.errors import ExpressionError, Unforeseen
from penstock.expr.scope import Names
from penstock.expr.template import render, truth
from tests.cases import cases
from tests.expr.fuzz import awkward_values, evaluated, rendered
from tests.expr.support import refusal, value

STEPS = "needs more than 500,000 steps"
VALUES = Names(awkward_values())
FEW_STEPS = 20_000
"""What has no end is beyond any budget, and beyond a small one sooner."""


@pytest.mark.clause("JA.1")
@cases(
    "expression",
    [
        "[shared].count(twin)",
        "[shared].index(twin)",
        "[shared, twin, other] | sort",
        "[shared, twin] | min",
        "max(shared, twin)",
        "shared is eq(twin)",
        "shared is ne(twin)",
        "shared is in([twin])",
        "shared in [twin]",
        "twin not in [shared]",
        "shared == twin",
        "shared != twin",
        "shared < twin",
        "shared is ge(twin)",
        "[shared, twin] | unique",
        "[{'k': shared}, {'k': twin}] | groupby('k')",
        "[{'k': shared}, {'k': twin}] | sort(attribute='k')",
        "{'a': shared, 'b': twin} | dictsort(by='value')",
        "[shared] | select('eq', twin)",
        "[shared] | select('in', [twin])",
        "mapped == {'a': [], 'b': 2} or mapped | tojson",
        "shared | string",
        "shared ~ ''",
        "shared | tojson",
        "[shared] * 2",
        "[1] | batch(2, shared)",
        "[{}] | pluck('a', shared)",
        "[{}] | map(attribute='a', default=shared)",
        "[none] | map('default', shared, true)",
        "[shared] | join",
        "'%s' | format(shared)",
        "[['a', shared]] | urlencode",
        "shared | flatten",
    ],
)
def test_shared_structure_is_paid_for_as_often_as_it_is_walked(expression):
    answer = evaluated(expression, VALUES, FEW_STEPS)
    assert STEPS in answer.refusal or "more than 1,000,000 elements" in answer.refusal


@cases(
    "expression",
    [
        "range(10 ** 6) | list",
        "('é' * 5000000) * 2 ~ ('é' * 5000000)",
        "('a,' * 5000000).split(',')",
        "('a ' * 5000000).split()",
        "('\\n' * 5000000) | lines",
        "('[' ~ '[],' * 700000 ~ '1]') | fromjson",
        "('a' * 10000000) | list",
        "[1] | batch(10 ** 6, 0) | batch(1)",
        "range(400000) | map('string') | list | zip(range(400000))",
        "('é' * 9000000) | upper",
        "('☃' * 1000000) | urlencode",
        "(range(300000) | list) | sort",
        "('a' * 1000000) | trim('bcdefgh' * 10000)",
        "[[[['a' * 1000] * 100] * 10] * 10] | tojson(indent=16)",
        "('\\x00' * 3000000) | tojson",
    ],
)
def test_what_an_operation_makes_is_paid_for_before_it_is_made(expression):
    answer = evaluated(expression, VALUES)
    assert answer.refusal
    assert not answer.failed
    # What could not be paid was not done either: only the last payment is beyond the budget.
    assert answer.steps > MAX_STEPS or answer.memory > MAX_MEMORY or "would" in answer.refusal


@cases(
    "expression, expected",
    [
        ("range(4 * 10 ** 7) * -1", []),
        ("[1, 2] * 0", []),
        ("(2 ** 64) * ''", ""),
        ("'' * (2 ** 64)", ""),
        ("[] * (2 ** 64)", []),
        ("'ab' * -(2 ** 64)", ""),
        ("'a b' | split(none, 2 ** 64)", ["a", "b"]),
        ("'a,b' | split(',', 2 ** 64)", ["a", "b"]),
        ("'aa' | replace('a', 'b', 2 ** 64)", "bb"),
        ("'abc'[2 ** 64:]", ""),
        ("'abc' | truncate(2 ** 64)", "abc"),
        ("[1, 2] | batch(2 ** 64)", [[1, 2]]),
        ("[[1], [0, 5], [1, 0]] | sort", [[0, 5], [1], [1, 0]]),
        ("[{'v': [2]}, {'v': [1]}] | max(attribute='v')", {"v": [2]}),
        ("['b', 'A'] | sort", ["A", "b"]),
        ("[3, 1, 2] | sort(reverse=true)", [3, 2, 1]),
        ("[1, 1.0, 2 ** 70, 1180591620717411303424.0] | unique", [1, 2**70]),
        ("[[1, {'a': 2}], [1, {'a': 2}]] | unique", [[1, {"a": 2}]]),
        ("[1, 2] < [1, 3] and [1] < [1, 0] and not [2] < [1, 9]", True),
        ("[[1, 2], [3]].index([3])", 1),
        ("[[1], [1], [2]].count([1])", 2),
        ("'%s-%s' | format('a', 'b')", "a-b"),
        ("'\\x00é' | tojson", '"\\u0000é"'),
    ],
)
def test_what_is_cheap_still_means_the_same(expression, expected):
    assert value(expression) == expected


@cases(
    "expression, message",
    [
        ("10 ** 400 * 1.5", "the number would be too large"),
        ("10 ** 400 + 1.5", "the number would be too large"),
        ("(10 ** 400) is divisibleby(1.5)", "too large to be divided"),
        ("[10 ** 400, 1.5] | sum", "the number would be too large"),
        ("'2025-01-01' | date_diff('2025-01-01', ['days'])", "`date_diff` counts in"),
        ("'2025-01-01' | date_trunc({})", "`date_trunc` knows"),
        ("[{}, {}] | sort(attribute='9' * 5000)", "cannot bring these values in order"),
        ("half | urlencode", "half of a surrogate pair"),
        ("half is matching('a')", "half of a surrogate pair"),
        ("[[1], 2] | sort", "cannot bring these values in order"),
        ("dict([[2 ** 61, 1]])", "`dict` takes a mapping, or pairs"),
        ("[1] | sum(start='a')", "`sum` takes a number, not text"),
        ("'a' | strftime('%Y' * 1000)", "cannot read 'a' as a time"),
        ("date | strftime('%Y' * 1000)", "at most 200 characters"),
    ],
)
def test_an_operation_refuses_what_it_cannot_work_with(expression, message):
    with pytest.raises(ExpressionError) as caught:
        render("{{ " + expression + " }}", VALUES)
    assert message in caught.value.message
    assert not isinstance(caught.value, Unforeseen)


@cases(
    "expression",
    [
        "x | map('title', 1, 2)",
        "x | select('gt')",
        "x | select('sequence', 1)",
        "x | map('pluck')",
        "x | reject('ne', 1, 2)",
    ],
)
def test_the_arguments_of_an_applied_word_are_checked_before_the_run(expression):
    assert refusal("{{ " + expression + " }}", x=[]).code == "E0110"


class Hostile:
    """An opaque value that cannot even be written as text."""

    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


def test_what_still_escapes_an_operation_leaves_as_an_expression_error():
    error = refusal("{{ x ~ '' }}", x=Hostile())
    assert isinstance(error, Unforeseen)
    assert "ZeroDivisionError: no text" in error.message


class Broken(dict[str, Any]):
    """A view of something that cannot be read now."""

    def __getitem__(self, key: str) -> Any:
        raise ConnectionResetError("the store is away")


def test_errors_of_the_world_are_not_errors_of_the_expression():
    with pytest.raises(ConnectionResetError):
        render("{{ x['a'] + 1 }}", Names({"x": Broken(a=1)}))


@cases(
    "expression, expected",
    [
        ("0.5 in range(10 ** 12)", False),
        ("7.0 in range(10 ** 12)", True),
        ("-1.0 in range(10 ** 12)", False),
        ("infinite in range(10 ** 12) or nan in range(10 ** 12)", False),
        ("true in range(10 ** 12)", True),
    ],
)
def test_a_number_is_looked_for_in_a_range_without_going_through_it(expression, expected):
    answer = evaluated(expression, VALUES)
    assert (answer.value, answer.refusal) == (expected, "")
    assert answer.steps < 100


@cases(
    "expression",
    [
        "([digits] * 1000) | join",
        "([digits] * 1000) | quote",
        "([digits] * 1000) | string",
        "([digits] * 1000) | tojson",
        "([digits] * 1000) | unique",
        "([digits] * 1000) | sort",
        "([digits] * 1000).index(digits)",
        "([digits] * 1000) | map('string')",
        "([digits] * 1000) | map('round', -300)",
        "([digits] * 1000) | map('truncate', 30)",
        "([digits] * 1000) | map('sha256')",
        "([digits] * 1000) | select('startingwith', '1')",
        "(['%d'] * 1000) | map('format', digits)",
        "('%(a)d' * 1000) | format(a=digits)",
        "([[digits]] * 1000) | map('tojson')",
        "(['9' * 1000] * 9000) | map('int')",
    ],
)
def test_numbers_of_many_digits_are_paid_for_by_the_square_of_their_length(expression):
    answer = evaluated(expression, VALUES)
    assert STEPS in answer.refusal


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(40000) %}{% set x = digits % 7 ** 600 %}{% endfor %}",
        "{% for i in range(40000) %}{% set x = digits ~ '' %}{% endfor %}",
        "{% for i in range(40000) %}{% set x = 7 ** 1300 %}{% endfor %}",
        "{% for i in range(400) %}{% set x = ('2025' ~ i) | to_datetime('%Y' ~ i) %}{% endfor %}",
        "{% for i in range(200) %}{% set x = 'a' | regex_search('\\\\pL' ~ i) %}{% endfor %}",
    ],
)
def test_every_turn_of_a_loop_pays_for_numbers_and_for_what_is_compiled(template):
    answer = rendered(template, VALUES)
    assert STEPS in answer.refusal


def test_a_format_is_paid_for_once_when_it_is_used_again():
    dates = Names({"dates": ["31/01/2025"] * 1000})
    answer = evaluated("dates | map('to_datetime', '%d/%m/%Y') | last", dates)
    assert answer.value == "2025-01-31T00:00:00"


@cases("expression", ["x | string", "x ~ ''", "x | tojson", "x | tojson(1)", "[x] | unique"])
def test_how_deep_values_may_be_nested_does_not_depend_on_the_depth_of_the_caller(expression):
    def nested(levels: int) -> Names:
        made: Any = 1
        for _ in range(levels):
            made = [made]
        return Names({"x": made})

    def deeper(levels: int, names: Names) -> str:
        return evaluated(expression, names).refusal if levels == 0 else deeper(levels - 1, names)

    for stack in (0, 300):
        assert not deeper(stack, nested(150))
        assert "nested too deeply: more than 200 levels" in deeper(stack, nested(202))


def test_a_value_that_leaves_an_expression_is_not_nested_deeper_than_others_can_walk():
    made: Any = 1
    for _ in range(200):
        made = [made]
    names = Names({"x": made, "shared": VALUES["shared"]})
    assert render("{{ x }}", names) is made
    with pytest.raises(ExpressionError, match="nested too deeply: more than 200 levels"):
        render("{{ [x] }}", names)
    assert render("{{ [shared] }}", names) == [VALUES["shared"]]


def test_expressions_that_are_decided_together_pay_together():
    costly = "range(60000) | map('string') | list | length < 0"
    budget = SharedBudget(VALUES)
    assert budget.steps == DECISION_STEPS == 2_000_000
    budget.steps = MAX_STEPS + 1
    while budget.steps > MAX_STEPS:
        assert not truth(costly, budget)
    budget.steps = min(budget.steps, 100_000)
    with pytest.raises(ExpressionError, match="need more than 2,000,000 steps; do this work in a task"):
        truth(costly, budget)
    with pytest.raises(ExpressionError, match=r"together here need more than 2,000,000 steps"):
        truth("n == 7", budget)


def test_very_many_small_expressions_pay_for_being_read():
    budget = SharedBudget(VALUES)
    before = budget.steps
    truth("n", budget)
    assert before - budget.steps == 51
    budget.steps = 50
    with pytest.raises(ExpressionError, match="together"):
        truth("n", budget)


def test_a_large_size_is_measured_only_up_to_the_limit():
    assert deep_size(VALUES["shared"], 1000) == 1000
    assert deep_size([[1, 2], "a" * 256, {"k": None}], 1000) == 9
