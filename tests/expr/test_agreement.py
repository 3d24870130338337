"""Agreement with another implementation of the language, minijinja, wherever the two are meant to agree."""

from __future__ import annotations

import minijinja
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.template import Names, render, render_lenient
from tests.cases import cases
from tests.expr.support import SCOPE, steady
from tests.expr.test_allowed import OPERATORS
from tests.expr.test_properties import VALUES, values_and_paths, written

ORACLE = minijinja.Environment(undefined_behavior="chainable", keep_trailing_newline=True)


@steady
@given(values_and_paths())
def test_paths_lead_to_the_same_place(case):
    value, steps = case
    path = written(steps)
    assert render_lenient("{{ " + path + " }}", Names({"x": value})) == ORACLE.eval_expr(path, x=value)


# Division always gives a fraction here, as in Python and Jinja2; tuples are lists here.
DIFFERENT = {
    "+3",
    "6 / 2",
    "(1,)",
    "()",
    "2 * [0]",
    "'\\u00e9\\x41\\d'",
    "'a' 'b'",
    "1_000 + 0x10 + 0b11 + 0o7",
}


@cases("expression", [expression for expression, _ in OPERATORS if expression not in DIFFERENT])
def test_operators_mean_the_same(expression):
    assert render("{{ " + expression + " }}", SCOPE) == ORACLE.eval_expr(expression, **SCOPE)


@cases(
    "template",
    [
        "{% for i in workload.items %}{{ loop.index }}/{{ loop.length }}{{ i.x }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% for k, v in row | dictsort %}{{ k }}={{ v }};{% endfor %}",
        "{% for i in [] %}x{% else %}none{% endfor %}",
        "a {%- if iter.page > 2 -%} b {%- else -%} c {%- endif %} d",
        "  {{- iter.page -}}  x\n",
        "{% set y = 5 %}{{ y + iter.page }}!",
        "{% raw %}{{ a }}{% endraw %}{# gone #}.",
        "{{ workload.items }} {{ workload.flag }} {{ workload.nothing }} {{ workload.ratio }}",
        "{% if nope %}a{% elif not nope.b %}b{% endif %}",
        "{% for i in range(3) if i != 1 %}{{ i }}{% endfor %}!",
    ],
)
def test_texts_are_the_same(template):
    assert render(template, SCOPE) == ORACLE.render_str(template, **SCOPE)


@steady
@given(value=st.lists(VALUES, max_size=5))
def test_words_on_lists_give_the_same(value):
    for expression in ("length", "first", "last", "list", "reverse | list", "select | list", "reject('none') | list"):
        assert on_lists(expression, value) == ORACLE.eval_expr(f"x | {expression}", x=value), expression
    # Very large and very small floats are written in full there, and with an exponent here.
    value = [element for element in value if element is None or isinstance(element, (bool, int, str))]
    for expression in ("join('-')", "map('string') | list"):
        assert on_lists(expression, value) == ORACLE.eval_expr(f"x | {expression}", x=value), expression


def on_lists(expression, value):
    return render_lenient("{{ x | " + expression + " }}", Names({"x": value}))


@steady
@given(value=st.text(st.characters(max_codepoint=127, exclude_categories=["Cc"]), max_size=12))
def test_words_on_text_give_the_same(value):
    for word in ("upper", "lower", "trim", "length", "list", "lines", "split"):
        assert on_text(word, value) == ORACLE.eval_expr(f"x | {word}", x=value), word
    value = "".join(character for character in value if character.isalpha() or character == " ")
    for word in ("title", "capitalize"):
        assert on_text(word, value) == ORACLE.eval_expr(f"x | {word}", x=value), word


def on_text(word, value):
    return render("{{ x | " + word + " }}", Names({"x": value}))
