"""Appendix A: what a condition may say, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import problems, run_job
from tests.spec_jobs.support import job, sets, when

ALLOWED = {
    "literals": "42 == 42 and 'prod' == 'prod' and 3.14 > 3",
    "true and false": "True and not False",
    "none": "global.nothing is none",
    "a list literal": "global.status in ['OK', 'WARN']",
    "comparison": "global.row_count > 0 and global.row_count >= 3 and global.row_count != 4",
    "chained comparison": "1 < global.row_count < 5",
    "boolean operators": "(global.status == 'OK') and (global.attempts < 3) or False",
    "arithmetic": "(global.price * global.qty) > 1000",
    "more arithmetic": "(7 + 1 - 2) / 2 == 3 and 7 // 2 == 3 and 7 % 2 == 1 and -(1) < 0",
    "functions": "len(global.rows) == 2 and abs(global.delta) == 5",
    "more functions": "max(1, 2) == 2 and min([3, 1]) == 1 and sum([1, 2]) == 3 and round(2.4) == 2",
    "conversions": "int('5') == 5 and float('1.5') == 1.5 and str(5) == '5'",
    "indexes": "global.rows[1] == 'b' and global['status'] == 'OK'",
    "nested": "global.deep.inner.value == 1",
    "is defined": "global.nowhere is not defined or True",
    "a default": "(global.nowhere | default(1)) == 1",
    "with the braces of a template": "{{ global.row_count > 0 }}",
}
VALUES = sets(
    row_count=3,
    status="OK",
    attempts=1,
    price=300,
    qty=4,
    rows=["a", "b"],
    delta=-5,
    deep={"inner": {"value": 1}},
    nothing=None,
)

REFUSED = {
    "an import": "__import__('os').system('true')",
    "dunder access": "global.rows.__class__",
    "dunder access in brackets": "global['__class__']",
    "a dunder name": "__builtins__ == 1",
    "a method call": "global.status.upper() == 'OK'",
    "mutation by a method": "global.rows.append(1)",
    "assignment": "x = 1",
    "a walrus": "(x := 1) > 0",
    "a lambda": "(lambda: 1)() == 1",
    "a comprehension": "[x for x in global.rows] == 1",
    "a function that is not listed": "open('/etc/passwd') == 1",
    "eval": "eval('1') == 1",
    "a filter that is not listed": "(global.status | upper) == 'OK'",
    "a choice": "(1 if True else 2) == 1",
    "a statement": "import os",
    "two expressions": "1; 2",
    "nothing": "   ",
    "half an expression": "global.row_count >",
    "quotes that do not close": "'abc",
}


@pytest.mark.clause("JA.1")
@pytest.mark.parametrize("what", ALLOWED)
def test_what_a_condition_may_say(tmp_path: Path, what: str) -> None:
    run = run_job(job(when("a", "b", ALLOWED[what]), a=VALUES), tmp_path)
    assert run.states() == {"a": "OK", "b": "OK"}, run.error


@pytest.mark.clause("JA.1")
@pytest.mark.parametrize("what", REFUSED)
def test_what_a_condition_may_not_say_is_refused_before_the_run(tmp_path: Path, what: str) -> None:
    found = problems(job(when("a", "b", REFUSED[what]), a=VALUES), tmp_path)
    assert found
    assert {one.severity.value for one in found} >= {"error"}
    assert not (tmp_path / ".penstock").exists()


COSTLY = {
    "a power tower": "9 ** (9 ** (global.n ** 9)) > 1",
    "a long list": "len([0] * global.n) > 1",
    "a long text": "len('x' * global.n) > 1",
}


@pytest.mark.clause("JA.1")
@pytest.mark.parametrize("what", COSTLY)
def test_a_condition_that_costs_too_much_is_an_error_of_its_component(tmp_path: Path, what: str) -> None:
    """The budget is counted in steps and not in time, so it is used up at the same place on every machine (D23)."""
    run = run_job(job(when("a", "b", COSTLY[what]), "a (error) c", a=sets(n=1_000_000_000)), tmp_path)
    assert run.states() == {"a": "ERROR", "b": "SKIPPED", "c": "OK"}
    assert run.component("a")["error"]["kind"] == "expression"


@pytest.mark.clause("JA.1")
def test_the_budget_ends_a_condition_over_much_data_in_error_of_its_component(tmp_path: Path) -> None:
    """Every `in` looks through the whole list, and four hundred of them over fifty thousand numbers cost too much."""
    condition = " or ".join(f"{-number} in global.numbers" for number in range(1, 400))
    code = "globals['numbers'] = list(range(50000))"
    text = job(f'a (if 1: "{condition}") b', "a (error) c", a={"type": "python", "params": {"code": code}})
    run = run_job(text, tmp_path)
    assert run.states() == {"a": "ERROR", "b": "SKIPPED", "c": "OK"}
    assert run.component("a")["error"]["kind"] == "expression"
