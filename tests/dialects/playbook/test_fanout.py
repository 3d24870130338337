"""Fan-out in the words of a playbook: where it is said, who is heard, and what it comes to in the net."""

from __future__ import annotations

import pytest

from penstock.dialects.playbook.plan import plan
from penstock.dialects.problems import Severity
from penstock.kernel.net import Emit, FailureMode, Fan, Fanout
from tests.cases import cases
from tests.dialects.playbook.support import (
    HEAD,
    WORKLOAD,
    codes,
    errors,
    net_of,
    node_of,
    place_within_steps,
    problems,
    steps,
)
from tests.dialects.playbook.test_pictures import complaints

LOOP = "  loop: { in: [1, 2], iterator: n }\n  tool: { kind: noop }\n"


def document(step: str = "", executor: str = "", loop: str = LOOP) -> str:
    head = HEAD + WORKLOAD + (f"executor: {{ spec: {executor} }}\n" if executor else "")
    return steps(f"- step: start\n{f'  spec: {step}' if step else '  desc: plain'}\n{loop}", head)


def fan(step: str = "", executor: str = "", loop: str = LOOP) -> Fan:
    found = node_of(document(step, executor, loop)).fan
    assert found is not None
    return found


def fanout(step: str = "", executor: str = "", loop: str = LOOP) -> Fanout:
    found = fan(step, executor, loop).fanout
    assert found is not None
    return found


@pytest.mark.clause("F1.1")
@cases(
    "step, executor, is_fanned_out",
    [
        ("", "", False),
        ("", "{ loop_mode: fanout }", True),
        ("{ loop_mode: fanout }", "", True),
        ("{ loop_mode: local }", "{ loop_mode: fanout }", False),
        ("{ loop_mode: fanout }", "{ loop_mode: local }", True),
    ],
)
def test_the_step_says_where_its_loop_runs_and_otherwise_the_executor(step, executor, is_fanned_out):
    assert (fan(step, executor).fanout is not None) is is_fanned_out


def looping(spec: str) -> str:
    return f"  loop: {{ in: [1, 2], iterator: n, spec: {spec} }}\n  tool: {{ kind: noop }}\n"


@pytest.mark.clause("F1.1")
def test_the_spec_of_the_loop_says_it_too_and_is_nearest():
    assert fan(loop=looping("{ loop_mode: fanout }")).fanout is not None
    assert fan("{ loop_mode: local }", loop=looping("{ loop_mode: fanout }")).fanout is not None
    assert fan("{ loop_mode: fanout }", loop=looping("{ loop_mode: local }")).fanout is None
    loop = looping("{ loop_mode: fanout, fanout: { max_shards: 7 }, fanout.allow_partial: true }")
    found = fanout("{ fanout: { fail_fast: true, max_shards: 9, range_size: 3 } }", loop=loop)
    assert (found.max_shards, found.range_size, found.allow_partial, found.fail_fast) == (7, 3, True, False)
    assert node_of(document(loop=loop)).tasks[0].spec == {}


def test_what_is_wrong_about_fan_out_in_the_spec_of_a_loop_is_told():
    assert codes(document(loop=looping("{ loop_mode: fan }"))) == ["P0106"]
    assert errors(document(loop=looping("{ loop_mode: fanout, fanout: { max_shard: 7 } }"))) == ["P0102"]


@pytest.mark.clause("F1.1")
@cases(
    "spelling",
    [
        "{ loop_mode: fanout, fanout: { allow_partial: true, max_shards: 7 } }",
        "{ loop_mode: fanout, policy: { fanout: { allow_partial: true, max_shards: 7 } } }",
        "{ loop_mode: fanout, fanout.allow_partial: true, fanout.max_shards: 7 }",
        "{ loop_mode: fanout, policy: { fanout.allow_partial: true, fanout.max_shards: 7 } }",
        "{ loop_mode: fanout, fanout: { allow_partial: true }, policy: { fanout.max_shards: 7 } }",
    ],
)
def test_the_settings_may_stand_in_spec_or_policy_whole_or_one_by_one_on_step_or_executor(spelling):
    expected = Fanout(fail_fast=False, allow_partial=True, max_shards=7)
    assert fanout(step=spelling) == fanout(executor=spelling) == expected
    assert codes(document(spelling)) == codes(document(executor=spelling)) == []
    assert complaints(document(spelling)) == complaints(document(executor=spelling)) == []


