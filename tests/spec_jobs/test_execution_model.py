"""Section 1: the graph is walked in an order that fits its links, every component is a task of its own, states and timing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import run_job
from tests.spec_jobs.support import ENDS, FAILS, each, job, positions, python, rows, sets, sleeps

TWELVE = """
components:
  - {name: begin, type: set_global, params: {values: {day: 3}}}
  - {name: orders, type: fixed_rows, params: {columns: [id, customer], rows: [[1, 7], [2, 8], [3, 7]]}}
  - {name: customers, type: fixed_rows, params: {columns: [customer, name], rows: [[7, Ada], [8, Grace]]}}
  - {name: joined, type: join, params: {on: [customer]}}
  - {name: big, type: filter, params: {where: id > 1}}
  - {name: counted, type: aggregate, params: {by: [name], measures: {n: count(*)}}}
  - {name: shown, type: log_rows}
  - {name: fork, type: noop}
  - {name: left, type: sleep, params: {seconds: 0.01}}
  - {name: right, type: noop}
  - {name: met, type: noop}
  - {name: last, type: warn, params: {message: done}}
connections:
  data: |
    orders.main -> joined.main
    customers.main -> joined.lookup
    joined.main -> big.input
    big.main -> counted.input
    counted.main -> shown.input
  control: |
    begin (ok) orders
    shown (ok) fork
    fork (parallelise) left, right
    left, right (synchronise) met
    met (ok) last
