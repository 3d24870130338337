"""Parameters against the JSON Schema of their component."""

import pytest

from tests.cases import cases
from tests.dialects.job.support import errors, problems


def one(type_: str, params: str) -> str:
    return f"components:\n  - {{name: a, type: {type_}, params: {params}}}\n"


@cases(
    "type_, params, said, text",
    [
        ("sleep", "{seconds: [1]}", "`seconds` of `sleep` must be a number, not a list", "[1]"),
        ("sleep", "{seconds: '1'}", "`seconds` of `sleep` must be a number, not text", "'1'"),
        ("sleep", "{seconds: -1}", "`seconds` of `sleep` must be at least 0, not `-1`", "-1"),
        ("sleep", "{seconds: null}", "`seconds` of `sleep` must be a number, not nothing", "null"),
        ("python", "{code: 3}", "`code` of `python` must be text, not a number", "3"),
        ("python", "{code: x, mode: rows}", "`mode` of `python` cannot be `rows`", "rows"),
        ("fixed_rows", "{columns: []}", "`columns` of `fixed_rows` needs 1 entry at least", "[]"),
        ("fixed_rows", "{columns: [a], rows: [1]}", "`rows[0]` of `fixed_rows` must be a list, not a number", "1"),
        ("derive", "{columns: {x: [1]}}", "`columns.x` of `derive` must be text or a number, not a list", "[1]"),
        ("check", "{checks: [{not_null: 3}]}", "`checks[0].not_null` of `check` must be a list, not a number", "3"),
        (
            "check",
            "{checks: [{notnull: [a], not_null: [b]}]}",
            "`notnull` is not a word of `checks[0]` of `check`",
            "notnull",
        ),
        ("check", "{checks: [{name: x}]}", "`checks[0]` of `check` has no `not_null`", "{name: x}"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(type_, params, said, text):
    found = problems(one(type_, params), "J0501")
    assert [problem.message for problem in found] == [f"BAD_PARAM: {said}"]
    line = one(type_, params).splitlines()[found[0].position.line - 1]
    assert line[found[0].position.column - 1 : found[0].position.end_column - 1] == text


def test_a_misspelt_parameter_is_found_and_a_missing_one_explained():
    unknown, missing = problems(one("sleep", "{secnds: 1}"))[:2][::-1]
    assert unknown.message == "UNKNOWN_PARAM: `sleep` has no parameter `secnds`"
    assert unknown.label == "did you mean `seconds`?"
    assert missing.message == "MISSING_PARAM: `sleep` needs the parameter `seconds`"
    assert missing.hint == "`seconds`: How long."


@pytest.mark.parametrize(
    "params",
    ["{seconds: '{{ n }}'}", "{seconds: 1.5}", "{seconds: 2}"],
)
def test_a_template_may_stand_for_any_value(params):
    assert errors("context: {n: 1}\n" + one("sleep", params)) == []


def test_null_leaves_an_optional_parameter_out():
    assert errors(one("warn", "{message: x, code: null}")) == []


@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("set_global", "{values: {'{{ global.x }}_count': 1}}"),
        ("derive", "{columns: {a: {'{{ x }}': 1}}}"),
        ("warn", "{message: [{deep: {'{% if x %}a{% endif %}': 1}}]}"),
    ],
)
def test_a_template_in_a_key_is_an_error_where_it_stands(type_, params):
    text = one(type_, params)
    (problem,) = problems(text, "J0505")
    key = params[params.index("'") : params.rindex("'") + 1]
    assert f"the template in `{key[1:-1]}` would stay as it is (in `a`)" in problem.message
    assert text.splitlines()[1][problem.position.column - 1 : problem.position.end_column - 1] == key


def test_braces_in_a_key_that_are_no_template_are_left_alone():
    assert errors(one("set_global", "{values: {a: {'{x}': 1, '}}': 2}}}")) == []


@cases(
    "name, reason",
    [
        ("two words", "a name begins with a letter and goes on with letters, digits, `_` or `-`"),
        ("7up", "a name begins with a letter and goes on with letters, digits, `_` or `-`"),
        ("", "a name begins with a letter and goes on with letters, digits, `_` or `-`"),
        ("a.b", "a dot stands between a component and its own variables"),
        ("__x__", "`__` in front is kept for joblets"),
    ],
)
def test_a_global_cannot_have_any_name(name, reason):
    text = one("set_global", f"{{values: {{good: 1, '{name}': 2}}}}")
    (problem,) = problems(text)
    assert (problem.code, problem.message) == (
        "J0506",
        f"BAD_GLOBAL: `{name}` cannot be the name of a global: {reason}",
    )
    assert problem.position.column == text.splitlines()[1].index(f"'{name}'") + 1


@cases("name", ["a", "_a", "größe", "a-b", "A1", "inner__NAME"])
def test_these_are_names_of_globals(name):
    assert problems(one("set_global", f"{{values: {{{name}: 2}}}}")) == []