@pytest.mark.clause("F7.1")
def test_every_setting_reaches_the_net():
    assert fanout(
        "{ loop_mode: fanout, fanout: { fail_fast: false, allow_partial: true, max_job_retries: 2, max_shards: 10, "
        "max_concurrent: 3, queue_ttl_s: 4.5, lease_s: 6, range_size: 7, emit: per_item } }"
    ) == Fanout(
        fail_fast=False,
        allow_partial=True,
        retries=2,
        losses=2,
        max_shards=10,
        max_concurrent=3,
        queue_ttl_s=4.5,
        lease_s=6.0,
        range_size=7,
        emit=Emit.PER_ITEM,
    )
    assert fanout("{ loop_mode: fanout, fanout.max_concurrent_shards: 5 }").max_concurrent == 5


@pytest.mark.clause("F7.3")
def test_a_step_goes_before_the_executor_key_by_key():
    executor = "{ loop_mode: fanout, fanout: { max_shards: 10, range_size: 5, fail_fast: true } }"
    assert fanout("{ fanout: { range_size: 2 } }", executor) == Fanout(max_shards=10, range_size=2)
    # Another word for the opposite undoes the executor's too.
    assert fanout("{ fanout: { allow_partial: true } }", executor).allow_partial
    assert not fanout("{ fanout: { allow_partial: true } }", executor).fail_fast
    partial = "{ loop_mode: fanout, fanout: { allow_partial: true } }"
    assert not fanout("{ fanout: { fail_fast: true } }", partial).allow_partial


@pytest.mark.clause("F7.3")
@cases(
    "mode, said, fail_fast, allow_partial",
    [
        ("fail_fast", "", True, False),
        ("best_effort", "", False, True),
        ("fail_fast", "allow_partial: true", False, True),
        ("fail_fast", "fail_fast: false", False, False),
        ("best_effort", "fail_fast: true", True, False),
        ("best_effort", "allow_partial: false", False, False),
    ],
)
def test_what_is_not_said_follows_from_the_loops_failure_mode(mode, said, fail_fast, allow_partial):
    found = fanout(f"{{ loop_mode: fanout, fanout: {{ {said} }}, policy: {{ failure: {{ mode: {mode} }} }} }}")
    assert (found.fail_fast, found.allow_partial) == (fail_fast, allow_partial)


def test_retries_are_of_failures_only_when_asked_for_and_of_losses_otherwise_too():
    assert (fanout("{ loop_mode: fanout }").retries, fanout("{ loop_mode: fanout }").losses) == (0, 3)
    assert fanout("{ loop_mode: fanout, fanout.max_job_retries: 0 }").losses == 0


