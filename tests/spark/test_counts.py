"""Counts on links are exact, whatever Spark does to get at the rows: each group of stages counts as it does on DuckDB."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.spark.engine import SparkEngine
from penstock.ports.rows import Column, EngineSession, Relation, Stage
from tests.cases import cases

SCHEMA = (Column("id", "BIGINT"), Column("k", "BIGINT"))
WANTED = frozenset({"main"})
PASSES = {"main": "SELECT * FROM input"}
SOME = {"main": "SELECT * FROM input WHERE k > 0"}
SORTED = {"main": "SELECT * FROM input ORDER BY k DESC, id"}


def chain(*selects: dict[str, str]) -> list[Stage]:
    """Stages in a row over the rows, of which the last is wanted."""
    made = []
    for number, one in enumerate(selects):
        source: Any = ("stage", "") if number == 0 else (f"s{number - 1}", "main")
        wanted = WANTED if number == len(selects) - 1 else frozenset()
        made.append(Stage(f"s{number}", one, {"input": source}, wanted))
    return made


def joined(query: str, left: dict[str, str], right: dict[str, str]) -> list[Stage]:
    return [
        Stage("left", left, {"input": "rows"}),  # type: ignore[dict-item]
        Stage("right", right, {"input": "rows"}),  # type: ignore[dict-item]
        Stage("both", {"main": query}, {"main": ("left", "main"), "lookup": ("right", "main")}, WANTED),
    ]


NONE = {"main": "SELECT * FROM input WHERE k > 1000"}
INNER = "SELECT main.id, lookup.k FROM main JOIN lookup ON main.k = lookup.id"
BESIDE = "SELECT main.id FROM main JOIN lookup ON main.k = lookup.id UNION ALL SELECT 1 AS id"

GROUPS: dict[str, list[Stage]] = {
    "sampled to be sorted": chain(PASSES, SOME, SORTED),
    "sorted twice": chain(PASSES, SORTED, SOME, SORTED, SOME),
    "cut by a limit": chain(PASSES, SOME, {"main": "SELECT * FROM input LIMIT 3"}, PASSES),
    "the first of the sorted": chain(PASSES, SOME, {"main": "SELECT * FROM input ORDER BY id LIMIT 2"}),
    "read twice by one query": chain(PASSES, SOME, {"main": "SELECT a.id FROM input a JOIN input b ON a.id = b.id + 1"}),
    "every row with every row": chain(PASSES, SOME, {"main": "SELECT a.id FROM input a, input b WHERE a.id < b.id"}),
    "grouped": chain(PASSES, SOME, {"main": "SELECT k, count(*) AS n FROM input GROUP BY k"}, SOME),
    "a total of nothing": chain(PASSES, NONE, {"main": "SELECT count(*) AS k FROM input"}),
    "a union with itself": chain(PASSES, SOME, {"main": "SELECT * FROM input UNION ALL SELECT * FROM input"}, SOME),
    "distinct": chain(PASSES, {"main": "SELECT DISTINCT k FROM input"}, SOME),
    "joined": joined(INNER, SOME, PASSES),
    "joined with nothing": joined(INNER, SOME, NONE),
    "nothing joined": joined(INNER, NONE, SOME),
    "a left join with nothing": joined("SELECT main.* FROM main LEFT JOIN lookup ON main.k = lookup.id", SOME, NONE),
    "a join with nothing beside a row": joined(BESIDE, SOME, NONE),
    "where some exist": joined("SELECT * FROM main WHERE EXISTS (SELECT 1 FROM lookup WHERE lookup.id = main.k)", SOME, SOME),
    "where none are": joined("SELECT * FROM main ANTI JOIN lookup USING (k)", SOME, SOME),
    "two unions": joined("SELECT * FROM main UNION ALL SELECT * FROM lookup", SOME, SORTED),
    "read by two": [
        *chain(PASSES, SOME)[:1],
        Stage("s1", SOME, {"input": ("s0", "main")}),
        Stage("a", {"main": "SELECT id FROM input WHERE id > 5"}, {"input": ("s1", "main")}, WANTED),
        Stage("b", {"main": "SELECT k FROM input WHERE id < 5"}, {"input": ("s1", "main")}, WANTED),
    ],
}  # fmt: skip


def over(stages: list[Stage], rows: Relation) -> list[Stage]:
    def source(one: Any) -> Any:
        return one if isinstance(one, tuple) and one[1] else rows

    return [
        Stage(one.name, one.selects, {name: source(it) for name, it in one.inputs.items()}, one.wanted, copy=one.copy)
        for one in stages
    ]


@pytest.fixture(scope="module")
def sessions(on_duckdb: DuckDbEngine, on_spark: SparkEngine) -> list[tuple[EngineSession, Relation]]:
    found: list[EngineSession] = [on_duckdb.session(), on_spark.session()]
    made = []
    for session in found:
        rows = session.load(SCHEMA, [[(number, number % 7 - 2) for number in range(100)]])
        made.append((session, rows))
    return made


@cases("name", list(GROUPS))
def test_the_counts_of_a_group_are_those_of_duckdb(name: str, sessions: list[tuple[EngineSession, Relation]]) -> None:
    found = []
    for session, rows in sessions:
        made = session.fuse(over(GROUPS[name], rows))
        found.append({stage: dict(one.rows) for stage, one in made.items()})
    assert found[1] == found[0]
