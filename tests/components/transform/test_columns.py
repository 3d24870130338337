"""select, derive, sort, sequence, fill_down, window: the columns of a row, and its neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.ports.components import UNKNOWN
from tests.components.harness import columns, infer, mistakes, run, schema

RAW = [{"CUST_NO": 1, "NAME": "Ada", "X": "x", "COUNTRY": "UK"}]
SHAPE = {"input": schema(a="BIGINT", b="VARCHAR", c="DOUBLE")}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"columns": ["NAME", "CUST_NO"]}, {"NAME": "Ada", "CUST_NO": 1}),
        ({"columns": {"id": "CUST_NO", "NAME": "NAME"}}, {"id": 1, "NAME": "Ada"}),
        ({"columns": ["COUNTRY", {"id": "CUST_NO"}, "*"]}, {"COUNTRY": "UK", "id": 1, "NAME": "Ada", "X": "x"}),
        ({"exclude": ["x"]}, {"CUST_NO": 1, "NAME": "Ada", "COUNTRY": "UK"}),
        ({"columns": ["name", "x"], "rename": {"NAME": "called"}}, {"called": "Ada", "X": "x"}),
        ({"columns": {"again": "NAME", "NAME": "NAME"}}, {"again": "Ada", "NAME": "Ada"}),
    ],
)
def test_select_chooses_renames_and_reorders(params: dict[str, Any], expected: dict[str, Any]) -> None:
    (row,) = run("select", params, {"input": RAW}).main
    assert list(row.items()) == list(expected.items())


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"columns": ["d"]}, ("columns", 0), "no column `d`"),
        ({"columns": {"n": "d"}}, ("columns", "n"), "no column `d`"),
        ({"columns": ["a", {"n": "d"}]}, ("columns", 1, "n"), "no column `d`"),
        ({"exclude": ["d"]}, ("exclude", 0), "no column `d`"),
        ({"rename": {"d": "e"}}, ("rename", "d"), "no column `d`"),
        ({"rename": {"a": "b"}}, ("columns",), "two columns would have that name"),
        ({"exclude": ["a", "b", "c"]}, (), "no column is left"),
    ],
)
def test_select_says_what_is_wrong_and_where(params: dict[str, Any], path: tuple[Any, ...], words: str) -> None:
    (mistake,) = mistakes("select", params, SHAPE)
    assert mistake.path == path
    assert words in mistake.message


def test_select_knows_its_columns_and_where_they_come_from() -> None:
    found = infer("select", {"columns": {"n": "c", "a": "a"}}, SHAPE)
    assert found.outputs["main"] == schema(n="DOUBLE", a="BIGINT")
    assert found.lineage["main"] == {"n": (("input", "c"),), "a": (("input", "a"),)}


def test_derive_adds_columns_and_later_ones_see_earlier_ones() -> None:
    params = {"columns": {"net": "quantity * price", "gross": "net * 2", "both": "net + gross"}}
    assert run("derive", params, {"input": [{"quantity": 2, "price": 5}]}).main == [
        {"quantity": 2, "price": 5, "net": 10, "gross": 20, "both": 30}
    ]


def test_derive_replaces_a_column_in_its_place_and_later_ones_see_the_new_value() -> None:
    ran = run("derive", {"columns": {"A": "a + 1", "c": "a * 10"}}, {"input": [{"a": 1, "b": "x"}]})
    assert list(ran.main[0].items()) == [("a", 2), ("b", "x"), ("c", 20)]


def test_derive_throws_dice_once_per_name() -> None:
    params = {"columns": {"dice": "random()", "again": "dice"}}
    rows = run("derive", params, {"input": [{"a": number} for number in range(100)]}).main
    assert all(row["dice"] == row["again"] for row in rows)


def test_derive_knows_its_types_and_where_columns_come_from() -> None:
    found = infer("derive", {"columns": {"d": "a + c", "e": "d || b"}}, SHAPE)
    assert found.outputs["main"] == (*SHAPE["input"], *schema(d="DOUBLE", e="VARCHAR"))
    assert set(found.lineage["main"]["e"]) == {("input", "a"), ("input", "b"), ("input", "c")}


@pytest.mark.parametrize(
    ("made", "path", "kind", "offset"),
    [
        ({"d": "a + aa"}, ("columns", "d"), "column", 4),
        ({"d": "a * 2", "e": "d + dd"}, ("columns", "e"), "column", 4),
        ({"d": "a * 2", "e": "d ||"}, ("columns", "e"), "syntax", None),
        ({"d": "b + 1", "e": "d * 2"}, ("columns", "d"), "type", None),
        ({"d": "b", "e": "d + 1"}, ("columns", "e"), "type", None),
        ({"d": "sum(a)"}, ("columns", "d"), "syntax", None),
    ],
)
def test_derive_is_bound_before_the_run(
    made: dict[str, str], path: tuple[str, ...], kind: str, offset: int | None
) -> None:
    (mistake,) = mistakes("derive", {"columns": made}, SHAPE)
    assert mistake.path == path
    assert mistake.kind == kind or kind == "syntax"
    if offset is not None:
        assert mistake.offset == offset


def test_derive_with_an_unknown_expression_checks_the_others() -> None:
    assert mistakes("derive", {"columns": {"d": UNKNOWN, "e": "aa"}}, SHAPE)[0].path == ("columns", "e")
    assert infer("derive", {"columns": {"d": UNKNOWN}}, SHAPE).outputs == {"main": None}


def test_derive_with_nothing_to_derive_is_refused() -> None:
    assert "length >= 1" in mistakes("derive", {"columns": {}}, SHAPE)[0].message


def test_sort_is_stable_and_puts_missing_values_last() -> None:
    rows = [{"id": 1, "n": 2}, {"id": 2, "n": None}, {"id": 3, "n": 2}, {"id": 4, "n": 1}]

    def order(*by: Any) -> list[int]:
        return [row["id"] for row in run("sort", {"by": list(by)}, {"input": rows}).main]

    assert order("n") == [4, 1, 3, 2]
    assert order("n desc") == [1, 3, 4, 2]
    assert order("n DESC NULLS FIRST") == [2, 1, 3, 4]
    assert order({"column": "n", "order": "desc", "nulls": "first"}, "id desc") == [2, 3, 1, 4]
    assert order("-n") == [1, 3, 4, 2]


def test_sort_takes_a_column_whose_name_is_no_word_of_sql() -> None:
    rows = [{"order date": 2}, {"order date": 1}]
    assert run("sort", {"by": ["order date"]}, {"input": rows}).main == rows[::-1]


def test_sort_is_stable_for_many_rows_whatever_the_threads_do() -> None:
    rows = [{"id": number, "key": (number * 7919) % 10} for number in range(150_000)]
    assert run("sort", {"by": ["key"]}, {"input": rows}).main == sorted(rows, key=lambda row: row["key"])


@pytest.mark.parametrize(
    ("by", "path", "words"),
    [
        (["aa desc"], ("by", 0), "no column `aa`; did you mean `a`"),
        (["a", {"column": "bb"}], ("by", 1, "column"), "no column `bb`"),
        (["length(bb)"], ("by", 0), "bb"),
        ([""], ("by", 0), "a column is needed here"),
        ([{"column": "a", "order": "down"}], ("by",), ""),
        ([], ("by",), "length >= 1"),
    ],
)
def test_sort_says_what_is_wrong_and_where(by: list[Any], path: tuple[Any, ...], words: str) -> None:
    (mistake,) = mistakes("sort", {"by": by}, SHAPE)
    assert mistake.path[: len(path)] == path
    assert words in mistake.message


def test_sequence_numbers_rows_as_they_come() -> None:
    rows = [{"g": "a"}, {"g": "b"}, {"g": "a"}]
    assert [row["n"] for row in run("sequence", {"name": "n", "start": 10, "step": 5}, {"input": rows}).main] == [
        10,
        15,
        20,
    ]
    assert run("sequence", {"name": "n", "by": ["g"]}, {"input": rows}).main == [
        {"g": "a", "n": 1},
        {"g": "b", "n": 1},
        {"g": "a", "n": 2},
    ]


def test_sequence_replaces_a_column_in_its_place() -> None:
    (row,) = run("sequence", {"name": "ID"}, {"input": [{"id": 99, "x": 1}]}).main
    assert list(row.items()) == [("id", 1), ("x", 1)]


@pytest.mark.parametrize("by", [[], ["key"]])
def test_sequence_of_many_rows_follows_the_input_whatever_the_threads_do(by: list[str]) -> None:
    rows = [{"key": number // 50_000, "at": number} for number in range(150_000)]
    numbers = [row["n"] for row in run("sequence", {"name": "n", "by": by, "start": 0}, {"input": rows}).main]
    assert numbers == [number % 50_000 if by else number for number in range(150_000)]


def test_fill_down_carries_the_last_value_but_not_into_another_group() -> None:
    rows = [
        {"g": 1, "v": None},
        {"g": 1, "v": "a"},
        {"g": 1, "v": None},
        {"g": 2, "v": None},
        {"g": 2, "v": ""},
    ]
    filled = [row["v"] for row in run("fill_down", {"columns": ["v"]}, {"input": rows}).main]
    assert filled == [None, "a", "a", "a", ""]
    grouped = run("fill_down", {"columns": ["V"], "by": ["g"], "empty_text": True}, {"input": rows})
    assert [row["v"] for row in grouped.main] == [None, "a", "a", None, None]


def test_fill_down_of_many_rows_follows_the_input_whatever_the_threads_do() -> None:
    rows = [{"at": number, "v": number if number % 1_000 == 0 else None} for number in range(150_000)]
    filled = run("fill_down", {"columns": ["v"]}, {"input": rows}).main
    assert all(row["v"] == row["at"] // 1_000 * 1_000 for row in filled)
    assert [row["at"] for row in filled] == list(range(150_000))


def test_window_takes_functions_over_its_own_partition_and_order() -> None:
    rows = [{"g": "a", "d": 2, "n": 5}, {"g": "b", "d": 1, "n": 9}, {"g": "a", "d": 1, "n": 3}]
    params = {
        "columns": {"total": "sum(n)", "before": "lag(n)", "share": "n / sum(n) OVER (PARTITION BY g)"},
        "partition_by": ["g"],
        "order_by": ["d"],
    }
    assert run("window", params, {"input": rows}).main == [
        {"g": "a", "d": 2, "n": 5, "total": 8, "before": 3, "share": 0.625},
        {"g": "b", "d": 1, "n": 9, "total": 9, "before": None, "share": 1.0},
        {"g": "a", "d": 1, "n": 3, "total": 3, "before": None, "share": 0.375},
    ]


def test_window_with_a_frame() -> None:
    rows = [{"n": number} for number in (1, 2, 3, 4)]
    params = {"columns": {"s": "sum(n)"}, "order_by": ["n"], "frame": "rows between 1 preceding and current row"}
    assert [row["s"] for row in run("window", params, {"input": rows}).main] == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"columns": {"x": "sum(aa)"}}, ("columns", "x"), "aa"),
        ({"columns": {"x": "a + 1"}}, ("columns", "x"), "there is no window function here"),
        ({"columns": {"x": "sum(a"}}, ("columns", "x"), ""),
        ({"columns": {"x": "sum(a)"}, "partition_by": ["z"]}, ("partition_by", 0), "no column `z`"),
        ({"columns": {"x": "sum(a)"}, "order_by": ["z"]}, ("order_by", 0), "no column `z`"),
        ({"columns": {"x": "sum(a)"}, "frame": "1) FROM x --"}, ("frame",), "is not a window frame"),
        ({"columns": {"x": "sum(b)"}}, ("columns", "x"), "sum"),
    ],
)
def test_window_says_what_is_wrong_and_where(params: dict[str, Any], path: tuple[Any, ...], words: str) -> None:
    (mistake,) = mistakes("window", params, SHAPE)
    assert mistake.path == path
    assert words in mistake.message


def test_window_points_at_the_word_in_the_author_s_text() -> None:
    (mistake,) = mistakes("window", {"columns": {"x": "sum(aa)"}, "order_by": ["a"]}, SHAPE)
    assert (mistake.offset, mistake.length) == (4, 2)


@pytest.mark.parametrize("type_", ["sequence", "fill_down", "window", "sort", "derive", "select"])
def test_transforms_that_keep_the_count_know_their_columns(type_: str) -> None:
    params: dict[str, dict[str, Any]] = {
        "sequence": {"name": "n"},
        "fill_down": {"columns": ["b"]},
        "window": {"columns": {"n": "count(*)"}},
        "sort": {"by": ["a"]},
        "derive": {"columns": {"n": "a"}},
        "select": {},
    }
    found = columns(type_, params[type_], SHAPE)
    assert found is not None
    assert list(found)[:3] == ["a", "b", "c"]


def test_a_missing_column_is_a_failure_when_it_was_not_known_before() -> None:
    with pytest.raises(ComponentFailure, match="`columns\\[0\\]`: `input` has no column `d`"):
        run("fill_down", {"columns": ["d"]}, {"input": [{"a": 1}]})
