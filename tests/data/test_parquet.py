"""Rows that cross a scope lie in Parquet and come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.data.statements import portable
from penstock.ports.rows import RowsFailed

EVERY_TYPE = """
    SELECT true AS bool, 1::TINYINT AS i8, 170141183460469231731687303715884105727::HUGEINT AS huge, 1::UBIGINT AS u64,
        1.5::FLOAT AS f4, 2.5::DOUBLE AS f8, 1.25::DECIMAL(30,10) AS dec, 'é''"' AS txt, '\\xFF'::BLOB AS blob, DATE '2024-02-29' AS d,
        TIME '12:34:56.789' AS t, TIMESTAMP '2024-01-01 00:00:00.123456' AS ts, TIMESTAMPTZ '2024-01-01 00:00:00+02' AS tz,
        '2024-01-01'::TIMESTAMP_S AS tss, '2024-01-01 00:00:00.123456789'::TIMESTAMP_NS AS tsn,
        INTERVAL '1 month 2 days 3 seconds' AS iv, '00000000-0000-0000-0000-000000000007'::UUID AS id, '{"a": 1}'::JSON AS js,
        '101'::BIT AS bits, 'a'::ENUM('a', 'HUGEINT') AS en, [1, NULL] AS li, {'x': 1::HUGEINT, 'HUGEINT': 2} AS st,
        MAP {'k': 1::HUGEINT} AS mp, NULL AS nothing
    UNION ALL BY NAME SELECT NULL AS bool
"""


def test_every_type_comes_back_as_it_was(engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path) -> None:
    one = session.select(EVERY_TYPE, {})
    path = tmp_path / "rows [1].parquet"
    engine.export(one, path)
    again = engine.attach(path, one.schema, one.rows, one.hash)
    assert session.describe("SELECT * FROM input", {"input": again}) == one.schema
    assert session.select("SELECT * FROM input", {"input": again}).hash == one.hash
    assert (again.spilled, again.bytes) == (True, path.stat().st_size)


def test_only_types_are_replaced_and_never_names() -> None:
    assert portable('STRUCT(a HUGEINT, "HUGEINT" BIGINT)[]') == 'STRUCT(a VARCHAR, "HUGEINT" BIGINT)[]'
    assert portable("ENUM('HUGEINT')") == "ENUM('HUGEINT')"


def test_rows_keep_their_order_in_the_file(engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path) -> None:
    one = session.select("SELECT range AS i FROM range(200000) ORDER BY hash(range)", {})
    engine.export(one, tmp_path / "rows.parquet")
    again = engine.attach(tmp_path / "rows.parquet", one.schema, one.rows, one.hash)
    read = [row for batch in session.rows("SELECT * FROM t", {"t": again}) for row in batch]
    assert read == [row for batch in session.rows("SELECT * FROM t", {"t": one}) for row in batch]


def test_another_run_reads_what_one_has_exported(session: DuckDbSession, engine: DuckDbEngine, tmp_path: Path) -> None:
    one = session.select("SELECT sum(range) AS total FROM range(10)", {})
    engine.export(one, tmp_path / "rows.parquet")
    other = DuckDbEngine(tmp_path / "other")
    again = other.attach(tmp_path / "rows.parquet", one.schema, one.rows, one.hash)
    assert list(other.session().rows("SELECT * FROM t", {"t": again})) == [[(45,)]]
    other.close()
    assert (tmp_path / "rows.parquet").exists()


def test_spilled_rows_are_on_disk_and_no_longer_in_memory(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path / "run")
    session = engine.session()
    one = session.select("SELECT range AS i, md5(range::VARCHAR) AS s FROM range(50000)", {})
    spilled = engine.spill(one)
    assert (spilled.schema, spilled.rows, spilled.hash, spilled.spilled) == (one.schema, one.rows, one.hash, True)
    assert list(session.rows("SELECT table_name FROM duckdb_tables()", {})) == []
    assert list(session.rows("SELECT count(*), max(i) FROM t", {"t": spilled})) == [[(50000, 49999)]]
    assert engine.spill(spilled) is spilled
    files = list((tmp_path / "run" / "spill").iterdir())
    assert len(files) == 1
    engine.drop(spilled)
    assert not files[0].exists()
    engine.close()


def test_a_file_that_is_gone_is_said_to_be(engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path) -> None:
    one = session.select("SELECT 1 AS a", {})
    with pytest.raises(RowsFailed, match="there is no file") as raised:
        engine.attach(tmp_path / "no.parquet", one.schema, 1, "")
    assert raised.value.kind == "missing_file"
    with pytest.raises(RowsFailed, match="there is no folder"):
        engine.export(one, tmp_path / "no" / "rows.parquet")
