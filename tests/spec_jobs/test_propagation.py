"""Section 6: what follows from OK, ERROR and SKIPPED, over every kind of link, and how far a skip goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import run_job
from tests.spec_jobs.support import FAILS, OK, job, rows

STATES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "OK": ((), {"up": OK}),
    "ERROR": ((), {"up": FAILS}),
    "SKIPPED": (("first (error) up",), {}),
}
EXPECTED = {
    # (state, link): does it fire? A link that does not fire leaves its target SKIPPED.
    ("OK", "ok"): True,
    ("OK", "error"): False,
    ("OK", 'if 1: "True"'): True,
    ("OK", 'if 1: "False"'): False,
    ("OK", "subjob_ok"): True,
    ("OK", "subjob_error"): False,
    ("ERROR", "ok"): False,
    ("ERROR", "error"): True,
    ("ERROR", 'if 1: "True"'): False,
    ("ERROR", "subjob_ok"): False,
    ("ERROR", "subjob_error"): True,
    ("SKIPPED", "ok"): False,
    ("SKIPPED", "error"): False,
    ("SKIPPED", 'if 1: "True"'): False,
    ("SKIPPED", "subjob_error"): False,
}


@pytest.mark.clause("J6.1")
@pytest.mark.parametrize(("state", "link"), EXPECTED)
def test_the_propagation_matrix(tmp_path: Path, state: str, link: str) -> None:
    before, components = STATES[state]
    run = run_job(job(*before, f"up ({link}) down", **components), tmp_path)
    fires = EXPECTED[state, link]
    assert run.component("up")["state"] == state
    assert run.component("down")["state"] == ("OK" if fires else "SKIPPED")
    assert [one for one in run.fired() if one.startswith("up (")] == ([f"up ({link.split()[0]}) down"] if fires else [])


@pytest.mark.clause("J6.1")
@pytest.mark.parametrize(("state", "expected"), [("OK", "OK"), ("ERROR", "SKIPPED"), ("SKIPPED", "SKIPPED")])
def test_a_fork_follows_the_matrix(tmp_path: Path, state: str, expected: str) -> None:
    before, components = STATES[state]
    run = run_job(job(*before, "up (parallelise) left, right", "left, right (synchronise) met", **components), tmp_path)
    assert [run.component(name)["state"] for name in ("left", "right", "met")] == [expected] * 3


@pytest.mark.clause("J6.1")
@pytest.mark.parametrize(
    ("feeder", "expected"),
    [(rows(1), ("OK", "OK")), ({"type": "python", "params": {"code": "1 / 0"}}, ("ERROR", "SKIPPED"))],
)
def test_rows_follow_the_matrix(tmp_path: Path, feeder: dict[str, Any], expected: tuple[str, str]) -> None:
    run = run_job(job(data=("up.main -> down.input",), up=feeder, down={"type": "log_rows"}), tmp_path)
    assert (run.component("up")["state"], run.component("down")["state"]) == expected


@pytest.mark.clause("J6.2")
def test_a_skip_goes_on_to_every_descendant_without_another_way_in(tmp_path: Path) -> None:
    links = (
        "a (ok) b",
        "b (ok) c, d",
        'c (if 1: "True") e',
        "d (ok) e",
        "e (ok) f",
        "f (error) g",
        "e (parallelise) h, i",
        "h, i (synchronise) j",
    )
    run = run_job(job(*links, a=FAILS), tmp_path)
    states = run.states()
    assert states.pop("a") == "ERROR"
    assert states == dict.fromkeys("bcdefghij", "SKIPPED")
    assert run.started() == ["a"]


@pytest.mark.clause("J6.2")
@pytest.mark.parametrize("alternate", [False, True])
def test_a_diamond_with_and_without_an_alternate_way(tmp_path: Path, alternate: bool) -> None:
    """`meet` has two ways in; when one of them is skipped and the other fires, it runs."""
    links = ["a (ok) left", "a (error) right", "left (ok) meet", "meet (ok) after"]
    links.append("right (ok) meet" if not alternate else "a (ok) meet")
    run = run_job(job(*links, left=FAILS), tmp_path)
    expected = "OK" if alternate else "SKIPPED"
    assert run.component("right")["state"] == "SKIPPED"
    assert run.component("meet")["state"] == run.component("after")["state"] == expected


@pytest.mark.clause("J6.2")
def test_an_alternate_way_that_fires_later_is_waited_for(tmp_path: Path) -> None:
    """The skip of `dead` comes at once and the rescue an hour later: the target waits and then runs, once."""
    links = ("dead (error) target", "slow (ok) target", "target (ok) after")
    run = run_job(job(*links, slow={"type": "sleep", "params": {"seconds": 3600}}), tmp_path, virtual=True)
    assert run.component("target")["state"] == "OK"
    assert run.started().count("target") == 1


@pytest.mark.clause("J6.2")
def test_rows_that_cannot_come_skip_a_component_whatever_else_fires(tmp_path: Path) -> None:
    text = job(
        "go (ok) target",
        data=("feeder.main -> target.input", "target.main -> after.input"),
        feeder={"type": "python", "params": {"code": "1 / 0"}},
        target={"type": "filter", "params": {"where": "TRUE"}},
        after={"type": "log_rows"},
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"feeder": "ERROR", "go": "OK", "target": "SKIPPED", "after": "SKIPPED"}


@pytest.mark.clause("J1.7", "J10.2")
@pytest.mark.parametrize("ports", [("input_1", "input_2"), ("input_1", "input_1")])
def test_some_of_the_rows_are_not_enough_on_one_port_or_on_several(tmp_path: Path, ports: tuple[str, str]) -> None:
    """One source of a union failed: whether the two share a port or not, half of the rows are not passed off as all."""
    text = job(
        data=(f"good.main -> both.{ports[0]}", f"bad.main -> both.{ports[1]}", "both.main -> after.input"),
        good={"type": "fixed_rows", "params": {"columns": ["id"], "rows": [[1]]}},
        bad={"type": "python", "params": {"code": "1 / 0"}},
        both={"type": "union"},
        after={"type": "log_rows"},
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"good": "OK", "bad": "ERROR", "both": "SKIPPED", "after": "SKIPPED"}
    assert f"its input `{ports[1]}` cannot be fed" in run.component("both")["cause"]


@pytest.mark.clause("J6.2")
@pytest.mark.clause("J1.7")
@pytest.mark.parametrize(
    "target",
    [
        {"type": "python", "params": {"code": "result = len(inputs['input'])"}},
        {"type": "sql", "params": {"query": "SELECT * FROM input"}},
    ],
)
def test_a_port_that_need_not_be_connected_must_be_fed_once_it_is(tmp_path: Path, target: dict[str, Any]) -> None:
    feeder = {"type": "python", "params": {"code": "1 / 0", "output_schema": {"id": "BIGINT"}}}
    run = run_job(job(data=("feeder.main -> target.input",), feeder=feeder, target=target), tmp_path)
    assert run.states() == {"feeder": "ERROR", "target": "SKIPPED"}


@pytest.mark.clause("J6.2")
def test_a_skip_of_hundreds_of_components_does_not_run_out_of_stack(tmp_path: Path) -> None:
    links = [f"n{number} (ok) n{number + 1}" for number in range(600)]
    run = run_job(job(*links, n0=FAILS), tmp_path)
    assert list(run.states().values()).count("SKIPPED") == 600