@cases(
    "spec, expected",
    [
        ("{ fanout: { fail_fast: true, allow_partial: true } }", ["P0608"]),
        ("{ fanout: { fail_fast: true }, policy: { fanout.allow_partial: true } }", ["P0608"]),
        ("{ fanout: { max_shards: -1 } }", ["P0107"]),
        ("{ fanout: { max_concurrent: 0 } }", ["P0107"]),
        ("{ fanout: { max_job_retries: -1 } }", ["P0107"]),
        ("{ fanout: { queue_ttl_s: 0 } }", ["P0107"]),
        ("{ fanout: { lease_s: soon } }", ["P0101"]),
        ("{ fanout: { range_size: 1.5 } }", ["P0101"]),
        ("{ fanout: { fail_fast: 1 } }", ["P0101"]),
        ("{ fanout: { emit: all } }", ["P0106"]),
        ("{ fanout: { fail_fats: true } }", ["P0102"]),
        ("{ fanout.fail_fats: true }", ["P0102"]),
        ("{ policy: { fanout.fail_fats: true } }", ["P0102"]),
        ("{ fanout: yes }", ["P0101"]),
        ("{ fanout: { max_concurrent: 1, max_concurrent_shards: 2 } }", ["P0108"]),
        ("{ fanout: { max_shards: 1 }, policy: { fanout: { max_shards: 2 } } }", ["P0108"]),
        ("{ fanout: { reducers: { total: average } } }", ["P0610"]),
        ("{ fanout: { reducers: sum } }", ["P0101"]),
        ("{ reducers: [total] }", ["P0101"]),
        ("{ pool: 5 }", ["P0101"]),
        ("{ pool: ' ' }", ["P0101"]),
        ("{ pool: [a] }", ["P0101"]),
        ("{ concurrency: 4 }", ["P0101"]),
        ("{ concurrency: { warehouse: 0 } }", ["P0107"]),
        ("{ concurrency: { warehouse: many } }", ["P0101"]),
        ("{ concurrency: { warehouse: } }", ["P0101"]),
        ("{ concurrency: { warehouse: 2147483648 } }", ["P0107"]),
        ("{ concurrency: { '': 1 } }", ["P0101"]),
        ("{ needs: [gpu, ''] }", ["P0101"]),
        ("{ needs: { gpu: 1 } }", ["P0101"]),
        ("{ policy: { lifecycle: { stall_s: 0 } } }", ["P0107"]),
        ("{ policy: { lifecycle: { stall_s: 1.0e+300 } } }", ["P0107"]),
    ],
)
def test_what_makes_no_sense_is_refused(spec, expected):
    assert codes(document(spec)) == expected


def test_a_misspelt_setting_is_pointed_at_with_the_word_that_was_meant():
    (problem,) = problems(document("{ policy: { fanout.fail_fats: true } }"))
    assert place_within_steps(problem) == (2, 21)
    assert problem.label == "did you mean `fail_fast`?"
    (problem,) = problems(document("{ fanout: { batch_size: 100 } }"))
    assert problem.label == "did you mean `range_size`?"


def test_a_pool_and_limits_shared_by_name_stay_in_the_steps_spec_and_out_of_the_tools():
    node = node_of(
        document("{ pool: gpu, concurrency: { warehouse: 4 }, loop_mode: fanout, fanout: { max_shards: 3 } }")
    )
    assert node.spec["pool"] == "gpu"
    assert node.spec["concurrency"] == {"warehouse": 4}
    assert set(node.tasks[0].spec) == {"pool"}
    assert net_of(document(executor="{ pool: gpu }")).executor["spec"] == {"pool": "gpu"}


def test_a_mapping_as_pool_is_a_knob_of_the_sql_tools():
    assert codes(document("{ pool: { max_size: 4 } }")) == []
    assert node_of(document("{ pool: { max_size: 4 } }")).tasks[0].spec == {"pool": {"max_size": 4}}


@pytest.mark.parametrize("spec", ["{ loop_mode: fanout }", "{ fanout: { max_shards: 3 } }"])
def test_a_fan_out_without_a_loop_is_warned_of(spec):
    assert codes(document(spec, loop="  tool: { kind: noop }\n")) == ["P0609"]
    # As a default for all steps it is nobody's mistake.
    assert codes(document(executor=spec, loop="  tool: { kind: noop }\n")) == []


@pytest.mark.parametrize("word", ["loop_mode: fanout", "fanout: { fail_fast: true }", "pool: gpu"])
def test_a_setting_beside_spec_is_shown_where_it_belongs(word):
    (problem,) = problems(steps(f"- step: start\n  {word}\n{LOOP}"))
    assert problem.code == "P0213"
    assert "spec:" in problem.rewrite


