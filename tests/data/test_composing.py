"""How often a query reads an input decides whether its rows are kept."""

from __future__ import annotations

import pytest

from penstock.data.statements import may_differ, uses
from tests.cases import cases


@cases(
    "query, times",
    [
        ("SELECT 1", 0),
        ("SELECT * FROM input", 1),
        ('SELECT "input".a FROM "input"', 1),
        ("SELECT input.a, input.b FROM input WHERE input.a > 1", 1),
        ("SELECT * FROM input a JOIN input b USING (id)", 2),
        ("SELECT * FROM input WHERE a IN (SELECT a FROM input)", 2),
        ("SELECT * FROM INPUT", 1),
        ("SELECT 'input' AS x FROM input", 1),
        ("WITH t AS (SELECT * FROM input) SELECT * FROM t", 1),
        ("WITH t AS (SELECT * FROM input) SELECT * FROM t a, t b", 2),
        ("WITH t AS (SELECT * FROM input), u AS (SELECT * FROM t), v AS (SELECT * FROM t) SELECT * FROM u, v", 2),
        ("WITH t AS (SELECT * FROM input), u AS (SELECT * FROM t) SELECT * FROM u", 1),
        ("WITH RECURSIVE t AS (SELECT id FROM input UNION ALL SELECT id + 1 FROM t WHERE id < 5) SELECT * FROM t", 2),
        ("SELECT * FROM input AS other, other_input", 1),
        ("WITH this is not sql, input input", 2),
    ],
)
def test_a_query_is_known_to_read_its_input_once_or_is_taken_to_read_it_more_often(query: str, times: int) -> None:
    assert uses(query, "input") == times


@pytest.mark.parametrize(
    ("query", "differs"),
    [
        ("SELECT * FROM input WHERE a > 1", False),
        ("SELECT * FROM input WHERE random() < 0.5", True),
        ("SELECT * FROM input USING SAMPLE 10%", True),
        ("SELECT uuid() AS id FROM input", True),
        ("SELECT * FROM input WHERE day < current_date", True),
        ("SELECT known FROM input", False),
    ],
)
def test_a_query_that_may_give_other_rows_the_second_time_is_told(query: str, differs: bool) -> None:
    assert may_differ(query) is differs
