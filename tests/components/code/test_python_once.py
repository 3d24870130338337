"""`python` in mode `once`: what the code sees, what it may set, and what becomes of it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.tools.base import Settings
from tests.cases import cases
from tests.components.harness import Ran, columns, infer, mistakes, run, schema

ORDERS = [{"id": 1, "amount": 5}, {"id": 2, "amount": 7}]


def once(code: str, inputs: Any = None, **more: Any) -> Ran:
    params = more.pop("params", {})
    return run("python", {"code": code, **params}, inputs or {}, connected=more.pop("connected", ["main"]), **more)


def failure(code: str, inputs: Any = None, **more: Any) -> ComponentFailure:
    with pytest.raises(ComponentFailure) as caught:
        once(code, inputs, **more)
    return caught.value


def test_output_is_the_rows_of_main():
    assert once("output = [{'a': n, 'b': str(n)} for n in range(3)]").main == [
        {"a": 0, "b": "0"},
        {"a": 1, "b": "1"},
        {"a": 2, "b": "2"},
    ]


def test_inputs_is_a_mapping_of_port_to_rows():
    ran = once(
        "output = [{'n': len(inputs['input']), 'rate': inputs['input_rates'][0]['rate']}]",
        {"input": ORDERS, "input_rates": [{"rate": 0.5}]},
    )
    assert ran.main == [{"n": 2, "rate": 0.5}]


def test_rows_that_came_over_several_links_stand_one_after_another():
    assert once("output = inputs['input']", {"input": [ORDERS, [{"id": 3, "amount": 9}]]}).main == [
        *ORDERS,
        {"id": 3, "amount": 9},
    ]


def test_values_keep_their_types():
    given = [
        {"d": date(2026, 3, 1), "t": datetime(2026, 3, 1, 12), "m": Decimal("1.50"), "x": None, "f": 0.5, "l": [1, 2]}
    ]
    assert once("output = inputs['input']", {"input": given}, schemas={
        "input": schema(d="DATE", t="TIMESTAMP", m="DECIMAL(10,2)", x="VARCHAR", f="DOUBLE", l="BIGINT[]")
    }).main == given  # fmt: skip


def test_a_mapping_of_port_to_rows_feeds_several_ports():
    ran = once(
        "output = {'main': [{'a': 1}], 'output_b': [{'b': 2}], 'reject': [{'a': 3, 'error_message': 'no'}]}",
        connected=["main", "reject", "output_b"],
    )
    assert ran.outputs == {"main": [{"a": 1}], "output_b": [{"b": 2}], "reject": [{"a": 3, "error_message": "no"}]}


def test_rows_for_a_port_that_nobody_reads_are_left_out():
    assert once("output = {'main': [{'a': 1}], 'output_b': [{'b': 2}]}").outputs == {"main": [{"a": 1}]}


def test_a_generator_can_be_the_output():
    assert once("output = ({'n': n} for n in range(2))").main == [{"n": 0}, {"n": 1}]


def test_emit_puts_single_rows_on_any_port():
    ran = once(
        "for n in range(3):\n    emit('output_odd' if n % 2 else 'main', {'n': n})",
        connected=["main", "output_odd"],
    )
    assert ran.outputs == {"main": [{"n": 0}, {"n": 2}], "output_odd": [{"n": 1}]}


def test_more_rows_than_memory_should_hold_can_be_emitted():
    ran = once("for n in range(60_000):\n    emit('main', {'n': n, 'late': None if n < 55_000 else n})")
    assert [row["n"] for row in ran.main] == list(range(60_000))
    assert ran.schemas["main"][1].type == "BIGINT"


def test_without_output_and_with_declared_columns_main_is_empty():
    ran = once("pass", schemas={"main": schema(a="DATE")})
    assert ran.main == []
    assert ran.schemas["main"] == schema(a="DATE")


def test_without_rows_the_columns_are_those_of_the_input():
    assert once("output = []", {"input": ORDERS}).schemas["main"] == schema(id="BIGINT", amount="BIGINT")


def test_output_schema_gives_the_types():
    ran = once("output = [{'a': '7'}]", params={"output_schema": {"a": "integer", "b": "string"}})
    assert ran.main == [{"a": 7, "b": None}]
    assert columns("python", {"code": "pass", "output_schema": {"a": "decimal(10,2)"}}) == {"a": "DECIMAL(10,2)"}


def test_result_is_what_json_can_say():
    ran = once("result = {'when': __import__('datetime').date(2026, 3, 1), 'rows': (1, 2)}", connected=[])
    assert ran.result == {"when": "2026-03-01", "rows": [1, 2]}


def test_a_result_that_json_cannot_say_is_an_error():
    problem = failure("result = {'x': [object()]}", connected=[])
    assert (problem.kind, problem.message) == (
        "not_serialisable",
        "`result.x[0]` is of type `object`, which JSON cannot say",
    )


@pytest.mark.clause("J5.1")
def test_globals_can_be_read_and_written():
    ran = once("globals['n'] = globals['start'] + 1\nresult = globals['n']", globals={"start": 4}, connected=[])
    assert (ran.result, ran.globals) == (5, {"n": 5})


@pytest.mark.clause("J5.5")
@cases(
    "write",
    [
        "context['a'] = 2",
        "context['deep']['b'] = 2",
        "context['list'].append(2)",
        "context['list'][0] = 2",
        "context['list'] += [2]",
        "context.update(a=2)",
        "context.clear()",
        "del context['a']",
        "context.pop('a')",
        "context.setdefault('z', 2)",
        "context.a = 2",
    ],
)
def test_writing_to_context_is_an_error(write: str):
    problem = failure(write, context={"a": 1, "deep": {"b": 1}, "list": [1]})
    assert problem.kind == "exception"
    assert "`context` is read-only" in problem.message


def test_context_reads_like_any_mapping():
    code = (
        "import json, copy\nresult = [context['deep']['b'], json.dumps(context), copy.deepcopy(context), dict(context)]"
    )
    ran = once(code, context={"deep": {"b": [1]}}, connected=[])
    assert ran.result == [[1], '{"deep": {"b": [1]}}', {"deep": {"b": [1]}}, {"deep": {"b": [1]}}]


def test_iteration_is_there_in_a_body_and_none_elsewhere():
    assert once("result = iteration['index']", iteration={"index": 3, "item": "x"}, connected=[]).result == 3
    assert once("result = iteration is None", connected=[]).result is True


def test_what_the_code_prints_and_logs_goes_to_the_runs_log():
    ran = once("print('one', 2)\nlog({'three': 3})\nimport sys\nsys.stderr.write('four')", connected=[])
    assert ran.said == ["one 2", "{'three': 3}", "four"]


def test_a_flood_of_output_is_cut_off():
    ran = once("for _ in range(1000):\n    print('x' * 100)", connected=[], settings=Settings(max_output_bytes=1_000))
    assert len(ran.said) == 10
    assert ran.said[-1] == "… output truncated"


def test_modules_beside_the_job_can_be_imported(tmp_path: Path):
    (tmp_path / "beside_the_job.py").write_text("ANSWER = 42\n")
    assert once("import beside_the_job\nresult = beside_the_job.ANSWER", folder=tmp_path, connected=[]).result == 42


def test_data_classes_work():
    code = """
