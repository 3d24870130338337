"""`format_columns`: numbers and dates as people read them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from tests.cases import cases
from tests.components.harness import columns, mistakes, run, schema


def written(value: Any, type: str, **how: Any) -> Any:
    ran = run("format_columns", {"columns": {"v": how}}, {"input": [{"v": value}]}, schemas={"input": schema(v=type)})
    return ran.main[0]["v"]


@cases(
    "value, type, how, made",
    [
        (1234567.891, "DOUBLE", {"decimals": 2, "thousands": ","}, "1,234,567.89"),
        (
            Decimal("12345678901234567.89"),
            "DECIMAL(20,2)",
            {"decimals": 2, "thousands": ","},
            "12,345,678,901,234,567.89",
        ),
        (Decimal("1234.5"), "DECIMAL(10,1)", {"decimals": 2, "decimal": ",", "thousands": "."}, "1.234,50"),
        (Decimal("-1234.5"), "DECIMAL(10,1)", {"decimals": 0, "thousands": "'"}, "-1'235"),
        (-123, "BIGINT", {"thousands": "."}, "-123"),
        (123456, "BIGINT", {"thousands": " "}, "123 456"),
        (7, "BIGINT", {"decimals": 2}, "7.00"),
        (2.5, "DOUBLE", {"decimals": 0}, "3"),
        (1.5, "DOUBLE", {"decimal": ","}, "1,5"),
        (7, "BIGINT", {"width": 4, "fill": "0"}, "0007"),
        (12345, "BIGINT", {"width": 4, "fill": "0"}, "12345"),
        ("ab", "VARCHAR", {"width": 4, "fill": "."}, "ab.."),
        (5, "BIGINT", {"prefix": "€ ", "suffix": ".-"}, "€ 5.-"),
        (date(2026, 3, 1), "DATE", {"format": "%d.%m.%Y"}, "01.03.2026"),
        (date(2026, 3, 1), "DATE", {}, "2026-03-01"),
        (None, "DOUBLE", {"decimals": 2, "prefix": "x"}, None),
    ],
)
def test_values_are_written_as_asked(value: Any, type: str, how: dict[str, Any], made: Any):
    assert written(value, type, **how) == made


def test_the_column_is_text_afterwards():
    params = {"columns": {"a": {"decimals": 1}}}
    assert columns("format_columns", params, {"input": schema(a="DOUBLE", b="DATE")}) == {"a": "VARCHAR", "b": "DATE"}


def test_mistakes_are_found_before_the_run():
    params = {"columns": {"x": {}, "t": {"decimals": 1}, "n": {"format": "%Y"}, "d": {"format": "%Q"}}}
    found = mistakes("format_columns", params, {"input": schema(t="VARCHAR", n="BIGINT", d="DATE")})
    assert {mistake.path for mistake in found} == {
        ("columns", "x"),
        ("columns", "t", "decimals"),
        ("columns", "n", "format"),
        ("columns", "d", "format"),
    }