"""


@pytest.mark.clause("J1.1")
def test_twelve_components_run_in_an_order_that_fits_their_links(tmp_path: Path) -> None:
    run = run_job(TWELVE, tmp_path)
    assert run.status == "completed", run.error
    assert set(run.states().values()) == {"OK"}
    at = positions(run.events)
    pairs = [
        "begin orders", "orders joined", "customers joined", "joined big", "big counted", "counted shown", "shown fork",
        "fork left", "fork right", "left met", "right met", "met last",
    ]  # fmt: skip
    for pair in pairs:
        before, after = pair.split()
        assert at[f"component.ok {before}"] < at[f"component.started {after}"], pair
    assert run.component("counted")["rows_out"] == {"main": 2}


@pytest.mark.clause("J1.2")
def test_two_components_of_a_minute_each_take_a_minute_together(tmp_path: Path) -> None:
    text = job("a (ok) a2", alone="a b", a=sleeps(60), b=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    assert run.status == "completed"
    assert 60_000 <= run.played.summary.duration_ms < 65_000


@pytest.mark.clause("J1.2")
def test_a_slow_component_does_not_hold_up_one_that_does_not_depend_on_it(tmp_path: Path) -> None:
    text = job("quick (ok) after", alone="slow quick", slow=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok after"] < at["component.ok slow"]


@pytest.mark.clause("J1.2")
def test_code_that_blocks_its_thread_holds_up_nobody(tmp_path: Path) -> None:
    """`waits` ends only after `answers` has run, and both are roots: on one thread this would never end."""
    gate = tmp_path / "gate"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists():\n    time.sleep(0.001)\n"
    answers = f"import pathlib\npathlib.Path({str(gate)!r}).touch()\n"
    run = run_job(job(alone="waits answers", waits=python(waits), answers=python(answers)), tmp_path)
    assert run.states() == {"waits": "OK", "answers": "OK"}


@pytest.mark.clause("J1.4")
def test_only_the_five_transitions_of_a_component_are_recorded(tmp_path: Path) -> None:
    text = job(
        "good (ok) next",
        "good (error) never",
        "never (ok) nor_this",
        "bad (error) help",
        "it (iterate) body",
        bad=FAILS,
        it=each(1, 2),
    )
    run = run_job(text, tmp_path)
    states: dict[str, list[str]] = {}
    for event in run.events:
        kind = str(event["event_type"])
        if kind == "component.started" or kind in ENDS:
            states.setdefault(str(event["scope"]), ["WAIT"]).append(ENDS.get(kind, "RUNNING"))
    assert {tuple(one) for one in states.values()} == {
        ("WAIT", "RUNNING", "OK"),
        ("WAIT", "RUNNING", "ERROR"),
        ("WAIT", "SKIPPED"),
    }
    assert states["never"] == states["nor_this"] == ["WAIT", "SKIPPED"]


@pytest.mark.clause("J1.5")
def test_all_links_of_a_component_fire_after_its_end_and_before_anything_starts(tmp_path: Path) -> None:
    text = job("a (ok) b, c", 'a (if 2: "True") e', 'a (if 1: "True") d', "a (parallelise) f, g", a=sets(x=1))
    run = run_job(text, tmp_path)
    types = [f"{event['event_type']} {event['payload'].get('to', event['scope'])}" for event in run.events]
    end = types.index("component.ok a")
    started = [at for at, one in enumerate(types) if one.startswith("component.started") and at > end]
    fired = [at for at, one in enumerate(types) if one.startswith("edge.fired")]
    assert [types[at].removeprefix("edge.fired ") for at in fired] == ["b", "c", "f", "g", "d", "e"]
    assert end < min(fired)
    assert max(fired) < min(started)
    assert types.index("global.set a") in range(end, min(started))


READS_BOTH = "result = [globals.get('one'), globals.get('two')]"


@pytest.mark.clause("J1.6")
def test_a_reader_sees_all_writes_of_a_component_with_the_firing_of_its_links(tmp_path: Path) -> None:
    """`beside` runs while the writer is between its two writes, and sees neither."""
    wrote, looked = tmp_path / "wrote", tmp_path / "looked"
    writer = (
        f"import pathlib, time\nglobals['one'] = 1\npathlib.Path({str(wrote)!r}).touch()\n"
        f"while not pathlib.Path({str(looked)!r}).exists():\n    time.sleep(0.001)\nglobals['two'] = 2\n"
    )
    beside = (
        f"import pathlib, time\nwhile not pathlib.Path({str(wrote)!r}).exists():\n    time.sleep(0.001)\n"
        f"{READS_BOTH}\npathlib.Path({str(looked)!r}).touch()\n"
    )
    text = job(
        "writer (ok) reader", alone="beside", writer=python(writer), beside=python(beside), reader=python(READS_BOTH)
    )
    run = run_job(text, tmp_path)
    results = {one["component"]: one["result"] for one in run.payloads("component.ok")}
    assert results["beside"] == [None, None]
    assert results["reader"] == [1, 2]


@pytest.mark.clause("J1.6")
def test_of_writes_that_cannot_be_committed_none_is_seen(tmp_path: Path) -> None:
    text = job(
        "writer (error) reader",
        writer=python("globals['one'] = 1\nglobals['two'] = object()"),
        reader=python(READS_BOTH),
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"writer": "ERROR", "reader": "OK"}
    assert run.payloads("component.ok")[0]["result"] == [None, None]
    assert "two" in run.component("writer")["error"]["message"]
    assert run.globals == {}


@pytest.mark.clause("J1.7")
@pytest.mark.parametrize(("data_ms", "control_ms"), [(0, 500), (500, 0), (300, 300)])
def test_a_component_starts_when_its_rows_and_its_green_light_are_both_there(
    tmp_path: Path, data_ms: int, control_ms: int
) -> None:
    text = job(
        "before (ok) feeder",
        "gate (ok) target",
        data=("feeder.main -> target.input",),
        before=sleeps(data_ms / 1000),
        feeder=rows(1, 2),
        gate=sleeps(control_ms / 1000),
        target=python("result = len(inputs['input'])"),
    )
    run = run_job(text, tmp_path, virtual=True)
    assert run.status == "completed", run.error
    at = positions(run.events)
    assert at["component.started target"] > max(at["component.ok feeder"], at["component.ok gate"])
    assert run.component("target")["rows_in"] == {"input": 2}


@pytest.mark.clause("J1.7")
def test_of_several_control_links_one_that_fires_is_enough(tmp_path: Path) -> None:
    run = run_job(job("a (error) c", "b (ok) c", alone="a b"), tmp_path)
    assert run.component("c")["state"] == "OK"


@pytest.mark.clause("J1.7")
def test_a_startable_component_waits_for_rows_and_for_no_link(tmp_path: Path) -> None:
    text = job(
        "never (error) target",
        data=("feeder.main -> target.input",),
        feeder=rows(1),
        target={"type": "log_rows", "startable": True},
    )
    run = run_job(text, tmp_path)
    at = positions(run.events)
    assert run.component("target")["state"] == "OK"
    assert at["component.started target"] > at["component.ok feeder"]
