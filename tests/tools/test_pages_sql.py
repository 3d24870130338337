"""Rows of queries as a collection that is read page by page, from all four databases."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import open_pages
from tests.cases import cases
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.databases import KINDS, Place, place
from tests.tools.fetching import TicklessClock
from tests.tools.paging import Collection, all_of, failing, played
from tests.tools.support import make_call

__all__ = ["mariadb_server", "mariadb_url", "place", "postgres_server", "postgres_url"]


def call_for(place: Place) -> Call:
    return make_call(place.folder)


def rows(place: Place, query: str = "SELECT id, name FROM orders", key: str | None = "id", **more: Any) -> JsonMap:
    return {"kind": "sql", "engine": place.kind, **place.names, "query": query, "key": key, **more}


def fill(place: Place, ids: range | list[int]) -> None:
    place.do("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(50))")
    add(place, ids)


def add(place: Place, ids: range | list[int]) -> None:
    if ids:
        place.do("INSERT INTO orders VALUES " + ", ".join(f"({n}, 'order {n}')" for n in ids))


def expected(ids: range | list[int]) -> list[JsonMap]:
    return [{"id": n, "name": f"order {n}"} for n in ids]


@pytest.mark.clause("F2.1")
@pytest.mark.parametrize(("keep", "count"), [(True, 0), (True, 1), (True, 7), (False, 0), (False, 6)])
def test_all_rows_come_once_in_the_order_of_the_key(place: Place, keep: bool, count: int) -> None:
    ids = [3 * n - 5 for n in range(count)]
    fill(place, ids)
    call = call_for(place)
    collection = Collection(rows(place, keep=keep), call)
    played(call, lambda: collection.check(expected(ids), (1, 3, 7, 100)))


@pytest.mark.clause("F2.2")
def test_keys_name_the_rows(place: Place) -> None:
    fill(place, [7, 8, 30])
    call = call_for(place)

    async def scene() -> None:
        first, second = await Collection(rows(place), call).walk(2)
        assert (first.page.keys, second.page.keys) == (["7", "8"], ["30"])

    played(call, scene)


def test_the_authors_values_are_bound_beside_the_keys(place: Place) -> None:
    fill(place, range(20))
    mark = {"postgres": "$1", "mysql": "%s", "sqlite": "?", "duckdb": "?"}[place.kind]
    even = "SELECT id, name FROM orders WHERE id % 2 = 0"
    named = rows(place, f"{even} AND id < :most -- to the end", params={"most": 9, "unused": 1})
    listed = rows(place, f"{even} AND id < {mark}", args=[9])
    for description in (named, listed):
        call = call_for(place)
        played(call, lambda: Collection(description, call).check(expected(range(0, 9, 2)), (1, 3, 100)))
    assert all_of(rows(place, "SELECT id, name FROM orders WHERE name LIKE '%r 1%'"), call_for(place), 3) == [
        {"id": n, "name": f"order {n}"} for n in (1, *range(10, 20))
    ]


def test_a_query_may_have_an_order_and_a_limit_of_its_own(place: Place) -> None:
    fill(place, range(20))
    found = all_of(rows(place, "SELECT id, name FROM orders ORDER BY id DESC LIMIT 5"), call_for(place), 2)
    assert found == expected(range(15, 20))


@pytest.mark.clause("F3.1")
def test_a_kept_page_that_is_read_again_is_as_it_was_whatever_became_of_its_rows(place: Place) -> None:
    fill(place, [10, 20, 30, 40, 50])
    call = call_for(place)
    collection = Collection(rows(place), call)

    async def scene() -> None:
        reads = await collection.walk(2)
        place.do("DELETE FROM orders WHERE id IN (10, 40)")
        place.do("UPDATE orders SET name = 'changed'")
        add(place, [5, 15, 35, 45, 60])
        for read in reads:
            page = await collection.again(read)
            assert (list(page.items), page.keys) == (read.items, read.page.keys)
        # Going on from a page is not reading it again: what was added behind it is there.
        following = await collection.page(reads[0].page.next, 10)
        assert [row["id"] for row in following.items] == [30, 35, 45, 50, 60]

    played(call, scene)


@pytest.mark.parametrize("change", ["INSERT INTO orders VALUES (15, 'new')", "DELETE FROM orders WHERE id = 10"])
def test_a_page_that_is_not_kept_is_refused_when_its_rows_are_others(place: Place, change: str) -> None:
    fill(place, [10, 20, 30, 40])
    call = call_for(place)
    collection = Collection(rows(place, keep=False), call)

    async def scene() -> None:
        first, second = await collection.walk(2)
        place.do(change)
        add(place, [50])
        assert (await collection.again(second)).items == second.items
        for most in (1, 2):
            with pytest.raises(ToolFailure, match="have been added or removed on a page") as caught:
                await collection.again(first, most)
            assert not caught.value.retryable

    played(call, scene)


@pytest.mark.parametrize(
    ("type_", "values", "keep"),
    [
        ("VARCHAR(20)", ["'a'", "'b''c'", "'bd'", "'e%s'"], True),
        ("VARCHAR(20)", ["'a'", "'b''c'", "'bd'", "'e%s'"], False),
        ("DECIMAL(30,10)", ["-1.5", "0.0000000001", "0.0000000002", "12345678901234567890.0000000001"], False),
        ("DATE", ["'1999-12-31'", "'2024-02-29'", "'2024-03-01'"], True),
        ("TIMESTAMP", ["'2024-02-29 10:00:00'", "'2024-02-29 10:00:01'", "'2024-02-29 10:00:02'"], False),
        ("DOUBLE PRECISION", ["-0.1", "0.1", "0.30000000000000004", "1e300"], True),
    ],
    ids=["text", "text read again", "decimal", "date", "timestamp", "double"],
)
def test_keys_may_be_of_any_type_that_has_an_order(place: Place, type_: str, values: list[str], keep: bool) -> None:
    if place.kind == "sqlite" and type_.startswith("DECIMAL"):
        values = values[:3]  # its numbers are doubles
    place.do(f"CREATE TABLE things (k {type_} PRIMARY KEY, n INT)")
    place.do("INSERT INTO things VALUES " + ", ".join(f"({value}, {n})" for n, value in enumerate(values)))
    call = call_for(place)
    description = rows(place, "SELECT k, n FROM things", "k", keep=keep)

    async def scene() -> None:
        for most in (1, 100):
            reads = await Collection(description, call).walk(most)
            assert [row["n"] for read in reads for row in read.items] == list(range(len(values)))
            for read in reads:
                assert (await Collection(description, call).again(read)).items == read.items

    played(call, scene)


UUIDS = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-0000000000ff"]


OF_SOME = [
    ("postgres", "uuid", [f"'{one}'" for one in UUIDS]),
    ("postgres", "bytea", [r"'\x00ff'", r"'\x01'"]),
    ("postgres", "timestamptz", ["'2024-02-29 10:00:00.123456+02'", "'2024-02-29 10:00:00.123457+02'"]),
    ("postgres", "numeric", ["1e-20", "12345678901234567890123456789.5"]),
    ("duckdb", "UUID", [f"'{one}'" for one in UUIDS]),
    ("duckdb", "TIMESTAMPTZ", ["'2024-02-29 10:00:00+02'", "'2024-02-29 10:00:01+02'"]),
    ("duckdb", "HUGEINT", ["1", "170141183460469231731687303715884105727"]),
    ("sqlite", "BLOB", ["x'00ff'", "x'01'"]),
    ("mysql", "BINARY(2)", ["x'00ff'", "x'0100'"]),
    ("mysql", "BIGINT UNSIGNED", ["1", "18446744073709551615"]),
]


@pytest.mark.parametrize(("place", "type_", "values"), [one for one in OF_SOME if one[0] in KINDS], indirect=["place"])
def test_keys_may_be_of_types_that_only_some_databases_have(place: Place, type_: str, values: list[str]) -> None:
    place.do(f"CREATE TABLE things (k {type_} PRIMARY KEY, n INT)")
    for n, value in enumerate(values):
        place.do(f"INSERT INTO things VALUES ({value}, {n})")
    for keep in (True, False):
        found = all_of(rows(place, "SELECT k, n FROM things", "k", keep=keep), call_for(place), 1)
        assert [row["n"] for row in found] == [0, 1]


def test_the_name_of_a_key_is_only_ever_a_name(place: Place) -> None:
    mark = "`" if place.kind == "mysql" else '"'
    name = f"a {mark}; {{}} %s :x"
    quoted = mark + name.replace(mark, mark * 2) + mark
    place.do(f"CREATE TABLE things ({quoted} INT PRIMARY KEY)")
    place.do("INSERT INTO things VALUES (1), (2), (3)")
    assert [row[name] for row in all_of(rows(place, "SELECT * FROM things", name), call_for(place), 2)] == [1, 2, 3]


def test_a_row_keeps_a_column_that_is_called_like_ours(place: Place) -> None:
    place.do("CREATE TABLE things (id INT PRIMARY KEY, penstock_key INT)")
    place.do("INSERT INTO things VALUES (1, 10), (2, 20)")
    found = all_of(rows(place, "SELECT * FROM things"), call_for(place), 1)
    assert found == [{"id": 1, "penstock_key": 10}, {"id": 2, "penstock_key": 20}]


def test_null_and_double_keys_are_refused_and_not_passed_over(place: Place) -> None:
    place.do("CREATE TABLE things (k INT, n INT)")
    place.do("INSERT INTO things VALUES (1, 1), (2, 2), (2, 3), (3, 4)")
    for most in (1, 2, 3, 10):
        with pytest.raises(ToolFailure, match="the key `k` is `2` in more than one row"):
            all_of(rows(place, "SELECT * FROM things", "k"), call_for(place), most)
    place.do("DELETE FROM things WHERE n = 3")
    place.do("INSERT INTO things VALUES (NULL, 5)")
    assert "the key `k` is null in a row" in failing(rows(place, "SELECT * FROM things", "k"), call_for(place)).message


@cases(
    "more, words",
    [
        ({"key": None}, "a loop over `sql` needs `key`"),
        ({"key": ""}, "a loop over `sql` needs `key`"),
        ({"query": "SELECT 1; SELECT 2"}, "is one statement, and this text has 2"),
        ({"query": "DELETE FROM orders"}, "must be a `SELECT`"),
        ({"query": "WITH d AS (SELECT 1) DELETE FROM orders"}, "must be a `SELECT`"),
        ({"query": " -- nothing"}, "the command is empty"),
        ({"query": "SELECT :id AS id", "params": {"ids": 1}}, "did you mean `ids`?"),
        ({"params": {}, "args": {}}, "give one of them"),
        ({"timeout": 0}, "`timeout`"),
        ({"quary": "x"}, "did you mean `query`?"),
    ],
)
def test_what_is_wrong_with_a_description_is_told(place: Place, more: dict[str, Any], words: str) -> None:
    failure = failing({**rows(place), **more}, call_for(place))
    assert failure.kind == "parameters"
    assert words in failure.message


def test_what_the_database_says_is_told(place: Place) -> None:
    fill(place, [1])
    for description in (rows(place, "SELECT * FROM nowhere"), rows(place, key="nothing")):
        failure = failing(description, call_for(place))
        assert failure.kind in ("not_found", "database")
        assert "in the command: `SELECT" in failure.message
        assert not failure.retryable


@cases(
    "description, words",
    [
        ({"engine": "oracle"}, "expected one of `duckdb`, `mysql`, `postgres`, `sqlite`, got `oracle`"),
        ({}, "`kind`: is needed"),
        ({"engine": "sqlite", "host": "h", "path": "a.db"}, "`host` does not describe a `sqlite` database"),
        (
            {"engine": "postgres", "path": "a.db", "url": "postgresql://h/d"},
            "`path` does not describe a `postgres` database",
        ),
        ({"engine": "postgres"}, "no database is named"),
        ({"engine": "sqlite", "path": "not-there.db"}, "cannot be opened"),
    ],
)
def test_a_database_that_is_named_wrongly_is_told(tmp_path: Path, description: JsonMap, words: str) -> None:
    clock = TicklessClock()
    call = make_call(tmp_path, clock=clock)
    assert words in failing({"kind": "sql", "query": "SELECT 1 AS id", "key": "id", **description}, call).message
    assert clock.slept == []


def test_a_credential_is_taken_from_the_keychain(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path, credentials={"shop": {"url": postgres_url}})
    description: JsonMap = {"kind": "sql", "engine": "postgres", "auth": "shop", "query": "SELECT 1 AS id", "key": "id"}
    assert all_of(description, call) == [{"id": 1}]


def test_rows_are_those_that_the_tool_gives(postgres_url: str, tmp_path: Path) -> None:
    query = "SELECT 1 AS id, 1.50::numeric AS n, '{\"a\": [1]}'::jsonb AS j, '2024-01-02'::date AS d, NULL AS nothing"
    description: JsonMap = {"kind": "sql", "engine": "postgres", "url": postgres_url, "query": query, "key": "id"}
    assert all_of(description, make_call(tmp_path)) == [
        {"id": 1, "n": 1.5, "j": {"a": [1]}, "d": "2024-01-02", "nothing": None}
    ]


def test_a_server_that_cannot_be_reached_is_tried_again_a_few_times(tmp_path: Path) -> None:
    clock, lines = TicklessClock(), list[str]()
    call = make_call(tmp_path, clock=clock, say=lines.append)
    description: JsonMap = {
        "kind": "sql",
        "engine": "postgres",
        "url": "postgresql://u:secret-word@127.0.0.1:1/d",
        "query": "SELECT 1 AS id",
        "key": "id",
    }
    failure = failing(description, call)
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert clock.slept == [0.25, 1.0, 4.0, 4.0]
    assert len(lines) == 4
    assert not any("secret-word" in text for text in (*lines, failure.message))


def test_a_query_that_takes_too_long_is_given_up(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path, clock=TicklessClock())
    description: JsonMap = {
        "kind": "sql",
        "engine": "postgres",
        "url": postgres_url,
        "query": "SELECT 1 AS id, pg_sleep(60)::text AS nothing",
        "key": "id",
        "timeout": 0.05,
    }
    assert failing(description, call).kind == "timeout"


def test_pages_at_the_end_of_a_table_are_found_by_the_index(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE big AS SELECT n AS id, 'row ' || n AS name FROM generate_series(1, 20000) AS n")
        server.execute("ALTER TABLE big ADD PRIMARY KEY (id)")
        server.execute("ANALYZE big")
        query = (
            "SELECT q.*, q.id::text AS k FROM (\nSELECT * FROM big\n) AS q WHERE q.id > 19000 ORDER BY q.id LIMIT 10"
        )
        plan = "\n".join(row[0] for row in server.execute("EXPLAIN " + query))  # type: ignore[arg-type]
        assert "Index Scan" in plan
    description: JsonMap = {
        "kind": "sql",
        "engine": "postgres",
        "url": postgres_url,
        "query": "SELECT * FROM big",
        "key": "id",
    }
    call = make_call(tmp_path)

    async def scene() -> int:
        pages, total, token = open_pages(description, call, once=True), 0, None
        while True:
            page = await pages.page(token, 1000)
            total += len(page.items)
            if page.is_end:
                return total
            token = page.next

    assert played(call, scene) == 20_000


def test_reading_can_be_cancelled(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)
    description: JsonMap = {
        "kind": "sql",
        "engine": "postgres",
        "url": postgres_url,
        "query": "SELECT 1 AS id, pg_sleep(60)::text AS nothing",
        "key": "id",
    }

    async def scene() -> None:
        reading = asyncio.ensure_future(open_pages(description, call).page(None, 10))
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    played(call, scene)
