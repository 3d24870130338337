"""An output hash is of what the rows are, not of how they lie or where they came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.data import duckdb_engine
from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.ports.rows import Column, Copy

ROWS = "SELECT range % 5 AS a, 'n' || range AS b FROM range(1000)"


def test_the_order_of_rows_does_not_count(session: DuckDbSession) -> None:
    one = session.select(ROWS, {})
    other = session.select("SELECT * FROM input ORDER BY hash(b)", {"input": one})
    assert one.hash.startswith("rows:")
    assert one.hash == other.hash


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b, a FROM input",
        "SELECT a, b AS c FROM input",
        "SELECT a::INTEGER AS a, b FROM input",
        "SELECT * FROM input LIMIT 999",
        "SELECT * FROM input UNION ALL (SELECT * FROM input LIMIT 1)",
        "SELECT * FROM input UNION ALL SELECT * FROM input",
        "SELECT a, CASE WHEN b = 'n7' THEN 'n8' ELSE b END AS b FROM input",
        "SELECT a, CASE WHEN b = 'n7' THEN NULL ELSE b END AS b FROM input",
    ],
)
def test_columns_types_and_every_row_count(session: DuckDbSession, query: str) -> None:
    one = session.select(ROWS, {})
    assert session.select(query, {"input": one}).hash != one.hash


def test_a_row_that_is_there_twice_is_not_a_row_that_is_not_there(session: DuckDbSession) -> None:
    once = session.select("SELECT 1 AS a UNION ALL SELECT 2", {})
    twice = session.select("SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 3", {})
    assert once.hash != twice.hash


def test_the_same_rows_have_one_hash_whichever_way_they_came(
    engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path
) -> None:
    one = session.select(ROWS, {})
    batches = list(session.rows("SELECT * FROM input", {"input": one}, 100))
    path = tmp_path / "rows.csv"
    session.copy("SELECT * FROM input", {"input": one}, Copy(path, "csv", {"header": True}))
    engine.export(one, tmp_path / "rows.parquet")
    again = engine.attach(tmp_path / "rows.parquet", one.schema, one.rows, "")
    ways = [
        session.load(one.schema, batches),
        session.load_mappings([{"a": a, "b": b} for a, b in batch] for batch in batches),
        session.load_arrow(session.arrow("SELECT * FROM input", {"input": one})),
        session.select(f"SELECT * FROM read_csv('{path}')", {}),
        session.select("SELECT * FROM input", {"input": again}),
    ]
    assert {relation.hash for relation in ways} == {one.hash}
    assert engine.content_hash(again) == one.hash


def test_nullability_and_keys_are_not_part_of_the_rows(session: DuckDbSession) -> None:
    rows = [[(1,), (2,)]]
    plain = session.load((Column("a", "BIGINT"),), rows)
    assert session.load((Column("a", "BIGINT", nullable=False, key=True),), rows).hash == plain.hash


def test_many_rows_are_hashed_by_their_plan(
    engine: DuckDbEngine, session: DuckDbSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = session.select("SELECT range AS i FROM range(10)", {})
    monkeypatch.setattr(duckdb_engine, "CONTENT_UP_TO", 5)
    one = session.select("SELECT i FROM input", {"input": small})
    same = session.select("SELECT i FROM input", {"input": small})
    fewer = session.select("SELECT i FROM input LIMIT 9", {"input": small})
    assert one.hash.startswith("plan:")
    assert one.hash == same.hash != fewer.hash
    assert engine.content_hash(one) == small.hash


def test_an_empty_relation_has_a_hash_of_its_columns(session: DuckDbSession) -> None:
    one = session.empty((Column("a", "BIGINT"),))
    assert one.hash == session.select("SELECT 1::BIGINT AS a WHERE false", {}).hash
    assert one.hash != session.empty((Column("a", "INTEGER"),)).hash
