"""The corpus of what expressions cannot do: ways out of the sandbox, ways to make a small text do endless work, and mistakes."""

from __future__ import annotations

from penstock.expr.check import inspect
from penstock.expr.template import ExpressionError, Names, render, render_lenient, truth
from tests.cases import cases
from tests.expr.support import SCOPE, Opaque, refusal

FORBIDDEN = [
    ("{{ x.__class__ }}", "E0105"),
    ("{{ ''.__class__.__mro__[1] }}", "E0105"),
    ("{{ x['__class__'] }}", "E0105"),
    ("{{ (x | first).__init__ }}", "E0105"),
    ("{{ __import__ }}", "E0105"),
    ("{{ __import__('os') }}", "E0103"),
    ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "E0106"),
    ("{{ x | attr('__class__') }}", "E0102"),
    ("{{ x | map('attr', '__class__') }}", "E0102"),
    ("{{ x | map(name) }}", "E0102"),
    ("{{ x | select(name) }}", "E0104"),
    ("{{ x | selectattr('a', 'nope') }}", "E0104"),
    ("{{ x.append(1) }}", "E0106"),
    ("{{ x.update({}) }}", "E0106"),
    ("{{ x.pop() }}", "E0106"),
    ("{{ x.sort() }}", "E0106"),
    ("{{ '{0.__class__}'.format(1) }}", "E0106"),
    ("{{ '{0.__class__}'.format_map({}) }}", "E0106"),
    ("{{ keychain.k.reveal() }}", "E0106"),
    ("{{ x.fn() }}", "E0106"),
    ("{{ cycler('a') }}", "E0103"),
    ("{{ lipsum() }}", "E0103"),
    ("{{ namespace(a=1) }}", "E0103"),
    ("{{ joiner() }}", "E0103"),
    ("{{ debug() }}", "E0103"),
    ("{{ open('/etc/passwd') }}", "E0103"),
    ("{{ now() }}", "E0103"),
    ("{{ x | random }}", "E0102"),
    ("{{ x | pprint }}", "E0102"),
    ("{{ x | safe }}", "E0102"),
    ("{{ x is sameas(y) }}", "E0104"),
    ("{{ x() }}", "E0103"),
    ("{{ (x)[0]() }}", "E0101"),
    ("{{ x()() }}", "E0101"),
    ("{{ dict(*x) }}", "E0101"),
    ("{{ dict(**x) }}", "E0101"),
    ("{% macro m() %}{% endmacro %}", "E0107"),
    ("{% include 'x' %}", "E0107"),
    ("{% import 'x' as y %}", "E0107"),
    ("{% from 'x' import y %}", "E0107"),
    ("{% extends 'x' %}", "E0107"),
    ("{% block a %}{% endblock %}", "E0107"),
    ("{% call f() %}{% endcall %}", "E0107"),
    ("{% filter upper %}{% endfilter %}", "E0107"),
    ("{% with a = 1 %}{% endwith %}", "E0107"),
    ("{% autoescape true %}{% endautoescape %}", "E0107"),
    ("{% do x.append(1) %}", "E0107"),
    ("{% whatever %}", "E0107"),
    ("{% set loop = 1 %}", "E0101"),
    ("{% set __x__ = 1 %}", "E0101"),
    ("{% set a.b = 1 %}", "E0101"),
    ("{{ x | replace('a') }}", "E0110"),
    ("{{ x | upper(1) }}", "E0110"),
    ("{{ x | sort(revers=true) }}", "E0110"),
    ("{{ x | replace('a', 'b', old='c') }}", "E0110"),
    ("{{ len() }}", "E0110"),
    ("{{ x.get() }}", "E0110"),
    ("{{ x | regex_search('(?=a)b') }}", "E0111"),
    ("{{ x is matching '(' }}", "E0111"),
]


@cases("template, code", FORBIDDEN)
def test_forbidden_constructs_are_refused_at_plan_time_and_at_run_time(template, code):
    assert code in [finding.code for finding in inspect(template).findings]
    error = refusal(template, x="abc", y=1, name="upper", keychain={"k": Opaque()})
    assert error.code in [finding.code for finding in inspect(template).findings]


