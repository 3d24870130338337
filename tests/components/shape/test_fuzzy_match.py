"""`fuzzy_match`: similar texts find each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import cases
from tests.components.harness import Ran, columns, mistakes, run, schema

MAIN = [
    {"id": 1, "name": "Acme Corp."},
    {"id": 2, "name": "Globexx"},
    {"id": 3, "name": "Soylent"},
    {"id": 4, "name": None},
]
LOOKUP = [{"code": "A", "name": "ACME Corp"}, {"code": "G", "name": "Globex"}, {"code": "H", "name": "Globe"}]


def match(params: Any, main: Any = MAIN, lookup: Any = LOOKUP) -> Ran:
    return run("fuzzy_match", {"on": ["name"], **params}, {"main": main, "lookup": lookup})


def test_the_best_match_is_added_and_the_rest_refused():
    ran = match({"threshold": 0.9})
    assert [(row["id"], row["code"], row["name_lookup"]) for row in ran.main] == [
        (1, "A", "ACME Corp"),
        (2, "G", "Globex"),
    ]
    assert [(row["id"], row["error_code"]) for row in ran.outputs["reject"]] == [(3, "NO_MATCH"), (4, "NO_MATCH")]
    assert list(ran.main[0]) == ["id", "name", "code", "name_lookup", "score"]
    assert 0.9 <= ran.main[0]["score"] < 1


def test_all_matches_come_best_first():
    assert [(row["id"], row["code"]) for row in match({"threshold": 0.8, "match": "all"}).main] == [
        (1, "A"),
        (2, "G"),
        (2, "H"),
    ]


@cases(
    "method, left, right, score",
    [
        ("levenshtein", "abcd", "abce", 0.75),
        ("levenshtein", "abcd", "abdc", 0.5),
        ("damerau", "abcd", "abdc", 0.75),
        ("jaro_winkler", "same", "same", 1.0),
        ("levenshtein", "", "", 1.0),
        ("levenshtein", "ABC", " abc ", 1.0),
        ("levenshtein", "Müller", "Muller", 5 / 6),
        ("levenshtein", "東京都", "東京府", 2 / 3),
        ("levenshtein", "東京都", "大阪府", 0.0),
        ("levenshtein", "", "ü", 0.0),
        ("damerau", "aéb", "éab", 2 / 3),
        ("jaro_winkler", "Müller", "Muller", 0.9),
        ("jaro_winkler", "東京", "大阪", 0.0),
    ],
)
def test_similarity_is_between_nothing_and_one(method: str, left: str, right: str, score: float):
    ran = match({"method": method, "threshold": 0}, [{"name": left}], [{"name": right}])
    assert ran.main[0]["score"] == pytest.approx(score)


def test_case_and_blanks_count_when_asked_for():
    assert match({"threshold": 1, "ignore_case": False}, [{"name": "A"}], [{"name": "a"}]).main == []


def test_only_rows_that_agree_are_compared():
    main = [{"name": "Ann", "city": "Ulm"}, {"name": "Ann", "city": "Bonn"}]
    ran = match({"within": {"city": "town"}}, main, [{"name": "Ann", "town": "Bonn"}])
    assert [row["city"] for row in ran.main] == ["Bonn"]
    assert [row["city"] for row in ran.outputs["reject"]] == ["Ulm"]


def test_several_columns_count_alike():
    ran = run(
        "fuzzy_match",
        {
            "on": {"first": "vorname", "last": "nachname"},
            "method": "levenshtein",
            "threshold": 0.7,
            "score": "likeness",
        },
        {"main": [{"first": "Ann", "last": "Lee"}], "lookup": [{"vorname": "Ann", "nachname": "Les"}]},
    )
    assert ran.main[0]["likeness"] == pytest.approx((1 + 2 / 3) / 2)


def test_only_the_columns_that_were_asked_for_are_added():
    assert list(match({"columns": ["code"]}).main[0]) == ["id", "name", "code", "score"]


def test_an_empty_lookup_refuses_all():
    ran = run(
        "fuzzy_match",
        {"on": ["name"]},
        {"main": MAIN, "lookup": []},
        schemas={"lookup": schema(code="VARCHAR", name="VARCHAR")},
    )
    assert ran.main == []
    assert len(ran.outputs["reject"]) == 4


def test_columns_are_known_before_the_run():
    given = {"main": schema(id="BIGINT", name="VARCHAR"), "lookup": schema(code="VARCHAR", name="VARCHAR")}
    assert columns("fuzzy_match", {"on": ["name"]}, given) == {
        "id": "BIGINT",
        "name": "VARCHAR",
        "code": "VARCHAR",
        "name_lookup": "VARCHAR",
        "score": "DOUBLE",
    }


def test_mistakes_are_found_before_the_run():
    given = {"main": schema(name="VARCHAR", score="DOUBLE"), "lookup": schema(title="VARCHAR")}
    found = mistakes("fuzzy_match", {"on": ["name"], "columns": ["x"]}, given)
    assert [(mistake.path, mistake.message.partition(";")[0]) for mistake in found] == [
        (("on", 0), "`lookup` has no column `name`"),
        (("columns", 0), "`lookup` has no column `x`"),
        (("score",), "`score` is a column already"),
    ]
