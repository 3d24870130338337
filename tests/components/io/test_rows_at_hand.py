"""`fixed_rows`, `generate_rows`, `log_rows`."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import columns, mistakes, run, schema


def fixed(**params: Any) -> Any:
    return run("fixed_rows", params)


def test_fixed_rows_take_the_narrowest_type_of_their_values() -> None:
    names = ["i", "f", "m", "t", "b", "n", "l", "o", "x", "h"]
    rows = [
        [1, 1.5, 1, "a", True, None, [1, 2], {"k": 1}, 1, 2**70],
        [2, 2.0, 2.5, "b", False, None, None, {"z": [1]}, "x", 1],
    ]
    ran = fixed(columns=names, rows=rows)
    assert {column.name: column.type for column in ran.schemas["main"]} == {
        "i": "BIGINT",
        "f": "DOUBLE",
        "m": "DOUBLE",
        "t": "VARCHAR",
        "b": "BOOLEAN",
        "n": "VARCHAR",
        "l": "BIGINT[]",
        "o": "JSON",
        "x": "VARCHAR",
        "h": "HUGEINT",
    }
    assert ran.main[0]["m"] == 1.0
    assert ran.main[0]["l"] == [1, 2]
    assert [row["x"] for row in ran.main] == ["1", "x"]
    assert columns("fixed_rows", {"columns": names, "rows": rows}) == {
        column.name: column.type for column in ran.schemas["main"]
    }


def test_fixed_rows_of_given_types() -> None:
    ran = fixed(
        columns=[{"name": "day", "type": "date"}, {"name": "price", "type": "decimal(10,2)"}, "id"],
        rows=[["2024-01-31", 1.5, 1], [None, "2.25", 2]],
    )
    assert ran.main == [
        {"day": datetime.date(2024, 1, 31), "price": Decimal("1.50"), "id": 1},
        {"day": None, "price": Decimal("2.25"), "id": 2},
    ]


def test_fixed_rows_may_be_mappings_and_may_be_none() -> None:
    assert fixed(rows=[{"a": 1}, {"b": "it's"}]).main == [{"a": 1, "b": None}, {"a": None, "b": "it's"}]
    ran = fixed(columns=["a", {"name": "d", "type": "date"}], rows=[])
    assert (ran.main, ran.schemas["main"]) == ([], schema(a='"NULL"', d="DATE"))


def test_fixed_rows_keep_their_order() -> None:
    assert [row["n"] for row in fixed(columns=["n"], rows=[[9 - n] for n in range(10)]).main] == list(range(9, -1, -1))


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"columns": ["a", "b"], "rows": [[1, 2], [1]]}, ("rows", 1), "1 values for 2 columns"),
        ({"columns": ["a"], "rows": [{"aa": 1}]}, ("rows", 0, "aa"), "no column `aa`; did you mean `a`?"),
        ({"columns": [{"name": "d", "type": "date"}], "rows": [["2024-01-01"], ["2024-02-30"]]}, ("rows", 1, 0), "`2024-02-30` is not a DATE"),
        ({"columns": [{"name": "d", "type": "dte"}], "rows": []}, ("columns", 0, "type"), "did you mean `date`"),
        ({"columns": ["a", "A"], "rows": []}, ("columns", 1), "named twice"),
        ({"rows": []}, ("columns",), "there are no columns"),
    ],
)  # fmt: skip
def test_mistakes_in_fixed_rows_are_found_before_the_run_and_in_it(params: Any, path: Any, words: str) -> None:
    (mistake,) = mistakes("fixed_rows", params)
    assert mistake.path == path
    assert words in mistake.message
    with pytest.raises(ComponentFailure) as failed:
        fixed(**params)
    assert words in failed.value.message


def generate(**params: Any) -> Any:
    return run("generate_rows", params)


def test_generated_rows_are_expressions_over_their_number() -> None:
    ran = generate(count=3, columns={"id": "i + 1", "name": "'row ' || i", "twice": "id * 2"})
    assert ran.main == [{"id": n + 1, "name": f"row {n}", "twice": 2 * n + 2} for n in range(3)]
    assert generate(count=0, columns={"id": "i"}).main == []


def test_chance_depends_on_the_seed_only() -> None:
    params = {"count": 20_000, "columns": {"i": "i", "r": "random()", "s": "random()", "u": "uuid()"}}
    one, two, other = generate(**params).main, generate(**params).main, generate(**params, seed=1).main
    assert one == two
    assert one != other
    numbers = [row["r"] for row in one]
    assert 0 <= min(numbers) < 0.01
    assert 0.99 < max(numbers) < 1
    assert abs(sum(numbers) / len(numbers) - 0.5) < 0.01
    assert sum(row["r"] == row["s"] for row in one) < 5
    assert len({row["u"] for row in one}) == 20_000


def test_the_types_of_generated_rows_are_known_before_the_run() -> None:
    assert columns(
        "generate_rows", {"count": 1, "columns": {"id": "i", "day": "DATE '2024-01-01'", "r": "random()"}}
    ) == {
        "id": "BIGINT",
        "day": "DATE",
        "r": "DOUBLE",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [("j + 1", "j"), ("i +", "ends too early"), ("read_csv('x')", "read_csv"), ("(SELECT 1 FROM 'x.csv')", "x.csv")],
)
def test_wrong_expressions_are_mistakes_with_their_place(text: str, words: str) -> None:
    (mistake,) = mistakes("generate_rows", {"count": 1, "columns": {"a": "i", "b": text}})
    assert mistake.path == ("columns", "b")
    assert words in mistake.message


ROWS = [{"id": 1, "name": "a\nb", "amount": Decimal("3.00")}, {"id": 20, "name": None, "amount": Decimal("1.50")}]


def test_rows_are_shown_as_a_table_and_go_on() -> None:
    ran = run("log_rows", {}, {"input": ROWS})
    assert ran.shown == [
        "it",
        "| id | name | amount |",
        "|----|------|--------|",
        "|  1 | a b  |   3.00 |",
        "| 20 | NULL |   1.50 |",
        "2 rows",
    ]
    assert ran.main == ROWS


def test_rows_are_shown_as_lines_or_as_json() -> None:
    assert run("log_rows", {"format": "lines", "title": "rows"}, {"input": ROWS}).shown == [
        "rows",
        "id: 1, name: a b, amount: 3.00",
        "id: 20, name: NULL, amount: 1.50",
    ]
    assert run("log_rows", {"format": "json"}, {"input": ROWS}).shown == [
        '{"id": 1, "name": "a\\nb", "amount": 3}',
        '{"id": 20, "name": null, "amount": 1.5}',
    ]


def test_only_so_many_rows_are_shown_and_all_go_on() -> None:
    ran = run("log_rows", {"limit": 1, "width": 4}, {"input": [{"a": "x" * 9}, {"a": "y"}]})
    assert ran.shown[3:] == ["| xxx… |", "1 of 2 rows"]
    assert len(ran.main) == 2
    assert run("log_rows", {}, {"input": []}, schemas={"input": schema(a="DATE")}).shown == [
        "it",
        "| a |",
        "|---|",
        "0 rows",
    ]


def test_data_cannot_steer_the_terminal() -> None:
    for format in ("table", "lines", "json"):
        ran = run("log_rows", {"format": format}, {"input": [{"a": "\x1b[2J\r"}]})
        assert not any("\x1b" in line or "\r" in line for line in ran.shown)
