"""Every job in examples/, through the command line: it is valid, runs, gives what it says, and its replay decides the same."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.examples import EXAMPLES, PROJECT, Desk, Job, desk
from tests.cases import cases
from tests.servers import postgres_server, postgres_url  # noqa: F401

JOBS = sorted(path for path in EXAMPLES.glob("**/*.yaml") if "penstock/v1" in path.read_text(encoding="utf-8"))
FOLDERS = sorted({path.relative_to(EXAMPLES).parts[0] for path in JOBS})


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def asked(query: str, database: Path | str = ":memory:") -> list[tuple[Any, ...]]:
    """The answer of DuckDB, which also reads Parquet."""
    import duckdb

    with duckdb.connect(str(database)) as connection:
        return connection.execute(query).fetchall()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_job_has_no_problem_and_no_warning_and_says_what_it_shows() -> None:
    said = Desk(EXAMPLES, {"PYTHONPATH": str(PROJECT / "src")}).penstock("lint", *map(str, JOBS))
    assert said.exit_code == 0, said.words
    assert said.words.count(": valid") == len(JOBS), said.words
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in JOBS)


@cases("folder", FOLDERS)
def test_a_job_is_described_and_drawn(folder: str) -> None:
    page = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
    picture = f"images/graph-{folder}.svg"
    assert f"(../../docs/{picture})" in page
    assert f"({picture})" in (PROJECT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert (PROJECT / "docs" / picture).read_text(encoding="utf-8").startswith("<svg")


def shows(folder: str, words: str) -> None:
    """The rows that an example's page shows are those that a run prints."""
    page = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\w+ \| .*$", page, re.MULTILINE)
    assert shown
    assert [line for line in shown if line.rstrip() not in [said.rstrip() for said in words.splitlines()]] == []


# ---- daily-orders


def test_daily_orders_are_priced_and_rejects_have_their_reasons(tmp_path: Path) -> None:
    here = desk("daily-orders", tmp_path)
    job = here.job("daily-orders.yaml", "--context", "prod")
    assert set(job.states.values()) == {"OK"}
    assert job.rows_out("orders") == {"main": 13, "reject": 3}
    assert job.rows_out("priced") == {"main": 11, "strangers": 1}
    assert job.globals == {"loaded": 11, "rejected": 4}
    out = here.folder / "out" / "prod"
    assert [(row["line"], row["error_code"]) for row in table(out / "rejects.csv")] == [
        ("6", "bad_value"),
        ("10", "bad_value"),
        ("14", "missing_columns"),
        ("", "NO_MATCH"),
    ]
    countries = asked(f"SELECT country, orders, total::DOUBLE FROM '{out / 'per_country.parquet'}'")
    assert countries == [
        ("Italy", 4, 505.44),
        ("Norway", 3, 371.45),
        ("United Kingdom", 2, 32.7),
        ("France", 2, 29.4),
    ]
    assert asked(f"SELECT count(*), sum(total)::DOUBLE FROM '{out / 'orders.parquet'}'") == [(11, 938.99)]
    shows("daily-orders", job.words)
    assert here.replays()


def test_daily_orders_take_the_sample_unless_told_and_tolerate_more_there(tmp_path: Path) -> None:
    here = desk("daily-orders", tmp_path)
    job = here.job("daily-orders.yaml")
    assert job.globals == {"loaded": 2, "rejected": 2}
    assert job.states["too_many"] == "SKIPPED"
    assert (here.folder / "out" / "dev" / "orders.parquet").exists()
    told = here.penstock("explain", "@last", "too_many").out
    assert "the condition `global.rejected > context.tolerated` of the `if` link from `summary` was not true" in told


