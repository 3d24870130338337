"""`assert_rows`: each check passes what it should, and says what it does not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.cases import cases
from tests.components.harness import Ran, columns, infer, mistakes, run, schema

PEOPLE = [
    {"id": 1, "name": "Ann", "age": 34},
    {"id": 2, "name": None, "age": 12},
    {"id": 2, "name": "Cyd", "age": None},
]


class At:
    """A clock that stands still."""

    def __init__(self, when: datetime) -> None:
        self._when = when

    def now(self) -> float:
        return self._when.timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


def check(*checks: dict[str, Any], on_fail: str = "reject", rows: Any = PEOPLE, **more: Any) -> Ran:
    return run("assert_rows", {"checks": list(checks), "on_fail": on_fail}, {"input": rows}, **more)


def failure(*checks: dict[str, Any], on_fail: str = "fail", rows: Any = PEOPLE, **more: Any) -> ComponentFailure:
    with pytest.raises(ComponentFailure) as caught:
        check(*checks, on_fail=on_fail, rows=rows, **more)
    return caught.value


def refused(*checks: dict[str, Any], rows: Any = PEOPLE) -> list[tuple[Any, str, str]]:
    return [(row["id"], row["error_code"], row["error_message"]) for row in check(*checks, rows=rows).outputs["reject"]]


def test_rows_that_pass_go_on_and_the_others_are_refused_with_all_their_reasons():
    ran = check({"not_null": ["name", "age"]}, {"range": {"age": [18, None]}})
    assert ran.main == PEOPLE[:1]
    assert ran.outputs["reject"] == [
        {**PEOPLE[1], "error_code": "not_null", "error_message": "`name` has no value; `age` is not at least 18"},
        {**PEOPLE[2], "error_code": "not_null", "error_message": "`age` has no value"},
    ]
    assert ran.after["ASSERT_FAILED"] == 3


@cases("wanted, refusals",
    [
        ({"unique": ["id"]}, [(2, "unique", "`id` occurred before")]),
        ({"unique": ["id", "name"]}, []),
        ({"range": {"age": [18, 30]}}, [(1, "range", "`age` is not between 18 and 30"), (2, "range", "`age` is not between 18 and 30")]),
        ({"range": {"age": [None, 20]}}, [(1, "range", "`age` is not at most 20")]),
        ({"regex": {"name": "A.+"}}, [(2, "regex", "`name` does not match `A.+`")]),
        ({"regex": {"name": "n"}}, [(1, "regex", "`name` does not match `n`"), (2, "regex", "`name` does not match `n`")]),
        ({"in": {"name": ["Ann", "Bob", None]}}, [(2, "in", "`name` is not one of `Ann`, `Bob`")]),
        ({"expression": "age > 20"}, [(2, "expression", "`age > 20` is false")]),
        ({"expression": "age > 20", "name": "adults"}, [(2, "adults", "`adults`: `age > 20` is false")]),
    ],
)  # fmt: skip
def test_each_check_refuses_the_rows_it_should(wanted: dict[str, Any], refusals: list[Any]):
    assert refused(wanted) == refusals


def test_the_first_row_of_a_key_is_kept_in_the_order_of_the_input():
    rows = [{"id": n % 1_000, "n": n} for n in range(5_000)]
    ran = check({"unique": ["id"]}, rows=rows)
    assert [row["n"] for row in ran.main] == list(range(1_000))
    assert [row["n"] for row in ran.outputs["reject"]] == list(range(1_000, 5_000))


def test_missing_keys_are_no_duplicates():
    assert check({"unique": ["id"]}, rows=[{"id": None, "a": 1}, {"id": None, "a": 2}]).outputs["reject"] == []


def test_a_failed_check_is_an_error_with_counts_and_samples():
    problem = failure({"not_null": ["name"]}, {"range": {"age": [18, 30]}})
    assert problem.kind == "assertion"
    assert problem.message == (
        "2 checks failed: `name` has no value: 1 of 3 rows; `age` is not between 18 and 30: 2 of 3 rows, such as `34`, `12`"
    )
    checks: Any = problem.detail["checks"]
    assert [(each["check"], each["failed"]) for each in checks] == [("not_null", 1), ("range", 2)]


def test_a_failed_check_is_told_by_the_name_its_author_gave_it():
    problem = failure({"name": "somebody", "not_null": ["name"]}, {"name": "enough", "row_count": {"min": 4}})
    assert problem.message == (
        "2 checks failed: somebody: `name` has no value: 1 of 3 rows; enough: there are 3 rows, and at least 4 are needed"
    )


def test_rows_that_pass_all_checks_go_through_untouched():
    ran = check({"not_null": ["id"]}, {"row_count": {"min": 3, "max": 3}}, on_fail="fail")
    assert ran.outputs == {"main": PEOPLE, "reject": []}
    assert ran.after["ASSERT_FAILED"] == 0
    assert ran.result == {"rows": 3, "failed": []}


def test_warn_says_it_and_lets_all_rows_go_on():
    ran = check({"range": {"age": [18, None]}}, {"row_count": {"min": 10}}, on_fail="warn")
    assert ran.outputs == {"main": PEOPLE, "reject": []}
    assert ran.said == [
        "warning: `age` is not at least 18: 1 of 3 rows, such as `12`",
        "warning: there are 3 rows, and at least 10 are needed",
    ]
    assert ran.after["ASSERT_FAILED"] == 2


@pytest.mark.parametrize("on_fail", ["fail", "reject"])
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"min": 4}, "1 check failed: there are 3 rows, and at least 4 are needed"),
        ({"max": 2}, "1 check failed: there are 3 rows, and at most 2 are allowed"),
    ],
)
def test_too_few_or_too_many_rows_are_an_error_in_any_case(on_fail: str, bounds: dict[str, int], message: str):
    assert failure({"row_count": bounds}, on_fail=on_fail).message == message


@pytest.mark.parametrize(
    ("column", "newest", "now", "fresh"),
    [
        ("TIMESTAMP", datetime(2026, 3, 1, 12), datetime(2026, 3, 2, 11, 59, tzinfo=UTC), True),
        ("TIMESTAMP", datetime(2026, 3, 1, 12), datetime(2026, 3, 2, 12, 1, tzinfo=UTC), False),
        ("DATE", date(2026, 3, 1), datetime(2026, 3, 2, 23, tzinfo=UTC), True),
        ("DATE", date(2026, 3, 1), datetime(2026, 3, 3, 1, tzinfo=UTC), False),
    ],
)
def test_freshness_looks_at_the_newest_row(column: str, newest: Any, now: datetime, fresh: bool):
    rows = [{"at": newest}, {"at": newest.replace(year=2020)}]
    wanted = {"freshness": {"column": "at", "max_age": "24h"}}
    more: Any = {"schemas": {"input": schema(at=column)}, "clock": At(now)}
    if fresh:
        assert check(wanted, rows=rows, on_fail="fail", **more).main == rows
    else:
        assert (
            failure(wanted, rows=rows, **more).message
            == f"1 check failed: the newest `at` is `{newest}`, older than 24h"
        )


def test_freshness_of_nothing_is_an_error():
    wanted = {"freshness": {"column": "at", "max_age": 60}}
    problem = failure(wanted, rows=[], schemas={"input": schema(at="DATE")})
    assert problem.message == "1 check failed: `at` has no values, so nothing says how fresh the rows are"


def test_freshness_needs_a_time():
    said = "`freshness` needs a date or timestamp, and `id` is BIGINT"
    assert said in failure({"freshness": {"column": "id", "max_age": 60}}).message
    (mistake,) = mistakes(
        "assert_rows", {"checks": [{"freshness": {"column": "id", "max_age": 60}}]}, {"input": schema(id="BIGINT")}
    )
    assert (mistake.message, mistake.kind) == (said, "type")


def test_an_empty_input_passes():
    ran = check({"not_null": ["a"]}, {"unique": ["a"]}, rows=[], schemas={"input": schema(a="BIGINT")})
    assert ran.outputs == {"main": [], "reject": []}


def test_dates_are_compared_as_dates():
    rows = [{"id": 1, "day": date(2026, 1, 1)}, {"id": 2, "day": date(2024, 1, 1)}]
    ran = check({"range": {"day": ["2025-01-01", None]}}, rows=rows, schemas={"input": schema(id="BIGINT", day="DATE")})
    assert ran.main == rows[:1]


def test_columns_are_known_before_the_run():
    params = {"checks": [{"not_null": ["a"]}]}
    given = {"input": schema(a="DATE", b="VARCHAR")}
    assert columns("assert_rows", params, given) == {"a": "DATE", "b": "VARCHAR"}
    assert columns("assert_rows", params, given, "reject") == {
        "a": "DATE",
        "b": "VARCHAR",
        "error_code": "VARCHAR",
        "error_message": "VARCHAR",
    }


def test_unknown_columns_and_wrong_sql_are_found_before_the_run():
    found = mistakes(
        "assert_rows",
        {
            "checks": [
                {"not_null": ["nme"]},
                {"range": {"ag": [1, 2]}},
                {"expression": "agee > 1"},
                {"regex": {"name": "("}},
            ]
        },
        {"input": schema(name="VARCHAR", age="BIGINT")},
    )
    assert {mistake.path for mistake in found} == {
        ("checks", 0, "not_null", 0),
        ("checks", 1, "range", "ag"),
        ("checks", 2, "expression"),
        ("checks", 3, "regex", "name"),
    }
    assert any("did you mean `name`?" in mistake.message for mistake in found)


def test_a_check_that_comes_out_differently_each_time_is_refused():
    (mistake,) = mistakes("assert_rows", {"checks": [{"expression": "random() < 0.5"}]}, {"input": schema(a="BIGINT")})
    assert mistake.message == "a check must come out the same each time"


def test_nothing_is_said_of_columns_that_are_not_known_yet():
    assert infer("assert_rows", {"checks": [{"not_null": ["a"]}]}, {"input": None}, ["main"]).mistakes == ()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "a check has exactly one of `not_null`, `unique`, `range`, `regex`, `in`, `expression`"),
        ({"not_null": ["a"], "unique": ["a"]}, "this one has `not_null` and `unique`"),
        ({"row_count": {}}, "`row_count` needs `min`, `max` or both"),
        ({"freshness": {"column": "a", "max_age": "soon"}}, "`max_age: soon` is no duration"),
        ({"not_nul": ["a"]}, "not_nul"),
    ],
)
def test_checks_that_make_no_sense_are_refused(wanted: dict[str, Any], message: str):
    problem = failure(wanted)
    assert problem.kind == "parameters"
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1_800), ("24h", 86_400), ("7 days", 604_800), ("1.5 hours", 5_400), ("2 weeks", 1_209_600)],
)
def test_durations_are_read(text: str, seconds: float):
    from penstock.components.quality.rules import Freshness

    assert Freshness(column="a", max_age=text).seconds() == seconds
