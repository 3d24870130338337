"""Loops over collections that are read page by page, through the whole engine, local and fanned out."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.keychain.errors import KeychainError
from penstock.ports.collections import Page
from penstock.worker.pages import PAGE, all_pages
from tests.engine import Played, play
from tests.servers import postgres_server, postgres_url
from tests.tools.support import Reply, Request, serve

__all__ = ["postgres_server", "postgres_url"]

NUMBERS = count(1)
MODES = pytest.mark.parametrize("mode", ["local", "fanout"])


def run(home: Path, mode: str, collection: str, body: str = "{{ iter.item }}", more: str = "") -> Played:
    """One task that gives what its template says, over a collection."""
    return play(
        f"""
        {more}
        workflow:
          - step: start
            spec: {{loop_mode: {mode}, policy: {{fanout: {{range_size: 7}}}}}}
            loop: {{in: {collection}, iterator: item}}
            tool:
              name: it
              kind: python
              args: {{it: "{body}"}}
              code: "def main(it): return it"
        """,
        home,
        execution_id=f"run-{next(NUMBERS)}",
    )


def results(run: Played) -> list[Any]:
    assert run.status == "completed", run.error
    assert isinstance(run.result, dict)
    return list(run.result["results"])


def database(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
        file.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"order {n}") for n in range(count)])
        file.commit()


@pytest.mark.clause("F1.1", "F2.1")
@MODES
def test_lines_files_row_groups_rows_and_objects(tmp_path: Path, mode: str) -> None:
    (tmp_path / "it.txt").write_text("".join(f"line {n}\n" for n in range(30)))
    assert results(run(tmp_path, mode, "{lines: it.txt}")) == [f"line {n}" for n in range(30)]
    for n in range(20):
        (tmp_path / f"{n:02d}.in").touch()
    found = results(run(tmp_path, mode, "{files: '*.in'}", "{{ iter.item.name }}"))
    assert found == [f"{n:02d}.in" for n in range(20)]
    found = results(
        run(tmp_path, mode, f"{{objects: {{url: 'file://{tmp_path}', pattern: '*.in'}}}}", "{{ iter.item.key }}")
    )
    assert found == [f"{n:02d}.in" for n in range(20)]
    duckdb.sql("FROM range(20000)").write_parquet(str(tmp_path / "it.parquet"), row_group_size=2048)
    found = results(run(tmp_path, mode, "{row_groups: it.parquet}", "{{ iter.item.rows }}"))
    assert sum(found) == 20_000
    database(tmp_path / "it.db", 30)
    rows = "{sql: {kind: sqlite, path: it.db, query: 'SELECT id, name FROM orders WHERE id >= :least', args: {least: 5}, key: id}}"
    assert results(run(tmp_path, mode, rows)) == [{"id": n, "name": f"order {n}"} for n in range(5, 30)]


@MODES
def test_a_collection_without_elements_is_over_at_once(tmp_path: Path, mode: str) -> None:
    (tmp_path / "it.txt").touch()
    database(tmp_path / "it.db", 0)
    for collection in (
        "{lines: it.txt}",
        "{files: '*.none'}",
        "{sql: {kind: sqlite, path: it.db, query: TABLE orders, key: id}}",
    ):
        text = collection.replace("TABLE orders", "SELECT * FROM orders")
        assert results(run(tmp_path, mode, text)) == []


@pytest.mark.clause("F8.1")
@MODES
def test_an_interface_that_lists_page_by_page_with_a_credential_of_the_keychain(tmp_path: Path, mode: str) -> None:
    def answer(request: Request) -> Reply:
        if request.headers.get("authorization") != "Bearer word-of-the-day":
            return Reply(401, "who are you?")
        first = int(request.query.get("cursor", ["0"])[0])
        return Reply(200, {"items": list(range(first, first + 10)), "next": first + 10 if first < 40 else None})

    keychain = "keychain: [{name: api, kind: static, value: word-of-the-day}]"
    with serve(answer) as server:
        collection = f"{{http: {{url: '{server.url}', auth: api, items: items, next: next}}}}"
        assert results(run(tmp_path, mode, collection, more=keychain)) == list(range(50))
        assert len(server.requests) == 5
        failed = run(tmp_path, mode, collection.replace("auth: api, ", ""), more=keychain)
        assert failed.status == "failed"
        assert failed.error["kind"] == "http_status"


@pytest.mark.clause("F2.1")
@MODES
def test_rows_of_postgres_by_templates(tmp_path: Path, mode: str, postgres_url: str) -> None:
    more = f"workload: {{url: '{postgres_url}', most: 25}}"
    query = "SELECT n AS id FROM generate_series(1, 100) AS n WHERE n <= :most"
    collection = f"{{sql: {{kind: postgres, url: '{{{{ workload.url }}}}', query: '{query}', args: {{most: '{{{{ workload.most }}}}'}}, key: id}}}}"
    assert results(run(tmp_path, mode, collection, "{{ iter.item.id }}", more)) == list(range(1, 26))


@pytest.mark.clause("F2.2")
@MODES
def test_the_key_of_an_element_is_what_the_collection_calls_it(tmp_path: Path, mode: str) -> None:
    database(tmp_path / "it.db", 12)
    rows = "{sql: {kind: sqlite, path: it.db, query: 'SELECT id * 3 AS id FROM orders', key: id}}"
    found = results(run(tmp_path, mode, rows, "{{ iter.iter_key ~ ' ' ~ iter.shard_id }}"))
    assert found == [f"{3 * n} start@0[{n}]" for n in range(12)]


@pytest.mark.clause("F2.2", "F6.1")
def test_the_event_of_an_element_has_its_key(tmp_path: Path) -> None:
    database(tmp_path / "it.db", 12)
    text = """
    - step: start
      spec: {loop_mode: fanout, policy: {fanout: {range_size: 5, emit: per_item}}}
      loop:
        in: {sql: {kind: sqlite, path: it.db, query: 'SELECT id * 3 AS id FROM orders', key: id}}
        iterator: row
      tool: [{name: it, kind: noop}]
    """
    done = play(text, tmp_path).of("loop.shard.done")
    assert sorted((event["iter_index"], event["iter_key"]) for event in done) == [(n, str(3 * n)) for n in range(12)]


@MODES
@pytest.mark.parametrize(
    ("collection", "kind", "words"),
    [
        ("{lines: nowhere.txt}", "not_found", "nowhere.txt"),
        ("{files: 'nowhere/*'}", "not_found", "nowhere"),
        ("{lines: {path: it.txt, encoding: morse}}", "parameters", "`morse` is not an encoding"),
        ("{sql: {kind: sqlite, path: it.db, query: SELECT * FROM nowhere, key: id}}", "not_found", "no such table"),
    ],
)
def test_a_collection_that_cannot_be_read_fails_the_step(
    tmp_path: Path, mode: str, collection: str, kind: str, words: str
) -> None:
    (tmp_path / "it.txt").touch()
    database(tmp_path / "it.db", 1)
    failed = run(tmp_path, mode, collection)
    assert failed.status == "failed"
    assert words in failed.error["message"]
    assert failed.error["kind"] == kind


@MODES
def test_a_collection_whose_secret_is_not_there_is_refused_before_the_run(tmp_path: Path, mode: str) -> None:
    with pytest.raises(KeychainError, match="no such secret: looked for `unknown`"):
        run(tmp_path, mode, "{http: {url: 'http://127.0.0.1:1/', auth: unknown}}")


@MODES
def test_a_secret_is_in_no_event_when_a_collection_fails(tmp_path: Path, mode: str) -> None:
    keychain = "keychain: [{name: place, kind: static, value: very-secret-file.db}]"
    collection = "{sql: {kind: sqlite, auth: place, query: SELECT 1 AS id, key: id}}"
    failed = run(tmp_path, mode, collection, more=keychain)
    assert failed.status == "failed"
    assert "`***` cannot be opened" in failed.error["message"].replace(f"{tmp_path}/", "")
    assert "very-secret-file" not in str(failed.events)


# ---- effects


@pytest.mark.clause("F7.2", "F3.1")
def test_a_shard_that_is_tried_again_writes_its_rows_once(tmp_path: Path) -> None:
    """Each element writes, and fails after that until it has been handed out for the third time."""
    with closing(sqlite3.connect(tmp_path / "it.db")) as file:
        file.execute("CREATE TABLE keyed (n INT)")
        file.execute("CREATE TABLE unkeyed (n INT)")
    ran = play(
        """
        - step: start
          spec:
            loop_mode: fanout
            policy: {fanout: {max_job_retries: 2}}
          loop: {in: {range: 20}, iterator: n}
          tool:
            - name: once
              kind: sqlite
              path: it.db
              command: INSERT INTO keyed VALUES (:n)
              params: {n: "{{ iter.n }}"}
              idempotency: true
            - name: often
              kind: sqlite
              path: it.db
              command: INSERT INTO unkeyed VALUES (:n)
              params: {n: "{{ iter.n }}"}
            - name: count
              kind: sqlite
              path: it.db
              query: SELECT count(*) AS runs FROM unkeyed WHERE n = :n
              params: {n: "{{ iter.n }}"}
            - name: fail_twice
              kind: python
              args: {runs: "{{ count.rows[0].runs }}"}
              code: |
                def main(runs):
                    assert runs == 3, "not yet"
                    return runs
        """,
        tmp_path,
    )
    assert results(ran) == [3] * 20
    with closing(sqlite3.connect(tmp_path / "it.db")) as file:
        assert file.execute("SELECT n FROM keyed ORDER BY n").fetchall() == [(n,) for n in range(20)]
        assert file.execute("SELECT count(*) FROM unkeyed").fetchone() == (60,)
        assert file.execute("SELECT count(DISTINCT shard_id), count(*) FROM penstock_effects").fetchone() == (20, 20)


@pytest.mark.clause("F7.2")
@MODES
def test_requests_of_an_element_have_one_key_over_all_retries_and_each_element_its_own(
    tmp_path: Path, mode: str
) -> None:
    def answer(request: Request) -> Reply:
        sent = [one.headers["idempotency-key"] for one in server.requests]
        return Reply(200 if sent.count(request.headers["idempotency-key"]) == 4 else 500, {"key": "x"})

    with serve(answer) as server:
        ran = play(
            f"""
            - step: start
              spec: {{loop_mode: {mode}, policy: {{fanout: {{max_job_retries: 1}}}}}}
              loop: {{in: {{range: 5}}, iterator: n}}
              tool:
                - name: post
                  kind: http
                  url: {server.url}
                  method: POST
                  json: {{effect: "{{{{ _effect }}}}"}}
                  spec: {{policy: {{rules: [{{when: "{{{{ outcome.status == 'error' }}}}", then: {{do: retry, attempts: {2 if mode == "fanout" else 4}}}}}]}}}}
            """,
            tmp_path,
        )
        assert ran.status == "completed", ran.error
        keys = [request.headers["idempotency-key"] for request in server.requests]
        assert sorted(keys) == sorted(f"run-1/start@0[{n}]/post#1" for n in range(5) for _ in range(4))
        assert all(request.json["effect"] == request.headers["idempotency-key"] for request in server.requests)


@pytest.mark.clause("F3.1")
def test_an_element_that_took_its_row_out_of_the_table_and_failed_has_it_again(tmp_path: Path) -> None:
    """The way of queues: what has been worked on is not found by the query any more."""
    database(tmp_path / "it.db", 20)
    ran = play(
        """
        - step: start
          spec: {loop_mode: fanout, policy: {fanout: {max_job_retries: 1, range_size: 6}}}
          loop: {in: {sql: {kind: sqlite, path: it.db, query: 'SELECT id, name FROM orders', key: id}}, iterator: row}
          tool:
            - name: take
              kind: sqlite
              path: it.db
              command: DELETE FROM orders WHERE id = :id
              params: {id: "{{ iter.row.id }}"}
            - name: fail_at_first
              kind: python
              args: {taken: "{{ take.row_count }}", name: "{{ iter.row.name }}"}
              code: |
                def main(taken, name):
                    assert taken == 0, "not yet"
                    return name
        """,
        tmp_path,
    )
    assert results(ran) == [f"order {n}" for n in range(20)]


# ---- reading all


class Numbers:
    """Pages of numbers, of which it notes how they were asked for."""

    def __init__(self, *pages: Sequence[Any]) -> None:
        self.pages = pages
        self.asked: list[tuple[Any, int]] = []

    async def page(self, token: Any, most: int, until: Any = None) -> Page:
        self.asked.append((token, most))
        at = token or 0
        return Page(self.pages[at], at + 1, at + 1 == len(self.pages), [str(one) for one in self.pages[at]])


def test_all_pages_are_read_one_after_the_other() -> None:
    import asyncio

    numbers = Numbers([1, 2], [], [3])
    page = asyncio.run(all_pages(numbers))
    assert (list(page.items), page.keys, page.is_end) == ([1, 2, 3], ["1", "2", "3"], True)
    assert numbers.asked == [(None, PAGE), (1, PAGE), (2, PAGE)]


def test_pages_are_kept_for_shards_and_not_for_a_local_loop(tmp_path: Path) -> None:
    database(tmp_path / "it.db", 30)
    rows = "{sql: {kind: sqlite, path: it.db, query: SELECT id FROM orders, key: id}}"

    def kept() -> int:
        return len(list((tmp_path / ".penstock" / "blobs").glob("??/*")))

    results(run(tmp_path, "local", rows, "x"))
    assert kept() == 0
    results(run(tmp_path, "fanout", rows.replace("key: id", "key: id, keep: false"), "x"))
    assert kept() == 0
    results(run(tmp_path, "fanout", rows, "x"))
    assert kept() == 5
