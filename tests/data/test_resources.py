"""A job may be larger than its memory; when memory or disk really end, that is said, and the engine goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbEngine
from penstock.ports.rows import Copy, RowsFailed, Stage

# About 130 bytes a row that do not compress: 130 MB in a million.
WIDE = """
    SELECT range AS id, md5(range::VARCHAR) AS a, md5((range + 1)::VARCHAR) AS b, md5((range * 7)::VARCHAR) AS c, random() AS r
    FROM range({})
"""


@pytest.mark.clause("J10.1")
def test_a_job_four_times_larger_than_its_memory_limit_completes(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path, memory_limit="12MB")
    session = engine.session()
    rows = session.select(WIDE.format(400_000), {})
    stages = [
        Stage("filter", {"main": "SELECT * FROM input WHERE id % 8 <> 0"}, {"input": rows}),
        Stage(
            "group",
            {"main": "SELECT left(a, 3) AS a, max(b) AS b, count(*) AS n FROM input GROUP BY ALL"},
            {"input": ("filter", "main")},
        ),
        Stage("write", {}, {"input": ("group", "main")}, copy=Copy(tmp_path / "out.parquet", "parquet")),
    ]
    counted = {name: dict(staged.rows) for name, staged in session.fuse(stages).items()}
    assert counted == {"filter": {"main": 350_000}, "group": {"main": 4096}, "write": {"": 4096}}
    used = list(session.rows("SELECT sum(size) FROM duckdb_temporary_files()", {}))
    assert used[0][0][0] > 24_000_000
    engine.close()
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.clause("J10.1")
def test_a_group_that_needs_too_much_at_once_is_run_stage_by_stage(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path, memory_limit="24MB", threads=2)
    session = engine.session()
    rows = session.select(WIDE.format(150_000), {})
    # The writer collects rows of all columns, and the join holds one side, at the same time.
    stages = [
        Stage("join", {"main": "SELECT i.*, o.* EXCLUDE (id) FROM i JOIN o USING (id)"}, {"i": rows, "o": rows}),
        Stage("write", {}, {"input": ("join", "main")}, copy=Copy(tmp_path / "out.parquet", "parquet")),
    ]
    assert session.fuse(stages)["write"].rows == {"": 150_000}
    assert session.copy("SELECT * FROM t", {"t": rows}, Copy(tmp_path / "all.parquet", "parquet")) == 150_000
    engine.close()


@pytest.mark.clause("J8.3")
def test_memory_that_ends_fails_the_query_and_not_the_engine(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path, memory_limit="16MB")
    session = engine.session()
    # One value must fit into memory whole, so there is nothing to spill.
    with pytest.raises(RowsFailed) as raised:
        session.select("SELECT list(md5(range::VARCHAR)) AS everything FROM range(2000000)", {})
    assert raised.value.kind == "memory"
    assert raised.value.message.startswith("not enough memory: ")
    assert raised.value.message.endswith("raise `memory_limit` or do less at once")
    assert session.select("SELECT 1 AS a", {}).rows == 1
    engine.close()


@pytest.mark.clause("J8.3")
def test_a_disk_that_is_full_while_spilling_fails_the_query_and_not_the_engine(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path, memory_limit="16MB", max_spill="4MB")
    session = engine.session()
    with pytest.raises(RowsFailed) as raised:
        session.select(WIDE.format(500_000), {})
    assert raised.value.kind == "disk"
    assert raised.value.message.startswith("the disk is full: ")
    assert session.select("SELECT 1 AS a", {}).rows == 1
    engine.close()


@pytest.mark.clause("J8.3")
def test_a_disk_that_is_full_while_writing_is_told_apart_from_other_failures(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    with pytest.raises(RowsFailed) as raised:
        engine.session().copy("SELECT range AS i FROM range(100000)", {}, Copy(Path("/dev/full"), "csv"))
    assert raised.value.kind == "disk"
    assert "No space left on device" in raised.value.message
    engine.close()
