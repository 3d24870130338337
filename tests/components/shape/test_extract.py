"""`extract_regex`, `extract_json`, `extract_delimited`, `extract_positional`."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import Ran, columns, mistakes, run, schema


def extract(type: str, texts: list[Any], **params: Any) -> Ran:
    rows = [{"n": number, "t": text} for number, text in enumerate(texts)]
    return run(
        type,
        {"column": "t", "keep": False, **params},
        {"input": rows},
        schemas={"input": schema(n="BIGINT", t="VARCHAR")},
    )


def refused(ran: Ran) -> list[tuple[int, str, str]]:
    return [(row["n"], row["error_code"], row["error_message"]) for row in ran.outputs["reject"]]


def test_groups_become_columns_and_what_does_not_match_is_refused():
    ran = extract(
        "extract_regex", ["a-1", "b-22", "c", None], pattern=r"([a-z])-(\d+)", into={"l": "string", "d": "integer"}
    )
    assert ran.main == [{"n": 0, "l": "a", "d": 1}, {"n": 1, "l": "b", "d": 22}, {"n": 3, "l": None, "d": None}]
    assert ran.outputs["reject"] == [
        {"n": 2, "t": "c", "error_code": "EXTRACT", "error_message": r"`t`: `c` does not match `([a-z])-(\d+)`"}
    ]


def test_named_groups_name_the_columns():
    assert extract("extract_regex", ["x7"], pattern=r"(?P<letter>.)(?P<digit>.)").main == [
        {"n": 0, "letter": "x", "digit": "7"}
    ]


def test_a_pattern_without_groups_gives_what_it_matched():
    assert extract("extract_regex", ["ab12cd"], pattern=r"\d+", into={"d": "integer"}).main == [{"n": 0, "d": 12}]


def test_a_group_that_matched_nothing_is_null():
    assert extract("extract_regex", ["a"], pattern=r"(a)(b)?", into=["a", "b"]).main == [{"n": 0, "a": "a", "b": None}]


def test_a_piece_of_the_wrong_type_refuses_the_row():
    ran = extract("extract_regex", ["2026-13-01"], pattern="(.*)", into={"d": "date"})
    assert refused(ran) == [(0, "CONVERSION", "`d`: `2026-13-01` is not DATE")]


@pytest.mark.parametrize(
    ("params", "path", "message"),
    [
        ({"pattern": "(", "into": ["a"]}, ("pattern",), "`(` is not a regular expression: missing ): ("),
        ({"pattern": "(a)(b)", "into": ["a"]}, ("into",), "the pattern has 2 groups, and `into` names 1 columns"),
        ({"pattern": "a"}, ("pattern",), "`into` names no columns, and the pattern has no named groups"),
        ({"pattern": "(a)", "into": {"a": "intger"}}, ("into",), "intger"),
        ({"pattern": "(a)", "into": ["n"]}, ("into",), "`n` is a column already"),
        ({"pattern": "(a)", "into": ["x"], "column": "z"}, ("column",), "`input` has no column `z`"),
    ],
)
def test_mistakes_of_extract_regex_are_found_before_the_run(params: Any, path: Any, message: str):
    (mistake,) = mistakes("extract_regex", {"column": "t", **params}, {"input": schema(n="BIGINT", t="VARCHAR")})
    assert mistake.path == path
    assert message in mistake.message


def test_a_look_ahead_is_explained():
    (mistake,) = mistakes("extract_regex", {"column": "t", "pattern": "(?=a)(b)"}, {"input": schema(t="VARCHAR")})
    assert mistake.hint == "patterns are RE2: look-ahead and back-references do not exist there"


def test_json_paths_become_columns():
    ran = extract(
        "extract_json",
        ['{"a": {"b": 7}, "l": [1, 2], "d": "2026-03-01"}', "{}", "nonsense", None],
        fields={
            "b": {"path": "$.a.b", "type": "integer"},
            "first": "$.l[0]",
            "all": {"path": "$.l", "type": "integer[]"},
            "raw": {"path": "$.a", "type": "json"},
            "d": {"path": "$.d", "type": "date"},
        },
    )
    none = {"b": None, "first": None, "all": None, "raw": None, "d": None}
    assert ran.main == [
        {"n": 0, "b": 7, "first": "1", "all": [1, 2], "raw": '{"b":7}', "d": date(2026, 3, 1)},
        {"n": 1, **none},
        {"n": 3, **none},
    ]
    assert refused(ran) == [(2, "EXTRACT", "`t`: `nonsense` is not JSON")]


def test_a_required_field_that_is_missing_refuses_the_row():
    ran = extract("extract_json", ['{"a": 1}', "{}"], fields={"a": {"path": "$.a", "required": True}})
    assert ran.main == [{"n": 0, "a": "1"}]
    assert refused(ran) == [(1, "EXTRACT", "`t`: `{}` is not JSON, or lacks a field that is required")]


def test_structures_are_taken_apart_as_well():
    ran = run(
        "extract_json",
        {"column": "s", "fields": {"city": "$.address.city"}, "keep": False},
        {"input": [{"s": {"address": {"city": "Ulm"}}}]},
    )
    assert ran.main == [{"city": "Ulm"}]


@pytest.mark.parametrize("path", ["a.b", "$.a[", "$[x"])
def test_a_wrong_path_is_found_before_the_run(path: str):
    (mistake,) = mistakes("extract_json", {"column": "t", "fields": {"a": path}}, {"input": schema(t="VARCHAR")})
    assert mistake.path == ("fields", "a")
    assert f"`{path}` is not a path" in mistake.message


def test_pieces_between_separators_become_columns():
    ran = extract("extract_delimited", ["DE; Ulm ;7", "FR;;3", "x", "a;b;c;d", "a;b;c"], separator=";",
                  into={"country": "string", "city": "string", "shop": "integer"})  # fmt: skip
    assert ran.main == [
        {"n": 0, "country": "DE", "city": "Ulm", "shop": 7},
        {"n": 1, "country": "FR", "city": None, "shop": 3},
    ]
    assert refused(ran) == [
        (2, "EXTRACT", "`t`: `x` does not have 3 pieces between `;`"),
        (3, "EXTRACT", "`t`: `a;b;c;d` does not have 3 pieces between `;`"),
        (4, "CONVERSION", "`shop`: `c` is not BIGINT"),
    ]


def test_ragged_accepts_more_and_fewer_pieces():
    ran = extract("extract_delimited", ["a", "a,b,c"], into=["x", "y"], ragged=True)
    assert ran.main == [{"n": 0, "x": "a", "y": None}, {"n": 1, "x": "a", "y": "b"}]


def test_blanks_can_be_part_of_a_piece():
    assert extract("extract_delimited", [" a , b"], into=["x", "y"], trim=False).main == [
        {"n": 0, "x": " a ", "y": " b"}
    ]


def test_stretches_of_characters_become_columns():
    ran = extract(
        "extract_positional",
        ["0001Ann   034", "0002      x51", "0003"],
        fields={
            "id": {"start": 1, "length": 4, "type": "integer"},
            "name": 6,
            "age": {"start": 11, "length": 3, "type": "integer"},
        },
    )
    assert ran.main == [{"n": 0, "id": 1, "name": "Ann", "age": 34}]
    assert refused(ran) == [
        (1, "CONVERSION", "`age`: `x51` is not BIGINT"),
        (2, "EXTRACT", "`t`: `0003` is shorter than 13 characters"),
    ]


def test_widths_follow_each_other():
    assert extract("extract_positional", ["abcdef"], fields={"x": 1, "y": 2, "z": 3}).main == [
        {"n": 0, "x": "a", "y": "bc", "z": "def"}
    ]


def test_ragged_accepts_texts_that_end_early():
    assert extract("extract_positional", ["ab"], fields={"x": 1, "y": 2, "z": 3}, ragged=True).main == [
        {"n": 0, "x": "a", "y": "b", "z": None}
    ]


def test_the_column_is_kept_unless_told_otherwise():
    ran = run("extract_delimited", {"column": "T", "into": ["x"]}, {"input": [{"t": "a", "z": 1}]})
    assert ran.main == [{"t": "a", "z": 1, "x": "a"}]


def test_a_new_column_may_take_the_place_of_the_one_taken_apart():
    ran = extract("extract_positional", ["abc"], fields={"t": 2})
    assert ran.main == [{"n": 0, "t": "ab"}]


def test_columns_are_known_before_the_run():
    given = {"input": schema(n="BIGINT", t="VARCHAR")}
    params = {"column": "t", "into": {"a": "date", "b": "string"}}
    assert columns("extract_delimited", params, given) == {"n": "BIGINT", "t": "VARCHAR", "a": "DATE", "b": "VARCHAR"}
    assert columns("extract_delimited", params, given, "reject") == {
        "n": "BIGINT",
        "t": "VARCHAR",
        "error_code": "VARCHAR",
        "error_message": "VARCHAR",
    }


def test_numbers_are_taken_apart_as_they_are_written():
    ran = run("extract_positional", {"column": "t", "fields": {"a": 2}, "keep": False}, {"input": [{"t": 1234}]})
    assert ran.main == [{"a": "12"}]


def test_a_mistake_in_the_run_is_a_failure():
    with pytest.raises(ComponentFailure) as caught:
        run("extract_delimited", {"column": "z", "into": ["x"]}, {"input": [{"t": "a"}]})
    assert caught.value.kind == "column"
