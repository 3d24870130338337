"""`convert_types`: every kind of conversion, and what becomes of values that do not convert."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.cases import cases
from tests.components.harness import Ran, columns, mistakes, run, schema


def convert(value: Any, wanted: Any, source: str = "VARCHAR", **params: Any) -> Ran:
    return run(
        "convert_types",
        {"columns": {"v": wanted}, **params},
        {"input": [{"v": value}]},
        schemas={"input": schema(v=source)},
    )


def one(value: Any, wanted: Any, source: str = "VARCHAR") -> Any:
    ran = convert(value, wanted, source)
    assert ran.outputs["reject"] == []
    return ran.main[0]["v"]


@cases(
    "value, wanted, made",
    [
        ("42", "integer", 42),
        (" 42 ", "integer", 42),
        ("-7.0", "integer", -7),
        ("9007199254740993", "integer", 9007199254740993),
        ("1.5", "number", 1.5),
        ("12.345", "decimal(10,2)", Decimal("12.35")),
        ("true", "boolean", True),
        ("2026-03-01", "date", date(2026, 3, 1)),
        ("2026-03-01 12:30:00", "timestamp", datetime(2026, 3, 1, 12, 30)),
        ("12:30", "time", time(12, 30)),
        ("", "integer", None),
        ("   ", "date", None),
        (None, "integer", None),
        ("", "string", ""),
        ("01/02/2026", {"type": "date", "format": "%d/%m/%Y"}, date(2026, 2, 1)),
        ("01.02.26 07:05", {"type": "timestamp", "format": "%d.%m.%y %H:%M"}, datetime(2026, 2, 1, 7, 5)),
        ("7h05", {"type": "time", "format": "%Hh%M"}, time(7, 5)),
        ("1.234.567,89", {"type": "decimal(12,2)", "decimal": ",", "thousands": "."}, Decimal("1234567.89")),
        ("1'234", {"type": "integer", "thousands": "'"}, 1234),
        ("12,34,567.5", {"type": "number", "thousands": ","}, 1234567.5),
        ("-1,25e3", {"type": "number", "decimal": ","}, -1250.0),
        ("JA", {"type": "boolean", "true_values": ["ja"], "false_values": ["nein"]}, True),
        ("nein", {"type": "boolean", "true_values": ["ja"], "false_values": ["nein"]}, False),
        ('{"a": 1}', "json", '{"a": 1}'),
    ],
)
def test_text_is_read(value: Any, wanted: Any, made: Any):
    assert one(value, wanted) == made


@pytest.mark.parametrize(
    ("value", "source", "wanted", "made"),
    [
        (7, "BIGINT", "string", "7"),
        (7, "BIGINT", "number", 7.0),
        (7.0, "DOUBLE", "integer", 7),
        (date(2026, 3, 1), "DATE", "string", "2026-03-01"),
        (date(2026, 3, 1), "DATE", {"type": "string", "format": "%d.%m.%Y"}, "01.03.2026"),
        (datetime(2026, 3, 1, 12), "TIMESTAMP", "date", date(2026, 3, 1)),
        (True, "BOOLEAN", "integer", 1),
    ],
)
def test_other_types_are_changed(value: Any, source: str, wanted: Any, made: Any):
    assert one(value, wanted, source) == made


@cases(
    "value, wanted, message",
    [
        ("abc", "integer", "`v`: `abc` is not BIGINT"),
        ("1.5", "integer", "`v`: `1.5` is not BIGINT"),
        ("99999999999999999999", "integer", "`v`: `99999999999999999999` is not BIGINT"),
        ("2026-02-30", "date", "`v`: `2026-02-30` is not DATE"),
        ("2026-02-03", {"type": "date", "format": "%d/%m/%Y"}, "`v`: `2026-02-03` is not DATE"),
        ("maybe", "boolean", "`v`: `maybe` is not BOOLEAN"),
        ("true", {"type": "boolean", "true_values": ["ja"]}, "`v`: `true` is not BOOLEAN"),
        ("1,5", "number", "`v`: `1,5` is not DOUBLE"),
        ("1.250", {"type": "decimal(9,2)", "decimal": ","}, "`v`: `1.250` is not DECIMAL(9,2)"),
        ("9.95", {"type": "decimal(9,2)", "decimal": ",", "thousands": "."}, "`v`: `9.95` is not DECIMAL(9,2)"),
        ("1,5", {"type": "integer", "thousands": ","}, "`v`: `1,5` is not BIGINT"),
        ("x" * 100, "integer", f"`v`: `{'x' * 60}` is not BIGINT"),
    ],
)
def test_what_does_not_convert_is_refused_as_it_came(value: str, wanted: Any, message: str):
    ran = convert(value, wanted)
    assert ran.main == []
    assert ran.outputs["reject"] == [{"v": value, "error_code": "CONVERSION", "error_message": message}]


def test_a_number_with_decimals_does_not_become_whole():
    assert convert(1.5, "integer", "DOUBLE").outputs["reject"][0]["error_message"] == "`v`: `1.5` is not BIGINT"


def test_all_values_of_a_row_that_do_not_convert_are_named():
    ran = run("convert_types", {"columns": {"a": "integer", "b": "date"}}, {"input": [{"a": "x", "b": "y", "c": 1}]})
    assert ran.outputs["reject"] == [
        {
            "a": "x",
            "b": "y",
            "c": 1,
            "error_code": "CONVERSION",
            "error_message": "`a`: `x` is not BIGINT; `b`: `y` is not DATE",
        }
    ]


def test_other_columns_and_the_order_of_rows_stay():
    rows = [{"n": n, "v": str(n) if n % 7 else "bad", "z": "x"} for n in range(3_000)]
    ran = run("convert_types", {"columns": {"V": "integer"}}, {"input": rows})
    assert ran.main == [{"n": n, "v": n, "z": "x"} for n in range(3_000) if n % 7]
    assert [row["n"] for row in ran.outputs["reject"]] == [n for n in range(3_000) if not n % 7]


def test_invalid_null_puts_nothing_in_its_place():
    ran = convert("1.5", "integer", invalid="null")
    assert ran.outputs == {"main": [{"v": None}], "reject": []}


def test_invalid_fail_is_an_error_that_names_the_value():
    with pytest.raises(ComponentFailure) as caught:
        convert("abc", "integer", invalid="fail")
    assert "`v`: `abc` is not BIGINT" in caught.value.message


@pytest.mark.parametrize("invalid", ["reject", "null", "fail"])
def test_the_columns_are_known_before_the_run(invalid: str):
    given = {"input": schema(a="VARCHAR", b="VARCHAR")}
    params = {"columns": {"b": "decimal(10,2)"}, "invalid": invalid}
    assert columns("convert_types", params, given) == {"a": "VARCHAR", "b": "DECIMAL(10,2)"}
    assert columns("convert_types", params, given, "reject") == {
        "a": "VARCHAR",
        "b": "VARCHAR",
        "error_code": "VARCHAR",
        "error_message": "VARCHAR",
    }


def test_mistakes_are_found_before_the_run():
    params = {"columns": {"x": "integer", "a": "intger", "b": {"type": "date", "format": "%Q"}}}
    found = mistakes("convert_types", params, {"input": schema(a="VARCHAR", b="VARCHAR")})
    assert {mistake.path for mistake in found} == {("columns", "x"), ("columns", "a"), ("columns", "b", "format")}
