"""`transaction: shared`: statements and writers of a sub-job that count together, on SQLite, DuckDB, PostgreSQL and MariaDB."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.server.documents import DocumentInvalid
from penstock.tools.sql import sqlite as sqlite_tool
from tests.components.harness import run
from tests.components.io.test_sql import (
    Database,
    database,
    mariadb_server,
    mariadb_url,
    postgres,
    postgres_server,
    postgres_url,
)
from tests.jobs import Ran, resume_job, run_job

__all__ = ["database", "mariadb_server", "mariadb_url", "postgres", "postgres_server", "postgres_url"]

JOB = """
components:
  empty: {type: run_sql, params: {connection: "URL", sql: "DELETE FROM t WHERE id > :least", params: {least: 0}, transaction: shared}}
  rows: {type: fixed_rows, params: {columns: [id, name], rows: [[5, new], [6, newer]]}}
  load: {type: write_sql, params: {connection: "URL", table: t}}
  check: {type: run_sql, params: {connection: "URL", sql: "CHECK", transaction: shared}}
MORE
connections:
  data: rows.main -> load.input
  control: |
    empty (ok) rows
    load (ok) check
    LINKS
"""
COUNT = "INSERT INTO counts SELECT count(*) FROM t"


def job(database: Database, check: str = COUNT, more: str = "", links: str = "") -> str:
    text = JOB.replace("URL", database.url).replace("CHECK", check).replace("MORE", more)
    return text.replace("LINKS", links)


@pytest.fixture
def shop(database: Database) -> Database:
    database.write([{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}], create=True, keys=["id"])
    database.write([{"n": 0}], create=True, table="counts")
    return database


def result(ran: Ran, name: str) -> Any:
    (ended,) = [one for one in ran.events if one["event_type"] == "component.ok" and one["scope"] == name]
    return ended["payload"]["result"]  # type: ignore[index, call-overload]


def counts(database: Database) -> list[Any]:
    return [row["n"] for row in database.read("SELECT n FROM counts ORDER BY n").main]


def test_statements_and_rows_of_a_sub_job_are_committed_together_at_its_end(shop: Database) -> None:
    ran = run_job(job(shop), shop.folder)
    assert ran.status == "completed", ran.error
    assert shop.rows() == [(5, "new"), (6, "newer")]
    assert counts(shop) == [0, 2], "a statement sees what the writers before it wrote"
    assert ran.component("commit_empty")["state"] == "OK"
    assert ran.component("load")["rows_in"] == {"input": 2}


def test_a_failure_in_the_sub_job_takes_all_of_it_back(shop: Database) -> None:
    ran = run_job(job(shop, "DELETE FROM nowhere"), shop.folder)
    assert (ran.status, shop.rows(), counts(shop)) == ("failed", [(1, "ada"), (2, "bob")], [0])


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)  # One locks a file, the other rows.
def test_a_component_that_only_looks_may_take_it_back_too_and_others_find_the_database_free(shop: Database) -> None:
    """What a `subjob_error` leads to writes to the same row that the transaction had changed."""
    more = f"""\
  gate: {{type: die_unless, params: {{}}}}
  told: {{type: run_sql, params: {{connection: "{shop.url}", sql: "UPDATE t SET name = 'told' WHERE id = 1"}}}}"""
    more = more.replace("die_unless, params: {}", "python, params: {code: 'raise ValueError(\"no\")'}")
    ran = run_job(job(shop, more=more, links="check (ok) gate\n    gate (subjob_error) told"), shop.folder)
    assert ran.component("told")["state"] == "OK", ran.error
    assert (shop.rows(), counts(shop)) == ([(1, "told"), (2, "bob")], [0])
    assert result(ran, "commit_empty") == {"committed": False}


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_a_writer_that_an_error_link_leads_to_has_a_transaction_of_its_own(shop: Database) -> None:
    more = f"""\
  reason: {{type: fixed_rows, params: {{columns: [n], rows: [[99]]}}}}
  note: {{type: write_sql, params: {{connection: "{shop.url}", table: counts}}}}"""
    text = job(shop, "DELETE FROM nowhere", more, "check (error) reason").replace(
        "data: rows.main -> load.input", "data: |\n    rows.main -> load.input\n    reason.main -> note.input"
    )
    ran = run_job(text, shop.folder)
    assert (ran.status, shop.rows(), counts(shop)) == ("completed", [(1, "ada"), (2, "bob")], [0, 99])


@pytest.mark.parametrize("database", ["sqlite", "mysql"], indirect=True)
def test_a_resume_runs_the_sub_job_again_and_nothing_is_there_twice(shop: Database) -> None:
    (shop.folder / "check.sql").write_text("DELETE FROM nowhere")
    text = job(shop, "", "").replace('sql: ""', "file: check.sql")
    assert run_job(text, shop.folder).status == "failed"
    (shop.folder / "check.sql").write_text(COUNT)
    ran = resume_job(shop.folder)
    assert ran.status == "completed", ran.error
    assert (shop.rows(), counts(shop)) == ([(5, "new"), (6, "newer")], [0, 2])


def test_a_sub_job_that_is_run_again_after_its_commit_changes_nothing_and_gives_the_same(shop: Database) -> None:
    """As after a death between the commit and the event that tells of it: the log knows nothing of the first run."""
    more, links = "  refused: {type: log_rows}", ""
    text = job(shop, more=more, links=links)
    if shop.kind != "duckdb":
        text = text.replace(
            "data: rows.main -> load.input", "data: |\n    rows.main -> load.input\n    load.reject -> refused.input"
        )
        text = text.replace("[6, newer]", "[6, newer], [5, twice]")
    else:
        text = text.replace(more, "")
    first = run_job(text, shop.folder)
    assert first.status == "completed", first.error
    (shop.folder / ".penstock").rename(shop.folder / "lost")
    again = run_job(text, shop.folder)
    assert again.status == "completed", again.error
    assert (shop.rows(), counts(shop)) == ([(5, "new"), (6, "newer")], [0, 2])
    for name in ("empty", "load", "check"):
        assert result(again, name) == result(first, name)
        assert again.component(name)["rows_out"] == first.component(name)["rows_out"]


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)  # One locks a file, the other rows.
def test_a_job_that_dies_rolls_back_before_its_post_job_writes(shop: Database) -> None:
    """The row that the transaction had changed is free for it."""
    more = f"""\
  stop: {{type: die, params: {{message: enough}}}}
  finally: {{type: post_job}}
  told: {{type: run_sql, params: {{connection: "{shop.url}", sql: "UPDATE t SET name = 'told' WHERE id = 1"}}}}"""
    ran = run_job(job(shop, more=more, links="check (ok) stop\n    finally (ok) told"), shop.folder)
    assert (ran.status, ran.component("commit_empty")["state"]) == ("failed", "SKIPPED")
    assert ran.component("told")["state"] == "OK", ran.error
    assert (shop.rows(), counts(shop)) == ([(1, "told"), (2, "bob")], [0])


EACH = """
job_config: {fail_strategy: continue}
components:
  each: {type: iterate_range, params: {start: 1, stop: 7, parallel: 3}}
  note: {type: run_sql, params: {connection: "URL", sql: "INSERT INTO counts VALUES (:n)", params: {n: "{{ iteration.item }}"}, transaction: shared}}
  rows: {type: fixed_rows, params: {columns: [id, name], rows: [["{{ iteration.item }}", each]]}}
  load: {type: write_sql, params: {connection: "URL", table: t}}
