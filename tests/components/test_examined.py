"""Components in whole jobs, used the way a newcomer would, with data that is not what it should be."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.data.duckdb_engine import DuckDbEngine
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


# ---- a day without rows

EMPTY_DAY = job(
    "{name: orders, type: READER}",
    "{name: people, type: fixed_rows, params: {columns: [id, {name: vip, type: boolean}], rows: [[1, true]]}}",
    "{name: big, type: filter, params: {where: \"amount > 10 and status <> 'x'\"}}",
    "{name: more, type: derive, params: {columns: {loud: upper(name), twice: amount * 2}}}",
    "{name: both, type: join, params: {on: [id]}}",
    "{name: sums, type: aggregate, params: {by: [status], measures: {total: sum(twice), dearest: max(amount)}}}",
    "{name: parquet, type: write_parquet, params: {path: out.parquet}}",
    "{name: csv, type: write_csv, params: {path: out.csv}}",
    data="""
      orders.main -> big.input
      big.main -> more.input
      more.main -> both.main
      people.main -> both.lookup
      both.main -> sums.input
      sums.main -> parquet.input
      both.main -> csv.input
    """,
)
NAMED = "columns: [id, name, amount, status]"


EMPTY_FILES = [
        ("read_csv, params: {path: day.csv}", "day.csv", "id,name,amount,status\n"),
        ("read_csv, params: {path: day.csv, comment: '#'}", "day.csv", "# nothing\nid,name,amount,status\n# today\n"),
        ("read_csv, params: {path: day.csv, encoding: utf-16}", "day.csv", "id,name,amount,status\r\n"),
        ("read_csv, params: {path: day.csv, on_error: skip}", "day.csv", "id,name,amount,status\n"),
        (f"read_csv, params: {{path: day.csv, {NAMED}}}", "day.csv", ""),
        (f"fixed_rows, params: {{{NAMED}, rows: []}}", "none.txt", ""),
        (f"read_json, params: {{path: day.json, {NAMED}}}", "day.json", "[]"),
        (f"read_json, params: {{path: day.json, {NAMED}, on_error: skip}}", "day.json", "[]"),
        (f"read_json, params: {{path: day.json, format: lines, {NAMED}}}", "day.json", ""),
        (f"read_json, params: {{path: day.json, rows: data.rows, {NAMED}}}", "day.json", '{"data": {"rows": []}}'),
        (
            "read_xml, params: {path: day.xml, rows: o, columns: {id: '@id', name: name, amount: amount, status: status}}",
            "day.xml", "<day/>",
        ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("prefix", "reader", "file", "holds"),
    [*(("", *one) for one in EMPTY_FILES), *((UNFUSED, *EMPTY_FILES[at]) for at in (0, 6, 10))],
)
def test_a_day_without_rows_goes_through_a_job_made_for_days_with_rows(tmp_path, prefix, reader, file, holds):
    (tmp_path / file).write_text(holds, encoding="utf-16" if "utf-16" in reader else "utf-8")
    ran = run_job(prefix + EMPTY_DAY.replace("READER", reader), tmp_path)
    assert ran.status == "completed"
    assert {name: ran.component(name)["rows_out"] for name in ("orders", "big", "more", "both", "sums")} == {
        name: {"main": 0} for name in ("orders", "big", "more", "both", "sums")
    }
    assert (tmp_path / "out.csv").read_text() == "id,name,amount,status,loud,twice,vip\n"
    assert (tmp_path / "out.parquet").stat().st_size > 0


def test_rows_of_no_type_are_kept_and_come_back_as_they_were(tmp_path: Path):
    engine = DuckDbEngine(tmp_path)
    empty = engine.session().select("SELECT NULL AS a, 1 AS b WHERE false", {})
    engine.export(empty, tmp_path / "rows.parquet")
    again = engine.spill(engine.attach(tmp_path / "rows.parquet", empty.schema, 0, empty.hash))
    assert [(column.name, column.type) for column in again.schema] == [("a", '"NULL"'), ("b", "INTEGER")]
    assert engine.session().select("SELECT sum(a) AS a FROM t WHERE a > 10", {"t": again}).rows == 1
    engine.close()


def test_an_empty_day_can_be_written_to_a_database_and_a_full_one_added(tmp_path: Path):
    text = job(
        "{name: day, type: read_csv, params: {path: day.csv}}",
        "{name: table, type: write_sql, params: {connection: 'duckdb:///days.db', table: days, create: true}}",
        data="day.main -> table.input",
    )
    for execution, holds in (("empty", "id,name\n"), ("full", "id,name\n1,ann\n")):
        (tmp_path / "day.csv").write_text(holds)
        assert run_job(text, tmp_path, execution_id=execution).status == "completed"


def test_a_dimension_without_rows_gets_the_types_of_its_first(tmp_path: Path):
    (tmp_path / "dim.csv").write_text("id,city,valid_from,valid_to,is_current\n")
    text = job(
        "{name: old, type: read_csv, params: {path: dim.csv}}",
        "{name: new, type: fixed_rows, params: {columns: [id, city], rows: [[1, Ulm]]}}",
        "{name: dim, type: scd, params: {keys: [id], as_of: '2026-03-01'}}",
        "{name: out, type: write_csv, params: {path: out.csv}}",
        data="old.main -> dim.dimension\nnew.main -> dim.input\ndim.main -> out.input",
    )
    assert run_job(text, tmp_path).status == "completed"
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("1,Ulm,2026-03-01,")


# ---- no row is lost in silence

REFUSERS = [
    ("convert_types, params: {columns: {v: integer}", "`v`: `x` is not BIGINT"),
    ("check_schema, params: {columns: [{name: v, type: integer}, {name: w}]", "`v`: `x` is not BIGINT"),
    ("check_schema, params: {columns: [{name: v, pattern: '\\d+'}, {name: w}]", "`v` does not match `\\d+`: `x`"),
    ("check_schema, params: {columns: [{name: v}, {name: w, key: true}]", "`w` occurred before: `a`"),
    ("extract_regex, params: {column: v, pattern: '(\\d+)', into: [n]", "`v`: `x` does not match"),
    ("extract_json, params: {column: v, fields: {n: $.n}", "`v`: `x` is not JSON"),
    ("extract_delimited, params: {column: v, into: {n: integer}", "`n`: `x` is not BIGINT"),
    (
        "extract_positional, params: {column: v, fields: {n: {start: 1, length: 1, type: integer}}",
        "`n`: `x` is not BIGINT",
    ),
]


def refusing(components: list[str], *more: str, reject: bool = False) -> str:
    """A chain for each: rows, the component `c0`, `c1` …, a query that reads one of its rows, a file."""
    members, links = [], []
    for number, component in enumerate(components):
        members += [
            f"{{name: r{number}, type: fixed_rows, params: {{columns: [v, w], rows: [['1', a], [x, b], ['2', a], [y, b]]}}}}",
            f"{{name: c{number}, type: {', '.join([component, *more])}}}}}",
            f"{{name: few{number}, type: sql, params: {{query: select * from input limit 1}}}}",
            f"{{name: w{number}, type: write_csv, params: {{path: out{number}.csv}}}}",
            *([f"{{name: bad{number}, type: write_csv, params: {{path: bad{number}.csv}}}}"] if reject else []),
        ]
        links += [
            f"r{number}.main -> c{number}.input",
            f"c{number}.main -> few{number}.input",
            f"few{number}.main -> w{number}.input",
            *([f"c{number}.reject -> bad{number}.input"] if reject else []),
        ]
    return job(*members, data="\n".join(links))


@pytest.mark.parametrize(("prefix", "refusers"), [("", REFUSERS), (UNFUSED, REFUSERS[:1])])
def test_a_refused_row_that_nobody_reads_ends_the_component_in_error(tmp_path, prefix, refusers):
    config = prefix or "job_config: {fail_strategy: continue}\n"
    ran = run_job(config + refusing([component for component, _ in refusers]), tmp_path)
    found = {one["component"]: one["error"]["message"] for one in ran.payloads("component.error")}
    assert [*sorted(found)] == [f"c{number}" for number in range(len(refusers))]
    for number, (_, message) in enumerate(refusers):
        assert f"2 of 4 rows were refused; the first: {message}" in found[f"c{number}"]
        assert found[f"c{number}"].endswith("; hint: connect the `reject` port, or set `on_error: skip`")


@pytest.mark.parametrize(("prefix", "refusers"), [("", REFUSERS), (UNFUSED, REFUSERS[:1])])
def test_a_refused_row_leaves_through_reject_or_is_skipped_when_that_is_asked_for(tmp_path, prefix, refusers):
    components = [component for component, _ in refusers]
    ran = run_job(prefix + refusing(components, reject=True), tmp_path)
    skipped = run_job(prefix + refusing(components, "on_error: skip"), tmp_path, execution_id="run-2")
    assert (ran.status, skipped.status) == ("completed", "completed")
    after = {one["component"]: one["after"] for one in skipped.payloads("component.ok")}
    for number in range(len(components)):
        assert ran.component(f"c{number}")["rows_out"] == {"main": 2, "reject": 2}
        assert len((tmp_path / f"bad{number}.csv").read_text().splitlines()) == 3
        assert skipped.component(f"c{number}")["rows_out"] == {"main": 2}
        assert {"NB_LINE_REJECTED": 2}.items() <= after[f"c{number}"].items()


def test_a_value_that_must_convert_is_an_error_whoever_reads_rejects(tmp_path: Path):
    found = failure(refusing(["convert_types, params: {columns: {v: integer}"], "invalid: fail", reject=True), tmp_path)
    assert "2 of 4 rows were refused; the first: `v`: `x` is not BIGINT" in found["message"]


# ---- code


def test_code_that_gives_no_rows_hands_none_on(tmp_path: Path):
    text = job("{name: p, type: python, params: {code: 'output = []'}}", "{name: s, type: log_rows}", data="p -> s")
    assert run_job(text, tmp_path).status == "completed"


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


def every_problem(text: str, folder: Path) -> list[Any]:
    """Warnings and notes as well."""
    (folder / "job.yaml").write_text(text)
    return list(penstock.validate(folder / "job.yaml").problems)


GATE = """\
keychain: [{ name: warehouse, kind: env, var: DATABASE_URL }]
components:
  - { name: rows, type: generate_rows, params: { count: 1, columns: { n: i } } }
  - { name: load, type: write_sql, params: { auth: warehouse, table: t } }
  - { name: refused, type: write_csv, params: { path: refused.csv } }
  - { name: tidy, type: run_sql, params: { auth: warehouse, sql: SELECT 1 } }
  - { name: note, type: set_global, params: { values: { loaded: 1 } } }
  - { name: stop, type: die, params: { message: "CONDITION" } }
