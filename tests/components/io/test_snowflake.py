"""Snowflake by both of its drivers, against an emulator of it (fakesnow) in a process of its own."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import run_job
from tests.snowflake import WARNINGS, snowflake_drivers, snowflake_port

__all__ = ["snowflake_drivers", "snowflake_port"]
pytestmark = WARNINGS


DRIVERS = {
    "dbapi": """\
    kind: dbapi
    driver: snowflake.connector
    user: fake
    password: "{{{{ keychain.password }}}}"
    host: localhost
    port: {port}
    database: SHOP
    options: {{ account: fakesnow, protocol: http, schema: PUBLIC, network_timeout: 60 }}
""",
    "adbc": """\
    kind: adbc
    driver: adbc_driver_snowflake
    password: "{{{{ keychain.password }}}}"
    options:
      username: fake
      adbc.snowflake.sql.account: fakesnow
      adbc.snowflake.sql.uri.host: localhost
      adbc.snowflake.sql.uri.port: {port}
      adbc.snowflake.sql.uri.protocol: http
      adbc.snowflake.sql.db: SHOP
      adbc.snowflake.sql.schema: PUBLIC
""",
}


def run(folder: Path, port: int, text: str, driver: str = "dbapi", called: str = "run-1") -> Any:
    head = "keychain: [{ name: password, kind: env, var: PASSWORD }]\n"
    connection = DRIVERS[driver].format(port=port)
    return run_job(
        head + text.replace("SHOP_HERE\n", connection), folder, environ=dict(os.environ), execution_id=called
    )


def ran(folder: Path, port: int, text: str, driver: str = "dbapi", called: str = "run-1") -> None:
    done = run(folder, port, text, driver, called)
    assert done.status == "completed", done.error


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


READ = """\
components:
  - name: made
    type: run_sql
    params:
      connection: shop
      sql:
        - CREATE OR REPLACE TABLE given (id INTEGER, name VARCHAR, "odd name" VARCHAR, amount NUMBER(38,10), day DATE, is_new BOOLEAN)
        - INSERT INTO given VALUES (1, 'it''s "ü"', 'a', 1234567890123456789012345678.0123456789, '2024-01-31', TRUE), (2, NULL, NULL, NULL, NULL, NULL)
  - { name: rows, type: read_sql, params: { connection: shop, query: "SELECT * FROM given WHERE id <= :most ORDER BY id", params: { most: 2 } } }
  - { name: out, type: write_csv, params: { path: out.csv } }
connections:
  shop:
SHOP_HERE
  data: rows.main -> out.input
  control: made (subjob_ok) rows
"""


@pytest.mark.parametrize("driver", DRIVERS)
def test_statements_run_and_rows_are_read(snowflake_port: int, tmp_path: Path, driver: str) -> None:
    ran(tmp_path, snowflake_port, READ, driver)
    assert read(tmp_path / "out.csv") == [
        ["ID", "NAME", "odd name", "AMOUNT", "DAY", "IS_NEW"],
        ["1", 'it\'s "ü"', "a", "1234567890123456789012345678.0123456789", "2024-01-31", "true"],
        ["2", "", "", "", "", ""],
    ]


WRITE = """\
components:
  - name: made
    type: run_sql
    params: { connection: shop, sql: "CREATE OR REPLACE TABLE t (ID INTEGER, NAME VARCHAR)" }
  - { name: first, type: fixed_rows, params: { columns: [ID, NAME], rows: [[1, old], [2, old], [3, old]] } }
  - { name: put, type: write_sql, params: { connection: shop, table: T } }
  - { name: second, type: fixed_rows, params: { columns: [ID, NAME], rows: [[2, "it's %s ?"]] } }
  - { name: changed, type: write_sql, params: { connection: shop, table: T, mode: update, keys: [ID] } }
  - { name: third, type: fixed_rows, params: { columns: [ID], rows: [[3]] } }
  - { name: gone, type: write_sql, params: { connection: shop, table: T, mode: delete, keys: [ID] } }
  - { name: rows, type: read_sql, params: { connection: shop, query: "SELECT * FROM t ORDER BY id" } }
  - { name: out, type: write_csv, params: { path: out.csv } }
connections:
  shop:
SHOP_HERE
  data: |
    first.main -> put.input
    second.main -> changed.input
    third.main -> gone.input
    rows.main -> out.input
  control: |
    made (subjob_ok) first
    first (subjob_ok) second
    second (subjob_ok) third
    third (subjob_ok) rows
"""


def test_rows_are_added_changed_and_deleted(snowflake_port: int, tmp_path: Path) -> None:
    ran(tmp_path, snowflake_port, WRITE)
    assert read(tmp_path / "out.csv") == [["ID", "NAME"], ["1", "old"], ["2", "it's %s ?"]]


KEPT = """\
components:
  - { name: rows, type: read_sql, params: { connection: shop, query: "SELECT * FROM kept ORDER BY id" } }
  - { name: out, type: write_csv, params: { path: out.csv } }
connections:
  shop:
SHOP_HERE
  data: rows.main -> out.input
"""
MADE = """\
components:
  - { name: made, type: run_sql, params: { connection: shop, sql: ["CREATE OR REPLACE TABLE kept (ID INTEGER)", "INSERT INTO kept VALUES (1)"] } }
connections:
  shop:
SHOP_HERE
"""
FAILING = {
    "write_sql": """\
components:
  - { name: rows, type: fixed_rows, params: { columns: [ID], rows: [["2"], ["3"], [no number]] } }
  - { name: failing, type: write_sql, params: { connection: shop, table: KEPT, batch_size: 1, before: DELETE FROM kept } }
connections:
  shop:
SHOP_HERE
  data: rows.main -> failing.input
""",
    "run_sql": """\
components:
  - { name: failing, type: run_sql, params: { connection: shop, sql: [DELETE FROM kept, INSERT INTO kept VALUES (2), SELECT * FROM nowhere] } }
connections:
  shop:
SHOP_HERE
""",
}


@pytest.mark.parametrize("component", list(FAILING))
def test_what_fails_in_the_middle_leaves_the_table_as_it_was(
    snowflake_port: int, tmp_path: Path, component: str
) -> None:
    ran(tmp_path, snowflake_port, MADE)
    failed = run(tmp_path, snowflake_port, FAILING[component], called="failing")
    assert failed.status == "failed"
    assert failed.error["component"] == "failing"
    ran(tmp_path, snowflake_port, KEPT, called="read")
    assert read(tmp_path / "out.csv") == [["ID"], ["1"]]


def test_statements_without_a_transaction_stay_when_a_later_one_fails(snowflake_port: int, tmp_path: Path) -> None:
    ran(tmp_path, snowflake_port, MADE)
    text = FAILING["run_sql"].replace("connection: shop,", "connection: shop, transaction: none,")
    assert run(tmp_path, snowflake_port, text, called="failing").status == "failed"
    ran(tmp_path, snowflake_port, KEPT, called="read")
    assert read(tmp_path / "out.csv") == [["ID"], ["2"]]
