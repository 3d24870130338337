"""`connections`: databases by name, in jobs and in playbooks, and drivers by the name of their module."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_text
from tests.engine import play
from tests.jobs import run_job
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

COPY = """\
keychain: [{{ name: place, kind: env, var: PLACE }}]
components:
  - {{ name: rows, type: fixed_rows, params: {{ columns: [id, name], rows: [[1, "it's"], [2, null], [3, "%s"]] }} }}
  - {{ name: out, type: write_sql, params: {{ connection: shop, table: t, mode: {mode} }} }}
  - {{ name: back, type: read_sql, params: {{ connection: shop, query: "SELECT id, name FROM t WHERE id < :most ORDER BY id", params: {{ most: 3 }} }} }}
  - {{ name: file, type: write_csv, params: {{ path: back.csv }} }}
connections:
  shop: {shop}
  data: |
    rows.main -> out.input
    back.main -> file.input
  control: out (subjob_ok) back
"""


def copied(folder: Path, shop: str, mode: str = "insert", place: str = "nowhere") -> Any:
    ran = run_job(COPY.format(shop=shop, mode=mode), folder, environ={"PLACE": place})
    assert ran.status == "completed", ran.error
    return (folder / "back.csv").read_text().splitlines()


EXPECTED = ["id,name", "1,it's", "2,"]


@pytest.mark.parametrize(
    "shop",
    [
        "{ kind: sqlite, path: shop.db }",
        "{ kind: sqlite, url: 'sqlite:///shop.db' }",
        "{ kind: dbapi, driver: sqlite3, path: shop.db }",
    ],
)
def test_a_file_is_named_once_and_used_by_name(tmp_path: Path, shop: str) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE t (id INTEGER, name TEXT)")
    assert copied(tmp_path, shop) == EXPECTED


@pytest.mark.parametrize(
    "shop",
    [
        "{ kind: postgres, url: '{{ keychain.place }}' }",
        "{ kind: adbc, driver: adbc_driver_postgresql, url: '{{ keychain.place }}' }",
        "{ kind: dbapi, driver: psycopg, url: '{{ keychain.place }}' }",
    ],
)
@pytest.mark.parametrize("mode", ["insert", "truncate_insert"])
def test_a_server_is_reached_by_its_own_driver_or_by_one_that_is_named(
    tmp_path: Path, postgres_url: str, shop: str, mode: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE t (id bigint, name text)")
    if "adbc" in shop:
        # Its placeholders are the server's own.
        job = COPY.replace("WHERE id < :most ", "WHERE id < 3 ").replace(", params: {{ most: 3 }}", "")
        ran = run_job(job.format(shop=shop, mode=mode), tmp_path, environ={"PLACE": postgres_url})
        assert ran.status == "completed", ran.error
        assert (tmp_path / "back.csv").read_text().splitlines() == EXPECTED
    else:
        assert copied(tmp_path, shop, mode, postgres_url) == EXPECTED


@pytest.mark.parametrize("driver", ["dbapi, driver: psycopg", "adbc, driver: adbc_driver_postgresql"])
def test_a_driver_by_name_refuses_rows_one_by_one_and_runs_statements(
    tmp_path: Path, postgres_url: str, driver: str
) -> None:
    job = f"""\
keychain: [{{ name: place, kind: env, var: PLACE }}]
components:
  - {{ name: made, type: run_sql, params: {{ connection: shop, sql: "CREATE TABLE t (id bigint PRIMARY KEY CHECK (id <> 2), name text)" }} }}
  - {{ name: rows, type: fixed_rows, params: {{ columns: [id, name], rows: [[1, a], [2, b], [3, c], [3, d]] }} }}
  - {{ name: out, type: write_sql, params: {{ connection: shop, table: t }} }}
  - {{ name: bad, type: write_csv, params: {{ path: bad.csv }} }}
connections:
  shop: {{ kind: {driver}, url: "{{{{ keychain.place }}}}" }}
  data: |
    rows.main -> out.input
    out.reject -> bad.input
  control: made (subjob_ok) rows
