"""run_job and playbook: what becomes of a child's end."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.data.types import UNKNOWN_COLUMNS
from penstock.tools.base import ToolFailure
from tests.components.harness import schema

from .support import failed, run


def child(result: Any) -> Any:
    """A child scope that ends like this, and remembers how it was called."""
    calls: list[tuple[Any, ...]] = []

    async def play(*arguments: Any) -> Any:
        calls.append(arguments)
        if isinstance(result, Exception):
            raise result
        return result

    play.calls = calls  # type: ignore[attr-defined]
    return play


DONE = {"status": "completed", "globals": {"n": 1}, "rows": {"load": {"main": 3}}, "outputs": {}}


def test_a_job_is_given_its_context_and_its_end_is_the_result() -> None:
    play = child(DONE)
    ran = run("run_job", {"path": "load.yaml", "context": {"country": "NL"}}, play_job=play)
    assert play.calls == [("load.yaml", {"country": "NL"}, None)]
    assert (ran.result, ran.after) == (DONE, {"CHILD_STATUS": "completed", "CHILD_EXIT_CODE": 0})
    assert ran.globals == {}


def test_the_component_fails_when_the_job_does() -> None:
    ended = {"status": "failed", "error": {"kind": "die", "message": "no orders"}, "exit_code": 7}
    failure = failed("run_job", {"path": "load.yaml"}, play_job=child(ended))
    assert (failure.kind, failure.message, failure.exit_code) == ("job", "job `load.yaml` failed: no orders", 7)


def test_without_the_check_a_failed_job_is_a_result() -> None:
    ended = {"status": "failed", "error": {"message": "no orders"}}
    ran = run("run_job", {"path": "load.yaml", "check": False}, play_job=child(ended))
    assert (ran.result, ran.after) == (ended, {"CHILD_STATUS": "failed", "CHILD_EXIT_CODE": 1})
    raised = ToolFailure("job", "job failed", status="failed", cause=None)
    ran = run("run_job", {"path": "load.yaml", "check": False}, play_job=child(raised))
    assert ran.after["CHILD_STATUS"] == "failed"


def test_a_job_that_could_not_be_started_is_a_failure_in_any_case() -> None:
    raised = ToolFailure("not_found", "there is no `load.yaml`")
    failure = failed("run_job", {"path": "load.yaml", "check": False}, play_job=child(raised))
    assert (failure.kind, failure.message) == ("not_found", "there is no `load.yaml`")


def test_a_playbook_is_given_its_workload_and_its_result_is_taken() -> None:
    play = child({"total": 3})
    params = {"path": "p.yaml", "workload": {"a": 1, "b": 1}, "args": {"b": 2}, "return_step": "sum"}
    ran = run("playbook", params, play=play, connected=[])
    assert play.calls == [("p.yaml", {"a": 1, "b": 2}, "sum")]
    assert (ran.result, ran.outputs) == ({"total": 3}, {})


@pytest.mark.parametrize(
    "result",
    [
        [{"id": 1}, {"id": 2}],
        {"rows": [{"id": 1}, {"id": 2}], "row_count": 2},
        {"data": [{"id": 1}, {"id": 2}], "status": 200},
    ],
)
def test_rows_in_a_playbooks_result_are_rows_on_main(result: Any) -> None:
    ran = run("playbook", {"path": "p.yaml"}, play=child(result))
    assert (ran.main, ran.result) == ([{"id": 1}, {"id": 2}], result)


@pytest.mark.parametrize("result", [None, 3, [1, 2], {"total": 3}, {"rows": [1]}])
def test_a_result_without_rows_is_a_failure_when_main_is_read(result: Any) -> None:
    failure = failed("playbook", {"path": "p.yaml"}, play=child(result))
    assert (failure.kind, "the result of `p.yaml` has no rows" in failure.message) == ("rows", True)


def test_a_result_of_no_rows_has_the_declared_columns_or_none_that_are_known() -> None:
    assert run("playbook", {"path": "p.yaml"}, play=child([])).schemas["main"] == UNKNOWN_COLUMNS
    ran = run("playbook", {"path": "p.yaml"}, play=child([]), schemas={"main": schema(id="BIGINT")})
    assert (ran.main, ran.schemas["main"]) == ([], schema(id="BIGINT"))


def test_the_component_fails_when_the_playbook_does() -> None:
    failure = failed("playbook", {"path": "p.yaml"}, play=child(ToolFailure("playbook", "p failed", status="failed")))
    assert (failure.kind, failure.message, failure.detail["status"]) == ("playbook", "p failed", "failed")
