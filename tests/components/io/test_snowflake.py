"""Snowflake by both of its drivers, against an emulator of it (fakesnow) in a process of its own."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import run_job
from tests.packages import python_packages

PACKAGES = ("fakesnow[server]==0.12.1", "snowflake-connector-python==4.8.1", "adbc-driver-snowflake==1.11.0")
# Both drivers warn of what is missing on a machine that has never seen them.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def packages() -> Path:
    return python_packages("snowflake", *PACKAGES)


@pytest.fixture(scope="module")
def port(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    log = tmp_path_factory.mktemp("snowflake") / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "fakesnow", "-s", "-p", str(port)],
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdout=said,
            stderr=said,
        )
    try:
        for _ in range(1_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        else:
            raise RuntimeError(f"the emulator does not answer: {log.read_text()}")
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module", autouse=True)
def _nothing_stays(packages: Path) -> Iterator[None]:
    """What the drivers bring along is not there for the tests that follow in this process."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(packages)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def drivers(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last on the path: what both have is ours."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    monkeypatch.setenv("PASSWORD", "a-password-of-mine")


DRIVERS = {
    "dbapi": """\
    kind: dbapi
    driver: snowflake.connector
    user: fake
    password: "{{{{ keychain.password }}}}"
    host: localhost
    port: {port}
    database: SHOP
    options: {{ account: fakesnow, protocol: http, schema: PUBLIC }}
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


def ran(folder: Path, port: int, text: str, driver: str = "dbapi") -> Any:
    head = "keychain: [{ name: password, kind: env, var: PASSWORD }]\n"
    connection = DRIVERS[driver].format(port=port)
    done = run_job(head + text.replace("SHOP_HERE\n", connection), folder, environ=dict(os.environ))
    assert done.status == "completed", done.error
    return done


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
def test_statements_run_and_rows_are_read(port: int, tmp_path: Path, driver: str) -> None:
    ran(tmp_path, port, READ, driver)
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


def test_rows_are_added_changed_and_deleted(port: int, tmp_path: Path) -> None:
    ran(tmp_path, port, WRITE)
    assert read(tmp_path / "out.csv") == [["ID", "NAME"], ["1", "old"], ["2", "it's %s ?"]]
