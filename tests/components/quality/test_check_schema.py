"""`check_schema`: what fits, what does not, and what is said of it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import Ran, columns, mistakes, run, schema

AGREED = [
    {"name": "sku", "type": "string", "key": True, "pattern": r"[A-Z]-\d+"},
    {"name": "quantity", "type": "integer", "nullable": False},
    {"name": "day", "type": "date"},
]


def hold(rows: Any, agreed: Any = AGREED, mode: str = "strict", **more: Any) -> Ran:
    return run("check_schema", {"columns": agreed, "mode": mode}, {"input": rows}, **more)


def refusal(row: dict[str, Any]) -> tuple[str, str]:
    refused = hold([row], schemas={"input": schema(sku="VARCHAR", quantity="VARCHAR", day="VARCHAR")}).outputs["reject"]
    return (refused[0]["error_code"], refused[0]["error_message"]) if refused else ("", "")


def test_rows_that_fit_have_the_types_of_the_schema():
    ran = hold([{"sku": "A-1", "quantity": " 10 ", "day": "2026-03-01"}])
    assert ran.main == [{"sku": "A-1", "quantity": 10, "day": date(2026, 3, 1)}]
    assert ran.schemas["main"] == schema(sku="VARCHAR", quantity="BIGINT", day="DATE")


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ({"sku": "A-1", "quantity": "ten", "day": None}, "type", "`quantity`: `ten` is not BIGINT"),
        ({"sku": "A-1", "quantity": "1.5", "day": None}, "type", "`quantity`: `1.5` is not BIGINT"),
        ({"sku": "A-1", "quantity": "1", "day": "2026-02-30"}, "type", "`day`: `2026-02-30` is not DATE"),
        ({"sku": "A-1", "quantity": None, "day": None}, "not_null", "`quantity` has no value"),
        ({"sku": "A-1", "quantity": "  ", "day": None}, "not_null", "`quantity` has no value"),
        ({"sku": None, "quantity": "1", "day": None}, "not_null", "`sku` has no value"),
        ({"sku": "xA-1", "quantity": "1", "day": None}, "pattern", r"`sku` does not match `[A-Z]-\d+`"),
        ({"sku": "A-1", "quantity": "1", "day": ""}, "", ""),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(row: dict[str, Any], code: str, message: str):
    assert refusal(row) == (code, message)


def test_a_key_that_occurred_before_is_refused_and_the_row_is_as_it_came():
    rows = [{"sku": "A-1", "quantity": "1", "day": None}, {"sku": "A-1", "quantity": "2", "day": None}]
    ran = hold(rows, schemas={"input": schema(sku="VARCHAR", quantity="VARCHAR", day="VARCHAR")})
    assert [row["quantity"] for row in ran.main] == [1]
    assert ran.outputs["reject"] == [{**rows[1], "error_code": "key", "error_message": "`sku` occurred before"}]


def test_columns_may_stand_in_another_order_and_in_other_letters():
    ran = hold([{"B": 1, "A": "x"}], [{"name": "a"}, {"name": "b", "type": "string"}])
    assert ran.main == [{"a": "x", "b": "1"}]


def test_missing_and_further_columns_are_an_error_when_strict():
    with pytest.raises(ComponentFailure) as caught:
        hold([{"sku": "A-1", "qantity": 1, "note": "x"}])
    message = caught.value.message
    assert "`input` has no column `quantity`; did you mean `qantity`?" in message
    assert "`input` has no column `day`" in message
    assert "`input` has columns that are not in the schema: `qantity`, `note`" in message


def test_the_same_is_found_before_the_run():
    found = mistakes(
        "check_schema", {"columns": AGREED}, {"input": schema(sku="VARCHAR", quantity="BIGINT", note="VARCHAR")}
    )
    assert [mistake.path for mistake in found] == [("columns", 2, "name"), ("columns",)]


def test_lenient_fills_what_is_missing_and_lets_the_rest_pass():
    ran = hold([{"note": "x", "sku": "A-1", "quantity": 1}], mode="lenient")
    assert ran.main == [{"sku": "A-1", "quantity": 1, "day": None, "note": "x"}]
    assert ran.schemas["main"] == schema(sku="VARCHAR", quantity="BIGINT", day="DATE", note="VARCHAR")


def test_lenient_refuses_rows_without_a_column_that_must_have_a_value():
    ran = hold([{"sku": "A-1", "day": date(2026, 1, 1)}], mode="lenient")
    assert ran.main == []
    assert ran.outputs["reject"][0]["error_message"] == "`quantity` has no value"


def test_columns_and_types_are_known_before_the_run():
    given = {"input": schema(sku="VARCHAR", quantity="VARCHAR", day="VARCHAR")}
    assert columns("check_schema", {"columns": AGREED}, given) == {
        "sku": "VARCHAR",
        "quantity": "BIGINT",
        "day": "DATE",
    }


def test_wrong_types_patterns_and_names_are_found_before_the_run():
    agreed = [{"name": "a", "type": "intger"}, {"name": "a"}, {"name": "b", "pattern": "("}]
    found = mistakes("check_schema", {"columns": agreed, "mode": "lenient"}, {"input": schema(a="BIGINT")})
    assert {mistake.path for mistake in found} == {("columns", 0, "type"), ("columns", 1), ("columns", 2, "pattern")}
