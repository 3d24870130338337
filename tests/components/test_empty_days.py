"""A file that is empty today runs through with no rows, whatever it says of its columns: names and types, names only, nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.data.types import NOTHING, UNKNOWN_COLUMNS
from penstock.ports.rows import Column, Schema
from tests.components.harness import columns, mistakes, run
from tests.jobs import Ran, run_job

_NAMES = ("id", "day", "paid", "amount", "country", "tags", "q1", "q2")
_UNTYPED: Schema = tuple(Column(name, NOTHING) for name in _NAMES)


def _csv(folder: Path) -> str:
    (folder / "today.csv").write_text(",".join(_NAMES) + "\n", encoding="utf-8")
    return "type: read_csv, params: {path: today.csv}"


def _json(folder: Path) -> str:
    (folder / "today.json").write_text("[]", encoding="utf-8")
    return "type: read_json, params: {path: today.json}"


def _inner_json(folder: Path) -> str:
    (folder / "today.json").write_text('{"data": {"items": []}}', encoding="utf-8")
    return "type: read_json, params: {path: today.json, rows: data.items}"


def _lines(folder: Path) -> str:
    (folder / "today.jsonl").write_bytes(b"")
    return "type: read_json, params: {path: today.jsonl}"


def _parquet(folder: Path) -> str:
    import duckdb

    typed = "0 AS id, DATE '2024-01-01' AS day, now()::TIMESTAMP AS paid, 1.5 AS amount, 'nl' AS country"
    query = f"SELECT {typed}, 'a,b' AS tags, 1 AS q1, 2 AS q2 WHERE false"
    duckdb.sql(f"COPY ({query}) TO '{folder / 'today.parquet'}' (FORMAT parquet)")
    return "type: read_parquet, params: {path: today.parquet}"


_EVERY_FILE = pytest.mark.parametrize("file", [_csv, _json, _inner_json, _lines, _parquet])

_CHAIN = """\
components:
  - {name: read, %s}
  - {name: paid, type: filter, params: {where: "amount > 0 AND day >= DATE '2024-01-01'"}}
  - name: derived
    type: derive
    params:
      columns:
        month: date_trunc('month', day)
        year: year(day)
        late: date_diff('day', day, paid)
        due: day + INTERVAL 30 DAY
        gross: round(amount * 1.21, 2)
        label: upper(country) || '-' || id
  - {name: once, type: unique, params: {by: [id]}}
  - {name: ordered, type: sort, params: {by: [day, id]}}
  - name: names
    type: fixed_rows
    params: {columns: [code, name], rows: [[nl, Netherlands], [pt, Portugal]]}
  - {name: named, type: join, params: {on: {country: code}, how: left}}
  - name: totals
    type: aggregate
    params: {by: [month, name], measures: {total: sum(gross), last: max(paid), orders: count(*)}}
  - {name: out, type: write_csv, params: {path: out.csv}}
  - {name: refused, type: log_rows}
connections:
  data: |
    read.main -> paid.input
    paid.main -> derived.input
    paid.reject -> refused.input
    derived.main -> once.input
    once.unique -> ordered.input
    ordered.main -> named.main
    names.main -> named.lookup
    named.main -> totals.input
    totals.main -> out.input
"""


@_EVERY_FILE
def test_a_chain_of_components_runs_through_with_no_rows(file: Any, tmp_path: Path):
    ran = run_job(_CHAIN % file(tmp_path), tmp_path)
    assert ran.status == "completed", ran.error
    assert set(ran.states().values()) == {"OK"}
    assert ran.component("totals")["rows_out"] == {"main": 0}
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == []


_SHAPES = """\
components:
  - {name: read, %s}
  - {name: each, type: normalise, params: {column: tags}}
  - {name: long, type: unpivot, params: {columns: [q1, q2], keep: [id, country], name: quarter, value: sales}}
  - {name: wide, type: pivot, params: {by: [id], column: quarter, value: sales, values: [q1, q2]}}
  - {name: typed, type: convert_types, params: {columns: {id: integer, q1: number}}}
  - {name: checked, type: check_schema, params: {columns: [{name: id, type: integer}, {name: q1}, {name: q2}]}}
  - {name: rows, type: python, params: {code: "row['id'] += 1", mode: row}}
  - {name: asked, type: sql, params: {query: "SELECT id, sum(q1) AS s, max(q2) AS m FROM input GROUP BY id"}}
  - name: load
    type: write_sql
    params: {connection: "sqlite:///out.db", table: sums, mode: insert, create: true}
  - {name: groups, type: iterate_groups, params: {by: [id]}}
  - {name: tell, type: warn, params: {message: never}}
connections:
  data: |
    read.main -> each.input
    each.main -> long.input
    long.main -> wide.input
    wide.main -> typed.input
    typed.main -> checked.input
    checked.main -> rows.input
    rows.main -> asked.input
    asked.main -> load.input
    load.main -> groups.input
  control: groups (iterate) tell
