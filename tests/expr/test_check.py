"""What is said about an expression before the run."""

from __future__ import annotations

import pytest

from penstock.expr.check import CODES, Grammar, Use, inspect
from tests.cases import cases


def uses(text: str, condition: bool = False) -> dict[str, bool]:
    """The paths that are read, and whether each is guarded."""
    return {".".join(use.path): use.guarded for use in inspect(text, condition=condition).uses}


def test_a_text_without_expressions_is_literal():
    assert inspect("plain").is_literal
    assert not inspect("{{ a }}").is_literal
    assert not inspect("a", condition=True).is_literal


def test_a_single_expression_is_told_from_text():
    assert inspect("{{ a }}").is_single
    assert not inspect(" {{ a }} ").is_single
    assert inspect(" {{ a }} ").has_blanks
    assert not inspect("{{ a }}!").has_blanks
    assert not inspect("{{ a }}!").is_single
    assert not inspect("{% if a %}b{% endif %}").is_single


def test_a_use_has_its_path_and_its_place():
    (use,) = inspect("x {{ workload.items[0].name | upper }}").uses
    assert use == Use(("workload", "items", "0", "name"), 5, 27, False)


@cases(
    "text, expected",
    [
        ("{{ a.b }}", {"a.b": False}),
        ("{{ a.b | default(c) }}", {"a.b": True, "c": False}),
        ("{{ a.b | upper | d('') }}", {"a.b": True}),
        ("{{ a is defined }}", {"a": True}),
        ("{{ a is undefined and b }}", {"a": True, "b": False}),
        ("{{ a or b or c }}", {"a": True, "b": True, "c": False}),
        ("{{ not a }}", {"a": True}),
        ("{{ a if b else c }}", {"a": False, "b": True, "c": False}),
        ("{{ a[b.c].d }}", {"a": False, "b.c": False}),
        ("{{ a.items() }}", {"a": False}),
        ("{{ len(a) + b | int }}", {"a": False, "b": False}),
        ("{{ {'k': a, b: 1} }}{{ [c][d:e] }}", {"a": False, "b": False, "c": False, "d": False, "e": False}),
        ("{% if a %}{{ b }}{% endif %}", {"a": True, "b": False}),
        (
            "{% for x in a if x.ok %}{{ x.y }}{{ loop.index }}{{ b }}{% else %}{{ c }}{% endfor %}",
            {"a": False, "b": False, "c": False},
        ),
        ("{% set x = a %}{{ x.y }}", {"a": False}),
        ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", {"a": True}),
    ],
)
def test_uses_are_the_free_variables_and_where_they_may_be_missing(text, expected):
    assert uses(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ x.y if x.y is defined else 0 }}",
        "{{ x.y and x.y }}",
        "{% if x.y.z %}{{ x.y }}{% endif %}",
    ],
)
def test_what_a_test_has_asked_about_is_guarded_behind_it(text):
    assert inspect(text).uses[-1].guarded
    assert uses("{% if a %}{{ a.b }}{% endif %}")["a.b"] is False
    assert [use.guarded for use in inspect("{% if a %}{% endif %}{{ a }}").uses] == [True, False]


def test_everything_in_a_condition_is_guarded():
    assert uses("{{ a.b > c }}", condition=True) == {"a.b": True, "c": True}


def test_all_findings_are_reported_at_once_with_their_places():
    text = "{{ a | uper }} {{ foo(b.__c__) }} {{ d is nul }} {{ e.pop() }}"
    found = inspect(text).findings
    assert [(finding.code, text[finding.start : finding.end]) for finding in found] == [
        ("E0102", "uper"),
        ("E0103", "foo"),
        ("E0105", "__c__"),
        ("E0104", "nul"),
        ("E0106", "pop"),
    ]
    assert found[0].label == "did you mean `upper`?"
    assert uses(text) == {"a": False, "b.__c__": False, "d": False, "e": False}


def test_a_syntax_error_is_one_finding_with_its_hint():
    (finding,) = inspect("ok {{ a = 1 }}").findings
    assert (finding.code, finding.start, finding.end, finding.hint) == ("E0101", 8, 9, "to compare, write `==`")


@cases(
    "condition, constant",
    [
        ("true", True),
        ("{{ false }}", False),
        ("1 > 2", False),
        ("{{ 'no' }}", True),
        ("{{ a }}", None),
        ("{{ a or true }}", None),
        ("nope(", None),
    ],
)
def test_a_condition_without_variables_is_known_to_be_constant(condition, constant):
    assert inspect(condition, condition=True).constant is constant


def test_a_constant_condition_that_cannot_be_evaluated_is_a_finding():
    assert [finding.message for finding in inspect("1 / 0 > 1", condition=True).findings] == ["division by zero"]


def test_a_condition_that_mixes_text_and_expressions_is_a_finding():
    assert [finding.code for finding in inspect("{{ a }} == 1", condition=True).findings] == ["E0109"]
    assert inspect("{{ a }} == 1").findings == ()


@pytest.mark.clause("JA.1")
def test_a_smaller_grammar_has_only_the_words_it_is_given():
    grammar = Grammar(filters=frozenset({"default"}), functions=frozenset({"len", "abs"}), methods=frozenset())
    for allowed in (
        "42 > 3.14",
        "(status == 'OK') and (attempts < 3)",
        "(price * qty) > 1000",
        "len(rows) > 0 or abs(delta) > 1",
        "x is defined",
        "x | default(1)",
    ):
        assert inspect(allowed, condition=True, grammar=grammar).findings == ()
    for refused, code in (
        ("a | upper", "E0102"),
        ("sum(a) > 1", "E0103"),
        ("a.upper() == 'X'", "E0106"),
        ("a | default(b.__class__)", "E0105"),
        ("__import__('os')", "E0103"),
        ("a.append(1)", "E0106"),
    ):
        assert code in [finding.code for finding in inspect(refused, condition=True, grammar=grammar).findings]
    (finding,) = inspect("a | upper", condition=True, grammar=grammar).findings
    assert finding.message == "the filter `upper` cannot be used here"


def test_every_code_is_explained():
    assert sorted(CODES) == [f"E01{number:02}" for number in range(1, 12)]
    assert all(text.endswith(".") for text in CODES.values())


def test_a_constant_condition_that_takes_many_steps_is_left_to_the_run():
    assert inspect("1 + 1 == 2", condition=True).constant is True
    costly = inspect("range(100000) | sum > 1", condition=True)
    assert (costly.constant, costly.findings) == (None, ())
    assert inspect("1 / 0 > 1", condition=True).findings[0].message == "division by zero"