@cases(
    "template",
    [
        "{{ o['__cla' ~ 'ss__'] }}",
        "{{ o[('_' * 2) ~ 'class' ~ ('_' * 2)] }}",
        "{{ o['val' ~ 'ue'] }}",
        "{{ [o] | map(attribute='reveal') | first }}",
        "{{ [o] | map(attribute='__class__') | first }}",
        "{{ [o] | selectattr('value') | first }}",
        "{{ [o] | groupby('value') | map(attribute=0) | first }}",
        "{{ o | pluck('value') }}",
        "{{ dict(a=o).a['value'] }}",
        "{% for x in [o] %}{{ x.value }}{% endfor %}",
        "{{ o | upper }}",
        "{{ o | b64encode }}",
        "{{ o + 'x' }}",
        "{{ o | list }}",
        "{{ o < o }}",
    ],
)
def test_nothing_reaches_into_an_opaque_object(template):
    try:
        result = render_lenient(template, Names({"o": Opaque()}))
    except ExpressionError as error:
        result = error.message
    assert "hidden" not in str(result)
    assert "class" not in str(result).replace("__class__", "")


BIG = list(range(100_000))
OTHER = [*BIG[:-1], 0]
TOO_MUCH = [
    "{{ 'a' * 10 ** 9 }}",
    "{{ [0] * 10 ** 9 }}",
    "{{ [[[[0] * 1000] * 1000] * 1000] * 1000 }}",
    "{{ ['a' * 1000000] * 1000 }}",
    "{{ [0] * 1000 | map('default', [0] * 1000, true) | map('default', 0) }}",
    "{{ ([0] * 1000) | map('default', ([0] * 1000) | map('default', [1] * 1000, true), true) }}",
    "{{ 10 ** (10 ** 10) }}",
    "{{ 9 ** 9 ** 9 ** 9 ** 9 }}",
    "{{ 2.0 ** 5000 }}",
    "{{ 1e308 * 10 }}",
    "{{ (-8) ** 0.5 }}",
    "{{ 'a' | center(10 ** 9) }}",
    "{{ 'a' | ljust(10 ** 9) }}",
    "{{ 'a' | rjust(10 ** 9) }}",
    "{{ 'a\\nb' | indent(10 ** 9) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%.1000000000f' | format(1) }}",
    "{{ '%99999999999999999999d' | format(1) }}",
    "{{ '%*d' | format(10 ** 9, 1) }}",
    "{{ [1] | tojson(indent=10 ** 9) }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | replace('', 'b' * 1000000) }}",
    "{{ range(1000000) | join('a' * 1000) }}",
    "{{ range(1000) | join('a' * 100000) }}",
    "{{ ('a' * 6000) | regex_replace('a', 'b' * 10000) }}",
    "{{ range(10 ** 15) }}",
    "{{ range(10 ** 11) | list }}",
    "{{ range(10 ** 11) | sum }}",
    "{{ range(10 ** 11) ~ '' }}",
    "{{ 5 in range(10 ** 11) | list }}",
    "{{ sum(range(10 ** 9)) }}",
    "{{ zip(range(10 ** 9), range(10 ** 9)) }}",
    "{{ [1] | batch(10 ** 9, 0) }}",
    "{% for a in range(10 ** 9) %}{% endfor %}",
    "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}",
    "{% for a in range(20000) %}{{ 7 in big }}{% endfor %}",
    "{% for a in range(20000) %}{{ big | sum }}{% endfor %}",
    "{% for a in range(20000) %}{{ big == other }}{% endfor %}",
    "{% for a in range(20000) %}{{ 'x' in long }}{% endfor %}",
    "{% for a in range(20000) %}{{ long }}{% endfor %}",
    "{% for a in range(20000) %}{{ long is matching 'b' }}{% endfor %}",
    "{% set a = [1, 1] %}"
    + "".join(f"{{% set a = [{', '.join(['a'] * 10)}] %}}" for _ in range(9))
    + "{{ a | tojson }}",
    "{% set a, b = [[1, 1], [1, 1]] %}"
    + "".join(f"{{% set a, b = [[{', '.join(['a'] * 10)}], [{', '.join(['b'] * 10)}]] %}}" for _ in range(9))
    + "{{ a == b }}",
    "{% set a = 'x' %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
    "{% set a = 3 %}" + "{% set a = a * a %}" * 60 + "{{ a }}",
    "{{ ('[' * 100000) | fromjson }}",
    "{{ " + " ~ ".join(["'a' * 10000000"] * 20) + " }}",
    "{{ [" + ", ".join(["'a' * 10000000"] * 20) + "] }}",
]


