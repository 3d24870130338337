"""What the check says of documents that would run, and do something else than their author thinks."""

from __future__ import annotations

from penstock.dialects.playbook import compile_text
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.dialects.playbook.support import codes, problems, steps, tasks


def fork(report: str = "", *, mode: str = "inclusive", more: str = "") -> str:
    return steps(
        f"- step: start\n  next: {{spec: {{mode: {mode}}}, arcs: [{{step: left}}, {{step: right}}]}}\n"
        "- step: left\n  next: {arcs: [{step: report}]}\n"
        "- step: right\n  next: {arcs: [{step: report}]}\n"
        f"- step: report\n{report}{more}"
    )


def test_a_fork_that_meets_again_is_told_with_the_join_that_may_be_meant():
    (problem,) = problems(fork(), "P0812")
    assert problem.message == "`report` runs once for each token: `start` forks, and `left`, `right` lead here again"
    assert problem.rewrite == "spec:\n  join: [left, right]"


@cases(
    "text",
    [
        fork("  spec: {join: [left, right]}\n"),
        fork("  spec: {join: [left, right]}\n  next: {arcs: [{step: after}]}\n", more="- step: after\n"),
        fork(mode="exclusive").replace("{step: left}", "{step: left, when: '{{ workload.go }}'}"),
    ],
)
def test_a_fork_that_is_joined_or_takes_one_way_is_not_told(text):
    assert "P0812" not in codes(text)


def test_only_the_place_where_they_meet_is_told_and_not_what_comes_behind():
    found = problems(fork("  next: {arcs: [{step: after}]}\n", more="- step: after\n"), "P0812")
    assert [problem.message.split("`")[1] for problem in found] == ["report"]


def test_three_branches_that_meet_are_told_once_with_all_of_them():
    text = (
        "- step: start\n  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}\n"
        + "".join(f"- step: {name}\n  next: {{arcs: [{{step: report}}]}}\n" for name in "abc")
        + "- step: report\n"
    )
    (problem,) = problems(steps(text), "P0812")
    assert problem.rewrite == "spec:\n  join: [a, b, c]"


def test_an_arc_that_leads_around_a_branch_meets_it_at_its_end():
    text = (
        "- step: start\n  next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: report}]}\n"
        "- step: left\n  next: {arcs: [{step: report}]}\n- step: report\n"
    )
    (problem,) = problems(steps(text), "P0812")
    assert problem.rewrite == "spec:\n  join: [start, left]"


def test_an_end_that_no_arc_leads_to_is_told_with_the_steps_that_could():
    (problem,) = problems(steps("- step: start\n- step: end\n"), "P0801")
    assert problem.hint == "no engine goes to `end` by itself: give an arc to `start`"
    assert problem.rewrite == "next:\n  arcs:\n    - step: end"


RETRY = "- name: a\n  kind: noop\n  spec: {policy: {rules: [{else: {then: {do: retry, attempts: 2, %s}}}]}}\n"


@cases(
    "words, is_told",
    [
        ("backoff: none, delay: 5", True),
        ("backoff: none, delay: '{{ workload.x }}'", True),
        ("backoff: none, delay: 0", False),
        ("backoff: none", False),
        ("delay: 5", False),
        ("backoff: fixed, delay: 5", False),
        ("backoff: linear, delay: 5", False),
    ],
)
def test_a_backoff_of_none_with_a_delay_is_told(words, is_told):
    assert ("P0418" in codes(tasks(RETRY % words))) is is_told


@cases(
    "sql, is_told",
    [
        ("insert into t values ({{ execution_id }})", True),
        ("select {{execution_id}}, 'x'", True),
        ("select {{ execution.id }}", True),
        ("select '{{ execution_id }}'", False),
        ("select 'run-{{ execution_id }}'", False),
        ("select :run", False),
    ],
)
def test_the_id_of_a_run_without_quotes_in_sql_is_told(sql, is_told):
    text = tasks(f'- name: a\n  kind: postgres\n  auth: pg\n  command: "{sql}"\n')
    assert ("P0623" in codes(text)) is is_told


READS = """
    - step: fetch
      tool:
        - name: ask
          kind: http
          url: http://localhost
          set: {ctx.a: "{{ output.%s }}"}
      next: {arcs: [{step: each, when: "{{ fetch.%s == 1 }}"}]}
    - step: each
      loop: {in: [1], iterator: x}
      tool: {kind: sqlite, path: x.db, command: select 1}
      next: {arcs: [{step: last, when: "{{ each.%s == 1 }}"}]}
    - step: last
      tool: {kind: python, code: result = 1}
      next: {arcs: [{step: end, when: "{{ last.anything }}"}]}
    - step: end
"""


def fields_missed(*fields: str) -> list[str]:
    found = compile_text(steps(READS % fields), "test.yaml", Registry()).problems
    return [problem.message for problem in found if problem.code == "P0710"]


@cases(
    "fields, missed",
    [
        (("response", "statuscode", "total"), ["response", "statuscode"]),
        (("body.x", "status_code", "stats.total"), []),
        (("data.status", "data.response", "results"), []),
        (("http.status", "headers.etag", "done"), []),
        (("ok", "ok.x", "rows"), ["ok", "ok"]),
    ],
)
def test_a_field_that_no_result_of_the_tool_has_is_told(fields, missed):
    assert fields_missed(*fields) == [f"the result has no `{name}`" for name in missed]


def test_what_has_the_name_of_a_step_and_is_nearer_is_not_looked_into():
    text = steps(
        "- step: fetch\n  tool: {kind: http, url: http://localhost, set: {ctx.fetch: {mine: 1}}}\n"
        "  next: {arcs: [{step: b, when: '{{ fetch.mine == 1 }}'}]}\n- step: b\n"
    )
    assert "P0710" not in [one.code for one in compile_text(text, "test.yaml", Registry()).problems]