from __future__ import annotations
from dataclasses import dataclass, asdict
@dataclass
class Row:
    a: int
output = [asdict(Row(1))]
"""
    assert once(code).main == [{"a": 1}]


def test_a_frame_can_be_the_output_of_once():
    assert once("import polars\noutput = polars.DataFrame({'a': [1, 2]})").main == [{"a": 1}, {"a": 2}]


def test_rows_may_lack_columns_that_others_have():
    assert once("output = [{'a': 1}, {'b': 'x'}]").main == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("output = 5", "`output` must be a list of mappings, one per row, and is a number"),
        ("output = 'text'", "`output` must be a list of mappings, one per row, and is text"),
        ("output = [{'a': 1}, 7]", "`output[1]` must be a mapping, one row, and is a number"),
        ("output = {'main': {'a': 1}}", "`output['main']` must be a list of mappings, one per row, and is a mapping"),
        (
            "output = {'a': 1}",
            "output: `a` is not an output port; the ports are `main`, `reject`, `output_*`. A single row of `output` stands in "
            "a list",
        ),
        ("emit('mian', {})", "emit: `mian` is not an output port; the ports are `main`, `reject`, `output_*`; did you mean `main`?"),
    ],
)  # fmt: skip
def test_an_output_that_is_no_rows_is_named(code: str, message: str):
    problem = failure(code)
    assert problem.kind == "output"
    assert problem.message == message


def test_the_main_input_is_needed_in_all_modes_but_once():
    from tests.components.harness import REGISTRY

    needed = {
        mode: REGISTRY.ports("python", {"code": "pass", "mode": mode}).inputs[0].required
        for mode in ("once", "row", "batch", "frame")
    }
    assert needed == {"once": False, "row": True, "batch": True, "frame": True}


def test_a_wrong_type_in_output_schema_is_found_before_the_run():
    (mistake,) = mistakes("python", {"code": "pass", "output_schema": {"a": "intger"}})
    assert mistake.path == ("output_schema", "a")
    assert mistake.kind == "type"


def test_columns_of_main_are_not_claimed_without_a_schema():
    assert infer("python", {"code": "output = []"}, {}, ["main"]).outputs == {"main": None}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"code": "pass", "on_error": "reject"}, "`on_error: reject` needs `mode: row`"),
        ({"code": "pass", "frame": "polars"}, "`frame: polars` needs `mode: frame`"),
        ({"code": "pass", "mode": "rows"}, "expected one of `batch`, `frame`, `once`, `row`, got `rows`; did you mean `row`?"),
        ({}, "`code`: is needed"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(params: dict[str, Any], message: str):
    with pytest.raises(ComponentFailure) as caught:
        run("python", params, {}, connected=[])
    assert caught.value.kind == "parameters"
    assert message in caught.value.message
