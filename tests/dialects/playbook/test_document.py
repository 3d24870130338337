"""The root of a playbook, and what comes out of compiling as a whole."""

import pytest

from penstock.dialects.playbook import compile_file
from penstock.dialects.problems import Severity
from penstock.kernel.net import Durability, FailureMode, Limits
from tests.cases import cases
from tests.dialects.playbook.support import CATALOG, HEAD, codes, compiled, errors, net_of, problems, steps

STEP = "workflow:\n  - step: start\n    tool: { kind: noop }\n"


@pytest.mark.clause("P1.1")
def test_a_playbook_has_eight_sections_and_no_others():
    document = HEAD + STEP + "keychain: []\nexecutor: {}\nworkload: {}\nworkbook: []\n"
    assert codes(document) == []
    (problem,) = problems(document + "workflows: []\n")
    assert (problem.code, problem.position.line, problem.position.column) == ("P0002", 11, 1)
    assert problem.label == "did you mean `workflow`?"
    assert "`keychain`" in problem.hint


@pytest.mark.clause("P1.1")
def test_vars_at_the_root_are_refused_and_the_rewrite_is_a_workload():
    (problem,) = problems(HEAD + "vars:\n  city: Oslo\n" + STEP)
    assert (problem.code, problem.position.line, problem.position.column) == ("P0201", 4, 1)
    assert problem.rewrite == "workload:\n  city: Oslo"
    assert "set_ctx" in problem.hint


def test_a_playbook_may_leave_its_workload_out():
    assert net_of(HEAD + STEP).workload == {}


@pytest.mark.parametrize("version", ["noetl.io/v2", "penstock/v1"])
def test_known_versions_are_read_without_a_word(version):
    assert codes(HEAD.replace("noetl.io/v2", version) + STEP) == []


@cases(
    "head, expected",
    [
        ("kind: Playbook\nmetadata: { name: x }\n", [("P0003", Severity.WARNING)]),
        ("apiVersion: noetl.io/v1\nkind: Playbook\nmetadata: { name: x }\n", [("P0004", Severity.ERROR)]),
        ("apiVersion: [a]\nkind: Playbook\nmetadata: { name: x }\n", [("P0004", Severity.ERROR)]),
        ("apiVersion: noetl.io/v2\nmetadata: { name: x }\n", [("P0005", Severity.WARNING)]),
        ("apiVersion: noetl.io/v2\nkind: Workflow\nmetadata: { name: x }\n", [("P0005", Severity.ERROR)]),
        ("apiVersion: noetl.io/v2\nkind: Playbook\n", [("P0008", Severity.NOTE)]),
    ],
)
def test_what_is_wrong_with_a_head_is_said_and_the_rest_is_still_read(head, expected):
    assert [(problem.code, problem.severity) for problem in problems(head + STEP)] == expected


@pytest.mark.parametrize("text", ["components: []\n", "kind: Job\n", "kind: Joblet\nworkflow: []\n"])
def test_a_job_is_recognised_and_nothing_else_is_said(text):
    assert codes(text) == ["P0006"]


@cases(
    "text, expected",
    [
        ("[1, 2]\n", ["P0001"]),
        ("just words\n", ["P0001"]),
        ("kind: Deployment\nmetadata: { name: x }\nspec: {}\n", ["P0005"]),
        (HEAD, ["P0007"]),
        (HEAD + "workflow: []\n", ["P0007"]),
        (HEAD + "workflow:\n", ["P0007"]),
        (HEAD + "workflow: { start: 1 }\n", ["P0101"]),
        (HEAD + "workflow: [start]\n", ["P0101"]),
        (HEAD + "workload: [1]\n" + STEP, ["P0101"]),
        (HEAD.replace("{ name: test }", "[x]") + STEP, ["P0008", "P0101"]),
    ],
)
def test_a_document_that_is_no_playbook_says_what_would_be_right(text, expected):
    result = compiled(text)
    assert result.net is None
    assert sorted(problem.code for problem in result.problems) == expected


@cases("text", ["", "# nothing\n", "a: [1\n", "\x00\x01", "a: b: c\n"])
def test_a_text_that_is_not_yaml_gives_the_loaders_problems_and_no_net(text):
    result = compiled(text)
    assert result.net is None
    assert result.problems
    assert all(problem.code.startswith("Y") for problem in result.problems)


def test_all_problems_of_a_file_come_out_at_once_in_the_order_of_their_places():
    document = steps(
        """
        - step: start
          when: "{{ workload.go }}"
          tool:
            - { name: a, kind: htp }
            - { name: a, kind: noop }
          next: [end]
        - step: end
          lop: {}
        - step: end
          next: { arcs: [{ step: nowhere }] }
        """
    )
    assert errors(document) == ["P0202", "P0504", "P0510", "P0207", "P0102", "P0302"]
    places = [(problem.position.line, problem.position.column) for problem in problems(document)]
    assert places == sorted(places)


