"""Tasks against the catalog of tools."""

import pytest

from penstock.dialects.playbook import compile_text
from penstock.dialects.problems import Severity
from penstock.kernel.errors import Refused
from penstock.ports.plugins import ToolDescription
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.dialects.playbook.support import CATALOG, codes, place_within_tasks, problems, tasks


@cases(
    "task, expected",
    [
        ("kind: htp, url: x", ["P0504"]),
        ("kind: http", ["P0506"]),
        ("kind: http, url: x, ulr: y", ["P0505"]),
        ("kind: http, url: 3", ["P0507"]),
        ("kind: http, url: x, headers: [1]", ["P0507"]),
        ("kind: http, url: x, headers: text", ["P0507"]),
        ("kind: http, url: x, method: PUSH", ["P0508"]),
        ("kind: sleep, seconds: soon", ["P0507"]),
        ("kind: noop, args: [1]", ["P0509"]),
        ("kind: noop, input: text", ["P0509"]),
        ("kind: 3", ["P0101"]),
        ("kind: ", ["P0101"]),
    ],
)
def test_what_a_tool_does_not_take_is_an_error(task, expected):
    assert codes(tasks(f"- {{ name: a, {task} }}\n")) == expected


@cases(
    "task",
    [
        "kind: sleep, seconds: 1",
        "kind: sleep, seconds: 0.5",
        "kind: sleep, seconds: '{{ workload.x }}'",
        "kind: http, url: x, headers: '{{ workload.items }}'",
        "kind: http, url: x, headers: ",
        "kind: http, url: x, method: '{{ workload.city }}'",
        "kind: http, url: x, json: [1, { a: b }]",
    ],
)
def test_templates_and_values_of_the_right_type_pass(task):
    assert codes(tasks(f"- {{ name: a, {task} }}\n")) == []


def test_an_unknown_tool_is_shown_the_closest_and_what_there_is():
    (problem,) = problems(tasks("- { name: a, kind: htp }\n"))
    assert problem.label == "did you mean `http`?"
    assert "`python`" in problem.hint
    assert place_within_tasks(problem) == (1, 20)


@pytest.mark.parametrize(("kind", "word"), [("iterator", "loop"), ("secrets", "keychain"), ("bash", "shell")])
def test_kinds_that_people_expect_lead_to_what_there_is_instead(kind, word):
    (problem,) = problems(tasks(f"- {{ name: a, kind: {kind} }}\n"))
    assert f"`{word}`" in problem.hint


def test_a_missing_parameter_is_described():
    (problem,) = problems(tasks("- { name: a, kind: http }\n"))
    assert problem.message == "the tool `http` needs `url`"
    assert problem.hint == "`url`: The url."


def test_any_task_may_have_args_and_its_other_parameters_see_them():
    assert codes(tasks("- { name: a, kind: http, input: { x: 1 }, url: 'http://h/{{ x }}/{{ args.x }}' }\n")) == []
    (problem,) = problems(tasks("- { name: a, kind: http, args: { page: 1 }, url: 'http://h/{{ pag }}' }\n"))
    assert (problem.code, problem.label) == ("P0701", "did you mean `page`?")


class BrokenCatalog:
    """One of the installed tools cannot be imported."""

    def kinds(self) -> list[str]:
        return [*CATALOG.kinds(), "broken"]

    def describe(self, kind: str) -> ToolDescription | None:
        if kind == "broken":
            raise Refused("no module named `driver`", "install the driver")
        return CATALOG.describe(kind)


def test_a_tool_that_cannot_be_loaded_is_a_problem_where_it_is_used_and_nowhere_else():
    used = compile_text(
        tasks("- { name: a, kind: broken, x: 1 }\n- { name: b, kind: broken }\n"), "x.yaml", BrokenCatalog()
    )
    assert [(problem.code, problem.hint) for problem in used.problems] == [("P0514", "install the driver")]
    unused = compile_text(tasks("- { name: a, kind: noop, args: 3 }\n"), "x.yaml", BrokenCatalog())
    assert [problem.code for problem in unused.problems] == ["P0509"]


