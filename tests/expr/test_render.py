"""What a template gives."""

from __future__ import annotations

from base64 import b64encode

import pytest

from penstock.expr.template import ExpressionError, Names, is_template, render, render_lenient, roots
from tests.cases import cases
from tests.expr.support import SCOPE, ListView, Opaque, View, refusal, value


def test_a_text_without_braces_is_itself():
    text = "no braces, but 100 % of the text } and { too"
    assert render(text, SCOPE) is text
    assert not is_template(text)


@cases(
    "template, expected",
    [
        ("{{ iter.page }}", 3),
        # D61: blanks beside an expression make text of it, and stay.
        ("  {{ workload.flag }}\n", "  True\n"),
        ("{{ iter.page }} ", "3 "),
        ("\n{{- iter.page -}} \n", 3),
        ("{{ workload.nothing }}", None),
        ("{{ workload.items[0].x }}", "a"),
        ("{{ workload['items'][-1]['id'] }}", 2),
        ("{{ workload.items.1.id }}", 2),
        ("{{- iter.page -}}", 3),
        ("{# a note #}{{ iter.page }}", 3),
        ("{{ row._id }}", "k1"),
        ("{{ workload.text[0] }}", "H"),
        ("{{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
        ("{{ '}}' }}", "}}"),
        ("{{ (1, 2) }}", [1, 2]),
    ],
)
def test_a_single_expression_gives_the_value_with_its_type(template, expected):
    result = render(template, SCOPE)
    assert result == expected
    assert type(result) is type(expected)


def test_a_single_expression_gives_the_very_object():
    rows = [{"a": 1}]
    secret = Opaque()
    scope = Names({"x": {"rows": rows, "secret": secret}})
    assert render("{{ x.rows }}", scope) is rows
    assert render("{{ x.rows | default([]) }}", scope) is rows
    assert render("{{ x.secret }}", scope) is secret
    assert render("{{ x.secret if true else none }}", scope) is secret


@cases(
    "template, expected",
    [
        ("{{ workload.api_url }}/path", "http://localhost:8080/path"),
        ("{{ iter.page }}{{ iter.index }}", "30"),
        ("page {{ iter.page }}\n", "page 3\n"),
        ("is {{ workload.flag }}, {{ workload.nothing }}, {{ workload.ratio }}, {{ 1.0 }}", "is True, None, 0.5, 1.0"),
        ("rows: {{ workload.items }}", "rows: [{'id': 1, 'x': 'a'}, {'id': 2, 'x': 'b'}]"),
        ("{{ [] }}{{ {} }}{{ ['it\\'s'] }}", '[]{}["it\'s"]'),
        ("{% if workload.flag %}yes{% else %}no{% endif %}", "yes"),
        ("{% if workload.nothing %}a{% elif iter.page == 3 %}b{% else %}c{% endif %}", "b"),
        (
            "{% for i in workload.items %}{{ loop.index }}{{ i.x }}{% if not loop.last %},{% endif %}{% endfor %}",
            "1a,2b",
        ),
        ("{% for i in workload.empty %}x{% else %}none{% endfor %}", "none"),
        ("{% for k, v in iter.items() %}{{ k }}={{ v }};{% endfor %}", "page=3;index=0;"),
        ("{% for i in workload.items if i.id > 1 %}{{ i.x }}{{ loop.length }}{% endfor %}", "b1"),
        ("{% set x = iter.page + 1 %}{{ x }}!", "4!"),
        ("{% set a, b = [1, 2] %}{{ a }}{{ b }}", "12"),
        ("{% set x = 1 %}{% for i in [5] %}{% set x = i %}{% endfor %}{{ x }}", "1"),
        ("{% raw %}{{ not.this }}{% endraw %}", "{{ not.this }}"),
        ("a {%- if true %} b {% endif -%} c", "a b c"),
        ("a {#- note -#} b", "ab"),
        ("{{ 'x' }}! {# {{ gone }} #}", "x! "),
    ],
)
def test_anything_else_gives_text(template, expected):
    assert render(template, SCOPE) == expected


def test_an_opaque_object_writes_itself_into_text_wherever_it_stands():
    scope = Names({"secret": Opaque(), "all": {"token": Opaque()}})
    assert render("Bearer {{ secret }}", scope) == "Bearer <opaque>"
    assert render("{{ 'Bearer ' ~ secret }}", scope) == "Bearer <opaque>"
    assert render("{{ all }}.", scope) == "{'token': <opaque>}."
    assert render("{{ all | tojson }}", scope) == '{"token": "<opaque>"}'


@cases(
    "word, text",
    [("quote", "'<opaque>'"), ("urlencode", "%3Copaque%3E"), ("b64encode", b64encode(b"<opaque>").decode())],
)
def test_an_opaque_object_writes_itself_for_words_that_encode(word, text):
    assert render(f"{{{{ secret | {word} }}}}", Names({"secret": Opaque()})) == text


def test_trees_are_rendered_and_their_keys_are_not():
    template = {"{{ key }}": ["{{ iter.page }}", {"deep": "p{{ iter.page }}"}], "n": 5, "none": None}
    assert render(template, SCOPE) == {"{{ key }}": [3, {"deep": "p3"}], "n": 5, "none": None}


def test_an_error_in_a_tree_says_where_in_the_tree():
    with pytest.raises(ExpressionError) as caught:
        render({"headers": [{"a": "x"}, {"b": "{{ nope }}"}]}, SCOPE)
    assert caught.value.path == ("headers", 1, "b")


def test_views_are_read_like_the_mappings_and_lists_they_show():
    scope = Names({"v": View({"a": {"b": ListView([1, View({"c": 2})])}, "keys": 5})})
    assert render("{{ v.a.b[1].c }}", scope) == 2
    assert render("{{ v.keys }}", scope) == 5
    assert render("{{ v.keys() | sort }}", scope) == ["a", "keys"]
    assert render("{{ v.get('a').b | length + v.a.b[0] }}", scope) == 3
    assert render("{{ v.a.b == [1, {'c': 2}] }}", scope) is True
    assert render("{{ 1 in v.a.b and 'a' in v }}", scope) is True
    assert render("{{ v }}.", scope) == "{'a': {'b': [1, {'c': 2}]}, 'keys': 5}."
    assert render("{{ v | tojson }}", scope) == '{"a": {"b": [1, {"c": 2}]}, "keys": 5}'
    assert render("{% for x in v.a.b[1].items() %}{{ x[0] }}{% endfor %}", scope) == "c"


def test_item_access_never_reads_attributes_of_objects():
    scope = Names({"v": View({}), "o": Opaque(), "name": "value"})
    for template in ("{{ v.secret }}", "{{ v['secret'] }}", "{{ o.value }}", "{{ o[name] }}", "{{ v._inner }}"):
        with pytest.raises(ExpressionError, match="is undefined"):
            render(template, scope)
    assert render("{{ [o, v] | map(attribute='value') }}", scope) == [None, None]


def test_a_view_of_a_list_may_offer_properties():
    scope = Names({"result": ListView([1, 2])})
    assert render("{{ result.data }}", scope) == [1, 2]
    assert refusal("{{ result.count }}", result=ListView([])).name == "result.count"


@cases(
    "template, name",
    [
        ("{{ workload.api_ur }}", "workload.api_ur"),
        ("x {{ workload.nope.deeper }} y", "workload.nope.deeper"),
        ("{{ nope }}", "nope"),
        ("{{ workload.items[9].x }}", "workload.items.9.x"),
        ("{{ nope.a | upper }}", "nope.a"),
        ("{{ 1 + nope.a * 2 }}", "nope.a"),
        ("{{ 'a' ~ nope.b }}", "nope.b"),
        ("{{ [1, {'k': nope.c}] }}", "nope.c"),
        ("{{ nope.a or nope.b }}", "nope.b"),
        ("{{ nope.a | default(nope.b) }}", "nope.b"),
        ("{{ nope.a if iter.page else 1 }}", "nope.a"),
        ("{{ (nope.a | int) + 1 }}", "nope.a"),
        ("{{ workload.text | replace('a', nope.x) }}", "nope.x"),
        ("{% for x in nope.list %}{% endfor %}", "nope.list"),
        ("{% for x in [1] %}{{ x }}{{ nope.y }}{% endfor %}", "nope.y"),
        ("{% set q = nope.z %}{{ q }}", "q"),
    ],
)
def test_an_undefined_value_is_an_error_that_names_the_variable(template, name):
    error = refusal(template)
    assert error.name == name
    assert f"`{error.text[error.start : error.end]}` is undefined" in error.message


def test_the_error_says_where_a_path_breaks_off_and_what_was_meant():
    assert str(refusal("{{ workload.api_ulr }}")) == "`workload.api_ulr` is undefined; did you mean `api_url`?"
    assert (
        str(refusal("{{ iter.pag.number }}"))
        == "`iter.pag.number` is undefined: `iter` has no `pag`; did you mean `page`?"
    )


def test_what_has_no_value_though_no_variable_is_missing_is_quoted_whole():
    error = refusal("{{ workload.empty | first }}")
    assert (str(error), error.name) == ("`workload.empty | first` is undefined", None)
    assert refusal("{{ 1 if false }}").name is None


@cases(
    "expression",
    [
        "a.b.c | default('x')",
        "a.b.c | d('x')",
        "a.b.c or 'x'",
        "'x' if a.b.c is undefined else a.b.c",
        "a.b.c if a.b.c is defined else 'x'",
        "(workload.empty | first).name | default('x')",
        "workload.nothing | default('x', true)",
        "a[nope].b | default('x')",
        "a.b | upper | trim | default('x')",
        "(a.b + 1) | default('x')",
        "a.get('b') | default('x')",
    ],
)
def test_missing_names_chain_to_undefined_at_any_depth(expression):
    assert value(expression) == "x"


def test_null_is_not_undefined():
    assert value("workload.nothing | default('x')") is None
    assert value("workload.nothing is defined and workload.nothing is none") is True


def test_lenient_rendering_makes_null_of_undefined_values_and_nothing_of_them_in_text():
    assert render_lenient("{{ nope.a }}", SCOPE) is None
    assert render_lenient("{{ nope.a + 1 }}", SCOPE) is None
    assert render_lenient("{{ [nope.a, 1] }}", SCOPE) == [None, 1]
    assert render_lenient("<{{ nope.a }}>", SCOPE) == "<>"
    assert render_lenient("{{ 'a' ~ nope.b ~ 'c' }}", SCOPE) == "ac"
    assert render_lenient("{% for x in nope %}{% endfor %}.", SCOPE) == "."
    assert render_lenient({"a": "{{ nope }}", "b": ["{{ iter.page }}"]}, SCOPE) == {"a": None, "b": [3]}


def test_lenient_rendering_still_refuses_what_makes_no_sense():
    with pytest.raises(ExpressionError, match="cannot be added"):
        render_lenient("{{ workload.text + 1 }}", SCOPE)


def test_results_are_fresh_so_that_no_one_can_change_a_template():
    first = render("{{ [1, 2] }}", SCOPE)
    assert isinstance(first, list)
    first.append(3)
    assert render("{{ [1, 2] }}", SCOPE) == [1, 2]


def test_rendering_changes_no_value():
    scope = Names({"x": {"list": [3, 1, 2], "map": {"b": 1}}})
    render("{{ x.list | sort }}{{ x.list | reverse }}{{ x.map | combine({'c': 2}) }}{{ x.list + [4] }}", scope)
    assert scope == {"x": {"list": [3, 1, 2], "map": {"b": 1}}}


def test_roots_are_the_names_asked_of_the_scope():
    template = {
        "a": "{{ ctx.x }}{% for i in workload.rows %}{{ i.y }}{{ loop.index }}{{ iter.z }}{% endfor %}",
        "b": ["{% set t = _prev %}{{ t }}", "plain", 5],
    }
    assert roots(template) == {"ctx", "workload", "iter", "_prev"}


def test_the_caret_points_at_the_culprit():
    error = refusal("first line\nurl: {{ workload.api_ulr }}/x")
    assert error.caret() == "url: {{ workload.api_ulr }}/x\n        ^^^^^^^^^^^^^^^^"
    long = refusal("x" * 500 + "{{ nope }}")
    line, caret = long.caret().split("\n")
    assert len(line) <= 100
    assert line[caret.index("^") : len(caret)] == "nope"


@cases(
    "value, expected",
    [
        ("a.csv", "a.csv"),
        ("a; rm -rf .", "'a; rm -rf .'"),
        ("it's", "'it'\"'\"'s'"),
        (3, "3"),
        ("", "''"),
        (["a b", 1], "'a b' 1"),
    ],
)
def test_quote_makes_one_word_of_a_shell_command(value, expected):
    assert render("{{ x | quote }}", Names({"x": value})) == expected
