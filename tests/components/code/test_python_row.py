"""`python` in mode `row`."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.tools.base import Source
from tests.components.harness import Ran, columns, run, schema

ROWS = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": None}]


def by_row(code: str, rows: Any = ROWS, **more: Any) -> Ran:
    params = {"code": code, "mode": "row", **more.pop("params", {})}
    inputs = rows if isinstance(rows, dict) else {"input": rows}
    return run("python", params, inputs, connected=more.pop("connected", ["main", "reject"]), **more)


def failure(code: str, rows: Any = ROWS, **more: Any) -> ComponentFailure:
    with pytest.raises(ComponentFailure) as caught:
        by_row(code, rows, **more)
    return caught.value


def test_output_is_a_mapping_a_list_of_them_or_none():
    code = "output = None if row['id'] == 1 else [{'n': row['id']}, {'n': -row['id']}] if row['id'] == 2 else {'n': 0}"
    assert by_row(code).main == [{"n": 2}, {"n": -2}, {"n": 0}]


def test_a_row_for_which_output_is_not_set_is_dropped():
    assert by_row("if row['id'] > 1:\n    output = {'id': row['id']}").main == [{"id": 2}, {"id": 3}]


def test_code_that_never_names_output_passes_rows_on_with_its_changes():
    assert by_row("row['id'] += 10\nrow['new'] = 'x'").main == [
        {"id": 11, "name": "Ann", "new": "x"},
        {"id": 12, "name": "Bob", "new": "x"},
        {"id": 13, "name": None, "new": "x"},
    ]


def test_reject_sends_the_row_as_it_came_with_the_reason():
    ran = by_row("if row['name'] is None:\n    row['id'] = 0\n    reject = 'no name'\noutput = row")
    assert ran.main == ROWS[:2]
    assert ran.outputs["reject"] == [{"id": 3, "name": None, "error_code": "REJECTED", "error_message": "no name"}]


def test_the_columns_of_reject_are_known_before_the_run():
    assert columns("python", {"code": "pass", "mode": "row"}, {"input": schema(id="BIGINT")}, "reject") == {
        "id": "BIGINT",
        "error_code": "VARCHAR",
        "error_message": "VARCHAR",
    }


def test_variables_keep_their_values_from_row_to_row():
    assert by_row("n = n + 1\noutput = {'n': n}", params={"setup": "n = 100"}).main == [
        {"n": 101},
        {"n": 102},
        {"n": 103},
    ]


def test_imports_functions_and_classes_at_the_start_are_made_once():
    code = """
import itertools
from functools import lru_cache
counted = []

output = {"n": 1}
"""
    started = """
'''Documentation.'''
from __future__ import annotations
import sys
def note(kind, seen=sys.modules.setdefault("penstock_test_seen", [])):
    seen.append(kind)
    return len(seen)
class Kept:
    made = note("class")
