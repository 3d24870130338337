"""The rulebook's own test matrices (sections 9 and 15) and its two examples, row by row and by name."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.data.queues import PortQueue
from penstock.kernel.decide import Begin
from penstock.kernel.globals import View, Written, joined
from penstock.server.documents import Documents
from penstock.tools.registry import Registry
from tests.cli.support import PATIENCE_S
from tests.flow.nets import Play, sets
from tests.flow.nets import job as net
from tests.jobs import resume_job, run_job
from tests.spec_jobs.support import FAILS, OK, each, job, marks, positions, python, rows, sleeps
from tests.spec_jobs.support import sets as set_global

# ---- section 9


@pytest.mark.clause("J2.1")
@pytest.mark.clause("J2.2")
@pytest.mark.parametrize("a", [OK, FAILS])
def test_matrix_9_ok_error_exclusivity(tmp_path: Path, a: dict[str, Any]) -> None:
    run = run_job(job("a (ok) b", "a (error) c", a=a), tmp_path)
    assert len([one for one in run.fired() if one.startswith("a (")]) == 1


@pytest.mark.clause("J2.6")
def test_matrix_9_parallel_join_waits(tmp_path: Path) -> None:
    text = job("f (parallelise) a, b, c", "a, b, c (synchronise) j", a=sleeps(30), b=sleeps(90), c=sleeps(60))
    run = run_job(text, tmp_path, virtual=True)
    ends = [
        event["ts"]
        for event in run.events
        if event["event_type"] == "component.ok" and event["scope"] in ("a", "b", "c")
    ]
    start = next(
        event["ts"] for event in run.events if event["event_type"] == "component.started" and event["scope"] == "j"
    )
    assert start >= max(ends)


@pytest.mark.clause("J4.2")
@pytest.mark.parametrize(
    ("one", "other", "winner"),
    [
        (((0, 1), 5), ((1, 0), 2), "other"),  # The higher sub-job.
        (((1, 0), 2), ((0, 1), 5), "one"),
        (((2, 0), 3), ((2, 0), 4), "other"),  # The later event of one sub-job.
        (((2, 0), 3), ((2, 0), 3), "other"),  # A tie: the component whose name sorts last.
    ],
)
def test_matrix_9_global_conflict_resolution(one: Any, other: Any, winner: str) -> None:
    """Simulated clocks: of two writes that did not know of each other, the one with the higher logical clock."""
    for order in ((0, 1), (1, 0)):
        views = []
        for clock, name in ((one, "one"), (other, "other")):
            view = View()
            view.write("x", Written(name, (clock, name), "somewhere"))
            views.append(view)
        assert joined([views[at] for at in order]).values() == {"x": winner}


@pytest.mark.clause("J7.2")
def test_matrix_9_checkpoint_resume(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    names = ("one", "two", "three")
    components: dict[str, Any] = {name: marks(str(tmp_path / "ran"), name) for name in names}
    components["two"]["params"]["code"] += f"import pathlib\nassert pathlib.Path({str(flag)!r}).exists(), 'not yet'\n"
    text = job("one (subjob_ok) two", "two (subjob_ok) three", **components)
    assert run_job(text, tmp_path).status == "failed"
    flag.touch()
    assert resume_job(tmp_path).status == "completed"
    assert (tmp_path / "ran").read_text().split() == ["one", "two", "two", "three"]


@pytest.mark.clause("J6.2")
def test_matrix_9_cascade_skip(tmp_path: Path) -> None:
    run = run_job(
        job("a (ok) b", "b (ok) c", "b (error) d", "c (parallelise) e, f", "e, f (synchronise) g", a=FAILS), tmp_path
    )
    assert {run.component(name)["state"] for name in "bcdefg"} == {"SKIPPED"}


# ---- section 15


@pytest.mark.clause("J10.4")
def test_matrix_15_wild_card_port_expansion(tmp_path: Path) -> None:
    """The plan has concrete ports, and still no cycle: every link leads forward in the order of its sub-job."""
    text = job(
        data=(
            "source.main -> fanout.input",
            "fanout.output_1 -> split.input_inventory",
            "fanout.output_0 -> split.input_orders",
        ),
        source=rows(1),
        fanout={"type": "replicate"},
        split={"type": "union"},
    )
    (tmp_path / "job.yaml").write_text(text)
    from penstock.components.registry import ComponentRegistry

    documents = Documents(Registry(), ComponentRegistry())
    compiled, _ = documents.compile(documents.open(tmp_path / "job.yaml"))
    links = [(link.source, link.port, link.target, link.to_port) for link in compiled.links]
    assert links == [
        ("source", "main", "fanout", "input"),
        ("fanout", "output_0", "split", "input_orders"),
        ("fanout", "output_1", "split", "input_inventory"),
    ]
    order = compiled.containers[""].regions[0].members
    assert all(order.index(source) < order.index(target) for source, _, target, _ in links)


@pytest.mark.clause("J5.4")
def test_matrix_15_joblet_nested_globals(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(job(alone="inner", inner=set_global(G=42)))
    (tmp_path / "outer.yaml").write_text(job(alone="nested", nested={"type": "@deep"}))
    text = job(
        "caller (ok) after", caller={"type": "@outer"}, after=python("result = globals['caller.__nested.__inner__G']")
    )
    run = run_job(text, tmp_path)
    assert next(one["result"] for one in run.payloads("component.ok") if one["component"] == "after") == 42


@pytest.mark.clause("J12.4")
def test_matrix_15_iterator_empty_input(tmp_path: Path) -> None:
    links = ("it (iterate) body", "it (iteration_ok) good", "it (iterator_complete) end")
    text = job(
        *links,
        data=("none.main -> it.input",),
        none={"type": "fixed_rows", "params": {"columns": ["id"], "rows": []}},
        it={"type": "iterate_rows"},
    )
    run = run_job(text, tmp_path)
    assert run.fired() == ["it (iterator_complete) end"]
    assert run.component("it")["state"] == "OK"


@pytest.mark.clause("J12.6")
def test_matrix_15_resume_after_iteration_3_fail_of_10(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = (
        f"import pathlib\nwith open({str(tmp_path / 'ran')!r}, 'a') as file:\n    file.write(f\"{{iteration['index']}} \")\n"
        f"assert iteration['index'] != 3 or pathlib.Path({str(flag)!r}).exists(), 'not yet'\n"
    )
    assert run_job(job("it (iterate) body", it=each(*range(10)), body=python(code)), tmp_path).status == "failed"
    (tmp_path / "ran").unlink()
    flag.touch()
    assert resume_job(tmp_path).status == "completed"
    assert (tmp_path / "ran").read_text().split() == [str(index) for index in range(3, 10)]


@pytest.mark.clause("J13.1")
def test_matrix_15_startable_with_no_inbound_control() -> None:
    """In the ready queue before anything has happened."""
    play = Play(net("a (ok) b", "c.main -> d.input", alone="e"))
    play.when(Begin())
    assert [component.place.id for component in play.ready] == ["a", "c", "e"]


@pytest.mark.clause("J10.3")
def test_matrix_15_back_pressure(tmp_path: Path) -> None:
    """The consumer takes the next batch only when the sender waits: so it does wait, and never holds more than the limit."""
    queue: PortQueue[list[int]] = PortQueue(10, None, tmp_path)
    taken: list[int] = []

    def consume() -> None:
        batches = queue.take()
        consuming.set()
        deadline = time.monotonic() + PATIENCE_S
        while queue.waits == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        for batch in batches:
            taken.extend(batch)

    consuming = threading.Event()
    consumer = threading.Thread(target=consume)
    consumer.start()
    consuming.wait(PATIENCE_S)
    for start in range(0, 1000, 5):
        queue.put(list(range(start, start + 5)), 5)
    queue.end()
    consumer.join(PATIENCE_S)
    assert taken == list(range(1000))
    assert queue.waits >= 1
    assert queue.peak_rows <= 10


# ---- the examples


@pytest.mark.clause("J1.7")
def test_example_a_data_vs_control_timing(tmp_path: Path) -> None:
    """`transform` has rows from `extract`; it runs when `extract` is OK and its link has fired, and not before."""
    text = """
    components:
      - {name: extract, type: fixed_rows, params: {columns: [id], rows: [[1], [2], [3]]}}
      - {name: transform, type: filter, params: {where: id > 1}}
      - {name: load, type: python, params: {code: "result = len(inputs['input'])"}}
    connections:
      data:
        extract.main -> transform.input
        transform.main -> load.input
      control:
        - extract (ok) transform
    """
    run = run_job(text, tmp_path)
    assert run.status == "completed", run.error
    at = positions(run.events)
    fired = next(at for at, event in enumerate(run.events) if event["event_type"] == "edge.fired")
    assert at["component.ok extract"] < fired < at["component.started transform"]
    assert run.fired() == ["extract (ok) transform"]
    assert run.component("transform")["rows_in"] == {"input": 3}
    assert run.component("load")["rows_in"] == {"input": 2}


@pytest.mark.clause("J1.7")
def test_example_a_rows_that_are_there_early_do_not_start_anything(tmp_path: Path) -> None:
    text = job(
        "extract (ok) gate",
        "gate (ok) transform",
        data=("extract.main -> transform.input",),
        extract=rows(1, 2),
        gate=sleeps(60),
        transform=python("result = len(inputs['input'])"),
    )
    run = run_job(text, tmp_path, virtual=True)
    at = positions(run.events)
    assert at["component.ok extract"] < at["component.ok gate"] < at["component.started transform"]


ADDRESS_CLEANER = """
kind: Joblet
components:
  - name: inner_map
    type: python
    params:
      code: |
        globals["ROW_ERR"] = "row 7: no street"
        raise ValueError("bad address")
  - name: inner_alert
    type: python
    params: {code: "raise ValueError('the mail server is down')"}
