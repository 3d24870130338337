"""`replace`: each step, in its order, and the types that result."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests.cases import cases
from tests.components.harness import columns, mistakes, run, schema


def replaced(value: Any, how: dict[str, Any], type: str = "VARCHAR") -> Any:
    ran = run(
        "replace",
        {"columns": {"v": how}},
        {"input": [{"v": value, "w": 1}]},
        schemas={"input": schema(v=type, w="BIGINT")},
    )
    assert ran.main[0]["w"] == 1
    return ran.main[0]["v"]


@cases(
    "value, how, made",
    [
        (" a\t", {"trim": True}, "a"),
        (" a ", {"trim": "left"}, "a "),
        (" a ", {"trim": "right"}, " a"),
        ("a \t\n b", {"spaces": True}, "a b"),
        ("aB", {"case": "upper"}, "AB"),
        ("aB", {"case": "lower"}, "ab"),
        ("ann o'neil-SMITH", {"case": "title"}, "Ann O'Neil-Smith"),
        ("éa ÖB", {"case": "title"}, "Éa Öb"),
        ("ST JAMES'S square", {"case": "title"}, "St James's Square"),
        ("a1b22", {"regex": {r"\d+": "#"}}, "a#b#"),
        ("2026-03", {"regex": {r"(\d+)-(\d+)": r"\2/\1"}}, "03/2026"),
        ("abc", {"regex": {"a": "b", "b": "c"}}, "ccc"),
        ("", {"empty_as_null": True}, None),
        ("  ", {"trim": True, "empty_as_null": True, "missing": "?"}, "?"),
        ("de", {"values": {"de": "Germany", "fr": "France"}}, "Germany"),
        ("it", {"values": {"de": "Germany"}}, "it"),
        ("it", {"values": {"de": "Germany"}, "otherwise": "other"}, "other"),
        ("it", {"values": {"de": "Germany"}, "otherwise": None}, None),
        ("n/a", {"values": {"n/a": None}}, None),
        (None, {"values": {"de": "Germany"}}, None),
        (None, {"missing": "none"}, "none"),
        (" DE ", {"trim": True, "case": "lower", "values": {"de": "Germany"}}, "Germany"),
    ],
)
def test_each_step_does_what_it_says(value: Any, how: dict[str, Any], made: Any):
    assert replaced(value, how) == made


@pytest.mark.parametrize(
    ("value", "type", "how", "made", "into"),
    [
        (-1, "BIGINT", {"values": {"-1": None}}, None, "BIGINT"),
        (1, "BIGINT", {"values": {"1": 100}}, 100, "BIGINT"),
        (1, "BIGINT", {"values": {"1": "one"}}, "one", "VARCHAR"),
        (2, "BIGINT", {"values": {"1": "one"}}, "2", "VARCHAR"),
        (None, "DOUBLE", {"missing": 0.5}, 0.5, "DOUBLE"),
        (None, "BOOLEAN", {"missing": False}, False, "BOOLEAN"),
        (date(2026, 3, 1), "DATE", {"values": {"2026-03-01": None}}, None, "DATE"),
        (None, "DATE", {"missing": "unknown"}, "unknown", "VARCHAR"),
    ],
)
def test_a_column_keeps_its_type_where_the_new_values_allow_it(value: Any, type: str, how: Any, made: Any, into: str):
    assert replaced(value, how, type) == made
    assert columns("replace", {"columns": {"v": how}}, {"input": schema(v=type)}) == {"v": into}


def test_mistakes_are_found_before_the_run():
    params = {"columns": {"nme": {"trim": True}, "name": {"regex": {"(": ""}}}}
    found = mistakes("replace", params, {"input": schema(name="VARCHAR")})
    assert {mistake.path for mistake in found} == {("columns", "nme"), ("columns", "name", "regex")}
