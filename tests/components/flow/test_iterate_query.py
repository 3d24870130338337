"""iterate_query and wait_for_rows against real databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import REGISTRY, make_call, mistakes
from tests.servers import postgres_server, postgres_url  # noqa: F401 - fixtures

from .support import ScriptedClock, failed, run


def items(folder: Path, credentials: dict[str, Any] | None = None, **params: Any) -> list[Any]:
    """As the engine asks for them: in a thread that has no event loop."""
    call = make_call(None, folder, credentials=credentials or {})  # type: ignore[arg-type]
    model = REGISTRY.convert("iterate_query", params)
    return list(REGISTRY.get("iterate_query").elements(model, call).items)  # type: ignore[attr-defined]


def no_items(folder: Path, **params: Any) -> ComponentFailure:
    with pytest.raises(ComponentFailure) as caught:
        items(folder, **params)
    return caught.value


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shops.db") as connection:
        connection.execute("CREATE TABLE shops (id INTEGER, city TEXT)")
        connection.executemany("INSERT INTO shops VALUES (?, ?)", [(1, "Utrecht"), (2, "Porto"), (3, None)])
    connection.close()
    return tmp_path


# ---- iterate_query


def test_a_query_in_sqlite_gives_an_element_per_row(shops: Path) -> None:
    found = items(
        shops,
        connection="sqlite:///shops.db",
        query="SELECT id, city FROM shops WHERE id >= :least ORDER BY id",
        params={"least": 2},
    )
    assert found == [{"id": 2, "city": "Porto"}, {"id": 3, "city": None}]


def test_a_query_in_duckdb_gives_json_values(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "o.duckdb")) as connection:
        connection.execute("CREATE TABLE o AS SELECT DATE '2024-05-01' AS day, [1, 2] AS ids")
    assert items(tmp_path, connection="duckdb:///o.duckdb", query="SELECT * FROM o") == [
        {"day": "2024-05-01", "ids": [1, 2]}
    ]


def test_a_query_in_postgres_is_asked_by_url_or_by_keychain_entry(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    query = "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(id, name) ORDER BY id"
    expected = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert items(tmp_path, connection=postgres_url, query=query) == expected
    assert items(tmp_path, {"db": {"url": postgres_url}}, auth="db", query=query) == expected
    assert items(tmp_path, {"db": {"url": postgres_url}}, connection="db", query=query) == expected


def test_no_rows_are_no_elements(shops: Path) -> None:
    assert items(shops, connection="sqlite:///shops.db", query="SELECT id FROM shops WHERE id > 9") == []


def test_too_many_rows_are_refused(shops: Path) -> None:
    failure = no_items(shops, connection="sqlite:///shops.db", query="SELECT id FROM shops", max_rows=2)
    assert (failure.kind, "`max_rows`" in failure.message) == ("too_large", True)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "no database is named"),
        ({"connection": "shops.db"}, "`connection` is not a URL"),
        ({"connection": "oracle://host/db"}, "`oracle://` is not a database that is known here"),
    ],
)
def test_a_connection_that_is_none_is_said_clearly(shops: Path, params: dict[str, Any], words: str) -> None:
    failure = no_items(shops, query="SELECT 1", **params)
    assert (failure.kind, words in failure.message) == ("parameters", True)


def test_a_mistake_in_the_query_and_a_missing_file_are_failures(shops: Path) -> None:
    failure = no_items(shops, connection="sqlite:///shops.db", query="SELECT nix FROM shops")
    assert (failure.kind, "no such column: nix" in failure.message) == ("not_found", True)
    assert no_items(shops, connection="sqlite:///other.db", query="SELECT 1").kind == "connect"
    assert not (shops / "other.db").exists()


# ---- wait_for_rows


def insert(folder: Path, *numbers: int) -> None:
    with sqlite3.connect(folder / "shops.db") as connection:
        connection.executemany("INSERT INTO shops VALUES (?, NULL)", [(number,) for number in numbers])
    connection.close()


def test_rows_that_are_there_are_not_waited_for(shops: Path) -> None:
    ran = run("wait_for_rows", {"connection": "sqlite:///shops.db", "table": "shops", "count": 3}, folder=shops)
    assert (ran.result, ran.after) == ({"count": 3}, {"FOUND": True, "WAITED": 0.0, "COUNT": 3}) or ran.after[
        "WAITED"
    ] >= 0


def test_rows_are_waited_for_until_they_come(shops: Path) -> None:
    clock = ScriptedClock({25: lambda: insert(shops, 4, 5)})
    ran = run(
        "wait_for_rows",
        {"connection": "sqlite:///shops.db", "query": "SELECT 1 FROM shops -- all", "count": 5, "poll": 10},
        folder=shops,
        clock=clock,
    )
    assert (ran.result, ran.after) == ({"count": 5}, {"FOUND": True, "WAITED": 30.0, "COUNT": 5})


def test_a_number_can_be_waited_for(shops: Path) -> None:
    params = {"connection": "sqlite:///shops.db", "value": "SELECT max(id) FROM shops", "count": 3}
    assert run("wait_for_rows", {**params, "compare": "exactly"}, folder=shops).result == {"count": 3}
    assert run("wait_for_rows", {**params, "compare": "at_most", "count": 4}, folder=shops).result == {"count": 3}


def test_waiting_for_rows_ends_when_the_time_is_up(shops: Path) -> None:
    clock = ScriptedClock()
    params = {"connection": "sqlite:///shops.db", "table": "shops", "count": 9, "timeout": 60}
    failure = failed("wait_for_rows", params, folder=shops, clock=clock)
    assert (failure.kind, clock.elapsed) == ("timeout", 60)
    assert failure.message == "after 60 s at least 9 rows were waited for; the last look found 3"


def test_a_database_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    def create() -> None:
        with sqlite3.connect(tmp_path / "late.db") as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS n")
        connection.close()

    ran = run(
        "wait_for_rows",
        {"connection": "sqlite:///late.db", "table": "t"},
        folder=tmp_path,
        clock=ScriptedClock({3: create}),
    )
    assert ran.result == {"count": 1}
    assert [line.partition("`")[0] for line in ran.said] == ["still waiting: "]


def test_rows_in_postgres_are_counted_by_table_name(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute('CREATE TABLE "Orders; now" AS SELECT generate_series(1, 4) AS id')
    ran = run("wait_for_rows", {"connection": postgres_url, "table": "Orders; now", "count": 4}, folder=tmp_path)
    assert ran.result == {"count": 4}


def test_an_error_in_the_query_is_not_waited_out(shops: Path) -> None:
    clock = ScriptedClock()
    failure = failed(
        "wait_for_rows", {"connection": "sqlite:///shops.db", "table": "nowhere"}, folder=shops, clock=clock
    )
    assert (failure.kind, clock.elapsed) == ("not_found", 0)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "exactly one of `table`, `query` and `value`; none is"),
        ({"table": "t", "query": "SELECT 1"}, "`table` and `query` are given"),
        ({"query": "SELECT count(*) FROM orders"}, "`query` always gives one row"),
        ({"query": "SELECT COUNT(*) AS n FROM orders WHERE x"}, "give it as `value`"),
    ],
)
def test_what_is_counted_is_said_once_and_rightly(params: dict[str, Any], words: str) -> None:
    (mistake,) = mistakes("wait_for_rows", params)
    assert words in mistake.message


def test_a_grouped_count_is_a_query_of_rows() -> None:
    assert mistakes("wait_for_rows", {"query": "SELECT count(*) FROM orders GROUP BY day"}) == []


def test_a_value_must_be_one_number(shops: Path) -> None:
    params = {"connection": "sqlite:///shops.db", "value": "SELECT city FROM shops WHERE id = 1"}
    assert "one whole number" in failed("wait_for_rows", params, folder=shops).message
