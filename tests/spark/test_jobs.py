"""Jobs whose rows are on Spark: chosen in the document, handed over to other engines, and what happens when Spark is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import penstock
from penstock.components.registry import ComponentRegistry
from penstock.data.spark.server import LocalSpark
from penstock.dialects.job.compile import compile_text
from penstock.ports.rows import RowsFailed

REGISTRY = ComponentRegistry(with_lineage=False)
JOB = """
job_config: {{ engine: "{{{{ context.engine }}}}" }}
context: {{ engine: {{ kind: spark, remote: "{spark}", conf: {{ spark.sql.shuffle.partitions: 2 }} }} }}
components:
  - {{ name: orders, type: read_parquet, params: {{ path: orders.parquet }} }}
  - {{ name: shops, type: read_csv, params: {{ path: shops.csv }} }}
  - {{ name: paid, type: filter, params: {{ where: amount > 10 }} }}
  - {{ name: named, type: join, params: {{ on: [shop], how: inner }} }}
  - {{ name: totals, type: aggregate, params: {{ by: [city], measures: {{ total: sum(amount), orders: count(*) }} }} }}
  - {{ name: out, type: write_parquet, params: {{ path: out.parquet }} }}
connections:
  data: |
    orders.main -> paid.input
    paid.main -> named.main
    shops.main -> named.lookup
    named.main -> totals.input
    totals.main -> out.input
"""


def problems(text: str) -> list[str]:
    return [f"{one.code} {one.message}" for one in compile_text(text, "job.yaml", REGISTRY).problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(
        "COPY (SELECT i AS id, i % 5 AS shop, CAST(i AS DECIMAL(10,2)) AS amount FROM range(1000) t(i)) "
        f"TO '{tmp_path}/orders.parquet'"
    )
    (tmp_path / "shops.csv").write_text("shop,city\n" + "".join(f"{one},City {one % 2}\n" for one in range(4)))
    return tmp_path


def run(folder: Path, text: str, **more: Any) -> Any:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return penstock.run(path, home=folder / ".penstock", **more)


def written(folder: Path, name: str = "out.parquet") -> list[tuple[Any, ...]]:
    return sorted(
        duckdb.sql(f"FROM read_parquet('{folder}/{name}{'/*.parquet' if (folder / name).is_dir() else ''}')").fetchall()
    )


def rows_out(run: Any) -> dict[str, dict[str, int]]:
    ends = [event for event in run.events() if event["event_type"] == "component.ok"]
    return {end["scope"]: {port: one["rows"] for port, one in end["payload"]["outputs"].items()} for end in ends}


def test_the_engine_is_chosen_by_the_context_and_nothing_else_changes(folder: Path, spark: str) -> None:
    there = run(folder, JOB.format(spark=spark))
    assert there.status == "completed", there.error
    found, counts = written(folder), rows_out(there)
    assert (folder / "out.parquet").is_dir()
    here = run(folder, JOB.format(spark=spark), inputs={"engine": "duckdb"})
    assert here.status == "completed", here.error
    assert (folder / "out.parquet").is_file()
    assert written(folder) == found
    assert len(found) == 2
    assert rows_out(here) == counts
    assert counts["orders"] == {"main": 1000}
    assert counts["paid"] == {"main": 989}


CROSSING = """
metadata: {{ name: crossing }}
components:
  - {{ name: rows, type: fixed_rows, params: {{ columns: [id, name], rows: [[1, a], [2, b], [3, null]] }} }}
  - {{ name: there, type: "@twice", engine: {{ kind: spark, remote: "{spark}" }} }}
  - {{ name: code, type: python, params: {{ mode: row, code: "row['id'] += 1" }} }}
  - {{ name: out, type: write_csv, params: {{ path: out.csv }} }}
connections: {{ data: "rows -> there.rows\\nthere.made -> code\\ncode.main -> out" }}
"""
TWICE = """
kind: Joblet
metadata: { name: twice }
components:
  - { name: double, type: derive, params: { columns: { id: id * 2 } } }
inputs: { rows: double.input }
outputs: { made: double.main }
"""


def test_rows_cross_between_engines(folder: Path, spark: str) -> None:
    (folder / "twice.yaml").write_text(TWICE, encoding="utf-8")
    done = run(folder, CROSSING.format(spark=spark))
    assert done.status == "completed", done.error
    assert (folder / "out.csv").read_text().splitlines()[1:] == ["3,a", "5,b", "7,"]


def test_two_engines_in_one_sub_job_are_refused() -> None:
    text = CROSSING.format(spark="sc://a:1").replace('"@twice"', "noop_rows").replace("noop_rows", "filter")
    text = (
        text.replace("params: {{", "params: {").replace("there.rows", "there.input").replace("there.made", "there.main")
    )
    both = text.replace("type: python,", "type: python, engine: duckdb,")
    assert any(one.startswith("J0317") and "`there` and `code`" in one for one in problems(both))


@pytest.fixture
def own_spark() -> Iterator[LocalSpark]:
    """One that a test may kill."""
    server = LocalSpark("local[1]", {"spark.driver.memory": "512m"})
    yield server
    server.stop()


def test_a_spark_that_is_killed_fails_the_job_and_a_resume_goes_on(folder: Path, own_spark: LocalSpark) -> None:
    text = JOB.format(spark=own_spark.remote) + "  control: out (subjob_ok) again\n"
    text = text.replace(
        "connections:",
        "  - {{ name: again, type: read_parquet, params: {{ path: out.parquet }} }}\n".format()
        + "  - { name: seen, type: write_csv, params: { path: seen.csv } }\nconnections:",
        1,
    )
    text = text.replace(
        "    totals.main -> out.input\n", "    totals.main -> out.input\n    again.main -> seen.input\n"
    )
    first = run(folder, text)
    assert first.status == "completed", first.error
    os.kill(own_spark.pid, signal.SIGKILL)
    lost = run(folder, text)
    assert lost.status == "failed"
    assert lost.error["kind"] == "connection"
    assert lost.error["retryable"] is True
    assert "Spark was lost" in lost.error["message"]
    once_more = LocalSpark("local[1]", {"spark.driver.memory": "512m"}, port=own_spark.port)
    try:
        done = penstock.resume(lost)
        assert done.status == "completed", done.error
    finally:
        once_more.stop()
    assert len(written(folder)) == 2


def test_a_failure_is_that_of_the_component_it_is_in(folder: Path, spark: str) -> None:
    text = JOB.format(spark=spark).replace("where: amount > 10", "where: CAST(shop || 'x' AS INTEGER) > 1")
    done = run(folder, text)
    assert done.status == "failed"
    assert done.error["component"] == "paid"
    assert done.error["kind"] == "conversion"
    assert not (folder / "out.parquet").exists()


def test_a_job_on_duckdb_loads_nothing_of_spark(folder: Path) -> None:
    import subprocess
    import sys

    (folder / "job.yaml").write_text(JOB.format(spark="sc://a:1"), encoding="utf-8")
    code = (
        "import sys, penstock; print(penstock.run('job.yaml', {'engine': 'duckdb'}).status, 'pyspark' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["completed", "False"], ran.stderr


def test_a_machine_without_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RowsFailed, match="apt install openjdk-17-jre-headless"):
        LocalSpark("local[1]")