def test_python_that_cannot_be_compiled_is_an_error_at_its_line():
    text = "- name: a\n  kind: python\n  code: |\n    x = 1\n    y = = 2\n"
    (problem,) = problems(tasks(text))
    assert (problem.code, problem.severity) == ("P0618", Severity.ERROR)
    assert place_within_tasks(problem) == (5, 9)
    assert problem.message == "this Python cannot be compiled: invalid syntax"


def test_code_that_belongs_into_a_function_is_told_so():
    (problem,) = problems(tasks("- { name: a, kind: python, code: 'await x()' }\n"))
    assert problem.code == "P0618"
    assert "put it into `async def main" in problem.hint


@pytest.mark.parametrize(
    "code", ["x = 1", "return 1", "'if x: return 1'", '"x = {{ workload.n }} = ="', "'import re; re.compile(\"\\d\")'"]
)
def test_python_that_compiles_or_is_a_template_is_left_alone(code):
    assert "P0618" not in codes(tasks(f"- {{ name: a, kind: python, code: {code} }}\n"))


@cases(
    "command, found",
    [
        ("wc -l {{ workload.file }}", 1),
        ("{% for f in workload.files %}cat {{ f }}{% endfor %} {{ workload.x }}", 2),
        ("wc -l {{ workload.file | default('x') }}", 1),
        ("wc -l {{ workload.file | quote }}", 0),
        ("head -n {{ workload.n | int }} x", 0),
        ("cat {{ workload.files | map('quote') | join(' ') }}", 0),
        ("{{ '-v' if workload.loud else '' }} x", 0),
        ("[wc, '{{ workload.file }}']", 0),
    ],
)
def test_values_in_the_text_of_a_shell_command_are_to_be_quoted(command, found):
    written = command if command.startswith("[") else f'"{command}"'
    text = f"- name: a\n  kind: shell\n  command: {written}\n"
    assert codes(tasks(text)).count("P0619") == found


@cases(
    "url, label",
    [
        ("htp://x/y", "did you mean `http`?"),
        ("ftp://x/y", ""),
        ("http://x:99999/", ""),
        ("http://x:0/", ""),
        ("http:///x", ""),
    ],
)
def test_a_url_that_cannot_work_is_an_error_before_the_run(url, label):
    found = [
        problem
        for problem in problems(tasks(f"- {{ name: a, kind: http, url: '{url}' }}\n"))
        if problem.code == "P0620"
    ]
    assert [(problem.severity, problem.label) for problem in found] == [(Severity.ERROR, label)]


@pytest.mark.parametrize("url", ["http://x/y", "HTTPS://x:8443/", "{{ workload.url }}", "http://[::1]:80/"])
def test_a_url_that_may_work_is_left_alone(url):
    assert "P0620" not in codes(tasks(f"- {{ name: a, kind: http, url: '{url}' }}\n"))


@cases(
    "task, expected",
    [
        ("upsert: { table: t, rows: [], keys: [id] }", []),
        ("upsert: '{{ workload.all }}'", []),
        ("upsert: { table: t, rows: [] }", [("P0506", "`upsert` of `postgres` needs `keys`", "")]),
        (
            "upsert: { table: t, rows: [], keys: [id], colums: [a] }",
            [("P0505", "`upsert` of `postgres` has no `colums`", "did you mean `columns`?")],
        ),
        (
            "commands: [SELECT 1, { upsert: { table: t, rows: [] } }]",
            [("P0506", "`upsert` in `commands` of `postgres` needs `keys`", "")],
        ),
        ("idempotency: true", []),
        (
            "idempotency: { tabel: t }",
            [("P0505", "`idempotency` of `postgres` has no `tabel`", "did you mean `table`?")],
        ),
        ("params: { anything: 1 }", []),
    ],
)
def test_the_keys_of_a_mapping_in_a_parameter_are_those_the_tool_names(task, expected):
    text = tasks(f"- {{ name: a, kind: postgres, url: 'postgresql://h/d', command: SELECT 1, {task} }}\n")
    text = text.replace("workflow:", "workload: { all: {} }\nworkflow:", 1) if "workload:" not in text else text
    found = [one for one in compile_text(text, "p.yaml", Registry()).problems if one.code in ("P0505", "P0506")]
    assert [(one.code, one.message, one.label) for one in found] == expected
