"""Components in whole jobs, used the way a newcomer would, with data that is not what it should be."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import problems, run_job

ROWS = "{name: rows, type: fixed_rows, params: {columns: [id, name], rows: [[1, a], [1, b], [null, c]]}"
UNFUSED = "job_config: {engine: {kind: duckdb, fuse: false}}\n"


def job(*components: str, data: str = "", control: str = "") -> str:
    text = "components:\n" + "".join(f"  - {one}\n" for one in components)
    links = [*([f"data: {dumps(data)}"] if data else []), *([f"control: {dumps(control)}"] if control else [])]
    return f"{text}connections: {{{', '.join(links)}}}\n" if links else text


def said(text: str, folder: Path) -> list[tuple[str, str]]:
    """(code, message) of every problem."""
    return [(one.code, one.message) for one in problems(text, folder)]


def failure(text: str, folder: Path) -> Any:
    ran = run_job(text, folder)
    assert ran.status == "failed"
    return ran.error


# ---- parameters


def test_a_wrong_parameter_is_spoken_of_once(tmp_path: Path):
    text = job("{name: r, type: read_csv, params: {file: a.csv, header: 'yes'}}")
    assert [code for code, _ in said(text, tmp_path) if code != "J0801"] == ["J0503", "J0502", "J0501"]


def test_a_single_name_where_a_list_is_needed_gets_a_hint_with_the_list(tmp_path: Path):
    text = job(
        ROWS + "}", "{name: u, type: unique, params: {by: id}}", "{name: s, type: log_rows}",
        data="rows -> u, u.unique -> s",
    )  # fmt: skip
    (found,) = [one for one in problems(text, tmp_path) if one.code == "J0501"]
    assert found.hint == "a list of one: `[id]`"


@pytest.mark.parametrize(
    ("component", "port"),
    [
        ("{name: j, type: join, params: {on: [id]}}", "lookup"),
        ("{name: j, type: map, params: {lookups: {lookup_x: {on: [id]}}}}", "lookup_x"),
        ("{name: j, type: fuzzy_match, params: {on: [name]}}", "lookup"),
    ],
)
def test_an_input_that_nothing_feeds_is_an_error_of_the_document_and_not_of_the_engine(tmp_path, component, port):
    first = "input" if "map" in component else "main"
    text = job(ROWS + "}", component, "{name: s, type: log_rows}", data=f"rows.main -> j.{first}\nj.main -> s.input")
    assert ("J0305", f"PORT_ARITY: nothing feeds the input `{port}` of `j`") in said(text, tmp_path)


def test_a_union_of_nothing_is_an_error_of_the_document(tmp_path: Path):
    text = job("{name: u, type: union}", "{name: s, type: log_rows}", data="u.main -> s.input")
    assert [code for code, _ in said(text, tmp_path)] == ["J0305"]


def test_a_number_or_truth_value_is_an_expression_as_it_stands(tmp_path: Path):
    text = job(
        ROWS + "}", "{name: d, type: derive, params: {columns: {vat: 0.2, ok: true, n: 5}}}",
        "{name: w, type: write_csv, params: {path: out.csv}}", data="rows.main -> d.input\nd.main -> w.input",
    )  # fmt: skip
    assert run_job(text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "1,a,0.2,true,5"
    assert [code for code, _ in said(text.replace("n: 5", "n: 007"), tmp_path)] == ["J0501"]


def test_a_semicolon_at_the_end_of_a_query_or_condition_is_no_mistake(tmp_path: Path):
    text = job(
        ROWS + "}", "{name: q, type: sql, params: {query: 'SELECT id FROM orders;'}}",
        "{name: f, type: filter, params: {where: 'id = 1;'}}", "{name: s, type: log_rows}",
        data="rows.main -> q.orders\nq.main -> f.input\nf.main -> s.input",
    )  # fmt: skip
    ran = run_job(text, tmp_path)
    assert ran.component("f")["rows_out"] == {"main": 2}
    assert [code for code, _ in said(text.replace("orders;", "orders; DROP TABLE orders"), tmp_path)] == ["J0603"]


# ---- files


def test_a_file_in_another_encoding_is_read_in_a_run_of_a_job(tmp_path: Path):
    (tmp_path / "in.csv").write_bytes("id,name\n1,René\n".encode("latin-1"))
    text = job(
        "{name: r, type: read_csv, params: {path: in.csv, encoding: latin-1}}",
        "{name: w, type: write_csv, params: {path: out.csv}}", data="r.main -> w.input",
    )  # fmt: skip
    assert run_job(text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "id,name\n1,René\n"


def test_rows_are_appended_and_recoded_in_a_run_of_a_job(tmp_path: Path):
    (tmp_path / "out.csv").write_text("id\n1\n")
    text = job(
        "{name: rows, type: fixed_rows, params: {columns: [id], rows: [[é]]}}",
        "{name: w, type: write_csv, params: {path: out.csv, append: true, encoding: latin-1}}", data="rows -> w",
    )  # fmt: skip
    assert run_job(text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_bytes() == b"id\n1\n\xe9\n"


def test_a_file_without_rows_does_not_turn_the_numbers_of_the_others_into_text(tmp_path: Path):
    (tmp_path / "day-1.csv").write_text("id,amount\n")
    (tmp_path / "day-2.csv").write_text("id,amount\n1,20\n")
    text = job(
        "{name: r, type: read_csv, params: {path: 'day-*.csv'}}",
        "{name: a, type: aggregate, params: {measures: {total: sum(amount)}}}",
        "{name: w, type: write_csv, params: {path: out.csv}}", data="r.main -> a.input\na.main -> w.input",
    )  # fmt: skip
    assert run_job(text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_text() == "total\n20\n"


def test_a_line_that_is_not_json_is_rejected_wherever_in_the_file_it_stands(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{bad\n{"a": 2}\n')
    text = job(
        "{name: r, type: read_json, params: {path: in.jsonl}}", "{name: s, type: log_rows}", "{name: t, type: log_rows}",
        data="r.main -> s.input\nr.reject -> t.input",
    )  # fmt: skip
    assert run_job(text, tmp_path).component("r")["rows_out"] == {"main": 2, "reject": 1}


def test_a_line_that_is_not_json_is_named_when_nobody_reads_rejects(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{bad\n')
    text = job(
        "{name: r, type: read_json, params: {path: in.jsonl}}", "{name: s, type: log_rows}", data="r.main -> s.input"
    )
    assert "line 2: this is not JSON" in failure(text, tmp_path)["message"]


# ---- declared columns


@pytest.mark.parametrize("prefix", ["", UNFUSED])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("{name: id, type: integer, nullable: false}", "`id` has no value: 1 of 3 rows"),
        ("{name: name, type: string, pattern: '[ab]'}", "`name` does not match `[ab]`: 1 of 3 rows"),
        ("{name: id, type: integer, key: true}", "the key `id` occurred before: 1 of 3 rows"),
    ],
)
def test_rows_that_are_not_as_their_schema_says_end_the_component_in_error(tmp_path, prefix, column, message):
    text = job(
        ROWS + "}", f"{{name: d, type: derive, params: {{columns: {{x: 1}}}}, schema: [{column}]}}",
        "{name: s, type: log_rows}", data="rows.main -> d.input\nd.main -> s.input",
    )  # fmt: skip
    found = failure(prefix + text, tmp_path)
    assert found["component"] == "d"
    assert message in found["message"]


@pytest.mark.parametrize("prefix", ["", UNFUSED])
def test_a_port_has_the_columns_that_are_declared_for_it_in_their_order_and_types(tmp_path, prefix):
    text = job(
        ROWS + "}", "{name: f, type: filter, params: {where: id = 1}, schema: [{name: name, type: string}, {id: 'decimal(5,2)'}]}",
        "{name: w, type: write_csv, params: {path: out.csv}}", data="rows.main -> f.input\nf.main -> w.input",
    )  # fmt: skip
    assert run_job(prefix + text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_text() == "name,id\na,1.00\nb,1.00\n"


def test_a_declared_type_that_a_transform_cannot_have_is_an_error_before_the_run(tmp_path: Path):
    text = job(
        ROWS + "}", "{name: d, type: derive, params: {columns: {x: id + 1}}, schema: [{id: integer}, {x: date}]}",
        "{name: s, type: log_rows}", data="rows.main -> d.input\nd.main -> s.input",
    )  # fmt: skip
    assert said(text, tmp_path) == [("J0602", "TYPE_MISMATCH: `x` of `d` is BIGINT, and is declared as DATE")]


# ---- code


def test_code_that_gives_no_rows_is_told_to_name_its_columns(tmp_path: Path):
    text = job("{name: p, type: python, params: {code: 'output = []'}}", "{name: s, type: log_rows}", data="p -> s")
    assert "name them in `output_schema`" in failure(text, tmp_path)["message"]


def test_a_division_by_zero_is_told_without_advice_that_no_document_can_follow(tmp_path: Path):
    text = job(
        ROWS + "}", "{name: d, type: derive, params: {columns: {x: 5 // (id - 1)}}}", "{name: s, type: log_rows}",
        data="rows.main -> d.input\nd.main -> s.input",
    )  # fmt: skip
    message = failure(text, tmp_path)["message"]
    assert "zero" in message
    assert "SET " not in message


# ---- databases


def test_a_column_that_the_table_lacks_is_not_taken_for_a_missing_table(tmp_path: Path):
    write = "{name: %s, type: write_sql, params: {connection: 'sqlite:///x.db', table: t, create: %s}}"
    text = job(
        ROWS + "}", write % ("made", "true"), "{name: more, type: derive, params: {columns: {extra: 1}}}",
        write % ("filled", "false"), data="rows.main -> made.input\nmade.main -> more.input\nmore.main -> filled.input",
    )  # fmt: skip
    message = failure(text, tmp_path)["message"]
    assert "extra" in message
    assert "missing table" not in message