def test_daily_orders_can_be_looked_into_before_and_after_the_run(tmp_path: Path) -> None:
    here = desk("daily-orders", tmp_path)
    strangers = here.penstock("preview", "daily-orders.yaml", "priced.strangers", "--context", "prod", "--json").json
    assert [row["raw_line"] for row in strangers["rows"]] == ["order 1008 of customer 107"]
    assert not (here.folder / "out").exists(), "looking writes nothing"
    sources = here.penstock("lineage", "daily-orders.yaml", "write_countries.total", "--json").json["columns"][0][
        "sources"
    ]
    assert [(one["component"], one["column"]) for one in sources] == [
        ("customers", "segment"),
        ("orders", "quantity"),
        ("orders", "price"),
    ]


# ---- scd-customers

DIMENSION = [
    (101, "Ada Lovelace", "London", "2026-03-01", "2026-04-01"),
    (101, "Ada Lovelace", "Bath", "2026-04-01", None),
    (102, "Bakery Rossi", "Roma", "2026-03-01", None),
    (103, "Céline Dubois", "Lyon", "2026-03-01", None),
    (104, "Dahl & Sønn", "Oslo", "2026-03-01", "2026-04-01"),
    (104, "Dahl & Sønn", "Bergen", "2026-04-01", None),
    (105, "Erik Berg", "Oslo", "2026-04-01", None),
]
READ = (
    "SELECT customer_id, name, city, CAST(valid_from AS VARCHAR), CAST(valid_to AS VARCHAR) "
    "FROM dim_customer ORDER BY customer_id, valid_from"
)


def load_history(here: Desk, *words: str) -> None:
    """Two loads, and the second one again, which shows the same."""
    first = here.job("scd-customers.yaml", *words)
    assert first.globals == {"added": 4, "changed": 0}
    second = here.job("scd-customers.yaml", "--set", "day=2026-04-01", *words)
    assert second.rows_out("history") == {"insert": 3, "update": 3}
    assert second.globals == {"added": 3, "changed": 3}
    again = here.job("scd-customers.yaml", "--set", "day=2026-04-01", *words)
    assert again.globals == {"added": 0, "changed": 0}
    assert set(again.subjobs.values()) == {"OK"}
    shows("scd-customers", again.words)
    assert here.replays()


def test_customers_keep_their_history_in_a_file_of_duckdb(tmp_path: Path) -> None:
    here = desk("scd-customers", tmp_path)
    load_history(here)
    assert asked(READ, here.folder / "warehouse.duckdb") == DIMENSION


