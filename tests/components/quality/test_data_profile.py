"""`data_profile`: one row for each column."""

from __future__ import annotations

from tests.components.harness import columns, mistakes, run, schema

ROWS = [{"name": "Ann", "age": 34}, {"name": "Bo", "age": None}, {"name": "Ann", "age": 51}]
NAME = {
    "column": "name",
    "type": "VARCHAR",
    "rows": 3,
    "nulls": 0,
    "distinct": 2,
    "min": "Ann",
    "max": "Bo",
    "mean": None,
    "min_length": 2,
    "max_length": 3,
}
AGE = {
    "column": "age",
    "type": "BIGINT",
    "rows": 3,
    "nulls": 1,
    "distinct": 2,
    "min": "34",
    "max": "51",
    "mean": 42.5,
    "min_length": None,
    "max_length": None,
}


def test_every_column_is_measured():
    assert run("data_profile", {}, {"input": ROWS}).main == [NAME, AGE]


def test_only_the_columns_that_were_named_are_measured():
    assert run("data_profile", {"columns": ["AGE"]}, {"input": ROWS}).main == [AGE]


def test_distinct_can_be_estimated():
    rows = [{"n": n} for n in range(5_000)]
    (profile,) = run("data_profile", {"approximate": True}, {"input": rows}).main
    assert 4_500 < profile["distinct"] < 5_500


def test_no_rows_give_measures_of_nothing():
    (profile,) = run("data_profile", {}, {"input": []}, schemas={"input": schema(a="DATE")}).main
    assert (profile["rows"], profile["nulls"], profile["distinct"], profile["min"]) == (0, 0, 0, None)


def test_lists_and_structures_are_compared_as_they_are_written():
    rows = [{"l": [1, 2], "s": {"a": 1}}, {"l": [1, 2], "s": {"a": 2}}]
    lists, structures = run("data_profile", {}, {"input": rows}).main
    assert (lists["distinct"], structures["distinct"]) == (1, 2)


def test_its_columns_are_known_before_the_run():
    made = columns("data_profile", {}, {"input": schema(a="DATE")})
    assert made is not None
    assert list(made) == list(NAME)


def test_an_unknown_column_is_found_before_the_run():
    (mistake,) = mistakes("data_profile", {"columns": ["nme"]}, {"input": schema(name="VARCHAR")})
    assert mistake.path == ("columns", 0)