"""


@_EVERY_FILE
def test_rows_that_never_came_take_any_shape(file: Any, tmp_path: Path):
    ran = run_job(_SHAPES % file(tmp_path), tmp_path)
    assert ran.status == "completed", ran.error


@_EVERY_FILE
def test_rows_that_never_came_cross_sub_jobs_and_survive_a_declaration(file: Any, tmp_path: Path):
    text = """\
    components:
      - {name: read, %s}
      - name: shaped
        type: filter
        params: {where: amount > 0}
        schema: [{name: id, type: integer}, {name: amount, type: number}]
      - {name: fork, type: set_global, params: {values: {x: 1}}}
      - {name: left, type: derive, params: {columns: {year: year(day)}}}
      - {name: right, type: aggregate, params: {measures: {total: sum(amount), orders: count(*)}}}
      - {name: show, type: log_rows}
      - {name: show_too, type: log_rows}
    connections:
      data: |
        read.main -> left.input
        read.main -> shaped.input
        shaped.main -> right.input
        left.main -> show.input
        right.main -> show_too.input
      control: |
        fork (parallelise) left, right
    """
    ran = run_job(text % file(tmp_path), tmp_path)
    assert ran.status == "completed", ran.error
    assert ran.component("right")["rows_out"] == {"main": 1}


@pytest.mark.parametrize(
    "expression",
    [
        "year(day)",
        "date_trunc('month', day)",
        "day + INTERVAL 1 DAY",
        "date_diff('day', day, paid)",
        "(paid - day) > INTERVAL 1 DAY",
        "year(day) + amount * 2",
        "extract(month FROM max(day) OVER ())",
        "date_part('year', day) = 2024 AND upper(country) = 'NL'",
    ],
)
def test_functions_of_dates_take_columns_of_which_only_the_name_is_known(expression: str):
    ran = run("derive", {"columns": {"x": expression}}, {"input": []}, schemas={"input": _UNTYPED})
    assert ran.main == []
    assert mistakes("derive", {"columns": {"x": expression}}, {"input": _UNTYPED}) == []
    assert "x" in columns("derive", {"columns": {"x": expression}}, {"input": _UNTYPED})


@pytest.mark.parametrize("expression", ["year(dai)", "year(day, paid, id)", "upper("])
def test_what_is_wrong_under_every_type_is_still_a_mistake(expression: str):
    assert mistakes("derive", {"columns": {"x": expression}}, {"input": _UNTYPED})


def test_a_lookup_without_rows_or_columns_leaves_all_rows_of_the_input_there(tmp_path: Path):
    ran = _left(tmp_path, "name")
    assert ran.status == "completed", ran.error
    assert ran.component("joined")["rows_out"] == {"main": 2}


def test_a_column_that_an_input_with_rows_lacks_is_still_missed(tmp_path: Path):
    (tmp_path / "names.json").write_text("[]", encoding="utf-8")
    text = """\
    components:
      - {name: rows, type: python, params: {code: "output = [{'id': 1}]"}}
      - {name: names, type: read_json, params: {path: names.json}}
      - {name: joined, type: join, params: {on: {code: id}}}
      - {name: show, type: log_rows}
    connections:
      data: |
        rows.main -> joined.main
        names.main -> joined.lookup
        joined.main -> show.input
    """
    ran = run_job(text, tmp_path)
    assert ran.status == "failed"
    assert "`main` has no column `code`" in ran.error["message"]


def _left(folder: Path, column: str) -> Ran:
    (folder / "names.json").write_text("[]", encoding="utf-8")
    return run_job(
        f"""\
    components:
      - {{name: rows, type: fixed_rows, params: {{columns: [id], rows: [[1], [2]]}}}}
      - {{name: names, type: read_json, params: {{path: names.json}}}}
      - {{name: joined, type: sql, params: {{query: "SELECT i.id, n.{column} FROM input i LEFT JOIN names n ON n.id = i.id"}}}}
      - {{name: show, type: log_rows}}
    connections:
      data: |
        rows.main -> joined.input
        names.main -> joined.names
        joined.main -> show.input
    """,
        folder,
    )


@pytest.mark.parametrize("driver", ["sqlite", "duckdb"])
@pytest.mark.parametrize(("mode", "left"), [("insert", 1), ("upsert", 1), ("truncate_insert", 0), ("replace", 0)])
def test_a_table_keeps_its_columns_when_nothing_says_what_came(driver: str, mode: str, left: int, tmp_path: Path):
    place = {"connection": f"{driver}:///{tmp_path / 'out.db'}", "table": "orders"}
    run("write_sql", {**place, "create": True}, {"input": [{"id": 1, "name": "a"}]})
    keys = {"keys": ["id"]} if mode == "upsert" else {}
    ran = run("write_sql", {**place, **keys, "mode": mode}, {"input": []}, schemas={"input": UNKNOWN_COLUMNS})
    assert ran.after["NB_LINE_REJECTED"] == 0
    there = run("read_sql", {"connection": place["connection"], "table": "orders"})
    assert (len(there.main), [column.name for column in there.schemas["main"]]) == (left, ["id", "name"])


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize(("name", "content"), [("names.csv", "code,name\n"), ("names.json", "[]"), ("names.jsonl", "")])
def test_a_lookup_in_a_file_without_rows_finds_nothing(name: str, content: str, cache: bool, tmp_path: Path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    params = {"on": {"country": "code"}, "path": name, "columns": ["name"], "cache": cache}
    rows = [{"country": "nl"}, {"country": "pt"}]
    ran = run("lookup", params, {"input": rows}, folder=tmp_path)
    assert ran.main == [{"country": "nl", "name": None}, {"country": "pt", "name": None}]
    ran = run("lookup", {**params, "how": "inner"}, {"input": rows}, folder=tmp_path)
    assert (ran.main, len(ran.outputs["reject"])) == ([], 2)
