"""What becomes of a task: policies, retries, writes and the order of a pipeline: sections 5 and 6 of the step specification."""

from __future__ import annotations

import pytest

from tests.cases import cases
from tests.rules.notation import NO_MATCH, Case, begun, failed, given, ok, resumed, rule, steps


def pipeline(tasks: str = "fetch parse save") -> Case:
    return given(steps("start -> help on failure", tasks={"start": tasks})).then(begun())


def ends(case: Case, times: int = 1, **more: object) -> list[str]:
    """How the tasks at the cursor end, one after another."""
    return [case.runs_task("start@0", **more)[1].removeprefix("task.done start@0/") for _ in range(times)]  # type: ignore[arg-type]


@pytest.mark.clause("P5.3", "P6.2")
def test_tasks_run_in_order_one_after_another() -> None:
    case = pipeline()
    assert case.runs_task("start@0") == [
        "task.started start@0/fetch#1, attempt 1",
        "task.done start@0/fetch#1: continue",
    ]
    assert ends(case, 2) == ["parse#1: continue", "save#1: continue"]


@pytest.mark.clause("P5.3", "P1.2")
def test_a_pipeline_starts_no_step_before_its_run_has_ended() -> None:
    case = pipeline("one two")
    ends(case, 2)
    assert [one for one in case.lines() if one.startswith(("token", "next"))] == ["token.created start@0"]


@pytest.mark.clause("P6.2")
def test_without_a_policy_ok_goes_on_and_an_error_fails() -> None:
    assert ends(pipeline()) == ["fetch#1: continue"]
    case = pipeline()
    assert ends(case, fails="no") == ["fetch#1: fail"]
    assert case.said("task.done start@0").error == {"kind": "x", "message": "no"}


@pytest.mark.clause("P6.2")
@pytest.mark.parametrize("fails", [None, "no"])
def test_rules_of_which_none_matches_go_on_whatever_the_outcome(fails: str | None) -> None:
    assert ends(pipeline(), fails=fails, rule=NO_MATCH) == ["fetch#1: continue"]


@pytest.mark.clause("P6.1")
@cases(
    "do, to, follows",
    [
        ("continue", None, "save#1"),
        ("jump", "fetch", "fetch#2"),
        ("retry", None, "parse#2"),
        ("break", None, "the end: done"),
        ("fail", None, "the end: failed"),
    ],
)
def test_each_directive_does_what_it_says(do: str, to: str | None, follows: str) -> None:
    case = pipeline()
    ends(case)
    assert ends(case, fails="no", rule=rule(do, to)) == [f"parse#1: {do}"]
    if follows.startswith("the end"):
        assert case.ended("start@0") == follows.removeprefix("the end: ")
    else:
        assert ends(case)[0].startswith(follows)


@pytest.mark.clause("P6.1")
def test_continue_and_jump_after_the_last_task() -> None:
    case = pipeline("fetch save")
    ends(case)
    assert ends(case, rule=rule("jump", "fetch")) == ["save#1: jump"]
    assert case.ended("start@0") is None
    assert ends(case, 2) == ["fetch#2: continue", "save#2: continue"]
    assert case.ended("start@0") == "done"


@pytest.mark.clause("P6.1")
def test_a_rule_that_says_fail_after_an_ok_outcome_names_the_rule() -> None:
    case = pipeline()
    ends(case, rule=rule("fail"))
    assert case.said("task.done start@0").error["message"] == "the task ended ok and its policy (rule 1) says fail"


@pytest.mark.clause("P6.3", "P6.6")
def test_retries_are_runs_of_their_own_as_many_as_there_are_attempts_and_then_the_last_error_counts() -> None:
    case = pipeline()
    again = rule("retry", attempts=3)
    assert case.runs_task("start@0", "one", again) == [
        "task.started start@0/fetch#1, attempt 1",
        "task.done start@0/fetch#1: retry",
    ]
    assert case.runs_task("start@0", "two", again)[0] == "task.started start@0/fetch#2, attempt 2"
    assert case.runs_task("start@0", "three", again) == [
        "task.started start@0/fetch#3, attempt 3",
        "task.done start@0/fetch#3: fail",
    ]
    assert case.said("task.done start@0").error["message"] == "three"


