"""What the iterators that need no server iterate over."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.components.harness import mistakes, schema

from .support import failed, run


def elements(type: str, params: dict[str, Any], *arguments: Any, **named: Any) -> list[Any]:
    items: list[Any] = run(type, params, *arguments, **named).result
    return items


# ---- rows


@pytest.mark.clause("J12.1")
def test_each_row_is_an_element_in_the_order_of_the_input() -> None:
    rows = [{"id": number, "name": f"n{number}"} for number in range(2500)]
    assert elements("iterate_rows", {}, {"input": rows}) == rows


def test_values_of_rows_are_json() -> None:
    row = {
        "day": datetime.date(2024, 5, 1),
        "at": datetime.datetime(2024, 5, 1, 12, 30),
        "price": Decimal("10.50"),
        "raw": b"\x00\xff",
        "tags": ["a", "b"],
        "nothing": None,
    }
    (item,) = elements("iterate_rows", {}, {"input": [row]}, schemas={"input": schema(
        day="DATE", at="TIMESTAMP", price="DECIMAL(18,2)", raw="BLOB", tags="VARCHAR[]", nothing="VARCHAR"
    )})  # fmt: skip
    assert item == {
        "day": "2024-05-01",
        "at": "2024-05-01T12:30:00",
        "price": 10.5,
        "raw": "AP8=",
        "tags": ["a", "b"],
        "nothing": None,
    }


@pytest.mark.clause("J12.4")
def test_no_rows_are_no_elements() -> None:
    assert elements("iterate_rows", {}, {"input": []}, schemas={"input": schema(id="BIGINT")}) == []


# ---- groups


@pytest.mark.clause("J12.1")
def test_groups_come_in_the_order_of_their_first_rows_and_keep_the_order_within() -> None:
    rows = [{"k": "b", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}, {"k": None, "n": 4}, {"k": None, "n": 5}]
    assert elements("iterate_groups", {"by": ["k"]}, {"input": rows}) == [
        {"key": {"k": "b"}, "rows": [{"k": "b", "n": 1}, {"k": "b", "n": 3}]},
        {"key": {"k": "a"}, "rows": [{"k": "a", "n": 2}]},
        {"key": {"k": None}, "rows": [{"k": None, "n": 4}, {"k": None, "n": 5}]},
    ]


def test_groups_can_be_made_of_several_columns_whose_case_does_not_matter() -> None:
    rows = [{"Land": "nl", "jahr": 1}, {"Land": "nl", "jahr": 2}, {"Land": "nl", "jahr": 1}]
    found = elements("iterate_groups", {"by": ["land", "JAHR"]}, {"input": rows})
    assert [(group["key"], len(group["rows"])) for group in found] == [
        ({"Land": "nl", "jahr": 1}, 2),
        ({"Land": "nl", "jahr": 2}, 1),
    ]


def test_groups_of_many_rows_keep_the_order_of_the_input() -> None:
    rows = [{"k": (number * 7) % 11, "n": number} for number in range(20_000)]
    found = elements("iterate_groups", {"by": ["k"]}, {"input": rows})
    assert [group["key"]["k"] for group in found] == [(number * 7) % 11 for number in range(11)]
    assert all([row["n"] for row in group["rows"]] == sorted(row["n"] for row in group["rows"]) for group in found)


def test_an_unknown_column_is_found_before_the_run_and_at_the_latest_in_it() -> None:
    (mistake,) = mistakes("iterate_groups", {"by": ["countri"]}, {"input": schema(country="VARCHAR", n="BIGINT")})
    assert (mistake.path, mistake.kind) == (("by", 0), "column")
    assert "there is no column `countri`; did you mean `country`?" in mistake.message
    failure = failed("iterate_groups", {"by": ["x"]}, {"input": [{"country": "nl"}]})
    assert (failure.kind, failure.message) == (
        "parameters",
        "`by`: there is no column `x`; there are `country`",
    )


# ---- lists


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"items": [1, "two", {"three": 3}, None]}, [1, "two", {"three": 3}, None]),
        ({"items": []}, []),
        ({"items": " a, b ,,c "}, ["a", "b", "c"]),
        ({"items": "a;b", "separator": ";"}, ["a", "b"]),
        ({"items": ""}, []),
    ],
)
def test_a_list_is_given_or_taken_apart(params: dict[str, Any], expected: list[Any]) -> None:
    assert elements("iterate_list", params) == expected


def test_something_that_is_no_list_is_refused() -> None:
    assert "`items`" in failed("iterate_list", {"items": {"a": 1}}).message


# ---- numbers


@cases(
    "params, expected",
    [
        ({"stop": 3}, [0, 1, 2]),
        ({"start": 1, "count": 3}, [1, 2, 3]),
        ({"start": 10, "stop": 0, "step": -4}, [10, 6, 2]),
        ({"start": 0, "stop": 10, "step": 4}, [0, 4, 8]),
        ({"start": 0, "stop": 8, "step": 4}, [0, 4]),
        ({"start": 5, "stop": 1}, []),
        ({"count": 0}, []),
        ({"start": 0, "stop": 0.5, "step": 0.1}, [0.0, 0.1, 0.2, 0.3, 0.4]),
        ({"start": "1", "stop": "3"}, [1, 2]),
    ],
)
def test_a_range_ends_before_its_stop(params: dict[str, Any], expected: list[Any]) -> None:
    assert elements("iterate_range", params) == expected


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"stop": 3, "step": 0}, "`step` is 0"),
        ({}, "has neither"),
        ({"stop": 3, "count": 2}, "has both"),
    ],
)
def test_a_range_that_means_nothing_is_found_before_the_run(params: dict[str, Any], message: str) -> None:
    assert [message in each.message for each in mistakes("iterate_range", params)] == [True]
    assert message in failed("iterate_range", params).message


def test_a_range_without_reason_is_refused() -> None:
    assert "at most 10,000,000" in failed("iterate_range", {"stop": 10**12}).message


# ---- while


def test_a_loop_with_a_condition_is_the_engines_own() -> None:
    assert "the engine evaluates" in failed("iterate_while", {"while": "global.n < 3", "max": 5}).message
    assert "`while`: is needed" in failed("iterate_while", {}).message


# ---- files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    drop = tmp_path / "drop"
    (drop / "sub").mkdir(parents=True)
    for name, size, time in (
        ("b.csv", 1, 300),
        ("a.csv", 3, 100),
        ("c.txt", 2, 200),
        ("sub/d.csv", 2, 50),
        (".x.csv", 9, 1),
    ):
        (drop / name).write_bytes(b"x" * size)
        os.utime(drop / name, (time, time))
    return tmp_path


def names(folder: Path, **params: Any) -> list[str]:
    found = elements("iterate_files", {"path": "drop", **params}, folder=folder)
    return [str(Path(item["path"]).relative_to(folder / "drop")) for item in found]


@pytest.mark.clause("J12.1")
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, ["a.csv", "b.csv", "c.txt"]),
        ({"pattern": "*.csv"}, ["a.csv", "b.csv"]),
        ({"pattern": "*.csv", "recursive": True}, ["a.csv", "b.csv", "sub/d.csv"]),
        ({"pattern": ["*.txt", "b.*", "*.csv"]}, ["a.csv", "b.csv", "c.txt"]),
        ({"exclude": "b*"}, ["a.csv", "c.txt"]),
        ({"sort": "modified"}, ["a.csv", "c.txt", "b.csv"]),
        ({"sort": "size", "order": "descending"}, ["a.csv", "c.txt", "b.csv"]),
        ({"order": "descending"}, ["c.txt", "b.csv", "a.csv"]),
        ({"what": "folders"}, ["sub"]),
        ({"pattern": ".*"}, [".x.csv"]),
        ({"pattern": "sub/*.csv"}, ["sub/d.csv"]),
        ({"pattern": "*.none"}, []),
    ],
)
def test_files_are_found_by_pattern_and_in_the_order_asked_for(
    folder: Path, params: dict[str, Any], expected: list[str]
) -> None:
    assert names(folder, **params) == expected


def test_what_is_known_of_a_file(folder: Path) -> None:
    (item,) = elements("iterate_files", {"path": "drop", "pattern": "a.csv"}, folder=folder)
    assert item == {
        "path": str(folder / "drop" / "a.csv"),
        "name": "a.csv",
        "stem": "a",
        "extension": "csv",
        "folder": str(folder / "drop"),
        "size": 3,
        "modified": "1970-01-01T00:01:40.000Z",
    }


def test_equals_are_in_the_order_of_their_paths(folder: Path) -> None:
    for name in ("a.csv", "b.csv", "c.txt"):
        os.utime(folder / "drop" / name, (5, 5))
    assert names(folder, sort="modified", order="descending") == ["a.csv", "b.csv", "c.txt"]


def test_pipes_and_links_that_lead_nowhere_are_no_files(folder: Path) -> None:
    os.mkfifo(folder / "drop" / "pipe.csv")
    (folder / "drop" / "gone.csv").symlink_to(folder / "nowhere")
    assert names(folder, pattern="*.csv") == ["a.csv", "b.csv"]


def test_a_missing_folder_is_a_failure_unless_it_may_be_missing(folder: Path) -> None:
    failure = failed("iterate_files", {"path": "nowhere"}, folder=folder)
    assert (failure.kind, failure.message) == ("missing_file", f"there is no `{folder / 'nowhere'}`")
    assert elements("iterate_files", {"path": "nowhere", "missing_ok": True}, folder=folder) == []
    assert failed("iterate_files", {"path": "drop/a.csv"}, folder=folder).kind == "missing_file"


@pytest.mark.parametrize("pattern", ["", "../*", "/etc/*"])
def test_a_pattern_stays_in_its_folder(folder: Path, pattern: str) -> None:
    failure = failed("iterate_files", {"path": "drop", "pattern": pattern}, folder=folder)
    assert (failure.kind, "`pattern`" in failure.message) == ("parameters", True)