connections:
  control: inner_map (error) inner_alert
"""


@pytest.mark.clause("J11.4")
def test_example_b_joblet_error_bubble(tmp_path: Path) -> None:
    """The handler inside fails too: the call is in ERROR, the parent's subjob_error fires, and its handler reads the global."""
    (tmp_path / "address_cleaner.yaml").write_text(ADDRESS_CLEANER)
    text = """
    components:
      - {name: address_cleaner, type: "@address_cleaner"}
      - {name: next, type: noop}
      - {name: handler, type: set_global, params: {values: {why: "{{ global.address_cleaner.__inner_map__ROW_ERR }}"}}}
    connections:
      control: |
        address_cleaner (ok) next
        address_cleaner (subjob_error) handler
    """
    run = run_job(text, tmp_path)
    assert run.states() == {
        "address_cleaner": "ERROR",
        "address_cleaner.__inner_map": "ERROR",
        "address_cleaner.__inner_alert": "ERROR",
        "next": "SKIPPED",
        "handler": "OK",
    }
    assert run.fired("subjob_error") == ["address_cleaner (subjob_error) handler"]
    assert run.globals["address_cleaner.__inner_map__ROW_ERR"] == "row 7: no street"
    assert run.globals["why"] == "row 7: no street"


@pytest.mark.clause("J4.2")
def test_matrix_9_global_conflict_resolution_in_the_kernel_under_every_order() -> None:
    links = ("f (parallelise) a, b, c", "a, b, c (synchronise) j")
    for seed in range(20):
        play = Play(net(*links), {"a": sets(x="a"), "b": sets(x="b"), "c": sets(x="c")}, seed=seed).run()
        assert play.tree.runs["j"].view.values() == {"x": "c"}
