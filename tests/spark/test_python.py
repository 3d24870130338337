"""`python` on Spark: its code runs on the workers, and makes the rows that it makes here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import penstock
from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_text
from tests.cases import cases

REGISTRY = ComponentRegistry(with_lineage=False)
TYPES = {
    "id": "BIGINT", "price": "DECIMAL(10,2)", "x": "DOUBLE", "name": "VARCHAR", "d": "DATE", "t": "TIMESTAMP",
    "z": "TIMESTAMP WITH TIME ZONE", "ok": "BOOLEAN", "tags": "VARCHAR[]", "s": "STRUCT(a INTEGER, b VARCHAR)",
    "m": "MAP(VARCHAR, INTEGER)", "huge": "HUGEINT", "u": "UUID", "b": "BLOB", "hour": "TIME",
}  # fmt: skip
VALUES = [
    "1, 10.25, 1.5, 'Anna', '2024-01-31', '2024-01-31 12:30:15.5', '2024-01-31 12:00:00+01', true, ['a', NULL], {a: 1, b: 'x'},"
    " MAP {'k': 1}, 170141183460469231731687303715884105, '8f14e45f-ceea-4c7a-9b1d-000000000001', '\\x01'::BLOB, '07:30:00'",
    ", ".join(["2", *["NULL"] * 14]),
    "3, 0.00, 0.5, 'ärger', '1999-12-31', '1999-01-01', '1999-01-01 00:00:00+00', false, [], {a: NULL, b: NULL}, MAP {}, -1,"
    " NULL, '', '00:00:00.25'",
]
JOB = """
job_config: {{ engine: "{{{{ context.engine }}}}" }}
context: {{ engine: {{ kind: spark, remote: "{spark}", conf: {{ spark.sql.shuffle.partitions: 2 }} }}, factor: 3 }}
components:
  - {{ name: rows, type: read_parquet, params: {{ path: rows.parquet }} }}
  - {{ name: typed, type: derive, params: {{ columns: {{ huge: CAST(huge AS HUGEINT), u: CAST(u AS UUID), hour: CAST(hour AS TIME) }} }} }}
  - name: code
    type: python
    params: {params}
  - {{ name: out, type: write_parquet, params: {{ path: out.parquet }} }}
connections: {{ data: "rows.main -> typed.input\\ntyped.main -> code.input\\ncode.main -> out.input" }}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Parquet has no type of its own for the last, or one that Spark does not read.
    types = TYPES | dict.fromkeys(("huge", "u", "hour"), "VARCHAR")
    typed = ", ".join(f"CAST({name} AS {type}) AS {name}" for name, type in types.items())
    rows = ", ".join(f"({one})" for one in VALUES)
    duckdb.sql(f"COPY (SELECT {typed} FROM (VALUES {rows}) AS t({', '.join(TYPES)})) TO '{tmp_path}/rows.parquet'")
    return tmp_path


def run(folder: Path, spark: str, params: dict[str, Any], **inputs: Any) -> Any:
    (folder / "job.yaml").write_text(JOB.format(spark=spark, params=json.dumps(params)), encoding="utf-8")
    return penstock.run(folder / "job.yaml", home=folder / ".penstock", inputs=inputs)