connections:
  data: |
    rows -> load
    load.reject -> refused
  control: |
    load (subjob_ok) tidy
    tidy (ok) note
    note (if 1: "CONDITION > 0") stop
"""


@pytest.mark.parametrize(
    ("condition", "message", "meant"),
    [
        ("global.refused.NB_LINE", None, None),
        ("global.load.NB_LINE_REJECTED", None, None),
        ("global.load.NB_LINE_OUT_reject", None, None),
        ("global.load.SOMETHING_OF_ITS_OWN", None, None),
        ("global.loaded", None, None),
        ("global.refusd.NB_LINE", "there is no component `refusd`, so there is no `NB_LINE` of it", "refused"),
        ("global.load.NB_LINES_REJECTED", "`load` sets no `NB_LINES_REJECTED`", "NB_LINE_REJECTED"),
        ("global.load.NB_LINE_OUT_rejet", "`load` sets no `NB_LINE_OUT_rejet`", "NB_LINE_OUT_reject"),
        ("global.laoded", "nothing in this job writes the global `laoded`", "loaded"),
    ],
)
def test_a_condition_that_reads_what_nobody_sets_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, message: str | None, meant: str | None
) -> None:
    """A missing global makes it false without a word (D40): a gate would be open."""
    monkeypatch.setenv("DATABASE_URL", "sqlite:///w.db")
    found = every_problem(GATE.replace('"CONDITION"', "x").replace("CONDITION", condition), tmp_path)
    told = [(one.code, one.severity.value, one.message, one.label) for one in found]
    expected = [("J0705", "warning", f"UNWRITTEN_GLOBAL: {message}", f"did you mean `{meant}`?")]
    assert told == ([] if message is None else expected)