def test_customers_keep_their_history_in_postgresql(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    import psycopg

    load_history(desk("scd-customers", tmp_path), "--set", f"database={postgres_url}")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(READ).fetchall() == DIMENSION


# ---- file-drop


@pytest.mark.clause("J12.5")
def test_dropped_files_are_loaded_or_set_aside_one_by_one(tmp_path: Path) -> None:
    here = desk("file-drop", tmp_path)
    job = here.job("file-drop.yaml")
    assert job.view["status"] == "completed"
    assert job.view["result"] == {"iterations": 4, "failed_iterations": 2}
    reads = {name: state for name, state in job.states.items() if name.endswith(".read")}
    assert reads == {
        "each_file[#0].read": "OK",
        "each_file[#1].read": "ERROR",
        "each_file[#2].read": "ERROR",
        "each_file[#3].read": "OK",
    }
    assert job.fired("each_file", "iteration_error", "set_aside") == 2
    assert job.fired("each_file", "iterator_complete", "pack") == 1
    assert job.globals == {"loaded": ["2026-03-01-oslo.csv", "2026-03-02-oslo.csv"]}
    assert here.replays()


def test_dropped_files_end_in_the_archive_or_beside_their_reason(tmp_path: Path) -> None:
    here = desk("file-drop", tmp_path)
    shows("file-drop", here.job("file-drop.yaml").words)
    out = here.folder / "out"
    assert list((out / "drop").iterdir()) == []
    with zipfile.ZipFile(out / "archive" / "sales.zip") as archive:
        assert sorted(archive.namelist()) == ["2026-03-01-oslo.csv", "2026-03-02-oslo.csv"]
    assert (
        "line 3, column `sold_on`: `1st of March` is not a DATE"
        in lines(out / "aside" / "2026-03-01-rome.reason.txt")[0]
    )
    assert "has no column `sold_on`" in lines(out / "aside" / "2026-03-02-lyon.reason.txt")[0]
    sales = asked("SELECT sale_id, amount::DOUBLE FROM sales ORDER BY sale_id", out / "sales.duckdb")
    assert sales == [(1, 120.0), (2, 45.5), (3, 19.9), (7, 64.5)], "sale 3 was corrected by the later file"


# ---- fork-join


@pytest.mark.clause("J4.2")
def test_branches_run_side_by_side_and_are_joined_with_rows_and_globals(tmp_path: Path) -> None:
    here = desk("fork-join", tmp_path)
    job = here.job("fork-join.yaml")
    assert job.subjobs == {
        "begin": "OK",
        "sales": "OK",
        "stock": "OK",
        "visits": "OK",
        "report": "OK",
        "no_report": "SKIPPED",
    }
    assert job.rows_in("report") == {"sales": 3, "stock": 3, "visits": 3}
    assert job.globals == {
        "day": "2026-03-02",
        "last_branch": "visits",
        "rows_read": 17,
        "sales_rows": 7,
        "stock_rows": 5,
        "visits_rows": 5,
    }
    report = table(here.folder / "out" / "report.csv")
    assert [(row["shop"], row["revenue"], row["visitors"]) for row in report] == [
        ("rome", "173.00", "32"),
        ("lyon", "63.95", "8"),
        ("oslo", "36.60", "31"),
    ]
    shows("fork-join", job.words)
    assert here.replays()


@pytest.mark.clause("J4.3")
def test_a_branch_that_fails_leaves_the_others_alone_and_the_join_unrun(tmp_path: Path) -> None:
    here = desk("fork-join", tmp_path)
    job = here.job("fork-join.yaml", "--set", "visits=nowhere.csv")
    assert (job.subjobs["visits"], job.subjobs["sales"], job.subjobs["stock"]) == ("ERROR", "OK", "OK")
    assert (job.states["report"], job.states["no_report"]) == ("SKIPPED", "OK")
    assert not (here.folder / "out").exists()


# ---- joblets


@pytest.mark.clause("J5.4")
def test_one_joblet_cleans_two_lists_and_its_globals_carry_the_callers_name(tmp_path: Path) -> None:
    here = desk("joblets", tmp_path)
    job = here.job("joblets.yaml")
    assert job.rows_out("clean_customers") == {"bad": 1, "clean": 3}
    assert job.rows_out("clean_suppliers.__country.__found") == {"main": 2, "reject": 1}
    assert job.globals == {
        "clean_customers.__count__bad": 1,
        "clean_customers.__country.__count__guessed": 1,
        "clean_suppliers.__count__bad": 1,
        "clean_suppliers.__country.__count__guessed": 1,
        "bad": 2,
        "guessed": 2,
    }
    assert [(row["street"], row["country"]) for row in table(here.folder / "out" / "customers.csv")] == [
        ("12 St James's Square", "GB"),
        ("1 Paddington Rd", "GB"),
        ("Storgata 7", "NO"),
    ]
    assert {row["country"] for row in table(here.folder / "out" / "suppliers.csv")} == {"DE"}
    shows("joblets", job.words)
    assert here.replays()


# ---- rest-to-warehouse


@pytest.mark.parametrize("database", ["duckdb:///warehouse.duckdb", "sqlite:///warehouse.db"])
def test_an_api_is_read_page_by_page_and_upserted(tmp_path: Path, api: Any, database: str) -> None:
    here = desk("rest-to-warehouse", tmp_path)
    words = ("--set", f"api_url={api.url}", "--set", f"warehouse={database}")
    job = here.job("rest-to-warehouse.yaml", *words)
    assert set(job.states.values()) == {"OK"}
    assert (job.rows_out("orders"), job.rows_out("customers")) == ({"main": 60}, {"main": 4})
    assert (api.calls["/orders"], api.calls["/customers"]) == (3, 3), "three pages; busy twice"
    report = json.loads((here.folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert [(row["city"], row["orders"], row["total"]) for row in report] == [
        ("Lyon", 15, 875.5),
        ("Oslo", 15, 867.0),
        ("Rome", 15, 828.25),
        ("Bonn", 15, 821.75),
    ]
    assert here.replays()
    again = here.job("rest-to-warehouse.yaml", *words)
    assert again.rows_out("report") == {"main": 4}
    assert json.loads((here.folder / "out" / "report.json").read_text(encoding="utf-8")) == report


def test_an_api_that_is_away_leaves_the_warehouse_alone(tmp_path: Path, api: Any) -> None:
    here = desk("rest-to-warehouse", tmp_path)
    loaded = here.job("rest-to-warehouse.yaml", "--set", f"api_url={api.url}")
    shows("rest-to-warehouse", loaded.words.replace(api.url, "http://127.0.0.1:8765"))
    job = here.job("rest-to-warehouse.yaml", "--set", f"api_url={api.url}/nowhere", exit_code=1)
    assert (job.subjobs["orders"], job.states["report"]) == ("ERROR", "SKIPPED")
    assert asked("SELECT count(*) FROM orders", here.folder / "warehouse.duckdb") == [(60,)]


# ---- many-formats


def test_four_kinds_of_files_are_loaded_and_rejects_have_their_reasons(tmp_path: Path) -> None:
    here = desk("many-formats", tmp_path)
    job = here.job("many-formats.yaml", "--context", "dev")
    shows("many-formats", job.words)
    assert job.globals == {"rejected": 7, "read": 13}
    assert [tuple(row.values()) for row in table(here.folder / "out" / "revenue.csv")] == [
        ("CU", "1", "5.00"),
        ("GB", "1", "19.90"),
        ("US", "1", "73.50"),
    ]
    database = here.folder / "warehouse.duckdb"
    assert asked("SELECT name, since::VARCHAR FROM customers ORDER BY id", database) == [
        ('Ada "the Countess" Lovelace', "2024-01-31"),
        ("José\nMartí", "2023-12-31"),
        ("Smith, John", "2024-03-01"),
    ]
    assert asked("SELECT stage, count(*) FROM rejects GROUP BY 1 ORDER BY 1", database) == [
        ("checks", 2),
        ("customers", 2),
        ("orders", 2),
        ("strangers", 1),
    ]
    assert here.replays()


def test_more_rejects_than_are_tolerated_publish_nothing(tmp_path: Path) -> None:
    here = desk("many-formats", tmp_path)
    job = here.job("many-formats.yaml", exit_code=3)
    assert (job.states["too_many"], job.states["revenue"], job.states["publish"]) == ("ERROR", "SKIPPED", "SKIPPED")
    assert not (here.folder / "out" / "revenue.csv").exists()
    assert len(table(here.folder / "out" / "rejects.csv")) == 7


# ---- repair


def test_the_job_to_repair_fails_at_its_check_and_completes_once_that_is_repaired(tmp_path: Path) -> None:
    here = desk("repair", tmp_path)
    job = here.job("repair.yaml", exit_code=1)
    assert (job.view["status"], job.view["error"]["component"]) == ("failed", "plausible")
    assert "`amount` is not between 0 and 500: 1 of 5 rows, such as `1840.0`" in job.view["error"]["message"]
    assert (job.states["per_customer"], job.states["report"]) == ("SKIPPED", "SKIPPED")
    file = here.folder / "repair.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("[0, 500]", "[0, 5000]"), encoding="utf-8")
    job = here.job("repair.yaml")
    assert job.globals == {"customers": 4}
    paid = {row["customer"]: float(row["paid"]) for row in table(here.folder / "out" / "paid.csv")}
    assert paid == {"Ada": 165.9, "Bob": 12.0, "Cyd": 310.0, "Dan": 1840.0}
    assert here.replays()


# ---- quality-gate


def test_a_good_delivery_passes_the_gate(tmp_path: Path) -> None:
    here = desk("quality-gate", tmp_path)
    job = here.job("quality-gate.yaml")
    assert job.globals == {"published": 5, "refused": 2}
    assert job.subjobs == {"readings": "OK", "published": "OK", "alert": "SKIPPED"}
    refused = table(here.folder / "out" / "refused.csv")
    assert [(row["sensor"], row["error_code"]) for row in refused] == [("OS-002", "type"), ("rm-2", "pattern")]
    assert asked(f"SELECT count(*) FROM '{here.folder / 'out' / 'readings.parquet'}'") == [(5,)]
    assert here.replays()


def test_a_broken_delivery_is_stopped_told_of_and_ends_with_a_code_of_its_own(tmp_path: Path) -> None:
    here = desk("quality-gate", tmp_path)
    job = here.job("quality-gate.yaml", "--set", "delivery=broken.csv", exit_code=3)
    assert (job.view["status"], job.view["error"]["kind"], job.view["error"]["component"]) == ("failed", "die", "stop")
    assert (job.states["gate"], job.states["publish"], job.states["published"]) == ("ERROR", "SKIPPED", "SKIPPED")
    assert job.fired("gate", "subjob_error", "alert") == 1
    out = here.folder / "out"
    assert not (out / "readings.parquet").exists()
    (alert,) = json.loads((out / "alert.json").read_text(encoding="utf-8"))
    assert alert["component"] == "gate"
    assert (
        "3 checks failed: one reading per sensor and time: `sensor`, `measured_at` occurred before" in alert["message"]
    )


# ---- recovery


@pytest.mark.clause("J7.2")
@pytest.mark.clause("J12.6")
def test_a_resume_sends_only_the_invoices_that_were_not_sent(tmp_path: Path) -> None:
    here = desk("recovery", tmp_path)
    failed = here.job("recovery.yaml", "--set", "bank=closed", exit_code=5)
    assert (failed.states["fetch_prices"], failed.states["use_yesterdays"]) == ("ERROR", "OK")
    assert failed.subjobs["fetch_prices"] == "OK", "its error was handled on the spot"
    assert (failed.subjobs["invoices"], failed.subjobs["give_up"]) == ("ERROR", "ERROR")
    assert failed.fired("each_invoice", "subjob_error", "give_up") == 1
    problems = table(here.folder / "out" / "problems.csv")
    assert [row["component"] for row in problems] == [
        "fetch_prices",
        "each_invoice",
        "each_invoice[#2].send",
        "give_up",
    ]
    sent = ["invoices written", "sent invoice 1 over 32.4", "sent invoice 2 over 128"]
    assert lines(here.folder / "out" / "journal.txt") == sent

    (here.folder / "bank-is-open").touch()
    said = here.penstock("resume", "@last", "--json")
    assert said.exit_code == 0, said.out + said.words
    resumed = Job(said.json)
    assert (resumed.view["status"], resumed.states["give_up"]) == ("completed", "SKIPPED")
    assert "write_invoices" in resumed.kept()
    assert "each_invoice" not in resumed.kept()
    rest = ["sent invoice 3 over 181.25", "sent invoice 4 over 42.3", "the day is closed"]
    assert lines(here.folder / "out" / "journal.txt") == [*sent, *rest]
    assert here.replays()


def test_a_bank_that_answers_gets_all_invoices_at_once(tmp_path: Path) -> None:
    here = desk("recovery", tmp_path)
    job = here.job("recovery.yaml")
    assert job.view["result"] == {"iterations": 4, "failed_iterations": 0}
    assert lines(here.folder / "out" / "journal.txt")[-1] == "the day is closed"


# ---- bridges


def test_a_playbook_runs_a_job_that_runs_a_playbook_in_one_execution(tmp_path: Path, api: Any) -> None:
    here = desk("bridges", tmp_path)
    assert here.run("bridges.yaml", "--set", f"api_url={api.url}") == [
        {"month": "2026-01", "turnover": 960.4, "invoices": 4, "best": "cyd"},
        {"month": "2026-02", "turnover": 575.0, "invoices": 3, "best": "ada"},
    ]
    assert api.calls["/rates"] == 3, "two months, and busy once"
    assert len(here.events("job.completed")) == 2
    assert len(here.events("playbook.completed")) == 3
    assert len(json.loads(here.penstock("runs", "--json").out)["runs"]) == 1
    told = here.penstock("explain", "@last", "each_month@0[1]/turnover#1/in_euros").out
    assert told.startswith("`in_euros` (join) ended OK")


def test_the_job_of_the_bridges_runs_by_itself(tmp_path: Path, api: Any) -> None:
    here = desk("bridges", tmp_path)
    job = here.job("invoices.yaml", "--set", f"api_url={api.url}", "--set", "month=2026-02")
    assert job.rows_out("rates") == {"main": 3}
    assert job.globals == {"turnover": 575.0}
    shows("bridges", job.words)


# ---- scale


@pytest.mark.clause("J10.1")
def test_a_million_rows_go_through_little_memory(tmp_path: Path) -> None:
    here = desk("scale", tmp_path)
    job = here.job("scale.yaml")
    assert (job.rows_in("classed"), job.rows_out("classed")) == ({"input": 997_983}, {"main": 997_983})
    made = here.folder / "out" / "readings.parquet"
    assert asked(f"SELECT size, count(*) FROM '{made}' GROUP BY size ORDER BY size") == [
        ("large", 399_484),
        ("medium", 500_256),
        ("small", 98_243),
    ]
    out_of_order = f"SELECT count(*) FROM (SELECT litres > lag(litres) OVER () AS rises FROM '{made}') WHERE rises"
    assert asked(out_of_order) == [(0,)]
    shows("scale", job.words)
    assert here.replays()


def test_incremental(tmp_path: Path) -> None:
    here = desk("incremental", tmp_path)
    first = here.job("incremental.yaml")
    assert first.rows_out("orders") == {"main": 3}
    shows("incremental", first.words)
    assert here.replays()
    assert here.job("incremental.yaml").rows_out("orders") == {"main": 0}
    with (here.folder / "orders.csv").open("a", encoding="utf-8") as file:
        file.write("2,Bob,7.50,2026-03-03T10:00:00\n")
    assert here.job("incremental.yaml").rows_out("orders") == {"main": 1}
    assert here.replays()
    import sqlite3

    with sqlite3.connect(here.folder / "warehouse.db") as database:
        rows = database.execute("SELECT id, amount FROM orders ORDER BY id").fetchall()
    assert [(number, float(amount)) for number, amount in rows] == [(1, 12.5), (2, 7.5), (3, 19.9)]
    (kept,) = here.penstock("state", "show", "incremental.yaml", "--json").json["state"]
    assert (kept["kind"], kept["key"], kept["value"]) == ("watermark", "orders", "2026-03-03T10:00:00.000000")
    here.penstock("state", "set", "incremental.yaml", "orders", "2026-03-01T12:00:00", "--watermark")
    assert here.job("incremental.yaml").rows_out("orders") == {"main": 2}
    assert here.penstock("state", "rm", "incremental.yaml").exit_code == 0
    assert here.penstock("state", "rm", "incremental.yaml").exit_code == 2
    assert here.job("incremental.yaml").rows_out("orders") == {"main": 4}