connections:
  data: rows.main -> load.input
  control: |
    each (iterate) note
    note (ok) rows
"""


def test_each_iteration_is_a_transaction(shop: Database) -> None:
    """Those whose row is there already leave nothing, and the others all they wrote."""
    ran = run_job(EACH.replace("URL", shop.url), shop.folder)
    assert ran.status == "completed", ran.error
    assert [row[0] for row in shop.rows()] == [1, 2, 3, 4, 5, 6]
    assert counts(shop) == [0, 3, 4, 5, 6]


@pytest.mark.parametrize("sharing", [True, False])
def test_who_finds_a_sqlite_file_locked_for_longer_than_sqlite_waits_says_so_and_goes_on_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharing: bool
) -> None:
    """A shared transaction lasts as long as its sub-job, and SQLite lets one write at a time."""
    monkeypatch.setattr(sqlite_tool, "BUSY_S", 0.05)
    shop = Database("sqlite", "sqlite:///shop.db", tmp_path)
    shop.write([{"id": 1, "name": "ada"}], create=True, keys=["id"])
    shop.write([{"n": 0}], create=True, table="counts")
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        release.start()
        ran = run_job(job(shop), tmp_path) if sharing else shop.write([{"id": 5, "name": "x"}, {"id": 6, "name": "y"}])
        release.join()
    if isinstance(ran, Ran):
        assert ran.status == "completed", ran.error
    else:
        assert "the database is locked by another transaction, trying again for 600 s" in ran.said
    assert [row[0] for row in shop.rows()][-2:] == [5, 6]


def test_a_table_may_be_made_by_a_writer_of_the_transaction(shop: Database) -> None:
    text = job(shop).replace("table: t}", "table: t2, create: true, keys: [id]}")
    assert run_job(text, shop.folder).status == "completed"
    assert [row["id"] for row in shop.read("SELECT id FROM t2 ORDER BY id").main] == [5, 6]
    assert (shop.rows(), counts(shop)) == ([], [0, 0])


# ---- before the run

ALONE = """
components:
  empty: {type: run_sql, params: {connection: "sqlite:///a.db", sql: DELETE FROM t, transaction: shared}}
  rows: {type: fixed_rows, params: {columns: [id], rows: [[1]]}}
  load: {type: write_sql, params: {connection: "sqlite:///a.db", table: t}}
connections:
  data: rows.main -> load.input
  control: empty (subjob_ok) rows
