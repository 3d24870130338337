"""`python` in the modes `batch` and `frame`."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import Ran, run, schema

ROWS = [{"id": 1, "name": "Ann"}, {"id": 2, "name": None}, {"id": 3, "name": "Cyd"}]


def python(mode: str, code: str, rows: Any = ROWS, connected: Any = ("main",), **params: Any) -> Ran:
    schemas = {"input": schema(id="BIGINT", name="VARCHAR")} if not rows else None
    return run("python", {"code": code, "mode": mode, **params}, {"input": rows}, connected=connected, schemas=schemas)


def test_a_batch_is_a_list_of_mappings():
    ran = python("batch", "output = [{'n': len(rows), 'first': rows[0]['id']}]", batch_size=2)
    assert ran.main == [{"n": 2, "first": 1}, {"n": 1, "first": 3}]


def test_a_batch_may_give_nothing_and_feed_several_ports():
    code = "output = {'main': rows[:1], 'output_rest': rows[1:]}"
    assert python("batch", code, connected=["main", "output_rest"]).outputs == {
        "main": ROWS[:1],
        "output_rest": ROWS[1:],
    }
    assert python("batch", "pass").main == []


def test_variables_live_from_batch_to_batch():
    ran = python("batch", "total += len(rows)\nresult = total", setup="total = 0", batch_size=1, connected=())
    assert ran.result == 3


def test_a_batch_of_frames_is_rows_again():
    code = "import polars\noutput = polars.DataFrame(rows)"
    assert python("batch", code, batch_size=2).main == ROWS


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("rows", "output = [row for row in frame if row['name']]"),
        ("arrow", "import pyarrow.compute as pc\noutput = frame.filter(pc.is_valid(frame['name']))"),
        ("polars", "import polars as pl\noutput = frame.filter(pl.col('name').is_not_null())"),
        ("polars", "import polars as pl\noutput = frame.lazy().filter(pl.col('name').is_not_null())"),
        ("pandas", "output = frame[frame['name'].notna()]"),
    ],
)
def test_a_frame_comes_in_the_form_that_was_asked_for_and_leaves_as_rows(form: str, code: str):
    ran = python("frame", code, frame=form)
    assert ran.main == [ROWS[0], ROWS[2]]
    assert ran.schemas["main"] == schema(id="BIGINT", name="VARCHAR")


@pytest.mark.parametrize("form", ["rows", "arrow", "polars", "pandas"])
def test_a_frame_without_rows_keeps_its_columns(form: str):
    assert python("frame", "output = frame", rows=[], frame=form).schemas["main"] == schema(id="BIGINT", name="VARCHAR")


def test_several_frames_go_to_several_ports():
    code = "output = {'main': frame.head(1), 'output_rest': frame.tail(2)}"
    ran = python("frame", code, frame="polars", connected=["main", "output_rest"])
    assert ran.outputs == {"main": ROWS[:1], "output_rest": ROWS[1:]}


def test_the_index_of_a_data_frame_is_a_column_only_when_it_has_a_name():
    grouped = "output = frame.groupby('id').count().rename(columns={'name': 'n'})"
    assert python("frame", grouped, frame="pandas").main == [{"id": 1, "n": 1}, {"id": 2, "n": 0}, {"id": 3, "n": 1}]


def test_a_frame_and_emitted_rows_share_a_port():
    ran = python("frame", "emit('main', {'id': 0, 'name': 'Zoe'})\noutput = frame.head(1)", frame="polars")
    assert sorted(ran.main, key=lambda row: row["id"]) == [{"id": 0, "name": "Zoe"}, ROWS[0]]


def test_further_inputs_have_the_form_of_the_frame():
    ran = run(
        "python",
        {"code": "output = frame.join(inputs['input_b'], on='id')", "mode": "frame", "frame": "polars"},
        {"input": ROWS, "input_b": [{"id": 3, "x": 1}]},
        connected=["main"],
    )
    assert ran.main == [{"id": 3, "name": "Cyd", "x": 1}]


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ComponentFailure) as caught:
        python("frame", "output = frame", frame="polars")
    assert (caught.value.kind, caught.value.message) == (
        "not_installed",
        "`frame: polars` needs the package `polars`, which is not installed",
    )


def test_an_exception_in_a_batch_names_its_line():
    with pytest.raises(ComponentFailure) as caught:
        python("batch", "\nrows[0]['nme']")
    assert "KeyError: 'nme' (line 2 of `code`)" in caught.value.message


def test_an_exception_in_a_generator_names_its_line():
    with pytest.raises(ComponentFailure) as caught:
        python("batch", "output = (\n  1 / 0 for _ in rows)")
    assert "ZeroDivisionError: division by zero (line 2 of `code`)" in caught.value.message