def test_a_loop_whose_tasks_run_playbooks_runs_on_one_worker_and_fails_as_it_was_asked_to():
    loop = "  loop: { in: [1], iterator: n }\n  tool: { kind: playbook, path: other }\n"
    (problem,) = problems(document("{ loop_mode: fanout }", loop=loop))
    assert (problem.code, problem.severity) == ("P0606", Severity.WARNING)
    (problem,) = problems(document(executor="{ loop_mode: fanout }", loop=loop))
    assert (problem.code, problem.severity) == ("P0606", Severity.NOTE)
    found = fan("{ loop_mode: fanout }", loop=loop)
    assert (found.fanout, found.failure) == (None, FailureMode.FAIL_FAST)
    assert fan("{ loop_mode: fanout, fanout.allow_partial: true }", loop=loop).failure is FailureMode.BEST_EFFORT


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize(
    "task",
    [
        "{ kind: noop, set: { ctx.last: 1 } }",
        "{ kind: noop, spec: { policy: { rules: [{ else: { do: continue, set_ctx: { last: 1 } } }] } } }",
    ],
)
def test_a_fanned_out_loop_that_writes_ctx_is_warned_of(task):
    loop = f"  loop: {{ in: [1], iterator: n }}\n  tool: {task}\n"
    assert codes(document("{ loop_mode: fanout }", loop=loop)) == ["P0614"]
    assert codes(document("{ loop_mode: local }", loop=loop)) == []


def test_appending_to_ctx_is_safe_anywhere():
    rules = "{ policy: { rules: [{ else: { do: continue, append_ctx: { seen: 1 } } }] } }"
    loop = f"  loop: {{ in: [1], iterator: n }}\n  tool: {{ kind: noop, spec: {rules} }}\n"
    assert codes(document("{ loop_mode: fanout }", loop=loop)) == []


def test_the_plan_shows_how_a_loop_is_fanned_out():
    shown = plan(net_of(document("{ loop_mode: fanout, fanout: { range_size: 3, max_job_retries: 1 } }")))
    assert shown["steps"][0]["loop"]["fanout"] == {
        "fail_fast": True,
        "allow_partial": False,
        "max_shards": 1_000_000_000,
        "range_size": 3,
        "emit": "summary",
        "max_job_retries": 1,
    }


# ---- names


def test_what_came_together_is_seen_in_the_arcs_of_a_loop_and_nowhere_else():
    arcs = "  next: { arcs: [{ step: end, when: \"{{ fanin.status == 'partial' }}\", args: { n: '{{ fanin.failed }}' } }] }\n"
    assert codes(steps(f"- step: start\n{LOOP}{arcs}- step: end\n")) == []
    (problem,) = problems(
        steps(f"- step: start\n{arcs.replace('status', 'total').replace(', args', ', desc: x, args')}- step: end\n"),
        "P0703",
    )[:1]
    assert "arcs of a step that has a loop" in problem.hint
    assert "P0703" in codes(steps("- step: start\n  tool: { kind: noop, value: '{{ fanin.total }}' }\n"))


def test_a_part_of_it_that_does_not_exist_is_pointed_out():
    arcs = "  next: { arcs: [{ step: end, when: '{{ fanin.succeded > 0 }}' }] }\n"
    (problem,) = problems(steps(f"- step: start\n{LOOP}{arcs}- step: end\n"))
    assert (problem.code, problem.label) == ("P0702", "did you mean `succeeded`?")


def test_an_element_knows_its_names_inside_a_loop_only():
    task = "  tool: { kind: noop, value: '{{ iter.loop_id }} {{ iter.shard_id }} {{ iter.iter_key }}' }\n"
    assert codes(steps(f"- step: start\n  loop: {{ in: [1], iterator: n }}\n{task}")) == []
    assert set(codes(steps(f"- step: start\n{task}"))) == {"P0702"}


@cases("name", ["index", "parent", "loop_id", "shard_id", "iter_key"])
def test_an_iterator_cannot_take_one_of_these_names(name):
    assert errors(steps(f"- step: start\n  loop: {{ in: [1], iterator: {name} }}\n  tool: {{ kind: noop }}\n")) == [
        "P0602"
    ]