def written(folder: Path) -> list[str]:
    found = folder / "out.parquet"
    path = found / "*.parquet" if found.is_dir() else found
    return sorted(map(repr, duckdb.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet('{path}')").fetchall()))


SHOWN = dict.fromkeys(TYPES, "VARCHAR")
CODES: dict[str, dict[str, Any]] = {
    "what the code sees": {
        "mode": "row",
        "code": "output = {name: None if value is None else f'{type(value).__name__} {value!r}' for name, value in row.items()}",
        "output_schema": SHOWN,
    },
    "rows passed on with a change": {
        "mode": "row",
        "code": "import math\nif row['price'] is not None:\n    row['price'] = row['price'] * context['factor']",
        "output_schema": {name: type for name, type in TYPES.items() if name not in ("huge", "u", "hour")},
    },
    "one, several and none": {
        "mode": "row",
        "code": "output = None if row['id'] == 2 else [{'n': row['id'], 't': 'a'}, {'n': row['id'] * 10}] if row['id'] == 1 else row | {'n': 7}",
        "output_schema": {"n": "integer", "t": "string"},
    },
    "values of other types": {
        "mode": "row",
        "code": "output = {'n': str(row['id']), 'f': row['id'], 'i': row['id'] + 0.25, 't': row['id'], 'o': {'a': [1]}, 'k': row['ok'], 'd': '2024-02-03'}",
        "output_schema": {"n": "BIGINT", "f": "DOUBLE", "i": "INTEGER", "t": "VARCHAR", "o": "VARCHAR", "k": "VARCHAR", "d": "DATE"},
    },
    "batches with a setup": {
        "mode": "batch",
        "setup": "from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int\nrate = 2",
        "code": "def twice(n):\n    return P(n * rate)\noutput = [{'n': twice(r['id']).n, 'size': len(rows)} for r in rows]",
        "batch_size": 2,
        "output_schema": {"n": "BIGINT", "size": "BIGINT"},
    },
    "batches of a frame": {
        "mode": "batch",
        "code": "import pyarrow\noutput = {'main': pyarrow.table({'n': [r['id'] for r in rows]})}",
        "output_schema": {"n": "BIGINT"},
    },
    "no rows": {"mode": "batch", "code": "output = []", "output_schema": {"n": "BIGINT"}},
}  # fmt: skip


@pytest.mark.parametrize("name", list(CODES))
def test_the_code_makes_the_same_rows_on_spark(name: str, folder: Path, spark: str) -> None:
    there = run(folder, spark, CODES[name])
    assert there.status == "completed", there.error
    made = written(folder)
    here = run(folder, spark, CODES[name], engine="duckdb")
    assert here.status == "completed", here.error
    assert made == written(folder)
    if name == "no rows":
        assert made == []
    else:
        assert made


def test_what_the_code_raises_names_the_line_and_the_row(folder: Path, spark: str) -> None:
    code = "def ratio(n):\n    return 1 / (n - 3)\nrow['x'] = ratio(row['id'])"
    failed = run(folder, spark, {"mode": "row", "code": code, "output_schema": TYPES})
    assert failed.status == "failed"
    assert failed.error["component"] == "code"
    assert failed.error["kind"] == "exception"
    assert "ZeroDivisionError: division by zero (line 2 of `code`, " in failed.error["message"]
    assert failed.error["message"].endswith(", at row 3 of part 1")
    assert not (folder / "out.parquet").exists()


def test_a_batch_that_fails_is_named(folder: Path, spark: str) -> None:
    params = {"mode": "batch", "batch_size": 2, "code": "output = [{'n': 1 / (3 - r['id'])} for r in rows]"}
    failed = run(folder, spark, {**params, "output_schema": {"n": "DOUBLE"}})
    assert "in the batch of rows 3 to 3 of part 1" in failed.error["message"]


def test_a_value_that_no_column_holds_is_named(folder: Path, spark: str) -> None:
    params = {"mode": "row", "code": "output = {'n': 'many'}", "output_schema": {"n": "BIGINT"}}
    failed = run(folder, spark, params)
    assert failed.error["kind"] == "conversion"
    assert "column `n` of `output` must be int64" in failed.error["message"]


def test_code_that_does_not_end_is_stopped(folder: Path, spark: str) -> None:
    code = "import time\ntime.sleep(600)"
    failed = run(folder, spark, {"mode": "row", "code": code, "output_schema": TYPES, "timeout": 5})
    assert failed.error["kind"] == "timeout"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"mode": "once", "code": "output = []"}, "`mode: once` takes all rows into this process"),
    ({"mode": "frame", "code": "output = frame"}, "`mode: frame` takes all rows into this process"),
    ({"mode": "row", "code": "row['a'] = 1", "output_schema": None}, "in `output_schema`"),
    ({"mode": "row", "code": "globals['n'] = 1"}, "`globals` are of the whole job"),
    ({"mode": "row", "code": "emit('main', row)"}, "`emit` writes to other ports"),
    ({"mode": "row", "code": "log('a')"}, "`log` has no run's log there"),
    ({"mode": "row", "code": "reject = 'no'"}, "`reject` sends rows to a port that is not there"),
    ({"mode": "row", "code": "row", "on_error": "reject"}, "only `main` can be read there"),
    ({"mode": "row", "setup": "n = 0", "code": "n += 1\nrow['id'] = n"}, "`n` goes on from row to row"),
    ({"mode": "row", "code": "n += 1\nrow['id'] = n"}, "`n` goes on from row to row"),
    ({"mode": "row", "code": "def f():\n    global seen\n    seen = 1\nf()"}, "`seen` goes on from row to row"),
]


@cases("params, word", REFUSED)
def test_what_cannot_run_there_is_said_before_the_run(params: dict[str, Any], word: str) -> None:
    given = {"output_schema": TYPES, **params}
    text = JOB.format(spark="sc://nowhere:1", params=json.dumps({k: v for k, v in given.items() if v is not None}))
    text = text.replace(
        "read_parquet, params: { path: rows.parquet }",
        "fixed_rows, params: { columns: [id, huge, u, hour], rows: [[1, a, b, c]] }",
    )
    found = [f"{one.code} {one.message} {one.hint}" for one in compile_text(text, "job.yaml", REGISTRY).problems]
    assert any(one.startswith("J0318") and word in one and "engine: duckdb" in one for one in found), found
