"""filter, unique, sample, top: which rows go on."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.ports.components import UNKNOWN
from tests.components.harness import columns, infer, mistakes, run, schema

ORDERS = [
    {"id": 1, "country": "DE", "amount": 250},
    {"id": 2, "country": "FR", "amount": 40},
    {"id": 3, "country": "DE", "amount": None},
    {"id": 4, "country": None, "amount": 90},
]
SHAPE = {"input": schema(id="BIGINT", country="VARCHAR", amount="BIGINT")}


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_filter_keeps_what_is_true_and_rejects_what_is_false_or_unknown() -> None:
    ran = run("filter", {"where": "amount >= 90"}, {"input": ORDERS})
    assert ids(ran.main) == [1, 4]
    assert ids(ran.outputs["reject"]) == [2, 3]
    assert ran.outputs["reject"][1] == ORDERS[2] | {"error_code": "FILTER", "error_message": "not true: amount >= 90"}


def test_filter_rejects_a_row_a_second_time_with_the_new_reason() -> None:
    rows = [{"id": 1, "error_code": "OLD", "error_message": "old"}]
    rejected = run("filter", {"where": "id > 1"}, {"input": rows}).outputs["reject"]
    assert rejected == [{"id": 1, "error_code": "FILTER", "error_message": "not true: id > 1"}]


def test_filter_by_chance_puts_every_row_on_exactly_one_port() -> None:
    rows = [{"id": number} for number in range(2_000)]
    ran = run("filter", {"where": "random() < 0.5"}, {"input": rows})
    assert sorted(ids(ran.main) + ids(ran.outputs["reject"])) == ids(rows)
    assert 800 < len(ran.main) < 1_200


def test_filter_keeps_the_order_of_many_rows() -> None:
    rows = [{"id": number} for number in range(200_000)]
    assert ids(run("filter", {"where": "id % 3 = 0"}, {"input": rows}, connected=["main"]).main) == list(
        range(0, 200_000, 3)
    )


@pytest.mark.parametrize(
    ("where", "kind", "words", "offset"),
    [
        ("amuont > 3", "column", "`amount`", 0),
        ("amount >", "syntax", "ends too early", None),
        ("amount + country", "type", "", None),
        ("amount", "type", "", None),
        ("amount > 1; DROP TABLE input", "syntax", "`;` cannot stand here", 10),
        ("id IN (SELECT id FROM read_csv('/etc/passwd'))", "syntax", "read_csv", None),
    ],
)
def test_filter_is_held_against_the_columns_before_the_run(
    where: str, kind: str, words: str, offset: int | None
) -> None:
    (mistake,) = mistakes("filter", {"where": where}, SHAPE)
    assert mistake.path == ("where",)
    assert mistake.kind == kind
    assert words in f"{mistake.message} {mistake.hint}"
    if offset is not None:
        assert mistake.offset == offset


def test_filter_with_unknown_columns_is_only_read() -> None:
    found = infer("filter", {"where": "whatever > 3"}, {"input": None})
    assert found.mistakes == ()
    assert found.outputs == {"main": None, "reject": None}
    assert mistakes("filter", {"where": "whatever >"}, {"input": None})


def test_filter_with_an_unknown_condition_still_has_columns() -> None:
    found = infer("filter", {"where": UNKNOWN}, SHAPE)
    assert found.mistakes == ()
    assert found.outputs["main"] == SHAPE["input"]


def test_filter_says_where_its_columns_come_from() -> None:
    found = infer("filter", {"where": "amount > 3"}, SHAPE)
    assert found.lineage["main"]["country"] == (("input", "country"),)
    assert found.lineage["reject"]["error_code"] == ()


def test_unique_keeps_the_first_row_in_the_order_of_the_input() -> None:
    ran = run("unique", {"by": ["country"]}, {"input": ORDERS})
    assert ids(ran.outputs["unique"]) == [1, 2, 4]
    assert ids(ran.outputs["duplicate"]) == [3]


def test_unique_takes_missing_values_for_alike_and_all_columns_unless_told() -> None:
    rows = [{"a": None, "b": 1}, {"a": None, "b": 1}, {"a": None, "b": 2}]
    assert run("unique", {}, {"input": rows}).outputs == {"unique": [rows[0], rows[2]], "duplicate": [rows[1]]}


def test_unique_keeps_the_first_of_many_rows_whatever_the_threads_do() -> None:
    rows = [{"id": number, "key": (number * 7919) % 1_000} for number in range(150_000)]
    ran = run("unique", {"by": ["key"]}, {"input": rows})
    assert ids(ran.outputs["unique"]) == list(range(1_000))
    assert ids(ran.outputs["duplicate"]) == list(range(1_000, 150_000))


def test_unique_names_a_column_that_is_not_there() -> None:
    (mistake,) = mistakes("unique", {"by": ["id", "contry"]}, SHAPE)
    assert (mistake.path, mistake.kind) == (("by", 1), "column")
    assert mistake.message == "`input` has no column `contry`; did you mean `country`?"
    assert mistake.hint == "its columns are `id`, `country`, `amount`"
    with pytest.raises(ComponentFailure, match="no column `contry`") as failure:
        run("unique", {"by": ["contry"]}, {"input": ORDERS})
    assert failure.value.kind == "column"


def test_unique_knows_its_columns_before_the_run() -> None:
    assert columns("unique", {"by": ["ID"]}, SHAPE, "duplicate") == {
        "id": "BIGINT",
        "country": "VARCHAR",
        "amount": "BIGINT",
    }


def test_sample_takes_as_many_rows_as_asked_and_the_same_ones_each_time() -> None:
    rows = [{"id": number} for number in range(20_000)]
    first = run("sample", {"count": 100, "seed": 1}, {"input": rows})
    assert ids(first.main) == sorted(ids(first.main))
    assert len(first.main) == 100
    assert sorted(ids(first.main) + ids(first.outputs["rest"])) == ids(rows)
    assert run("sample", {"count": 100, "seed": 1}, {"input": rows}).main == first.main
    assert run("sample", {"count": 100, "seed": 2}, {"input": rows}).main != first.main


def test_sample_by_fraction_is_about_that_and_repeatable() -> None:
    rows = [{"id": number} for number in range(20_000)]
    first = run("sample", {"fraction": 0.25}, {"input": rows})
    assert 4_700 < len(first.main) < 5_300
    assert run("sample", {"fraction": 0.25}, {"input": rows}).main == first.main


def test_sample_by_columns_takes_rows_that_agree_together_in_any_order() -> None:
    rows = [{"id": number, "customer": number % 100} for number in range(2_000)]
    params = {"fraction": 0.3, "by": ["customer"]}
    taken = run("sample", params, {"input": rows}).main
    customers = {row["customer"] for row in taken}
    assert len(taken) == 20 * len(customers)
    assert {row["customer"] for row in run("sample", params, {"input": rows[::-1]}).main} == customers


@pytest.mark.parametrize("count", [0, 9])
def test_sample_of_none_or_more_than_there_are(count: int) -> None:
    assert len(run("sample", {"count": count}, {"input": ORDERS}).main) == min(count, 4)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "exactly one of `count` and `fraction`"),
        ({"count": 1, "fraction": 0.5}, "exactly one of `count` and `fraction`"),
        ({"count": 1, "by": ["id"]}, "`by` goes with `fraction`"),
        ({"fraction": 2}, "<= 1"),
        ({"fraction": 0.5, "by": ["x"]}, "no column `x`"),
    ],
)
def test_sample_that_makes_no_sense_is_refused(params: dict[str, Any], words: str) -> None:
    (mistake,) = mistakes("sample", params, SHAPE)
    assert words in mistake.message


def test_top_takes_the_first_of_an_order_and_ties_as_they_came() -> None:
    rows = [{"id": 1, "n": 5}, {"id": 2, "n": 9}, {"id": 3, "n": 9}, {"id": 4, "n": None}]
    assert ids(run("top", {"n": 2, "by": ["n desc"]}, {"input": rows}).main) == [2, 3]
    assert ids(run("top", {"n": 2}, {"input": rows}).main) == [1, 2]
    assert run("top", {"n": 0}, {"input": rows}).main == []


def test_top_of_each_group() -> None:
    rows = [{"g": "b", "n": 1}, {"g": "a", "n": 1}, {"g": "a", "n": 3}, {"g": "a", "n": 2}, {"g": None, "n": 0}]
    assert run("top", {"n": 2, "by": ["n desc"], "per": ["g"]}, {"input": rows}).main == [
        {"g": "a", "n": 3},
        {"g": "a", "n": 2},
        {"g": "b", "n": 1},
        {"g": None, "n": 0},
    ]


def test_top_names_what_it_does_not_know() -> None:
    found = mistakes("top", {"n": 1, "by": ["amont desc"], "per": ["country"]}, SHAPE)
    assert [(one.path, one.message) for one in found] == [
        (("by", 0), "`input` has no column `amont`; did you mean `amount`?")
    ]