@cases("template", TOO_MUCH)
def test_a_small_text_cannot_do_endless_work(template):
    error = refusal(template, big=BIG, other=OTHER, long="a" * 100_000)
    assert len(error.message) < 200


@cases(
    "template",
    [
        "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
        "{{ " + "[" * 500 + "]" * 500 + " }}",
        "{{ " + "{'a':" * 500 + "1" + "}" * 500 + " }}",
        "{{ " + "1+" * 3000 + "1 }}",
        "{{ " + "not " * 3000 + "1 }}",
        "{{ " + "-" * 3000 + "1 }}",
        "{{ a" + ".b" * 3000 + " }}",
        "{{ a" + "[a" * 3000 + "]" * 3000 + " }}",
        "{{ a" + "|upper" * 3000 + " }}",
        "{{ a" + " is defined" * 3000 + " }}",
        "{{ " + "a if b else " * 3000 + "1 }}",
        "{{ " + "a if b " * 3000 + " }}",
        "{{ " + "range(" * 3000 + "1" + ")" * 3000 + " }}",
        "{{ " + "a[b".join(["", *[".c" * 90] * 30]) + " }}",
        "{% if a %}" * 3000,
        "{% for a in b %}" * 3000,
    ],
)
def test_deep_nesting_is_refused_and_never_exhausts_the_stack(template):
    assert refusal(template).code == "E0101"
    assert [finding.code for finding in inspect(template).findings] == ["E0101"]


def test_long_chains_of_joined_texts_and_alternatives_are_not_deep():
    assert render("{{ " + "'a' ~ " * 1000 + "'b' }}", SCOPE) == "a" * 1000 + "b"
    assert render("{{ " + "nope or " * 1000 + "'b' }}", SCOPE) == "b"


def test_values_nested_without_end_are_an_error_not_a_crash():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for template in ("{{ x | tojson }}", "{{ x }}.", "{{ x | unique }}", "{{ x | string }}"):
        assert refusal(template, x=deep).message
    assert truth("x != y", Names({"x": deep, "y": [[deep]]}))


