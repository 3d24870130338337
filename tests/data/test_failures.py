"""What goes wrong in DuckDB is told by kind, in words about the data, and where in the query."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbSession
from penstock.ports.rows import RowsFailed
from tests.cases import cases


@cases(
    "query, kind, message",
    [
        ("SELECT CAST('abc' || range AS INTEGER) AS a FROM range(1)", "conversion", "`abc0` is not a valid INTEGER"),
        (
            "SELECT CAST(s AS DATE) AS a FROM (SELECT 'x' || range AS s FROM range(1))",
            "conversion",
            "`x0` is not a valid DATE (column `s`)",
        ),
        ("SELECT CAST(range + 300 AS TINYINT) AS a FROM range(1)", "conversion", "`300` is not a valid TINYINT"),
        ("SELECT strptime('x' || range, '%Y') AS a FROM range(1)", "conversion", "`x0`"),
        ("SELECT 9223372036854775807 + range AS a FROM range(1, 2)", "conversion", "Overflow in addition"),
        ("SELECT nope AS a FROM range(1)", "sql", "`nope`"),
        ("SELECT 1 AS a FROM nowhere", "sql", "`nowhere`"),
        ("SELECT nofunction(1) AS a", "sql", "nofunction"),
        ("SELECT error('on purpose') AS a FROM range(1)", "data", "on purpose"),
        ("SELECT * FROM read_csv('/no/such.csv')", "missing_file", "there is no file `/no/such.csv`"),
        ("SELECT (SELECT range FROM range(2)) AS a", "data", "More than one row returned by a subquery"),
        ("SELECT json_extract('{bad' || range, '$.a') AS a FROM range(1)", "format", "Malformed JSON"),
    ],
)
def test_a_failure_has_a_kind_and_plain_words(session: DuckDbSession, query: str, kind: str, message: str) -> None:
    with pytest.raises(RowsFailed) as raised:
        session.select(query, {})
    assert raised.value.kind == kind
    assert message in raised.value.message.replace('"x0"', "`x0`")
    assert "LINE 1" not in raised.value.message
    assert "\n" not in raised.value.message


def test_the_place_of_a_failure_is_a_place_in_the_query_that_was_given(session: DuckDbSession) -> None:
    given = session.select("SELECT 1 AS a", {})
    query = "SELECT 'é', nope FROM input"
    for ask in (session.select, session.describe, session.rows):
        with pytest.raises(RowsFailed) as raised:
            ask(query, {"input": given})
        assert raised.value.position == query.index("nope")


def test_a_key_that_is_there_twice_is_a_constraint(session: DuckDbSession) -> None:
    session.run("CREATE TABLE main.keyed (id INTEGER PRIMARY KEY)")
    with pytest.raises(RowsFailed) as raised:
        session.run("INSERT INTO main.keyed VALUES (1), (1)")
    assert (raised.value.kind, raised.value.message.endswith("duplicate key `1`")) == ("constraint", True)


def test_a_file_of_another_format_is_told_apart(session: DuckDbSession, tmp_path: Path) -> None:
    path = tmp_path / "not.parquet"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(RowsFailed) as raised:
        session.select(f"SELECT * FROM read_parquet('{path}')", {})
    assert raised.value.kind == "format"


def test_a_line_of_another_encoding_is_told_with_its_number(session: DuckDbSession, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"a,b\n1,x\n2,\xff\xfe\n")
    with pytest.raises(RowsFailed) as raised:
        session.select(f"SELECT * FROM read_csv('{path}', header = true)", {})
    assert raised.value.kind == "format"
    assert "Line: 3" in raised.value.message
    assert "not utf-8" in raised.value.message
    assert "ignore_errors" not in raised.value.message