"""


def refused(text: str, folder: Path) -> str:
    with pytest.raises(DocumentInvalid) as caught:
        run_job(text, folder)
    return "\n".join(f"{one.code} {one.message} {one.hint}" for one in caught.value.problems)


def test_a_transaction_that_would_span_sub_jobs_is_refused(tmp_path: Path) -> None:
    said = refused(ALONE, tmp_path)
    assert "J0315 UNSHARED_TRANSACTION: `empty` is to share a transaction" in said
    assert "`load` writes to it in another sub-job, which commits by itself" in said


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("connection: 'postgresql://h/d', sql: VACUUM t, transaction: shared", "outside of transactions only"),
        ("connection: 'postgresql://h/d', sql: 'SELECT 1; CREATE DATABASE x'", "outside of transactions only"),
        ("connection: 'postgresql://h/d', sql: CREATE INDEX CONCURRENTLY i ON t (a)", "outside of transactions only"),
        (
            "connection: 'mysql://h/d', sql: 'ALTER TABLE t ADD b INT', transaction: shared",
            "commits by itself in MySQL",
        ),
        ("connection: 'mysql://h/d', sql: DELETE FROM t, transaction: shared, on_error: continue", "transaction: none"),
    ],
)
def test_statements_that_cannot_be_part_of_it_are_refused(params: str, words: str, tmp_path: Path) -> None:
    text = f"""
components:
  one: {{type: run_sql, params: {{{params}}}}}
  two: {{type: run_sql, params: {{connection: 'mysql://h/d', sql: DELETE FROM t, transaction: shared}}}}
  three: {{type: run_sql, params: {{connection: 'postgresql://h/d', sql: DELETE FROM t, transaction: shared}}}}
connections: {{control: "one (ok) two\\ntwo (ok) three"}}
"""
    assert words in refused(text, tmp_path)


def test_commits_in_between_do_not_go_with_it(tmp_path: Path) -> None:
    text = ALONE.replace("(subjob_ok)", "(ok)").replace("table: t}", "table: t, commit_every: 10}")
    assert "committed once, when the sub-job has ended" in refused(text, tmp_path)


def test_the_word_must_stand_in_the_document(postgres: Database) -> None:
    given = {"connection": postgres.url, "sql": "SELECT 1", "transaction": "shared"}
    with pytest.raises(ComponentFailure, match="not as a template"):
        run("run_sql", given, connected=("main",), folder=postgres.folder)


def test_who_uses_the_database_beside_it_is_warned(tmp_path: Path) -> None:
    from penstock.components.registry import ComponentRegistry
    from penstock.dialects.job.compile import compile_text

    text = ALONE.replace("(subjob_ok)", "(ok)").replace(
        "connections:",
        '  look: {type: read_sql, params: {connection: "sqlite:///a.db", table: t}}\n  show: {type: log_rows}\nconnections:',
    )
    text = text.replace("data: rows", "data: |\n    look.main -> show.input\n    rows")
    before = text.replace("control: empty (ok) rows", "control: |\n    look (ok) empty\n    empty (ok) rows")
    after = text.replace("control: empty (ok) rows", "control: |\n    empty (ok) rows\n    load (ok) look")

    def codes(of: str) -> list[str]:
        return [one.code for one in compile_text(of, "job.yaml", ComponentRegistry()).problems if one.code == "J0316"]

    waits = after.replace(
        'read_sql, params: {connection: "sqlite:///a.db", table: t}',
        'wait_for_rows, params: {connection: "sqlite:///a.db", table: t}',
    )
    waits = waits.replace("look.main -> show.input\n    ", "")
    assert (codes(before), codes(after), codes(waits)) == ([], ["J0316"], ["J0316"])


REOPENED = """
job_config: {fail_strategy: continue}
components:
  empty: {type: run_sql, params: {connection: "sqlite:///shop.db", sql: DELETE FROM t, transaction: shared}}
  each: {type: iterate_list, params: {items: [1, 2]}}
  one: {type: read_csv, params: {path: "{{ iteration.item }}.csv"}}
  keep: {type: log_rows}
  note: {type: run_sql, params: {connection: "sqlite:///shop.db", sql: INSERT INTO t VALUES (1), transaction: shared}}
connections:
  data: one.main -> keep.input
  control: |
    empty (ok) each
    each (iterate) one
    each (iterator_complete) note
"""


def test_what_failed_iterations_let_run_again_is_not_taken_for_done(tmp_path: Path) -> None:
    """`resume --failed` reopens a sub-job whose transaction has been committed: nothing more can be part of that."""
    run("run_sql", {"connection": "sqlite:///shop.db", "sql": "CREATE TABLE t (id)"}, connected=(), folder=tmp_path)
    (tmp_path / "1.csv").write_text("a\n1\n")
    assert run_job(REOPENED, tmp_path).status == "completed"
    (tmp_path / "2.csv").write_text("a\n1\n")
    again = resume_job(tmp_path, failed_only=True)
    assert (again.status, again.error["component"], again.error["kind"]) == ("failed", "note", "transaction")
