"""Writers that share a transaction on a fleet: the sub-job lies with one worker, and whoever dies, each row is there once."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.depth import times
from tests.fleet.deaths import with_deaths
from tests.fleet.scene import on_fleet

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: shared}
components:
  count: {type: run_sql, params: {connection: "sqlite:///FILE", sql: UPDATE loads SET n = n + 1, transaction: shared}}
  rest: {type: sleep, params: {seconds: 4}}
  rows: {type: fixed_rows, params: {columns: [id], rows: [[1], [2]]}}
  load: {type: write_sql, params: {connection: "sqlite:///FILE", table: orders}}
  each: {type: iterate_list, params: {items: [10, 20, 30], parallel: 2}}
  note: {type: run_sql, params: {connection: "sqlite:///FILE", sql: UPDATE loads SET n = n + 100, transaction: shared}}
  more: {type: fixed_rows, params: {columns: [id], rows: [["{{ iteration.item }}"]]}}
  append: {type: write_sql, params: {connection: "sqlite:///FILE", table: orders}}
connections:
  data: |
    rows.main -> load.input
    more.main -> append.input
  control: |
    count (ok) rest
    rest (ok) rows
    load (subjob_ok) each
    each (iterate) note
    note (ok) more
"""


@pytest.mark.parametrize("seed", range(times(2)))
def test_whoever_dies_everything_is_written_once(tmp_path: Path, seed: int) -> None:
    database = tmp_path / "shop.db"
    with closing(sqlite3.connect(database)) as made:
        made.executescript("CREATE TABLE orders (id); CREATE TABLE loads (n); INSERT INTO loads VALUES (0)")
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("FILE", str(database)), encoding="utf-8")
    on_fleet(tmp_path, lambda scene: with_deaths(scene, file, random.Random(seed)))
    with closing(sqlite3.connect(database)) as made:
        orders = [row[0] for row in made.execute("SELECT id FROM orders ORDER BY id")]
        assert (orders, made.execute("SELECT n FROM loads").fetchall()) == ([1, 2, 10, 20, 30], [(301,)])
