"""`run_sql`: statements and scripts, on SQLite, DuckDB, PostgreSQL and MariaDB."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import mistakes, run
from tests.components.io.test_sql import (
    Database,
    database,
    mariadb_server,
    mariadb_url,
    postgres,
    postgres_server,
    postgres_url,
)
from tests.jobs import run_job

__all__ = ["database", "mariadb_server", "mariadb_url", "postgres", "postgres_server", "postgres_url"]

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20))"


def sql(database: Database, *statements: str, connected: Any = ("main",), **params: Any) -> Any:
    given = {"connection": database.url, "sql": "; ".join(statements), **params}
    return run("run_sql", given, connected=connected, folder=database.folder)


def test_every_statement_is_run_and_counted(database: Database) -> None:
    ran = sql(
        database,
        TABLE,
        "INSERT INTO t VALUES (1, 'ada'), (2, 'bob'), (3, :name)",
        "UPDATE t SET name = 'x' WHERE id > :least",
        params={"name": "cy", "least": 1},
    )
    told = [(row["statement"], row["verb"], row["rows"], row["error"]) for row in ran.main]
    assert told == [(1, "CREATE", 0, None), (2, "INSERT", 3, None), (3, "UPDATE", 2, None)]
    assert ran.result == {"statements": 3, "rows": [0, 3, 2]}
    after = {
        "NB_STATEMENT": 3,
        "NB_LINE_AFFECTED": 5,
        "NB_STATEMENT_ERROR": 0,
        "NB_LINE_1": 0,
        "NB_LINE_2": 3,
        "NB_LINE_3": 2,
    }
    assert {key: ran.after[key] for key in after} == after
    assert database.rows() == [(1, "ada"), (2, "x"), (3, "x")]


def test_the_rows_of_the_last_statement_leave_by_a_port_of_their_own(database: Database) -> None:
    sql(database, TABLE, "INSERT INTO t VALUES (1, 'ada'), (2, 'bob')")
    ran = sql(database, "DELETE FROM t WHERE id = 1", "SELECT id, name FROM t", connected=("main", "rows"))
    assert ran.outputs["rows"] == [{"id": 2, "name": "bob"}]
    assert [row["rows"] for row in ran.main] == [1, 1]


def test_a_port_that_is_read_needs_a_query_at_the_end(database: Database) -> None:
    with pytest.raises(ComponentFailure, match=r"the last statement gives no rows; hint: end with a SELECT"):
        sql(database, TABLE, connected=("main", "rows"))
    empty = sql(database, "SELECT id, name FROM t", connected=("main", "rows"))
    assert empty.outputs["rows"] == []


def test_a_failure_leaves_nothing_of_its_transaction(database: Database) -> None:
    sql(database, TABLE, "INSERT INTO t VALUES (1, 'ada')")
    with pytest.raises(ComponentFailure, match=r"(?i)nowhere"):
        sql(database, "DELETE FROM t", "DELETE FROM nowhere")
    assert database.rows() == [(1, "ada")]


def test_without_a_transaction_each_statement_counts_by_itself(database: Database) -> None:
    sql(database, TABLE, "INSERT INTO t VALUES (1, 'ada'), (2, 'bob')")
    with pytest.raises(ComponentFailure, match=r"statement 2 of 3 \(1 before it are committed\)"):
        sql(database, "DELETE FROM t WHERE id = 1", "DELETE FROM nowhere", "DELETE FROM t", transaction="none")
    assert database.rows() == [(2, "bob")]
    ran = sql(database, "DELETE FROM nowhere", "DELETE FROM t", transaction="none", on_error="continue")
    assert [(row["verb"], row["rows"], row["error"] is None) for row in ran.main] == [
        ("DELETE", 0, False),
        ("DELETE", 1, True),
    ]
    assert ran.after["NB_STATEMENT_ERROR"] == 1


def test_what_cannot_be_in_a_transaction_runs_without_one(postgres: Database) -> None:
    sql(postgres, TABLE)
    with pytest.raises(ComponentFailure, match="VACUUM"):
        sql(postgres, "DELETE FROM t", "VACUUM t")
    assert sql(postgres, "DELETE FROM t", "VACUUM t", transaction="none").result == {"statements": 2, "rows": [0, 0]}


def test_functions_are_called_and_rights_granted(postgres: Database) -> None:
    """A body in dollar quotes is one statement, whatever semicolons it has."""
    (postgres.folder / "setup.sql").write_text(
        "-- once\nCREATE TABLE t (id INTEGER);\n"
        "CREATE PROCEDURE fill(n INTEGER) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t SELECT generate_series(1, n); END $$;\n"
        "CALL fill(3);\nGRANT SELECT ON t TO PUBLIC;\n"
    )
    ran = run("run_sql", {"connection": postgres.url, "file": "setup.sql"}, connected=("main",), folder=postgres.folder)
    assert [row["verb"] for row in ran.main] == ["CREATE", "CREATE", "CALL", "GRANT"]
    assert [row[0] for row in postgres.rows()] == [1, 2, 3]


def test_a_statement_that_takes_too_long_is_stopped(postgres: Database) -> None:
    with pytest.raises(ComponentFailure) as failed:
        sql(postgres, "SELECT pg_sleep(60)", timeout=0.2)
    assert failed.value.kind == "timeout"


def test_it_is_led_to_without_inputs_and_its_counts_are_read_in_links(database: Database) -> None:
    text = f"""
components:
  prepare: {{type: run_sql, params: {{connection: "{database.url}", sql: "{TABLE}; INSERT INTO t VALUES (1, 'a')"}}}}
  clean: {{type: run_sql, params: {{connection: "{database.url}", sql: "DELETE FROM t WHERE id = 1"}}}}
  told: {{type: set_global, params: {{values: {{deleted: "{{{{ global.clean.NB_LINE_AFFECTED }}}}"}}}}}}
connections:
  control:
    - prepare (subjob_ok) clean
    - 'clean (if 1: "NB_LINE_1 == 1") told'
"""
    ran = run_job(text, database.folder)
    assert ran.status == "completed", ran.error
    assert ran.globals == {"deleted": 1}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"connection": "sqlite:///x.db"}, "exactly one of `sql` and `file`"),
        ({"connection": "sqlite:///x.db", "sql": "SELECT 1", "file": "a.sql"}, "exactly one of `sql` and `file`"),
        ({"sql": "SELECT 1"}, "no database is named"),
        ({"connection": "sqlite:///x.db", "sql": "SELECT 1", "on_error": "continue"}, "`transaction: none`"),
    ],
)
def test_what_cannot_work_is_said_before_the_run(params: dict[str, Any], said: str) -> None:
    [mistake] = mistakes("run_sql", params)
    assert said in mistake.message


def test_a_text_without_a_statement_is_refused(database: Database) -> None:
    with pytest.raises(ComponentFailure, match="no statement to run"):
        sql(database, "-- nothing here")
