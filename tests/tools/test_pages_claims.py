"""Rows that a statement claims, from all four databases."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from penstock.kernel.values import JsonMap
from penstock.ports.collections import Page, Pages
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import open_pages
from penstock.tools.pages.claims import MOST_ROWS
from tests.cases import cases
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url
from tests.tools.databases import Place, place
from tests.tools.paging import failing, played
from tests.tools.support import make_call

__all__ = ["mariadb_server", "mariadb_url", "place", "postgres_server", "postgres_url"]

SKIPPING = {"postgres": " FOR UPDATE SKIP LOCKED"}
FREE = "taken_by IS NULL"


def statement(place: Place, gives: str = "id, name", free: str = FREE) -> str:
    """Claims rows as each database does it best."""
    if place.kind == "mysql":
        return (
            f"UPDATE jobs SET taken_by = :claim WHERE {free} ORDER BY id LIMIT :rows;\n"
            f"SELECT {gives} FROM jobs WHERE taken_by = :claim"
        )
    chosen = f"SELECT id FROM jobs WHERE {free} ORDER BY id LIMIT :rows{SKIPPING.get(place.kind, '')}"
    return f"UPDATE jobs SET taken_by = :claim WHERE id IN ({chosen}) RETURNING {gives}"


def claims(place: Place, **more: Any) -> JsonMap:
    return {"kind": "claim", "engine": place.kind, **place.names, "sql": statement(place), **more}


def fill(place: Place, count: int) -> None:
    place.do("CREATE TABLE jobs (id BIGINT PRIMARY KEY, name VARCHAR(50), taken_by VARCHAR(80))")
    if count:
        place.do("INSERT INTO jobs VALUES " + ", ".join(f"({n}, 'job {n}', NULL)" for n in range(count)))


def taken(place: Place) -> dict[int, str | None]:
    return dict(place.do("SELECT id, taken_by FROM jobs ORDER BY id"))


async def until_dry(pages: Pages) -> list[Page]:
    """All claims until one finds nothing."""
    found: list[Page] = []
    while (page := await pages.page(None, 10)).items:
        found.append(page)
    assert not page.is_end
    return found


def claimed(place: Place, **more: Any) -> list[Page]:
    call = make_call(place.folder)
    return played(call, lambda: until_dry(open_pages(claims(place, **more), call, once=True)))


@pytest.mark.parametrize(("count", "rows", "sizes"), [(0, 1, []), (3, 1, [1, 1, 1]), (7, 3, [3, 3, 1])])
def test_rows_are_claimed_so_many_at_a_time_until_there_are_none(
    place: Place, count: int, rows: int, sizes: list[int]
) -> None:
    fill(place, count)
    found = claimed(place, rows=rows)
    assert [len(page.items) for page in found] == sizes
    items = [item for page in found for item in page.items]
    assert sorted(items, key=lambda row: row["id"]) == [{"id": n, "name": f"job {n}"} for n in range(count)]


def test_each_claim_has_a_name_of_its_own_that_says_which_run_made_it(place: Place) -> None:
    fill(place, 4)
    call = make_call(place.folder)
    played(call, lambda: until_dry(open_pages(claims(place, rows=2), call, once=True)))
    names = list(taken(place).values())
    assert names[0] == names[1] != names[2] == names[3]
    assert all(str(name).startswith(f"{call.execution_id}/") for name in names)


def test_a_row_is_named_by_its_first_column_or_by_the_one_that_is_the_key(place: Place) -> None:
    fill(place, 1)
    assert [page.keys for page in claimed(place)] == [["0"]]
    place.do("UPDATE jobs SET taken_by = NULL")
    assert [page.keys for page in claimed(place, key="name")] == [["job 0"]]


def test_of_a_key_that_no_row_has_it_is_told_that_the_rows_stay_claimed(place: Place) -> None:
    fill(place, 1)
    failure = failing(claims(place, key="number"), make_call(place.folder))
    assert "no column `number`, which `key` names; they have `id`, `name`, and stay claimed" in failure.message


def test_claimers_side_by_side_claim_each_row_once(place: Place) -> None:
    fill(place, 40)
    call = make_call(place.folder)

    async def scene() -> list[list[Page]]:
        claimers = [until_dry(open_pages(claims(place, rows=3), call, once=True)) for _ in range(5)]
        return await asyncio.gather(*claimers)

    found = [item["id"] for pages in played(call, scene) for page in pages for item in page.items]
    assert sorted(found) == list(range(40))


def test_a_claim_that_is_read_again_is_what_it_was_and_claims_nothing(place: Place) -> None:
    fill(place, 5)
    call = make_call(place.folder)

    async def scene() -> None:
        first = await open_pages(claims(place, rows=3), call).page(None, 2)
        rest = await open_pages(claims(place, rows=3), call).page(first.next, 2)
        assert (len(first.items), len(rest.items)) == (2, 1)
        place.do("DELETE FROM jobs WHERE taken_by IS NOT NULL")
        again = await open_pages(claims(place, rows=3), call).page(None, 10, first.next)
        assert (again.items, again.keys) == (first.items, first.keys)
        second = await open_pages(claims(place, rows=3), call).page(rest.next, 10)
        assert sorted(row["id"] for row in second.items) == [3, 4]
        nothing = await open_pages(claims(place, rows=3), call).page(second.next, 10)
        assert (list(nothing.items), nothing.is_end) == ([], False)
        place.do("INSERT INTO jobs VALUES (9, 'late', NULL)")
        late = await open_pages(claims(place, rows=3), call).page(nothing.next, 10)
        assert [row["id"] for row in late.items] == [9]

    played(call, scene)


def test_values_of_the_author_are_bound_beside_ours(place: Place) -> None:
    fill(place, 6)
    found = claimed(place, sql=statement(place, free=f"{FREE} AND name <> :not"), params={"not": "job 2"}, rows=2)
    assert sorted(item["id"] for page in found for item in page.items) == [0, 1, 3, 4, 5]


def test_values_in_a_list_are_bound_and_nothing_else_is(place: Place) -> None:
    if place.kind == "mysql":
        sql = "DELETE FROM jobs WHERE id < %s RETURNING id"  # MariaDB gives what it deletes.
    else:
        mark = "$1" if place.kind in ("postgres", "duckdb") else "?"
        sql = f"DELETE FROM jobs WHERE id < {mark} RETURNING id"
    fill(place, 5)
    found = claimed(place, sql=sql, params=[3])
    assert sorted(item["id"] for page in found for item in page.items) == [0, 1, 2]


def test_a_statement_that_gives_no_rows_is_refused_and_claims_nothing(place: Place) -> None:
    fill(place, 2)
    failure = failing(claims(place, sql="UPDATE jobs SET taken_by = :claim"), make_call(place.folder))
    assert failure.kind == "no_rows"
    assert "must give the rows that it claims, and its last statement gives none; hint: end it with" in failure.message
    assert set(taken(place).values()) == {None}


def test_a_claim_of_too_many_rows_is_refused_and_claims_nothing(place: Place) -> None:
    fill(place, 0)
    place.do(
        "INSERT INTO jobs WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < "
        f"{100}) SELECT a.i * 101 + b.i, 'x', NULL FROM n AS a, n AS b"
    )
    sql = statement(place).replace(":rows", str(MOST_ROWS + 1))
    failure = failing(claims(place, sql=sql), make_call(place.folder))
    assert failure.kind == "too_large"
    assert "a claim may take 10,000 rows, and this one takes more, so none is claimed" in failure.message
    assert set(taken(place).values()) == {None}


def test_what_the_database_says_of_a_claim_is_told(place: Place) -> None:
    failure = failing(claims(place), make_call(place.folder))
    assert failure.kind in ("not_found", "database")
    assert not failure.retryable


@cases(
    "more, words",
    [
        ({"sql": " -- nothing"}, "the command is empty"),
        ({"rows": 0}, "`rows`"),
        ({"rows": MOST_ROWS + 1}, "`rows`"),
        ({"params": {"other": 1}, "sql": "SELECT :nothing"}, "it has `rows`, `claim`, `other`"),
        ({"timeout": 0}, "`timeout`"),
        ({"query": "x"}, "there is no such parameter"),
        ({"sql": "BEGIN; SELECT 1"}, "a task is one transaction already"),
    ],
)
def test_what_is_wrong_with_a_claim_is_told(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    (tmp_path / "it.db").touch()
    description: JsonMap = {"kind": "claim", "engine": "sqlite", "path": "it.db", "sql": "SELECT 1", **more}
    failure = failing(description, make_call(tmp_path))
    assert failure.kind == "parameters"
    assert words in failure.message


@cases(
    "description, words",
    [
        ({"engine": "oracle"}, "expected one of `duckdb`, `mysql`, `postgres`, `sqlite`, got `oracle`"),
        ({"engine": "sqlite", "host": "h", "path": "a.db"}, "`host` does not describe a `sqlite` database"),
        ({"engine": "postgres", "path": "a.db"}, "`path` does not describe a `postgres` database"),
        ({"engine": "sqlite", "path": "not-there.db"}, "cannot be opened"),
    ],
)
def test_a_database_of_a_claim_that_is_named_wrongly_is_told(tmp_path: Path, description: JsonMap, words: str) -> None:
    assert words in failing({"kind": "claim", "sql": "SELECT 1", **description}, make_call(tmp_path)).message
    assert not (tmp_path / "not-there.db").exists()


@contextmanager
def deaf(url: str) -> Iterator[JsonMap]:
    """A way to the server on which the answer to the first commit is lost, and the connection with it."""
    known = conninfo_to_dict(url)
    host, port = str(known["host"]), int(known.get("port") or 5432)
    losses = ["COMMIT"]

    def there() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        found = socket.socket(socket.AF_UNIX)
        found.connect(f"{host}/.s.PGSQL.{port}")
        return found

    def carry(client: socket.socket) -> None:
        with client, there() as server:
            is_lost = False
            while True:
                for one in select.select([client, server], [], [])[0]:
                    data = one.recv(65536)
                    if not data or (one is server and is_lost):
                        return
                    is_lost = is_lost or (one is client and b"COMMIT" in data and bool(losses) and bool(losses.pop()))
                    (server if one is client else client).sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as carriers:

        def accept() -> None:
            while True:
                client, _ = listener.accept()
                if not losses and client.recv(1, socket.MSG_PEEK) == b"!":
                    client.close()
                    return
                carriers.submit(carry, client)

        carriers.submit(accept)
        own = {"host": "127.0.0.1", "port": listener.getsockname()[1], "sslmode": "disable"}
        more = {"database": known["dbname"], "user": known.get("user"), "password": known.get("password")}
        fields = {**more, "options": known.get("options"), **own}
        try:
            yield {name: value for name, value in fields.items() if value is not None}
        finally:
            with socket.create_connection(("127.0.0.1", own["port"])) as last:
                losses.clear()
                last.sendall(b"!")


def test_a_claim_keeps_its_name_until_it_was_heard_of(postgres_url: str, tmp_path: Path) -> None:
    """So a statement that also takes the rows under its name finds those that were committed when the connection broke."""
    call = make_call(tmp_path)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE jobs (id bigint PRIMARY KEY, taken_by text, taken int DEFAULT 0)")
        server.execute("INSERT INTO jobs VALUES (1), (2)")
        sql = (
            "UPDATE jobs SET taken_by = :claim, taken = taken + 1 WHERE id = "
            "(SELECT id FROM jobs WHERE taken_by IS NULL OR taken_by = :claim ORDER BY id LIMIT 1) RETURNING id"
        )

        with deaf(postgres_url) as auth:
            description: JsonMap = {"kind": "claim", "engine": "postgres", "auth": auth, "sql": sql}
            pages = played(call, lambda: until_dry_of(description, call))
        assert [item["id"] for page in pages for item in page.items] == [1, 2]
        assert server.execute("SELECT id, taken FROM jobs ORDER BY id").fetchall() == [(1, 2), (2, 1)]
        assert server.execute("SELECT count(DISTINCT taken_by) FROM jobs").fetchone() == (2,)


async def until_dry_of(description: JsonMap, call: Call) -> list[Page]:
    return await until_dry(open_pages(description, call, once=True))


def test_a_failure_that_will_not_pass_is_not_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    call = make_call(tmp_path, say=said.append)
    (tmp_path / "it.db").touch()
    description: JsonMap = {
        "kind": "claim",
        "engine": "sqlite",
        "path": "it.db",
        "sql": "UPDATE nowhere SET x = 1 RETURNING x",
    }
    with pytest.raises(ToolFailure):
        played(call, lambda: until_dry_of(description, call))
    assert said == []