@pytest.mark.clause("P6.3")
@pytest.mark.parametrize(
    ("backoff", "delays"),
    [("none", [2, 2, 2, 2]), ("linear", [2, 4, 6, 8]), ("exponential", [2, 4, 8, 10])],
)
def test_the_delay_grows_as_the_backoff_says_up_to_its_cap(backoff: str, delays: list[int]) -> None:
    again = rule("retry", attempts=9, backoff=backoff, delay=2.0, max_delay=10.0)
    assert ends(pipeline(), 4, fails="no", rule=again) == [
        f"fetch#{number}: retry in {delay} s" for number, delay in enumerate(delays, 1)
    ]


@pytest.mark.clause("P6.3")
def test_a_retry_after_an_ok_outcome_that_is_used_up_says_so() -> None:
    case = pipeline()
    assert ends(case, 2, rule=rule("retry", attempts=2)) == ["fetch#1: retry", "fetch#2: fail"]
    assert case.said("task.done start@0").error["kind"] == "retries_exhausted"


@pytest.mark.clause("P6.3")
def test_a_task_that_is_jumped_to_has_all_its_attempts_again() -> None:
    case = pipeline("fetch save")
    again = rule("retry", attempts=2)
    ends(case, fails="no", rule=again)
    ends(case)
    ends(case, rule=rule("jump", "fetch"))
    assert case.runs_task("start@0", "no", again)[0] == "task.started start@0/fetch#3, attempt 1"


@pytest.mark.clause("P2.4")
def test_results_are_found_by_the_names_of_their_tasks_and_the_last_one_as_the_previous() -> None:
    case = pipeline()
    ends(case, 2)
    assert (case.sees("start@0")["results"], case.sees("start@0")["prev"]) == (
        {"fetch": "fetch", "parse": "parse"},
        "parse",
    )


@pytest.mark.clause("P2.4")
def test_after_an_error_that_was_continued_there_is_no_previous_result() -> None:
    case = pipeline()
    ends(case)
    ends(case, rule=rule("jump", "fetch"))
    ends(case, fails="no", rule=rule("continue"))
    assert (case.sees("start@0")["results"], case.sees("start@0")["prev"]) == ({"parse": "parse"}, None)


@pytest.mark.clause("P2.4")
def test_a_retry_finds_the_previous_result_as_the_first_attempt_found_it() -> None:
    case = pipeline()
    ends(case)
    ends(case, fails="no", rule=rule("retry"))
    assert case.sees("start@0")["prev"] == "fetch"


@pytest.mark.clause("P6.4")
@pytest.mark.parametrize("do", ["continue", "retry", "jump"])
def test_writes_are_in_force_when_the_directive_acts(do: str) -> None:
    case = pipeline()
    written = {"iter": {"page": 2}, "ctx": {"seen": True, "a.b": 1}, "append": {"all": ["x"]}}
    ends(case, rule=rule(do, "fetch" if do == "jump" else None), writes=written)
    assert case.sees("start@0")["iter"] == {"page": 2}
    assert case.sees("start@0")["ctx"] == {"seen": True, "a": {"b": 1}, "all": ["x"]}


@pytest.mark.clause("P8.4", "P6.3")
def test_a_resumed_step_goes_on_at_the_task_that_failed_with_all_its_attempts_and_what_was_written() -> None:
    case = given(steps("start", tasks={"start": "fetch save"})).then(begun())
    case.task("start@0", k=1)
    ends(case, fails="no")
    case.then(failed("start@0"), resumed())
    assert (case.sees("start@1")["ctx"], case.sees("start@1")["prev"]) == ({"k": 1}, "fetch")
    assert case.runs_task("start@1")[0] == "task.started start@1/save#2, attempt 1"
    assert case.when(ok("start@1"))[-1] == "playbook.completed"
