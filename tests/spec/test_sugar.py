"""P14: authoring sugar, run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine import play


@pytest.mark.clause("P14.1")
@pytest.mark.parametrize(("size", "taken"), [(5, "small"), (50, "medium"), (500, "large")])
def test_choose_takes_one_branch_and_goes_on_after_it(tmp_path: Path, size: int, taken: str) -> None:
    run = play(
        """
        - step: start
          tool:
            - name: route
              choose:
                - when: "{{ workload.size < 10 }}"
                  then: [{name: pick, kind: noop, value: small}]
                - when: "{{ workload.size < 100 }}"
                  then: [{name: pick, kind: noop, value: medium}]
                - else:
                  then: [{name: pick, kind: noop, value: large}]
            - {name: after, kind: noop, value: "{{ pick }}!"}
        """,
        tmp_path,
        {"size": size},
    )
    assert run.status == "completed", run.error
    assert run.result == f"{taken}!"
    assert run.tasks()[0] == "route.choose"
    assert [task for task in run.tasks() if task.endswith(".pick")] == [
        f"route.{['small', 'medium', 'large'].index(taken) + 1}.pick"
    ]


@pytest.mark.clause("P14.1")
def test_while_checks_first_and_until_checks_last(tmp_path: Path) -> None:
    body = "[{name: add, kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: '{{ (ctx.n | default(0)) + 1 }}'}}}}]}}}]"
    loop = """
        - step: start
          tool:
            - name: go
              {kind}: {{when: "{{{{ {when} }}}}", do: {body}, max: 20}}
    """
    never = play(loop.format(kind="while", when="false and ctx.n", body=body), tmp_path, execution_id="a")
    assert never.ctx == {}
    thrice = play(loop.format(kind="while", when="(ctx.n | default(0)) < 3", body=body), tmp_path, execution_id="b")
    assert thrice.ctx == {"n": 3}
    once = play(loop.format(kind="until", when="true or ctx.n", body=body), tmp_path, execution_id="c")
    assert once.ctx == {"n": 1}


@pytest.mark.clause("P14.1")
def test_a_loop_that_reaches_its_bound_fails_and_says_so(tmp_path: Path) -> None:
    run = play(
        """
        - step: start
          tool:
            - name: poll
              until: {do: [{name: look, kind: noop, value: no}], when: "{{ look == 'yes' }}", max: 3}
        """,
        tmp_path,
    )
    assert run.status == "failed"
    assert "`poll` went round 3 times" in run.error["message"]
    assert [task for task in run.tasks() if task.endswith("look")] == ["poll.do.look"] * 3


def test_a_set_on_a_step_sees_its_own_result_by_name(tmp_path: Path) -> None:
    run = play(
        """
        - step: count
          tool: {kind: noop, value: {rows: [1, 2, 3]}}
          set: {ctx.total: "{{ count.rows | length }}"}
        """,
        tmp_path,
    )
    assert run.ctx == {"total": 3}