def test_every_problem_says_where_in_the_document_it_is():
    (problem,) = problems(steps("- step: start\n  tool: { kind: htp }\n"))
    assert problem.path == "workflow[0].tool.kind"


def test_strict_turns_warnings_into_errors_and_leaves_notes():
    document = steps("- step: start\n  tool: { kind: noop }\n- step: lonely\n").replace(
        "metadata: { name: test }\n", ""
    )
    assert compiled(document).net is not None
    strict = compiled(document, strict=True)
    assert strict.net is None
    assert [(problem.code, problem.severity) for problem in strict.problems] == [
        ("P0008", Severity.NOTE),
        ("P0801", Severity.ERROR),
    ]


def test_a_playbook_without_a_name_is_called_like_its_file(tmp_path):
    path = tmp_path / "orders.yaml"
    path.write_text("apiVersion: noetl.io/v2\nkind: Playbook\n" + STEP)
    net = compile_file(path, CATALOG).net
    assert net is not None
    assert net.name == "orders"


def test_a_file_that_does_not_exist_is_a_problem_and_not_an_exception(tmp_path):
    result = compile_file(tmp_path / "missing.yaml", CATALOG)
    assert result.net is None
    assert [problem.code for problem in result.problems] == ["Y0001"]


def test_the_entry_is_the_step_named_else_start_else_the_first():
    two = "- step: a\n  next: { arcs: [{ step: b }] }\n- step: b\n  next: { arcs: [{ step: a, when: 'ctx.x is defined' }] }\n"
    assert net_of(steps(two)).entry == "a"
    assert net_of(steps(two.replace("step: b", "step: start"))).entry == "start"
    assert net_of(HEAD + "executor: { spec: { entry_step: b } }\n" + steps(two, head="")).entry == "b"
    assert errors(HEAD + "executor: { spec: { entry_step: c } }\n" + steps(two, head="")) == ["P0305"]


def test_the_executor_sets_limits_failure_mode_and_durability():
    executor = """\
executor:
  kind: distributed
  profile: auto
  spec:
    durability: strict
    policy:
      results: { reference_first: true }
      limits: { max_payload_bytes: 10, max_step_visits: 20, max_task_runs: 30 }
      failure: { mode: fail_fast }
"""
    net = net_of(HEAD + executor + STEP)
    assert net.limits == Limits(10, 20, 30)
    assert net.failure is FailureMode.FAIL_FAST
    assert net.durability is Durability.STRICT
    assert net.executor["profile"] == "auto"
    assert net_of(HEAD + STEP).limits == Limits()
    assert net_of(HEAD + STEP).failure is FailureMode.BEST_EFFORT


def test_durability_may_also_stand_in_the_policy():
    assert (
        net_of(HEAD + "executor: { spec: { policy: { durability: strict } } }\n" + STEP).durability is Durability.STRICT
    )


@cases(
    "executor, expected",
    [
        ("{ spec: { durability: strickt } }", ["P0106"]),
        ("{ spec: { policy: { limits: { max_step_visits: 0 } } } }", ["P0107"]),
        ("{ spec: { policy: { limits: { max_step_visits: many } } } }", ["P0101"]),
        ("{ spec: { policy: { limits: { max_visits: 1 } } } }", ["P0102"]),
        ("{ spec: { policy: { failure: { mode: fast } } } }", ["P0106"]),
        ("{ spec: { loop_mode: fan } }", ["P0106"]),
        ("{ spec: { fanout: { fail_fast: often } } }", ["P0101"]),
        ("{ spec: { policy: { fanout.max_shards: 0 } } }", ["P0107"]),
        ("{ loop_mode: fanout }", ["P0213"]),
        ("{ policy: { limits: { max_step_visits: 1 } } }", ["P0213"]),
        ("{ spec: { polcy: {} } }", ["P0103"]),
        ("{ spec: { policy: { budget: 1 } } }", ["P0104"]),
        ("{ spec: { pool: '{{ workload.pool }}' } }", ["P0109"]),
        ("fast", ["P0101"]),
    ],
)
def test_what_an_executor_cannot_say_is_reported(executor, expected):
    assert codes(HEAD + f"executor: {executor}\n" + STEP) == expected


def test_the_digest_depends_on_the_meaning_and_not_on_the_text():
    one = net_of(HEAD + STEP)
    other = net_of("# a comment\n" + HEAD + STEP.replace("{ kind: noop }", "\n      kind: noop"))
    changed = net_of(HEAD + STEP.replace("noop", "noop, value: 1"))
    assert one.digest == other.digest
    assert len(one.digest) == 64
    assert one.digest != changed.digest
