"""aggregate, denormalise, normalise, pivot, unpivot, union, replicate, sql: rows become other rows."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import columns, infer, mistakes, run, schema

SALES = [
    {"shop": "Ulm", "quarter": "q1", "amount": 5},
    {"shop": "Bonn", "quarter": "q1", "amount": 2},
    {"shop": "Ulm", "quarter": "q2", "amount": 6},
    {"shop": "Ulm", "quarter": "q1", "amount": None},
]
SHAPE = {"input": schema(shop="VARCHAR", quarter="VARCHAR", amount="BIGINT")}


def test_aggregate_has_one_row_per_group_sorted_by_group() -> None:
    params = {"by": ["shop"], "measures": {"total": "sum(amount)", "rows": "count(*)", "amount": "max(amount)"}}
    assert run("aggregate", params, {"input": SALES}).main == [
        {"shop": "Bonn", "total": 2, "rows": 1, "amount": 2},
        {"shop": "Ulm", "total": 11, "rows": 3, "amount": 6},
    ]


def test_aggregate_by_expressions_and_without_measures() -> None:
    assert run("aggregate", {"by": {"initial": "shop[1]"}, "measures": {"n": "count(*)"}}, {"input": SALES}).main == [
        {"initial": "B", "n": 1},
        {"initial": "U", "n": 3},
    ]
    assert run("aggregate", {"by": ["QUARTER"]}, {"input": SALES}).main == [{"quarter": "q1"}, {"quarter": "q2"}]


def test_aggregate_of_nothing_is_one_row_without_groups_and_none_with() -> None:
    params: dict[str, Any] = {"measures": {"n": "count(*)", "total": "sum(amount)"}}
    assert run("aggregate", params, {"input": []}, schemas=SHAPE).main == [{"n": 0, "total": None}]
    assert run("aggregate", {**params, "by": ["shop"]}, {"input": []}, schemas=SHAPE).main == []


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({}, (), "at least one of `by` and `measures`"),
        ({"by": ["shp"]}, ("by", 0), "no column `shp`; did you mean `shop`"),
        ({"by": ["shop", "Shop"]}, ("by", 1), "named twice"),
        ({"by": ["shop"], "measures": {"n": "sum(amont)"}}, ("measures", "n"), "amont"),
        ({"by": ["shop"], "measures": {"n": "amount"}}, ("measures", "n"), ""),
        ({"by": ["shop"], "measures": {"n": "sum(shop)"}}, ("measures", "n"), ""),
        ({"by": ["shop"], "measures": {"SHOP": "count(*)"}}, ("measures", "SHOP"), "another name"),
        ({"by": {"x": "shp"}}, ("by", "x"), "shp"),
    ],
)
def test_aggregate_says_what_is_wrong_and_where(params: dict[str, Any], path: tuple[Any, ...], words: str) -> None:
    (mistake,) = mistakes("aggregate", params, SHAPE)
    assert mistake.path == path
    assert words in mistake.message


def test_aggregate_tells_how_to_group_by_an_expression() -> None:
    (mistake,) = mistakes("aggregate", {"by": ["upper(shop)"]}, SHAPE)
    assert mistake.hint == "for an expression write `by: {name: expression}`"


def test_aggregate_knows_its_columns_and_where_they_come_from() -> None:
    found = infer("aggregate", {"by": ["shop"], "measures": {"n": "count(*)", "top": "max(amount)"}}, SHAPE)
    assert found.outputs["main"] == schema(shop="VARCHAR", n="BIGINT", top="BIGINT")
    assert found.lineage["main"]["top"] == (("input", "amount"),)


def test_denormalise_gathers_values_in_the_order_they_came() -> None:
    assert run("denormalise", {"by": ["shop"], "column": "quarter", "separator": "; "}, {"input": SALES}).main == [
        {"shop": "Ulm", "quarter": "q1; q2; q1"},
        {"shop": "Bonn", "quarter": "q1"},
    ]
    params = {"by": ["shop"], "columns": ["quarter", "amount"], "as_list": True, "distinct": True}
    assert run("denormalise", params, {"input": SALES}).main == [
        {"shop": "Ulm", "quarter": ["q1", "q2"], "amount": [5, 6]},
        {"shop": "Bonn", "quarter": ["q1"], "amount": [2]},
    ]


def test_denormalise_of_many_rows_follows_the_input_whatever_the_threads_do() -> None:
    rows = [{"g": number % 3, "n": number} for number in range(120_000)]
    gathered = run("denormalise", {"by": ["g"], "column": "n", "as_list": True}, {"input": rows}).main
    assert [row["g"] for row in gathered] == [0, 1, 2]
    assert gathered[1]["n"] == list(range(1, 120_000, 3))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"by": ["shop"]}, "exactly one of `column` and `columns`"),
        ({"by": ["shop"], "column": "x"}, "no column `x`"),
        ({"by": ["shop"], "columns": ["x"]}, "no column `x`"),
        ({"by": ["shop"], "column": "shop"}, "one of the columns of `by`"),
    ],
)
def test_denormalise_says_what_is_wrong(params: dict[str, Any], words: str) -> None:
    (mistake,) = mistakes("denormalise", params, SHAPE)
    assert words in mistake.message


def test_normalise_makes_a_row_of_each_value() -> None:
    rows = [{"id": 1, "tags": "a, b"}, {"id": 2, "tags": ""}, {"id": 3, "tags": None}, {"id": 4, "tags": "c"}]
    params = {"column": "tags", "position": "number"}
    assert run("normalise", params, {"input": rows}).main == [
        {"id": 1, "tags": "a", "number": 1},
        {"id": 1, "tags": "b", "number": 2},
        {"id": 2, "tags": None, "number": 1},
        {"id": 3, "tags": None, "number": 1},
        {"id": 4, "tags": "c", "number": 1},
    ]
    short = run("normalise", {"column": "TAGS", "trim": False, "keep_empty": False}, {"input": rows}).main
    assert [row["tags"] for row in short] == ["a", " b", "c"]


def test_normalise_of_lists() -> None:
    rows = [{"id": 1, "n": [3, 4]}, {"id": 2, "n": []}]
    assert run("normalise", {"column": "n"}, {"input": rows}).main == [
        {"id": 1, "n": 3},
        {"id": 1, "n": 4},
        {"id": 2, "n": None},
    ]


def test_normalise_keeps_the_order_of_many_rows() -> None:
    rows = [{"id": number, "tags": "a|b"} for number in range(80_000)]
    made = run("normalise", {"column": "tags", "separator": "|"}, {"input": rows}).main
    assert [(row["id"], row["tags"]) for row in made] == [(number, tag) for number in range(80_000) for tag in "ab"]


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({"column": "amount"}, "type", "`amount` is BIGINT: only text and lists"),
        ({"column": "x"}, "column", "no column `x`"),
        ({"column": "shop", "position": "amount"}, "value", "there is a column `amount` already"),
    ],
)
def test_normalise_says_what_is_wrong(params: dict[str, Any], kind: str, words: str) -> None:
    (mistake,) = mistakes("normalise", params, SHAPE)
    assert mistake.kind == kind
    assert words in mistake.message


PIVOT: dict[str, Any] = {"by": ["shop"], "column": "quarter", "value": "amount"}


@pytest.mark.parametrize("values", [None, ["q1", "q2"]])
def test_pivot_turns_values_into_columns(values: list[str] | None) -> None:
    assert run("pivot", PIVOT | {"values": values}, {"input": SALES}).main == [
        {"shop": "Ulm", "q1": 5, "q2": 6},
        {"shop": "Bonn", "q1": 2, "q2": None},
    ]


@pytest.mark.parametrize(
    ("aggregate", "ulm"), [("first", 5), ("last", 7), ("list", [5, 7]), ("count", 2), ("avg", 6.0)]
)
def test_pivot_makes_one_value_of_several(aggregate: str, ulm: Any) -> None:
    rows = [*SALES[:3], {"shop": "Ulm", "quarter": "q1", "amount": 7}]
    assert run("pivot", PIVOT | {"aggregate": aggregate, "values": ["q1"]}, {"input": rows}).main[0]["q1"] == ulm


def test_pivot_over_all_other_columns_with_values_that_are_no_text() -> None:
    rows = [{"g": "a", "year": 2023, "n": 1}, {"g": "a", "year": 2024, "n": 2}]
    assert run("pivot", {"column": "year", "value": "n", "prefix": "y"}, {"input": rows}).main == [
        {"g": "a", "y2023": 1, "y2024": 2}
    ]
    assert run("pivot", {"column": "year", "value": "n", "values": [2024]}, {"input": rows}).main == [
        {"g": "a", "2024": 2}
    ]


def test_pivot_knows_its_columns_only_when_its_values_are_given() -> None:
    assert columns("pivot", PIVOT | {"values": ["q1"], "aggregate": "max"}, SHAPE) == {
        "shop": "VARCHAR",
        "q1": "BIGINT",
    }
    assert columns("pivot", PIVOT, SHAPE) is None


def test_pivot_with_too_many_values_is_a_clear_error() -> None:
    rows = [{"k": number, "v": 1} for number in range(1_001)]
    with pytest.raises(ComponentFailure, match="`k` has more than 1,000 values, too many for columns; name those"):
        run("pivot", {"column": "k", "value": "v"}, {"input": rows})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (PIVOT | {"column": "x"}, "no column `x`"),
        (PIVOT | {"by": ["quarter"]}, "folded away by the pivot"),
        (PIVOT | {"values": ["q1", "Q1"]}, "named twice"),
        (PIVOT | {"values": ["shop"]}, "a second column of that name"),
        (PIVOT | {"aggregate": "median"}, "`median`"),
    ],
)
def test_pivot_says_what_is_wrong(params: dict[str, Any], words: str) -> None:
    assert words in mistakes("pivot", params, SHAPE)[0].message


def test_unpivot_turns_columns_into_rows() -> None:
    rows = [{"shop": "Ulm", "q1": 5, "q2": 6.5}, {"shop": "Bonn", "q1": 2, "q2": None}]
    params = {"keep": ["shop"], "name": "quarter", "value": "sales"}
    assert run("unpivot", params, {"input": rows}).main == [
        {"shop": "Ulm", "quarter": "q1", "sales": 5},
        {"shop": "Ulm", "quarter": "q2", "sales": 6.5},
        {"shop": "Bonn", "quarter": "q1", "sales": 2},
    ]
    kept = run("unpivot", {"columns": ["Q2"], "keep_nulls": True}, {"input": rows}).main
    assert kept == [
        {"shop": "Ulm", "q1": 5, "name": "q2", "value": 6.5},
        {"shop": "Bonn", "q1": 2, "name": "q2", "value": None},
    ]


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({}, "value", "at least one of `columns` and `keep`"),
        ({"keep": ["quarter"]}, "type", "`amount` is BIGINT and `shop` is VARCHAR: one column cannot hold both"),
        ({"columns": ["x"]}, "column", "no column `x`"),
        ({"keep": ["shop", "quarter", "amount"]}, "value", "no column is left"),
        ({"columns": ["amount"], "name": "SHOP"}, "value", "there is a column `SHOP` already"),
        ({"columns": ["amount"], "name": "value"}, "value", "the same column"),
    ],
)
def test_unpivot_says_what_is_wrong(params: dict[str, Any], kind: str, words: str) -> None:
    (mistake,) = mistakes("unpivot", params, SHAPE)
    assert mistake.kind == kind
    assert words in mistake.message


@pytest.mark.clause("J10.4")
def test_union_stacks_inputs_by_the_names_of_ports_and_columns() -> None:
    inputs = {"input_web": [{"id": 3, "browser": "lynx"}], "input_shop": [{"id": 1, "till": 4}, {"id": 2, "till": 5}]}
    assert run("union", {"source": "channel"}, inputs).main == [
        {"id": 1, "till": 4, "browser": None, "channel": "shop"},
        {"id": 2, "till": 5, "browser": None, "channel": "shop"},
        {"id": 3, "till": None, "browser": "lynx", "channel": "web"},
    ]


def test_union_of_rows_that_are_alike_keeps_the_first() -> None:
    inputs = {"input_a": [{"n": 2}, {"n": 1}, {"n": 2}], "input_b": [{"n": 1}, {"n": None}]}
    assert run("union", {"distinct": True}, inputs).main == [{"n": 2}, {"n": 1}, {"n": None}]


def test_union_keeps_the_order_of_many_rows() -> None:
    inputs = {"input_a": [{"n": n} for n in range(150_000)], "input_b": [{"n": n} for n in range(150_000, 200_000)]}
    assert [row["n"] for row in run("union", {}, inputs).main] == list(range(200_000))


def test_union_of_different_types_has_one_that_holds_both() -> None:
    inputs = {"input_a": schema(n="BIGINT", t="DATE"), "input_b": schema(n="DOUBLE", t="VARCHAR")}
    assert columns("union", {}, inputs) == {"n": "DOUBLE", "t": "VARCHAR"}


def test_union_cannot_add_a_column_that_is_there() -> None:
    (mistake,) = mistakes("union", {"source": "N"}, {"input_a": schema(n="DATE")})
    assert mistake.message == "`input_a` has a column `N` already"


def test_replicate_gives_the_same_rows_to_all() -> None:
    ran = run("replicate", {}, {"input": SALES}, connected=["output_0", "output_1"])
    assert ran.outputs == {"output_0": SALES, "output_1": SALES}
    assert run("replicate", {}, {"input": SALES}, connected=["output_x"]).outputs == {"output_x": SALES}


def test_sql_runs_a_query_over_inputs_by_their_names() -> None:
    query = "WITH o AS (SELECT * FROM orders) SELECT c.name, sum(o.n) AS n FROM o JOIN customers c USING (id) GROUP BY 1 ORDER BY 1"
    inputs = {"orders": [{"id": 1, "n": 5}, {"id": 1, "n": 6}], "customers": [{"id": 1, "name": "Ada"}]}
    assert run("sql", {"query": query}, inputs).main == [{"name": "Ada", "n": 11}]
    assert run("sql", {"query": "SELECT range AS i FROM range(2)"}).main == [{"i": 0}, {"i": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders; SELECT 1",
        "DROP TABLE orders",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM ordres",
        "SELECT shp FROM orders",
        "SELECT shop + 1 AS x FROM orders",
        "",
    ],
)
def test_sql_that_cannot_run_is_found_before_the_run(query: str) -> None:
    (mistake,) = mistakes("sql", {"query": query}, {"orders": SHAPE["input"]})
    assert mistake.path == ("query",)


def test_sql_knows_its_columns_and_where_they_come_from() -> None:
    found = infer(
        "sql", {"query": "SELECT o.shop, count(*) AS n FROM orders o GROUP BY ALL"}, {"orders": SHAPE["input"]}
    )
    assert found.outputs["main"] == schema(shop="VARCHAR", n="BIGINT")
    assert found.lineage["main"]["shop"] == (("orders", "shop"),)
