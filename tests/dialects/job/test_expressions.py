"""Templates and conditions: what they see, and what is refused."""

import pytest

from tests.cases import cases
from tests.dialects.job.support import codes, errors, job, problems

HEAD = "context: {city: Oslo, groups: {prod: {folder: x}}}\nkeychain: [{name: token, kind: env, var: T}]\n"


def warn(message: str, head: str = HEAD, more: str = "") -> str:
    return f'{head}components:\n  - {{name: w, type: warn, params: {{message: "{message}"}}}}\n{more}'


@cases(
    "message",
    [
        "{{ context.city }}", "{{ city }}", "{{ folder }}", "{{ context.folder }}", "{{ execution.id }}", "{{ execution_id }}",
        "{{ keychain.token }}", "{{ global.w.NB_LINE }}", "{{ nothing | default('') }}", "{{ context.nothing | default('') }}",
        "{{ global['a.__b__C'] | default(1) }}", "{{ globals.x | default(1) }}",
    ],
)  # fmt: skip
def test_what_a_parameter_sees(message):
    assert codes(warn(message)) == []


@cases(
    "message, code, label",
    [
        ("{{ citty }}", "J0701", "did you mean `city`?"),
        ("{{ context.citty }}", "J0701", "did you mean `city`?"),
        ("{{ workload.city }}", "J0701", "did you mean `context`?"),
        ("{{ item.path }}", "J0701", "did you mean `iteration.item`?"),
        ("{{ glbal.x }}", "J0701", "did you mean `global`?"),
        ("{{ keychain.tokn }}", "J0704", "did you mean `token`?"),
        ("{{ iteration.item }}", "J0702", ""),
        ("{{ params.x }}", "J0702", ""),
        ("{{ city | uper }}", "E0102", "did you mean `upper`?"),
        ("{{ city.__class__ }}", "E0105", ""),
        ("{{ city + }}", "E0101", ""),
    ],
)
def test_what_a_parameter_does_not_see_is_reported_at_the_name(message, code, label):
    (found,) = problems(warn(message))
    assert (found.code, found.label) == (code, label)


def test_a_root_name_that_there_is_not_is_an_error():
    assert [found.severity.value for name in ("contxt.city", "citty", "zebra.x") for found in problems(warn(f"{{{{ {name} }}}}"))] == [
        "error", "error", "error"
    ]  # fmt: skip
    assert [found.severity.value for found in problems(warn("{{ zebra }}"))] == ["warning"]


def test_blanks_beside_an_expression_are_a_warning():
    """D61."""
    (found,) = problems(warn("{{ city }} "))
    assert (found.code, found.severity.value) == ("J0720", "warning")


def test_the_place_of_a_name_is_exact_inside_a_block():
    text = (
        HEAD
        + "components:\n  - name: p\n    type: python\n    params:\n      code: |\n        x = 1\n        y = '{{ citty }}'\n"
    )
    (found,) = problems(text, "J0701")
    assert (found.position.line, found.position.column, found.position.end_column) == (9, 17, 22)


def test_iteration_is_seen_in_a_body_and_in_joblets():
    text = job("it (iterate) w", types={"it": "iterate_list", "w": "warn"}, w={"message": "{{ iteration.index }}"})
    assert codes(text) == []
    joblet = 'kind: Joblet\ncomponents: [{name: w, type: warn, params: {message: "{{ iteration.item }}"}}]\n'
    assert codes('components: [{name: j, type: "@x"}]\n', {"x": joblet}) == []


def test_a_joblet_by_itself_cannot_know_the_context():
    assert (
        codes(
            'kind: Joblet\ncomponents: [{name: w, type: warn, params: {message: "{{ anything }} {{ context.x }}"}}]\n'
        )
        == []
    )


@pytest.mark.parametrize(
    "component",
    [
        "{name: s, type: set_global, params: {values: {t: '{{ keychain.token }}'}}}",
        "{name: s, type: iterate_list, params: {items: ['{{ keychain.token }}']}}",
    ],
)
def test_a_secret_may_not_stand_where_it_would_be_recorded(component):
    assert "J0703" in errors(f"{HEAD}components:\n  - {component}\n")


def test_a_secret_may_not_stand_in_a_condition():
    assert errors(HEAD + job('a (if "keychain.token == 1") b')) == ["J0703"]


# ---- globals


def test_a_global_that_nothing_writes_is_a_note():
    (found,) = problems(warn("{{ global.total }}"))
    assert (found.code, found.severity.value) == ("J0705", "note")


@cases(
    "writer",
    [
        "{name: s, type: set_global, params: {values: {total: 1}}}",
        "{name: s, type: set_global, params: {values: '{{ city }}'}}",
        "{name: s, type: python, params: {code: \"globals['total'] = 1\"}}",
        "{name: s, type: noop, global_export: [total]}",
        "{name: total, type: noop}",
    ],
)
def test_a_global_that_something_may_write_is_not(writer):
    assert codes(warn("{{ global.total }}", more=f"  - {writer}\n")) == []


# ---- conditions


def test_a_condition_sees_after_variables_by_their_bare_names():
    assert codes(job('a (if "NB_LINE > 0 and NB_LINE_OUT_main == 2 and MY_OWN") b')) == []
    (found,) = problems(job('a (if "NB_LNE > 0") b'))
    assert (found.code, found.severity.value, found.label) == ("J0701", "warning", "did you mean `NB_LINE`?")


def test_the_place_of_a_mistake_in_a_condition_is_exact():
    (found,) = problems(job('a (if 1: "NB_LINE > open(3)") b'), "J0401")
    assert (found.position.line, found.position.column, found.position.end_column) == (8, 25, 29)
    assert found.message == "BAD_CONDITION: there is no function `open`"


def test_a_condition_that_never_changes_is_warned_of():
    assert codes(job('a (if "1 > 2") b')) == ["E0108"]
    assert codes(job('a (if "true") b')) == []


def test_the_condition_of_a_while_is_a_condition():
    text = job("w (iterate) a", types={"w": "iterate_while"}, w={"while": "global.n.items()"})
    assert "J0401" in errors(text)
    assert errors(job("w (iterate) a", types={"w": "iterate_while"}, w={"while": "{{ iteration.index < 3 }}"})) == []


def test_values_in_the_text_of_a_shell_command_are_to_be_quoted():
    job = HEAD + 'components:\n  - { name: count, type: shell, params: { command: "wc VALUE" } }\n'
    assert codes(job.replace("VALUE", "{{ city }}")).count("J0721") == 1
    assert codes(job.replace("VALUE", "{{ city | quote }}")).count("J0721") == 0
