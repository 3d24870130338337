"""Section 10: rows between components, as far as the control plane has to do with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import Ran, problems, run_job
from tests.spec_jobs.support import job, positions, python, rows, sets, sleeps

MANY = {"type": "generate_rows", "params": {"count": 20_000, "columns": {"id": "i", "text": "'row number ' || i"}}}


def result(run: Ran, component: str) -> Any:
    return next(one["result"] for one in run.payloads("component.ok") if one["component"] == component)


@pytest.mark.clause("J10.1")
def test_an_output_is_handed_over_as_a_reference_when_its_component_is_ok(tmp_path: Path) -> None:
    run = run_job(
        job(data=("source.main -> sink.input",), source=rows(1, 2, 3), sink=python("result = len(inputs['input'])")),
        tmp_path,
    )
    output = next(one["outputs"]["main"] for one in run.payloads("component.ok") if one["component"] == "source")
    assert output["rows"] == 3
    assert re.fullmatch(r"[\w:]+", output["hash"])
    assert "columns" not in str(output)
    assert result(run, "sink") == 3
    at = positions(run.events)
    assert at["component.ok source"] < at["component.started sink"]


@pytest.mark.clause("J10.1")
def test_equal_rows_have_equal_hashes_whatever_their_order(tmp_path: Path) -> None:
    text = job(
        data=("a.main -> x.input", "b.main -> y.input", "c.main -> z.input"),
        a=rows(1, 2, 3),
        b=rows(3, 1, 2),
        c=rows(1, 2, 4),
        x=python("result = 1"),
        y=python("result = 1"),
        z=python("result = 1"),
    )
    run = run_job(text, tmp_path)
    hashes = {
        one["component"]: one["outputs"]["main"]["hash"] for one in run.payloads("component.ok") if one["outputs"]
    }
    assert hashes["a"] == hashes["b"] != hashes["c"]


@pytest.mark.clause("J10.1")
def test_a_job_larger_than_its_memory_limit_completes(tmp_path: Path) -> None:
    """A sort holds all rows at once: more than it may have in memory, so it spills."""
    text = job(
        data=("source.main -> sorted.input", "sorted.main -> counted.input", "counted.main -> sink.input"),
        source={
            "type": "generate_rows",
            "params": {"count": 300_000, "columns": {"id": "hash(i)", "text": "repeat('abc', 60) || i"}},
        },
        sorted={"type": "sort", "params": {"by": ["id"]}},
        counted={"type": "aggregate", "params": {"by": [], "measures": {"n": "count(*)"}}},
        sink=python("result = inputs['input'][0]['n']"),
        config={"memory_limit": "48MB", "engine": {"kind": "duckdb", "fuse": False, "threads": 2}},
    )
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    assert result(run, "sink") == 300_000


@pytest.mark.clause("J10.2")
def test_two_links_into_one_input_are_refused(tmp_path: Path) -> None:
    text = job(
        data=("a.main -> keep.input", "b.main -> keep.input"),
        a=rows(1),
        b=rows(2),
        keep={"type": "filter", "params": {"where": "TRUE"}},
    )
    assert "J0305" in [one.code for one in problems(text, tmp_path)]


@pytest.mark.clause("J10.2")
def test_an_input_that_nothing_feeds_is_refused(tmp_path: Path) -> None:
    text = job(data=("a.main -> both.main",), a=rows(1), both={"type": "join", "params": {"on": ["id"]}})
    found = problems(text, tmp_path)
    assert [one.code for one in found if one.severity.value == "error"] == ["J0305"]
    assert "`lookup`" in found[0].message


@pytest.mark.clause("J10.2")
def test_a_port_that_takes_several_gets_all_arrivals_in_the_order_of_the_links(tmp_path: Path) -> None:
    code = "result = [row['id'] for row in inputs['input']]"
    text = job(
        "wait (ok) a",
        data=("a.main -> sink.input", "b.main -> sink.input"),
        wait=sleeps(0.01),
        a=rows(1, 2),
        b=rows(3),
        sink=python(code),
    )
    run = run_job(text, tmp_path)
    assert result(run, "sink") == [1, 2, 3]
    assert run.component("sink")["rows_in"] == {"input": 3}


@pytest.mark.clause("J10.3")
@pytest.mark.parametrize(
    ("limit", "fuse"),
    [({"max_in_flight_rows": 1}, True), ({"max_in_flight_rows": 1}, False), ({"max_in_flight_bytes": "64KB"}, True)],
)
def test_a_limit_on_rows_in_flight_never_stops_a_job_for_good(
    tmp_path: Path, limit: dict[str, Any], fuse: bool
) -> None:
    """A diamond over a fork, where one side is not looked at before the other is done: the shape that deadlocks queues."""
    text = job(
        "fork (parallelise) left, right",
        "left, right (synchronise) met",
        "left (ok) slow",
        data=(
            "source.output_a -> left.input",
            "source.output_b -> right.input",
            "left.main -> met.input_a",
            "right.main -> met.input_b",
            "met.main -> sink.input",
        ),
        begin=MANY,
        source={"type": "replicate"},
        left={"type": "filter", "params": {"where": "id % 2 = 0"}},
        right={"type": "filter", "params": {"where": "id % 2 = 1"}},
        slow=sleeps(0.02),
        met={"type": "union"},
        sink={"type": "python", "params": {"mode": "batch", "code": "globals['n'] = globals.get('n', 0) + len(rows)"}},
        config={**limit, "engine": {"kind": "duckdb", "fuse": fuse}},
    ).replace('"source.output_a -> left.input"', '"begin.main -> source.input", "source.output_a -> left.input"')
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    assert run.globals["n"] == 20_000


@pytest.mark.clause("J10.4")
def test_the_rulebooks_fan_out_example_has_concrete_ports_in_sorted_order(tmp_path: Path) -> None:
    text = """
    components:
      - {name: source, type: fixed_rows, params: {columns: [id], rows: [[1], [2]]}}
      - {name: fanout, type: replicate}
      - name: split
        type: python
        params: {code: "result = {port: len(rows) for port, rows in inputs.items()}"}
    connections:
      data:
        source.main -> fanout.input
        fanout.output_1 -> split.input_inventory
        fanout.output_0 -> split.input_orders
    """
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    ended = next(one for one in run.payloads("component.ok") if one["component"] == "fanout")
    assert list(ended["outputs"]) == ["output_0", "output_1"]
    assert result(run, "split") == {"input_inventory": 2, "input_orders": 2}


@pytest.mark.clause("J10.4")
def test_a_port_without_the_prefix_of_the_wild_card_is_refused(tmp_path: Path) -> None:
    text = job(
        data=("source.main -> all.other", "all.main -> sink.input"),
        source=rows(1),
        all={"type": "union"},
        sink={"type": "log_rows"},
    )
    found = problems(text, tmp_path)
    assert "J0303" in [one.code for one in found]
    assert any("input_*" in f"{one.message} {one.hint} {one.label}" for one in found)


@pytest.mark.clause("J10.4")
def test_the_order_in_which_links_are_written_does_not_change_the_plan(tmp_path: Path) -> None:
    links = ["a.main -> all.input_b", "b.main -> all.input_a", "all.main -> sink.input"]
    hashes = set()
    for number, data in enumerate((links, list(reversed(links)))):
        text = job(alone="a b all sink", data=tuple(data), a=rows(1), b=rows(2), all={"type": "union"}, sink=sets(n=1))
        text = text.replace('"type": "set_global"', '"type": "python"').replace(
            '"values": {\n     "n": 1\n    }', '"code": "result = 1"'
        )
        run = run_job(text, tmp_path / str(number))
        assert run.status == "completed", run.error
        hashes.add(run.payloads("job.started")[0]["digest"])
    assert len(hashes) == 1