output = {"n": Kept.made}
"""
    import sys

    try:
        assert by_row(code).main == [{"n": 1}] * 3
        assert by_row(started).main == [{"n": 1}] * 3
    finally:
        sys.modules.pop("penstock_test_seen", None)


def test_a_definition_that_looks_at_the_row_is_made_for_each_row():
    assert by_row("def f(x=row['id']):\n    return x\noutput = {'n': f()}").main == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_function_can_read_the_row_and_set_the_output():
    code = "def work():\n    global output\n    output = {'n': row['id']}\nwork()"
    assert by_row(code).main == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_one_mapping_used_for_every_row_does_not_mix_them():
    assert by_row("same['n'] = row['id']\noutput = same", params={"setup": "same = {}"}).main == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ]


def test_look_ups_come_from_further_inputs():
    ran = by_row(
        "output = {'id': row['id'], 'city': cities.get(row['id'])}",
        {"input": ROWS, "input_cities": [{"id": 2, "city": "Ulm"}]},
        params={"setup": "cities = {each['id']: each['city'] for each in inputs['input_cities']}"},
    )
    assert ran.main == [{"id": 1, "city": None}, {"id": 2, "city": "Ulm"}, {"id": 3, "city": None}]


def test_emit_routes_single_rows():
    ran = by_row(
        "emit('output_odd' if row['id'] % 2 else 'main', row)\noutput = None", connected=["main", "output_odd"]
    )
    assert ran.outputs == {"main": [ROWS[1]], "output_odd": [ROWS[0], ROWS[2]]}


def test_rows_that_came_over_several_links_are_all_seen():
    assert by_row("output = {'n': row.get('id', row.get('key'))}", {"input": [ROWS, [{"key": 9}]]}).main == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
        {"n": 9},
    ]


def test_the_code_runs_although_nobody_reads_its_rows():
    assert by_row("globals['seen'] = row['id']", connected=[]).globals == {"seen": 3}


def test_many_rows_keep_their_order_over_batches():
    rows = [{"n": n} for n in range(2_500)]
    code = "if row['n'] % 3 == 0:\n    reject = 'third'\nelse:\n    output = {'n': row['n']}"
    ran = by_row(code, rows, params={"batch_size": 100})
    assert [row["n"] for row in ran.main] == [n for n in range(2_500) if n % 3]
    assert [row["n"] for row in ran.outputs["reject"]] == [n for n in range(2_500) if n % 3 == 0]


def test_a_type_that_shows_late_is_the_type_of_the_whole_column():
    ran = by_row("output = {'x': row['n'] if row['n'] > 2_000 else None}", [{"n": n} for n in range(2_005)])
    assert ran.schemas["main"] == schema(x="BIGINT")


def test_an_empty_input_gives_empty_outputs_with_columns():
    ran = by_row("output = {'z': 1}", [], schemas={"input": schema(a="DATE")})
    assert ran.outputs == {"main": [], "reject": []}
    assert ran.schemas == {
        "main": schema(a="DATE"),
        "reject": schema(a="DATE", error_code="VARCHAR", error_message="VARCHAR"),
    }


def test_empty_rows_have_the_columns_of_output_schema():
    ran = by_row(
        "output = {'z': 1}", [], schemas={"input": schema(a="DATE")}, params={"output_schema": {"z": "integer"}}
    )
    assert ran.schemas["main"] == schema(z="BIGINT")


def test_an_exception_names_the_line_of_the_code_and_of_the_file_and_the_row():
    problem = failure(
        "x = 1\nif row['id'] == 2:\n    x = 1 / 0\noutput = row",
        source=Source("jobs/orders.yaml", {"code": 20}),
        params={"batch_size": 1},
    )
    assert problem.kind == "exception"
    assert problem.message == "ZeroDivisionError: division by zero (line 3 of `code`, jobs/orders.yaml:22), at row 2"
    assert problem.detail["row"] == 2
    assert problem.detail["yaml_line"] == 22
    assert problem.detail["exception_type"] == "ZeroDivisionError"
    assert "x = 1 / 0" in str(problem.detail["traceback"])


def test_an_exception_in_a_function_names_the_functions_line():
    code = "def f(v):\n    return v.upper()\noutput = {'n': f(row['name'])}"
    problem = failure(code, source=Source("job.yaml", {"code": 5}))
    assert "(line 2 of `code`, job.yaml:6), at row 3" in problem.message


def test_an_exception_in_the_setup_names_its_line():
    problem = failure(
        "output = row", params={"setup": "a = 1\nraise KeyError('k')"}, source=Source("j.yaml", {"setup": 3})
    )
    assert problem.message == "KeyError: 'k' (line 2 of `setup`, j.yaml:4)"


def test_a_column_that_is_not_there_is_met_with_the_one_that_was_meant():
    assert failure("output = {'n': row['nme']}").message == (
        "KeyError: 'nme' (line 1 of `code`), at row 1; did you mean `name`?"
    )


def test_a_wrong_output_names_the_row():
    assert failure("output = 5 if row['id'] == 2 else None").message == (
        "`output` must be a mapping, a list of mappings, or None to drop the row, and is a number, at row 2"
    )


def test_on_error_reject_goes_on_with_the_next_row():
    ran = by_row("output = {'n': row['name'].upper()}", params={"on_error": "reject"})
    assert ran.main == [{"n": "ANN"}, {"n": "BOB"}]
    (refused,) = ran.outputs["reject"]
    assert refused["error_code"] == "AttributeError"
    assert refused["error_message"].startswith(
        "AttributeError: 'NoneType' object has no attribute 'upper' (line 1 of `code`"
    )


def test_sys_exit_is_an_error_and_ends_nothing_else():
    assert failure("import sys\nsys.exit(3)").message == "SystemExit: 3 (line 2 of `code`), at row 1"


def test_columns_with_strange_names_arrive():
    rows = [{"a b": 1, "ü'\"\\": 2, "class": 3}]
    assert by_row("output = dict(row)", rows).main == rows


def test_rows_are_reported_as_they_are_made():
    told: list[tuple[str, int]] = []
    rows = [{"n": n} for n in range(300)]
    ran = run(
        "python",
        {"mode": "row", "code": "output = row if row['n'] % 2 else None"},
        {"input": rows},
        progress=lambda port, count: told.append((port, count)),
    )
    assert len(ran.main) == 150
    assert {port for port, _ in told} == {"main"}
    counts = [count for _, count in told]
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1] == 150, "more than once, and not only at the end"