"""
    ran = run_job(job, tmp_path, environ={"PLACE": postgres_url})
    assert ran.status == "completed", ran.error
    with psycopg.connect(postgres_url) as server:
        assert server.execute("SELECT id, name FROM t ORDER BY id").fetchall() == [(1, "a"), (3, "c")]
    with (tmp_path / "bad.csv").open(newline="") as file:
        refused = [(row["id"], row["name"], row["error_code"]) for row in csv.DictReader(file)]
    assert refused == [("2", "b", "23514"), ("3", "d", "23505")]


def test_a_driver_by_name_updates_and_deletes(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE t (id INTEGER, name TEXT)")
        file.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old'), (9, 'old')")
    job = """\
components:
  - {{ name: rows, type: fixed_rows, params: {{ columns: [id, name], rows: [[1, new], [2, new]] }} }}
  - {{ name: out, type: write_sql, params: {{ connection: shop, table: t, mode: {mode}, keys: [id] }} }}
connections:
  shop: {{ kind: dbapi, driver: sqlite3, path: shop.db }}
  data: rows.main -> out.input
"""
    for mode, left in (("update", [(1, "new"), (2, "new"), (9, "old")]), ("delete", [(9, "old")])):
        assert run_job(job.format(mode=mode), tmp_path, execution_id=mode).status == "completed"
        with sqlite3.connect(tmp_path / "shop.db") as file:
            assert file.execute("SELECT * FROM t ORDER BY id").fetchall() == left
    refused = run_job(job.format(mode="upsert"), tmp_path, execution_id="upsert")
    assert "`mode: upsert` is not for a connection by `driver`" in str(refused.error)


PLAYBOOK = """\
apiVersion: penstock/v1
kind: Playbook
metadata: {{ name: p }}
connections:
  shop: {{ kind: sqlite, path: shop.db }}
workflow:
  - step: start
    tool:
      - made: {{ kind: sqlite, connection: {name}, command: "CREATE TABLE t AS SELECT 1 AS id" }}
      - moved: {{ kind: transfer, source: {{ kind: sqlite, connection: shop, table: t }}, target: {{ kind: csv, path: t.csv }} }}
"""


def test_tools_of_a_playbook_use_a_connection_by_name(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PLAYBOOK.format(name="shop"))
    played = play(PLAYBOOK.format(name="shop"), tmp_path)
    assert played.status == "completed", played.error
    assert (tmp_path / "t.csv").read_text() == "id\n1\n"


BROKEN = """\
components:
  - {{ name: rows, type: read_sql, params: {{ connection: {name}, table: t }} }}
  - {{ name: out, type: log_rows }}
connections:
  shop: {shop}
  data: rows.main -> out.input
"""


@pytest.mark.parametrize(
    ("name", "shop", "code", "words"),
    [
        ("shpo", "{ kind: sqlite, path: a.db }", "Y0604", "did you mean `shop`"),
        ("shop", "{ kind: sqlight, path: a.db }", "Y0601", "sqlite"),
        ("shop", "{ path: a.db }", "Y0601", "has no `kind`"),
        ("shop", "{ kind: postgres }", "Y0601", "says nothing of"),
        ("shop", "{ kind: postgres, host: h, password: hunter22 }", "Y0602", "keychain"),
        ("shop", "{ kind: dbapi, driver: no_such_driver }", "Y0603", "pip install no-such-driver"),
        ("shop", "{ kind: adbc, driver: adbc_driver_flightsql }", "Y0603", "pip install adbc-driver-flightsql"),
    ],
)
def test_what_is_wrong_with_a_connection_is_said_before_the_run(name: str, shop: str, code: str, words: str) -> None:
    compiled = compile_text(BROKEN.format(name=name, shop=shop), "job.yaml", ComponentRegistry())
    found = [problem for problem in compiled.problems if problem.code == code]
    assert found, [problem.code for problem in compiled.problems]
    assert words in f"{found[0].message} {found[0].label} {found[0].hint}"