@cases(
    "template, message, hint",
    [
        ("{{ a", "`{{` is never closed; it ends with `}}`", ""),
        ("{% if a", "`{%` is never closed; it ends with `%}`", ""),
        ("{# a", "`{#` is never closed; a comment ends with `#}`", ""),
        ("{% raw %}", "`{% raw %}` is never closed; it ends with `{% endraw %}`", ""),
        ("{% if a %}", "`{% if %}` is never closed; it ends with `{% endif %}`", ""),
        ("{% endif %}", "`{% endif %}` stands without its `{% if %}`", ""),
        ("{% endfor %}", "`{% endfor %}` stands without its `{% for %}`", ""),
        ("{{ a } }}", "`}` closes nothing; the tag ends with `}}`", ""),
        ("{{ (a }}", "`(` is never closed", ""),
        ("{{ [a, }}", "the expression ends too early: a value is expected here", ""),
        ("{{ f(a }}", "`(` is never closed", ""),
        ("{{ 'a }}", "the quote `'` is never closed", ""),
        ("{{ }}", "there is no expression here", ""),
        ("{{ a b }}", "`b` is unexpected: the expression should end here", ""),
        ("{{ a = 1 }}", "`=` is unexpected: the expression should end here", "to compare, write `==`"),
        ("{{ a || b }}", "`|` is unexpected: the name of a filter is expected here", "write `or`"),
        ("{{ a && b }}", "`&` is not part of an expression", "write `and`"),
        ("{{ !a }}", "`!` is not part of an expression", "write `not`"),
        ("{{ ‘a’ }}", "`‘` is not part of an expression", "use straight quotes: `'`"),
        ("{{ 1, 2 }}", "`,` is unexpected: the expression should end here", "a list is written `[a, b]`"),
        (
            "{{ a | first.b }}",
            "`.` is unexpected: the expression should end here",
            "to look into what a filter gives, use parentheses: `(x | first).name`",
        ),
        ("{{ 007 }}", "`007` is not a whole number this language can hold", ""),
        ("{{ 1e999 }}", "`1e999` is not a number this language can hold", ""),
        ("{{ '\\ud800' }}", "`\\ud800` is not a character", ""),
        ("{{ f(a=1, 2) }}", "`2` is unexpected: behind `name=value`, all other arguments need a name too", ""),
        ("{{ a | uper }}", "there is no filter `uper`; did you mean `upper`?", ""),
        ("{{ lenn(a) }}", "there is no function `lenn`; did you mean `len`?", ""),
        ("{{ upper(a) }}", "there is no function `upper`", "it is a filter: `value | upper`"),
        ("{{ a is defind }}", "there is no test `defind`; did you mean `defined`?", ""),
        (
            "{{ a | replace('x') }}",
            "the filter `replace` needs the argument `new`",
            "it is written `replace(old, new, count=none)`",
        ),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(template, message, hint):
    error = refusal(template)
    assert (error.message, error.hint) == (message, hint)


@cases(
    "expression, message",
    [
        ("workload.text + 1", "text and a number cannot be added; to join text, use `~`"),
        ("workload.text - 1", "`-` takes numbers, not text; convert it with `| int` or `| float`"),
        ("workload.nothing * 2", "null and a number cannot be multiplied"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("-workload.text", "`-` takes numbers, not text; convert it with `| int` or `| float`"),
        ("5 in 7", "`in` needs a list, a mapping or text on its right, not a number"),
        ("iter[[1]]", "a list cannot be a key"),
        ("5[1:2]", "a number cannot be sliced"),
        ("'a'['b':]", "a slice takes whole numbers, not text"),
        ("'ab'[::0]", "the step of a slice cannot be 0"),
        ("{[1]: 2}", "the keys of a mapping are texts or numbers"),
        ("'abc' | int", "'abc' is not a whole number; `int(0)` would take 0 instead"),
        ("none | int", "None is not a whole number; `int(0)` would take 0 instead"),
        ("'nan' | float", "'nan' is not a number; `float(0)` would take 0 instead"),
        ("'maybe' | bool", "'maybe' is neither true nor false"),
        ("iter | upper", "`upper` takes text, not a mapping"),
        ("5 | length", "a number has no length"),
        ("5 | list", "a number has no elements to go through"),
        (
            "[1, 'a', none] | sort",
            "`sort` cannot bring these values in order: they are of different kinds, or null, or missing",
        ),
        ("'x' | fromjson", "this is not JSON: line 1, column 1: expecting value: `x`"),
        (r"'{\n\"a\": oops}' | fromjson", 'this is not JSON: line 2, column 6: expecting value: `{ "a": oops}`'),
        ("'NaN' | fromjson", "this is not JSON: `NaN` is not a value of JSON"),
        ("'[1e999]' | fromjson", "this is not JSON: the number `1e999` is too large"),
        (
            r"'[\"a\\ud800\"]' | fromjson",
            "this is not JSON: a text in it has half of a surrogate pair, which is no character",
        ),
        (
            "('[' * 3000 ~ ']' * 3000) | fromjson",
            "this is not JSON: it is nested more than 200 levels deep",
        ),
        ("('[' * 300 ~ ']' * 300) | fromjson", "the values are nested too deeply: more than 200 levels"),
        ("'***' | b64decode", "`b64decode` was given something that is not base64 of UTF-8 text"),
        (
            "'yesterday' | timestamp",
            "`timestamp` cannot read 'yesterday' as a time; write it as `2025-01-31T13:45:00Z`",
        ),
        ("workload.when | strftime('%s')", "`%s` is not a date format this language knows, such as `%Y-%m-%d`"),
        ("'9999-12-31' | date_add(days=1)", "the date would be outside of the calendar"),
        ("'a'.index('b')", "'b' is not in it"),
        ("iter.page.get('x')", "`get` takes a mapping, not a number"),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_words(expression, message):
    assert refusal("{{ " + expression + " }}").message == message
